-- Which version of a node replaced the last one? One row, or none where no version was recorded over valid time that an earlier one had lost.
--
-- Parameters: :id, the id of the node; :tx, in microseconds since 1970-01-01 UTC; :undone, as in removals.sql.
-- Columns: number, the version; said_by, the operation that recorded it first; valid_from, of the first period in which it replaced another.
WITH
subject (number) AS MATERIALIZED (
  SELECT e.number FROM entity e
  WHERE e.id = :id AND e.tx_from <= :tx AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
  AND EXISTS (SELECT 1 FROM period q WHERE q.entity = e.number AND q.tx_to <= :tx)
),
candidate (ordinal, operation, entity, valid_from, valid_to, tx_from) AS MATERIALIZED (
  SELECT v.ordinal, v.operation, p.entity, p.valid_from, p.valid_to, p.tx_from
  FROM subject
  CROSS JOIN period p ON p.entity = subject.number AND p.tx_from <= :tx
  CROSS JOIN version v ON v.number = p.version AND v.ordinal > 1
  LEFT JOIN operation o ON o.number = v.operation
  WHERE o.number IS NULL OR o.tx NOT IN (SELECT value FROM json_each(:undone))
  ORDER BY v.ordinal DESC, p.number
)
SELECT ordinal AS number, operation AS said_by, valid_from
FROM candidate
WHERE EXISTS (
  SELECT 1 FROM period q CROSS JOIN version earlier ON earlier.number = q.version AND earlier.ordinal < candidate.ordinal
  WHERE q.entity = candidate.entity AND q.tx_to <= candidate.tx_from AND q.valid_from < candidate.valid_to AND q.valid_to > candidate.valid_from
)
LIMIT 1;
