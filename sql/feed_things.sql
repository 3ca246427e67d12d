-- What do some ids name, whenever that was recorded? One row for each node or event, in the order of :ids.
--
-- Parameters: :ids, a JSON array of ids.
-- Columns: number; id; is_event.
SELECT e.number, e.id, e.is_event
FROM json_each(:ids) j
CROSS JOIN entity e ON e.id = j.value
ORDER BY j.key;
