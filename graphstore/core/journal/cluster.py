"""A journal's lines as rows of a PostgreSQL server: `journal` has the head of each line, `body` what people wrote, by the number of the line.

The digest is the fence: a line goes in only after the line whose digest it names, and only where no line is yet. So a process that was left
behind cannot commit, whatever it believes. An advisory lock spares processes from trying at once; nothing rests on it. Each transaction has
an id: after a lost answer the same rows are inserted once more, which waits for the first attempt where that still runs, and where a line is
there already its id tells whose it is.

A server that is stopped keeps its connections and says nothing. So no statement is waited for without end: after some seconds of silence another
connection asks what the session does. Where it works, or waits for a standby, it is waited for; where nobody answers, the connection is given up, and
what was sent on it is asked for on the next.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import orjson

from graphstore.core.journal.line import FORGOTTEN, GENESIS, check, dumps
from graphstore.errors import DamageError, EngineError, InvalidError, NotFoundError

CHANNEL = "graphstore"
_PATIENCE = 30.0  # seconds that a server is looked for, from when it was last there, before a call fails
_ABSENT = 5.0  # the same of one host where nobody listens
_SILENCE = (
    12.0  # seconds without a word before it is asked what a session does; longer than a turn is waited for
)
_AT_ONCE = 2.0  # the same of what a server does in no time, and nobody has to wait for
_AGAIN = 1.0  # seconds in which a server that was not there is not looked for once more
_TURN = 10.0  # seconds to wait for another process to end its turn
_TOLD = 0.005  # seconds between two notifications: each wakes every process that follows
_PAGE = 256  # lines read at once
_CHUNK = 16 << 20  # bytes sent at once
_NAME_BYTES = 200  # of a store: it is in every row's key and every notification
_OURS = ("store", "cache")  # of the address; all else is libpq's

_SCHEMA = "create schema graphstore"  # asks for a right in the database, also where the schema is there
_TABLES = """
create table if not exists graphstore.store (name text primary key);
create table if not exists graphstore.journal (
    store text, seq bigint, id uuid not null, prev text not null, digest text not null, head bytea not null, primary key (store, seq));
create table if not exists graphstore.body (
    store text, seq bigint, n int, bytes bytea not null, primary key (store, seq, n));
"""
_INSERT = f"""
with before as (
    select from graphstore.journal where store = $1 and seq = $2 and digest = $3 for key share),
bodies as (
    insert into graphstore.body (store, seq, n, bytes)
    select $1, $2 + of, n, bytes from unnest($7, $8, $9) b (of, n, bytes) where $2 = 0 or exists (select from before))
insert into graphstore.journal (store, seq, id, prev, digest, head)
select $1, $2 + n, id, coalesce($5[n - 1], $3), digest, head from unnest($4, $5, $6) with ordinality l (id, digest, head, n)
where ($2 = 0 or exists (select from before)) and ($10 is null or pg_notify('{CHANNEL}', $10) is not null)
"""
_INSERT_NAME = b"graphstore_insert"
_INT8, _INT4, _TEXT, _BYTEA, _UUID = 20, 23, 25, 17, 2950  # types, as the server numbers them
_INT4S, _TEXTS, _BYTEAS, _UUIDS = 1007, 1009, 1001, 2951
_TYPES = (_TEXT, _INT8, _TEXT, _UUIDS, _TEXTS, _BYTEAS, _INT4S, _INT4S, _BYTEAS, _TEXT)
_BINARY = [1] * len(_TYPES)
_int8, _int4, _begin_array = (struct.Struct(of).pack for of in ("!q", "!i", "!5i"))
_UNLOCK = "select pg_advisory_unlock(hashtextextended(%s, 0))"
_TELL = "select set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"  # nothing is lost with it
_END_IDLE = """
select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a using (pid), hashtextextended(%s, 0) key
where l.locktype = 'advisory' and l.granted and a.state = 'idle' and l.objsubid = 1
    and l.classid::bigint = (key >> 32) & 4294967295 and l.objid::bigint = key & 4294967295
    and l.database = (select oid from pg_database where datname = current_database())
"""
_LINES = """
select j.seq, j.digest, j.head, b.ns, b.bodies from graphstore.journal j
left join lateral (select array_agg(n) ns, array_agg(bytes) bodies from graphstore.body b where b.store = j.store and b.seq = j.seq and j.seq > %s) b on true
where j.store = %s and j.seq >= %s order by j.seq limit %s
"""
_DURABLE = """
select case current_setting('synchronous_commit') when 'off' then 'synchronous_commit' end,
    case current_setting('fsync') when 'off' then 'fsync' end,
    current_setting('synchronous_commit') = 'local' or current_setting('synchronous_standby_names') = ''
"""
_SESSION = "select pid, backend_start from pg_stat_activity where pid = pg_backend_pid()"
_DOES = "select state, wait_event from pg_stat_activity where pid = %s and backend_start = %s"
_STANDBY = "SyncRep"  # what a commit waits for that the standby does not have yet
_NO_DISK = "it acknowledges what is on no disk"
_ANY = "select from graphstore.store where name = %s"
_NAME = "insert into graphstore.store (name) values (%s) on conflict do nothing"
# what the server says of itself, not of a statement: gone, starting, not for writing, or who waits gave up
_PASSING = ("08", "57P", "25006", "55P03", "40001", "40P01")
_NO_RIGHT = "42501"
_RIGHTS = (
    " Who makes the tables needs create on the database; any other writer usage of the schema graphstore, and select, insert, update and delete of "
    "its tables; a reader usage and select."
)
# what a server says at its door that waiting does not mend; in another language it is waited for all the same
_AT_THE_DOOR = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "not permitted to log in",
    "does not support SSL",
    "certificate",
)

_BEFORE = re.compile(
    r"^(- host: .*?: )?connection (failed|is bad): "
)  # what the driver puts before the words of libpq
NOT_KEPT = "Nothing of it was kept."

T = TypeVar("T")


class Row(NamedTuple):
    """One line: its number from 1 on, the id of its transaction, its digest and that of the line before, its head and bodies."""

    seq: int
    id: bytes
    prev: str
    digest: str
    head: bytes
    bodies: Sequence[bytes]


class _Doing(NamedTuple):
    """What a server is asked: what that is called, whether it may work on it as long as it likes, or answers at once or never."""

    asked: str
    long: bool = False
    brief: bool = False


_ASKED, _TO_COMMIT, _TO_FORGET = _Doing("a question"), _Doing("a commit"), _Doing("forgetting", long=True)
_TO_TURN, _IN_PASSING = _Doing("the wish to write"), _Doing("the end of a turn", brief=True)


class _Gone(NamedTuple):
    """Since when no server is there, when it was looked for last, and what was said then."""

    since: float
    last: float
    why: str


class Address(NamedTuple):
    """Where a store is: what libpq is told, the name of the store, the folder of its copy (None: one that is removed again), and what is shown."""

    conninfo: str
    store: str
    cache: str | None
    shown: str


class _OnItsWay(NamedTuple):
    """An insert that was sent, and whose answer nobody has read: its rows, and whether it tells others, as of when."""

    rows: Sequence[Row]
    tells: bool
    at: float


class Listening(NamedTuple):
    """A connection, and whether it is told of transactions."""

    connection: Any
    listens: bool

    def told(self, timeout: float) -> list[str]:
        """What was told by then: a process's token and the store's name, once for each transaction."""
        return [
            one.payload
            for one in self.connection.notifies(timeout=timeout, stop_after=1 if timeout else None)
        ]


class Diverged(DamageError):
    """What was read here is not in the server any more: it was rewritten without what was purged, or never acknowledged and lost."""


class Unreachable(EngineError):
    """No server took the statement in time."""

    passes = True


@cache
def _silent(driver: Any) -> Any:
    """The error of a server that says nothing; `alive`: when it last said that it was at work."""
    return type("Silent", (driver.OperationalError,), {"alive": None})


@cache
def _bounded(driver: Any) -> Any:
    """A connection that waits for no answer without end. After `silence` seconds without a word `look` tells, by what it was begun at, whether to wait on."""

    def wait(self: Any, generator: Any, *args: Any, **named: Any) -> Any:
        return driver.Connection.wait(self, _heard(self, generator), *args, **named)

    also = {"driver": driver, "silence": _SILENCE, "look": None, "asked": "a question"}
    return type("Bounded", (driver.Connection,), {"wait": wait, **also})


def _heard(connection: Any, generator: Any) -> Generator[Any, Any, Any]:
    """What the driver waits for, step by step. Closes the connection and raises where it is given up."""
    begun = heard = time.monotonic()
    alive: float | None = None
    try:
        wants = next(generator)
        while True:
            ready = yield wants
            if ready:
                heard = time.monotonic()
            elif time.monotonic() - heard >= connection.silence:
                goes_on = connection.look(begun) if connection.look is not None else False
                if goes_on is False:
                    connection.close()
                    error = _silent(connection.driver)(
                        f"no answer to {connection.asked} came for {time.monotonic() - heard:.0f} s"
                    )
                    error.alive = alive
                    raise error
                heard = time.monotonic()
                alive = heard if goes_on else alive
            wants = generator.send(ready)
    except StopIteration as end:
        return end.value


def is_cluster(path: object) -> bool:
    """Whether a path is the address of a store in PostgreSQL."""
    return isinstance(path, str) and path[:13].lower().startswith(("postgresql://", "postgres://"))


def address(url: str) -> Address:
    """Raises InvalidError for what is no address, and where the name of the store is missing."""
    try:
        url.encode()
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, errors="strict")
    except ValueError:  # its words may have the password
        raise InvalidError(
            "that is no address of a store in PostgreSQL. One is postgresql://host/database?store=team"
        ) from None
    if "@" in parts.path or parts.fragment or (not parts.path and "@" in parts.query):
        raise InvalidError(
            "that is no address of a store in PostgreSQL. In a name, a password and a database write @ / ? # % as %40 %2F %3F %23 %25."
        )
    ours = {name: value for name, value in given if name in _OURS}
    shown = urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    )  # no name and no password
    if not ours.get("store"):
        raise InvalidError(
            f"{shown} names no store. Say which of this database: postgresql://host/database?store=team"
        )
    for name in ours:
        if len([1 for other, _ in given if other == name]) > 1:
            raise InvalidError(f"{shown} has {name}= more than once. Give it once.")
    if len(ours["store"].encode()) > _NAME_BYTES:
        raise InvalidError(
            f"{shown}: the name of a store has at most {_NAME_BYTES} bytes. Give a shorter one."
        )
    if any("\0" in value for value in ours.values()):
        raise InvalidError(f"{shown}: the name of a store or a folder has no NUL. Give another.")
    if ours.get("cache") == "":
        raise InvalidError(f"{shown}: cache= is empty. Give the name of a folder, or leave it out.")
    left = urlencode([(name, value) for name, value in given if name not in _OURS], quote_via=quote)
    conninfo = urlunsplit((parts.scheme, parts.netloc, parts.path, left, ""))
    return Address(conninfo, ours["store"], ours.get("cache"), f"{shown}?store={quote(ours['store'])}")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise InvalidError(
            f"a store in PostgreSQL needs {error.name or 'libpq for psycopg'}. Install it: pip install 'graphstore[postgres]'"
        ) from None
    return psycopg


class Cluster:
    """The rows of one store. `read_only`: a standby does too."""

    def __init__(self, where: Address, *, read_only: bool) -> None:
        self.where, self.read_only = where, read_only
        self.locked = False  # whether this process has its turn at writing
        self.patience, self.silence = _PATIENCE, _SILENCE
        self._driver = _psycopg()
        self._settings = self._read_settings()
        self._reached = False  # whether a server has ever let this process in
        self._open: Any = None
        self._session: Any = None  # what the server calls the open one
        self._doing = _ASKED  # there
        self._gone: _Gone | None = None
        self.notify: Callable[[str], None] = lambda notice: None
        self._prepared: Any = None  # the connection that knows the insert
        self._names = (b"", b"")  # of the store, and of who tells, as that connection takes them
        self._warned = ""  # what the server has warned of since this was emptied
        self._on_its_way: _OnItsWay | None = None  # on the open connection
        self._using = threading.RLock()
        self.token = f"{random.getrandbits(64):016x}"  # whose notification it is
        self._told_at, self._untold = (
            0.0,
            False,
        )  # when others were told last, and whether there is more since

    # ------------------------------------------------------------------ connection

    def _read_settings(self) -> dict[str, Any]:
        try:
            return dict(self._driver.conninfo.conninfo_to_dict(self.where.conninfo))
        except self._driver.Error as error:
            # of all else that libpq says here a part may be the password
            known = "query parameter" in str(error)
            raise InvalidError(
                f"{self.where.shown}: {_said(error)}. Beside store and cache it takes the settings of libpq, such as sslmode."
                if known
                else f"{self.where.shown} is no address. In a name, a password and a database write % as %25, and so on."
            ) from None

    def connect(self) -> Any:
        """A new connection to the server that takes writes, or for a reader to any. Raises psycopg's OperationalError."""
        options = {
            "connect_timeout": "5",
            "keepalives_idle": "5",
            "keepalives_interval": "2",
            "keepalives_count": "3",
            "tcp_user_timeout": "15000",
            "application_name": "graphstore",
            "target_session_attrs": "any" if self.read_only else "read-write",
        }
        made = _bounded(self._driver).connect(
            self._driver.conninfo.make_conninfo(
                self.where.conninfo, **{**options, **self._settings, "client_encoding": "utf8"}
            ),
            autocommit=True,
        )
        made.silence = self.silence
        try:
            made.execute(f"set lock_timeout = '{_TURN}s'; set plan_cache_mode = force_generic_plan")
            if not self.read_only:
                self._check_durable(made)
        except BaseException:
            made.close()
            raise
        return made

    def _check_durable(self, connection: Any) -> None:
        # at each connection: the server that takes over may be set up in another way. It is looked for another until patience ends
        *off, alone = connection.execute(_DURABLE).fetchone()
        for name in off:
            if name is not None:
                raise self._driver.OperationalError(f"{name}=off: {_NO_DISK}")
        if alone and connection.info.parameter_status("in_hot_standby") != "on":
            self.notify(
                f"{self.where.shown} waits for no synchronous standby: what is acknowledged is on one server alone. Set "
                "synchronous_standby_names there, and synchronous_commit to on."
            )

    def _connection(self) -> Any:
        if self._open is None or self._open.closed:
            self._drop()
            try:
                self._open = self.connect()
            except self._driver.Error as error:
                if not self._reached:  # later it may pass: a server that is set up anew
                    self._refuse(error)
                raise
            self._reached = True
            self._open.add_notice_handler(self._note)
            self._session = self._open.execute(_SESSION).fetchone()
            self._open.look = self._look
        return self._open

    def _refuse(self, error: Exception) -> None:
        """Raises InvalidError or EngineError where a connection failed for what waiting does not mend."""
        said = str(error)
        if said.endswith(_NO_DISK):
            raise InvalidError(f"{self.where.shown} has {said}. Set it to on; nothing was opened.") from None
        bad = said.startswith("connection is bad") and "connection to server" not in said
        if bad or not isinstance(error, self._driver.OperationalError):
            raise InvalidError(
                f"{self.where.shown} cannot be opened: {_said(error)}. Correct the address."
            ) from None
        if any(why in said for why in _AT_THE_DOOR):
            raise EngineError(
                f"{self.where.shown} cannot be opened: {_said(error)}. Correct the address, the password (PGPASSFILE), or what the server allows."
            ) from error

    def _note(self, notice: Any) -> None:
        # a wait for the standby that somebody cancelled is told by a warning alone, and so is a VACUUM that was not done
        if notice.severity_nonlocalized == "WARNING":
            self._warned = notice.message_primary or "a warning"

    def _drop(self) -> None:
        self.locked, self._on_its_way = False, None
        if self._open is not None:
            self._open.close()
            self._open = None

    def _look(self, begun: float) -> bool | None:
        """Whether the session, silent for a while, is to be waited for: it waits for a standby, or may take its time; None: it works, and has not for long.
        Asked on another connection."""
        if self._doing.brief:
            return False
        try:
            with contextlib.closing(self.connect()) as other:
                found = other.execute(_DOES, self._session).fetchone()
        except self._driver.Error:
            return False
        if found is None or found[0] in ("idle", "idle in transaction"):
            return False  # it ended, or what was sent does not come to it
        if self._doing.long or found[1] == _STANDBY:
            return True
        return None if time.monotonic() - begun < self.patience else False

    def _run(
        self,
        work: Callable[[Any], T],
        rows: Sequence[Row] = (),
        patience: float | None = None,
        doing: _Doing | None = None,
    ) -> T:
        """Do it, and again on a new connection while the server is not there: so all that is done here may be done twice. It reads the answer to what was
        sent of these `rows`.

        Raises Unreachable, or EngineError for what the server refuses; nothing of it was done then.
        """
        wait = 0.01
        patience = self.patience if patience is None else patience
        errors = self._driver
        with self._using:
            self._doing = doing or _ASKED
            self._refuse_gone(patience)
            while True:
                begun = time.monotonic()
                try:
                    connection = self._connection()
                    connection.silence = min(self.silence, _AT_ONCE) if self._doing.brief else self.silence
                    connection.asked = self._doing.asked
                    if self._on_its_way is not None and self._on_its_way.rows is not rows:
                        self._pass_over(connection)
                    done = work(connection)
                    self._gone = None
                    return done
                except errors.Error as error:
                    state = error.sqlstate or ""
                    if state and not state.startswith(_PASSING):
                        self._gone = None
                        rights = _RIGHTS if state == _NO_RIGHT else ""
                        raise EngineError(
                            f"{self.where.shown} refused: {_said(error)}.{rights} {NOT_KEPT}",
                            outcome="not kept",
                        ) from error
                    gone = self._gone = self._found_gone(error, begun)
                    if self._open is not None and (not state or not state.startswith(("55", "40"))):
                        self._drop()
                    absent = not rows and "," not in str(self._settings.get("host", "")) and _nobody(error)
                    if gone.last >= gone.since + (min(patience, _ABSENT) if absent else patience):
                        raise self._unreachable(gone) from error
                time.sleep(wait * random.uniform(0.5, 1.5))
                wait = min(2 * wait, 0.5)

    def _found_gone(self, error: Exception, begun: float) -> _Gone:
        now = time.monotonic()
        since = self._gone.since if self._gone is not None else begun if self._open is None else now
        if isinstance(error, _silent(self._driver)):
            since = min(since, begun) if error.alive is None else max(since, error.alive)
        said, before = _said(error), self._gone.why if self._gone is not None else ""
        if before.startswith("no answer to"):  # what was waited for first
            said = f"{before.partition(';')[0]}; {said}"
        return _Gone(since, now, said)

    def _refuse_gone(self, patience: float) -> None:
        """Raise Unreachable where a server was looked for long enough, and just now."""
        gone, now = self._gone, time.monotonic()
        if gone is None:
            return
        if now > gone.last + max(patience, _AGAIN):
            self._gone = None  # long ago
        elif gone.last >= gone.since + patience and now < gone.last + _AGAIN:
            raise self._unreachable(gone)

    def _unreachable(self, gone: _Gone) -> Unreachable:
        wanted = "is there" if self.read_only else "takes writes there"
        return Unreachable(
            f"{self.where.shown} cannot be reached: {gone.why}. Nothing is lost; see that a server {wanted}."
        )

    def listening(self) -> Listening:
        """A connection of its own that is told of each transaction; a standby tells nobody."""
        connection = self.connect()
        listens = connection.info.parameter_status("in_hot_standby") != "on"
        if listens:
            connection.execute(f"listen {CHANNEL}")
        return Listening(connection, listens)

    def close(self) -> None:
        """Let go of the server."""
        with self._using:
            self._drop()

    # ------------------------------------------------------------------ what is there

    def prepare(self, *, create: bool) -> None:
        """Make the tables where they are missing.

        Raises NotFoundError when there is no such store and none is made, InvalidError for a server that acknowledges what is on no disk.
        """

        def look(connection: Any) -> bool:
            tables = connection.execute("select to_regclass('graphstore.body') is not null").fetchone()[0]
            if not tables and create and not self.read_only:
                with connection.transaction():
                    connection.execute(
                        "select pg_advisory_xact_lock(hashtextextended('graphstore tables', 0))"
                    )
                    if connection.execute("select to_regnamespace('graphstore') is null").fetchone()[0]:
                        connection.execute(_SCHEMA)
                    connection.execute(_TABLES)
                tables = True
            if tables and create and not self.read_only:
                connection.execute(_NAME, (self.where.store,))
            return bool(tables) and connection.execute(_ANY, (self.where.store,)).fetchone() is not None

        if not self._run(look):
            raise NotFoundError(
                f"no store {self.where.store!r} at {self.where.shown}. Make one with graphstore.open({self.where.shown!r})."
            )

    def lines(self, after: int, digest: str) -> Iterator[list[bytes]]:
        """The lines after that one, as they are in a segment, many at once. Raises Diverged where the line is not the one of this digest."""
        while True:
            page = self._run(partial(self._page, after))
            if after:
                if not page or page[0][:2] != (after, digest):
                    raise Diverged(
                        f"{self.where.shown}: line {after} is not the one that was read before. It is read again from the beginning."
                    )
                del page[0]
            if not page:
                return
            yield [raw for *_, raw in page]
            after, digest = page[-1][:2]

    def _page(self, after: int, connection: Any) -> list[tuple[int, str, bytes]]:
        first = max(after, 1)
        with connection.cursor(binary=True) as cursor:
            found = cursor.execute(_LINES, (after, self.where.store, first, _PAGE)).fetchall()
        page = []
        for at, (seq, digest, head, ns, bodies) in enumerate(found, first):
            if seq != at:
                raise DamageError(
                    f"{self.where.shown} line {at}: it is missing. Nothing was changed. Restore a backup."
                )
            known = dict(zip(ns or (), bodies or (), strict=True))
            page.append((seq, digest, _line(head, digest, known) if seq > after else b""))
        return page

    def last(self) -> tuple[int, str]:
        """The number and digest of the last line; (0, GENESIS) where there is none."""
        return self._run(self.last_at)

    def last_at(self, connection: Any) -> tuple[int, str]:
        """The same, asked on this connection. Raises psycopg's Error."""
        wanted = "select seq, digest from graphstore.journal where store = %s order by seq desc limit 1"
        found = connection.execute(wanted, (self.where.store,)).fetchone()
        return (found[0], found[1]) if found else (0, GENESIS)

    def says_away(self, error: Exception) -> str:
        """What is told while the server cannot be looked at."""
        return f"{self.where.shown} cannot be reached: {_said(error)}."

    # ------------------------------------------------------------------ turns

    def lock(self) -> None:
        """Wait for this process's turn at writing, some seconds. Whose process does nothing for so long loses it: the digests fence that one."""

        def take(connection: Any) -> bool:
            for last in (False, True):
                try:
                    connection.execute("select pg_advisory_lock(hashtextextended(%s, 0))", (self._turn_name,))
                    return True
                except self._driver.errors.LockNotAvailable:
                    if last:
                        break
                with contextlib.suppress(self._driver.errors.InsufficientPrivilege):
                    connection.execute(_END_IDLE, (self._turn_name,))
            return False

        with self._using:
            if not self.locked:
                self.locked = self._run(take, doing=_TO_TURN)

    def _in_passing(self, text: str, values: tuple[str, ...]) -> None:
        self._run(lambda connection: connection.execute(text, values), patience=0.0, doing=_IN_PASSING)

    @property
    def _turn_name(self) -> str:
        return f"graphstore turn {self.where.store}"

    def unlock(self) -> None:
        """End the turn, and tell others of what they were not told yet. A server that is not there is not waited for: it has ended the turn, and who was
        not told looks."""
        with self._using, contextlib.suppress(Unreachable):
            if self.locked:
                self.locked = False
                self._in_passing(_UNLOCK, (self._turn_name,))
            if self._untold:
                self._in_passing(_TELL, (CHANNEL, self._telling))
                self._untold = False

    @property
    def _telling(self) -> str:
        return f"{self.token} {self.where.store}"

    # ------------------------------------------------------------------ writing

    def send(self, rows: Sequence[Row]) -> None:
        """Send what `insert` of the same rows then waits for, where nothing else is to be done first. It waits for nobody."""
        if not self._using.acquire(blocking=False):
            return
        try:
            known = self._open is not None and self._open is self._prepared and not self._open.closed
            if known and self._on_its_way is None and sum(map(_size, rows)) < _CHUNK:
                self._send_off(self._open, rows)
        except self._driver.Error:  # `insert` tells
            pass
        finally:
            self._using.release()

    def insert(self, rows: Sequence[Row]) -> bool:
        """Add lines after the one before them, all or none. False: another process wrote there first.

        Raises Unreachable when that is unknown, EngineError when the server refuses.
        """
        first = rows[0]
        wanted = "select uuid_send(id) from graphstore.journal where store = %s and seq = %s"

        def once(connection: Any) -> bool:
            self._warned = ""
            try:
                if self._insert(connection, rows):
                    if self._warned:
                        _wait_for_standby(connection)
                    return True
            except self._driver.errors.UniqueViolation:
                pass
            found = connection.execute(wanted, (self.where.store, first.seq)).fetchone()
            if found is None or found[0] != first.id:
                return False
            _wait_for_standby(
                connection
            )  # an earlier attempt was kept, and may have been cut off while it waited
            return True

        return self._run(once, rows, doing=_TO_COMMIT)

    def _insert(self, connection: Any, rows: Sequence[Row]) -> bool:
        if self._on_its_way is None:
            chunks = list(_chunks(rows))
            if len(chunks) > 1:
                return self._insert_all(connection, chunks)
            self._send_off(connection, rows)
        sent, self._on_its_way = self._on_its_way, None
        assert sent is not None
        kept = self._is_kept(connection, rows)
        self._untold, self._told_at = not sent.tells, sent.at if sent.tells else self._told_at
        return kept

    def _insert_all(self, connection: Any, chunks: list[list[Row]]) -> bool:
        with connection.transaction() as whole:
            for chunk in chunks:
                self._send(connection, chunk)
                if not self._is_kept(connection, chunk):
                    raise self._driver.Rollback(whole)
            return True
        return False

    def _send_off(self, connection: Any, rows: Sequence[Row]) -> None:
        now = time.monotonic()
        tells = now - self._told_at >= _TOLD
        self._send(connection, rows, tell=tells)
        self._on_its_way = _OnItsWay(rows, tells, now)

    def _pass_over(self, connection: Any) -> None:
        # its rows are inserted once more, by who waits for them: their id tells then whether this one was kept
        self._on_its_way, self._untold = None, True
        connection.wait(self._driver.generators.execute(connection.pgconn))

    def _is_kept(self, connection: Any, rows: Sequence[Row]) -> bool:
        return bool(self._answer(connection).command_tuples == len(rows))

    def _send(self, connection: Any, rows: Sequence[Row], *, tell: bool = True) -> None:
        if self._prepared is not connection:
            connection.pgconn.send_prepare(_INSERT_NAME, _INSERT.encode(), _TYPES)
            self._answer(connection)
            encoding = connection.info.encoding
            self._names = self.where.store.encode(encoding), self._telling.encode(encoding)
            self._prepared = connection
        store, telling = self._names
        bodies = [
            (at, n, body)
            for at, row in enumerate(rows, 1)
            for n, body in enumerate(row.bodies)
            if body != FORGOTTEN
        ]
        values = (
            store,
            _int8(rows[0].seq - 1),
            rows[0].prev.encode(),
            _array(_UUID, [row.id for row in rows]),
            _array(_TEXT, [row.digest.encode() for row in rows]),
            _array(_BYTEA, [row.head for row in rows]),
            _array(_INT4, [_int4(at) for at, _, _ in bodies]),
            _array(_INT4, [_int4(n) for _, n, _ in bodies]),
            _array(_BYTEA, [body for _, _, body in bodies]),
            telling if tell else None,
        )
        connection.pgconn.send_query_prepared(_INSERT_NAME, values, _BINARY)

    def _answer(self, connection: Any) -> Any:
        """The result of what was sent. A cursor would cost as much again as all else that a process does for an insert."""
        [result] = connection.wait(self._driver.generators.execute(connection.pgconn))
        if result.status == self._driver.pq.ExecStatus.FATAL_ERROR:
            raise self._driver.errors.error_from_result(result)
        return result

    def replace(self, last: tuple[int, str], rows: Callable[[], Iterator[Row]]) -> str | None:
        """Put other lines in the place of all there are, whose last is this one. Returns a notice for users; None: another process wrote meanwhile."""
        store = (self.where.store,)
        end: tuple[int, str] = (0, GENESIS)
        for row in rows():
            end = row.seq, row.digest

        def once(connection: Any) -> bool:
            with connection.transaction() as whole:
                known = "select digest from graphstore.journal where store = %s and seq = %s for update"
                found = connection.execute(known, (*store, last[0])).fetchone()
                newest = connection.execute(
                    "select max(seq) from graphstore.journal where store = %s", store
                ).fetchone()
                if found is None or found[0] != last[1] or newest[0] != last[0]:
                    raise self._driver.Rollback(whole)
                connection.execute("delete from graphstore.body where store = %s", store)
                connection.execute("delete from graphstore.journal where store = %s", store)
                for chunk in _chunks(rows()):
                    self._send(connection, chunk)
                    self._answer(connection)
                return True
            return self.last() == end  # an earlier attempt was kept

        return self._vacuum() if self._run(once, doing=_TO_FORGET) else None

    def remove(self, bodies: Sequence[tuple[int, int]]) -> str:
        """Delete bodies, by the number of the line and their own. What was deleted before is gone already. Returns a notice for users, or an empty text."""
        gone = "delete from graphstore.body b using unnest(%s::bigint[], %s::int[]) g (seq, n) where store = %s and b.seq = g.seq and b.n = g.n"
        places = ([seq for seq, _ in bodies], [n for _, n in bodies], self.where.store)
        if self._run(lambda connection: connection.execute(gone, places).rowcount, doing=_TO_FORGET):
            return self._vacuum()
        return ""

    def _vacuum(self) -> str:
        """Have deleted rows leave the pages of the tables. Returns a notice of where else they are."""
        text = "vacuum graphstore.body, graphstore.journal"

        def work(connection: Any) -> str:
            self._warned = ""
            connection.execute(text)
            return self._warned

        elsewhere = (
            "The server's write-ahead log, its backups and standbys that lag have it until they age out."
        )
        if warned := self._run(work, doing=_TO_FORGET):
            return (
                f"{self.where.shown}: what was forgotten is deleted, and still in the files of the tables ({warned}). Have their owner run: {text}. "
                + elsewhere
            )
        return f"{self.where.shown}: what was forgotten is deleted. {elsewhere}"


def _nobody(error: Exception) -> bool:
    """Whether nobody listens there."""
    return any(os.strerror(each) in str(error) for each in (errno.ECONNREFUSED, errno.ENOENT))


def _said(error: Exception) -> str:
    """In one line; of several hosts what each has said, once."""
    first, *more = str(error).strip().splitlines() or [""]
    each = [line for line in more if line.startswith("- host")] or [first]
    said = [_BEFORE.sub("", line).strip().rstrip(".") for line in each]
    return "; ".join(dict.fromkeys(said)) or type(error).__name__


def _wait_for_standby(connection: Any) -> None:
    # a commit that writes waits for the standby, which has all that was written before then too
    connection.execute("select pg_logical_emit_message(true, 'graphstore', '')")


def _array(type_of: int, items: Sequence[bytes]) -> bytes:
    """An array of one dimension, as the server takes it."""
    parts = [_begin_array(1, 0, type_of, len(items), 1)]
    for item in items:
        parts += (_int4(len(item)), item)
    return b"".join(parts)


def _size(row: Row) -> int:
    return len(row.head) + sum(map(len, row.bodies))


def _chunks(rows: Any) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += _size(row)
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _line(head: bytes, digest: str, known: dict[int, bytes]) -> bytes:
    """The line of a head, as it is in a segment; a body that is not there was forgotten."""
    bodies = [known.get(n, FORGOTTEN) for n in range(len(orjson.loads(head)["body"]))]
    return b'{"body":[%b],"digest":"%b","head":%b}\n' % (b",".join(bodies), digest.encode(), head)


def row_of(seq: int, id: bytes, line: bytes) -> Row:
    """A line of a segment, without its end, as a row. Raises ValueError saying what is wrong with it."""
    head, digest, spans = check(line)
    bodies = [line[at : at + size] if size else FORGOTTEN for at, size in spans]
    return Row(seq, id, head["prev"], digest, dumps(head), bodies)
