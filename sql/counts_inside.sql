-- What do some scopes hold of a ledger, counted? One row. Asked of what is inside alone, by `graphstore/ledger/scoped_rows.py`.
--
-- Columns: those of counts.sql.
SELECT
  (SELECT count(*) FROM entity) AS things,
  (SELECT count(*) FROM entity WHERE is_event) AS events,
  (SELECT count(*) FROM version) AS versions,
  (SELECT count(*) FROM period) AS periods,
  (SELECT count(*) FROM link) AS links,
  (SELECT count(*) FROM link_period) AS link_periods,
  (SELECT count(*) FROM done) AS operations,
  (SELECT count(DISTINCT tx) FROM done) AS transactions,
  (SELECT max(tx) FROM done) AS last_tx;
