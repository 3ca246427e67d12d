-- Which links hold at a coordinate, over which period? One row for each, in the order in which they were made. It reads all periods.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: number and id, of the link; is_event, 0; row, of its period.
SELECT l.number, l.id, 0 AS is_event, p.number AS row
FROM link_period p
CROSS JOIN link l ON l.number = p.link
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
ORDER BY l.number;
