-- When were versions of nodes believed, and what do they say? One row for each of those periods that are of nodes, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of periods.
-- Columns: row, the place of the period; node_id; ref and number, of the version; author, told and told_by: who recorded that version first, when, and the place of that operation;
-- valid_from and valid_to, tx_from and tx_to (253402300799999999: open); opened_by and closed_by, the places of operations; word: evicted or erased, else empty; data, what it
-- says, with the number of that body and its checksum (-1: it is missing).
SELECT
  CAST(p.number & 1099511627775 AS TEXT) AS row, e.id AS node_id, e.id || '-v' || v.ordinal AS ref, v.ordinal AS number, o.author, coalesce(o.recorded, o.tx, p.tx_from) AS told,
  CAST(v.operation & 1099511627775 AS TEXT) AS told_by, p.valid_from, p.valid_to, p.tx_from, p.tx_to,
  CAST(p.opened_by & 1099511627775 AS TEXT) AS opened_by, CAST(p.closed_by & 1099511627775 AS TEXT) AS closed_by,
  coalesce(f.word, '') AS word, b.data, v.body, coalesce(b.checksum, -1) AS checksum
FROM json_each(:numbers) j
CROSS JOIN period p ON p.number = j.value
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
LEFT JOIN forgotten f ON f.entity = p.entity
ORDER BY j.key;
