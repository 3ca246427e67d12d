-- Which things, or links, have these ids? One row for each, in no order.
--
-- Parameters: :ids, a JSON array; :links, 1 for links, 0 for nodes and events.
-- Columns: id; number.
SELECT e.id, e.number FROM json_each(:ids) j CROSS JOIN entity e ON e.id = j.value WHERE NOT :links
UNION ALL
SELECT l.id, l.number FROM json_each(:ids) j CROSS JOIN link l ON l.id = j.value WHERE :links;
