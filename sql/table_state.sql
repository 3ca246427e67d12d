-- Where does a ledger end, for the graph tables of its whole history? One row.
--
-- Columns: entities, periods, link_periods, operations and occurrences: the place of the next row of each; line and digest, of the last row of the chain (NULL: there is
-- none); last, the tx of the last operation (NULL: there is none); forgetting, what is another JSON array as soon as rows were removed from the chain, or an entity was
-- evicted or erased.
SELECT
  (SELECT entity & 1099511627775 FROM next_number) AS entities,
  (SELECT period & 1099511627775 FROM next_number) AS periods,
  (SELECT link_period & 1099511627775 FROM next_number) AS link_periods,
  (SELECT operation & 1099511627775 FROM next_number) AS operations,
  (SELECT occurrence & 1099511627775 FROM next_number) AS occurrences,
  (SELECT max(c.number) FROM chain c) AS line,
  (SELECT c.digest FROM chain c ORDER BY c.number DESC LIMIT 1) AS digest,
  (SELECT o.tx FROM operation o ORDER BY o.number DESC LIMIT 1) AS last,
  json_array(
    (SELECT y.value FROM property y WHERE y.name = 'rewritten'), (SELECT count(*) FROM forgotten), (SELECT max(f.operation) FROM forgotten f)
  ) AS forgetting;
