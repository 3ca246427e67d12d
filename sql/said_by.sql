-- Who recorded some versions first, and why? One row for each of which that is known, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of versions.
-- Columns: id, of the node; author; data, the JSON that has the reason, NULL where none was given, and its CRC-32 (-1: it is missing).
SELECT e.id, o.author, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:numbers) j
CROSS JOIN version v ON v.number = j.value
CROSS JOIN entity e ON e.number = v.entity
CROSS JOIN operation o ON o.number = v.operation
LEFT JOIN body b ON b.number = o.body;
