-- What does a ledger have, counted? One row. The rows of each table are numbered from 0 without gaps, and transactions on branches are in the chain alone.
--
-- Columns: things, nodes and events; events; versions, of both; periods; links; link_periods; operations; transactions; last_tx, the last transaction, in
-- microseconds since 1970-01-01 UTC (NULL: there is none).
SELECT
  (SELECT coalesce(max(number) + 1, 0) FROM entity) AS things,
  (SELECT count(*) FROM entity WHERE is_event) AS events,
  (SELECT coalesce(max(number) + 1, 0) FROM version) AS versions,
  (SELECT coalesce(max(number) + 1, 0) FROM period) AS periods,
  (SELECT coalesce(max(number) + 1, 0) FROM link) AS links,
  (SELECT coalesce(max(number) + 1, 0) FROM link_period) AS link_periods,
  (SELECT coalesce(max(number) + 1, 0) FROM operation) AS operations,
  (SELECT count(*) FROM chain WHERE part = 0) AS transactions,
  (SELECT max(tx) FROM chain) AS last_tx;
