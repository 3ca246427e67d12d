// The queries by which the shell lists what there is, and completes what is typed. The first five are for the graph of a view,
// the last is for the tables of the whole history; columns_of is for either.

// name: count_labels
// How many things there are of each label, the most first.
MATCH (n)
RETURN label(n) AS name, count(*) AS things
ORDER BY things DESC, name

// name: count_kinds
// How many nodes of each kind stand, the most first.
MATCH (n:Node)
RETURN n.kind AS name, count(*) AS things
ORDER BY things DESC, name

// name: count_types
// How many events of each type there are, the most first.
MATCH (e:Event)
RETURN e.type AS name, count(*) AS things
ORDER BY things DESC, name

// name: count_links
// How many links hold of each kind, the most first.
MATCH ()-[l]->()
RETURN label(l) AS name, count(*) AS things
ORDER BY things DESC, name

// name: ids_that_begin
// The ids that begin so, with what each names.
MATCH (n:Node:Absent:Event)
WHERE n.id STARTS WITH $prefix
RETURN n.id AS id, label(n) AS label, coalesce(n.kind, n.type) AS kind, coalesce(n.text, n.description) AS text
ORDER BY id
LIMIT 50

// name: kinds_that_begin
// The kinds of nodes and types of events that begin so.
MATCH (n:Node:Event)
WITH DISTINCT coalesce(n.kind, n.type) AS kind
WHERE kind STARTS WITH $prefix
RETURN kind
ORDER BY kind
LIMIT 50

// name: columns_of
// The columns of a table, and their types.
CALL table_info('__TABLE__')
RETURN name, type

// name: tables_there_are
// The tables, and whether each is NODE or REL.
CALL show_tables()
RETURN name, type
ORDER BY type, name
