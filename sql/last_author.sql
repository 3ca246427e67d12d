-- Who did an operation of some verb last that was not taken back, on the trunk? One row, or none where it was never done.
--
-- Parameters: :verb, of the operation.
-- Columns: author.
SELECT o.author FROM operation o WHERE o.verb = :verb AND NOT EXISTS (SELECT 1 FROM undone u WHERE u.tx = o.tx)
ORDER BY o.number DESC LIMIT 1;
