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

// name: all_nodes
// Every node, to be held against the index.
MATCH (n:Node) RETURN n.id AS id, n.kind AS kind, n.key AS key, n.scope AS scope, n.tx_from AS tx_from

// name: all_events
// Every event with its instants, to be held against the index.
MATCH (e:Event)
RETURN e.id AS id, e.type AS type, e.occurred_at AS occurred_at, e.tx_from AS tx_from, e.tx_to AS tx_to,
  e.opened_by AS opened_by, e.closed_by AS closed_by

// name: all_occurrences
// Every occurrence after the first, to be held against the index; by way of the event, so that HAS_OCCURRENCE is held against it too.
MATCH (e:Event)-[:HAS_OCCURRENCE]->(o:Occurrence)
RETURN o.row AS row, e.id AS event_id, o.occurred_at AS occurred_at, o.tx_from AS tx_from, o.opened_by AS opened_by

// name: all_versions
// Every row of every node with its periods, to be held against the index; by way of the node, so that HAS_VERSION is held against it too.
MATCH (n:Node)-[:HAS_VERSION]->(v:Version)
RETURN v.row AS row, n.id AS node_id, v.ref AS ref, v.number AS number, v.author AS author, v.told AS told, v.told_by AS told_by, v.remainder AS remainder, v.valid_from AS valid_from, v.valid_to AS valid_to,
  v.tx_from AS tx_from, v.tx_to AS tx_to, v.opened_by AS opened_by, v.closed_by AS closed_by

// name: all_links
// Every row of one link table with its periods, to be held against the index.
MATCH (a:Node:Event)-[l:`__KIND__`]->(b:Node:Event)
RETURN l.row AS row, l.id AS id, a.id AS source, b.id AS target, l.author AS author, l.told AS told, l.told_by AS told_by, l.remainder AS remainder, l.valid_from AS valid_from, l.valid_to AS valid_to,
  l.tx_from AS tx_from, l.tx_to AS tx_to, l.opened_by AS opened_by, l.closed_by AS closed_by

// name: nodes_at
// The descriptions that hold at $valid as known at $tx: plain ANDs, because this is a scan. tx_to is not asked for: it is later than $tx in every row.
MATCH (v:Version)
WHERE AS_OF(v)
RETURN v.node_id AS id, v.number AS number, v.content AS content, v.text AS text, v.tags AS tags, v.trigger AS trigger,
  v.source AS source, v.author AS author, v.told AS recorded_at, v.valid_from AS valid_from, v.valid_to AS valid_to, v.tx_from AS tx_from
