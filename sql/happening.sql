-- Which events may have happened in [:since, :until)? One row for each that is known and of which an occurrence in it was ever recorded, in the order in which they were
-- first known.
--
-- Parameters: :tx, :since and :until, in microseconds since 1970-01-01 UTC; :types, a JSON array of types of events, or NULL: of any.
-- Columns: number.
WITH
chosen (number) AS (
  SELECT e.number FROM json_each(:types) j CROSS JOIN entity e ON e.kind = j.value
  UNION ALL
  SELECT e.number FROM entity e WHERE :types IS NULL AND e.is_event
)
SELECT DISTINCT e.number
FROM chosen
CROSS JOIN entity e ON e.number = chosen.number
WHERE e.is_event AND e.tx_from <= :tx
  AND (
    EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND p.valid_from >= :since AND p.valid_from < :until)
    OR EXISTS (SELECT 1 FROM occurrence h WHERE h.event = e.number AND h.occurred_at >= :since AND h.occurred_at < :until)
  )
ORDER BY e.number;
