-- Which versions has a thing? One row for each, in the order in which they were recorded.
--
-- Parameters: :entity, its number.
-- Columns: those of versions_numbered.sql.
SELECT v.number, v.entity, v.ordinal, v.body, coalesce(length(b.data), 0) AS length, coalesce(v.operation, -1) AS operation
FROM version v
LEFT JOIN body b ON b.number = v.body
WHERE v.entity = :entity
ORDER BY v.number;
