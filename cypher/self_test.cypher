// A small graph whose answers can be counted by hand, for the shapes of query an engine has been seen to get wrong.

// name: self_test_tables
// Sixty-one things and four hundred links with a number.
CREATE NODE TABLE T(id STRING PRIMARY KEY);
CREATE REL TABLE L(FROM T TO T, x INT64);

// name: self_test_hops
// Three links in a row from one thing, each filtered.
MATCH (a:T {id: $id})-[p:L]->(b:T)-[q:L]->(c:T)-[r:L]->(d:T)
WHERE p.x < $low AND q.x < $low AND r.x < $low
RETURN d.id

// name: self_test_pairs
// Two links in a row from anywhere, each filtered.
MATCH (a:T)-[p:L]->(b:T)-[q:L]->(c:T)
WHERE p.x < $low AND q.x < $low
RETURN a.id, c.id
