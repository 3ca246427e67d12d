-- Which events did transactions open or close a period of, and how far are these believed now? One row for each event, in no order.
--
-- Parameters: :first, the number of the first period that they opened; :numbers, a JSON array of the numbers of the periods that they closed.
-- Columns: number; id; tx_to (253402300799999999: open); closed_by, an operation (NULL: none).
WITH touched (entity) AS (
  SELECT p.entity FROM period p WHERE p.number >= :first AND p.number < (SELECT period FROM next_number)
  UNION
  SELECT p.entity FROM json_each(:numbers) j CROSS JOIN period p ON p.number = j.value
)
SELECT e.number, e.id, CASE WHEN p.closed_by IS NULL THEN 253402300799999999 ELSE p.tx_to END AS tx_to, p.closed_by
FROM touched
CROSS JOIN entity e ON e.number = touched.entity AND e.is_event
CROSS JOIN period p ON p.number = (SELECT max(each.number) FROM period each WHERE each.entity = e.number);
