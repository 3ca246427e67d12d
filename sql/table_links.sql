-- When were links believed, and what do they say? One row for each of their periods, in the order of :numbers.
--
-- Parameters: :numbers, a JSON array of the numbers of periods of links.
-- Columns: source_label and target_label: Node or Event; source and target, ids; row, the place of the period; id; kind; strength (NULL: none); confidence; history; created_by; author,
-- told and told_by: who recorded its attributes first, when, and the place of that operation; valid_from and valid_to, tx_from and tx_to (253402300799999999: open); opened_by and
-- closed_by, the places of operations; data, its reason and metadata, with the number of that body (NULL: none were given) and its checksum (-1: it is missing).
SELECT
  iif(source.is_event, 'Event', 'Node') AS source_label, iif(target.is_event, 'Event', 'Node') AS target_label, source.id AS source, target.id AS target,
  CAST(p.number & 1099511627775 AS TEXT) AS row, l.id, l.kind, c.strength, iif(c.is_inferred, 'inferred', 'explicit') AS confidence, c.is_history AS history, c.created_by,
  o.author, coalesce(o.recorded, o.tx, p.tx_from) AS told, CAST(c.operation & 1099511627775 AS TEXT) AS told_by, p.valid_from, p.valid_to, p.tx_from, p.tx_to,
  CAST(p.opened_by & 1099511627775 AS TEXT) AS opened_by, CAST(p.closed_by & 1099511627775 AS TEXT) AS closed_by,
  b.data, c.body, coalesce(b.checksum, -1) AS checksum
FROM json_each(:numbers) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link
CROSS JOIN entity source ON source.number = l.source
CROSS JOIN entity target ON target.number = l.target
CROSS JOIN claim c ON c.number = p.claim
LEFT JOIN body b ON b.number = c.body
LEFT JOIN operation o ON o.number = c.operation
ORDER BY j.key;
