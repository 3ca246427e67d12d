// Questions analysts ask of the whole history, with `store.query_tables` or `graphstore query --tables`. $since and
// $until are instants, [since, until); $valid and $tx a coordinate.

// name: taken_back
// Who took back what in [$since, $until), and why: retractions, ends and unlinked links, newest first.
MATCH (o:Op)
WHERE $since <= o.tx AND o.tx < $until AND o.verb IN ['retract', 'end', 'unlink']
RETURN o.tx AS tx, o.verb AS verb, o.subject AS subject, o.author AS author, o.reason AS reason
ORDER BY tx DESC, subject

// name: superseded_between
// Facts that were superseded in the world in [$since, $until), as the store believes at $tx: by what, and why.
MATCH (a)-[l:SUPERSEDES]->(b)
WHERE $since <= l.valid_from AND l.valid_from < $until AND BELIEVED(l)
RETURN l.valid_from AS since, b.id AS old, a.id AS new, l.reason AS reason, l.created_by AS created_by,
  l.told AS recorded_at
ORDER BY since, old, new

// name: learned_between
// Descriptions the store first believed in [$since, $until), with how long after the fact that was, latest first.
// What a later write left of an older description is no description first believed then.
MATCH (v:Version)
WHERE $since <= v.told AND v.told < $until AND NOT v.remainder
RETURN v.ref AS ref, v.text AS text, v.author AS author, v.valid_from AS valid_from, v.valid_to AS valid_to, v.tx_from AS tx_from,
  v.told - v.valid_from AS late
ORDER BY tx_from DESC, ref

// name: most_revised
// The nodes described most often, as the store knew at $tx: how many descriptions, how many of them still believed.
MATCH (n:Node)-[:HAS_VERSION]->(v:Version)
WHERE v.tx_from <= $tx
RETURN n.id AS id, n.kind AS kind, sum(CASE WHEN BELIEVED(v) THEN 1 ELSE 0 END) AS believed_rows,
  count(DISTINCT v.number) AS descriptions
ORDER BY descriptions DESC, id
LIMIT 20

// name: links_by_kind
// How many links of each kind hold at the coordinate.
MATCH (a:Node:Event)-[l]->(b:Node:Event)
WHERE AS_OF(l)
RETURN l.kind AS kind, count(*) AS links
ORDER BY links DESC, kind

// name: most_superseding
// What replaced the most at the coordinate.
MATCH (a)-[l:SUPERSEDES]->(b)
WHERE AS_OF(l)
RETURN a.id AS id, count(*) AS replaced
ORDER BY replaced DESC, id
LIMIT 20

// name: contradictions_as_of
// Pairs that contradict each other at the coordinate.
MATCH (a)-[l:CONTRADICTS]->(b)
WHERE AS_OF(l)
RETURN LINK_COLUMNS(l)
ORDER BY valid_from, tx_from, id

// name: seen_again
// Events seen more than once at the coordinate, the most frequent first: how often, when first and when last.
MATCH (e:Event)-[:HAS_OCCURRENCE]->(o:Occurrence)
WHERE BELIEVED(e) AND HAPPENED(o) AND o.tx_from <= $tx
WITH e.id AS id, e.type AS type, e.description AS description, e.occurred_at AS told,
  CASE WHEN HAPPENED(e) THEN 1 ELSE 0 END AS once, count(*) AS repeats, min(o.occurred_at) AS earliest,
  max(o.occurred_at) AS latest
WHERE once + repeats > 1
RETURN id, type, description, once + repeats AS times, CASE WHEN told < earliest THEN told ELSE earliest END AS first_seen,
  CASE WHEN once = 1 AND told > latest THEN told ELSE latest END AS last_seen
ORDER BY times DESC, id

// name: why
// Every row of a node's history with who said it first, who wrote it and who closed it, and their reasons. They are two where a
// row is a piece that a later write left, or gave back.
MATCH (n:Node {id: $id})-[:HAS_VERSION]->(v:Version)
OPTIONAL MATCH (first:Op {id: v.told_by})
OPTIONAL MATCH (opened:Op {id: v.opened_by})
OPTIONAL MATCH (closed:Op {id: v.closed_by})
RETURN v.ref AS ref, v.valid_from AS valid_from, v.valid_to AS valid_to, v.tx_from AS tx_from, v.tx_to AS tx_to,
  v.told AS told, first.verb AS told_by, v.author AS author, first.reason AS reason,
  opened.verb AS opened_by, opened.author AS opened_author, opened.reason AS opened_reason,
  closed.verb AS closed_by, closed.author AS closed_author, closed.reason AS closed_reason
ORDER BY tx_from, valid_from
