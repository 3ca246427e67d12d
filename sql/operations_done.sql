-- What was done by some operations, by whom and why? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the operations.
-- Columns: number; verb; author; data, the JSON that has the reason (NULL: none was given, or it was removed), and its CRC-32 (NULL: none was given; -1: it is missing).
SELECT o.number, o.verb, o.author, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:numbers) j
CROSS JOIN operation o ON o.number = j.value
LEFT JOIN body b ON b.number = o.body;
