-- Which versions have a tag? One row for each, in the order in which they were recorded.
--
-- Parameters: :tag, as topics are compared.
-- Columns: number; entity.
SELECT t.version AS number, v.entity
FROM tag t
CROSS JOIN version v ON v.number = t.version
WHERE t.tag = :tag
ORDER BY t.version;
