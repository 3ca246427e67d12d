-- The ledger: everything a store knows, in the order in which it was recorded.
--
-- Open it for reading with any SQLite tool. Only graphstore writes it. Another process may read at any time, also while a store is open.
-- Instants are whole microseconds since 1970-01-01, UTC.
-- The version of this schema is in PRAGMA user_version.

-- One row for each line of a transaction. Most transactions have one line; a large one has several, which share their tx.
-- In a head, "ops" lists the operations, "args" what the caller gave beside what effects show, and "requires" the features that a reader must understand.
CREATE TABLE chain (
  number     INTEGER PRIMARY KEY,  -- 1, 2, 3 …, without gaps; a chain that was rewritten goes on counting
  tx         INTEGER NOT NULL,     -- the instant of the transaction
  part       INTEGER NOT NULL,     -- 0, 1, 2 … within the transaction
  more       INTEGER NOT NULL,     -- 1 when the next row belongs to the same transaction, else 0
  first_body INTEGER NOT NULL,     -- body.number of the first body of this line; the others follow it
  bodies     INTEGER NOT NULL,     -- how many bodies this line has
  digest     TEXT NOT NULL,        -- BLAKE2b (16 bytes, hexadecimal) of head
  head       BLOB NOT NULL,        -- canonical JSON: the operations, their effects, the hash of each body, and the digest of the row before ("prev")
  UNIQUE (tx, part)
) STRICT;
CREATE INDEX chain_requires ON chain (number) WHERE instr(head, CAST('"requires":["' AS BLOB)) > 0;

-- What people and programs wrote: contents, texts, reasons, metadata. Only here: an erased body is gone from the whole ledger, and its hash in the head
-- of its line keeps the chain of digests whole.
CREATE TABLE body (
  number   INTEGER PRIMARY KEY,
  data     BLOB,                   -- canonical JSON with a salt; NULL when it was erased or evicted
  checksum INTEGER NOT NULL        -- CRC-32 of data, compared at each read
) STRICT;
CREATE INDEX body_fingerprint ON body (substr(data, instr(data, CAST('"fingerprint":"' AS BLOB)) + 15, 64))  -- the first bytes of a fingerprint
WHERE instr(data, CAST('"fingerprint":"' AS BLOB)) > 0;

-- What the store notes about this file itself.
--   rewritten   how often rows were removed from the chain (evictions without a trace): who has read it reads it again
--   attempts    rises when a failed commit is overwritten, and when a commit is made only to sync the WAL
--   hiding      the row of the chain that forgot something, while contents of that or of what was forgotten later may be in other files, or in a body; else 0 or missing
--   unfinished  above 0 while bytes of removed bodies may still be in free pages of this file or in its WAL
--   device, inode  the file in which this ledger was made or checked last: in another one it is a copy, and is checked once when it is opened
CREATE TABLE property (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO property VALUES ('rewritten', 0), ('attempts', 0), ('unfinished', 0);

-- ----------------------------------------------------------------------------------------------------------------------------------------------
-- The rows: the chain arranged for reading. They are written in the transaction that writes the chain, and can be made again from it
-- (`graphstore rebuild`). An open end of a period is 253402300799999999 (the last microsecond of the year 9999).
-- Every period is half-open: [valid_from, valid_to) and [tx_from, tx_to). Numbers count from 0 in the order in which things were recorded.
--
-- A line is the trunk or one branch. The tables all_… have the rows of every line: row n of a line has the number line * 1099511627776 + n, where n counts on from
-- what the line began with. The trunk is line 0. Read the views at the end: `entity`, `period` … are the rows of the trunk.

-- Everything that was done: one row for each operation of a transaction.
CREATE TABLE all_operation (
  number  INTEGER PRIMARY KEY,
  tx      INTEGER NOT NULL,
  verb    TEXT NOT NULL,           -- add, revise, retract, link, confirm …
  subject TEXT NOT NULL,           -- the id of the thing or link, or what else it was done to
  author  TEXT,
  body    INTEGER,                 -- body.number of its reason, if one was given
  recorded INTEGER                 -- when it was recorded first, in the store that it was merged from; NULL: here, at tx
) STRICT;
CREATE INDEX operation_tx ON all_operation (tx);
CREATE INDEX operation_subject ON all_operation (subject);
CREATE INDEX confirmation ON all_operation (subject) WHERE verb = 'confirm';

-- A node or an event: what never changes of it.
CREATE TABLE all_entity (
  number   INTEGER PRIMARY KEY,
  id       TEXT NOT NULL,          -- two lines may have the same
  is_event INTEGER NOT NULL,       -- 1: an event, 0: a node
  kind     TEXT NOT NULL,          -- the kind of a node, the type of an event
  key      TEXT,                   -- its slot
  scope    TEXT NOT NULL,
  tx_from  INTEGER NOT NULL,       -- since when its id is known
  deep     INTEGER NOT NULL        -- which of its rows are in deep_row too: 1, its periods, absences and shaky rows; 2, links from it; 4, links to it; or a sum of these
) STRICT;
CREATE INDEX entity_id ON all_entity (id);
CREATE INDEX entity_slot ON all_entity (key, scope) WHERE key IS NOT NULL;
CREATE INDEX entity_kind ON all_entity (kind);

-- One description of a node, or of an event.
CREATE TABLE all_version (
  number    INTEGER PRIMARY KEY,
  entity    INTEGER NOT NULL,
  ordinal   INTEGER NOT NULL,      -- 1, 2, 3 … for each entity: its ref is {id}-v{ordinal}; 0: it came and went in one transaction
  body      INTEGER NOT NULL,      -- body.number of its content
  operation INTEGER                -- the operation that recorded it first
) STRICT;
CREATE INDEX version_ordinal ON all_version (entity, ordinal);
CREATE INDEX version_body ON all_version (body);

-- Over which valid time a version was believed, and when.
CREATE TABLE all_period (
  number     INTEGER PRIMARY KEY,
  entity     INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  opened_by  INTEGER NOT NULL,     -- operation.number
  closed_by  INTEGER               -- operation.number; NULL while it is believed
) STRICT;
CREATE INDEX period_entity ON all_period (entity, valid_from, tx_from);
CREATE INDEX period_believed ON all_period (entity, valid_from) WHERE closed_by IS NULL;

-- A typed link between two entities: what never changes of it.
CREATE TABLE all_link (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL,
  kind   TEXT NOT NULL,
  source INTEGER NOT NULL,         -- entity.number
  target INTEGER NOT NULL          -- entity.number
) STRICT;
CREATE INDEX link_id ON all_link (id);
CREATE INDEX link_source ON all_link (source, kind, target);
CREATE INDEX link_target ON all_link (target, kind);

-- What was said of a link: its attributes, of which a later claim may have others.
CREATE TABLE all_claim (
  number      INTEGER PRIMARY KEY,
  link        INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL,    -- 1, 2, 3 … for each link
  strength    INTEGER,             -- 1 to 5
  is_inferred INTEGER NOT NULL,    -- 1: inferred, 0: explicit
  created_by  TEXT NOT NULL,
  body        INTEGER,             -- body.number of its reason and metadata, if any were given
  operation   INTEGER,             -- the operation that recorded it first
  is_history  INTEGER NOT NULL     -- 1: the one end was made from the other as that was, so only what never was so counts (`history=True`); else 0
) STRICT;
CREATE INDEX claim_ordinal ON all_claim (link, ordinal);
CREATE INDEX claim_operation ON all_claim (operation);

-- Over which valid time a claim was believed, and when.
CREATE TABLE all_link_period (
  number     INTEGER PRIMARY KEY,
  link       INTEGER NOT NULL,
  claim      INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  opened_by  INTEGER NOT NULL,
  closed_by  INTEGER
) STRICT;
CREATE INDEX link_period_link ON all_link_period (link, valid_from, tx_from);

-- What was stated of an entity, and does not hold: a successor, a correction or another value of its slot sets a bound there. It comes back when that is withdrawn.
CREATE TABLE all_taken (
  number     INTEGER PRIMARY KEY,
  entity     INTEGER NOT NULL,
  link       INTEGER,              -- the supersession that took it, of an older release; NULL since
  version    INTEGER NOT NULL,     -- -1: the rest of a value of a slot that was ended; nothing holds where that value would
  valid_from INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL      -- when other times took its place; an open end while none did
) STRICT;
CREATE INDEX taken_entity ON all_taken (entity, tx_to, valid_from);

-- Operations that added a node with a given end. Without one, a value of a slot ends where the next value begins.
CREATE TABLE all_given_end (operation INTEGER PRIMARY KEY) STRICT;

-- An event that happened again.
CREATE TABLE all_occurrence (
  number      INTEGER PRIMARY KEY,
  event       INTEGER NOT NULL,    -- entity.number
  occurred_at INTEGER NOT NULL,
  tx          INTEGER NOT NULL,
  operation   INTEGER NOT NULL,
  first       INTEGER NOT NULL,    -- the earliest and the latest occurred_at of the event up to this row, and how many rows that are
  last        INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL
) STRICT;
CREATE INDEX occurrence_event ON all_occurrence (event, tx);

-- What came and went in one transaction, so that no row of `period` or `link_period` shows it: an operation removed an entity's time (`removed`), changed its
-- content over a time (`changed`; is_certain 0: an older release did not note whether the content differs), recorded a version (`told`) or a link (`linked`).
CREATE TABLE all_removed (number INTEGER PRIMARY KEY, entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE TABLE all_changed (number INTEGER PRIMARY KEY, entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL, is_certain INTEGER NOT NULL) STRICT;
CREATE TABLE all_told (number INTEGER PRIMARY KEY, entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
CREATE TABLE all_linked (number INTEGER PRIMARY KEY, link INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE INDEX removed_entity ON all_removed (entity);
CREATE INDEX changed_entity ON all_changed (entity);
CREATE INDEX told_entity ON all_told (entity);
CREATE INDEX linked_link ON all_linked (link);

-- Entities whose contents were evicted or erased: nothing of them holds at any coordinate.
CREATE TABLE all_forgotten (
  entity    INTEGER NOT NULL,
  operation INTEGER NOT NULL,      -- the last one of each line that forgot it
  word      TEXT NOT NULL,         -- evicted or erased
  PRIMARY KEY (entity, operation)
) STRICT, WITHOUT ROWID;

-- Transactions that were taken back (`undo`), each with the operation that did so.
CREATE TABLE all_undone (tx INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE INDEX undone_tx ON all_undone (tx);
CREATE INDEX undone_operation ON all_undone (operation);

-- Which invalidations a recheck covers that came with a merge: those by operations after one, up to another. One that is not here covers all before it.
CREATE TABLE all_covered (
  operation INTEGER NOT NULL,
  after     INTEGER NOT NULL,      -- below 0: from the first on
  upto      INTEGER NOT NULL,
  PRIMARY KEY (operation, after)
) STRICT, WITHOUT ROWID;

-- The versions that came with a branch when it was merged (or '', the trunk, when it was pulled), by their numbers there.
CREATE TABLE all_alias (
  line    INTEGER NOT NULL,        -- on which this was noted
  branch  TEXT NOT NULL,
  entity  INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,        -- there; here it is version.ordinal
  version INTEGER NOT NULL,        -- version.number
  PRIMARY KEY (line, branch, entity, ordinal)
) STRICT, WITHOUT ROWID;

-- Kinds of link that this store has defined or promoted, and its settings, as JSON, in the order in which they were recorded.
CREATE TABLE all_defined (number INTEGER PRIMARY KEY, tx INTEGER NOT NULL, kind TEXT NOT NULL) STRICT;
CREATE TABLE all_setting (number INTEGER PRIMARY KEY, tx INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL) STRICT;
CREATE INDEX defined_resting ON all_defined (number) WHERE instr(kind, '"rests":["') > 0;
CREATE INDEX setting_name ON all_setting (name, number);

-- How an entity stands where none of its periods holds, or though one does (an event that was superseded): superseded, ended or retracted. Where there is
-- no row, it has not begun (not_yet). What was superseded whole is superseded before that too.
CREATE TABLE all_absence (
  entity     INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  standing   TEXT NOT NULL,
  PRIMARY KEY (entity, valid_from, tx_from, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX absence_open ON all_absence (entity, tx_to, valid_from, valid_to, standing, line) WHERE tx_to = 253402300799999999;

-- Where an entity stands and is shaky: something that it rests on was invalidated, and it was not rechecked since. Where it has ended (see `absence`), a row states
-- that what rests on it is reached by that.
CREATE TABLE all_shaky (
  entity     INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  line       INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  PRIMARY KEY (entity, valid_from, tx_from, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX shaky_open ON all_shaky (entity, tx_to, valid_from, valid_to, line) WHERE tx_to = 253402300799999999;

-- Fields of contents by which things are found. Nothing is here of what was forgotten, but the trace of an evicted event.

-- The tags of a node's version.
CREATE TABLE all_tag (
  tag     TEXT NOT NULL,           -- as topics are compared: lower case, with _ between words
  version INTEGER NOT NULL,        -- version.number
  PRIMARY KEY (tag, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_version ON all_tag (version);

-- Of which scope an event is: the text "scope" in the metadata that it was first recorded with. A node has its own in entity.scope.
CREATE TABLE all_event_scope (
  entity INTEGER PRIMARY KEY,      -- entity.number
  scope  TEXT NOT NULL
) STRICT;

-- A message, or an event of a trace, over one of its periods. Its type is entity.kind.
CREATE TABLE all_message (
  period         INTEGER PRIMARY KEY,  -- period.number
  entity         INTEGER NOT NULL,     -- entity.number
  at             INTEGER NOT NULL,     -- when it happened: period.valid_from
  authorized     INTEGER,              -- 1 or 0; NULL: it is no message, or was evicted
  sender         TEXT,
  thread         TEXT,
  classification TEXT,
  trace          TEXT
) STRICT;
CREATE INDEX message_at ON all_message (at) WHERE authorized IS NOT NULL;
CREATE INDEX message_sender ON all_message (sender, at) WHERE sender IS NOT NULL;
CREATE INDEX message_thread ON all_message (thread, at) WHERE thread IS NOT NULL;
CREATE INDEX message_trace ON all_message (trace, at) WHERE trace IS NOT NULL;

-- ----------------------------------------------------------------------------------------------------------------------------------------------
-- The branches, deleted ones too, numbered from 1 in the order in which they were made.
CREATE TABLE line (
  number INTEGER PRIMARY KEY,
  name   TEXT NOT NULL,
  parent INTEGER NOT NULL,         -- line.number of the branch that it began from; 0: the trunk
  fork   INTEGER NOT NULL,         -- it began with what its parent knew at that instant
  marks  TEXT NOT NULL             -- a JSON object: of each table the n of its own first row
) STRICT;
CREATE INDEX line_name ON line (name, number);

-- What a branch closed of the rows that it began with. Those rows stay as they are.
CREATE TABLE closed (line INTEGER NOT NULL, period INTEGER NOT NULL, tx INTEGER NOT NULL, operation INTEGER NOT NULL, PRIMARY KEY (line, period)) STRICT, WITHOUT ROWID;
CREATE TABLE link_closed (line INTEGER NOT NULL, period INTEGER NOT NULL, tx INTEGER NOT NULL, operation INTEGER NOT NULL, PRIMARY KEY (line, period)) STRICT, WITHOUT ROWID;
CREATE TABLE taken_closed (line INTEGER NOT NULL, taken INTEGER NOT NULL, tx INTEGER NOT NULL, PRIMARY KEY (line, taken)) STRICT, WITHOUT ROWID;
CREATE TABLE absence_closed (
  line INTEGER NOT NULL, entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, tx_from INTEGER NOT NULL, tx INTEGER NOT NULL,
  PRIMARY KEY (line, entity, valid_from, tx_from)
) STRICT, WITHOUT ROWID;
CREATE TABLE shaky_closed (
  line INTEGER NOT NULL, entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, tx_from INTEGER NOT NULL, tx INTEGER NOT NULL,
  PRIMARY KEY (line, entity, valid_from, tx_from)
) STRICT, WITHOUT ROWID;

-- ----------------------------------------------------------------------------------------------------------------------------------------------
-- Deep pasts. An entity may have thousands of periods, absences or shaky rows, or of periods of its links. The indexes above find the one that holds at a coordinate
-- by looking at the others. So where the trunk has more than 64 of one sort, they are here as well, and a search looks at few rows.
--
-- The instants of tx are divided as by a binary tree. A closed row lies at the highest node that divides [tx_from, tx_to): step is the height of the node, and node its
-- place in that height. An instant has one node above it at each height: (2 * :tx >> step | 1). A row that is still believed has step 63 and node 1.
-- All rows of a node are believed at one same instant. So neither periods nor absences nor shaky rows of an entity overlap there in valid time: only the one with the
-- last valid_from up to :valid can hold there. Links may overlap; those whose lengths of valid time are about the same are together.
CREATE TABLE deep_row (
  owner      INTEGER NOT NULL,     -- entity.number
  sort       TEXT NOT NULL,        -- absence, flag (a shaky row), period; 'source ' or 'target ' and the kind of the link of which the owner is that end
  step       INTEGER NOT NULL,
  length     INTEGER NOT NULL,     -- of a link: the smallest power of two above valid_to - valid_from; else 0
  node       INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  row        INTEGER NOT NULL,     -- period.number or link_period.number; of an absence and a shaky row its tx_from
  valid_to   INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  PRIMARY KEY (owner, sort, step, length, node, valid_from, row)
) STRICT, WITHOUT ROWID;

-- Which steps and lengths the rows of an entity have, or once had.
CREATE TABLE deep_group (
  owner  INTEGER NOT NULL,
  sort   TEXT NOT NULL,
  step   INTEGER NOT NULL,
  length INTEGER NOT NULL,
  PRIMARY KEY (owner, sort, step DESC, length)  -- what is believed comes first
) STRICT, WITHOUT ROWID;

CREATE VIEW deep_past AS
SELECT g.owner, g.sort, g.step, g.length, d.node, d.valid_from, d.row, d.valid_to, d.tx_from, d.tx_to
FROM deep_group g
CROSS JOIN deep_row d ON d.owner = g.owner AND d.sort = +g.sort AND d.step = g.step AND d.length = g.length;

-- Full-text search: the terms of each version's text (keys, texts, contents and tags; descriptions of events), as `graphstore.values.words` makes them.
-- What a forgotten entity said is in none of these tables. The trunk's versions 0 to n - 1 are in segments, which hold whole blocks of 1,024 or 16,384; its others, and
-- all that were recorded on branches, are in `fresh`. The terms of all lines are made for the languages that the trunk has.

-- How the terms were made: rules, version of the stemmer and of Unicode, languages. One row, once there is a version; where it changes, all terms are made again.
CREATE TABLE analyzer (identity TEXT NOT NULL) STRICT;

-- The terms of the versions that are in no segment, one row for each.
CREATE TABLE fresh (
  version INTEGER PRIMARY KEY,
  terms   BLOB NOT NULL            -- in the order of the text, each as often as it is there, as UTF-8 with a newline between two
) STRICT;

-- The versions from `first` to `last`, sealed.
CREATE TABLE segment (
  first   INTEGER PRIMARY KEY,
  last    INTEGER NOT NULL,
  lengths BLOB NOT NULL            -- how many terms each version has: little-endian numbers of 4 bytes
) STRICT;

-- Which versions of a segment have a term, in order (numbers of 4 bytes), and how often each has it (of 1 byte, or all of 4 where one is above 255).
CREATE TABLE posting (
  segment  INTEGER NOT NULL,       -- segment.first
  term     BLOB NOT NULL,
  versions BLOB NOT NULL,
  times    BLOB NOT NULL,
  PRIMARY KEY (segment, term)
) STRICT, WITHOUT ROWID;

-- What texts mean to embedders, a row for each thing that says a text. Written when something is searched by its meaning, in transactions of their own,
-- and made of the texts again where it is missing: it is no part of what `graphstore verify` and `graphstore rebuild` compare and make. What a forgotten
-- entity said leaves in the transaction that removes its bodies.
CREATE TABLE vector (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order in which they were added: no number is used again
  model  TEXT NOT NULL,            -- the name of the embedder's model
  id     TEXT NOT NULL,            -- entity.id
  text   BLOB NOT NULL,            -- BLAKE2b (16 bytes) of the text
  data   BLOB NOT NULL,            -- a vector of length 1: little-endian numbers of 4 bytes; then 3 bytes of the CRC-32 of id, text and these (none: of an earlier release)
  UNIQUE (id, text, model)
) STRICT;

-- How often things were looked up before a store was closed, until it is next opened for writing. Its first commit then has it as an operation `touch`.
CREATE TABLE lookup (
  id    TEXT PRIMARY KEY,          -- entity.id
  times INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What answers of interfaces contained, where an interface was told to record it (`record_reads`): one row for each answer. It is written after the answer, in
-- transactions of its own, and removed after some days. It is no part of the chain: `graphstore verify` and `graphstore export` leave it out, `graphstore rebuild`
-- keeps it.
CREATE TABLE reading (
  number   INTEGER PRIMARY KEY,
  at       INTEGER NOT NULL,       -- when it was answered
  agent    TEXT NOT NULL,          -- the name of the token, or the name that the client gave
  is_token INTEGER NOT NULL,       -- 1: the name is that of a token
  scopes   TEXT NOT NULL,          -- a JSON list of the scopes of that token; '': everything
  branch   TEXT NOT NULL,          -- the name of the branch that was asked; '': the trunk
  call     TEXT NOT NULL,          -- the call or tool
  valid    INTEGER NOT NULL,       -- the coordinate of the answer
  tx       INTEGER NOT NULL,
  known    INTEGER NOT NULL        -- what was done after this tx was not known to the answer
) STRICT;
CREATE INDEX reading_agent ON reading (agent);
CREATE INDEX reading_at ON reading (at);

-- Which nodes and events an answer contained. Nothing is here of what was forgotten.
CREATE TABLE read_thing (
  id         TEXT NOT NULL,        -- entity.id
  reading    INTEGER NOT NULL,     -- reading.number
  is_noticed INTEGER NOT NULL,     -- 1: the agent was notified that this answer no longer holds
  PRIMARY KEY (id, reading)
) STRICT, WITHOUT ROWID;
CREATE INDEX read_thing_reading ON read_thing (reading);

-- The rows of the trunk. The + keeps SQLite from searching by the number where an index finds fewer rows.
CREATE VIEW operation AS SELECT * FROM all_operation WHERE +number < 1099511627776;
CREATE VIEW done AS SELECT * FROM all_operation WHERE +number < 1099511627776;  -- for lists of what was done
CREATE VIEW entity AS SELECT * FROM all_entity WHERE +number < 1099511627776;
CREATE VIEW version AS SELECT * FROM all_version WHERE +number < 1099511627776;
CREATE VIEW period AS SELECT * FROM all_period WHERE +number < 1099511627776;
CREATE VIEW link AS SELECT * FROM all_link WHERE +number < 1099511627776;
CREATE VIEW claim AS SELECT * FROM all_claim WHERE +number < 1099511627776;
CREATE VIEW link_period AS SELECT * FROM all_link_period WHERE +number < 1099511627776;
CREATE VIEW taken AS SELECT number, entity, link, version, valid_from, valid_to FROM all_taken WHERE +number < 1099511627776 AND tx_to = 253402300799999999;
CREATE VIEW taken_ever AS SELECT number, entity, version, valid_from, valid_to, tx_from, tx_to FROM all_taken WHERE +number < 1099511627776;
CREATE VIEW given_end AS SELECT operation FROM all_given_end WHERE +operation < 1099511627776;
CREATE VIEW occurrence AS SELECT * FROM all_occurrence WHERE +number < 1099511627776;
CREATE VIEW removed AS SELECT * FROM all_removed WHERE +number < 1099511627776;
CREATE VIEW changed AS SELECT * FROM all_changed WHERE +number < 1099511627776;
CREATE VIEW told AS SELECT * FROM all_told WHERE +number < 1099511627776;
CREATE VIEW linked AS SELECT * FROM all_linked WHERE +number < 1099511627776;
CREATE VIEW forgotten AS SELECT * FROM all_forgotten WHERE +operation < 1099511627776;
CREATE VIEW undone AS SELECT * FROM all_undone WHERE +operation < 1099511627776;
CREATE VIEW covered AS SELECT * FROM all_covered WHERE +operation < 1099511627776;
CREATE VIEW alias AS SELECT branch, entity, ordinal, version FROM all_alias WHERE line = 0;
CREATE VIEW defined AS SELECT * FROM all_defined WHERE +number < 1099511627776;
CREATE VIEW setting AS SELECT * FROM all_setting WHERE +number < 1099511627776;
CREATE VIEW tag AS SELECT * FROM all_tag WHERE +version < 1099511627776;
CREATE VIEW message AS SELECT * FROM all_message WHERE +period < 1099511627776;
CREATE VIEW absence AS SELECT entity, valid_from, tx_from, valid_to, tx_to, standing FROM all_absence WHERE +line = 0;
CREATE VIEW shaky AS SELECT entity, valid_from, tx_from, valid_to, tx_to FROM all_shaky WHERE +line = 0;

-- The number that the next row of each table gets. One row: with a table in FROM, SQLite finds only the columns that are asked for.
CREATE VIEW next_number AS SELECT
  (SELECT coalesce(max(number) + 1, 0) FROM all_operation WHERE number < 1099511627776) AS operation,
  (SELECT coalesce(max(number) + 1, 0) FROM all_entity WHERE number < 1099511627776) AS entity,
  (SELECT coalesce(max(number) + 1, 0) FROM all_version WHERE number < 1099511627776) AS version,
  (SELECT coalesce(max(number) + 1, 0) FROM all_period WHERE number < 1099511627776) AS period,
  (SELECT coalesce(max(number) + 1, 0) FROM all_link WHERE number < 1099511627776) AS link,
  (SELECT coalesce(max(number) + 1, 0) FROM all_claim WHERE number < 1099511627776) AS claim,
  (SELECT coalesce(max(number) + 1, 0) FROM all_link_period WHERE number < 1099511627776) AS link_period,
  (SELECT coalesce(max(number) + 1, 0) FROM all_taken WHERE number < 1099511627776) AS taken,
  (SELECT coalesce(max(number) + 1, 0) FROM all_occurrence WHERE number < 1099511627776) AS occurrence,
  (SELECT coalesce(max(number) + 1, 0) FROM all_removed WHERE number < 1099511627776) AS removed,
  (SELECT coalesce(max(number) + 1, 0) FROM all_changed WHERE number < 1099511627776) AS changed,
  (SELECT coalesce(max(number) + 1, 0) FROM all_told WHERE number < 1099511627776) AS told,
  (SELECT coalesce(max(number) + 1, 0) FROM all_linked WHERE number < 1099511627776) AS linked,
  (SELECT coalesce(max(number) + 1, 0) FROM all_defined WHERE number < 1099511627776) AS defined,
  (SELECT coalesce(max(number) + 1, 0) FROM all_setting WHERE number < 1099511627776) AS setting
FROM property WHERE name = 'rewritten';

-- The same to be read by people and by SQLite's JSON functions, which take text.
CREATE VIEW transactions AS
SELECT number, strftime('%Y-%m-%dT%H:%M:%fZ', tx / 1000000.0, 'unixepoch') AS recorded_at, part, CAST(head AS TEXT) AS head FROM chain;

CREATE VIEW contents AS
SELECT number, CAST(data AS TEXT) AS data FROM body;
