-- Which periods of nodes and events were opened or closed after one instant, and by another? One row for each, in the order in which they were recorded.
--
-- Parameters: :since and :until, in microseconds since 1970-01-01 UTC.
-- Columns: owner, the number of the node or event; said, that of its version; valid_from and valid_to; tx_from and tx_to; opened_by and closed_by, operations; id; kind;
-- is_event; ordinal, of the version; data, of a node what it says, and its checksum (-1: it is missing).
SELECT
  p.entity AS owner, p.version AS said, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by, e.id, e.kind, e.is_event, v.ordinal,
  CASE WHEN NOT e.is_event THEN b.data END AS data, coalesce(b.checksum, -1) AS checksum
FROM period p
CROSS JOIN entity e ON e.number = p.entity
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
WHERE (p.tx_from > :since AND p.tx_from <= :until OR p.tx_to > :since AND p.tx_to <= :until) AND p.tx_from < p.tx_to
ORDER BY p.number;
