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

-- What people and programs wrote: contents, texts, reasons, metadata. Only here: an erased body is gone from the whole ledger, and its hash in the head
-- of its line keeps the chain of digests whole.
CREATE TABLE body (
  number   INTEGER PRIMARY KEY,
  data     BLOB,                   -- canonical JSON with a salt; NULL when it was erased or evicted
  checksum INTEGER NOT NULL        -- CRC-32 of data, compared at each read
) STRICT;

-- What the store notes about this file itself.
--   rewritten   how often rows were removed from the chain (evictions without a trace): who has read it reads it again
--   attempts    rises when a failed commit is overwritten, and when a commit is made only to sync the WAL
--   unfinished  above 0 while bytes of removed bodies may still be in free pages of this file or in its WAL
--   device, inode  the file in which this ledger was made or checked last: in another one it is a copy, and is checked once when it is opened
CREATE TABLE property (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO property VALUES ('rewritten', 0), ('attempts', 0), ('unfinished', 0);

-- The same to be read by people and by SQLite's JSON functions, which take text.
CREATE VIEW transactions AS
SELECT number, strftime('%Y-%m-%dT%H:%M:%fZ', tx / 1000000.0, 'unixepoch') AS recorded_at, part, CAST(head AS TEXT) AS head FROM chain;

CREATE VIEW contents AS
SELECT number, CAST(data AS TEXT) AS data FROM body;
