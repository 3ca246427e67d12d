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

// name: read_things
// The nodes or events whose ids lie in [$lo, $hi), recorded from $since on, to be held against the ledger. Here and below
// __COLUMNS__ are those of the table, as x.id AS id.
MATCH (x:`__LABEL__`)
WHERE x.tx_from >= $since AND x.id >= $lo AND x.id < $hi
RETURN __COLUMNS__

// name: read_rows
// The rows [$lo, $hi) of Version or Occurrence, written from $since on, to be held against the ledger; by way of what has them, so
// that the relationships are held against it too.
MATCH (h:`__OWNER__`)-[:`__HAS__`]->(x:`__LABEL__`)
WHERE x.tx_from >= $since AND cast(x.row AS INT64) >= $lo AND cast(x.row AS INT64) < $hi
RETURN h.id AS holder, __COLUMNS__

// name: read_ops
// The rows [$lo, $hi) of Op, written from $since on, to be held against the ledger.
MATCH (x:Op)
WHERE x.tx >= $since AND cast(x.id AS INT64) >= $lo AND cast(x.id AS INT64) < $hi
RETURN __COLUMNS__

// name: read_links
// The rows [$lo, $hi) of one link table, written from $since on, to be held against the ledger.
MATCH (a:Node:Event)-[x:`__KIND__`]->(b:Node:Event)
WHERE x.tx_from >= $since AND cast(x.row AS INT64) >= $lo AND cast(x.row AS INT64) < $hi
RETURN a.id AS source, b.id AS target, __COLUMNS__

// name: count_link_rows
// How many rows a link table has.
MATCH (a:Node:Event)-[l:`__KIND__`]->(b:Node:Event) RETURN count(*)

// name: read_closed_versions
// The rows of Version closed from $since on.
MATCH (x:Version)
WHERE x.tx_to >= $since AND x.tx_to < timestamp('9999-12-31 23:59:59.999999')
RETURN __COLUMNS__

// name: read_closed_links
// The rows of one link table closed from $since on.
MATCH (a:Node:Event)-[x:`__KIND__`]->(b:Node:Event)
WHERE x.tx_to >= $since AND x.tx_to < timestamp('9999-12-31 23:59:59.999999')
RETURN __COLUMNS__

// name: read_thing
// One node, event or operation by its id.
MATCH (x:`__LABEL__` {id: $key})
RETURN __COLUMNS__

// name: read_row
// One row of Version by its number.
MATCH (h:`__OWNER__`)-[:`__HAS__`]->(x:`__LABEL__` {row: $key})
RETURN h.id AS holder, __COLUMNS__

// name: read_link
// One row of a link table by the id of its source and its number.
MATCH (a:`__SOURCE__` {id: $source})-[x:`__KIND__`]->(b:Node:Event)
WHERE x.row = $key
RETURN a.id AS source, b.id AS target, __COLUMNS__
