-- What stands at a coordinate and is shaky? One row for each node or event, the last to become so first.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :without, a JSON array of kinds that are left out; :scope, a path: only
-- what is in this scope or below (NULL: everything); :most, how many rows at most.
-- Columns: id; found, how many rows there are without :most.
SELECT e.id, count(*) OVER () AS found
FROM shaky s
CROSS JOIN entity e ON e.number = s.entity
WHERE s.valid_from <= :valid AND s.valid_to > :valid AND s.tx_from <= :tx AND s.tx_to > :tx
  AND e.kind NOT IN (SELECT value FROM json_each(:without))
  AND (
    :scope IS NULL
    OR CASE WHEN e.is_event THEN (SELECT w.scope FROM all_event_scope w WHERE w.entity = e.number) ELSE e.scope END || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111)
  )
  AND NOT EXISTS (SELECT 1 FROM absence a WHERE a.entity = e.number AND a.valid_from <= :valid AND a.valid_to > :valid AND a.tx_from <= :tx AND a.tx_to > :tx)
ORDER BY s.tx_from DESC, e.number DESC
LIMIT coalesce(:most, -1);
