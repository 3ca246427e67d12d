-- Which events of a trace had happened by a coordinate and are believed there, or were before they were evicted? One row for each, in the order in which they were first
-- known.
--
-- Parameters: :trace; :valid and :tx, the coordinate.
-- Columns: number, of the entity.
SELECT DISTINCT m.entity AS number
FROM message m
LEFT JOIN forgotten f ON f.entity = m.entity
LEFT JOIN operation o ON o.number = f.operation
CROSS JOIN period p
  ON p.number = m.period AND p.valid_from <= :valid AND p.valid_to > :valid
  AND p.tx_from <= min(:tx, coalesce(o.tx - 1, :tx)) AND p.tx_to > min(:tx, coalesce(o.tx - 1, :tx))
WHERE m.trace = :trace
ORDER BY m.entity;
