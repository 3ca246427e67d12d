"""Keeps the whole history as Delta tables, in a folder or an object store, and follows the store: for DuckDB, Spark, and other lakehouse readers.

There is a table for each of `change_feed.NAMES`. Rows never change: a row is appended once, and so is its *closing*, a row with only `row`, `tx_to` and
`closed_by`. `sql/lake.sql` joins the two. Each commit holds the position it reaches. So a follower that was killed resumes from there, and of two
followers that write the same part one is refused. `operations` is written last: everything up to its last tx is complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.errors import ConflictError, EngineError, InvalidError, NotFoundError
from graphstore.graph.result import Result
from graphstore.interchange.history_tables import StoreHistory
from graphstore.interchange.retries import keep_up
from graphstore.interchange.sql import answered, duckdb_here, statements
from graphstore.store.change_feed import NAMES, PART, ChangeFeed, Position
from graphstore.values.period import TimeLike, moment
from graphstore.view.view import Reader

if TYPE_CHECKING:
    import deltalake

__all__ = ["Lake", "Taken", "ask", "export_delta", "follow"]

COMPACT_EVERY = 100
"""The number of commits after which a table's small files are merged."""
_CLOSED = ("versions", "events", "links")
_LARGE = 100 << 20  # bytes of a file
_STORE = "graphstore.store"
_COUNTED = ("graphstore.rows", "graphstore.closings", "graphstore.tx")
_COMPARED = "row,id,node_id,event_id,source,target,tx,tx_from,tx_to,valid_from,valid_to,occurred_at"
_DISTINCT = frozenset("row id node_id event_id ref subject told_by opened_by closed_by".split())
_PROSE = frozenset("content text description metadata reason".split())
_MOST = 10_000  # ids in one statement
_FIRST = {"timeout": "10s", "retry_timeout": "15s"}
"""Limits of the first check for a table, about 20 s in all. The library itself tries for 3 minutes and ignores Ctrl-C, as it does later on."""
_ADVICE = (
    ("NoSuchBucket", "There is no such bucket: make it first, or name another."),
    ("URL scheme is not allowed", "The endpoint is not https: allow that with AWS_ALLOW_HTTP=true."),
    (
        "/latest/(api/token|meta-data)",
        "No credentials are given: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    ),
    (
        "401 Unauthorized|403 Forbidden|not authenticated|lacked the necessary privileges",
        "The credentials are refused: look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do.",
    ),
    (
        "HTTP error",
        "No answer came: is AWS_ENDPOINT_URL right, and the object store up? Start again to go on.",
    ),
    ("", "Start again with the tables as they were left, or give an empty place."),
)
"""Advice for errors of the library, by patterns of their text."""
_NO_ANSWER = re.compile(
    r"HTTP error|error sending request|status code: (5\d\d|408|429)|\b5\d\d (Internal|Bad|Service|Gateway)|SlowDown|InternalError|ServiceUnavailable|RequestTimeout"
)
"""Error texts of an object store that may answer later."""
_COMMIT = "graphstore.commit"  # identifies a commit of this process
_LATE = 20  # the latest commits, among which a commit of this process is searched
Options = Mapping[str, str]


class Taken(NamedTuple):
    """What was written: rows and closings appended, and the tx up to which the tables have the whole history, None while they have none."""

    rows: int
    closings: int
    tx: str | None


class _Copy(NamedTuple):
    """Holds a table at a version, its position then, and the position up to which the store was searched for more."""

    table: deltalake.DeltaTable
    version: int
    since: Position
    looked: Position


def schema(name: str) -> pa.Schema:
    """The columns of a table: those of an export to Parquet, in three of them the number of the `row`, and the month of its tx, by which the files lie."""
    numbered = [("row", pa.int64())] if name in _CLOSED else []
    return pa.schema([*numbered, *StoreHistory.schema(name), ("month", pa.string())])


class Lake:
    """The tables below an address: a folder, or an object store such as `s3://bucket/path`."""

    def __init__(self, uri: str, options: Options | None = None) -> None:
        """`options`: settings of the object store (`AWS_ENDPOINT_URL`, …), beside those of the environment."""
        self._delta = _deltalake()
        self.uri = uri.rstrip("/")
        if not self.uri:
            raise InvalidError("the address of the tables is empty. Give a folder, or s3://bucket/path.")
        self._options = dict(options or {})
        self._commits = dict.fromkeys(NAMES, 0)
        self._copies: dict[str, _Copy] = {}

    def _table(self, name: str) -> deltalake.DeltaTable | None:
        place = f"{self.uri}/{name}"
        with _refused(place):
            if not self._delta.DeltaTable.is_deltatable(place, storage_options=_soon(self._options)):
                return None
            found: deltalake.DeltaTable = self._delta.DeltaTable(place, storage_options=self._options)
            return found

    def write_new(self, feed: ChangeFeed, tx: int | None = None) -> Taken:
        """Append what the tables do not have yet of a store, up to a tx. Raises ConflictError for tables of another store."""
        identity = feed.identity()
        if identity is None:
            return Taken(0, 0, None)
        goal = feed.goal(tx)
        counts = [0, 0]
        try:
            for name in NAMES:
                last = self._copies[name] = self._taken(feed, name, identity, goal[name], counts)
        except BaseException:
            self._copies.clear()  # committed parts are read from the tables again
            raise
        return Taken(counts[0], counts[1], str(moment(max(goal["operations"].tx, last.since.tx))))

    def _taken(self, feed: ChangeFeed, name: str, identity: str, goal: Position, counts: list[int]) -> _Copy:
        """Append what a table lacks and return it. `counts`: rows and closings, increased here."""
        copy = self._copy(name, identity, goal)
        feed.check(copy.since, copy.table.table_uri)
        if name == "operations" and self._forget(feed, feed.forgotten(copy.since, goal)):
            copy = self._copy(name, identity, goal)
        for part, after in feed.parts(name, copy.looked, goal):
            counts["tx_to" in part.column_names] += len(part)
            copy = copy._replace(looked=after._replace(tx=goal.tx))
            if len(part):
                copy = self._append(copy, name, part)
        # a search that passed many rows of other tables is recorded, so that it is not repeated
        if sum(copy.looked[:2]) - sum(copy.since[:2]) >= PART:
            copy = self._append(copy, name, part)
        return copy

    def _copy(self, name: str, identity: str, goal: Position) -> _Copy:
        """Return a table; create it if there is none. A table read before is updated if there is more for it."""
        kept = self._copies.get(name)
        if kept is None:
            table = self._table(name) or self._made(name, identity)
        elif kept.looked[:2] == goal[:2]:
            return kept
        else:
            table = kept.table
            with _refused(table.table_uri):
                table.update_incremental()
            if table.version() == kept.version:
                return kept
        since = self._since(table, identity)
        return _Copy(table, table.version(), since, since)

    def _made(self, name: str, identity: str) -> deltalake.DeltaTable:
        place = f"{self.uri}/{name}"
        columns = schema(name)
        compared = [column for column in _COMPARED.split(",") if column in columns.names]
        with _refused(place):
            made: deltalake.DeltaTable = self._delta.DeltaTable.create(
                place,
                schema=columns,
                partition_by=["month"],
                # no text columns in the log: erased text would remain there
                configuration={
                    _STORE: identity,
                    "delta.dataSkippingStatsColumns": ",".join(compared),
                    "delta.checkpointInterval": "10",
                },
                raise_if_key_not_exists=False,
                storage_options=self._options,
            )
            return made

    def _since(self, table: deltalake.DeltaTable, identity: str) -> Position:
        found = table.metadata().configuration.get(_STORE)
        if found != identity:
            raise ConflictError(
                f"{table.table_uri} is {'a table of another store' if found else 'no table of a store'}. "
                "Name another place, or remove what is there."
            )
        return _position(table)

    def _append(self, copy: _Copy, name: str, part: pa.Table) -> _Copy:
        """Commit rows or closings, with the position they reach."""
        table, after = copy.table, copy.looked
        counted = [self._delta.Transaction(*pair) for pair in zip(_COUNTED, after, strict=True)]
        token = uuid4().hex
        with _refused(table.table_uri, lambda: self._is_there(table, token)):
            self._delta.write_deltalake(
                table,
                _laid_out(name, part),
                mode="append",
                schema_mode="merge",  # tables made by an earlier release lack a column
                writer_properties=self._written(name),
                commit_properties=self._delta.CommitProperties(
                    app_transactions=counted, custom_metadata={_COMMIT: token}
                ),
                post_commithook_properties=self._delta.PostCommitHookProperties(cleanup_expired_logs=False),
            )
        self._commits[name] += 1
        if self._commits[name] >= COMPACT_EVERY:
            self.compact(name)
            table.update_incremental()
        return _Copy(table, table.version(), after, after)

    def _is_there(self, table: deltalake.DeltaTable, token: str) -> bool:
        """Return True if a commit was kept although it is reported as refused: its answer may have been lost and the commit sent again."""
        with _refused(table.table_uri):
            table.update_incremental()
            return any(commit.get(_COMMIT) == token for commit in table.history(_LATE))

    def _written(self, name: str) -> deltalake.WriterProperties:
        """Return the settings for writing files: dictionaries only for repeated values, and no statistics of text."""
        plain = self._delta.ColumnProperties(dictionary_enabled=False)
        prose = self._delta.ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
        columns = {column: prose if column in _PROSE else plain for column in schema(name).names}
        columns = {column: how for column, how in columns.items() if column in _DISTINCT | _PROSE}
        written: deltalake.WriterProperties = self._delta.WriterProperties(
            compression="ZSTD", compression_level=1, column_properties=columns
        )
        return written

    def compact(self, name: str) -> None:
        """Make one file of a table's small ones in each month. Files that are no longer used go after a week."""
        table = self.there(name)
        with _refused(table.table_uri):
            sizes = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
            if small := _small(sizes):
                table.optimize.compact(target_size=small, writer_properties=self._written(name))
            table.create_checkpoint()
            table.cleanup_metadata()
            table.vacuum(dry_run=False)
        self._commits[name] = 0

    def _forget(self, feed: ChangeFeed, forgotten: Mapping[str, list[str]]) -> bool:
        """Rewrite rows that the store has forgotten without contents and reasons, and delete the old files. Return False if nothing was forgotten."""
        if not any(forgotten.values()):
            return False
        for name, ids in forgotten.items():
            table = self.there(name)
            upto = _position(table)
            for some in _some(ids):
                with _refused(table.table_uri):
                    table.delete(f"{'node_id' if name == 'versions' else 'id'} IN ({_listed(some)})")
                self._append(_Copy(table, 0, upto, upto), name, feed.of_things(name, some, upto))
        table = self.there("operations")
        for batch in table.to_pyarrow_dataset().to_batches(
            columns=["id"], filter=pc.field("reason").is_valid()
        ):
            for some in _some(feed.without_reason(batch["id"].to_pylist())):
                with _refused(table.table_uri):
                    table.update(updates={"reason": "NULL"}, predicate=f"id IN ({_listed(some)})")
        for name in (*forgotten, "operations"):
            table = self.there(name)
            with _refused(table.table_uri):
                table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        return True

    def there(self, name: str) -> deltalake.DeltaTable:
        """A table as it is now. Raises NotFoundError where there is none."""
        table = self._table(name)
        if table is None:
            raise NotFoundError(
                f"there is no table {name} at {self.uri}. Write the tables with: graphstore export STORE {self.uri} --format delta"
            )
        return table


def _soon(options: Options) -> dict[str, str]:
    """Return the options for a first check: `_FIRST` where neither the options nor the environment set them."""
    given = {re.sub("^(aws|azure|google)_", "", name.lower()) for name in (*options, *os.environ)}
    return {**{name: value for name, value in _FIRST.items() if name not in given}, **options}


def _position(table: deltalake.DeltaTable) -> Position:
    return Position(*(table.transaction_version(name) or 0 for name in _COUNTED))


def _small(sizes: list[int]) -> int:
    """Return the total size of the small files, without those that are large compared with the rest. So rows are rewritten only once
    they have become about five times as many."""
    total = sum(sizes)
    for size in sorted(sizes, reverse=True):
        if 4 * size <= total - size:
            break
        total -= size
    return min(total, _LARGE)


def _some(ids: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(ids), _MOST):
        yield ids[at : at + _MOST]


def _listed(ids: list[str]) -> str:
    return ", ".join("'" + id.replace("'", "''") + "'" for id in ids)


def _laid_out(name: str, part: pa.Table) -> pa.Table:
    """Return rows or closings in the columns of a table."""
    columns = schema(name)
    begun = "tx_to" if "tx_to" in part.column_names else "tx" if name == "operations" else "tx_from"
    part = part.append_column("month", _months(part[begun]))
    filled = [
        part[field.name].cast(field.type)
        if field.name in part.column_names
        else pa.nulls(len(part), field.type)
        for field in columns
    ]
    return pa.table(filled, schema=columns)


def _months(column: pa.ChunkedArray) -> pa.Array:
    """Return the month of each instant. Each distinct instant is formatted once."""
    instants = column.unique()
    return pc.strftime(instants, format="%Y-%m").take(pc.index_in(column, value_set=instants))


def export_delta(
    store: Reader, path: str, *, tx: TimeLike | None = None, options: Options | None = None
) -> int:
    """Append to the Delta tables at an address what they do not have yet of a store, up to `tx` (default: now). Gives how many rows and closings.

    `options`: settings of the object store. Raises ConflictError for tables of another store, InvalidError for a view or a store that lies elsewhere,
    EngineError where the tables cannot be written; what was committed before is kept, and the next call goes on from there.
    """
    feed = ChangeFeed(store)  # type: ignore[arg-type]
    known = None if tx is None else store.instant_of(tx, "tx", "tx")
    done = Lake(str(path), options).write_new(feed, known)
    return done.rows + done.closings


def follow(
    store: Reader,
    uri: str,
    told: Callable[[Taken], None],
    *,
    every: float = 1.0,
    options: Options | None = None,
    failed: Callable[[str], None] = lambda why: None,
) -> None:
    """Append to the tables at an address what is recorded, until interrupted, looking every so many seconds. `told` hears what was appended.

    After the first success a server or an object store that gives no answer is tried again, after pauses of up to a minute; `failed` hears of it. Anything
    else is raised.
    """
    lake, feed = Lake(uri, options), ChangeFeed(store)  # type: ignore[arg-type]
    keep_up(lambda: lake.write_new(feed), told, every=every, failed=failed)


def ask(
    uri: str, text: str, params: Mapping[str, Any] | None = None, *, options: Options | None = None
) -> Result:
    """The answer of DuckDB to a text of SQL over the tables at an address: `nodes`, `versions` … and the views of `sql/as_of.sql`.

    Raises QueryError for what DuckDB refuses and where it is not installed, NotFoundError where there are no tables.
    """
    lake = Lake(uri, options)
    with duckdb_here() as connection:
        for name in NAMES:
            rows, columns = lake.there(name).to_pyarrow_dataset(), schema(name)
            if set(rows.schema.names) < set(columns.names):  # a table made by an earlier release
                rows = rows.replace_schema(columns)
            connection.register(f"{name}_log", rows)
        connection.execute(statements("lake"))
        return answered(connection, text, params)


@contextmanager
def _refused(place: str, is_there: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise an EngineError that names the table for any error of the library. Raise ConflictError for a part that another process has written, unless
    `is_there` returns True: then this process wrote it."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as error:
        if is_there():
            return
        raise ConflictError(
            f"{place} was written by somebody else meanwhile ({_line(error)}). One process follows a store into one place; start it again to go on."
        ) from error
    except (DeltaError, OSError) as error:
        text = _line(error)
        advice = next(advice for pattern, advice in _ADVICE if re.search(pattern, text))
        refused = EngineError(f"{place} cannot be written or read: {text}. {advice}")
        refused.passes = _NO_ANSWER.search(text) is not None
        raise refused from error


def _line(error: BaseException) -> str:
    """Return the library's message on one line. Of an object store's XML keep the code and the message."""
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())
    return re.sub(
        r"<\?xml.*?<Code>(.*?)</Code>.*?<Message>(.*?)</Message>.*</Error>", r"\1: \2", text
    ).rstrip(".")


def _deltalake() -> Any:
    try:
        import deltalake
    except ImportError:
        raise InvalidError(
            "deltalake is not installed. Install it with: pip install 'graphstore[lake]'"
        ) from None
    return deltalake
