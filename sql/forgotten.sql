-- What was forgotten? One row for each entity.
--
-- Columns: number, of the entity; operation.
SELECT entity AS number, operation FROM forgotten;
