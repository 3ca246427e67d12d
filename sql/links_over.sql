-- What do some links say over one of their periods? One row for each period, in the order of :periods.
--
-- Parameters: :periods, a JSON array of the numbers of the periods.
-- Columns: those of links_from.sql, every link as it is stored; the standings are NULL: see things.sql.
SELECT
  l.id, l.kind, source.id AS source, target.id AS target, NULL AS source_standing, NULL AS target_standing,
  c.strength, c.is_inferred, c.is_history, c.created_by, o.author, coalesce(o.recorded, o.tx) AS recorded_at,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to, b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:periods) n
CROSS JOIN link_period p ON p.number = n.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
CROSS JOIN operation o ON o.number = c.operation
LEFT JOIN body b ON b.number = c.body
ORDER BY n.key;
