-- Which version of a node replaced the last one? One row, or none where no version was recorded over valid time that an earlier one had lost.
--
-- Parameters: :id, the id of the node; :tx, in microseconds since 1970-01-01 UTC; :undone, as in removals.sql.
-- Columns: number, the version; said_by, the operation that recorded it first; valid_from, of the first period in which it replaced another.
SELECT v.ordinal AS number, v.operation AS said_by, p.valid_from
FROM entity e
CROSS JOIN version v ON v.entity = e.number AND v.ordinal > 1
LEFT JOIN operation o ON o.number = v.operation
CROSS JOIN period p ON p.entity = v.entity AND p.version = v.number AND p.tx_from <= :tx
WHERE e.id = :id AND e.tx_from <= :tx AND (o.number IS NULL OR o.tx NOT IN (SELECT value FROM json_each(:undone)))
AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number)
AND EXISTS (
  SELECT 1 FROM period q CROSS JOIN version earlier ON earlier.number = q.version AND earlier.ordinal < v.ordinal
  WHERE q.entity = v.entity AND q.tx_to <= p.tx_from AND q.valid_from < p.valid_to AND q.valid_to > p.valid_from
)
ORDER BY v.ordinal DESC, p.number
LIMIT 1;
