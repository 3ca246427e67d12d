-- Which operation from one number on, before another, rechecked anything first? One row, or none.
--
-- Parameters: :first and :stop, numbers of operations.
-- Columns: number.
SELECT o.number
FROM operation o
WHERE o.number >= :first AND o.number < :stop AND o.verb IN ('confirm', 'revise', 'amend')
ORDER BY o.number
LIMIT 1;
