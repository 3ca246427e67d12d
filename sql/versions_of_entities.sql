-- Which versions have some things? One row for each, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the things.
-- Columns: those of versions_numbered.sql.
SELECT v.number, v.entity, v.ordinal, v.body, coalesce(length(b.data), 0) AS length, coalesce(v.operation, -1) AS operation
FROM json_each(:numbers) j
CROSS JOIN version v ON v.entity = j.value
LEFT JOIN body b ON b.number = v.body
ORDER BY v.number;
