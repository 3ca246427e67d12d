"""The ledger of a store: a chain of transactions linked by digests, kept as rows of SQLite, and the bodies that they name.

A transaction: `take_turn` → decide → `append` → `commit` → `leave_turn`. A commit is durable when it returns. Readers see whole transactions and never wait.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from zlib import crc32

import orjson

from graphstore.errors import EngineError, LockedError, WriteConflictError
from graphstore.ledger import forgotten_bodies, row_writing
from graphstore.ledger import standings as standing_rows
from graphstore.ledger.chain import (
    FORGETTING,
    FORGOTTEN,
    GENESIS,
    RETENTION,
    Verbatim,
    dumps,
    encoded,
    hashed,
    refuse_unknown,
)
from graphstore.ledger.checking import make_rows_anew, upgrade_schema
from graphstore.ledger.damage import CHANGED, MISSING, damage, damaged_body
from graphstore.ledger.database import Database, RowReader, SnapshotBlock
from graphstore.ledger.statements import read
from graphstore.ledger.word_rows import WordRows
from graphstore.values.period import BEGINNING, Instant, instant, iso, moment

if TYPE_CHECKING:
    from graphstore.ledger.row_writing import KnownNumbers, RowWriter
    from graphstore.ledger.standings import StandingWriter

_FINISH_EVERY = 1.0  # seconds between two attempts to finish a removal
_PAGE = 1_000  # rows of the chain that are fetched per statement
_REQUIRING = """
SELECT number, head FROM chain WHERE instr(head, CAST('"requires":["' AS BLOB)) > 0
"""
_LAST_AND_KINDS = f"""
SELECT coalesce((SELECT tx FROM chain ORDER BY number DESC LIMIT 1), 0), (SELECT defined & 1099511627775 FROM next_number), EXISTS ({_REQUIRING})
"""
_KINDS = "SELECT kind FROM defined WHERE number >= ? ORDER BY number"
_ENDS = """
SELECT coalesce((SELECT tx FROM chain ORDER BY number DESC LIMIT 1), 0), coalesce((SELECT max(number) FROM chain), 0),
       (SELECT tx FROM operation ORDER BY tx DESC LIMIT 1)
"""
_FORGOTTEN_FROM = f"""
SELECT coalesce((SELECT c.tx FROM chain c WHERE c.number = p.value), {BEGINNING}) FROM property p WHERE p.name = 'hiding' AND p.value > 0
"""
_DELETED_BRANCHES = """
SELECT o.subject, (SELECT b.tx FROM operation b WHERE b.subject = o.subject AND b.verb = 'branch' AND b.number < o.number ORDER BY b.number DESC LIMIT 1)
FROM (SELECT DISTINCT name FROM line) l CROSS JOIN operation o ON o.subject = l.name AND o.verb = 'delete_branch'
"""
_ADD_LOOKUPS = """
INSERT INTO lookup SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM entity WHERE id = ?1)
ON CONFLICT (id) DO UPDATE SET times = lookup.times + excluded.times
"""
_HIDING = "INSERT INTO property VALUES ('hiding', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE property.value = 0"
_REMOVED_ALL = "UPDATE property SET value = 0 WHERE name = 'hiding'"
_INTERVAL = 0.05  # seconds between syncs, with durability="interval"
_BEFORE_APPENDING, _TAKE_BACK, _KEEP = "SAVEPOINT appended", "ROLLBACK TO appended", "RELEASE appended"
_BEFORE_SHOWING, _HIDE, _HIDDEN = "SAVEPOINT shown", "ROLLBACK TO shown", "RELEASE shown"
_ADD = "INSERT INTO chain VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_IDS = "SELECT e.id FROM json_each(?) j CROSS JOIN entity e ON e.number = j.value ORDER BY e.id"
_ADD_BODY = "INSERT INTO body VALUES (?, ?, ?)"
_LAST = "SELECT number, digest, first_body + bodies, tx FROM chain ORDER BY number DESC LIMIT 1"
_PAGE_AFTER = (
    "SELECT number, first_body, bodies, digest, head FROM chain WHERE number > ? ORDER BY number LIMIT ?"
)
_BODIES = "SELECT number, data FROM body WHERE number BETWEEN ? AND ?"
_REMOVED = (
    "INSERT INTO property VALUES ('removals', 1) ON CONFLICT (name) DO UPDATE SET value = property.value + 1"
)
_STATE = f"""
SELECT c.number, c.digest, c.first_body + c.bodies, c.tx, r.value, u.value,
  EXISTS (SELECT 1 FROM setting WHERE name = '{RETENTION}'), EXISTS ({_REQUIRING})
FROM property r CROSS JOIN property u LEFT JOIN (SELECT * FROM chain ORDER BY number DESC LIMIT 1) c
WHERE r.name = 'rewritten' AND u.name = 'unfinished'
"""
_BODY = "SELECT data, checksum FROM body WHERE number = ?"
_SEVERAL_BODIES = """
SELECT b.number, b.data, b.checksum FROM json_each(?) wanted CROSS JOIN body b ON b.number = wanted.value
"""
MOST = (1 << 63) - 1  # the largest integer of SQLite

Lines = list[tuple[dict[str, Any], list[bytes]]]


class DoneElsewhere(EngineError):
    """Raised when a request was sent to another server of the store too, which has done it first."""


class _Last(NamedTuple):
    """Holds the last row of the chain, and the number of the next body."""

    number: int
    digest: str
    next_body: int
    tx: Instant


_NONE = _Last(0, GENESIS, 1, 0)


class Ledger:
    """The chain of one store, as far as this process has read it. One writer at a time appends; any thread reads bodies."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.path = database.file
        self.named = str(database.file.parent)
        self._failed: str | None = None  # why the open group cannot be committed
        self.bytes_left = False  # True if the last check found bytes of removed contents in the files
        self.broken: str | None = None  # why nothing may be written until the store is opened again
        self._last = _NONE  # the last row that this process has read or written
        self._before = _NONE  # the last row before the last append
        self._kept = _NONE  # the last committed row
        self._has_savepoint = False  # True if the SQL transaction has a savepoint before the last append
        self.is_showing = False  # True while the SQL transaction has rows that `hide` removes
        self.is_limited = False  # True if the store limited how much it keeps, when the turn began
        self.kinds_known = 0  # how many kinds of link `last_tx_and_new_kinds` has returned
        self._turns = 0  # depth of nested turns of the thread that writes
        self._heads: list[dict[str, Any]] = []  # the heads appended in this turn
        self._unfinished = 0  # above 0 if bytes of removed bodies were left in the files when this turn began
        self._finish_after = 0.0  # by the clock of `time.monotonic`
        self._grouping = False
        self._bytes: int | None = None  # size of heads and bodies in bytes; None if it is not known
        self._words = WordRows()
        self._standings: tuple[str, StandingWriter] | None = None  # digest and writer of the last line
        self._wrote: tuple[str, RowWriter | None] = ("", None)  # digest and writer of the last line
        upgrade_schema(database, self._words)
        self._rewritten = self._property("rewritten")
        # not an Event: an interrupt within `Event.set` would leave its lock taken
        self._is_dirty, self._stop = False, threading.Event()
        self._syncer: threading.Thread | None = None
        if database.durability == "interval" and not database.read_only:
            self._syncer = threading.Thread(target=self._sync_often, name="graphstore-sync", daemon=True)
            self._syncer.start()

    # ------------------------------------------------------------------ state of the ledger

    def last_tx(self) -> Instant:
        """Return the tx of the last transaction that any process has committed; 0 if there is none."""
        rows = self.database.rows("SELECT tx FROM chain ORDER BY number DESC LIMIT 1")
        return rows[0][0] if rows else 0

    def _refuse_shorter_than_rows(self) -> None:
        """Raise DamageError if the rows contain a later transaction than the chain: its end was removed."""
        [(last, number, known)] = self.database.rows(_ENDS)
        if known is not None and known > last:
            self._refuse(number + 1, f"it is missing: the rows know of a transaction at {iso(known)}")

    def last_tx_and_new_kinds(self) -> tuple[Instant, list[dict[str, Any]] | None]:
        """Return the last tx, and the kinds of link defined since the last call (None: no new ones).

        Raises EngineError if another release has upgraded the ledger or written something that this release does not understand.
        """
        self.hide()
        kept = self.database.kept()
        if "last" in kept:
            return kept["last"], None
        last, self.kinds_known, kinds = last_tx_and_kinds(self.database, self.kinds_known)
        kept["last"] = last
        return last, kinds

    def snapshot(self) -> SnapshotBlock:
        """Return a block in which this thread reads one state of the ledger, by the database that it yields. See `Database.snapshot`."""
        return self.database.snapshot()

    def hides_contents(self) -> bool:
        """Return True if contents of forgotten things may still be in some file."""
        return bool(self.database.rows("SELECT 1 FROM property WHERE name = 'hiding' AND value > 0"))

    def keep_lookups(self, counts: Mapping[str, int]) -> None:
        """Add numbers of lookups by id, for the next `take_lookups`. Raises LockedError after the store's timeout, EngineError if the disk refuses."""
        if self.broken or self._failed:
            raise self._refused()
        with self.database.transaction() as connection:
            connection.executemany(_ADD_LOOKUPS, counts.items())

    def take_lookups(self) -> dict[str, int]:
        """Return the numbers of lookups by id and delete them. If another process writes or the disk refuses, return {} and leave them for later."""
        if self.database.rows("SELECT 1 FROM lookup LIMIT 1"):
            with (
                contextlib.suppress(EngineError),
                self.database.transaction(timeout=0) as connection,
            ):
                return dict(connection.execute("DELETE FROM lookup RETURNING id, times").fetchall())
        return {}

    def deleted_branches(self) -> set[tuple[str, Instant]]:
        """Return the deleted branches, each as its name and the tx of its creation."""
        return set(self.database.rows(_DELETED_BRANCHES))

    def _property(self, name: str) -> int:
        rows = self.database.rows("SELECT value FROM property WHERE name = ?", (name,))
        return int(rows[0][0]) if rows else 0

    def size(self) -> int:
        """Return the size of all heads and bodies in bytes, without pages, indexes and free space."""
        if self._bytes is None:
            self.hide()
            [(self._bytes,)] = self.database.rows(read("journal_bytes"))
        return self._bytes

    def changed(self) -> int:
        """Return when the files were last written, in microseconds, by the clock of that time."""
        return self.database.written_at()

    # ------------------------------------------------------------------ reading

    def content(self, number: int) -> bytes | None:
        """Return the bytes of a body; None if removed. Raises DamageError if they changed, EngineError if another process rewrote the chain meanwhile."""
        rows = self.database.rows(_BODY, (number,))
        if not rows:
            self._refuse_rewritten()
            raise damaged_body(self.database, number, MISSING)
        return self._checked(number, *rows[0])

    def _checked(self, number: int, data: bytes | None, checksum: int) -> bytes | None:
        if data is not None and crc32(data) != checksum:
            raise damaged_body(self.database, number, CHANGED)
        return None if data is None else bytes(data)

    def raw(self, number: int, length: int) -> bytes:
        """Return the bytes of a body whose length was read from a row. If it was removed since, return a tombstone. Raises as `content` does."""
        if not length:
            return b""  # it was erased or evicted
        data = self.content(number)
        return self._tombstone() if data is None else data

    def raws(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the bytes of several bodies that are not empty, by number. Raises as `content` does."""
        numbers = list(numbers)
        rows = self.database.rows(_SEVERAL_BODIES, (orjson.dumps(numbers).decode(),))
        found = {number: self._checked(number, data, checksum) for number, data, checksum in rows}
        return {number: found.get(number) or self.raw(number, 1) for number in numbers}

    def _refuse_rewritten(self) -> None:
        """Raise EngineError if the chain was rewritten since this process read it: all numbers have changed."""
        if self._property("rewritten") != self._rewritten:
            raise EngineError(
                f"another process evicted something from {self.path} without a trace a moment ago. Ask again."
            )

    def _tombstone(self) -> bytes:
        """Return a tombstone for a body that another process has removed in a transaction that this one has not read yet."""
        [(evicted,)] = self.database.rows(
            "SELECT count(*) FROM chain WHERE number > ? AND instr(head, ?)", (self._last.number, b'"evict"')
        )
        word = "evicted" if evicted else "erased"
        return dumps({"content": {}, "description": f"[{word}]", "origin": word, "trigger": word})

    def verbatim(self, upto: int = MOST, after: int = 0) -> Iterator[Verbatim]:
        """Yield the lines after a number, up to another, exactly as they are stored."""
        at = after
        while rows := self.database.rows(_PAGE_AFTER, (at, _PAGE)):
            last = rows[-1][1] + rows[-1][2] - 1
            bodies = dict(self.database.rows(_BODIES, (rows[0][1], last)))
            for at, first, count, digest, raw in rows:
                if at > upto:
                    return
                yield Verbatim(
                    raw, digest, [bodies[body] or FORGOTTEN for body in range(first, first + count)]
                )

    def last(self) -> tuple[int, str]:
        """Return the number and digest of the last row of the chain, by any process; (0, GENESIS) if there is none."""
        self.hide()
        return self._last_row()[:2]

    def _last_row(self) -> _Last:
        rows = self.database.rows(_LAST)
        return _Last(*rows[0]) if rows else _NONE

    def transactions(self, upto: int) -> int:
        """Return the number of transactions up to a row of the chain."""
        [(count,)] = self.database.rows("SELECT count(*) FROM chain WHERE number <= ? AND NOT more", (upto,))
        return int(count)

    def rebuild_rows(self) -> None:
        """Rebuild all rows from the chain in one SQL transaction. Raises EngineError if the disk refuses; the rows are then unchanged."""
        with self.database.transaction() as connection:
            make_rows_anew(connection, self._words)

    def _refuse(self, number: int, why: str) -> NoReturn:
        raise damage(self.database, number, why)

    # ------------------------------------------------------------------ the turn to write

    def take_turn(self) -> None:
        """Become the only writer until `leave_turn`, and continue after the last row that any process has written.

        Raises LockedError if another process writes for longer than the store's timeout, DamageError if the end of the chain was removed.
        """
        if self._turns:
            self._turns += 1
            return
        if self.database.read_only:
            return
        if self.database.writes_here:  # an interrupt prevented the end of the last turn
            self.database.end()
        try:
            self.database.begin()
            try:
                self._go_on()
            except BaseException:
                self.database.end()
                raise
        except EngineError as error:
            error.outcome = error.outcome or "not kept"
            raise
        self._turns, self._has_savepoint, self.is_showing = 1, False, False

    def _go_on(self) -> None:
        """Read the last row of the chain at the start of a turn. Raises DamageError if a row that was read before is missing or has changed."""
        [(*found, rewritten, self._unfinished, self.is_limited, is_required)] = self.database.rows(_STATE)
        if is_required:
            refuse_required(self.database)
        last = _NONE if found[0] is None else _Last(*found)
        if last[:2] != self._last[:2] or rewritten != self._rewritten:
            if rewritten == self._rewritten and not self._holds(*self._last[:2]):
                self._refuse(self._last.number, "it was read before, and is missing or another one now")
            self._refuse_shorter_than_rows()
            self._rewritten, self._bytes = rewritten, None
        self._last = self._kept = last

    def leave_turn(self) -> None:
        """Let others write. Discard what was appended and not committed."""
        if self._turns > 1:
            try:
                self.hide()
            finally:
                self._turns -= 1
        elif self._turns == 1:
            try:
                if self._last != self._kept:  # appended but not committed
                    self._last, self._bytes = self._kept, None
                self.database.end(self._transaction)
            finally:
                self._turns, self._heads, self.is_showing = 0, [], False
            if self._unfinished and time.monotonic() >= self._finish_after:
                self._finish_for_another()

    def _finish_for_another(self) -> None:
        """Finish an unfinished removal of this or another process, unless a reader still prevents it."""
        self._finish_after = time.monotonic() + _FINISH_EVERY
        with contextlib.suppress(EngineError):  # what was written is committed; the next writer tries again
            if self.database.empty_wal():
                self.finish_removal()

    def _transaction(self) -> str:
        """Return a description of the transactions of this turn for the log, without ids and contents."""
        if not self._heads:
            return "a transaction that wrote nothing"
        verbs = [op[0] for head in self._heads for op in head.get("ops", ())]
        tx = iso(instant(self._heads[-1]["tx"]))
        return f"the transaction {tx} ({len(verbs)} × {', '.join(sorted(set(verbs)))})"

    def append(self, lines: Lines, known: KnownNumbers | None = None) -> None:
        """Append one transaction: the head and bodies of each line. `commit` commits it. `known`: numbers of rows that the heads name, if already read.

        Raises EngineError if the disk refuses; then nothing of the transaction is written.
        """
        if self.broken or self._failed:
            raise self._refused()
        self.hide()
        self._before = last = self._last
        try:
            has_savepoint, self._has_savepoint = self._has_savepoint, False
            is_new = self.database.ensure_begun()  # within an erase, a commit has ended the savepoint too
            if is_new and self._last_row()[:2] != last[:2]:  # on a server the lock ends with each commit
                raise WriteConflictError(
                    f"another process wrote to {self.path} meanwhile. Nothing of this transaction was kept. Do it again.",
                    outcome="not kept",
                )
            if self._grouping:  # otherwise the whole SQL transaction belongs to this append
                if has_savepoint and not is_new:  # SQLite checks each page against all savepoints
                    self.database.writer.execute(_KEEP)
                self.database.writer.execute(_BEFORE_APPENDING)
                self._has_savepoint = True
            standings = self._standing_writer(last.digest)
            for part, (head, bodies) in enumerate(lines):
                if part < len(lines) - 1:
                    head["more"] = True
                head["body"], head["prev"] = hashed(bodies), last.digest
                last = self._insert(last, part, head, encoded(head, bodies), standings, known)
            if any(_forgets(head) for head, _ in lines):
                writer, tx = self.database.writer, instant(lines[-1][0]["tx"])
                forgotten_bodies.remove_vectors(writer, tx)
                self._remove(writer, forgotten_bodies.bodies_left(writer, tx))
        except sqlite3.Error as error:
            self._take_back(f"cannot write {self.path}: {error}.")
            raise self._not_written(error) from error
        except BaseException:  # an interrupt: a group must not commit a part of this transaction
            self._take_back("a write was interrupted.")
            raise
        self._standings = (last.digest, standings)
        self._heads += [head for head, _ in lines]
        self._last = last

    def made_shaky(self) -> list[str]:
        """Return the ids of what the last append made shaky."""
        numbers = [] if self._standings is None else self._standings[1].made_shaky
        rows = self.database.writer.execute(_IDS, (orjson.dumps(numbers).decode(),)) if numbers else ()
        return [id for (id,) in rows]

    def _standing_writer(self, digest: str) -> StandingWriter:
        """Return the last writer of standings, with its caches, if nothing was written or undone since; else a new one."""
        kept, self._standings = self._standings, None
        if kept is not None and kept[0] == digest and kept[1].connection is self.database.writer:
            return kept[1]
        return standing_rows.StandingWriter(self.database.writer)

    def _not_written(self, error: sqlite3.Error) -> EngineError:
        full = " Free some space and do it again." if "full" in str(error) else ""
        return EngineError(
            f"cannot write {self.path}: {error}. Nothing of this transaction was kept.{full}",
            outcome="not kept",
        )

    def _insert(
        self,
        last: _Last,
        part: int,
        head: dict[str, Any],
        line: Verbatim,
        standings: StandingWriter,
        known: KnownNumbers | None = None,
    ) -> _Last:
        """Write one line after the last one, and the rows derived from it. Return it as the new last row."""
        writer, number, first = self.database.writer, last.number + 1, last.next_body
        raw, digest, bodies = line
        if self._bytes is not None:
            self._bytes += len(raw) + sum(map(len, bodies))
        more = bool(head.get("more"))
        tx = instant(head["tx"])
        writer.execute(_ADD, (number, tx, part, more, first, len(bodies), digest, raw))
        writer.executemany(
            _ADD_BODY,
            [
                (at, None, 0) if body == FORGOTTEN else (at, bytes(body), crc32(body))
                for at, body in enumerate(bodies, first)
            ],
        )
        (written, before), self._wrote = self._wrote, ("", None)
        before = before if written == head["prev"] else None
        rows = row_writing.RowWriter(
            writer, head, first, self._words, before=before, bodies=bodies, known=known
        )
        for note in rows.write():
            standings.note(*note)
        self._wrote = digest, rows
        if _forgets(head):
            writer.execute(_HIDING, (number,))
        if not more:
            standings.write(tx)
        return _Last(number, digest, first + len(bodies), tx)

    def append_verbatim(self, lines: Iterable[Verbatim]) -> None:
        """Append lines as they were recorded elsewhere, within `Database.transaction`. The caller must check their digests."""
        self._add_after(self._last_row(), lines)
        if self.hides_contents() and not forgotten_bodies.bodies_left(self.database.writer, BEGINNING):
            self.database.run(_REMOVED_ALL)  # they were removed in the original

    def _add_after(self, last: _Last, lines: Iterable[Verbatim]) -> None:
        begun, part = None, 0
        standings = standing_rows.StandingWriter(self.database.writer)
        for line in lines:
            head = orjson.loads(line.head)
            part = part + 1 if head["tx"] == begun else 0
            begun = head["tx"]
            last = self._insert(last, part, head, line, standings)

    def _take_back(self, why: str | None = None) -> None:
        """Undo the last append. If SQLite cannot, roll back its whole transaction; an open group then fails as a whole.

        Args:
            why: the reason, for the error of the group; None for an ordinary undo.
        """
        self._bytes = None
        try:
            if self._has_savepoint:
                self.database.run(_TAKE_BACK)
                return
        except EngineError as error:
            why = why or str(error)
        self.database.roll_back()
        if self._grouping:
            self._failed = why

    def rewind(self) -> None:
        """Undo the last append, which must not be committed."""
        self._take_back()
        self._last = self._before

    # ------------------------------------------------------------------ temporary rows of a transaction

    def begin_showing(self, tx: Instant) -> tuple[sqlite3.Connection, int]:
        """Start temporary rows of a transaction at `tx`, which only this thread sees until `hide`. Return the connection and the number of the first body.

        Raises EngineError if the disk refuses.
        """
        if self.broken or self._failed:
            raise self._refused()
        try:
            if self.database.ensure_begun():
                self._has_savepoint = False
            writer = self.database.writer
            writer.execute(_BEFORE_SHOWING)
            self.is_showing = True
            writer.execute(_ADD, (self._last.number + 1, tx, 0, 0, self._last.next_body, 0, "", b"{}"))
        except sqlite3.Error as error:
            raise self.not_shown(error) from error
        return writer, self._last.next_body

    def not_shown(self, error: sqlite3.Error) -> EngineError:
        """Remove the temporary rows after SQLite refused one of them. Return the error to raise."""
        self.hide()
        return self._not_written(error)

    def hide(self) -> None:
        """Remove the temporary rows. If SQLite cannot, roll back its whole transaction; an open group then fails as a whole."""
        if not (self.is_showing and self.database.writes_here):
            return
        try:
            self.database.writer.execute(_HIDE)
            self.is_showing = False
            self.database.writer.execute(_HIDDEN)
        except sqlite3.Error as error:
            self.is_showing = self._has_savepoint = False
            self.database.roll_back()
            if self._grouping:
                self._failed = f"cannot write {self.path}: {error}."

    # ------------------------------------------------------------------ committing

    def begin_group(self) -> None:
        """Start a group: `end_group` commits all later appends together, or none of them."""
        self._grouping, self._has_savepoint = True, False

    def end_group(self) -> None:
        """Commit the group. Raises as `commit` does."""
        self._grouping = False
        why, self._failed = self._failed, None
        if why:
            self._last = self._kept
            raise self._not_kept(why)
        if self._last != self._kept:
            self.commit()

    def drop_group(self) -> None:
        """Take back all appends of the group and close it."""
        self._grouping = self._has_savepoint = False
        self._failed = self._bytes = None
        self.database.roll_back()
        self._last = self._kept

    def commit(self) -> None:
        """Commit what was appended, unless a group is open. Raises EngineError; its outcome states whether the transaction was kept, if that is known."""
        if self._grouping:
            return
        self._has_savepoint = False
        try:
            self.database.commit({"last": self._last.tx})
        except sqlite3.Error as error:
            if (refused := self._not_committed(error)) is not None:
                raise refused from error
        self._kept = self._last
        self._is_dirty = True

    def _not_committed(self, error: sqlite3.Error) -> EngineError | None:
        """Find out what became of a failed commit. Return the error to raise; None if it was kept."""
        self._bytes = None
        self.database.roll_back()
        is_kept = self.database.was_kept(error, lambda: self._holds(*self._last[:2]))
        if is_kept:
            return None
        if is_kept is None:
            tx = moment(instant(self._heads[-1]["tx"]))
            self.broken = f"The outcome of a failed commit in {self.path} could not be settled ({error})."
            return EngineError(
                f"{self.broken} Whether this transaction was kept is unknown. Close the store, open it again and look: it was when changes() has its tx, "
                f"{tx.isoformat()}.",
                outcome="unknown",
                tx=tx,
            )
        self._last = self._kept
        return self._not_kept(f"cannot make {self.named} durable: {error}.")

    def _not_kept(self, why: str) -> EngineError:
        return EngineError(
            f"{why} Nothing of this transaction was kept. Free some space or mend the disk, and do it again.",
            outcome="not kept",
        )

    def _refused(self) -> EngineError:
        why = self._failed or f"{self.broken} Close the store and open it again."
        return EngineError(f"{why} Nothing of this transaction was kept.", outcome="not kept")

    def settle(self) -> None:
        """Make all commits durable now, with any durability setting. Raises EngineError if the disk refuses."""
        if why := self.broken or self._failed:
            raise EngineError(f"{why} Close the store and open it again.")
        if self._syncer is not None:
            database = self.database
            if database.writes_here and database.writer.in_transaction and self._last == self._kept:
                database.roll_back()  # it contains no writes, and the WAL can only be synced outside of it
            database.checkpoint()

    def _sync_often(self) -> None:
        while not self._stop.wait(_INTERVAL):
            if not self._is_dirty:
                continue
            self._is_dirty = False
            try:
                self.database.checkpoint()
            except LockedError:  # another process writes for long
                self._is_dirty = True
            except EngineError as error:
                if not self._stop.is_set():
                    self.broken = (
                        f"{self.path} could not be made durable ({error}): whether what was written since the sync before is kept is unknown. "
                        "changes() tells it once the store is opened again."
                    )

    # ------------------------------------------------------------------ after a rewriting

    def ends_at(self, end: Any, digest: str) -> bool:
        """Return True if the chain has a row with this digest at the position `end`, a list of 0 and the row's number."""
        return isinstance(end, list) and len(end) == 2 and self._holds(end[1], digest)

    def _holds(self, number: int, digest: str) -> bool:
        if number == 0:
            return digest == GENESIS
        rows = self.database.rows("SELECT digest FROM chain WHERE number = ?", (number,))
        return bool(rows) and rows[0][0] == digest

    def reopen(self) -> None:
        """Continue after the last row of a chain that was rewritten, within a turn. Discard what was appended and not committed."""
        if self._turns and self.database.writer.in_transaction:
            self._has_savepoint = False
            self.database.roll_back()  # keeps rows of others that this process has not read yet
            self.database.ensure_begun()
        self._last = self._kept = _NONE
        self._go_on()

    def done_elsewhere(self, request: str, since: int) -> bool:
        """Return True if another process has done the request with this id after the given row."""
        pattern = b'"request":' + dumps(request)
        rows = self.database.rows(
            "SELECT 1 FROM chain WHERE number > ? AND instr(head, ?) LIMIT 1", (since, pattern)
        )
        return bool(rows)

    # ------------------------------------------------------------------ removing

    def remove_forgotten(self, timeout: float | None = None) -> None:
        """Remove remaining bodies of what was forgotten, as after a restore, and the bytes of all removed bodies. Raises EngineError if the disk refuses.

        Args:
            timeout: seconds to wait for other writers; None for the timeout of the store.
        """
        with self.database.transaction(timeout) as connection:
            for (since,) in connection.execute(_FORGOTTEN_FROM).fetchall():
                had_vectors, numbers = (
                    forgotten_bodies.remove_vectors(connection, since),
                    forgotten_bodies.bodies_left(connection, since),
                )
                if had_vectors or numbers:
                    self._remove(connection, numbers)
        removals = self._property("removals")
        self.finish_removal()
        with self.database.transaction() as connection:
            if removals == self._property("removals"):  # else another process has not finished its own
                connection.execute(_REMOVED_ALL)

    def hide_forgotten(self) -> None:
        """Hide remaining bodies of what was forgotten from all reads of a read-only ledger. The next writer removes them."""
        if self.hides_contents():
            with contextlib.closing(self.database.connect(read_only=True)) as connection:
                self.database.hide_bodies(forgotten_bodies.bodies_left(connection, BEGINNING))

    def _remove(self, connection: sqlite3.Connection, numbers: list[int]) -> None:
        """Remove bodies within a transaction. `finish_removal` removes their bytes from the files."""
        connection.executemany(
            "UPDATE body SET data = NULL, checksum = 0 WHERE number = ?", [(number,) for number in numbers]
        )
        connection.execute("UPDATE property SET value = value + 1 WHERE name = 'unfinished'")
        connection.execute(_REMOVED)
        self._bytes = None

    def finish_removal(self) -> bool:
        """Remove the bytes of removed bodies from free pages and the WAL. Return False if a reader prevents that."""
        begun = self._property(
            "unfinished"
        )  # it increases, so a removal that another process starts meanwhile is not marked as finished
        self.bytes_left = begun > 0
        if not begun:
            return True
        if not self.database.remove_freed_bytes():
            return False
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE property SET value = 0 WHERE name = 'unfinished' AND value = ?", (begun,)
            )
        self.bytes_left = False
        return True

    def replace(self, lines: Iterable[Verbatim]) -> None:
        """Replace the whole chain by these lines. Raises EngineError if the disk refuses; the chain is then unchanged.

        Numbers are never reused: a process that has read the old chain finds nothing under its numbers, and never something else.
        """
        hides = self.hides_contents()
        with self.database.transaction() as connection:
            last = self._last_row()
            connection.execute("DELETE FROM chain")
            connection.execute("DELETE FROM body")
            row_writing.clear(connection)
            connection.execute("UPDATE property SET value = value + 1 WHERE name = 'rewritten'")
            connection.execute("UPDATE property SET value = value + 1 WHERE name = 'unfinished'")
            self._add_after(last, lines)
            forgotten_bodies.remove_unknown(connection)
            # the removed lines may have held the only other use of a reason shared with a forgotten thing
            if numbers := forgotten_bodies.bodies_left(connection, BEGINNING):
                self._remove(connection, numbers)
            if not hides:
                connection.execute(_REMOVED_ALL)
        try:
            self.finish_removal()
        except EngineError as error:
            raise EngineError(
                f"{error} What was evicted is not in the ledger any more, but its bytes are still in the file. Open the store again: that finishes it.",
                outcome="kept",
            ) from error

    def close(self) -> None:
        """Make all commits durable and close the connections. Raises EngineError if the background sync failed: the last writes may be lost."""
        if self._turns and self.database.writes_here:
            self._turns = 0
            self.database.end()
        if self._syncer is not None:
            self._stop.set()
            self._syncer.join(timeout=2)
            with contextlib.suppress(EngineError):
                self.database.checkpoint()
        self.database.close()
        if self._syncer is not None and self.broken:
            raise EngineError(self.broken, outcome="unknown")


def last_tx_and_kinds(database: RowReader, known: int) -> tuple[Instant, int, list[dict[str, Any]] | None]:
    """Return the last tx of all lines, the number of kinds of link that a line has defined, and those after the first `known` (None: no more).

    Raises EngineError if another release has written something that this release does not understand.
    """
    [(last, count, is_required)] = database.rows(_LAST_AND_KINDS)
    if is_required:
        refuse_required(database)
    if count == known:
        return last, count, None
    rows = database.rows(_KINDS, (database.line.row("defined", known),))
    return last, count, [kind for (text,) in rows if "promoted" not in (kind := orjson.loads(text))]


def refuse_required(database: RowReader) -> None:
    """Raise EngineError if another release has written something that this release does not understand."""
    for number, head in database.rows(_REQUIRING):
        refuse_unknown(orjson.loads(head), f"{database.file} line {number}")


def _forgets(head: dict[str, Any]) -> bool:
    """Return True if a line forgets something and leaves a tombstone."""
    return any(op[0] in FORGETTING and op[1] for op in head.get("ops", ()))
