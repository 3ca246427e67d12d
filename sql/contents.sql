-- Which nodes of a kind are not forgotten, whether they stand or not? One row for each, in the order in which they were recorded.
--
-- Parameters: :kind.
-- Columns: born, when its id became known; name, its id; scope.
SELECT e.tx_from AS born, e.id AS name, e.scope
FROM entity e
WHERE e.kind = :kind AND NOT e.is_event AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
ORDER BY e.number;
