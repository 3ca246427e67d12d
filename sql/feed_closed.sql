-- Which periods of nodes and events, or with :links of links, did some transactions close? One row for each, by its number.
--
-- Parameters: :links, 1 or 0; :since and :until, the instants of the first and of the last transaction.
-- Columns: number, of the period; is_event, whether it is of an event; tx_to; closed_by, an operation.
SELECT p.number, e.is_event, p.tx_to, p.closed_by
FROM period p
CROSS JOIN entity e ON e.number = p.entity
WHERE NOT :links AND p.closed_by IS NOT NULL AND p.tx_to >= :since AND p.tx_to <= :until
UNION ALL
SELECT p.number, 0, p.tx_to, p.closed_by
FROM link_period p
WHERE :links AND p.closed_by IS NOT NULL AND p.tx_to >= :since AND p.tx_to <= :until
ORDER BY number;
