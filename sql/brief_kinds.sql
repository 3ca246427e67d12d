-- Which kinds of nodes and types of events are there? One row for each, in order.
--
-- Parameters: :most, how many rows at most.
-- Columns: kind.
WITH RECURSIVE
found (kind) AS (
  SELECT (SELECT e.kind FROM entity e WHERE e.kind > '' ORDER BY e.kind LIMIT 1)
  UNION ALL
  SELECT (SELECT e.kind FROM entity e WHERE e.kind > found.kind ORDER BY e.kind LIMIT 1) FROM found WHERE found.kind IS NOT NULL
  LIMIT coalesce(:most, -1)
)
SELECT kind FROM found WHERE kind IS NOT NULL;
