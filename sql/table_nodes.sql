-- What never changes of those entities that are nodes? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of entities.
-- Columns: id; kind; key; scope; tx_from.
SELECT e.id, e.kind, e.key, e.scope, e.tx_from
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value AND NOT e.is_event
ORDER BY j.key;
