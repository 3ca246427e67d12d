-- Which of some events were superseded when, as believed at :tx? One row for each period in which one was.
--
-- Parameters: :tx; :numbers, a JSON array of the numbers of entities.
-- Columns: entity, valid_from, valid_to.
SELECT a.entity, a.valid_from, a.valid_to
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value AND e.is_event = 1
CROSS JOIN absence a ON a.entity = e.number
WHERE a.standing = 'superseded' AND a.tx_from <= :tx AND a.tx_to > :tx;
