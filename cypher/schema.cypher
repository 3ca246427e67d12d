// The graph tables: the contents of the journal, for Cypher. They are a copy and can be made anew at any time;
// nothing is ever deleted here, and the only columns that change are tx_to and closed_by.
//
// Instants are TIMESTAMP in UTC. Every row of Version, Event and the link tables has periods, half-open [from, to):
//   valid_from, valid_to   when it was true in the world (an event has occurred_at instead: it stands from then on)
//   tx_from, tx_to         when the store believed it
// An end that is still open is 9999-12-31 23:59:59.999999, so plain comparisons work:
//   what we believe today    WHERE v.tx_to = timestamp('9999-12-31 23:59:59.999999')
//   what was true at $valid, as known at $tx
//                            WHERE v.valid_from <= $valid AND $valid < v.valid_to AND v.tx_from <= $tx AND $tx < v.tx_to
// `row` names one row of one table and never changes. opened_by and closed_by are ids of Op: who did it, and why.
// A write closes the rows it touches and writes back the pieces that it leaves. What a row says was said first at told, by
// author, in the operation told_by (an id of Op); remainder is true of a piece that was left or given back later.
//   what was said first in June
//                            WHERE v.told >= timestamp('2026-06-01') AND v.told < timestamp('2026-07-01') AND NOT v.remainder

// name: schema
// The tables every store has.

// Something known. Its descriptions are in Version; key is its slot, such as "auth" ("" in scope: everywhere).
// tx_from is when it was first recorded.
CREATE NODE TABLE Node(
  id STRING PRIMARY KEY,
  kind STRING,
  key STRING,
  scope STRING,
  tx_from TIMESTAMP
);

// One description of a node over one period. number counts the node's descriptions, ref is {id}-v{number}; when a
// period is split the pieces keep both, so one ref can have several rows. content is JSON text.
CREATE NODE TABLE Version(
  row STRING PRIMARY KEY,
  node_id STRING,
  ref STRING,
  number INT64,
  content STRING,
  text STRING,
  tags STRING[],
  trigger STRING,
  source STRING,
  author STRING,
  told TIMESTAMP,
  told_by STRING,
  remainder BOOLEAN,
  valid_from TIMESTAMP,
  valid_to TIMESTAMP,
  tx_from TIMESTAMP,
  tx_to TIMESTAMP,
  opened_by STRING,
  closed_by STRING
);

CREATE REL TABLE HAS_VERSION(FROM Node TO Version);

// Something that happened. Never revised. occurred_at is the instant that was recorded first, see Occurrence; metadata is
// JSON text. Of a message, description is its text and authorized is true by default; authorized is NULL of all else.
CREATE NODE TABLE Event(
  id STRING PRIMARY KEY,
  type STRING,
  occurred_at TIMESTAMP,
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
  tx_from TIMESTAMP,
  tx_to TIMESTAMP,
  opened_by STRING,
  closed_by STRING
);

// A repeated event: each occurrence after the one recorded first. That one is occurred_at of the event itself,
// as first recorded; an occurrence recorded later may be earlier. opened_by is the operation that recorded it.
//   what had happened by $valid, as known at $tx
//                            WHERE o.occurred_at <= $valid AND o.tx_from <= $tx
CREATE NODE TABLE Occurrence(
  row STRING PRIMARY KEY,
  event_id STRING,
  occurred_at TIMESTAMP,
  tx_from TIMESTAMP,
  opened_by STRING
);

CREATE REL TABLE HAS_OCCURRENCE(FROM Event TO Occurrence);

// Every operation: what was done, to what, by whom, why. subject is the id of a node, an event or a link.
CREATE NODE TABLE Op(
  id STRING PRIMARY KEY,
  tx TIMESTAMP,
  verb STRING,
  subject STRING,
  author STRING,
  reason STRING
);

// name: link_table
// The table of one kind of link, made when the first link of that kind is written. The dozen kinds people write in
// Cypher have their own (SUPERSEDES, CAUSED_BY, CONTRADICTS, …); all others share LINK, distinguished by its column kind.
// A link reads as a sentence: (source)-[:KIND]->(target). id names the link; a link whose period was split, or whose
// attributes changed, has several rows with one id. A pair of labels costs nothing until it has rows (13 tables of four
// pairs, one pair used: 350 MB; of one pair: 347 MB; all four used: 666 MB).
CREATE REL TABLE IF NOT EXISTS `__KIND__`(
  FROM Node TO Node,
  FROM Node TO Event,
  FROM Event TO Node,
  FROM Event TO Event,
  row STRING,
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
  told_by STRING,
  remainder BOOLEAN,
  valid_from TIMESTAMP,
  valid_to TIMESTAMP,
  tx_from TIMESTAMP,
  tx_to TIMESTAMP,
  opened_by STRING,
  closed_by STRING
);
