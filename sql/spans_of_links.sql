-- Which periods of links meet a span of valid time and one of tx, and what do they say? One row for each, in the order in which they were recorded.
--
-- Parameters: as of spans_of_nodes.sql: :tx, :valid_from, :valid_to, :tx_from, :tx_to, :kind.
-- Columns: id; source and target, ids; kind; strength (NULL: none); confidence; created_by; author, told, verb and operation, as in spans_of_nodes.sql; valid_from and valid_to;
-- tx_from and tx_to; data, its reason and metadata, and their checksum (NULL: none were given; -1: they are missing).
SELECT
  l.id, source.id AS source, target.id AS target, l.kind, c.strength, iif(c.is_inferred, 'inferred', 'explicit') AS confidence, c.created_by,
  o.author, coalesce(o.recorded, o.tx, p.tx_from) AS told, o.verb, c.operation, p.valid_from, p.valid_to, p.tx_from, CASE WHEN p.tx_to > :tx THEN 253402300799999999 ELSE p.tx_to END AS tx_to,
  b.data, CASE WHEN c.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM link_period p
CROSS JOIN link l ON l.number = p.link AND (:kind IS NULL OR l.kind = :kind)
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
LEFT JOIN body b ON b.number = c.body
LEFT JOIN operation o ON o.number = c.operation
WHERE p.valid_from < :valid_to AND p.valid_to > :valid_from AND p.tx_from <= :tx AND p.tx_from < :tx_to AND p.tx_from < p.tx_to
  AND (p.tx_to > :tx_from OR p.tx_to > :tx)
ORDER BY p.number;
