-- Which events were superseded when, as believed at :tx? One row for each period in which one was. It reads all of absence.
--
-- Parameters: :tx.
-- Columns: entity, valid_from, valid_to.
SELECT a.entity, a.valid_from, a.valid_to
FROM absence a
CROSS JOIN entity e ON e.number = a.entity AND e.is_event = 1
WHERE a.standing = 'superseded' AND a.tx_from <= :tx AND a.tx_to > :tx;
