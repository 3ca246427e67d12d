-- What holds at some instant of a span, as believed at some tx of another? One row for each period of a node or event, in the order in which it was recorded.
--
-- Parameters: :valid_from and :valid_to, the span of valid time, :tx_from and :tx_to, that of tx, in microseconds since 1970-01-01 UTC, each with its end not included.
-- Columns: period, its place on its line (on the trunk its number); entity, its number; is_event; id; kind; key; scope; number, of its version, {id}-v{number}; valid_from, valid_to, tx_from and tx_to
-- (253402300799999999: open); author and told, who recorded that version first, and when; size, the bytes of its content; data, its content as JSON (NULL of an event),
-- and its CRC-32 (-1: it is missing).
SELECT
  p.number & 1099511627775 AS period, e.number AS entity, e.is_event, e.id, e.kind, e.key, e.scope, v.ordinal AS number, p.valid_from, p.valid_to, p.tx_from, p.tx_to,
  o.author, coalesce(o.recorded, o.tx, p.tx_from) AS told, coalesce(length(b.data), 0) AS size,
  CASE WHEN NOT e.is_event THEN b.data END AS data, coalesce(b.checksum, -1) AS checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE p.valid_from < :valid_to AND p.valid_to > :valid_from AND p.tx_from < :tx_to AND p.tx_to > :tx_from
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY p.number;
