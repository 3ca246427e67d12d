-- What holds at a coordinate? One row for each node and event, in the order in which its period was recorded.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: entity, its number; is_event; id; kind; key; scope; number, of its version, {id}-v{number}; valid_from and valid_to (253402300799999999: open); tx_from;
-- author and told, who recorded that version first, and when; size, the bytes of its content; data, its content as JSON (NULL of an event), and its CRC-32
-- (-1: it is missing).
SELECT
  e.number AS entity, e.is_event, e.id, e.kind, e.key, e.scope, v.ordinal AS number, p.valid_from, p.valid_to, p.tx_from,
  o.author, coalesce(o.tx, p.tx_from) AS told, coalesce(length(b.data), 0) AS size,
  CASE WHEN NOT e.is_event THEN b.data END AS data, coalesce(b.checksum, -1) AS checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY p.number;
