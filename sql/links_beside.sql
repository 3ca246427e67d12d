-- Which links begin or end with some things? One row for each link, in the order in which the links were made.
--
-- Parameters: :numbers, a JSON array of the numbers of entities.
-- Columns: number; id; kind; source; target.
SELECT l.number AS number, l.id, l.kind, l.source, l.target
FROM json_each(:numbers) j
CROSS JOIN link l ON l.source = j.value
UNION
SELECT l.number, l.id, l.kind, l.source, l.target
FROM json_each(:numbers) j
CROSS JOIN link l ON l.target = j.value
ORDER BY number;
