-- Which periods of nodes meet a span of valid time and one of tx, and what do they say? One row for each, in the order in which they were recorded.
--
-- Parameters: :tx, what was recorded later is not known; :valid_from and :valid_to, :tx_from and :tx_to, the spans, all in microseconds since 1970-01-01 UTC; :kind, a text
-- or NULL: of any.
-- Columns: id; kind; key; scope; number, of the version; author, told, verb and operation: who recorded that version first, when, how, and in which operation (told: when the
-- period was recorded, where that is not known); valid_from and valid_to; tx_from and tx_to (253402300799999999: open); word: evicted or erased, else empty; data, what it says,
-- and its checksum (-1: it is missing).
SELECT
  e.id, e.kind, e.key, e.scope, v.ordinal AS number, o.author, coalesce(o.recorded, o.tx, p.tx_from) AS told, o.verb, v.operation,
  p.valid_from, p.valid_to, p.tx_from, CASE WHEN p.tx_to > :tx THEN 253402300799999999 ELSE p.tx_to END AS tx_to, coalesce(f.word, '') AS word, b.data, coalesce(b.checksum, -1) AS checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event AND (:kind IS NULL OR e.kind = :kind)
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
LEFT JOIN operation o ON o.number = v.operation
LEFT JOIN forgotten f ON f.entity = p.entity
WHERE p.valid_from < :valid_to AND p.valid_to > :valid_from AND p.tx_from <= :tx AND p.tx_from < :tx_to AND p.tx_from < p.tx_to
  AND (p.tx_to > :tx_from OR p.tx_to > :tx)
ORDER BY p.number;
