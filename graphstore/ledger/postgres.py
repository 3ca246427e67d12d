"""Keeps the ledger of a store in PostgreSQL: the same tables and statements as in a folder, in a schema of the database that has the name of the store.

The server's clock sets tx, within the lock of the writers: an advisory lock that ends with the transaction. A reader has a snapshot (REPEATABLE READ).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, cast

try:
    import psycopg
    from psycopg import pq, sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.types.numeric import Int8BinaryDumper
    from psycopg.types.string import StrBinaryDumper, TextBinaryLoader

    from graphstore.ledger.postgres_dialect import parameters, schema_for_postgres, translated
except ImportError as error:
    from graphstore.errors import InvalidError

    raise InvalidError(
        f"a store in PostgreSQL needs {error.name or 'libpq for psycopg'}. Install it: pip install 'graphstore[postgres]'"
    ) from None

from graphstore.errors import EngineError, InvalidError, LockedError, NotFoundError
from graphstore.ledger.creating import empty_ledger
from graphstore.ledger.database import (
    NAME,
    SCHEMA,
    Database,
    LedgerConnection,
    Values,
    WritingCosts,
    track,
    untrack,
)
from graphstore.ledger.folder import Folder
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.postgres_lines import Address
from graphstore.ledger.write_lock import WriteLock

_CONTROL = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET ")
_SETTINGS = {
    "jit": "off", "join_collapse_limit": "1", "from_collapse_limit": "1", "enable_seqscan": "off",
    "enable_hashjoin": "off", "enable_mergejoin": "off", "plan_cache_mode": "force_generic_plan", "client_min_messages": "error",
}  # fmt: skip
"""Plans are those of SQLite: joins in the order in which they are written, each by an index, without statistics."""
_SEEN = """
SELECT seen_snapshot(), (SELECT value FROM property WHERE name = 'schema'), now_microseconds()
"""
_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {{settings}} {_SEEN}"
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {settings} SET LOCAL lock_timeout = {wait}; SET LOCAL synchronous_commit = {sync}; "
    f"SELECT pg_advisory_xact_lock({{key}}); {_SEEN}"
)
_LAST = "SELECT tx FROM chain ORDER BY number DESC LIMIT 1"
_NOTED = f"INSERT INTO flushed SELECT tx FROM ({_LAST}) last ON CONFLICT DO NOTHING; "
_EARLY = "SET LOCAL synchronous_commit = off; COMMIT"
_SYNC = "UPDATE property SET value = value + 1 WHERE name = 'attempts'"
_FLUSH = "BEGIN; {settings} INSERT INTO flushed VALUES ({tx}) ON CONFLICT DO NOTHING; COMMIT"
_FORGET_FLUSHED = "DELETE FROM flushed WHERE tx < (SELECT max(tx) FROM flushed)"
_FORGET_EVERY = 64  # commits
_VARIANTS = {
    _LAST: "SELECT max(tx) FROM flushed",
    "first_body + bodies, tx FROM chain ORDER": "first_body + bodies, tx FROM chain WHERE tx <= (SELECT max(tx) FROM flushed) ORDER",
}
"""What readers ask instead: they see no transaction that is not on the server's disk yet, which a crash could take back. Writers see all, within the lock."""
_PRAGMAS = {
    "PRAGMA user_version": "SELECT value FROM property WHERE name = 'schema'",
    "PRAGMA integrity_check": "SELECT 'ok'",
}
_HOLDER = """
SELECT a.pid, a.application_name, coalesce(host(a.client_addr), 'the machine of the server') FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = $1 LIMIT 1
"""
_NO_RIGHT = (
    "42501",
    "42P01",
    "42883",
    "3F000",
)  # insufficient privilege; tables, functions and schemas that the role may not see
_WAITED = "55P03"  # SQLSTATE lock_not_available
_OLD = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'graphstore' AND c.relname = 'store' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
"""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,50}")


_CONNECTING: dict[str, Any] = {
    "application_name": "graphstore", "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
"""What is told libpq unless the address says otherwise."""
T = TypeVar("T")


class ServerError(sqlite3.OperationalError):
    """An error of PostgreSQL, in the place of one of SQLite. `state` is its SQLSTATE."""

    def __init__(self, error: psycopg.Error) -> None:
        self.state = error.sqlstate or ""
        self.holder = ""  # who writes, if that is why a wait for the lock ended
        self.is_lost = isinstance(error, psycopg.OperationalError) and not self.state
        why = str(error).strip().rstrip(".") or type(error).__name__
        super().__init__(f"{why}{self._way_out()}")

    def _way_out(self) -> str:
        """Return what to do about the error, to be followed by a full stop."""
        if self.is_lost or self.state.startswith(("08", "57")):
            return ". Try again when the server answers"
        if self.state.startswith("53"):
            return ". The server is full: free space or connections there, and do it again"
        if self.state == "25006":
            return ". It is a standby: open it with read_only=True, or give the address of the primary"
        if self.state in _NO_RIGHT:
            return (
                ". Give the role the right, unless the schema was dropped: GRANT CREATE ON DATABASE to make a store; USAGE on its schema and SELECT, INSERT, "
                "UPDATE, DELETE on its tables to write it; SELECT to read it with read_only=True"
            )
        return ""


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Convert an error of psycopg into a ServerError."""
    try:
        yield
    except psycopg.Error as error:
        raise ServerError(error) from None


class _TextDumper(StrBinaryDumper):
    """Writes U+0000, which PostgreSQL refuses in texts, as two U+0001. The order of texts stays the same."""

    def dump(self, obj: str) -> Any:
        if "\x00" in obj or "\x01" in obj:
            obj = obj.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
        return super().dump(obj)


class _TextLoader(TextBinaryLoader):
    """Reads what `_TextDumper` wrote."""

    def load(self, data: Any) -> Any:
        text: Any = super().load(data)
        return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01") if "\x01" in text else text


class ServerConnection:
    """A connection to PostgreSQL with the methods of one to SQLite that the ledger uses. Each statement is translated."""

    may_write = False
    in_turn = False

    def __init__(self, where: Address, durability: str) -> None:
        self._where, self._durability = where, durability
        self.total_changes = 0
        self._writes = False  # True within a transaction that has the lock of the writers
        self.seen: tuple[str, int] = "", 0  # the snapshot and the schema of the block that was begun last
        self.clock = 0  # the server's clock then, in microseconds
        self.wait = 30.0  # seconds to wait for other writers
        self._open()

    def _open(self) -> None:
        """Connect. Raises ServerError."""
        with _errors():
            connection = psycopg.connect(
                make_conninfo(**{**_CONNECTING, **_parsed(self._where)}),
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=0,
            )
        self._connection = connection
        connection.prepared_max = 1000
        for number in (int, bool):
            connection.adapters.register_dumper(number, Int8BinaryDumper)
        connection.adapters.register_dumper(str, _TextDumper)
        connection.adapters.register_loader("text", _TextLoader)
        with _errors():
            [(pid,)] = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
            self.is_pooled = (
                pid != connection.info.backend_pid
            )  # a pooler may run each transaction on another connection of the server
            local = "SET LOCAL" if self.is_pooled else "SET"
            path = sql.Identifier(self._where.store).as_string(None)
            settings = " ".join(
                f"{local} {name} = {value};" for name, value in {**_SETTINGS, "search_path": path}.items()
            )
            self._settings = settings if self.is_pooled else ""
            if self.is_pooled:
                connection.prepare_threshold = None
            else:
                psycopg.ClientCursor(connection).execute(settings.encode(), prepare=False)

    def _again(self, run: Callable[[], T]) -> T:
        """Run something, once more on a new connection if the last one was lost outside of a transaction: then nothing was written on it."""
        was_idle = not self.in_transaction
        try:
            with _errors():
                return run()
        except ServerError:
            if not (was_idle and self.is_lost):
                raise
            self.total_changes += 1
            self._open()
            with _errors():
                return run()

    @property
    def in_transaction(self) -> bool:
        """Return True within a transaction, also one that failed."""
        return self._connection.info.transaction_status != pq.TransactionStatus.IDLE

    @property
    def is_lost(self) -> bool:
        """Return True if the server or the network closed the connection."""
        return self._connection.closed or self._connection.broken

    def execute(self, statement: str, values: Values = ()) -> Any:
        """Run a statement and return its cursor. Raises ServerError."""
        if _CONTROL.match(statement):
            return self._control(statement)
        if self.is_pooled and not self.in_transaction:
            self._control("BEGIN")
            try:
                return self._run(statement, values)
            finally:
                self._control("COMMIT")
        return self._again(lambda: self._run(statement, values))

    def _run(self, statement: str, values: Values) -> Any:
        statement = _PRAGMAS.get(statement, statement)
        if "FROM chain ORDER" in statement and not (self._writes and self.in_transaction):
            for old, new in _VARIANTS.items():
                statement = statement.replace(old, new)
        given = _by_name(values)
        names = parameters(statement)
        text, used = translated(statement, tuple([type(given[name]) for name in names]), self._where.store)
        with _errors():
            cursor = self._connection.execute(text.encode(), [given[name] for name in used], binary=True)
        self._count(cursor)
        return cursor

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> Any:
        """Run a statement for each row of values, in one round trip. Raises ServerError."""
        rows = [*rows]
        cursor = self._connection.cursor(binary=True)
        if not rows:
            return cursor
        names = parameters(statement)
        places = [int(name) - 1 for name in names]
        types = tuple(
            next((type(row[at]) for row in rows if row[at] is not None), type(None)) for at in places
        )
        text, used = translated(statement, types, self._where.store)
        order = [int(name) - 1 for name in used]
        with _errors():
            cursor.executemany(text.encode(), [[row[at] for at in order] for row in rows])
        self._count(cursor)
        return cursor

    def _count(self, cursor: Any) -> None:
        if cursor.rowcount > 0 and not (cursor.statusmessage or "").startswith("SELECT"):
            self.total_changes += cursor.rowcount

    def _control(self, statement: str) -> Any:
        """Run a statement about transactions. One that begins takes a snapshot, or the lock of the writers."""
        if not statement.startswith("BEGIN"):
            if statement == "COMMIT" and self._writes:
                statement = _NOTED + statement
            with _errors():
                return psycopg.ClientCursor(self._connection).execute(statement.encode(), prepare=False)
        begin = (_READ if statement == "BEGIN" else _WRITE).format(
            settings=self._settings, wait=max(1, int(self.wait * 1000)), key=lock_key(self._where.store),
            sync="on" if self._durability == "commit" else "off",
        )  # fmt: skip
        try:
            snapshot, schema, self.clock = self._again(lambda: self._last_row(begin))
        except ServerError as error:
            if error.state == _WAITED:
                with _errors():
                    found = self._connection.execute(
                        _HOLDER.encode(), [lock_key(self._where.store)], prepare=False
                    ).fetchall()
                error.holder = "".join(
                    f" The writer is process {pid} of the server, for {name!r} on {host}."
                    for pid, name, host in found
                )
            raise
        self.seen, self._writes = (snapshot, schema), statement != "BEGIN"
        return None

    def _last_row(self, statements: str) -> Any:
        """Run several statements in one round trip and return the row of the last one."""
        try:
            cursor = psycopg.ClientCursor(self._connection).execute(statements.encode(), prepare=False)
        except psycopg.Error:
            if self._connection.info.transaction_status == pq.TransactionStatus.INERROR:
                self._connection.execute("ROLLBACK", prepare=False)
            raise
        while cursor.nextset():
            pass
        return cursor.fetchall()[0]

    def flush(self, tx: int) -> None:
        """Note that a transaction is committed, in a commit that is synced, and with it all commits before it. Raises ServerError."""
        with _errors():
            psycopg.ClientCursor(self._connection).execute(
                _FLUSH.format(settings=self._settings, tx=tx).encode(), prepare=False
            )

    def snapshot(self) -> tuple[str, int]:
        """Return a text that changes whenever somebody commits, and the schema: of the block that was begun last, or of now."""
        if self.in_transaction:
            return self.seen
        [(snapshot, schema, self.clock)] = self.execute(_SEEN).fetchall()
        return snapshot, schema

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _by_name(values: Values) -> Any:
    if isinstance(values, Sequence):
        return {str(at): value for at, value in enumerate(values, 1)}
    return values


def lock_key(schema: str) -> int:
    """Return the key of the lock of a store's writers."""
    return int.from_bytes(
        hashlib.blake2b(f"graphstore {schema}".encode(), digest_size=8).digest(), "big", signed=True
    )


class _Turns:
    """Lets one thread of this process at a time wait for the server's lock. The openings of one store share it."""

    _guard, _all = threading.Lock(), dict[tuple[str, str], "_Turn"]()

    def __init__(self, where: Address) -> None:
        with self._guard:
            self._turn = self._all.setdefault((where.conninfo, where.store), _Turn())
        self.held = False

    def acquire(self, timeout: float) -> None:
        """Take the turn. Raises LockedError after `timeout` seconds, RuntimeError if this thread has it."""
        if self._turn.owner == threading.get_ident():
            raise RuntimeError("this thread has the turn already.")
        if not self._turn.lock.acquire(timeout=timeout):
            raise LockedError(
                f"another thread of this process has been writing for {timeout:g} seconds. Try again, or give a larger timeout=."
            )
        self._turn.owner, self.held = threading.get_ident(), True

    def release(self) -> None:
        """Give the turn back."""
        if self.held:
            self._turn.owner, self.held = 0, False
            self._turn.lock.release()

    def close(self) -> None:
        """Give the turn back, if this has it."""
        self.release()


class _Turn:
    """The turn of one thread."""

    def __init__(self) -> None:
        self.lock, self.owner = threading.Lock(), 0


class ShownAddress:
    """An address in messages where a store in a folder has a path. It has no password."""

    def __init__(self, shown: str) -> None:
        self.name = self._shown = shown

    @property
    def parent(self) -> Self:
        """Return itself."""
        return self

    def __truediv__(self, name: str) -> Self:
        return self

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return self._shown


class PostgresDatabase(Database):
    """The ledger of one store in PostgreSQL, opened by this process."""

    def __init__(
        self, where: Address, *, read_only: bool = False, durability: str = "commit", timeout: float = 30.0
    ) -> None:
        """Open an existing ledger. Raises EngineError if the server refuses, or a newer release wrote it."""
        self.where, self.file = where, cast("Path", ShownAddress(where.shown))
        self.read_only, self.durability, self.timeout = read_only, durability, timeout
        self._real = where.shown
        self._threads, self._accesses = threading.local(), weakref.WeakSet()
        self._since, self._writing, self.in_use = 0.0, WritingCosts(), False
        self._hidden = self._copy = self._still = None
        self._lock = None if read_only else cast("WriteLock", _Turns(where))
        self._commits = 0
        self._ahead = 0  # microseconds of the server's clock ahead of this machine's
        access = self.access()
        try:
            self.compare_state(access, self.connected(access))
        except sqlite3.Error as error:
            raise self.refusal(error) from error
        track(self)

    def again(
        self, *, read_only: bool = False, durability: str = "commit", timeout: float = 30.0
    ) -> PostgresDatabase:
        """Open the same ledger once more."""
        return PostgresDatabase(self.where, read_only=read_only, durability=durability, timeout=timeout)

    def now(self) -> datetime:
        """Return the time of the server's clock, as this process saw it last."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time.time_ns() // 1000 + self._ahead)

    def written_at(self) -> int:
        """Return now: the server's clock is not compared with files."""
        return time.time_ns() // 1000 + self._ahead

    def connect(self, *, read_only: bool) -> LedgerConnection:
        """Open one more connection. Raises EngineError if the server refuses."""
        try:
            return cast("LedgerConnection", ServerConnection(self.where, self.durability))
        except sqlite3.Error as error:
            raise self.refusal(error) from error

    def look_again(self) -> None:
        """Do nothing: the server always shows what was committed."""

    def compare_state(self, access: Any, connection: Any) -> None:
        """Discard the values that this thread keeps if anybody has written since. Raises EngineError if another release has upgraded the ledger."""
        snapshot, schema = connection.snapshot()
        self._ahead = connection.clock - time.time_ns() // 1000
        state = (snapshot, connection.total_changes)
        if state != access.state:
            self._check_number(schema)
            access.state, access.kept = state, {}

    def check_schema(self, connection: Any) -> None:
        """Raise EngineError if another release has upgraded the ledger."""
        self._check_number(connection.snapshot()[1])

    def _check_number(self, found: int) -> None:
        if found != SCHEMA:
            way = (
                "Install a newer graphstore"
                if found > SCHEMA
                else "Export it with the release that wrote it, and restore that"
            )
            raise EngineError(
                f"{self.file} has schema {found}; this graphstore reads schema {SCHEMA}. {way}. Nothing was changed."
            )

    def refusal(self, error: Exception) -> EngineError:
        """Return the GraphStore error to raise for an error of the server."""
        return refused(error, self.where, self.timeout)

    # ------------------------------------------------------------------ writing

    def _take_lock(self, timeout: float) -> None:
        super()._take_lock(timeout)
        self._wait = timeout

    def _check_place(self) -> None:
        """Do nothing: a store in PostgreSQL has no file that could be moved."""

    @property
    def writer(self) -> LedgerConnection:
        """Return the connection on which this thread has its turn."""
        access = self.access()
        if access.writer is None:
            if access.in_snapshot:
                access.second = access.second or self.connect(read_only=False)
            access.writer = access.second if access.in_snapshot else self.connected(access)
            assert access.writer is not None
            cast("ServerConnection", access.writer).wait = self._wait
            access.writer.in_turn = True
        return access.writer

    def commit(self, known: dict[object, Any]) -> None:
        """Commit what this thread has written in its turn. The lock is released before the disk is waited for, so commits of several processes are synced together.

        What is not synced yet shows to writers alone: `flushed` has the last transaction that is. A crash of the server loses only transactions after that.
        """
        writer, access = self.writer, self.access()
        tx = cast("int", known["last"])
        self._commits += 1
        if self._commits % _FORGET_EVERY == 0:
            writer.execute(_FORGET_FLUSHED)
        if self.durability == "commit":
            writer.execute(_EARLY)
            cast("Any", writer).flush(tx)
        else:
            writer.execute("COMMIT")
        if writer is access.connection:
            access.state, access.kept = (-1, 0), known

    def was_kept(self, error: sqlite3.Error, holds: Callable[[], bool]) -> bool | None:
        """Return whether a commit that raised an error was kept: `holds` is asked once no other transaction is open. None if the server is silent."""
        try:
            with self.transaction() as connection:
                connection.execute(_SYNC)  # so that the commit is one that waits for the disk
                return holds()
        except EngineError:
            return None

    def wal_size(self) -> int:
        """Return 0: the WAL is the server's."""
        return 0

    def remove_freed_bytes(self) -> bool:
        """Return True: what freed space, WAL, standbys and backups hold is the server's."""
        return True

    def empty_wal(self) -> bool:
        """Return True, as `remove_freed_bytes` does."""
        return True

    def checkpoint(self) -> None:
        """Make durable what was committed without waiting for the disk, by a commit that waits. Raises EngineError."""
        with contextlib.closing(self.again(timeout=self.timeout)) as other, other.transaction() as connection:
            connection.execute(_SYNC)

    # ------------------------------------------------------------------ whole

    @contextlib.contextmanager
    def as_file(self) -> Iterator[str]:
        """Yield the URI of a temporary SQLite file with all rows, for comparing them."""
        with tempfile.TemporaryDirectory(prefix="graphstore-") as folder:
            file = Path(folder) / NAME
            file.write_bytes(empty_ledger())
            with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as target, self.snapshot():
                target.execute("PRAGMA journal_mode=DELETE")
                target.execute("BEGIN")
                tables = target.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                ).fetchall()
                for (table,) in tables:
                    target.execute(f"DELETE FROM {table}")
                    rows = self.rows(
                        f"SELECT * FROM {table}" + (" WHERE name <> 'schema'" if table == "property" else "")
                    )
                    if rows:
                        target.executemany(
                            f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows
                        )
                target.execute("COMMIT")
            yield f"{file.as_uri()}?mode=ro"

    def close(self) -> None:
        """Close all connections."""
        untrack(self)
        self.let_go()
        if self._lock is not None:
            self._lock.close()


def refused(error: Exception, where: Address, timeout: float) -> EngineError:
    """Return the GraphStore error for an error of the server. It names the address without its password."""
    if not isinstance(error, ServerError):
        return EngineError(f"cannot read or write {where.shown}: {error}.")
    if error.state == _WAITED:
        return LockedError(
            f"another process has been writing {where.shown} for {timeout:g} seconds.{error.holder} Nothing was changed. Try again, or give a larger timeout=."
        )
    return EngineError(f"{where.shown} refused: {error}.")


class PostgresPlace(Folder):
    """The place of a store in PostgreSQL. The graph tables are in memory."""

    def __init__(self, where: Address, *, read_only: bool = False, create: bool = True) -> None:
        self.where, self.create = where, create
        self.path = self.file = cast("Path", ShownAddress(where.shown))
        self.shown, self.named, self.read_only, self.tables = None, where.shown, read_only, None
        self.notices: list[str] = []
        self._graph_lock = self._opened = None
        self._database: PostgresDatabase | None = None

    def clock(self) -> datetime:
        """Return the time of the server's clock."""
        return datetime.now(UTC) if self._database is None else self._database.now()

    def hold(self) -> None:
        """Create the ledger if there is none. Raises NotFoundError if that is not wanted, EngineError if the server refuses."""
        try:
            make_ledger(self.where, may_create=self.create and not self.read_only)
        except sqlite3.Error as error:
            raise refused(error, self.where, self.timeout) from None

    def open_ledger(self, durability: str) -> Ledger:
        """Open the ledger."""
        self._database = PostgresDatabase(
            self.where, read_only=self.read_only, durability=durability, timeout=self.timeout
        )
        try:
            return Ledger(self._database)
        except BaseException:
            self._database.close()
            raise

    def read_ledger(self) -> Ledger:
        """Open the ledger a second time, read-only."""
        return Ledger(PostgresDatabase(self.where, read_only=True))

    def prepare(self, ledger: Ledger) -> None:
        """Finish a removal that a killed process left."""
        if not self.read_only:
            ledger.finish_removal()
            self.remove_forgotten(ledger)

    def kept_accesses(self, ledger: Ledger) -> dict[str, int]:
        """Return and delete the numbers of lookups by id."""
        return {} if self.read_only else ledger.take_lookups()

    def _remove_copies(self) -> None:
        """Do nothing: there are no files beside the ledger."""


def make_ledger(where: Address, *, may_create: bool) -> None:
    """Create the schema and the tables of a store unless they are there. Raises ServerError, NotFoundError, InvalidError for a schema with other tables."""
    if (
        not _NAME.fullmatch(where.store)
        or where.store.startswith("pg_")
        or where.store in ("public", "information_schema")
    ):
        raise InvalidError(
            f"{where.store!r} is no name of a store in PostgreSQL: it names the schema with its tables. Give up to 50 characters, and not public or pg_…."
        )
    schema = sql.Identifier(where.store).as_string(None)
    with (
        _errors(),
        psycopg.connect(make_conninfo(**{**_CONNECTING, **_parsed(where)}), autocommit=True) as connection,
    ):

        def tables() -> set[str]:
            found = connection.execute(
                "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
                (where.store,),
            )
            return {name for (name,) in found.fetchall()}

        if "next_number" in tables():
            return
        old = _old_store(connection, where)
        if not may_create:
            raise NotFoundError(
                f"no store {where.store!r} at {where.shown}.{old or ' Make one by opening it for writing'}."
            )
        if old:
            raise InvalidError(f"{where.shown} is not of this release.{old}, and that into a new name.")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(where.store),))
            if (found := tables()) and "next_number" not in found:
                raise InvalidError(
                    f"the schema {where.store!r} at {where.shown} has other tables, such as {min(found)}. Nothing was changed. Give another name in ?store=."
                )
            if not found:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
                connection.execute(
                    f"SET LOCAL search_path = {schema}; SET LOCAL client_min_messages = error".encode()
                )
                for statement in schema_for_postgres(where.store):
                    connection.execute(statement.encode())
                connection.execute(f"INSERT INTO property VALUES ('schema', {SCHEMA})".encode())


def _old_store(connection: Any, where: Address) -> str:
    """Return what to tell of a store of release 0.1 of this name; '' if there is none."""
    is_old = (
        connection.execute(_OLD).fetchall()
        and connection.execute("SELECT FROM graphstore.store WHERE name = %s", (where.store,)).fetchall()
    )
    return (
        " Release 0.1 kept one there. Copy it into a folder with: graphstore copy 'ADDRESS' FOLDER"
        if is_old
        else ""
    )


def _parsed(where: Address) -> dict[str, Any]:
    try:
        return conninfo_to_dict(where.conninfo)
    except psycopg.ProgrammingError:  # the error's message may contain the password
        raise InvalidError(
            f"{where.shown} has a part that libpq does not know. Correct the address."
        ) from None
