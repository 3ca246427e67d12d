-- What do the contents and the reasons of links take that some scopes hold? One row. Asked of what is inside alone, by `graphstore/ledger/scoped_rows.py`.
--
-- Columns: bytes.
SELECT
  (SELECT coalesce(sum(length(b.data)), 0) FROM version v CROSS JOIN body b ON b.number = v.body)
  + (SELECT coalesce(sum(length(b.data)), 0) FROM claim c CROSS JOIN body b ON b.number = c.body) AS bytes;
