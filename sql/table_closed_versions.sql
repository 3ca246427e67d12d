-- Which periods of nodes did transactions close? One row for each, in no order.
--
-- Parameters: :line, the number of the row of the chain before theirs; :last, that of the last one.
-- Columns: number, of the period; tx_to; closed_by, an operation.
SELECT p.number, p.tx_to, p.closed_by
FROM chain c
CROSS JOIN json_each(CAST(c.head AS TEXT), '$.closed') j
CROSS JOIN period p ON p.number = json_extract(j.value, '$[0]')
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event
WHERE c.number > :line AND c.number <= :last AND json_extract(CAST(c.head AS TEXT), '$.branch') IS NULL;
