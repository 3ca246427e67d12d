-- When were events believed, and what do they say? One row for each period, in the order in which it was recorded.
--
-- Parameters: :first, the number of the first period; :stop, that of the first one after them.
-- Columns: row, the place of the period on its line, as text; id; type; occurred_at; tx_from; opened_by, the place of an operation, as text;
-- word: evicted or erased, else empty; data, what it says, and place, what the operation of that word has kept, and the checksums of these: checksum (-1: it is missing) and place_checksum (NULL: none was kept).
SELECT
  CAST(p.number & 1099511627775 AS TEXT) AS row, e.id, e.kind AS type, p.valid_from AS occurred_at, p.tx_from,
  CAST(p.opened_by & 1099511627775 AS TEXT) AS opened_by, coalesce(f.word, '') AS word, b.data, coalesce(b.checksum, -1) AS checksum,
  kept.data AS place, kept.checksum AS place_checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity AND e.is_event
CROSS JOIN version v ON v.number = (SELECT min(each.number) FROM version each WHERE each.entity = e.number)
LEFT JOIN body b ON b.number = v.body
LEFT JOIN forgotten f ON f.entity = e.number
LEFT JOIN operation o ON o.number = f.operation
LEFT JOIN body kept ON kept.number = o.body
WHERE p.number >= :first AND p.number < :stop
ORDER BY p.number;
