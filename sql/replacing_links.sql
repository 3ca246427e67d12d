-- Which links ever superseded or corrected some things? One row for each link, in the order in which the links were made.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: those of resting_links.sql; base, the entity that was superseded or corrected.
SELECT l.number, l.kind, l.source, l.target, l.target AS base
FROM json_each(:numbers) j
CROSS JOIN link l ON l.target = j.value AND l.kind IN ('supersedes', 'corrects')
ORDER BY l.number;
