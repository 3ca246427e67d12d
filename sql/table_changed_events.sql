-- Which events had a period that transactions opened or closed? One row for each event, in no order.
--
-- Parameters: :first, the number of the first period that they opened; :numbers, a JSON array of the numbers of the periods that they closed.
-- Columns: number.
WITH touched (entity) AS (
  SELECT p.entity FROM period p WHERE p.number >= :first AND p.number < (SELECT period FROM next_number)
  UNION
  SELECT p.entity FROM json_each(:numbers) j CROSS JOIN period p ON p.number = j.value
)
SELECT e.number FROM touched CROSS JOIN entity e ON e.number = touched.entity AND e.is_event;
