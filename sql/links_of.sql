-- Which links begin or end with a thing at a coordinate? One row for each that holds there, in the order of (valid_from, when it was recorded, id).
--
-- Parameters: :id, the id of the thing; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql, every link as it is stored; of the standings that of the thing itself is NULL: see things.sql.
WITH
found (number, id, kind, source, target, near, far) AS (
  SELECT l.number, l.id, l.kind, l.source, l.target, l.source, l.target
  FROM entity e
  CROSS JOIN link l ON l.source = e.number
  WHERE e.id = :id AND e.tx_from <= :tx
  UNION ALL
  SELECT l.number, l.id, l.kind, l.source, l.target, l.target, l.source
  FROM entity e
  CROSS JOIN link l ON l.target = e.number
  WHERE e.id = :id AND e.tx_from <= :tx
),
held (number, id, kind, source, target, near, period, standing) AS (
  SELECT
    found.number, found.id, found.kind, found.source, found.target, found.near, p.number,
    coalesce(
      (SELECT f.word FROM forgotten f WHERE f.entity = found.far),
      (
        SELECT a.standing FROM absence a
        WHERE a.entity = found.far AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
        ORDER BY a.valid_from DESC LIMIT 1
      ),
      CASE
        WHEN (
          SELECT 1 FROM period e
          WHERE e.entity = found.far AND e.valid_from <= :valid AND e.valid_to > :valid AND e.tx_from <= :tx AND e.tx_to > :tx
          ORDER BY e.valid_from DESC LIMIT 1
        ) IS NULL THEN 'not_yet'
        WHEN (
          SELECT 1 FROM shaky s
          WHERE s.entity = found.far AND s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
          ORDER BY s.valid_from DESC LIMIT 1
        ) THEN 'shaky'
        ELSE 'stands'
      END
    )
  FROM found
  CROSS JOIN link_period p
    ON p.link = found.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
)
SELECT
  held.id, held.kind, source.id AS source, target.id AS target,
  CASE WHEN held.near = held.target THEN held.standing END AS source_standing,
  CASE WHEN held.near = held.source THEN held.standing END AS target_standing,
  c.strength, c.is_inferred, c.created_by, o.author, o.tx AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM held
CROSS JOIN link_period p ON p.number = held.period
CROSS JOIN entity source ON source.number = held.source
CROSS JOIN entity target ON target.number = held.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
ORDER BY
  p.valid_from,
  (  -- what an undo opened again was recorded when it was opened first
    SELECT CASE WHEN u.verb = 'undo' THEN (
      SELECT min(f.tx_from) FROM link_period f
      WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
    ) ELSE p.tx_from END
    FROM operation u WHERE u.number = p.opened_by
  ),
  held.id;
