-- Which `contradicts` links hold at a coordinate? One row for each, in the order of (valid_from, when it was recorded, id), the last first.
--
-- Parameters: :of, the id of a thing or NULL: those at either end of it alone; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql, as the link is stored; the standings are NULL: things.sql says how both ends stand.
WITH
found (number) AS (
  SELECT l.number FROM link l WHERE :of IS NULL AND l.kind = 'contradicts'
  UNION ALL
  SELECT l.number FROM entity e CROSS JOIN link l ON l.source = e.number AND l.kind = 'contradicts' WHERE e.id = :of
  UNION ALL
  SELECT l.number FROM entity e CROSS JOIN link l ON l.target = e.number AND l.kind = 'contradicts' WHERE e.id = :of
)
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.created_by, o.author, o.tx AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM found
CROSS JOIN link l ON l.number = found.number
CROSS JOIN link_period p
  ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
ORDER BY
  p.valid_from DESC,
  (  -- what an undo opened again was recorded when it was opened first
    SELECT CASE WHEN u.verb = 'undo' THEN (
      SELECT min(f.tx_from) FROM link_period f
      WHERE f.link = p.link AND f.claim = p.claim AND f.valid_from = p.valid_from AND f.valid_to = p.valid_to
    ) ELSE p.tx_from END
    FROM operation u WHERE u.number = p.opened_by
  ) DESC,
  l.id DESC;
