-- Which nodes and events of some ids are in a scope or below? One row for each.
--
-- Parameters: :ids, a JSON array; :scope, a path.
-- Columns: number; id.
SELECT e.number, e.id
FROM json_each(:ids) j
CROSS JOIN entity e ON e.id = j.value
WHERE CASE WHEN e.is_event THEN (SELECT s.scope FROM all_event_scope s WHERE s.entity = e.number) ELSE e.scope END || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111);
