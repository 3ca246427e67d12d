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
--   hiding      the row of the chain that forgot something last, while contents of forgotten things may still be in body; else 0 or missing
--   unfinished  above 0 while bytes of removed bodies may still be in free pages of this file or in its WAL
--   device, inode  the file in which this ledger was made or checked last: in another one it is a copy, and is checked once when it is opened
CREATE TABLE property (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO property VALUES ('rewritten', 0), ('attempts', 0), ('unfinished', 0);

-- ----------------------------------------------------------------------------------------------------------------------------------------------
-- The rows: the chain of the trunk arranged for reading. They are written in the transaction that writes the chain, and can be made again from it
-- (`graphstore rebuild`). An open end of a period is 253402300799999999 (the last microsecond of the year 9999).
-- Every period is half-open: [valid_from, valid_to) and [tx_from, tx_to). Numbers count from 0 in the order in which things were recorded.

-- Everything that was done: one row for each operation of a transaction.
CREATE TABLE operation (
  number  INTEGER PRIMARY KEY,
  tx      INTEGER NOT NULL,
  verb    TEXT NOT NULL,           -- add, revise, retract, link, confirm …
  subject TEXT NOT NULL,           -- the id of the thing or link, or what else it was done to
  author  TEXT,
  body    INTEGER                  -- body.number of its reason, if one was given
) STRICT;
CREATE INDEX operation_tx ON operation (tx);
CREATE INDEX operation_subject ON operation (subject);
CREATE INDEX confirmation ON operation (subject) WHERE verb = 'confirm';

-- A node or an event: what never changes of it.
CREATE TABLE entity (
  number   INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  is_event INTEGER NOT NULL,       -- 1: an event, 0: a node
  kind     TEXT NOT NULL,          -- the kind of a node, the type of an event
  key      TEXT,                   -- its slot
  scope    TEXT NOT NULL,
  tx_from  INTEGER NOT NULL        -- since when its id is known
) STRICT;
CREATE INDEX entity_slot ON entity (key, scope) WHERE key IS NOT NULL;
CREATE INDEX entity_kind ON entity (kind);

-- One description of a node, or of an event.
CREATE TABLE version (
  number    INTEGER PRIMARY KEY,
  entity    INTEGER NOT NULL,
  ordinal   INTEGER NOT NULL,      -- 1, 2, 3 … for each entity: its ref is {id}-v{ordinal}; 0: it came and went in one transaction
  body      INTEGER NOT NULL,      -- body.number of its content
  operation INTEGER                -- the operation that recorded it first
) STRICT;
CREATE INDEX version_ordinal ON version (entity, ordinal);
CREATE INDEX version_body ON version (body);

-- Over which valid time a version was believed, and when.
CREATE TABLE period (
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
CREATE INDEX period_entity ON period (entity, valid_from, tx_from);
CREATE INDEX period_believed ON period (entity, valid_from) WHERE closed_by IS NULL;

-- A typed link between two entities: what never changes of it.
CREATE TABLE link (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE,
  kind   TEXT NOT NULL,
  source INTEGER NOT NULL,         -- entity.number
  target INTEGER NOT NULL          -- entity.number
) STRICT;
CREATE INDEX link_source ON link (source, kind);
CREATE INDEX link_target ON link (target, kind);

-- What was said of a link: its attributes, of which a later claim may have others.
CREATE TABLE claim (
  number      INTEGER PRIMARY KEY,
  link        INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL,    -- 1, 2, 3 … for each link
  strength    INTEGER,             -- 1 to 5
  is_inferred INTEGER NOT NULL,    -- 1: inferred, 0: explicit
  created_by  TEXT NOT NULL,
  body        INTEGER,             -- body.number of its reason and metadata, if any were given
  operation   INTEGER              -- the operation that recorded it first
) STRICT;
CREATE INDEX claim_ordinal ON claim (link, ordinal);

-- Over which valid time a claim was believed, and when.
CREATE TABLE link_period (
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
CREATE INDEX link_period_link ON link_period (link, valid_from, tx_from);

-- What a supersession took from its target: those times come back when it is withdrawn.
CREATE TABLE taken (
  link       INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL
) STRICT;
CREATE INDEX taken_link ON taken (link);

-- An event that happened again.
CREATE TABLE occurrence (
  number      INTEGER PRIMARY KEY,
  event       INTEGER NOT NULL,    -- entity.number
  occurred_at INTEGER NOT NULL,
  tx          INTEGER NOT NULL,
  operation   INTEGER NOT NULL,
  first       INTEGER NOT NULL,    -- the earliest and the latest occurred_at of the event up to this row, and how many rows that are
  last        INTEGER NOT NULL,
  ordinal     INTEGER NOT NULL
) STRICT;
CREATE INDEX occurrence_event ON occurrence (event, tx);

-- What came and went in one transaction, so that no row of `period` or `link_period` shows it: an operation removed an entity's time (`removed`), changed its
-- content over a time (`changed`; is_certain 0: an older release did not note whether the content differs), recorded a version (`told`) or a link (`linked`).
CREATE TABLE removed (entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE TABLE changed (entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL, is_certain INTEGER NOT NULL) STRICT;
CREATE TABLE told (entity INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
CREATE TABLE linked (link INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE INDEX removed_entity ON removed (entity);
CREATE INDEX changed_entity ON changed (entity);
CREATE INDEX told_entity ON told (entity);
CREATE INDEX linked_link ON linked (link);

-- Entities whose contents were evicted or erased: nothing of them holds at any coordinate.
CREATE TABLE forgotten (
  entity    INTEGER PRIMARY KEY,
  word      TEXT NOT NULL,         -- evicted or erased
  operation INTEGER NOT NULL
) STRICT;

-- Transactions that were taken back (`undo`), each with the operation that did so.
CREATE TABLE undone (tx INTEGER NOT NULL, operation INTEGER NOT NULL) STRICT;
CREATE INDEX undone_tx ON undone (tx);

-- Kinds of link that this store has defined or promoted, and its settings, as JSON, in the order in which they were recorded.
CREATE TABLE defined (number INTEGER PRIMARY KEY, tx INTEGER NOT NULL, kind TEXT NOT NULL) STRICT;
CREATE TABLE setting (number INTEGER PRIMARY KEY, tx INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL) STRICT;
CREATE INDEX defined_resting ON defined (number) WHERE instr(kind, '"rests":["') > 0;
CREATE INDEX setting_name ON setting (name, number);

-- How an entity stands where none of its periods holds, or though one does (an event that was superseded): superseded, ended or retracted. Where there is
-- no row, it has not begun (not_yet).
CREATE TABLE absence (
  entity     INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  standing   TEXT NOT NULL,
  PRIMARY KEY (entity, valid_from, tx_from)
) STRICT, WITHOUT ROWID;
CREATE INDEX absence_open ON absence (entity, tx_to, valid_from, valid_to, standing) WHERE tx_to = 253402300799999999;

-- Where an entity stands and is shaky: something that it rests on was invalidated, and nobody has looked at it since.
CREATE TABLE shaky (
  entity     INTEGER NOT NULL,
  valid_from INTEGER NOT NULL,
  tx_from    INTEGER NOT NULL,
  valid_to   INTEGER NOT NULL,
  tx_to      INTEGER NOT NULL,
  PRIMARY KEY (entity, valid_from, tx_from)
) STRICT, WITHOUT ROWID;
CREATE INDEX shaky_open ON shaky (entity, tx_to, valid_from, valid_to) WHERE tx_to = 253402300799999999;

-- Full-text search: the terms of each version's text (keys, texts, contents and tags; descriptions of events), as `graphstore.values.words` makes them.
-- What a forgotten entity said is in none of these tables. Versions 0 to n - 1 are in segments, which hold whole blocks of 1,024 or 16,384; the others are in `fresh`.

-- How the terms were made: rules, version of the stemmer and of Unicode, languages. One row, once there is a version; where it changes, all terms are made again.
CREATE TABLE analyzer (identity TEXT NOT NULL) STRICT;

-- The terms of the versions recorded last, one row for each.
CREATE TABLE fresh (
  version INTEGER PRIMARY KEY,
  terms   BLOB NOT NULL            -- in the order of the text, each as often as it is there, as UTF-8 with a newline between two; of a message of a thread
                                   -- the first one is a mark (a NUL and the thread as JSON), which is not counted as a term
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

-- The same to be read by people and by SQLite's JSON functions, which take text.
CREATE VIEW transactions AS
SELECT number, strftime('%Y-%m-%dT%H:%M:%fZ', tx / 1000000.0, 'unixepoch') AS recorded_at, part, CAST(head AS TEXT) AS head FROM chain;

CREATE VIEW contents AS
SELECT number, CAST(data AS TEXT) AS data FROM body;
