-- Which nodes have a key? One row for each, in the order in which they were first known.
--
-- Parameters: :key.
-- Columns: number.
SELECT number FROM entity WHERE key = :key ORDER BY number;
