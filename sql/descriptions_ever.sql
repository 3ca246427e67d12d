-- What is recorded of everything that is not forgotten? One row for each description of a node or an event, in the order in which they were recorded.
--
-- Parameters: :after, a number of a version (below 0: from the first on). At most 20,000 rows.
-- Columns: number, of the version; id; is_event; kind, of an event its type; key; scope, of an event that of its metadata; author, who recorded it first (NULL: not known);
-- data, the content, and its CRC-32 (-1: it is missing).
SELECT
  v.number, e.id, e.is_event, e.kind, e.key, e.scope, o.author, b.data, coalesce(b.checksum, -1) AS checksum
FROM version v
CROSS JOIN entity e ON e.number = v.entity
LEFT JOIN operation o ON o.number = v.operation
LEFT JOIN body b ON b.number = v.body
WHERE v.number > :after AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity)
ORDER BY v.number
LIMIT 20000;
