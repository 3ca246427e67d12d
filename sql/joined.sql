-- What was a thing joined into, and that in turn, as is believed at :tx? One row for each, nearest first; the last one is what the id means now.
--
-- Parameters: :id, the id of the thing; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: those of entity.sql; has_version, 0.
WITH RECURSIVE
way (number, hops) AS (
  SELECT number, 0 FROM entity WHERE id = :id AND tx_from <= :tx
  UNION
  SELECT l.source, way.hops + 1
  FROM way
  CROSS JOIN link l ON l.target = way.number AND l.kind = 'joined_from'
  CROSS JOIN link_period p ON p.link = l.number AND p.tx_from <= :tx AND p.tx_to > :tx
)
SELECT e.id, e.is_event, 0 AS has_version, e.number AS thing, 0 AS ordinal, 0 AS was_joined
FROM way
CROSS JOIN entity e ON e.number = way.number
WHERE way.hops > 0
ORDER BY way.hops;
