-- Which links begin or end with some things? One row for each link and end, in the order in which the links were made.
--
-- Parameters: :numbers, a JSON array of the numbers of entities.
-- Columns: number; id; kind; source; target; near, that end which was asked for; is_source, 1 where that is the source.
SELECT l.number AS number, l.id, l.kind, l.source, l.target, l.source AS near, 1 AS is_source
FROM json_each(:numbers) j
CROSS JOIN link l ON l.source = j.value
UNION ALL
SELECT l.number, l.id, l.kind, l.source, l.target, l.target, 0
FROM json_each(:numbers) j
CROSS JOIN link l ON l.target = j.value
ORDER BY number;
