-- When were some periods of links closed? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of periods of links.
-- Columns: number, of the period; kind; source and target, ids; from_event and to_event: whether these are events; tx_to; closed_by, an operation.
SELECT p.number, l.kind, source.id AS source, target.id AS target, source.is_event AS from_event, target.is_event AS to_event, p.tx_to, p.closed_by
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target;
