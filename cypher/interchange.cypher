// The whole history up to $tx, for the files of other tools: the rows recorded by then, a part at a time, from
// $low up to but without $high. tx_to and closed_by are as the tables have them: what was recorded after $tx is to be left out.

// name: recorded_nodes
// Every recorded node, in one part.
// order: tx_from, id
MATCH (n:Node)
WHERE n.tx_from <= $tx
RETURN n.id AS id, n.kind AS kind, n.key AS key, n.scope AS scope, n.tx_from AS tx_from

// name: recorded_versions
// The rows of versions whose number lies in the part.
// order: row
MATCH (v:Version)
WHERE v.tx_from <= $tx AND $low <= CAST(v.row, 'INT64') AND CAST(v.row, 'INT64') < $high
RETURN CAST(v.row, 'INT64') AS row, v.node_id AS node_id, v.ref AS ref, v.number AS number, v.content AS content, v.text AS text,
  v.tags AS tags, v.trigger AS trigger, v.source AS source, v.author AS author, v.told AS told,
  v.told_by AS told_by, v.remainder AS remainder, v.valid_from AS valid_from, v.valid_to AS valid_to,
  v.tx_from AS tx_from, v.tx_to AS tx_to, v.opened_by AS opened_by, v.closed_by AS closed_by

// name: recorded_events
// The events that were recorded by an operation of the part; one that came and went within a transaction counts as of the first.
// order: tx_from, id
MATCH (e:Event)
WHERE e.tx_from <= $tx AND $low <= CAST(COALESCE(e.opened_by, '0'), 'INT64') AND CAST(COALESCE(e.opened_by, '0'), 'INT64') < $high
RETURN e.id AS id, e.type AS type, e.occurred_at AS occurred_at, e.description AS description, e.source AS source,
  e.origin AS origin, e.agent AS agent, e.fingerprint AS fingerprint, e.metadata AS metadata, e.trace_id AS trace_id,
  e.span_id AS span_id, e.parent_span_id AS parent_span_id, e.sender AS sender, e.sender_name AS sender_name,
  e.thread AS thread, e.classification AS classification, e.authorized AS authorized, e.media_path AS media_path,
  e.media_hash AS media_hash, e.tx_from AS tx_from, e.tx_to AS tx_to, e.opened_by AS opened_by, e.closed_by AS closed_by

// name: recorded_occurrences
// The occurrences, after the one recorded first, of the operations of the part.
// order: row
MATCH (o:Occurrence)
WHERE o.tx_from <= $tx AND $low <= CAST(o.opened_by, 'INT64') AND CAST(o.opened_by, 'INT64') < $high
RETURN CAST(o.row, 'INT64') AS row, o.event_id AS event_id, o.occurred_at AS occurred_at, o.tx_from AS tx_from, o.opened_by AS opened_by

// name: recorded_links
// The rows of links of every kind whose number lies in the part.
// order: row
MATCH (a:Node:Event)-[l]->(b:Node:Event)
WHERE l.tx_from <= $tx AND $low <= CAST(l.row, 'INT64') AND CAST(l.row, 'INT64') < $high
RETURN CAST(l.row, 'INT64') AS row, l.id AS id, a.id AS source, l.kind AS kind, b.id AS target, l.reason AS reason,
  l.strength AS strength, l.confidence AS confidence, l.history AS history, l.created_by AS created_by, l.metadata AS metadata,
  l.author AS author, l.told AS told, l.told_by AS told_by, l.remainder AS remainder,
  l.valid_from AS valid_from, l.valid_to AS valid_to, l.tx_from AS tx_from, l.tx_to AS tx_to,
  l.opened_by AS opened_by, l.closed_by AS closed_by

// name: recorded_operations
// The operations whose number lies in the part: who did what, when and why.
// order: row
MATCH (o:Op)
WHERE o.tx <= $tx AND $low <= CAST(o.id, 'INT64') AND CAST(o.id, 'INT64') < $high
RETURN CAST(o.id, 'INT64') AS row, o.id AS id, o.tx AS tx, o.verb AS verb, o.subject AS subject, o.author AS author, o.reason AS reason
