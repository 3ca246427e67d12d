-- Which links hold at a coordinate, and what do they join? One row with JSON arrays, which have one item for each link, in the order in which its period was recorded.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: numbers, of the periods; kinds; sources and targets, the numbers of the entities.
WITH
held (number, kind, source, target) AS (
  SELECT p.number, l.kind, l.source, l.target
  FROM link_period p
  CROSS JOIN link l ON l.number = p.link
  WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  ORDER BY p.number
)
SELECT
  json_group_array(held.number) AS numbers, json_group_array(held.kind) AS kinds, json_group_array(held.source) AS sources,
  json_group_array(held.target) AS targets
FROM held;
