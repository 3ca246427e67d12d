-- What is believed of a node over all valid time, as known at :tx? One row for each period, in the order of valid_from.
--
-- Parameters: :id; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: those of node.sql without standing; forgotten: evicted or erased, then data is NULL.
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to,
  o.author, coalesce(o.recorded, o.tx, e.tx_from) AS recorded_at,
  (SELECT f.word FROM forgotten f WHERE f.entity = e.number) AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum
FROM entity e
CROSS JOIN period p ON p.entity = e.number AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE e.number = (SELECT number FROM entity WHERE id = :id)
ORDER BY p.valid_from;
