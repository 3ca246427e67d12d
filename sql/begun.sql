-- Which of some things had begun by a valid time, whenever that was recorded? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the things; :valid, in microseconds since 1970-01-01 UTC.
-- Columns: number.
SELECT j.value AS number
FROM json_each(:numbers) j
WHERE EXISTS (SELECT 1 FROM period p WHERE p.entity = j.value AND p.valid_from <= :valid);
