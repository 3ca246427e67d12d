-- Which nodes (with :events, which events) are known? One row for each, in the order in which they were first known. Filters that are not NULL must hold.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC; :events, 1 or 0; :kind and :scope, each a text or NULL.
-- Columns: number; id; scope; tx_from.
WITH
chosen (number) AS (
  SELECT e.number FROM entity e WHERE :kind IS NOT NULL AND e.kind = :kind
  UNION ALL
  SELECT e.number FROM entity e WHERE :kind IS NULL
)
SELECT e.number, e.id, e.scope, e.tx_from
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
WHERE e.is_event = :events AND e.tx_from <= :tx AND (:scope IS NULL OR e.scope = :scope)
ORDER BY e.number;
