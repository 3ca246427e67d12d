-- What was recorded before it was to begin, and begins between two instants? One row for each node or event and beginning, the first to begin first.
--
-- Parameters: :since and :until, the instants, and :tx, in microseconds since 1970-01-01 UTC; :without, a JSON array of kinds that are left out; :scope, a
-- path: only what is in this scope or below (NULL: everything).
-- Columns: id; valid_from.
SELECT e.id, p.valid_from
FROM period p
CROSS JOIN entity e ON e.number = p.entity
WHERE p.valid_from >= :since AND p.valid_from < :until AND p.tx_from < p.valid_from AND p.tx_from <= :tx AND p.tx_to > :tx
  AND e.tx_from < p.valid_from
  AND e.kind NOT IN (SELECT value FROM json_each(:without))
  AND (
    :scope IS NULL
    OR CASE WHEN e.is_event THEN (SELECT s.scope FROM all_event_scope s WHERE s.entity = e.number) ELSE e.scope END || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111)
  )
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
ORDER BY p.valid_from, e.id;
