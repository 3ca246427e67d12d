// The graph of one view, in an engine in memory of its own: what holds at one coordinate and nothing else, so a
// query over it needs no temporal predicate. Three labels, all with id and standing:
//   Node     what stands there; content fields are columns, and content is all of it as JSON text
//   Absent   an id known there that does not stand (retracted, superseded, ended, not yet), with its last content, its fields as columns
//   Event    what has happened and is believed; superseded ones too, see standing
// What holds was said first at told, by author; remainder: the row is a piece of what was said then.
// Every kind of link is a relationship of its own. An open end is 9999-12-31 23:59:59.999999.

// name: view_node
// Node is what stands; Absent, once something reads it, what is known and does not stand, with the last that was known of it.
// __FIELDS__ are the fields of their contents. A node written with no key has key NULL. Of an event that does not stand, kind is
// its type, text its description and content the rest.
CREATE NODE TABLE `__LABEL__`(
  id STRING PRIMARY KEY,
  kind STRING,
  key STRING,
  scope STRING,
  number INT64,
  text STRING,
  tags STRING[],
  trigger STRING,
  source STRING,
  standing STRING,
  author STRING,
  told TIMESTAMP,
  remainder BOOLEAN,
  valid_from TIMESTAMP,
  valid_to TIMESTAMP,
  tx_from TIMESTAMP,
  content STRING
  __FIELDS__
)

// name: view_event
// What has happened, and how often by then. occurred_at is first_seen; status is active, resolved or superseded, NULL
// of what cannot be open; metadata is JSON text. Of a message, description is its text and authorized is true by default; authorized is NULL of all else.
// author recorded it first, at tx_from.
CREATE NODE TABLE Event(
  id STRING PRIMARY KEY,
  type STRING,
  occurred_at TIMESTAMP,
  first_seen TIMESTAMP,
  last_seen TIMESTAMP,
  count INT64,
  status STRING,
  description STRING,
  source STRING,
  origin STRING,
  agent STRING,
  fingerprint STRING,
  metadata STRING,
  trace_id STRING,
  span_id STRING,
  parent_span_id STRING,
  sender STRING,
  sender_name STRING,
  thread STRING,
  classification STRING,
  authorized BOOLEAN,
  media_path STRING,
  media_hash STRING,
  standing STRING,
  author STRING,
  tx_from TIMESTAMP
)

// name: view_link
// One kind of link: between nodes, and between the other labels that have such links; over spans of both times, between rows of
// nodes that it meets, with __FIELDS__ tx_to.
CREATE REL TABLE `__KIND__`(
  FROM Node TO Node,
  id STRING,
  kind STRING,
  reason STRING,
  strength INT64,
  confidence STRING,
  history BOOLEAN,
  created_by STRING,
  metadata STRING,
  author STRING,
  told TIMESTAMP,
  remainder BOOLEAN,
  valid_from TIMESTAMP,
  valid_to TIMESTAMP,
  tx_from TIMESTAMP
  __FIELDS__
)

// name: view_pair
// Links of that kind join these labels too.
ALTER TABLE `__KIND__` ADD IF NOT EXISTS FROM `__SOURCE__` TO `__TARGET__`

// name: period_node
// The rows of nodes over spans of both times: row is the key, as one id may have several; __FIELDS__ are what is read of them.
CREATE NODE TABLE Node(
  row STRING PRIMARY KEY,
  tx_to TIMESTAMP
  __FIELDS__
)

// macro: VIEW_BELIEVED(x)
// BELIEVED in the graph of a view, where nothing is believed no more.
x.tx_from <= $tx

// macro: VIEW_AS_OF(x)
// AS_OF in the graph of a view.
HELD(x) AND VIEW_BELIEVED(x)

// macro: VIEW_MEET(x, y)
// The period of valid time that two things of the graph share, and since when both are believed; NULL where they share none.
CASE WHEN OVERLAPS(x, y) THEN {valid_from: greatest(x.valid_from, y.valid_from), valid_to: least(x.valid_to, y.valid_to),
  tx_from: greatest(x.tx_from, y.tx_from)} ELSE NULL END
