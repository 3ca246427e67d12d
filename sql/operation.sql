-- Who did one operation, when and why? One row.
--
-- Parameters: :number, the number of the operation.
-- Columns: author; tx, in microseconds since 1970-01-01 UTC; data, the JSON that has its reason, NULL where none was given, and its CRC-32 (-1: it is missing).
SELECT o.author, o.tx, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM operation o
LEFT JOIN body b ON b.number = o.body
WHERE o.number = :number;
