-- Which nodes and events hold at a coordinate, by which version? One row for each, in the order in which they were first known. It reads all periods.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: number, id and is_event, of the thing; row, of its version.
SELECT e.number, e.id, e.is_event, p.version AS row
FROM period p
CROSS JOIN entity e ON e.number = p.entity
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY e.number;
