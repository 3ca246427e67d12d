-- Which operations confirmed some things, whenever that was? One row for each, oldest first.
--
-- Parameters: :ids, a JSON array of the ids of the things.
-- Columns: id, of what was confirmed; operation.
SELECT e.id, o.number AS operation
FROM json_each(:ids) j
CROSS JOIN entity e ON e.id = j.value
CROSS JOIN operation o ON o.subject = e.id AND o.verb = 'confirm'
ORDER BY o.number;
