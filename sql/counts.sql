-- What does a ledger have, counted? One row. The places of the rows of each table are numbered from 0 without gaps. Transactions on branches count.
--
-- Columns: things, nodes and events; events; versions, of both; periods; links; link_periods; operations; transactions; last_tx, the last transaction, in
-- microseconds since 1970-01-01 UTC (NULL: there is none).
SELECT
  (SELECT entity & 1099511627775 FROM next_number) AS things,
  (SELECT count(*) FROM entity WHERE is_event) AS events,
  (SELECT version & 1099511627775 FROM next_number) AS versions,
  (SELECT period & 1099511627775 FROM next_number) AS periods,
  (SELECT link & 1099511627775 FROM next_number) AS links,
  (SELECT link_period & 1099511627775 FROM next_number) AS link_periods,
  (SELECT operation & 1099511627775 FROM next_number) AS operations,
  (SELECT count(*) FROM chain WHERE part = 0) AS transactions,
  (SELECT max(tx) FROM chain) AS last_tx;
