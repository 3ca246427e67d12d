-- What is recorded of links? One row for each set of attributes of a link, in the order in which they were recorded.
--
-- Parameters: :after, a number of a claim (below 0: from the first on). At most 20,000 rows.
-- Columns: number, of the claim; id, of the link; source, kind, target; created_by; data, its reason and metadata as JSON, and their CRC-32 (-1: there are none).
SELECT
  c.number, l.id, s.id AS source, l.kind, t.id AS target, c.created_by, b.data, coalesce(b.checksum, -1) AS checksum
FROM claim c
CROSS JOIN link l ON l.number = c.link
CROSS JOIN entity s ON s.number = l.source
CROSS JOIN entity t ON t.number = l.target
LEFT JOIN body b ON b.number = c.body
WHERE c.number > :after
ORDER BY c.number
LIMIT 20000;
