-- What are some entities? One row for each, in the order of their numbers.
--
-- Parameters: :first, the number of the first one; :stop, that of the first one after them.
-- Columns: number; id; is_event.
SELECT e.number, e.id, e.is_event FROM entity e WHERE e.number >= :first AND e.number < :stop ORDER BY e.number;
