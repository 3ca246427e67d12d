-- Which nodes (with :events, which events) are known? One row for each, in the order in which they were first known. All filters that are not NULL must hold.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC; :events, 1 or 0; :kind, :key (in its normal form), :scope, each a text or NULL.
-- Columns: number.
WITH
chosen (number) AS (
  SELECT e.number FROM entity e WHERE :key IS NOT NULL AND e.key = :key
  UNION ALL
  SELECT e.number FROM entity e WHERE :key IS NULL AND :kind IS NOT NULL AND e.kind = :kind
  UNION ALL
  SELECT e.number FROM entity e WHERE :key IS NULL AND :kind IS NULL
)
SELECT e.number
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
WHERE e.is_event = :events AND e.tx_from <= :tx AND (:kind IS NULL OR e.kind = :kind) AND (:scope IS NULL OR e.scope = :scope)
ORDER BY e.number;
