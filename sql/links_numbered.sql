-- What does each of some periods of links say, which hold at :tx? One row for each, in their order.
--
-- Parameters: :numbers, a JSON array of the numbers of the periods.
-- Columns: those of links_from.sql, as the link is stored; the standings are NULL: things.sql says how both ends stand.
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.created_by, o.author, o.tx AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
ORDER BY j.key;
