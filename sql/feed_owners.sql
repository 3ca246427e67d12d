-- What are some periods of? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of the periods.
-- Columns: id.
SELECT e.id
FROM json_each(:numbers) j
CROSS JOIN period p ON p.number = j.value
CROSS JOIN entity e ON e.number = p.entity
ORDER BY j.key;
