-- Which operations described some things first in each version? One row for each version, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: number, of the version; entity; operation, -1 where it is not known; body, the number of its content.
SELECT v.number, v.entity, coalesce(v.operation, -1) AS operation, v.body
FROM json_each(:numbers) j
CROSS JOIN version v ON v.entity = j.value
ORDER BY v.number;
