-- What do those entities say that are events, and are they believed? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of entities.
-- Columns: id; type; occurred_at, as recorded first (of one that held at no instant, when it was recorded); tx_from; tx_to (253402300799999999: open); opened_by and
-- closed_by, the places of operations (NULL: none); word: evicted or erased, else empty; data, what it says, and place, what the operation of that word has kept; the numbers and
-- checksums of these: body and checksum (-1: it is missing), place_body and place_checksum.
SELECT
  e.id, e.kind AS type, coalesce(first.valid_from, e.tx_from) AS occurred_at, e.tx_from,
  CASE WHEN last.number IS NULL THEN e.tx_from WHEN last.closed_by IS NULL THEN 253402300799999999 ELSE last.tx_to END AS tx_to,
  CAST(first.opened_by & 1099511627775 AS TEXT) AS opened_by, CAST(last.closed_by & 1099511627775 AS TEXT) AS closed_by, coalesce(f.word, '') AS word, b.data, kept.data AS place,
  v.body, coalesce(b.checksum, -1) AS checksum, o.body AS place_body, coalesce(kept.checksum, -1) AS place_checksum
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value AND e.is_event
CROSS JOIN version v ON v.number = (SELECT min(each.number) FROM version each WHERE each.entity = e.number)
LEFT JOIN body b ON b.number = v.body
LEFT JOIN period first ON first.number = (SELECT min(each.number) FROM period each WHERE each.entity = e.number)
LEFT JOIN period last ON last.number = (SELECT max(each.number) FROM period each WHERE each.entity = e.number)
LEFT JOIN forgotten f ON f.entity = e.number
LEFT JOIN operation o ON o.number = f.operation
LEFT JOIN body kept ON kept.number = o.body
ORDER BY j.key;
