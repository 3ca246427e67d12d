-- Which vectors of a model were added after a row? One row for each, in order, at most 1,000.
--
-- Parameters: :model, its name; :after, the number of a row of `vector`.
-- Columns: number; id, of the thing; text, the hash of what it says; data, the vector.
SELECT number, id, text, data FROM vector WHERE number > :after AND model = :model ORDER BY number LIMIT 1000;
