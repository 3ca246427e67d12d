-- What do some scopes hold of a ledger, counted? One row. Asked of what is inside alone, by `graphstore/ledger/scoped_rows.py`.
--
-- Columns: those of counts.sql; bytes, of the contents, and of the reasons of links.
SELECT
  (SELECT count(*) FROM entity) AS things,
  (SELECT count(*) FROM entity WHERE is_event) AS events,
  (SELECT count(*) FROM version) AS versions,
  (SELECT count(*) FROM period) AS periods,
  (SELECT count(*) FROM link) AS links,
  (SELECT count(*) FROM link_period) AS link_periods,
  (SELECT count(*) FROM done) AS operations,
  (SELECT count(DISTINCT tx) FROM done) AS transactions,
  (SELECT max(tx) FROM done) AS last_tx,
  (SELECT coalesce(sum(length(b.data)), 0) FROM version v CROSS JOIN body b ON b.number = v.body)
  + (SELECT coalesce(sum(length(b.data)), 0) FROM claim c CROSS JOIN body b ON b.number = c.body) AS bytes;
