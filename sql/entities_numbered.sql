-- What are some things? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of entities.
-- Columns: number, id, is_event, kind, key, scope, tx_from.
SELECT e.number, e.id, e.is_event, e.kind, e.key, e.scope, e.tx_from
FROM json_each(:numbers) j
CROSS JOIN entity e ON e.number = j.value;
