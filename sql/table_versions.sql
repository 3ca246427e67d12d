-- When were versions of nodes believed, and what do they say? One row for each period, in the order in which it was recorded.
--
-- Parameters: :first, the number of the first period; :stop, that of the first one after them.
-- Columns: number, of the period; node_id; ordinal, of the version; author, told and told_by, who recorded that version first, when, and in which operation; valid_from and
-- valid_to, tx_from and tx_to (253402300799999999: open); opened_by and closed_by, operations; word: evicted or erased, else empty; data, what it says, with the
-- number of that body and its checksum (-1: it is missing).
SELECT
  p.number, e.id AS node_id, v.ordinal, o.author, coalesce(o.tx, p.tx_from) AS told, v.operation AS told_by, p.valid_from, p.valid_to, p.tx_from, p.tx_to,
  p.opened_by, p.closed_by, coalesce(f.word, '') AS word, b.data, v.body, coalesce(b.checksum, -1) AS checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
LEFT JOIN forgotten f ON f.entity = p.entity
WHERE p.number >= :first AND p.number < :stop
ORDER BY p.number;
