-- What was a setting of the store, as known at :tx? One row, or none where it was never set.
--
-- Parameters: :name, the name of the setting; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: value, as JSON.
SELECT value FROM setting WHERE name = :name AND tx <= :tx ORDER BY number DESC LIMIT 1;
