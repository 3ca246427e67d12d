-- What is the number of the next entity, and was anything removed or forgotten? One row.
--
-- Columns: rewritten, how often rows were removed from the chain; forgotten, how many entities were evicted or erased; entities, the number of the next entity.
SELECT
  (SELECT value FROM property WHERE name = 'rewritten') AS rewritten,
  (SELECT count(*) FROM forgotten) AS forgotten,
  (SELECT entity FROM next_number) AS entities;
