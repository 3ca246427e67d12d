-- Which events did transactions open or close a period of, and how far are these believed now? One row for each event, in no order.
--
-- Parameters: :line, the number of the row of the chain before theirs; :last, that of the last one; :first, the number of the first period that they opened.
-- Columns: number; id; tx_to (253402300799999999: open); closed_by, an operation (NULL: none).
WITH touched (entity) AS (
  SELECT p.entity FROM period p WHERE p.number >= :first
  UNION
  SELECT p.entity
  FROM chain c
  CROSS JOIN json_each(CAST(c.head AS TEXT), '$.closed') j
  CROSS JOIN period p ON p.number = json_extract(j.value, '$[0]')
  WHERE c.number > :line AND c.number <= :last AND json_extract(CAST(c.head AS TEXT), '$.branch') IS NULL
)
SELECT e.number, e.id, CASE WHEN p.closed_by IS NULL THEN 253402300799999999 ELSE p.tx_to END AS tx_to, p.closed_by
FROM touched
CROSS JOIN entity e ON e.number = touched.entity AND e.is_event
CROSS JOIN period p ON p.number = (SELECT max(each.number) FROM period each WHERE each.entity = e.number);
