-- What was done? One row for each operation, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of operations.
-- Columns: id, its place; tx; verb; subject; author; data, what has its reason, with the number of that body (NULL: none was given) and its checksum (-1: it is missing).
SELECT CAST(o.number & 1099511627775 AS TEXT) AS id, o.tx, o.verb, o.subject, o.author, b.data, o.body, coalesce(b.checksum, -1) AS checksum
FROM json_each(:numbers) j
CROSS JOIN operation o ON o.number = j.value
LEFT JOIN body b ON b.number = o.body
ORDER BY j.key;
