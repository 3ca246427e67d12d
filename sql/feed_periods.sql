-- Which periods have some things, or links? One row for each, in the order of :ids, those of one in the order in which they were recorded.
--
-- Parameters: :ids, a JSON array of ids; :links, 1: of links, 0: of nodes and events; :stop, the number of the first period that is not wanted.
-- Columns: number.
WITH
found (place, number) AS (
  SELECT j.key, p.number
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value
  CROSS JOIN period p ON p.entity = e.number
  WHERE NOT :links AND p.number < :stop
  UNION ALL
  SELECT j.key, p.number
  FROM json_each(:ids) j
  CROSS JOIN link l ON l.id = j.value
  CROSS JOIN link_period p ON p.link = l.number
  WHERE :links AND p.number < :stop
)
SELECT number FROM found ORDER BY place, number;
