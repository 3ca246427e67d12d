-- What of a ledger is there to be searched, and how far does it go? One row.
--
-- Columns: line, the number of the last row of the chain (0: none); last_tx, its instant; rewritten, how often rows were removed from the chain; identity,
-- how the words were made (NULL: there are none); languages, those that are set as JSON (NULL: never set); how many rows there are of entity, version,
-- period, link_period and operation; sealed, how many versions of the trunk are in segments.
SELECT
  coalesce((SELECT number FROM chain ORDER BY number DESC LIMIT 1), 0) AS line,
  coalesce((SELECT tx FROM chain ORDER BY number DESC LIMIT 1), 0) AS last_tx,
  (SELECT value FROM property WHERE name = 'rewritten') AS rewritten,
  (SELECT identity FROM analyzer) AS identity,
  (SELECT value FROM setting WHERE name = 'languages' ORDER BY number DESC LIMIT 1) AS languages,
  (SELECT entity & 1099511627775 FROM next_number) AS entities,
  (SELECT version & 1099511627775 FROM next_number) AS versions,
  (SELECT period & 1099511627775 FROM next_number) AS periods,
  (SELECT link_period & 1099511627775 FROM next_number) AS link_periods,
  (SELECT operation & 1099511627775 FROM next_number) AS operations,
  coalesce((SELECT last + 1 FROM segment ORDER BY first DESC LIMIT 1), 0) AS sealed;
