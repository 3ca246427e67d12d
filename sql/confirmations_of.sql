-- Which operations confirmed some things, whenever that was? One row for each, oldest first.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: id, of what was confirmed; operation.
SELECT e.id, o.number AS operation
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value
CROSS JOIN operation o ON o.subject = e.id AND o.verb = 'confirm'
ORDER BY o.number;
