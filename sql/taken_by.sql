-- Who took away last what was believed of some things at a valid time, and why? One row for each of which something was, in no order.
--
-- Parameters: :ids, a JSON array; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of said_by.sql.
SELECT e.id, o.author, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM json_each(:ids) j
CROSS JOIN entity e ON e.id = j.value
CROSS JOIN operation o ON o.number = (
  SELECT p.closed_by FROM period p
  WHERE p.entity = e.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_to <= :tx
  ORDER BY p.tx_to DESC, p.number DESC LIMIT 1
)
LEFT JOIN body b ON b.number = o.body;
