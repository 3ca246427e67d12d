-- Which operations were recorded by an instant? One row, or none.
--
-- Parameters: :tx.
-- Columns: number, of the last one.
SELECT number FROM operation WHERE tx <= :tx ORDER BY tx DESC, number DESC LIMIT 1;
