-- What was recorded last of what stands? One row for each, the last first.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :most, how many rows at most.
-- Columns: number, of the node or event.
SELECT p.entity AS number
FROM period p
CROSS JOIN version v ON v.number = p.version
LEFT JOIN operation o ON o.number = v.operation
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY coalesce(o.tx, p.tx_from) DESC, p.entity DESC
LIMIT coalesce(:most, 0);
