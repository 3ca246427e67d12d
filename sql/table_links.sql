-- When were links believed, and what do they say? One row for each period, in the order in which it was recorded.
--
-- Parameters: :first, the number of the first period; :stop, that of the first one after them.
-- Columns: number, of the period; id; kind; source and target, ids; from_event and to_event: whether these are events; strength (NULL: none); is_inferred; created_by;
-- author, told and told_by, who recorded its attributes first, when, and in which operation; valid_from and valid_to, tx_from and tx_to (253402300799999999: open);
-- opened_by and closed_by, operations; data, its reason and metadata, with the number of that body (NULL: none were given) and its checksum (-1: it is missing).
SELECT
  p.number, l.id, l.kind, source.id AS source, target.id AS target, source.is_event AS from_event, target.is_event AS to_event, c.strength, c.is_inferred, c.created_by,
  o.author, coalesce(o.tx, p.tx_from) AS told, c.operation AS told_by, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.opened_by, p.closed_by,
  b.data, c.body, coalesce(b.checksum, -1) AS checksum
FROM link_period p
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
LEFT JOIN body b ON b.number = c.body
LEFT JOIN operation o ON o.number = c.operation
WHERE p.number >= :first AND p.number < :stop
ORDER BY p.number;
