-- What did the nodes that are joined into others say at a coordinate, before they were joined? One row for each version.
--
-- Parameters: :links, a JSON array of the numbers of the links joined_from; :valid and :tx, the coordinate.
-- Columns: version, its number; entity, the number of the node that it is of now.
WITH RECURSIVE
way (old, entity, joined_at) AS (
  SELECT l.target, l.source, p.tx_from
  FROM json_each(:links) j
  CROSS JOIN link l ON l.number = j.value
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
  UNION
  SELECT way.old, l.source, way.joined_at
  FROM way
  CROSS JOIN link l ON l.target = way.entity AND l.kind = 'joined_from'
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
)
SELECT p.version, way.entity
FROM way
CROSS JOIN period p ON p.entity = way.old
  AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from < way.joined_at AND p.tx_to >= way.joined_at
WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = way.old)
ORDER BY p.version, way.entity;
