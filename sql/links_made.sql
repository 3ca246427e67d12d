-- Which of some links were made by an instant? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of links; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: number.
SELECT j.value AS number
FROM json_each(:numbers) j
WHERE EXISTS (SELECT 1 FROM link_period p WHERE p.link = j.value AND p.tx_from <= :tx);
