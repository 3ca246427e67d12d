-- Which periods of links did transactions close? One row for each, in no order.
--
-- Parameters: :line, the number of the row of the chain before theirs; :last, that of the last one.
-- Columns: number, of the period; kind; source and target, ids; from_event and to_event: whether these are events; tx_to; closed_by, an operation.
SELECT p.number, l.kind, source.id AS source, target.id AS target, source.is_event AS from_event, target.is_event AS to_event, p.tx_to, p.closed_by
FROM chain c
CROSS JOIN json_each(CAST(c.head AS TEXT), '$.link_closed') j
CROSS JOIN link_period p ON p.number = json_extract(j.value, '$[0]')
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
WHERE c.number > :line AND c.number <= :last AND json_extract(CAST(c.head AS TEXT), '$.branch') IS NULL;
