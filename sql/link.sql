-- Which link has exactly this id, whenever it was made? One row, or none.
--
-- Parameters: :id.
-- Columns: id.
SELECT id FROM link WHERE id = :id;
