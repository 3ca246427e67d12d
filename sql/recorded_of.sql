-- Who recorded the versions of a thing, on every line? One row for each version, in no order.
--
-- Parameters: :id, of the thing.
-- Columns: author, of the operation that recorded the version first; data, the body of the version, and its checksum.
SELECT o.author, b.data, b.checksum
FROM all_entity e
CROSS JOIN all_version v ON v.entity = e.number
CROSS JOIN body b ON b.number = v.body
LEFT JOIN all_operation o ON o.number = v.operation
WHERE e.id = :id;
