-- What do some nodes say at a coordinate? One row for each that stands there, in the order of (valid_from, tx_from, when the period was recorded), the last first.
--
-- Parameters: :ids, a JSON array of the ids of the nodes; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of node.sql without standing.
SELECT
  e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from AS known_since, v.ordinal AS number,
  p.valid_from, nullif(p.valid_to, 253402300799999999) AS valid_to, p.tx_from, NULL AS tx_to,
  o.author, coalesce(o.tx, e.tx_from) AS recorded_at, NULL AS forgotten, b.data, coalesce(b.checksum, -1) AS checksum
FROM json_each(:ids) j
CROSS JOIN entity e ON e.id = j.value
CROSS JOIN period p ON p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
WHERE NOT e.is_event AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
ORDER BY p.valid_from DESC, p.tx_from DESC, p.number DESC;
