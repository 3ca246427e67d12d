-- What do the links of some periods join? One row for each, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of the periods.
-- Columns: source_label, Event or Node; source, an id; kind; target_label; target.
SELECT iif(source.is_event, 'Event', 'Node') AS source_label, source.id AS source, l.kind, iif(target.is_event, 'Event', 'Node') AS target_label, target.id AS target
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
ORDER BY j.key;
