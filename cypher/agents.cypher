// What the graph of one view holds, for an agent that is about to ask it.

// name: agents_nodes
// The kinds of nodes that stand, the most frequent first.
MATCH (n:Node) RETURN n.kind AS kind, count(*) AS many ORDER BY many DESC, kind

// name: agents_contents
// The contents of some nodes of a kind.
MATCH (n:Node {kind: $kind}) RETURN n.content AS content ORDER BY n.id LIMIT $many

// name: agents_events
// The types of events, the most frequent first.
MATCH (e:Event) RETURN e.type AS kind, count(*) AS many ORDER BY many DESC, kind

// name: agents_links
// The kinds of links, the most frequent first.
MATCH ()-[r]->() RETURN label(r) AS kind, count(*) AS many ORDER BY many DESC, kind

// name: agents_columns
// The columns that nodes have here.
MATCH (n:Node) RETURN n.* LIMIT 1
