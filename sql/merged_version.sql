-- Which version came with a branch that was merged, on which it had a number? One row, or none.
--
-- Parameters: :id of its node or event; :branch; :number, on that branch; :tx, in microseconds since 1970-01-01 UTC: only what was recorded by then.
-- Columns: id; is_event; has_version, 1; thing, its own number; ordinal, the number of the version here.
SELECT e.id, e.is_event, 1 AS has_version, e.number AS thing, v.ordinal
FROM entity e
CROSS JOIN alias a ON a.branch = :branch AND a.entity = e.number AND a.ordinal = :number
CROSS JOIN version v ON v.number = a.version
WHERE e.id = :id
  AND EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND p.version = v.number AND p.tx_from <= :tx);
