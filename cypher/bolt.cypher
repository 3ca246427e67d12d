// The statements that keep the graph of a Bolt server, such as Neo4j, as a store has it. Never run by the engine of the store; __…__ are holes for names of
// labels and relationships. Each may be run again: a thing is found by its id, a row by its number. Instants are zoned; an open end is 9999-12-31T23:59:59.999999Z.

// name: bolt_constraint
// Finds things and rows by the property that names them, which is there once.
CREATE CONSTRAINT __NAME__ IF NOT EXISTS FOR (n:__LABEL__) REQUIRE n.__KEY__ IS UNIQUE

// name: bolt_any
// Whether something has a label.
MATCH (n:__LABEL__) RETURN n.id AS id LIMIT 1

// name: bolt_begin
// The node that says how far the graph is: made where it is missing.
MERGE (w:Watermark {id: 'graphstore'})
ON CREATE SET w.store = $store, w.what = $what

// name: bolt_watermark
// What the graph is of, and how far each table is.
MATCH (w:Watermark {id: 'graphstore'}) RETURN properties(w) AS found

// name: bolt_move
// From one position of a table to another, unless somebody else moved it. The first SET waits for who else is at it.
MATCH (w:Watermark {id: 'graphstore'})
SET w.held_by = $token
WITH w WHERE coalesce(w.__TABLE__, '0 0 0') = $before
SET w.__TABLE__ = $after, w.moved_by = $token
RETURN count(w) AS moved

// name: bolt_known
// Up to which tx the graph has all that was recorded.
MATCH (w:Watermark {id: 'graphstore'}) SET w.tx = $tx

// name: bolt_coordinate
// From one coordinate to another, unless somebody else did.
MATCH (w:Watermark {id: 'graphstore'})
SET w.held_by = $token
WITH w WHERE coalesce(w.round, 0) = $before
SET w.round = $before + 1, w.valid = $valid, w.tx = $tx, w.whole = $whole, w.moved_by = $token
RETURN count(w) AS moved

// name: bolt_things
// Nodes, events and operations, and rows of them, with these properties.
UNWIND $rows AS r
MERGE (n:__LABEL__ {__KEY__: r.key})
SET n += r.properties

// name: bolt_things_anew
// Nodes and events with these properties and no others.
UNWIND $rows AS r
MERGE (n:__LABEL__ {id: r.key})
SET n = r.properties

// name: bolt_parts
// The rows that belong to a node or an event.
UNWIND $rows AS r
MATCH (n:__LABEL__ {id: r.owner}), (v:__PART__ {row: r.key})
MERGE (n)-[:__KIND__]->(v)

// name: bolt_links
// Rows of links of one kind between two labels.
UNWIND $rows AS r
MATCH (a:__SOURCE__ {id: r.source}), (b:__TARGET__ {id: r.target})
MERGE (a)-[l:__KIND__ {__KEY__: r.key}]->(b)
SET l += r.properties
RETURN count(l) AS found

// name: bolt_links_anew
// Links of one kind between two labels, with these properties and no others.
UNWIND $rows AS r
MATCH (a:__SOURCE__ {id: r.source}), (b:__TARGET__ {id: r.target})
MERGE (a)-[l:__KIND__ {id: r.key}]->(b)
SET l = r.properties
RETURN count(l) AS found

// name: bolt_unlink
// Takes away links.
UNWIND $rows AS r
MATCH (a:__SOURCE__ {id: r.source})-[l:__KIND__ {id: r.key}]->(b:__TARGET__ {id: r.target})
DELETE l

// name: bolt_remove
// Takes away things with all their links.
UNWIND $rows AS r
MATCH (n:__LABEL__ {id: r.key})
DETACH DELETE n

// name: bolt_reasons
// The operations that have a reason.
MATCH (o:Op) WHERE o.reason IS NOT NULL RETURN o.id AS id

// name: bolt_there
// What is there of a label, and what its properties are known by.
MATCH (n:__LABEL__) RETURN n.id AS id, n.shown AS shown

// name: bolt_links_there
// The links that are there from a label, and what their properties are known by.
MATCH (a:__LABEL__)-[l]->(b) RETURN type(l) AS kind, l.id AS id, l.shown AS shown, a.id AS source, labels(b)[0] AS label, b.id AS target
