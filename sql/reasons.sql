-- Why was something done? One row for each operation of these numbers, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the operations.
-- Columns: number; data, the JSON that has its reason, NULL where none was given, and its CRC-32 (-1: it is missing).
SELECT o.number, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:numbers) j
CROSS JOIN operation o ON o.number = j.value
LEFT JOIN body b ON b.number = o.body;
