-- What are all things called? One row for each, in the order in which they were first known.
--
-- Columns: number; id; key.
SELECT number, id, key FROM entity ORDER BY number;
