-- Which counts of lookups were written from one operation on? One row for each time, in order.
--
-- Parameters: :first, the number of an operation.
-- Columns: number, of the operation; tx; data, its body (JSON: the counts by id), and its CRC-32 (-1: it is missing).
SELECT o.number, o.tx, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM operation o
LEFT JOIN body b ON b.number = o.body
WHERE o.subject = '' AND o.number >= :first AND o.verb = 'touch'
ORDER BY o.number;
