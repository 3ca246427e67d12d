-- What do the links of some periods join? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of the periods.
-- Columns: kind; source and target, ids; from_event and to_event: whether these are events.
SELECT l.kind, source.id AS source, target.id AS target, source.is_event AS from_event, target.is_event AS to_event
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
ORDER BY j.key;
