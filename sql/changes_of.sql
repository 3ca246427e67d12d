-- What was removed of some things and is in no period, and over which time did their content change? One row for each, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities.
-- Columns: entity; valid_from and valid_to; operation; is_certain, NULL for what was removed: see table changed.
SELECT r.entity, r.valid_from, r.valid_to, r.operation, NULL AS is_certain, r.number AS place
FROM json_each(:numbers) j
CROSS JOIN removed r ON r.entity = j.value
UNION ALL
SELECT c.entity, c.valid_from, c.valid_to, c.operation, c.is_certain, c.number AS place
FROM json_each(:numbers) j
CROSS JOIN changed c ON c.entity = j.value
ORDER BY place;
