-- Which events have happened by a coordinate? One row for each that is believed there, the newest first. All filters that are not NULL must hold.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :type, a text or NULL; :related_to, the id of a thing or NULL: a link that holds
-- at the coordinate joins the event with it, either way; :since and :until, instants or both NULL: an occurrence of the event by :valid lies in [:since, :until);
-- :undone, a JSON array of the transactions that are taken back as known at :tx ('[]' where table undone is empty).
-- Columns: those of node.sql; kind, the type of the event; standing, stands, shaky or superseded.
WITH
related (number) AS (
  SELECT l.target
  FROM entity n
  CROSS JOIN link l ON l.source = n.number
  CROSS JOIN link_period p
    ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE n.id = :related_to
  UNION
  SELECT l.source
  FROM entity n
  CROSS JOIN link l ON l.target = n.number
  CROSS JOIN link_period p
    ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE n.id = :related_to
),
chosen (number) AS (
  SELECT number FROM related
  UNION ALL
  SELECT e.number FROM entity e WHERE :related_to IS NULL AND :type IS NOT NULL AND e.kind = :type
  UNION ALL
  SELECT e.number FROM entity e WHERE :related_to IS NULL AND :type IS NULL AND e.is_event
)
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to,
  o.author, coalesce(o.recorded, o.tx, e.tx_from) AS recorded_at, NULL AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum,
  coalesce(
    (
      SELECT a.standing FROM absence a
      WHERE a.entity = e.number AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
      ORDER BY a.valid_from DESC LIMIT 1
    ),
    CASE WHEN (
      SELECT 1 FROM shaky s
      WHERE s.entity = e.number AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
      ORDER BY s.valid_from DESC LIMIT 1
    ) THEN 'shaky' ELSE 'stands' END
  ) AS standing
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
CROSS JOIN period p ON p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE e.is_event
  AND (:type IS NULL OR e.kind = :type)
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
  AND (
    :since IS NULL
    OR EXISTS (  -- the first report is no row of occurrence
      SELECT 1 FROM (SELECT r.valid_from AS at FROM period r WHERE r.entity = e.number AND r.tx_to > r.tx_from ORDER BY r.number LIMIT 1)
      WHERE at <= :valid AND at >= :since AND at < :until
    )
    OR EXISTS (
      SELECT 1 FROM occurrence h
      WHERE h.event = e.number AND h.tx <= :tx AND h.tx NOT IN (SELECT value FROM json_each(:undone))
        AND h.occurred_at <= :valid AND h.occurred_at >= :since AND h.occurred_at < :until
    )
  )
ORDER BY p.valid_from DESC, e.id;
