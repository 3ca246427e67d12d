-- What had a ledger recorded by an instant? One row.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: entities, rows, link_rows, ops and seen: how many entities, periods, periods of links, operations and occurrences there were; closings and link_closings: how many
-- periods of each had been closed; first and last, the tx of the first and of the last operation by then (NULL: there is none).
SELECT
  (SELECT count(*) FROM entity e WHERE e.tx_from <= :tx) AS entities,
  (SELECT count(*) FROM period p WHERE p.tx_from <= :tx) AS rows,
  (SELECT count(*) FROM link_period p WHERE p.tx_from <= :tx) AS link_rows,
  (SELECT count(*) FROM done o WHERE o.tx <= :tx) AS ops,
  (SELECT count(*) FROM occurrence s WHERE s.tx <= :tx) AS seen,
  (SELECT count(*) FROM period p WHERE p.closed_by IS NOT NULL AND p.tx_to <= :tx) AS closings,
  (SELECT count(*) FROM link_period p WHERE p.closed_by IS NOT NULL AND p.tx_to <= :tx) AS link_closings,
  (SELECT o.tx FROM done o ORDER BY o.number LIMIT 1) AS first,
  (SELECT o.tx FROM done o WHERE o.tx <= :tx ORDER BY o.tx DESC LIMIT 1) AS last;
