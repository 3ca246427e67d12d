-- Which nodes and events are known? One row for each, in the order in which they were first known.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: number; id.
SELECT e.number, e.id FROM entity e WHERE e.tx_from <= :tx ORDER BY e.number;
