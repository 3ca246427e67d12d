-- When did events happen again? One row for each occurrence, in the order in which it was recorded.
--
-- Parameters: :first, the number of the first occurrence; :stop, that of the first one after them.
-- Columns: number; event_id; occurred_at; tx_from; opened_by, an operation.
SELECT s.number, e.id AS event_id, s.occurred_at, s.tx AS tx_from, s.operation AS opened_by
FROM occurrence s
CROSS JOIN entity e ON e.number = s.event
WHERE s.number >= :first AND s.number < :stop
ORDER BY s.number;
