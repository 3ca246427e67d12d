-- Which transactions closed periods of nodes and events, or with :links of links, and how many? One row for each, in order.
--
-- Parameters: :links, 1 or 0.
-- Columns: tx; closed, how many.
SELECT p.tx_to AS tx, count(*) AS closed FROM period p WHERE NOT :links AND p.closed_by IS NOT NULL GROUP BY p.tx_to
UNION ALL
SELECT p.tx_to, count(*) FROM link_period p WHERE :links AND p.closed_by IS NOT NULL GROUP BY p.tx_to
ORDER BY tx;
