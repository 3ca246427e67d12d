-- Which things stand at a coordinate and are shaky? One row for each, in the order in which they were first known.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: number, of the entity.
SELECT s.entity AS number
FROM shaky s
WHERE s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = s.entity)
  AND NOT EXISTS (
    SELECT 1 FROM absence a WHERE a.entity = s.entity AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx
  )
ORDER BY s.entity;
