"""Opens the SQLite file of a store and manages its connections.

Each thread reads and writes on one connection of its own, so that its writes do not empty its page cache. A writer holds the write lock of the store: a lock
on the file `lock`, in which waiting processes queue.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from graphstore.errors import DamageError, EngineError, InvalidError, LockedError
from graphstore.ledger.branch_rows import TRUNK, LineNumbers
from graphstore.ledger.files import check_plain, status_of, way_out
from graphstore.ledger.scoped_rows import add_functions
from graphstore.ledger.slow_log import SLOW, warn
from graphstore.ledger.write_lock import WriteLock, moved
from graphstore.values.period import OPEN, Instant

SCHEMA = 9  # the journal of release 0.1 had schema 1
APPLICATION = 0x67737472  # "gstr", in the header of the file
NAME, LOCK = "ledger.db", "lock"
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # a message may quote a damaged schema that is not UTF-8
_BUSY = 10.0  # seconds a statement waits for SQLite's own locks, which are held briefly
_MAPPED = 1 << 30
_STATEMENTS = 512  # cached prepared statements per connection: at most 9 kB each, if they were used
_FULL, _DENIED = "SQLITE_FULL", ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")
_DESCRIPTORS = 4  # file descriptors per connection: the ledger, its WAL, the index of the WAL, and its folder
WAIT_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0)  # seconds
_SYNCHRONOUS = {"commit": "FULL", "interval": "NORMAL", "none": "OFF"}
_RETURNED = 1 << 20  # bytes allocated and freed once when a ledger is opened
_UNKNOWN = (-1, 0)  # the state of a file that a connection has not compared yet
_UNWRITTEN = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
"""Errors of a COMMIT that failed before its commit frame was whole. The WAL then ends before that frame for every reader, after a crash too."""
_LOOKS = 20  # attempts to compare a file with its WAL
_LAST = "SELECT number, digest FROM chain ORDER BY number DESC LIMIT 1"
_DIGEST_AND_FIRST = "SELECT (SELECT digest FROM chain WHERE number = ?), (SELECT min(number) FROM chain)"
_BODIES_BUT_HIDDEN = """
CREATE TEMP VIEW body AS SELECT number, CASE WHEN number NOT IN (SELECT number FROM temp.hidden) THEN data END AS data, checksum FROM main.body
"""  # a temporary view hides the table of the same name

Values = Sequence[Any] | Mapping[str, Any]


@dataclass(slots=True)
class WritingCosts:
    """Counts what writing took in this process since it opened the ledger."""

    waits: list[int] = field(default_factory=lambda: [0] * (len(WAIT_BOUNDS) + 1))
    """Numbers of turns by their wait: one for each bound of `WAIT_BOUNDS` (at most so long), and one for longer waits."""
    waited: float = 0.0  # seconds, in total
    refused: int = 0  # waits that ended in a LockedError
    checkpoints: int = 0  # checkpoints by any process, as seen here: several between two checks count as one


class LedgerConnection(sqlite3.Connection):
    """A connection that can be referenced weakly."""

    may_write = False  # True once its durability is set
    in_turn = False  # True while uncommitted rows may be read on it


class _Access:
    """Holds the connections of one thread. The thread holds `lock` during a statement, and during a whole snapshot or turn to write."""

    def __init__(self) -> None:
        self.connection: LedgerConnection | None = None
        self.second: LedgerConnection | None = None  # for writes within a snapshot
        self.writer: LedgerConnection | None = None  # the one on which this thread has its turn to write
        self.lock = threading.RLock()
        self.in_snapshot = self.in_turn = False
        # the data version of the file and the changes by this thread, at the last comparison
        self.state = _UNKNOWN
        self.kept: dict[object, Any] = {}  # values derived from that state

    def close(self) -> None:
        """Close the connections. The next statement opens a new one."""
        for connection in (self.connection, self.second):
            if connection is not None:
                connection.close()
        self.connection = self.second = self.writer = None
        self.state = _UNKNOWN


class SnapshotBlock:
    """Implements the block of `Database.snapshot`. It is a class and not a generator for speed: each read of a store enters one."""

    __slots__ = ("_access", "_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: LedgerConnection | None = None  # None: there is no transaction to end

    def __enter__(self) -> Database:
        database = self._database
        self._access = access = database.access()
        if access.in_snapshot or access.in_turn:
            return database
        database.look_again()
        access.lock.acquire()
        try:
            connection = database.connected(access)
            connection.execute("BEGIN")
            try:
                database.compare_state(access, connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        except BaseException as error:
            access.lock.release()
            if isinstance(error, _ERRORS):
                raise database.refusal(error) from error
            raise
        self._connection, access.in_snapshot = connection, True
        return database

    def __exit__(self, *_: object) -> None:
        connection, access = self._connection, self._access
        if connection is None:
            return
        try:
            connection.execute("COMMIT")
        except _ERRORS as error:
            access.close()
            raise self._database.refusal(error) from error
        finally:
            access.in_snapshot = False
            access.lock.release()


class RowReader(Protocol):
    """Fetches rows of one line of belief: of the trunk, or of a branch.

    `branch` is the branch's name, None for the trunk. Transactions up to `forked` were made on the trunk.
    """

    file: Path
    line: LineNumbers
    branch: str | None
    forked: Instant

    @property
    def whole(self) -> RowReader:
        """Return the reader of all rows, also those outside of the scopes to which this one is limited. It is itself if it has no limit."""

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""


class Database:
    """The file `ledger.db` of one store, opened by this process."""

    line: LineNumbers = TRUNK
    branch: str | None = None
    forked: Instant = OPEN

    @property
    def whole(self) -> Database:
        """Return itself: it hides no rows."""
        return self

    def __init__(
        self, file: Path, *, read_only: bool = False, durability: str = "commit", timeout: float = 30.0
    ) -> None:
        """Open an existing ledger; `create` makes a new one.

        Raises InvalidError if the file is not a ledger, EngineError if a newer release wrote it. Then nothing is created or changed.
        """
        # Each temporary table of a statement takes 90 kB. glibc returns free memory to the system once more than 128 kB are free at the end of the heap, so a
        # statement could cost 50 page faults and take four times as long. Freeing a mapped block raises this limit to twice the block's size.
        bytearray(_RETURNED)
        self.file = file
        self.read_only = read_only
        self.durability = durability
        self.timeout = timeout
        self._real = str(file.resolve())
        found = status_of(self._real)
        self._identity = None if found is None else (found.st_dev, found.st_ino)
        if self._real in _unsafe:
            raise self._forked_in_use()
        self._lock: WriteLock | None = None
        self._place = Path(self._real)  # the file that is read: the ledger itself or a copy
        # the state of read-only files when they were opened as immutable
        self._still: tuple[object, ...] | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None  # read where the original cannot be read
        self._threads = threading.local()
        self._accesses: weakref.WeakSet[_Access] = weakref.WeakSet()
        self._since = 0.0  # when this process got the lock, by the clock of `time.perf_counter`
        self._written_at = 0  # mtime of the file in nanoseconds; only checkpoints write the file
        self._writing = WritingCosts()
        self._hidden: str | None = None  # the numbers of bodies that all reads must hide, as JSON
        self.in_use = False  # True if connections stay open while this process forks
        try:
            self._check_plain()
            if read_only:
                self._find_readable()
            connection = self.connected(self.access())
            self._check(connection)
            self._check_wal(connection)
            self._written_at = os.lstat(self._real).st_mtime_ns
            if not read_only:
                self._lock = WriteLock(file.with_name(LOCK))
        except BaseException:
            self.close()
            raise
        track(self)

    def again(
        self, *, read_only: bool = False, durability: str = "commit", timeout: float = 30.0
    ) -> Database:
        """Open the same ledger once more."""
        return Database(self.file, read_only=read_only, durability=durability, timeout=timeout)

    # ------------------------------------------------------------------ opening

    def _check_plain(self) -> None:
        """Raise EngineError if a file is a link. SQLite would follow it: changes to a file with two names get lost, or harm a file of another owner."""
        for end in ("", "-wal", "-shm"):
            try:
                check_plain(Path(f"{self._real}{end}") if end else self.file)
            except OSError as error:
                raise EngineError(
                    f"cannot open {self.file}{end}: {error.strerror}. Nothing was changed. {way_out(error)}"
                ) from error

    def _not_opened(self, error: Exception) -> EngineError:
        """Return the error to raise if SQLite cannot open a file. SQLite does not give the reason, so it is determined here."""
        why = _missing_descriptors()
        if why is None and not os.access(self._real, os.R_OK if self.read_only else os.R_OK | os.W_OK):
            why = OSError(errno.EACCES, os.strerror(errno.EACCES))
        told = (
            f"{error}. Nothing was changed."
            if why is None
            else f"{why.strerror}. Nothing was changed. {way_out(why)}"
        )
        return EngineError(f"cannot open {self.file}: {told}")

    def _check(self, connection: LedgerConnection) -> None:
        try:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.OperationalError as error:
            raise self._not_opened(error) from error
        except sqlite3.DatabaseError as error:
            raise DamageError(
                f"{self.file} line 1: it is not a ledger, or damaged ({error}). Nothing was changed. Restore a dump or a backup."
            ) from error
        if application != APPLICATION:
            raise InvalidError(
                f"{self.file} is an SQLite database, but not the ledger of a store. Nothing was changed. Give the folder of a store."
            )
        self.check_schema(connection)

    def _check_wal(self, connection: LedgerConnection) -> None:
        """Raise DamageError if the WAL belongs to another ledger or an earlier state of it. SQLite accepts any WAL next to a file.

        With its own WAL, the ledger has every row of the chain that the file has without it.
        """
        if not self.wal_size():
            return
        for left in reversed(range(_LOOKS)):
            last = self._last_without_wal()
            if last is None:
                return
            digest, first = connection.execute(_DIGEST_AND_FIRST, last[:1]).fetchone()
            if digest == last[1] or (
                digest is None and first is not None and first > last[0]
            ):  # the chain was rewritten
                return
            if not left:
                raise DamageError(
                    f"{self.file}-wal line 1: it is not the WAL of this ledger, but that of another one or of an earlier day, or it was edited: "
                    f"row {last[0]} of the chain is not in it. Nothing was changed. Move it and {self.file.name}-shm elsewhere to open the ledger "
                    "without it, or restore a dump or a backup."
                )
            time.sleep(0.01)  # another process may be copying the WAL into the file

    def _last_without_wal(self) -> tuple[int, str] | None:
        """Return the number and digest of the last row of the chain in the file without its WAL; None if it has none or is being written."""
        try:
            # not mapped: if another process truncates the file, a mapping would kill this process
            uri = f"{self._place.as_uri()}?mode=ro&immutable=1"
            with contextlib.closing(self._opened(uri, mapped=0)) as connection:
                found: tuple[int, str] | None = connection.execute(_LAST).fetchone()
                return found
        except _ERRORS:
            return None

    def check_schema(self, connection: LedgerConnection) -> None:
        """Raise EngineError if another release has upgraded the ledger, or if it is opened read-only and needs an upgrade to this release."""
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found < SCHEMA and self.read_only:
            raise EngineError(
                f"{self.file} has schema {found}; this graphstore reads schema {SCHEMA}. Open the store once without read_only: "
                "that upgrades it in one transaction, and older releases cannot open it from then on. Nothing was changed."
            )
        if found > SCHEMA:
            raise EngineError(
                f"{self.file} has schema {found}; this graphstore reads up to {SCHEMA}. Install a newer graphstore. Nothing was changed."
            )

    def _find_readable(self) -> None:
        """Decide how to read files that this process may not write. Raises EngineError.

        SQLite reads a ledger in WAL mode only if it can use the file `-shm`. If it cannot, a ledger without a WAL is opened as immutable. SQLite ignores the
        WAL of an immutable file, so a ledger with a WAL is copied to a temporary folder.
        """
        try:
            with contextlib.closing(self._opened(self.uri())) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not getattr(error, "sqlite_errorname", "").startswith(_DENIED):
                return  # the check of the file reports this error
            if _missing_descriptors() is not None:
                raise self._not_opened(error) from error
        except _ERRORS:
            return
        state = self._stat()
        if state[-1]:
            self._copy = tempfile.TemporaryDirectory(prefix="graphstore-", ignore_cleanup_errors=True)
            try:
                for name in (NAME, f"{NAME}-wal"):
                    shutil.copyfile(self.file.with_name(name), Path(self._copy.name) / name)
            except OSError as error:
                raise EngineError(
                    f"cannot read {self.file}: its folder cannot be written, and copying it to {self._copy.name} failed: {error.strerror}."
                ) from error
            self._place = Path(self._copy.name) / NAME
        self._still = state

    def _stat(self) -> tuple[object, ...]:
        """Return the inode, size and mtime of the ledger, and the size of its WAL."""
        found = os.lstat(self._real)
        return found.st_ino, found.st_size, found.st_mtime_ns, self.wal_size()

    def uri(self, *, read_only: bool = True) -> str:
        """Return the URI by which this process opens the file."""
        if self._still is not None:
            query = "ro&immutable=1" if self._copy is None else "rw"
        else:
            query = "ro" if read_only else "rw"
        return f"{self._place.as_uri()}?mode={query}"

    def _opened(self, uri: str, mapped: int = _MAPPED) -> LedgerConnection:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=_STATEMENTS, timeout=_BUSY, factory=LedgerConnection,
        )  # fmt: skip
        connection.execute("PRAGMA trusted_schema=OFF")
        add_functions(connection)
        connection.execute(f"PRAGMA mmap_size={mapped}")
        if self._hidden is not None:
            connection.execute("CREATE TEMP TABLE hidden (number INTEGER PRIMARY KEY)")
            connection.execute("INSERT INTO hidden SELECT value FROM json_each(?)", (self._hidden,))
            connection.execute(_BODIES_BUT_HIDDEN)
        return connection

    def connect(self, *, read_only: bool) -> LedgerConnection:
        """Open one more connection. Raises EngineError if the system refuses."""
        if self._real in _unsafe:
            raise self._forked_in_use()
        try:
            connection = self._opened(self.uri(read_only=read_only))
            connection.execute("PRAGMA fullfsync=ON")  # else syncs on macOS return too early
            return connection
        except _ERRORS as error:
            raise self._not_opened(error) from error

    def hide_bodies(self, numbers: list[int]) -> None:
        """Hide bodies from all reads of a read-only ledger: they appear as removed, though they are still in the file."""
        self._hidden = orjson.dumps(numbers).decode()
        self.let_go()

    def _forked_in_use(self) -> EngineError:
        return EngineError(
            f"{self.file} was in use in another thread, or in a transaction, when this process was forked, so it cannot be opened here. "
            'Start the process with multiprocessing\'s method "spawn", or open the store after the fork only.',
            outcome="not kept",
        )

    def look_again(self) -> None:
        """Open files that were treated as immutable again, if they were written meanwhile."""
        if self._still is not None and self._stat() != self._still:
            self.let_go()
            self._still = None
            if self._copy is not None:
                self._copy.cleanup()
                self._copy, self._place = None, Path(self._real)
            self._find_readable()

    # ------------------------------------------------------------------ reading

    def access(self) -> _Access:
        """Return the connections of this thread. They are opened when first used."""
        found: _Access | None = getattr(self._threads, "access", None)
        if found is None:
            found = self._threads.access = _Access()
            self._accesses.add(found)
        return found

    def connected(self, access: _Access) -> LedgerConnection:
        """Return the connection of this thread, which must hold the lock of `access`. Raises EngineError if the system refuses one."""
        if access.connection is None:
            access.connection = self.connect(read_only=self.read_only)
        return access.connection

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement. A thread that has its turn to write also reads its own uncommitted rows.

        Raises DamageError if the file is damaged, EngineError if the system refuses.
        """
        access = self.access()
        try:
            if access.in_turn:
                return self.writer.execute(statement, values).fetchall()
            with access.lock:
                return self.connected(access).execute(statement, values).fetchall()
        except _ERRORS as error:
            raise self.refusal(error) from error

    def snapshot(self) -> SnapshotBlock:
        """Return a block in which all statements of this thread read one state of the file, even if others commit meanwhile.

        Raises EngineError if another release has upgraded the ledger.
        """
        return SnapshotBlock(self)

    def compare_state(self, access: _Access, connection: LedgerConnection) -> None:
        """Discard the values that this thread keeps if anybody has written the ledger since. Raises EngineError if another release has upgraded it."""
        # changes with each commit of another connection
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        state = (version, connection.total_changes)
        if state != access.state:
            if version != access.state[0]:
                self.check_schema(connection)
            access.state, access.kept = state, {}

    def kept(self) -> dict[object, Any]:
        """Return the values that this thread keeps for the present state of the ledger. The caller may add some. Any write empties them; a turn has none.

        Raises EngineError if another release has upgraded the ledger. Opens files treated as immutable again if they were written.
        """
        access = self.access()
        if access.in_turn:
            return {}
        if access.in_snapshot:
            return access.kept
        self.look_again()
        try:
            with access.lock:
                self.compare_state(access, self.connected(access))
        except _ERRORS as error:
            raise self.refusal(error) from error
        return access.kept

    def refusal(self, error: Exception) -> EngineError:
        """Return the GraphStore error to raise for an error of SQLite."""
        name = getattr(error, "sqlite_errorname", "") or ""
        is_damage = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or str(error).startswith("no such ")
        if isinstance(error, sqlite3.OperationalError) and not is_damage:
            if name.startswith("SQLITE_CANTOPEN"):
                return self._not_opened(error)
            full = f" {way_out(OSError(errno.ENOSPC, ''))}" if name.startswith(_FULL) else ""
            return EngineError(f"cannot read or write {self.file}: {error}.{full}")
        why = "its schema" if isinstance(error, UnicodeDecodeError) else error
        return DamageError(
            f"{self.file} line 1: the file is damaged ({why}). Nothing was changed. Restore a dump or a backup."
        )

    # ------------------------------------------------------------------ writing

    def begin(self, timeout: float | None = None) -> LedgerConnection:
        """Take the write lock and begin a transaction. Raises LockedError after `timeout` seconds, EngineError if the file is missing.

        Args:
            timeout: seconds to wait for other writers; None for the timeout of the store.
        """
        if self._real in _unsafe:
            raise self._forked_in_use()
        self._take_lock(self.timeout if timeout is None else timeout)
        access = self.access()
        try:
            access.lock.acquire()
            access.in_turn, access.writer = True, None
            self._check_place()
            writer = self.writer
            writer.execute("BEGIN IMMEDIATE")
            if writer is access.connection:
                self.compare_state(access, writer)
            else:
                self.check_schema(writer)
        except _ERRORS as error:
            self.end()
            refused = self.refusal(error)
            refused.outcome = "not kept"
            raise refused from error
        except BaseException:
            self.end()
            raise
        return writer

    def _take_lock(self, timeout: float) -> None:
        asked = time.perf_counter()
        try:
            self.lock.acquire(timeout)
        except LockedError:
            self._writing.refused += 1
            raise
        except RuntimeError as error:
            if self.writes_here or not self.lock.held:  # another opening in this process holds it
                raise InvalidError(
                    f"this thread has a transaction open in another opening of {self.file.parent}. Leave that block first."
                ) from error
            self.roll_back()  # an interrupt prevented the end of the last turn
        self._since = time.perf_counter()
        waited = self._since - asked
        self._writing.waits[bisect_left(WAIT_BOUNDS, waited)] += 1
        self._writing.waited += waited

    def _check_place(self) -> None:
        """Raise EngineError if the path of the ledger leads to another file or to none. Count a checkpoint if the file was written."""
        found = status_of(self._real)
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise moved(self.file)
        if found.st_mtime_ns != self._written_at:
            self._written_at = found.st_mtime_ns
            self._writing.checkpoints += 1

    @property
    def lock(self) -> WriteLock:
        """Return the write lock. Raises InvalidError if the ledger is open read-only."""
        if self._lock is None:
            raise InvalidError(f"{self.file} is open read only. Open it with read_only=False to write.")
        return self._lock

    @property
    def writes_here(self) -> bool:
        """Return True if this thread has its turn to write."""
        return self.access().in_turn

    @property
    def writer(self) -> LedgerConnection:
        """Return the connection on which this thread has its turn, opened when first used. Raises EngineError, sqlite3.Error."""
        access = self.access()
        writer = access.writer
        if writer is None:
            if access.in_snapshot:
                writer = access.second = access.second or self.connect(read_only=False)
            else:
                writer = self.connected(access)
            if not writer.may_write:
                writer.execute(f"PRAGMA synchronous={_SYNCHRONOUS[self.durability]}")
                writer.execute("PRAGMA secure_delete=ON")
                writer.execute("PRAGMA temp_store=MEMORY")  # keeps savepoint data out of files
                writer.may_write = True
            access.writer, writer.in_turn = writer, True
        return writer

    def run(self, statement: str) -> None:
        """Run a statement without rows on the connection of this thread's turn. Raises EngineError, as `rows` does."""
        try:
            self.writer.execute(statement)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def commit(self, known: dict[object, Any]) -> None:
        """Commit what this thread has written in its turn. Keep `known` as the values of the new state. Raises sqlite3.Error."""
        writer, access = self.writer, self.access()
        writer.execute("COMMIT")
        if writer is access.connection:
            access.state, access.kept = (access.state[0], writer.total_changes), known

    def roll_back(self) -> None:
        """Discard what was not committed. If SQLite refuses, close the connection, which has the same effect; the next statement opens a new one."""
        access = self.access()
        writer = access.writer
        if writer is None or not writer.in_transaction:
            return
        try:
            writer.execute("ROLLBACK")
        except _ERRORS:
            writer.close()
            access.writer = None
            if writer is access.second:
                access.second = None
            else:
                access.connection, access.state = None, _UNKNOWN

    def end(self, transaction: Callable[[], str] | None = None) -> None:
        """Discard what was not committed and release the write lock.

        Args:
            transaction: returns a description for the log if the lock was held long; None for the store's own upkeep.
        """
        access = self.access()
        try:
            self.roll_back()
        finally:
            held = time.perf_counter() - self._since
            if access.writer is not None:
                access.writer.in_turn, access.writer = False, None
            if access.in_turn:
                access.in_turn = False
                access.lock.release()
            self.lock.release()
        if held > SLOW:
            what = "the upkeep of the ledger" if transaction is None else transaction()
            warn("%s held the write lock of %s for %.1f seconds", what, self.file, held)

    def writing(self) -> WritingCosts:
        """Return the costs of writing in this process."""
        with contextlib.suppress(EngineError):
            self._check_place()
        return self._writing

    def written_at(self) -> int:
        """Return when the files were last written, in microseconds, by the clock of that time."""
        found = self.file.stat().st_mtime_ns
        with contextlib.suppress(FileNotFoundError):
            wal = self.file.with_name(f"{self.file.name}-wal").stat()
            if wal.st_size:  # opening a ledger creates an empty WAL
                found = max(found, wal.st_mtime_ns)
        return found // 1000

    def was_kept(self, error: sqlite3.Error, holds: Callable[[], bool]) -> bool | None:
        """Return whether a commit that raised an error was kept nevertheless; None if that is unknown.

        Args:
            holds: returns True if the chain has what was committed.
        """
        if getattr(error, "sqlite_errorname", "") in _UNWRITTEN:
            return False
        try:  # overwrite what may have been written to the disk, so that no crash can restore it
            with self.transaction() as connection:
                connection.execute("UPDATE property SET value = value + 1 WHERE name = 'attempts'")
        except EngineError:
            return None
        return False

    @contextlib.contextmanager
    def as_file(self) -> Iterator[str]:
        """Yield the URI of an SQLite file with all rows."""
        yield self.uri()

    def wal_size(self) -> int:
        """Return the size of the WAL in bytes; 0 if there is none."""
        found = status_of(f"{self._real}-wal")
        return 0 if found is None else found.st_size

    @contextlib.contextmanager
    def transaction(self, timeout: float | None = None) -> Iterator[LedgerConnection]:
        """Yield a connection in a block that is committed at its end or leaves nothing. May be used within a turn. Raises EngineError if the disk refuses.

        Args:
            timeout: seconds to wait for other writers; None for the timeout of the store.
        """
        inside = self.writes_here
        connection = self.writer if inside else self.begin(timeout)
        try:
            self.ensure_begun()
            yield connection
            connection.execute("COMMIT")
        except _ERRORS as error:
            raise self.refusal(error) from error
        finally:
            if inside:
                self.roll_back()
            else:
                self.end()

    def ensure_begun(self) -> bool:
        """Begin a new transaction if the last one of this turn was committed. Return True if that was needed. Raises sqlite3.Error."""
        if self.writer.in_transaction:
            return False
        self.writer.execute("BEGIN IMMEDIATE")
        return True

    @contextlib.contextmanager
    def _alone(self, timeout: float | None = None) -> Iterator[LedgerConnection]:
        """Yield a connection outside of a transaction while no other process writes. `timeout`: as in `begin`."""
        if self.writes_here:
            yield self.writer
            return
        self.begin(timeout)
        try:
            self.writer.execute("ROLLBACK")
            yield self.writer
        finally:
            self.end()

    def remove_freed_bytes(self) -> bool:
        """Rewrite the file without its free pages and empty the WAL. Return False if a reader of an old snapshot prevents that."""
        try:
            with self._alone() as writer:
                writer.execute("VACUUM")
                return self._empty_wal(writer, _BUSY)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def empty_wal(self) -> bool:
        """Empty the WAL without waiting. Return False if a reader of an old snapshot prevents that.

        Raises LockedError if another process writes, EngineError if the disk refuses.
        """
        try:
            with self._alone(timeout=0) as writer:
                return self._empty_wal(writer, 0.0)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def _empty_wal(self, writer: LedgerConnection, seconds: float) -> bool:
        """Empty the WAL. Wait up to `seconds` for readers and for checkpoints of other connections, since SQLite does not wait for the latter."""
        until = time.monotonic() + seconds
        writer.execute("PRAGMA busy_timeout=0")
        try:
            while writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() >= until:
                    return False
                time.sleep(0.005)
            return True
        finally:
            writer.execute(f"PRAGMA busy_timeout={int(_BUSY * 1000)}")

    def checkpoint(self) -> None:
        """Make durable what was committed without a sync. Raises EngineError if the disk refuses, LockedError if the write lock did not come in time."""
        try:
            with contextlib.closing(self.connect(read_only=False)) as connection:
                _, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if copied < frames:
                    self._sync_wal(connection)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def _sync_wal(self, connection: LedgerConnection) -> None:
        """Sync the WAL by a commit on a connection that syncs each one. A checkpoint cannot do this while a reader holds an old snapshot."""
        if self.writes_here and self.writer.in_transaction:
            raise EngineError(
                f"{self.file} cannot be made durable within a transaction while another process reads an old snapshot."
            )
        with self._alone():
            connection.execute("UPDATE property SET value = value + 1 WHERE name = 'attempts'")

    # ------------------------------------------------------------------ closing

    def let_go(self) -> bool:
        """Close every idle connection; they are opened again when needed. Return True if none is left open."""
        for access in tuple(self._accesses):
            if not (access.in_snapshot or access.in_turn) and access.lock.acquire(blocking=False):
                try:
                    access.close()
                finally:
                    access.lock.release()
        return all(access.connection is None for access in self._accesses)

    def close(self) -> None:
        """Close all connections."""
        untrack(self)
        if self.let_go():
            self._remove_empty_wal()
        if self._lock is not None:
            self._lock.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _remove_empty_wal(self) -> None:
        """Make SQLite remove an empty WAL, which read-only connections leave behind. It does so when the last connection that may write is closed."""
        wal = Path(f"{self._real}-wal")
        if self._still is None and self._copy is None and wal.exists() and not wal.stat().st_size:
            with (
                contextlib.suppress(*_ERRORS),
                contextlib.closing(self._opened(self.uri(read_only=False))) as connection,
            ):
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def keep_for_parent(self) -> None:
        """Discard, in a forked child, the connections of its parent. They are never closed here: that would break the locks of both processes."""
        for access in self._accesses:
            _of_parent.extend(each for each in (access.connection, access.second) if each is not None)
        if self.in_use:
            _unsafe.add(self._real)
        self._threads, self._accesses = threading.local(), weakref.WeakSet()


def _missing_descriptors() -> OSError | None:
    """Return the system's error if this process cannot open as many file descriptors as a ledger needs; None if it can."""
    held: list[int] = []
    try:
        for _ in range(_DESCRIPTORS):
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error
    finally:
        for descriptor in held:
            os.close(descriptor)
    return None


_open: weakref.WeakSet[Database] = weakref.WeakSet()
_of_parent: list[LedgerConnection] = []  # connections of the parent, copied by a fork
_unsafe: set[str] = set()  # the files of those connections, which SQLite cannot lock in this process


def track(database: Database) -> None:
    """Note that a database is open: its idle connections are closed before a fork."""
    _open.add(database)


def untrack(database: Database) -> None:
    """Note that a database is closed."""
    _open.discard(database)


def _before_fork() -> None:
    """Close idle connections: a child with connections of its parent would break the locks of both."""
    for database in tuple(_open):
        database.in_use = not database.let_go()


def _in_child() -> None:
    for database in tuple(_open):
        database.keep_for_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
