-- Which nodes and events of some kinds were first known last? At most :most rows of each kind, the last first.
--
-- Parameters: :kinds, a JSON array of kinds and types; :scope, a path: only what is in this scope or below (NULL: everything); :tx, in microseconds since
-- 1970-01-01 UTC; :most.
-- Columns: number; id.
SELECT e.number, e.id
FROM json_each(:kinds) j
CROSS JOIN entity e ON e.number IN (
  SELECT k.number FROM entity k
  WHERE k.kind = j.value AND k.tx_from <= :tx
    AND (
      :scope IS NULL
      OR CASE WHEN k.is_event THEN (SELECT s.scope FROM all_event_scope s WHERE s.entity = k.number) ELSE k.scope END || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111)
    )
  ORDER BY k.number DESC LIMIT coalesce(:most, -1)
)
ORDER BY e.number DESC;
