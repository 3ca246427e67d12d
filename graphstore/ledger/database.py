"""Opens the SQLite file of a store and hands out its connections.

A thread reads and writes on one connection of its own, so what it has written does not empty its page cache. Who writes holds the write lock of the store:
a lock on the file `lock`, which queues the processes that wait for it.
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

SCHEMA = 8  # of release 0.1 the journal had schema 1
APPLICATION = 0x67737472  # "gstr", in the header of the file
NAME, LOCK = "ledger.db", "lock"
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the message of an error may quote a schema that is damaged
_BUSY = 10.0  # seconds a statement waits for SQLite's own locks, which are held for moments
_MAPPED = 1 << 30
_STATEMENTS = 512  # kept prepared by a connection: at most 9 kB each, and only of those it has used
_FULL, _DENIED = "SQLITE_FULL", ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")
_DESCRIPTORS = 4  # that a connection opens: the ledger, its WAL, its index of the WAL, and one for its folder
WAIT_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0)  # seconds
_SYNCHRONOUS = {"commit": "FULL", "interval": "NORMAL", "none": "OFF"}
_RETURNED = 1 << 20  # bytes that opening a ledger takes and gives back at once
_UNKNOWN = (-1, 0)  # the state of a file that a connection has not compared yet
_LOOKS = 20  # so often a file is read beside its WAL
_LAST = "SELECT number, digest FROM chain ORDER BY number DESC LIMIT 1"
_DIGEST_AND_FIRST = "SELECT (SELECT digest FROM chain WHERE number = ?), (SELECT min(number) FROM chain)"
_BODIES_BUT_HIDDEN = """
CREATE TEMP VIEW body AS SELECT number, CASE WHEN number NOT IN (SELECT number FROM temp.hidden) THEN data END AS data, checksum FROM main.body
"""  # a temporary view comes before the table of its name

Values = Sequence[Any] | Mapping[str, Any]


@dataclass(slots=True)
class WritingCosts:
    """What writing took in this process since it opened the ledger."""

    waits: list[int] = field(default_factory=lambda: [0] * (len(WAIT_BOUNDS) + 1))
    """Turns by how long they were waited for, at most each of `WAIT_BOUNDS`, and longer."""
    waited: float = 0.0  # seconds, of all turns
    refused: int = 0  # waits that ended in a LockedError
    checkpoints: int = 0  # seen here, by any process: those between two looks count as one


class LedgerConnection(sqlite3.Connection):
    """A connection that can be referred to weakly."""

    may_write = False  # whether it was told how to commit
    in_turn = False  # whether what is not committed may be read on it


class _Access:
    """Holds the connections of one thread. The thread holds `lock` while a statement runs, and during a whole snapshot or turn to write."""

    def __init__(self) -> None:
        self.connection: LedgerConnection | None = None
        self.second: LedgerConnection | None = None  # to write within a snapshot
        self.writer: LedgerConnection | None = (
            None  # that of the two on which this thread has its turn to write
        )
        self.lock = threading.RLock()
        self.in_snapshot = self.in_turn = False
        # the file and what this thread has written, when they were last compared with what is known
        self.state = _UNKNOWN
        self.kept: dict[object, Any] = {}  # read in that state

    def close(self) -> None:
        """Close the connections. The next statement opens another one."""
        for connection in (self.connection, self.second):
            if connection is not None:
                connection.close()
        self.connection = self.second = self.writer = None
        self.state = _UNKNOWN


class SnapshotBlock:
    """The block of `Database.snapshot`. A class and not a generator: each read of a store enters one."""

    __slots__ = ("_access", "_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: LedgerConnection | None = None  # None: nothing is to be ended

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
    """Fetches rows of one line of a ledger: of the trunk, or of a branch.

    `branch` is its name, None: of the trunk. What was done by `forked` was done on the trunk.
    """

    file: Path
    line: LineNumbers
    branch: str | None
    forked: Instant

    @property
    def whole(self) -> RowReader:
        """Return what fetches also the rows outside of the scopes to which this one is limited; itself where it is not."""

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Fetch all rows of a statement."""


class Database:
    """The file `ledger.db` of one store, open in this process."""

    line: LineNumbers = TRUNK
    branch: str | None = None
    forked: Instant = OPEN

    @property
    def whole(self) -> Database:
        """Return itself: nothing of the ledger is hidden."""
        return self

    def __init__(
        self, file: Path, *, read_only: bool = False, durability: str = "commit", timeout: float = 30.0
    ) -> None:
        """Open a ledger that is there; `create` makes one.

        Raises InvalidError for a file that is no ledger, EngineError for a newer ledger. Makes and changes nothing then.
        """
        # Each temporary table of a statement takes 90 kB. glibc gives freed memory back to the system where more than 128 kB lie free at the end of the heap,
        # so a statement could cost 50 page faults, four times what it costs else. That limit rises to twice the size of a block that was mapped and is freed.
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
        self._place = Path(self._real)  # the file that is read: it, or a copy of it
        # what the files were when they were opened as ones that nobody writes
        self._still: tuple[object, ...] | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None  # what is read where the files cannot be
        self._threads = threading.local()
        self._accesses: weakref.WeakSet[_Access] = weakref.WeakSet()
        self._since = 0.0  # when this process got the lock, by the clock of `time.perf_counter`
        self._written_at = 0  # when the file was written last, in nanoseconds: only checkpoints write it
        self._writing = WritingCosts()
        self._hidden: str | None = None  # the numbers of bodies that no read finds, as JSON
        self.in_use = False  # whether connections stay open while this process forks
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
        _open.add(self)

    # ------------------------------------------------------------------ opening

    def _check_plain(self) -> None:
        """Raise EngineError where SQLite would follow a link: changes of a file that has two names are lost, or harm what somebody else owns."""
        for end in ("", "-wal", "-shm"):
            try:
                check_plain(Path(f"{self._real}{end}") if end else self.file)
            except OSError as error:
                raise EngineError(
                    f"cannot open {self.file}{end}: {error.strerror}. Nothing was changed. {way_out(error)}"
                ) from error

    def _not_opened(self, error: Exception) -> EngineError:
        """Return the error to raise where SQLite could not open a file: it does not tell why."""
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
        """Raise DamageError when the WAL is that of another ledger or of an earlier day. SQLite takes any WAL for that of the file beside it.

        A WAL that belongs to the file has all rows of the chain that the file has without it.
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
            ):  # it was rewritten
                return
            if not left:
                raise DamageError(
                    f"{self.file}-wal line 1: it is not the WAL of this ledger, but that of another one or of an earlier day, or it was edited: "
                    f"row {last[0]} of the chain is not in it. Nothing was changed. Move it and {self.file.name}-shm elsewhere to open the ledger "
                    "without it, or restore a dump or a backup."
                )
            time.sleep(0.01)  # another process may be writing the WAL into the file

    def _last_without_wal(self) -> tuple[int, str] | None:
        """Return the number and the digest of the last row of the chain in the file alone; None where it has none, or is being written."""
        try:
            # not mapped: a process that meanwhile cuts the file off would end this one
            uri = f"{self._place.as_uri()}?mode=ro&immutable=1"
            with contextlib.closing(self._opened(uri, mapped=0)) as connection:
                found: tuple[int, str] | None = connection.execute(_LAST).fetchone()
                return found
        except _ERRORS:
            return None

    def check_schema(self, connection: LedgerConnection) -> None:
        """Raise EngineError when another release has upgraded the ledger, or when it is only read and was not upgraded to this release."""
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
        """Decide how files are read that this process may not write.

        SQLite reads a ledger in WAL mode only where it can use the file `-shm`. Where it cannot, a ledger without a WAL is opened as one that nobody writes.
        One with a WAL is copied to a temporary folder, since SQLite ignores the WAL of such a file. Raises EngineError.
        """
        try:
            with contextlib.closing(self._opened(self.uri())) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return
        except sqlite3.OperationalError as error:
            if not getattr(error, "sqlite_errorname", "").startswith(_DENIED):
                return  # told by the check of the file
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
        """Return the size and time of the ledger, and the size of its WAL."""
        found = os.lstat(self._real)
        return found.st_ino, found.st_size, found.st_mtime_ns, self.wal_size()

    def uri(self, *, read_only: bool = True) -> str:
        """Return the URI of the file for a connection of this process."""
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
        """Open one more connection. Raises EngineError when the system refuses."""
        if self._real in _unsafe:
            raise self._forked_in_use()
        try:
            connection = self._opened(self.uri(read_only=read_only))
            connection.execute("PRAGMA fullfsync=ON")  # else a sync on macOS ends before the disk has it
            return connection
        except _ERRORS as error:
            raise self._not_opened(error) from error

    def hide_bodies(self, numbers: list[int]) -> None:
        """Have the reads of a ledger that is only read find that some bodies are removed, though they are still in the file."""
        self._hidden = orjson.dumps(numbers).decode()
        self.let_go()

    def _forked_in_use(self) -> EngineError:
        return EngineError(
            f"{self.file} was in use in another thread, or in a transaction, when this process was forked, so it cannot be opened here. "
            'Start the process with multiprocessing\'s method "spawn", or open the store after the fork only.',
            outcome="not kept",
        )

    def look_again(self) -> None:
        """Open files anew that nobody was expected to write, when somebody has."""
        if self._still is not None and self._stat() != self._still:
            self.let_go()
            self._still = None
            if self._copy is not None:
                self._copy.cleanup()
                self._copy, self._place = None, Path(self._real)
            self._find_readable()

    # ------------------------------------------------------------------ reading

    def access(self) -> _Access:
        """Return the connections of this thread, which it opens when it first needs them."""
        found: _Access | None = getattr(self._threads, "access", None)
        if found is None:
            found = self._threads.access = _Access()
            self._accesses.add(found)
        return found

    def connected(self, access: _Access) -> LedgerConnection:
        """Return the connection of this thread, which holds the lock of its access. Raises EngineError when the system refuses one."""
        if access.connection is None:
            access.connection = self.connect(read_only=self.read_only)
        return access.connection

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Fetch all rows of a statement. A thread that holds the turn reads its own uncommitted rows too.

        Raises DamageError for a damaged file, EngineError for what the system refuses.
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
        """Return a block in which this thread reads one state of the file with all its statements, whatever others commit meanwhile.

        Raises EngineError when another release has upgraded the ledger.
        """
        return SnapshotBlock(self)

    def compare_state(self, access: _Access, connection: LedgerConnection) -> None:
        """Forget what this thread keeps of the ledger if anybody has written it since. Raises EngineError when another release has upgraded it."""
        # changed by commits of all other connections
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        state = (version, connection.total_changes)
        if state != access.state:
            if version != access.state[0]:
                self.check_schema(connection)
            access.state, access.kept = state, {}

    def kept(self) -> dict[object, Any]:
        """Return what this thread keeps of the present state of the ledger. The caller may add to it. It is empty after any write, and in a turn.

        Raises EngineError when another release has upgraded the ledger. Opens files anew that nobody was expected to write.
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
        """Return the error to raise for one of SQLite."""
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
        """Take the write lock and begin a transaction. Raises LockedError after `timeout` seconds, EngineError when the file is gone.

        Args:
            timeout: seconds to wait for other writers; None for those of the store.
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
            if self.writes_here or not self.lock.held:  # of another store of this process
                raise InvalidError(
                    f"this thread has a transaction open in another opening of {self.file.parent}. Leave that block first."
                ) from error
            self.roll_back()  # an interrupt kept the turn before from being ended
        self._since = time.perf_counter()
        waited = self._since - asked
        self._writing.waits[bisect_left(WAIT_BOUNDS, waited)] += 1
        self._writing.waited += waited

    def _check_place(self) -> None:
        """Raise EngineError when the name of the ledger leads to another file, or to none. Count a checkpoint when the file was written."""
        found = status_of(self._real)
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise moved(self.file)
        if found.st_mtime_ns != self._written_at:
            self._written_at = found.st_mtime_ns
            self._writing.checkpoints += 1

    @property
    def lock(self) -> WriteLock:
        """Return the turn to write. Raises InvalidError where the ledger is only read."""
        if self._lock is None:
            raise InvalidError(f"{self.file} is open read only. Open it with read_only=False to write.")
        return self._lock

    @property
    def writes_here(self) -> bool:
        """Return True if this thread has begun a transaction."""
        return self.access().in_turn

    @property
    def writer(self) -> LedgerConnection:
        """Return the connection on which this thread has its turn. Opens it where there is none. Raises EngineError, sqlite3.Error."""
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
                writer.execute("PRAGMA temp_store=MEMORY")  # what a savepoint keeps is no file
                writer.may_write = True
            access.writer, writer.in_turn = writer, True
        return writer

    def run(self, statement: str) -> None:
        """Run a statement without rows on the connection of who holds the turn. Raises EngineError, as `rows` does."""
        try:
            self.writer.execute(statement)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def commit(self, known: dict[object, Any]) -> None:
        """Commit what this thread has written in its turn, after which `known` is to be kept. Raises sqlite3.Error."""
        writer, access = self.writer, self.access()
        writer.execute("COMMIT")
        if writer is access.connection:
            access.state, access.kept = (access.state[0], writer.total_changes), known

    def roll_back(self) -> None:
        """Take back what was not committed. Where SQLite refuses that, its connection is closed, which takes it back; the next statement opens another one."""
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
        """Take back what was not committed, and let the next writer begin.

        Args:
            transaction: names what was done, for the log, when it took long; None for the store's own upkeep.
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
        """Return what writing took in this process."""
        with contextlib.suppress(EngineError):
            self._check_place()
        return self._writing

    def wal_size(self) -> int:
        """Return the size of the WAL's file in bytes; 0 where there is none."""
        found = status_of(f"{self._real}-wal")
        return 0 if found is None else found.st_size

    @contextlib.contextmanager
    def transaction(self, timeout: float | None = None) -> Iterator[LedgerConnection]:
        """Give a block that is committed at its end, or leaves nothing; within the turn of this thread too. Raises EngineError when the disk refuses.

        Args:
            timeout: seconds to wait for other writers; None for those of the store.
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
        """Begin the next transaction of a turn in which one was committed. Returns whether that was needed. Raises sqlite3.Error."""
        if self.writer.in_transaction:
            return False
        self.writer.execute("BEGIN IMMEDIATE")
        return True

    @contextlib.contextmanager
    def _alone(self, timeout: float | None = None) -> Iterator[LedgerConnection]:
        """Give a block in which no other process writes, outside of transactions. `timeout`: as of `begin`."""
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
        """Write the file without its free pages, and empty the WAL. Returns False while a reader of an old snapshot prevents that."""
        try:
            with self._alone() as writer:
                writer.execute("VACUUM")
                return self._empty_wal(writer, _BUSY)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def empty_wal(self) -> bool:
        """Empty the WAL, unless somebody reads an old snapshot of it. Waits for nobody. Returns whether it was emptied.

        Raises LockedError while another process writes, EngineError when the disk refuses.
        """
        try:
            with self._alone(timeout=0) as writer:
                return self._empty_wal(writer, 0.0)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def _empty_wal(self, writer: LedgerConnection, seconds: float) -> bool:
        """Empty the WAL, and wait so long for readers and for the checkpoint of another connection, for which SQLite does not wait."""
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
        """Make durable what was committed without a sync. Raises EngineError when the disk refuses, LockedError when the write lock did not come in time."""
        try:
            with contextlib.closing(self.connect(read_only=False)) as connection:
                _, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if copied < frames:
                    self._sync_wal(connection)
        except _ERRORS as error:
            raise self.refusal(error) from error

    def _sync_wal(self, connection: LedgerConnection) -> None:
        """Commit on a connection that syncs the WAL at each commit. A checkpoint may not have: a reader of an old snapshot keeps it from doing anything."""
        if self.writes_here and self.writer.in_transaction:
            raise EngineError(
                f"{self.file} cannot be made durable within a transaction while another process reads an old snapshot."
            )
        with self._alone():
            connection.execute("UPDATE property SET value = value + 1 WHERE name = 'attempts'")

    # ------------------------------------------------------------------ closing

    def let_go(self) -> bool:
        """Close every connection that is idle; they are opened again when needed. Returns whether none is left open."""
        for access in tuple(self._accesses):
            if not (access.in_snapshot or access.in_turn) and access.lock.acquire(blocking=False):
                try:
                    access.close()
                finally:
                    access.lock.release()
        return all(access.connection is None for access in self._accesses)

    def close(self) -> None:
        """Close all connections."""
        _open.discard(self)
        if self.let_go():
            self._remove_empty_wal()
        if self._lock is not None:
            self._lock.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _remove_empty_wal(self) -> None:
        """Let SQLite remove an empty WAL, which connections that only read leave behind: it does when a writing one is the last to be closed."""
        wal = Path(f"{self._real}-wal")
        if self._still is None and self._copy is None and wal.exists() and not wal.stat().st_size:
            with (
                contextlib.suppress(*_ERRORS),
                contextlib.closing(self._opened(self.uri(read_only=False))) as connection,
            ):
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def keep_for_parent(self) -> None:
        """Let go, in a forked child, of connections that belong to its parent. They are never closed here: that would break the locks of both."""
        for access in self._accesses:
            _of_parent.extend(each for each in (access.connection, access.second) if each is not None)
        if self.in_use:
            _unsafe.add(self._real)
        self._threads, self._accesses = threading.local(), weakref.WeakSet()


def _missing_descriptors() -> OSError | None:
    """Return the error of the system when it does not give this process so many descriptors as opening a ledger takes; None when it does."""
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
_of_parent: list[LedgerConnection] = []  # open in this process because a fork copied them
_unsafe: set[str] = set()  # the files of those, which SQLite cannot lock in this process


def _before_fork() -> None:
    """Close what is idle: a child that has connections of its parent breaks the locks of both."""
    for database in tuple(_open):
        database.in_use = not database.let_go()


def _in_child() -> None:
    for database in tuple(_open):
        database.keep_for_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
