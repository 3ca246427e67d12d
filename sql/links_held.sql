-- Which links hold at a coordinate? One row for each, in the order in which the links were made.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of links_from.sql, every link as it is stored; the standings are NULL: see things.sql.
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM link_period p
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
ORDER BY p.link;
