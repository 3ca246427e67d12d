-- When do versions of some things hold, as believed at :tx? One row for each period.
--
-- Parameters: :tx; :numbers, a JSON array of the numbers of entities.
-- Columns: entity, version, valid_from, valid_to.
SELECT p.entity, p.version, p.valid_from, p.valid_to
FROM json_each(:numbers) j
CROSS JOIN period p ON p.entity = j.value
WHERE p.tx_from <= :tx AND p.tx_to > :tx;
