-- What changes in a ledger when an answer at a coordinate may be another one? One row.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: last, the last transaction by :tx (NULL: there is none); known, how many entities are known; rewritten, how often rows were removed from the chain; forgotten, how many entities were evicted or
-- erased; forgotten_by, the last operation that did so (NULL: there is none).
SELECT
  (SELECT o.tx FROM operation o WHERE o.tx <= :tx ORDER BY o.tx DESC LIMIT 1) AS last,
  coalesce((SELECT (e.number & 1099511627775) + 1 FROM entity e WHERE e.number < (SELECT entity FROM next_number) AND e.tx_from <= :tx ORDER BY e.number DESC LIMIT 1), 0) AS known,
  (SELECT y.value FROM property y WHERE y.name = 'rewritten') AS rewritten,
  (SELECT count(*) FROM forgotten) AS forgotten,
  (SELECT max(f.operation) FROM forgotten f) AS forgotten_by;
