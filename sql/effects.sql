-- What did a thing lead to, and that, and so on? One row for each causal link that holds at a coordinate and begins at most :depth links away from the thing, in
-- the order of (valid_from, when it was recorded, id). things.sql says how what is reached stands.
--
-- Parameters: :id, the id of the thing; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :depth, 1 or more (from 64 on there is no limit); :kinds, a
-- JSON array of the causal kinds of link; :undone, a JSON array of the transactions that are taken back as known at :tx ('[]' where table undone is empty).
-- Columns: those of links_from.sql; source: the effect; target: its cause; the standings are NULL; respects_time: 0 where the cause began after its effect, as
-- far as is believed at :tx, and after the link: such a link leads nowhere.
WITH RECURSIVE
reached (number, steps) AS (
  SELECT number, 0 FROM entity WHERE id = :id AND tx_from <= :tx
  UNION
  SELECT l.source, reached.steps + (:depth < 64)
  FROM reached
  CROSS JOIN link l ON l.target = reached.number
  CROSS JOIN link_period p
    ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  WHERE reached.steps < :depth AND l.kind IN (SELECT value FROM json_each(:kinds))
),
near (number) AS (SELECT DISTINCT number FROM reached)
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum,
  coalesce(
    (  -- an effect begins no earlier than its cause
      SELECT e.valid_from FROM period e WHERE e.entity = l.source AND e.tx_from <= :tx AND e.tx_to > :tx ORDER BY e.valid_from LIMIT 1
    ) >= (
      SELECT e.valid_from FROM period e WHERE e.entity = l.target AND e.tx_from <= :tx AND e.tx_to > :tx ORDER BY e.valid_from LIMIT 1
    )
    OR (  -- or it became an effect later: when the link begins, and, of an event, when it happened again
      (
        SELECT e.valid_from FROM period e WHERE e.entity = l.target AND e.tx_from <= :tx AND e.tx_to > :tx ORDER BY e.valid_from LIMIT 1
      ) <= p.valid_from
      AND (
        NOT source.is_event
        OR p.valid_from <= (SELECT e.valid_from FROM period e WHERE e.entity = l.source AND e.tx_to > e.tx_from ORDER BY e.number LIMIT 1)
        OR EXISTS (
          SELECT 1 FROM occurrence h
          WHERE h.event = l.source AND h.tx <= :tx AND h.occurred_at >= p.valid_from AND h.tx NOT IN (SELECT value FROM json_each(:undone))
        )
      )
    ),
    1
  ) AS respects_time
FROM near
CROSS JOIN link l ON l.target = near.number
CROSS JOIN link_period p
  ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
WHERE l.kind IN (SELECT value FROM json_each(:kinds))
ORDER BY
  p.valid_from,
  (  -- what an undo opened again was recorded when it was opened first
    SELECT CASE WHEN u.verb = 'undo' THEN (
      SELECT min(f.tx_from) FROM link_period f
      WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
    ) ELSE p.tx_from END
    FROM operation u WHERE u.number = p.opened_by
  ),
  l.id;
