-- When did events happen again? One row for each occurrence, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of occurrences.
-- Columns: row, its place; event_id; occurred_at; tx_from; opened_by, the place of an operation.
SELECT
  CAST(s.number & 1099511627775 AS TEXT) AS row, e.id AS event_id, s.occurred_at, s.tx AS tx_from, CAST(s.operation & 1099511627775 AS TEXT) AS opened_by
FROM json_each(:numbers) j
CROSS JOIN occurrence s ON s.number = j.value
CROSS JOIN entity e ON e.number = s.event
ORDER BY j.key;
