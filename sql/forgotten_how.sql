-- Which word says how an entity was forgotten? One row where the trunk or a branch ever knew the id, else none.
--
-- Parameters: :id, of the entity.
-- Columns: word, evicted or erased; empty where it was not forgotten.
SELECT coalesce(
  CASE WHEN EXISTS (SELECT 1 FROM entity e WHERE e.id = :id)
    THEN (SELECT f.word FROM entity e CROSS JOIN forgotten f ON f.entity = e.number WHERE e.id = :id)
    ELSE (
      SELECT CASE o.verb WHEN 'erase' THEN 'erased' ELSE 'evicted' END
      FROM operation o WHERE o.subject = :id AND o.verb IN ('evict', 'erase') ORDER BY o.number DESC LIMIT 1
    )
  END,
  ''
) AS word
FROM all_entity a
WHERE a.id = :id
LIMIT 1;
