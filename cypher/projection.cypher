// How the graph tables follow the journal: statements over $rows, an Arrow table whose columns are names in the text.
// None of them reads a relationship that is not committed, deletes, or is ever rolled back.

// name: create_nodes
// Add rows to a node table: the faster way below about 20,000 rows (12 to 16 µs each).
LOAD FROM $rows CREATE (:`__TABLE__` __PROPERTIES__)

// name: copy_nodes
// Add rows to a node table: the faster way from about 20,000 rows on. Columns in the order of the schema.
COPY `__TABLE__` FROM $rows

// name: create_links
// Add relationships between two labels, few of them: columns source and target are the keys of the two ends.
LOAD FROM $rows
MATCH (a:`__SOURCE__` {__SOURCE_KEY__: source})
MATCH (b:`__TARGET__` {__TARGET_KEY__: target})
CREATE (a)-[:`__TABLE__` __PROPERTIES__]->(b)

// name: copy_links
// Add relationships between two labels, many of them: columns source and target first, then the schema's.
COPY `__TABLE__` FROM $rows (from='__SOURCE__', to='__TARGET__')

// name: close_versions
// End the belief in rows of Version. Columns: row, closed_at, op. 1,000 rows take about 7 ms.
LOAD FROM $rows
MATCH (v:Version {row: row})
SET v.tx_to = closed_at, v.closed_by = op

// name: close_events
// End the belief in events. Columns: id, closed_at, op.
LOAD FROM $rows
MATCH (e:Event {id: id})
SET e.tx_to = closed_at, e.closed_by = op

// name: close_links
// End the belief in rows of one link table between two labels. Columns: source, target, row, closed_at, op.
// By the keys of both ends and then by row: 1,000 rows take about 40 ms.
LOAD FROM $rows
MATCH (a:`__SOURCE__` {id: source})-[l:`__KIND__`]->(b:`__TARGET__` {id: target})
WHERE l.row = row
SET l.tx_to = closed_at, l.closed_by = op

// name: count_things
// How many rows a node table has.
MATCH (n:`__LABEL__`) RETURN count(*)

// macro: NODE_ROW(n)
n.id AS id, n.kind AS kind, n.key AS key, n.scope AS scope, n.tx_from AS tx_from

// macro: EVENT_ROW(e)
e.id AS id, e.type AS type, e.occurred_at AS occurred_at, e.description AS description, e.source AS source, e.origin AS origin,
  e.agent AS agent, e.fingerprint AS fingerprint, e.metadata AS metadata, e.trace_id AS trace_id, e.span_id AS span_id,
  e.parent_span_id AS parent_span_id, e.sender AS sender, e.sender_name AS sender_name, e.thread AS thread,
  e.classification AS classification, e.authorized AS authorized, e.media_path AS media_path, e.media_hash AS media_hash,
  e.tx_from AS tx_from, e.tx_to AS tx_to, e.opened_by AS opened_by, e.closed_by AS closed_by

// macro: VERSION_ROW(v)
v.row AS row, v.node_id AS node_id, v.ref AS ref, v.number AS number, v.content AS content, v.text AS text, v.tags AS tags,
  v.trigger AS trigger, v.source AS source, v.author AS author, v.told AS told, v.told_by AS told_by, v.remainder AS remainder,
  v.valid_from AS valid_from, v.valid_to AS valid_to, v.tx_from AS tx_from, v.tx_to AS tx_to, v.opened_by AS opened_by, v.closed_by AS closed_by

// macro: OCCURRENCE_ROW(o)
o.row AS row, o.event_id AS event_id, o.occurred_at AS occurred_at, o.tx_from AS tx_from, o.opened_by AS opened_by

// macro: OP_ROW(o)
o.id AS id, o.tx AS tx, o.verb AS verb, o.subject AS subject, o.author AS author, o.reason AS reason

// macro: LINK_ROW(l)
l.row AS row, l.id AS id, l.kind AS kind, l.reason AS reason, l.strength AS strength, l.confidence AS confidence, l.created_by AS created_by,
  l.metadata AS metadata, l.author AS author, l.told AS told, l.told_by AS told_by, l.remainder AS remainder, l.valid_from AS valid_from,
  l.valid_to AS valid_to, l.tx_from AS tx_from, l.tx_to AS tx_to, l.opened_by AS opened_by, l.closed_by AS closed_by

// name: read_nodes
// The nodes whose ids lie in [$lo, $hi), recorded from $since on, to be held against the index.
MATCH (n:Node)
WHERE n.tx_from >= $since AND n.id >= $lo AND n.id < $hi
RETURN NODE_ROW(n)

// name: read_events
// The events whose ids lie in [$lo, $hi), recorded from $since on, to be held against the index and the journal.
MATCH (e:Event)
WHERE e.tx_from >= $since AND e.id >= $lo AND e.id < $hi
RETURN EVENT_ROW(e)

// name: read_versions
// The rows [$lo, $hi) of Version, written from $since on, to be held against the index and the journal; by way of the node, so that HAS_VERSION is held against it too.
MATCH (n:Node)-[:HAS_VERSION]->(v:Version)
WHERE v.tx_from >= $since AND cast(v.row AS INT64) >= $lo AND cast(v.row AS INT64) < $hi
RETURN n.id AS holder, VERSION_ROW(v)

// name: read_occurrences
// The rows [$lo, $hi) of Occurrence, written from $since on, to be held against the index; by way of the event, so that HAS_OCCURRENCE is held against it too.
MATCH (e:Event)-[:HAS_OCCURRENCE]->(o:Occurrence)
WHERE o.tx_from >= $since AND cast(o.row AS INT64) >= $lo AND cast(o.row AS INT64) < $hi
RETURN e.id AS holder, OCCURRENCE_ROW(o)

// name: read_ops
// The rows [$lo, $hi) of Op, written from $since on, to be held against the index and the journal.
MATCH (o:Op)
WHERE o.tx >= $since AND cast(o.id AS INT64) >= $lo AND cast(o.id AS INT64) < $hi
RETURN OP_ROW(o)

// name: read_links
// The rows [$lo, $hi) of one link table, written from $since on, to be held against the index and the journal.
MATCH (a:Node:Event)-[l:`__KIND__`]->(b:Node:Event)
WHERE l.tx_from >= $since AND cast(l.row AS INT64) >= $lo AND cast(l.row AS INT64) < $hi
RETURN a.id AS source, b.id AS target, LINK_ROW(l)

// name: count_link_rows
// How many rows a link table has.
MATCH (a:Node:Event)-[l:`__KIND__`]->(b:Node:Event) RETURN count(*)

// name: read_closed_versions
// The rows of Version closed from $since on.
MATCH (v:Version)
WHERE v.tx_to >= $since AND v.tx_to < timestamp('9999-12-31 23:59:59.999999')
RETURN v.row AS row, v.tx_to AS tx_to, v.closed_by AS closed_by

// name: read_closed_links
// The rows of one link table closed from $since on.
MATCH (a:Node:Event)-[l:`__KIND__`]->(b:Node:Event)
WHERE l.tx_to >= $since AND l.tx_to < timestamp('9999-12-31 23:59:59.999999')
RETURN l.row AS row, l.tx_to AS tx_to, l.closed_by AS closed_by

// name: read_node
// One node by its id.
MATCH (n:Node {id: $key})
RETURN NODE_ROW(n)

// name: read_event
// One event by its id.
MATCH (e:Event {id: $key})
RETURN EVENT_ROW(e)

// name: read_version
// One row of Version by its number.
MATCH (n:Node)-[:HAS_VERSION]->(v:Version {row: $key})
RETURN n.id AS holder, VERSION_ROW(v)

// name: read_op
// One operation by its number.
MATCH (o:Op {id: $key})
RETURN OP_ROW(o)

// name: read_link
// One row of a link table by the id of its source and its number.
MATCH (a:`__SOURCE__` {id: $source})-[l:`__KIND__`]->(b:Node:Event)
WHERE l.row = $key
RETURN a.id AS source, b.id AS target, LINK_ROW(l)
