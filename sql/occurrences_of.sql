-- When did an event happen again, whenever that was recorded? One row for each time, in the order in which they were recorded.
--
-- Parameters: :entity, the number of the event.
-- Columns: number; occurred_at; tx; operation; first and last, the earliest and the latest of them up to this one.
SELECT h.number, h.occurred_at, h.tx, h.operation, h.first, h.last
FROM occurrence h
WHERE h.event = :entity
ORDER BY h.number;
