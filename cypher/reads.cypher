// One-hop reads on the graph tables: the answers the store gives from memory, in Cypher. $id is the whole id of a node
// or event, $valid and $tx the coordinate. Each text starts from one key, and has its filter in one CASE; an id is a
// Node or an Event, so of the two halves of a UNION only one has rows. The engine now and then forgets an ORDER BY
// inside a UNION, so those texts have none: their rows are sorted by the caller, as `order` states.

// name: node_as_of
// The description of a node that holds at the coordinate: one row or none.
MATCH (n:Node {id: $id})-[:HAS_VERSION]->(v:Version)
WHERE HOP_AS_OF(v)
RETURN VERSION_COLUMNS(v)

// name: history
// Every description of a node believed at $tx, over all valid time.
MATCH (n:Node {id: $id})-[:HAS_VERSION]->(v:Version)
WHERE HOP_BELIEVED(v)
RETURN VERSION_COLUMNS(v)
ORDER BY valid_from

// name: versions
// Every description of a node the store had ever believed by $tx, with both periods.
MATCH (n:Node {id: $id})-[:HAS_VERSION]->(v:Version)
WHERE HOP_KNOWN(v)
RETURN VERSION_COLUMNS(v)
ORDER BY tx_from, valid_from

// name: links_from
// The outgoing links of a node or event at the coordinate: the links that start there, and those of symmetric kinds that
// end there, turned round. $symmetric lists these kinds: ['co_constrains', 'contrasts_with', 'contradicts', 'related_to',
// 'same_topic', 'semantic', 'failure_pattern', 'project_related', 'technique_shared'] and the store's own.
// order: valid_from, tx_from, id
MATCH (a:Node {id: $id})-[l]->(b:Node:Event)
WHERE HOP_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (a:Event {id: $id})-[l]->(b:Node:Event)
WHERE HOP_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (a:Node {id: $id})<-[l]-(b:Node:Event)
WHERE HOP_EVEN_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (a:Event {id: $id})<-[l]-(b:Node:Event)
WHERE HOP_EVEN_AS_OF(l)
RETURN LINK_COLUMNS(l)

// name: backlinks_to
// The incoming links of a node or event at the coordinate: the links that end there, and those of symmetric kinds that
// start there, turned round. $symmetric as in links_from.
// order: valid_from, tx_from, id
MATCH (b:Node {id: $id})<-[l]-(a:Node:Event)
WHERE HOP_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (b:Event {id: $id})<-[l]-(a:Node:Event)
WHERE HOP_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (b:Node {id: $id})-[l]->(a:Node:Event)
WHERE HOP_EVEN_AS_OF(l)
RETURN LINK_COLUMNS(l)
UNION ALL
MATCH (b:Event {id: $id})-[l]->(a:Node:Event)
WHERE HOP_EVEN_AS_OF(l)
RETURN LINK_COLUMNS(l)

// name: what_superseded
// What replaced a node or event, or corrected it, over the whole time line believed at $tx: one step, each successor once, by a link that holds
// at $valid, else by the next one planned, else by the last one. Ask again of each successor for the whole chain.
// order: since, recorded_at, link
MATCH (b:Node {id: $id})<-[l:SUPERSEDES|TRANSITION|CORRECTS]-(a:Node:Event)
WHERE HOP_BELIEVED(l) AND IS_STEP(l)
RETURN STEP_COLUMNS(l)
UNION ALL
MATCH (b:Event {id: $id})<-[l:SUPERSEDES|TRANSITION|CORRECTS]-(a:Node:Event)
WHERE HOP_BELIEVED(l) AND IS_STEP(l)
RETURN STEP_COLUMNS(l)

// name: causes
// What led to a node or event, up to ten links back, nearest first, by links that hold at the coordinate.
// Whether each cause began before its effect is not asked here; the store's own chains do ask.
// order: hops, id
MATCH (a:Node {id: $id})-[path:CAUSED_BY* ACYCLIC 1..10 (l, n | WHERE HOP_AS_OF(l))]->(b:Node:Event)
WHERE b.id <> $id
RETURN b.id AS id, min(length(path)) AS hops
UNION ALL
MATCH (a:Event {id: $id})-[path:CAUSED_BY* ACYCLIC 1..10 (l, n | WHERE HOP_AS_OF(l))]->(b:Node:Event)
WHERE b.id <> $id
RETURN b.id AS id, min(length(path)) AS hops

// name: effects
// What a node or event led to, up to ten links on, nearest first, by links that hold at the coordinate.
// Whether each cause began before its effect is not asked here; the store's own chains do ask.
// order: hops, id
MATCH (b:Node {id: $id})<-[path:CAUSED_BY* ACYCLIC 1..10 (l, n | WHERE HOP_AS_OF(l))]-(a:Node:Event)
WHERE a.id <> $id
RETURN a.id AS id, min(length(path)) AS hops
UNION ALL
MATCH (b:Event {id: $id})<-[path:CAUSED_BY* ACYCLIC 1..10 (l, n | WHERE HOP_AS_OF(l))]-(a:Node:Event)
WHERE a.id <> $id
RETURN a.id AS id, min(length(path)) AS hops

// macro: HOP_EVEN_AS_OF(l)
// HOP_AS_OF for links that hold in both directions.
CASE WHEN l.kind IN $symmetric AND AS_OF(l) THEN true ELSE false END

// macro: IS_STEP(l)
// Of the lifecycle links from a to b, the one that is the step.
NOT EXISTS { MATCH (b)<-[m:SUPERSEDES|TRANSITION|CORRECTS]-(a) WHERE BELIEVED(m) AND IS_BETTER_STEP(m, l) }

// macro: IS_BETTER_STEP(m, l)
// Of two of them: what holds, then what begins next, then what ended last; then the most specific one.
STEP_STATE(m) < STEP_STATE(l) OR (STEP_STATE(m) = STEP_STATE(l) AND (STEP_STATE(l) = 1 AND m.valid_from < l.valid_from
  OR STEP_STATE(l) = 2 AND m.valid_to > l.valid_to OR ((STEP_STATE(l) = 0 OR STEP_STATE(l) = 1 AND m.valid_from = l.valid_from
  OR STEP_STATE(l) = 2 AND m.valid_to = l.valid_to) AND STEP_KIND(m) < STEP_KIND(l))))

// macro: STEP_STATE(l)
// 0: it holds at $valid, 1: it is planned, 2: it is over.
CASE WHEN HELD(l) THEN 0 WHEN $valid < l.valid_from THEN 1 ELSE 2 END

// macro: STEP_KIND(l)
// Of the lifecycle links the most specific one first.
CASE l.kind WHEN 'supersedes' THEN 0 WHEN 'transition' THEN 1 ELSE 2 END

// macro: VERSION_COLUMNS(v)
// A description with the identity of its node.
n.id AS id, n.kind AS kind, n.key AS key, n.scope AS scope, v.ref AS ref, v.number AS number, v.content AS content,
  v.text AS text, v.tags AS tags, v.trigger AS trigger, v.source AS source, v.author AS author, v.told AS recorded_at, v.valid_from AS valid_from,
  v.valid_to AS valid_to, v.tx_from AS tx_from, TX_TO(v) AS tx_to

// macro: LINK_COLUMNS(l)
// A link with the ids of its ends, a and b.
l.id AS id, a.id AS source, l.kind AS kind, b.id AS target, l.reason AS reason, l.strength AS strength,
  l.confidence AS confidence, l.history AS history, l.created_by AS created_by, l.metadata AS metadata, l.author AS author, l.told AS recorded_at,
  l.valid_from AS valid_from, l.valid_to AS valid_to, l.tx_from AS tx_from, TX_TO(l) AS tx_to

// macro: STEP_COLUMNS(l)
// One step away from b: to a, by which link, why, since when, and when the store learned it.
CASE l.kind WHEN 'corrects' THEN 'corrected' ELSE 'superseded' END AS how, l.id AS link, a.id AS node,
  coalesce(l.author, l.created_by) AS who, l.reason AS why, l.valid_from AS since, l.told AS recorded_at, $valid < l.valid_from AS planned
