// What agents did, in Cypher: the twins of graphstore.sessions.work_on, decisions, lessons, recurring_errors, lineage and
// costs. They run on a view, with `view.query` or `graphstore query STORE`, so no temporal predicate is written.
// A segment is a Node of kind 'segment'; its content is JSON, read with the engine's json_extract by paths such as
// 'content/summary'. What is extracted is JSON text still, '' where there is nothing: TEXT_OF takes its quotes off, and
// LIST_OF makes rows of a list.

// name: sessions_work
// What was done on $project (its whole path): each piece of work that began in [$since, $until), the oldest first. What
// did nothing is left out, and so is what sub-agents did for a session that is listed.
MATCH (m:Node {kind: 'segment'})
WHERE $since <= m.valid_from AND m.valid_from < $until
WITH m, json_extract(m.content, 'content/idle') AS idle, json_extract(m.content, 'source/agent') AS agent,
  json_extract(m.content, 'source/sessionId') AS session
WITH collect(CASE WHEN idle = '' AND agent = '' THEN session ELSE '' END) AS own
MATCH (n:Node {kind: 'segment'})
WHERE $since <= n.valid_from AND n.valid_from < $until
WITH n, own, json_extract(n.content, 'content/idle') AS idle, json_extract(n.content, 'source/agent') AS agent,
  json_extract(n.content, 'source/parentSessionId') AS parent
WHERE idle = '' AND (agent = '' OR parent = '' OR NOT list_contains(own, parent))
WITH n, json_extract(n.content, 'classification/project') AS project, json_extract(n.content, 'source/sessionId') AS session,
  json_extract(n.content, 'classification/type') AS type, json_extract(n.content, 'content/outcome') AS outcome,
  json_extract(n.content, 'content/summary') AS summary
WHERE TEXT_OF(project) = $project
RETURN n.id AS node, TEXT_OF(session) AS session, n.valid_from AS started_at, TEXT_OF(type) AS type,
  TEXT_OF(outcome) AS outcome, TEXT_OF(summary) AS summary
ORDER BY started_at, node

// name: sessions_decisions
// The decisions that stand, each once for a project, with when it was taken first and last, and how often, latest first.
MATCH (n:Node {kind: 'segment'})
WITH n, json_extract(n.content, 'classification/project') AS project, json_extract(n.content, 'content/keyDecisions') AS taken
UNWIND LIST_OF(taken) AS decision
WITH n, project, json_extract(decision, 'what') AS what
WHERE what <> ''
RETURN TEXT_OF(project) AS project, TEXT_OF(what) AS what, min(n.valid_from) AS first_at, max(n.valid_from) AS last_at,
  count(*) AS times
ORDER BY last_at DESC, project, what

// name: sessions_lessons
// The lessons with any of $tags (in lower case), each time one was learned: the surest first, then the latest.
MATCH (n:Node {kind: 'segment'})
UNWIND ['project', 'task', 'user', 'model', 'tool', 'skill', 'subagent'] AS level
WITH n, level, json_extract(n.content, concat('lessons/', level)) AS learned
UNWIND LIST_OF(learned) AS lesson
WITH n, level, lesson, json_extract(lesson, 'tags') AS marks
UNWIND LIST_OF(marks) AS tag
WITH n, level, lesson, tag
WHERE list_contains($tags, lower(TEXT_OF(tag)))
WITH DISTINCT n.id AS node, n.valid_from AS learned_at, level, json_extract(lesson, 'summary') AS summary,
  json_extract(lesson, 'confidence') AS confidence
RETURN node, learned_at, level, TEXT_OF(summary) AS summary, TEXT_OF(confidence) AS confidence
ORDER BY CASE confidence WHEN '"high"' THEN 0 WHEN '"medium"' THEN 1 WHEN '"low"' THEN 2 ELSE 3 END, learned_at DESC,
  summary, level

// name: sessions_recurring_errors
// The errors that came in $at_least sessions or more, those of the most sessions first, then the latest. Errors that
// differ only in ids, instants, addresses and long numbers are one: pattern has # in their place.
MATCH (n:Node {kind: 'segment'})
WITH n, json_extract(n.content, 'source/sessionId') AS session, json_extract(n.content, 'content/errorsSeen') AS met
UNWIND LIST_OF(met) AS error
WITH n, session, json_extract(error, 'type') AS type, json_extract(error, 'message') AS message
WITH n, session, TEXT_OF(type) AS type, TEXT_OF(message) AS message
WITH n, session, type, PATTERN_OF(message) AS pattern
WITH type, pattern, min(n.valid_from) AS first_at, max(n.valid_from) AS last_at, count(DISTINCT session) AS sessions
WHERE sessions >= $at_least
RETURN type, pattern, sessions, first_at, last_at
ORDER BY sessions DESC, last_at DESC, type, pattern

// name: sessions_forks
// Every fork that holds: one step of a lineage, from the session to the one forked from it. missing: the file of the
// first was not recorded. Run it again for each to get the whole lineage.
MATCH (a:Node)-[l:FORK]->(b:Node)
WITH a, b, l, CASE a.kind WHEN 'session' THEN json_extract(a.content, 'sessionId') ELSE json_extract(a.content, 'source/sessionId') END AS parent,
  json_extract(b.content, 'source/sessionId') AS child
RETURN TEXT_OF(parent) AS parent, TEXT_OF(child) AS child, a.id AS forked_at, l.valid_from AS since,
  json_extract(a.content, 'missing') = 'true' AS missing
ORDER BY parent, child

// name: sessions_costs_by_project
// US dollars and tokens, in and out, of each project, the dearest first.
MATCH (n:Node {kind: 'segment'})
WITH json_extract(n.content, 'classification/project') AS key, json_extract(n.content, 'metadata/cost') AS cost,
  json_extract(n.content, 'metadata/tokensUsed') AS tokens
RETURN TEXT_OF(key) AS key, sum(NUMBER_OF(cost)) AS cost, CAST(sum(NUMBER_OF(tokens)) AS INT64) AS tokens, count(*) AS pieces
ORDER BY cost DESC, tokens DESC, key

// name: sessions_costs_by_session
// The same of each session, what its sub-agents took included.
MATCH (n:Node {kind: 'segment'})
WITH n, json_extract(n.content, 'source/sessionId') AS session, json_extract(n.content, 'source/agent') AS agent,
  json_extract(n.content, 'source/parentSessionId') AS parent
WITH CASE WHEN agent = '' OR parent = '' THEN session ELSE parent END AS key, json_extract(n.content, 'metadata/cost') AS cost,
  json_extract(n.content, 'metadata/tokensUsed') AS tokens
RETURN TEXT_OF(key) AS key, sum(NUMBER_OF(cost)) AS cost, CAST(sum(NUMBER_OF(tokens)) AS INT64) AS tokens, count(*) AS pieces
ORDER BY cost DESC, tokens DESC, key

// name: sessions_costs_by_day
// The same of each day (UTC) on which pieces of work began, the first day first.
MATCH (n:Node {kind: 'segment'})
WITH CAST(CAST(n.valid_from AS DATE) AS STRING) AS key, json_extract(n.content, 'metadata/cost') AS cost,
  json_extract(n.content, 'metadata/tokensUsed') AS tokens
RETURN key, sum(NUMBER_OF(cost)) AS cost, CAST(sum(NUMBER_OF(tokens)) AS INT64) AS tokens, count(*) AS pieces
ORDER BY key

// name: sessions_costs_by_model
// The same of each model, as provider/model.
MATCH (n:Node {kind: 'segment'})
WITH n, json_extract(n.content, 'observations/modelsUsed') AS used
UNWIND LIST_OF(used) AS model
WITH n, json_extract(model, 'provider') AS provider, json_extract(model, 'model') AS name, json_extract(model, 'cost') AS cost,
  json_extract(model, 'tokensInput') AS went_in, json_extract(model, 'tokensOutput') AS came_out
RETURN concat(TEXT_OF(provider), '/', TEXT_OF(name)) AS key, sum(NUMBER_OF(cost)) AS cost,
  CAST(sum(NUMBER_OF(went_in) + NUMBER_OF(came_out)) AS INT64) AS tokens, count(DISTINCT n.id) AS pieces
ORDER BY cost DESC, tokens DESC, key

// macro: TEXT_OF(x)
// A JSON text without its quotes and escapes; of the control characters those are read that texts have. A doubled backslash is kept
// aside as a character that no JSON text has. The engine reads a pattern three times, and has no literal for such a character but bytes.
regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(substring(x, 2, size(x) - 2),
  '\\\\\\\\\\\\\\\\', decode(BLOB('\\x01')), 'g'), '\\\\\\\\"', '"', 'g'),
  '\\\\\\\\n', decode(BLOB('\\x0A')), 'g'), '\\\\\\\\t', decode(BLOB('\\x09')), 'g'),
  '\\\\\\\\r', decode(BLOB('\\x0D')), 'g'), '\\\\\\\\b', decode(BLOB('\\x08')), 'g'),
  '\\\\\\\\f', decode(BLOB('\\x0C')), 'g'), '\\\\\\\\u001B', decode(BLOB('\\x1B')), 'g'),
  decode(BLOB('\\x01')), '\\\\', 'g')

// macro: LIST_OF(x)
// A JSON list as a list of JSON values, to be unwound.
CAST(CASE WHEN x = '' THEN to_json([]) ELSE x END AS JSON[])

// macro: NUMBER_OF(x)
// A JSON number; 0 where there is none.
CASE WHEN x = '' THEN 0.0 ELSE CAST(x AS DOUBLE) END

// macro: PATTERN_OF(x)
// A message in which what differs each time is #: URLs, UUIDs, instants, addresses, hashes, long numbers; spaces count once.
trim(regexp_replace(regexp_replace(x, '(?i)[a-z][a-z0-9+.-]{0,20}://\\S+|\\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\\b|\\b\\d{4}-\\d\\d-\\d\\d(?:[T ]\\d\\d:\\d\\d(?::\\d\\d(?:[.,]\\d+)?)?(?:Z|[+-]\\d\\d:?\\d\\d)?)?|\\b0x[0-9a-f]+\\b|\\b(?:\\d[0-9a-f]{7,}|[a-f]\\d[0-9a-f]{6,}|[a-f]{2}\\d[0-9a-f]{5,}|[a-f]{3}\\d[0-9a-f]{4,}|[a-f]{4}\\d[0-9a-f]{3,}|[a-f]{5}\\d[0-9a-f]{2,}|[a-f]{6}\\d[0-9a-f]+|[a-f]{7,}\\d[0-9a-f]*)\\b|\\d{4,}', '#', 'g'), '\\s+', ' ', 'g'))
