-- Which of some periods are of nodes, and when were they closed? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of periods.
-- Columns: number, of the period; tx_to; closed_by, an operation.
SELECT p.number, p.tx_to, p.closed_by
FROM json_each(:numbers) j
CROSS JOIN period p ON p.number = j.value
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event;
