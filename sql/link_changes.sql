-- Which operations opened and closed the periods of a link? One row for each period recorded by :tx, in the order of link_periods.sql.
--
-- Parameters: :id, the id of the link; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: claim, the number of what was said; said_by, the operation that recorded that claim first; opened_by and closed_by (NULL: believed at :tx), the
-- operations that opened and closed the period. Operations are numbers: see operation.sql.
SELECT k.claim, c.operation AS said_by, k.opened_by, CASE WHEN k.tx_to <= :tx THEN k.closed_by END AS closed_by
FROM link l
CROSS JOIN link_period k ON k.link = l.number AND k.tx_from <= :tx
CROSS JOIN claim c ON c.number = k.claim
WHERE l.id = :id
ORDER BY k.tx_from, k.valid_from, k.number;
