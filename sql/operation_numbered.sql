-- What was done by an operation? One row, or none.
--
-- Parameters: :number.
-- Columns: number; tx; verb; subject; author.
SELECT number, tx, verb, subject, author FROM operation WHERE number = :number;
