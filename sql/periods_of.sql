-- Which periods of some things were ever believed? One row for each, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: those of table period.
SELECT p.number, p.entity, p.version, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by
FROM json_each(:numbers) j
CROSS JOIN period p ON p.entity = j.value
ORDER BY p.number;
