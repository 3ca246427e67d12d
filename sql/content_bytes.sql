-- What do the contents of an entity take? One row.
--
-- Parameters: :number, of the entity.
-- Columns: bytes.
SELECT coalesce(sum(length(b.data)), 0) AS bytes
FROM version v
CROSS JOIN body b ON b.number = v.body
WHERE v.entity = :number;
