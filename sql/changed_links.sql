-- Which periods of links were opened or closed after one instant, and by another? One row for each, in the order in which they were recorded.
--
-- Parameters: :since and :until, in microseconds since 1970-01-01 UTC.
-- Columns: owner, the number of the link; said, that of its claim; valid_from and valid_to; tx_from and tx_to; opened_by and closed_by, operations; id; kind; source and
-- target, ids.
SELECT
  p.link AS owner, p.claim AS said, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by, l.id, l.kind, source.id AS source, target.id AS target
FROM link_period p
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
WHERE (p.tx_from > :since AND p.tx_from <= :until OR p.tx_to > :since AND p.tx_to <= :until) AND p.tx_from < p.tx_to
ORDER BY p.number;
