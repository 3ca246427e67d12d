-- What was forgotten at an instant or later? One row for each entity.
--
-- Parameters: :tx, the instant, in microseconds since 1970-01-01 UTC.
-- Columns: number, of the entity.
SELECT DISTINCT f.entity AS number
FROM operation o
CROSS JOIN entity e ON e.id = o.subject
CROSS JOIN forgotten f ON f.entity = e.number
WHERE o.tx >= :tx AND o.verb IN ('evict', 'erase');
