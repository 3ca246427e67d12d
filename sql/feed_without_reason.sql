-- Which operations have no reason, or none any more? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of operations.
-- Columns: number.
SELECT o.number
FROM json_each(:numbers) j
CROSS JOIN operation o ON o.number = j.value
LEFT JOIN body b ON b.number = o.body
WHERE b.data IS NULL
ORDER BY j.key;
