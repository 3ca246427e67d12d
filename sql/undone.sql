-- Which transactions were taken back (`undo`)? One row for each time: the undo may have been taken back itself, in a later row.
--
-- Columns: tx, the transaction; undone_at, the transaction that took it back, in microseconds since 1970-01-01 UTC; operation, which did so.
SELECT u.tx, o.tx AS undone_at, u.operation
FROM undone u
CROSS JOIN operation o ON o.number = u.operation
ORDER BY u.operation;
