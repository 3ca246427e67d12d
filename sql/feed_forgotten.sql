-- What did operations forget? One row for each entity, in the order in which it was forgotten.
--
-- Parameters: :first, the number of the first operation; :stop, that of the first one after them.
-- Columns: number, of the entity; id; is_event.
SELECT e.number, e.id, e.is_event
FROM operation o
CROSS JOIN entity e ON e.id = o.subject
CROSS JOIN forgotten f ON f.entity = e.number AND f.operation = o.number
WHERE o.number >= :first AND o.number < :stop
ORDER BY o.number;
