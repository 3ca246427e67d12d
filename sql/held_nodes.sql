-- Which periods of nodes hold at a coordinate? One row for each, in the order in which the nodes were first known.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: those of periods_of.sql.
SELECT p.number, p.entity, p.version, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by
FROM period p
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY p.entity;
