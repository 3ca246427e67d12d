-- The tables of `as_of.sql` over Delta tables, in words of both DuckDB and Spark. `nodes_log`, `versions_log` … are the Delta tables `nodes`, `versions` …
-- In those of versions, events and links a row as it was recorded has no tx_to; a closing has only row, tx_to, closed_by and month.

CREATE OR REPLACE TEMPORARY VIEW nodes AS SELECT id, kind, key, scope, tx_from FROM nodes_log;

CREATE OR REPLACE TEMPORARY VIEW occurrences AS SELECT event_id, occurred_at, tx_from, opened_by FROM occurrences_log;

CREATE OR REPLACE TEMPORARY VIEW operations AS SELECT id, tx, verb, subject, author, reason FROM operations_log;

CREATE OR REPLACE TEMPORARY VIEW versions AS
  SELECT r.node_id, r.ref, r.number, r.content, r.text, r.tags, r.trigger, r.source, r.author, r.told, r.told_by, r.remainder,
    r.valid_from, r.valid_to, r.tx_from, c.tx_to, r.opened_by, c.closed_by
  FROM (SELECT * FROM versions_log WHERE tx_to IS NULL) r
  LEFT JOIN (SELECT row, tx_to, closed_by FROM versions_log WHERE tx_to IS NOT NULL) c ON c.row = r.row;

CREATE OR REPLACE TEMPORARY VIEW events AS
  SELECT r.id, r.type, r.occurred_at, r.description, r.source, r.origin, r.agent, r.fingerprint, r.metadata, r.trace_id, r.span_id,
    r.parent_span_id, r.sender, r.sender_name, r.thread, r.classification, r.authorized, r.media_path, r.media_hash,
    r.tx_from, c.tx_to, r.opened_by, c.closed_by
  FROM (SELECT * FROM events_log WHERE tx_to IS NULL) r
  LEFT JOIN (SELECT row, tx_to, closed_by FROM events_log WHERE tx_to IS NOT NULL) c ON c.row = r.row;

CREATE OR REPLACE TEMPORARY VIEW links AS
  SELECT r.id, r.source, r.kind, r.target, r.reason, r.strength, r.confidence, r.history, r.created_by, r.metadata, r.author, r.told,
    r.told_by, r.remainder, r.valid_from, r.valid_to, r.tx_from, c.tx_to, r.opened_by, c.closed_by
  FROM (SELECT * FROM links_log WHERE tx_to IS NULL) r
  LEFT JOIN (SELECT row, tx_to, closed_by FROM links_log WHERE tx_to IS NOT NULL) c ON c.row = r.row;
