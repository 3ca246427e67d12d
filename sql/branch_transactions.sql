-- Which transactions does a branch have, counted with those that it began with, and when was the last one? One row. Forgetting on the trunk is none of its own.
--
-- Columns: transactions; last_tx, the last transaction or forgetting, in microseconds since 1970-01-01 UTC (NULL: it has none).
SELECT
  count(DISTINCT o.tx) FILTER (WHERE o.number < 1099511627776 OR o.subject = '' OR o.verb NOT IN ('evict', 'erase')) AS transactions,
  max(o.tx) AS last_tx
FROM operation o;
