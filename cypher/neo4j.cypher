// The statements of a script for Neo4j, which makes the graph of one view there. Never run by the engine of the store;
// __…__ are holes for quoted names and literals. Labels and relationships are those of a view's graph.

// name: neo4j_constraint
// An id is given once: it also finds the ends of links.
CREATE CONSTRAINT __NAME__ IF NOT EXISTS FOR (n:__LABEL__) REQUIRE n.id IS UNIQUE

// name: neo4j_thing
// A node or an event with all its properties.
CREATE (:__LABEL__ __PROPERTIES__)

// name: neo4j_link
// A link between two things that are there.
MATCH (a:__SOURCE__ {id: __FROM__}), (b:__TARGET__ {id: __TO__}) CREATE (a)-[:__KIND__ __PROPERTIES__]->(b)

// name: neo4j_time
// An instant.
datetime(__TEXT__)
