-- Which thing has exactly this id? One row, or none.
--
-- Parameters: :id.
-- Columns: number.
SELECT number FROM entity WHERE id = :id;
