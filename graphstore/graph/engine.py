"""The interface to the embedded graph engine (kuzu or ladybug), and the only module that imports it.

It guards against errors of the engines: an unbound parameter switches its filter off, a rollback makes the file unusable, the offset of an aware datetime
is dropped, one path can be opened twice, and a text of two statements escapes a read-only transaction. Therefore every text is tokenized first, one
function binds and one reads all values, one statement runs at a time, and a connection that failed is discarded.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.errors import EngineError, InvalidError, LockedError, QueryError
from graphstore.graph.guard import check_aggregates, check_nulls, check_stoppable, guard, widened
from graphstore.graph.limits import LIMITS, QueryLimits
from graphstore.graph.once_each import once_each
from graphstore.graph.result import (
    Entity,
    Result,
    ValueReader,
    fits,
    needs_arrow,
    rows_of,
)
from graphstore.graph.row_parameters import rows_read
from graphstore.graph.statement import CypherStatement, parse, split
from graphstore.graph.texts import text
from graphstore.values.libraries import ARROW, DRIVERS, load

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "DRIVERS",
    "Engine",
    "Entity",
    "Result",
    "bind",
    "seconds_limit",
    "stopped_by",
    "stopping_event",
    "time_limit",
]

NODE_GROUP = 131_072
"""Nodes that one thread scans at a time. In a smaller graph a second thread has no work, and costs 20 MB for each COPY."""
COPY_FROM = 20_000
"""The number of rows from which COPY is faster than LOAD FROM … CREATE."""
# --------------------------------------------------------------------------------------- values in and values out


def bind(name: str, value: Any) -> Any:
    """Return a parameter as the engine takes it. Raises InvalidError for a value that the engine would misread.

    Aware datetimes become UTC, a date becomes midnight UTC, and a tuple a list. A list must have one type and at least one value.
    """
    if isinstance(value, list | tuple):
        return _bind_list(name, value)
    if value is None:
        return None
    return _bind_one(name, value)


def _bind_one(name: str, value: Any) -> Any:
    kind = type(value)
    if kind is bool or kind is float:
        return value
    if kind is int:
        if not -(2**63) <= value < 2**63:
            raise InvalidError(f"parameter ${name} {value} does not fit into 64 bits.")
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidError(f"parameter ${name} is no valid text: {error}") from None
        return str(value)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise InvalidError(
                f"parameter ${name} {value!r} has no time zone. Give an aware datetime, for example "
                f"{value.isoformat()}+00:00 or datetime(…, tzinfo=timezone.utc)."
            )
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise InvalidError(
        f"parameter ${name} is a {kind.__module__}.{kind.__name__}, which cannot be bound. "
        "Give None, a bool, an int, a float, a str, an aware datetime, or a list of one of these."
    )


def _bind_list(name: str, values: Sequence[Any]) -> list[Any]:
    if not values:
        raise InvalidError(
            f"parameter ${name} is an empty list, which has no type. Leave the filter out instead."
        )
    bound = [_bind_one(f"{name}[{i}]", value) for i, value in enumerate(values)]
    kinds = {type(value) for value in bound}
    if kinds == {int, float}:
        return [float(value) for value in bound]
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidError(f"parameter ${name} mixes {names}. Give a list of one type.")
    return bound


def _arrow_in(rows: pyarrow.Table, types: Mapping[str, str]) -> pyarrow.Table:
    """Convert a table to types that the engine reads correctly: naive UTC microseconds, plain strings, one chunk.

    A column of nulls only gets the type that `types` has for its name.
    """
    import pyarrow as pa

    from graphstore.graph import arrow_types

    fields = []
    for field in rows.schema:
        kind = field.type
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("us")  # casting an aware column keeps the instant and drops the zone
        elif pa.types.is_null(kind):
            kind = arrow_types.arrow_type(types.get(field.name, "STRING")) or pa.string()
        elif pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
            kind = pa.string()
        fields.append(pa.field(field.name, kind))
    schema = pa.schema(fields)
    if schema != rows.schema:
        columns = [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)]
        rows = pa.table(columns, schema=schema)
    return rows.combine_chunks()


_FRAMES = frozenset({"pandas", "polars"})
_asking = threading.Lock()
_asked = False


@contextmanager
def _frames_unasked() -> Iterator[None]:
    """Return a block in which rows are loaded. To recognize data frames the engine searches for pandas and polars and imports them, which takes a second: the
    block hides those that are not imported yet.

    The engine keeps the search function that it finds at the first load.
    """
    global _asked
    if _asked:
        yield
        return
    with _asking:
        find_spec, thread, first = importlib.util.find_spec, threading.get_ident(), True

        def loaded(name: str, package: str | None = None) -> Any:
            if (
                name in _FRAMES
                and name not in sys.modules
                and not (first and threading.get_ident() != thread)
            ):
                return None
            return find_spec(name, package)

        importlib.util.find_spec = loaded
        try:
            yield
        finally:
            importlib.util.find_spec, first, _asked = find_spec, False, True


_THING = re.compile(r"\b(NODE|REL|RECURSIVE_REL|INTERNAL_ID)\b")
_FLAT = re.compile(r"(STRING|BOOL|U?INT(8|16|32|64)|DOUBLE|FLOAT|TIMESTAMP)(\[\])?\Z")


# ------------------------------------------------------------------------------------------------------- the engine

_seconds: ContextVar[float | None] = ContextVar("seconds", default=None)
_stopping: ContextVar[threading.Event | None] = ContextVar("stopping", default=None)
_LOOK = 0.05  # seconds between checks of whether to stop a query; a signal waits at most this long


@contextmanager
def _within(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def time_limit(seconds: float) -> AbstractContextManager[None]:
    """Return a block that stops every user query of this thread after `seconds`; a stopped query raises QueryError."""
    return _within(_seconds, seconds)


def seconds_limit() -> float | None:
    """Return the seconds that a query may run here; None for no limit."""
    return _seconds.get()


def stopping_event() -> threading.Event | None:
    """Return the event of the enclosing `stopped_by` block; None outside."""
    return _stopping.get()


def stopped_by(stopping: threading.Event) -> AbstractContextManager[None]:
    """Return a block that stops every user query when another thread sets the event; a stopped query raises QueryError."""
    return _within(_stopping, stopping)


_open_paths: weakref.WeakValueDictionary[Path, Engine] = weakref.WeakValueDictionary()
_registry = threading.Lock()
_faults: dict[tuple[str, str], tuple[str, ...]] = {}


def load_driver(driver: str) -> Any:
    """Return the module of a driver. Raises InvalidError for an unknown driver, EngineError if it cannot be loaded."""
    if driver not in DRIVERS:
        raise InvalidError.choice("driver", driver, DRIVERS)
    other = DRIVERS[1 - DRIVERS.index(driver)]
    if other in sys.modules:
        raise EngineError(
            f"{other!r} is loaded in this process and {driver!r} cannot be loaded beside it. "
            f"Use driver={other!r} here, or another process."
        )
    try:
        return importlib.import_module(driver)
    except ImportError as error:
        fix = "pip install kuzu==0.11.3" if driver == "kuzu" else "pip install 'graphstore[ladybug]'"
        raise EngineError(
            f"the driver {driver!r} cannot be loaded ({error}). Install it with: {fix}"
        ) from None


class Engine:
    """One open database of the engine: a file, or memory when `path` is None.

    It runs one statement at a time; threads may share it and wait for each other. After a failed write the engine is broken: every call raises EngineError
    until it is closed and reopened. `threads`: how many threads work on a statement; 0 for as many as the machine has.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        driver: str = "kuzu",
        buffer_pool: int = 256 << 20,
        max_size: int = 1 << 36,
        threads: int = 0,
    ) -> None:
        self.path = None if path is None else Path(path).resolve()
        self.driver = driver
        self._module = load_driver(driver)
        self._lock = threading.RLock()
        self._broken: str | None = None
        self._columns: dict[str, dict[str, str]] = {}
        self._reader: Any = None
        self._database: Any = None
        self._connection: Any = None
        self._claim()
        try:
            self._open(buffer_pool, max_size, threads)
        except BaseException:
            self._release()
            raise

    def _claim(self) -> None:
        if self.path is None:
            return
        with _registry:
            if self.path in _open_paths:
                raise LockedError(
                    f"{self.path} is open in this process already. Close it first, or use that one."
                )
            _open_paths[self.path] = self

    def _release(self) -> None:
        if self.path is not None:
            with _registry:
                if _open_paths.get(self.path) is self:
                    del _open_paths[self.path]

    def _open(self, buffer_pool: int, max_size: int, threads: int) -> None:
        options: dict[str, Any] = {
            "buffer_pool_size": buffer_pool,  # the default is 80 % of the machine
            "max_db_size": max_size,  # addresses reserved; with the default of 8 TiB the 16th database fails
            "auto_checkpoint": False,  # a process killed inside a checkpoint leaves a file that cannot be opened
            "max_num_threads": threads,
        }
        if self.driver == "kuzu":
            options["compression"] = False  # it compares each text with earlier ones: half of a COPY
        if self.driver == "ladybug":
            options["throw_on_wal_replay_failure"] = False
        try:
            self._database = self._module.Database(
                ":memory:" if self.path is None else str(self.path), **options
            )
            self._connection = self._connect()
        except (RuntimeError, ValueError, OSError, MemoryError, IndexError) as error:
            raise self._open_error(error) from error
        self._connection.execute("CALL force_checkpoint_on_close=false")

    def _open_error(self, error: Exception) -> EngineError:
        if "lock" in str(error).lower():
            return LockedError(f"{self.path} is open in another process: {first_line(error)}")
        return EngineError(f"{self.path or 'the in-memory database'} cannot be opened: {first_line(error)}")

    def _connect(self) -> Any:
        connection = self._module.Connection(self._database)
        if self.driver == "ladybug":
            connection.execute(
                "CALL enable_cached_prepared_statement='none'"
            )  # cached plans return wrong rows
        return connection

    # ---- statements of the package

    def run(self, cypher: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run one statement of the package's own and read its rows. Raises EngineError."""
        with self._lock:
            raw = self._statement(cypher, params)
            found = self._result(raw)
            raw.close()
            return found.tuples()

    def arrow(self, cypher: str, /, **params: Any) -> pyarrow.Table:
        """Run a statement as `run` does; return a table with aware instants and null for open ends."""
        with self._lock:
            raw = self._statement(cypher, params)
            load(*ARROW)
            from graphstore.graph.arrow_tables import arrow_out

            table = raw.get_as_arrow()
            raw.close()
            return arrow_out(table)

    def load(self, cypher: str, /, rows: pyarrow.Table) -> None:
        """Run one statement over `$rows`: LOAD FROM $rows …"""
        if rows.num_rows == 0:
            return
        with self._lock, _frames_unasked():
            self._run_raw(parse(cypher, None), {"rows": _arrow_in(rows, {})}, writes=True)

    def copy(
        self,
        table: str,
        /,
        rows: pyarrow.Table,
        *,
        pair: tuple[str, str] | None = None,
        is_empty: bool = False,
    ) -> None:
        """Add rows to a node table, or with `pair` (labels) to a relationship table, whose columns `source` and `target` hold the keys of the ends. Columns
        are matched by name; all columns of the table are required. `is_empty`: use COPY for any number of rows."""
        if rows.num_rows == 0:
            return
        types = self._properties(table)
        columns = list(types)
        ends = ["source", "target"] if pair else []
        if (not columns and not pair) or sorted(rows.column_names) != sorted(ends + columns):
            raise EngineError(f"table {table} wants the columns {ends + columns}, not {rows.column_names}.")
        names = {"TABLE": table}
        if pair:
            names |= {"SOURCE": pair[0], "TARGET": pair[1]}
        if is_empty or rows.num_rows >= COPY_FROM:
            statement = text("copy_links" if pair else "copy_nodes", **names)
        else:
            if pair:
                names |= {"SOURCE_KEY": self._key(pair[0]), "TARGET_KEY": self._key(pair[1])}
            assignments = ", ".join(f"`{name}`: `{name}`" for name in columns)
            statement = text("create_links" if pair else "create_nodes", **names)
            statement = statement.replace("__PROPERTIES__", f"{{{assignments}}}" if columns else "")
        self.load(statement, _arrow_in(rows.select(ends + columns), types))

    def checkpoint(self) -> None:
        """Write the log into the file. If the process is killed meanwhile, the file may not open again: the caller needs a copy or must be able to rebuild it."""
        with self._lock:
            self._drop_reader()
            self._run_raw(CypherStatement("CHECKPOINT"), {}, writes=True)

    # ---- a user's text

    def query(
        self,
        cypher: str,
        params: Mapping[str, Any] | None = None,
        *,
        limits: QueryLimits | None = LIMITS,
    ) -> Result:
        """Run a user's text in its own read-only transaction. Every parameter of the text must be given, and no others.

        Raises QueryError; InvalidError for a value that cannot be bound. In a block of `time_limit`, a query that cannot be stopped is refused.
        """
        timeout = _seconds.get()
        statement = parse(cypher, limits)
        guard(statement)
        if self.driver == "kuzu":
            check_aggregates(statement)
        statement, tables = rows_read(once_each(statement), params or {})
        tables = {name: _arrow_in(rows, {}) for name, rows in tables.items()}
        bound = {**_bind_all(statement, {**(params or {}), **dict.fromkeys(tables)}), **tables}
        check_nulls(statement, bound)
        if timeout is not None:
            check_stoppable(statement, bound)
        with self._lock:
            self._usable()
            try:
                result = self._read(statement, bound, timeout, limits)
            except BaseException:
                self._drop_reader()
                raise
        if self.faults:
            result.warnings.append(_UNVOUCHED.format(driver=self.driver, faults=", ".join(self.faults)))
        return result

    def _read(
        self,
        statement: CypherStatement,
        bound: dict[str, Any],
        timeout: float | None,
        limits: QueryLimits | None,
    ) -> Result:
        try:
            if self._reader is None:
                self._reader = self._connect()
            self._reader.execute("BEGIN TRANSACTION READ ONLY")
            raw = _executed(self._reader, widened(statement, bound), bound, timeout)
            if limits is not None and raw.get_num_tuples() > limits.rows:
                raise QueryError(
                    f"the answer has {raw.get_num_tuples():,} rows; at most {limits.rows:,} are allowed. Add a LIMIT, or ask for a part at a time."
                )
            result = self._result(raw)
            raw.close()
            self._reader.execute("COMMIT")
            return result
        except (RuntimeError, ValueError, TypeError, OverflowError, MemoryError) as error:
            raise _query_error(error, timeout) from error

    def interrupt(self) -> None:
        """Stop the running query, if there is one; any thread may call it. The engine can lose an interrupt: repeat until the query has ended."""
        reader = self._reader
        if reader is not None:
            reader.interrupt()

    def _result(self, raw: Any) -> Result:
        """Return the rows of an answer as a Result."""
        columns, types = raw.get_column_names(), raw.get_column_data_types()
        is_large = raw.get_num_tuples() >= 1000 and len(set(columns)) == len(columns)
        is_large = is_large and all(_FLAT.match(kind) for kind in types)
        with_things, by_arrow = any(map(_THING.search, types)), is_large or any(map(needs_arrow, types))
        load(*ARROW if by_arrow or with_things else ())
        flat = raw.get_as_arrow() if by_arrow else None
        if is_large:
            from graphstore.graph.arrow_tables import arrow_out

            if fits(table := arrow_out(flat)):
                return Result.of_arrow(table)
        rows = raw.get_all() if flat is None else rows_of(flat, types)
        if with_things:
            from graphstore.graph.arrow_types import spelled_out

            # all rows are read already, so this takes none
            shape = raw.get_as_arrow(1).schema if flat is None else flat.schema
            types = [
                (_THING.search(kind) and spelled_out(field.type)) or kind
                for kind, field in zip(types, shape, strict=True)
            ]
        read = ValueReader(self._properties).value
        return Result(columns, [tuple(map(read, row)) for row in rows], types=types)

    # ---- underneath

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the query shapes for which this engine returns wrong rows. A self-test of about 50 ms runs once per driver version and process."""
        version = str(getattr(self._module, "__version__", "unknown"))
        if (self.driver, version) not in _faults:
            known_good = (self.driver, version) == ("kuzu", "0.11.3")
            _faults[self.driver, version] = () if known_good else _self_test(self.driver)
        return _faults[self.driver, version]

    def _properties(self, label: str) -> dict[str, str]:
        """Return the columns of a table with their types, in the order of its definition, without the ends of a relationship."""
        columns = self._columns.get(label)
        if columns is None:
            with self._lock:
                raw = self._connection.execute(f"CALL table_info({label!r}) RETURN name, type")
                columns = self._columns[label] = dict(raw.get_all())
        return columns

    def _key(self, label: str) -> str:
        for name, primary in self.run(f"CALL table_info({label!r}) RETURN name, `primary key`"):
            if primary:
                return str(name)
        raise EngineError(f"table {label} has no key.")

    @property
    def gone(self) -> bool:
        """Return True if the engine was closed."""
        return self._connection is None

    def _usable(self) -> None:
        if self._connection is None:
            raise EngineError("the engine is closed.")
        if self._broken:
            raise EngineError(f"a write failed before ({self._broken}); close the engine and open it anew.")

    def _statement(self, cypher: str, params: Mapping[str, Any]) -> Any:
        statement = parse(cypher, None)
        try:
            guard(statement)
            writes = False
        except QueryError:
            writes = True
        return self._run_raw(statement, _bind_all(statement, params), writes=writes)

    def _run_raw(self, statement: CypherStatement, bound: dict[str, Any], *, writes: bool) -> Any:
        self._usable()
        if statement.tokens[0].word in ("CREATE", "ALTER", "DROP"):
            self._columns = {}
        try:
            return self._connection.execute(widened(statement, bound), bound)
        except RuntimeError as error:
            # A statement that the engine could not understand never started. Any other was rolled back, and after a rollback the engine uses freed memory.
            if writes and not _never_began(error):
                self._broken = first_line(error)
            raise EngineError(f"{first_line(error)}\nin: {statement.text[:400]}") from error
        except BaseException as error:
            if writes:
                self._broken = f"interrupted by {type(error).__name__}"
            raise

    def _drop_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        """Close the database; the log stays as it is. A second call does nothing."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._broken:
                self._forsake(connection)
            else:
                self._drop_reader()
                connection.close()
                self._database.close()
            self._release()

    def _forsake(self, connection: Any) -> None:
        # After a failed write (a full disk) the engine's destructor throws, which ends the process. References keep it alive until the process ends, at the
        # cost of a few megabytes.
        for part in (
            connection,
            getattr(connection, "_connection", None),
            self._database,
            getattr(self._database, "_database", None),
        ):
            if part is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))
        self._reader = self._database = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_UNVOUCHED = "{driver} returned wrong rows in a self-test ({faults}); one relationship per MATCH, with WITH between, is safe."


def _bind_all(statement: CypherStatement, params: Mapping[str, Any]) -> dict[str, Any]:
    """Bind all parameters. Raises QueryError if the text and `params` do not have the same names."""
    missing, unknown = statement.params - params.keys(), params.keys() - statement.params
    if missing:
        raise QueryError(f"parameter {_dollars(missing)} is in the query but was given no value.")
    if unknown:
        raise QueryError(
            f"parameter {_dollars(unknown)} was given but is not in the query; it has {_dollars(statement.params)}."
        )
    return {name: bind(name, value) for name, value in params.items()}


def _dollars(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names)) or "none"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _never_began(error: BaseException) -> bool:
    return str(error).startswith(("Parser exception", "Binder exception", "Catalog exception"))


def _query_error(error: BaseException, timeout: float | None) -> QueryError | EngineError:
    message = str(error).strip()
    stopping = _stopping.get()
    if message.startswith("Interrupted") and stopping is not None and stopping.is_set():
        return QueryError("the query was stopped: nobody waits for its answer any more.")
    if message.startswith("Interrupted"):
        return QueryError(f"the query was stopped after {timeout or 0:g} s. Narrow it, or give it more time.")
    if (
        message.startswith("Buffer manager exception")
        or "bad_alloc" in message
        or isinstance(error, MemoryError)
    ):
        return QueryError("the query needs more memory than the engine may use. Narrow it, or add a LIMIT.")
    if message.startswith(("IO exception", "Storage exception")):
        return EngineError(message)
    return QueryError(message)


def _executed(connection: Any, cypher: str, bound: dict[str, Any], seconds: float | None) -> Any:
    """Execute a statement in another thread. Ctrl-C, the time limit and the event of `stopped_by` stop it."""
    stopping = _stopping.get()
    if seconds is None and stopping is None and threading.current_thread() is not threading.main_thread():
        return connection.execute(cypher, bound)
    ended: Future[Any] = Future()

    def work() -> None:
        try:
            ended.set_result(connection.execute(cypher, bound))
        except BaseException as error:
            ended.set_exception(error)

    until = None if seconds is None else time.monotonic() + seconds
    threading.Thread(target=work, name="graphstore-query", daemon=True).start()
    try:
        while not wait([ended], _LOOK).done:
            # the engine's own timeout interrupts once, and that interrupt can be lost
            if (until is not None and time.monotonic() >= until) or (stopping and stopping.is_set()):
                connection.interrupt()
    except BaseException:
        while not ended.done():  # a running connection must not be closed
            with suppress(KeyboardInterrupt):
                connection.interrupt()
                wait([ended], _LOOK)
        raise
    return ended.result()


# ------------------------------------------------------------------------------------------------------ the self-test


_SHAPES = {
    "three fixed hops": ("self_test_hops", {"id": "7"}),
    "two relationships in one MATCH": ("self_test_pairs", {}),
}


def _self_test(driver: str) -> tuple[str, ...]:
    """Return the query shapes that give wrong rows on a small graph; Python computes the expected ones."""
    import pyarrow as pa

    links = [(i * 7 % 61, (i * i + 3 * i) % 61, i * 31 % 100) for i in range(400)]
    with Engine(None, driver=driver, buffer_pool=64 << 20, max_size=1 << 32) as engine:
        for statement in split(text("self_test_tables")):
            engine.run(statement)
        engine.copy("T", pa.table({"id": [str(i) for i in range(61)]}))
        ends = {"source": [str(a) for a, _, _ in links], "target": [str(b) for _, b, _ in links]}
        engine.copy("L", pa.table({**ends, "x": [x for _, _, x in links]}), pair=("T", "T"))
        found = {
            shape: sorted(engine.run(text(name), low=50, **params))
            for shape, (name, params) in _SHAPES.items()
        }
    good = [(str(a), str(b)) for a, b, x in links if x < 50]
    onward: dict[str, list[str]] = {}
    for a, b in good:
        onward.setdefault(a, []).append(b)
    expected = {
        "three fixed hops": sorted(
            (d,) for b in onward["7"] for c in onward.get(b, ()) for d in onward.get(c, ())
        ),
        "two relationships in one MATCH": sorted((a, c) for a, b in good for c in onward.get(b, ())),
    }
    return tuple(shape for shape in _SHAPES if found[shape] != expected[shape])
