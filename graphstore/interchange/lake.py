"""The whole history as Delta tables, in a folder or in an object store, which follow the store: for DuckDB, Spark, and what else reads a lakehouse.

There is a table for each of `change_feed.NAMES`. Nothing in them changes: a row is appended once, and so is its *closing*, a row that has only `row`,
`tx_to` and `closed_by`. `sql/lake.sql` joins the two. Each commit carries the position it comes to, so a follower that was killed goes on from there,
and of two followers that take the same part one is refused. `operations` is written last: what its last tx says is there as a whole.
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
from graphstore.values.period import TimeLike, instant, moment
from graphstore.view.view import Reader

if TYPE_CHECKING:
    import deltalake

__all__ = ["Lake", "Taken", "ask", "export_delta", "follow"]

COMPACT_EVERY = 100
"""Commits of a table after which its small files are made large ones."""
_CLOSED = ("versions", "events", "links")
_LARGE = 100 << 20  # bytes of a file
_STORE = "graphstore.store"
_COUNTED = ("graphstore.rows", "graphstore.closings", "graphstore.tx")
_COMPARED = "row,id,node_id,event_id,source,target,tx,tx_from,tx_to,valid_from,valid_to,occurred_at"
_DISTINCT = frozenset("row id node_id event_id ref subject told_by opened_by closed_by".split())
_PROSE = frozenset("content text description metadata reason".split())
_MOST = 10_000  # ids in one statement
_FIRST = {"timeout": "10s", "retry_timeout": "15s"}
"""How long an object store has to answer whether a table is there: about 20 s. Its library tries for 3 minutes, deaf to Ctrl-C; so it does later on."""
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
"""What to do about an error of the library, by what it says."""
_NO_ANSWER = re.compile(
    r"HTTP error|error sending request|status code: (5\d\d|408|429)|\b5\d\d (Internal|Bad|Service|Gateway)|SlowDown|InternalError|ServiceUnavailable|RequestTimeout"
)
"""What it says of an object store that may answer later."""
_COMMIT = "graphstore.commit"  # whose commit it is
_LATE = 20  # commits of others, among which one of this process is looked for
Options = Mapping[str, str]


class Taken(NamedTuple):
    """What was written: rows and closings appended, and the tx up to which the tables have the whole history, None while they have none."""

    rows: int
    closings: int
    tx: str | None


class _Copy(NamedTuple):
    """A table as it was at a version, the position it had then, and up to which one the store has nothing more for it."""

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
            self._copies.clear()  # what was committed is read there
            raise
        return Taken(counts[0], counts[1], str(moment(max(goal["operations"].tx, last.since.tx))))

    def _taken(self, feed: ChangeFeed, name: str, identity: str, goal: Position, counts: list[int]) -> _Copy:
        """A table after what it does not have yet is appended. `counts`: rows and closings, to count on."""
        copy = self._copy(name, identity, goal)
        feed.check(copy.since, copy.table.table_uri)
        if name == "operations" and self._forget(feed, feed.forgotten(copy.since, goal)):
            copy = self._copy(name, identity, goal)
        for part, after in feed.parts(name, copy.looked, goal):
            counts["tx_to" in part.column_names] += len(part)
            copy = copy._replace(looked=after._replace(tx=goal.tx))
            if len(part):
                copy = self._append(copy, name, part)
        # what is of another table is looked at once, where it is much
        if sum(copy.looked[:2]) - sum(copy.since[:2]) >= PART:
            copy = self._append(copy, name, part)
        return copy

    def _copy(self, name: str, identity: str, goal: Position) -> _Copy:
        """A table, made where there is none. One that was read before is read on where there is more for it."""
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
                # no texts in the log: what is erased from the files would stay there
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
        """One commit: rows or closings, and the position they come to, which was looked at up to them."""
        table, after = copy.table, copy.looked
        counted = [self._delta.Transaction(*pair) for pair in zip(_COUNTED, after, strict=True)]
        token = uuid4().hex
        with _refused(table.table_uri, lambda: self._is_there(table, token)):
            self._delta.write_deltalake(
                table,
                _laid_out(name, part),
                mode="append",
                schema_mode="merge",  # tables that an earlier release made lack a column
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
        """Whether a commit was kept, whose answer may have been lost: sent again it is refused then."""
        with _refused(table.table_uri):
            table.update_incremental()
            return any(commit.get(_COMMIT) == token for commit in table.history(_LATE))

    def _written(self, name: str) -> deltalake.WriterProperties:
        """How the files of a table are written: a dictionary only of what is repeated, the least and greatest of no prose."""
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
        """Write the rows of what the store has forgotten anew, without its contents and reasons, and delete the files that had them. False: nothing is."""
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
    """The settings of a first look: those of `_FIRST` where neither the options nor the environment have them."""
    given = {re.sub("^(aws|azure|google)_", "", name.lower()) for name in (*options, *os.environ)}
    return {**{name: value for name, value in _FIRST.items() if name not in given}, **options}


def _position(table: deltalake.DeltaTable) -> Position:
    return Position(*(table.transaction_version(name) or 0 for name in _COUNTED))


def _small(sizes: list[int]) -> int:
    """How large the small ones of some files are together: without those that are large beside the others. So a row is written anew as often as the rows
    have become five times as many, and not each time."""
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
    """Rows or closings in the columns of a table."""
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
    """The month of each instant; each instant is written once."""
    instants = column.unique()
    return pc.strftime(instants, format="%Y-%m").take(pc.index_in(column, value_set=instants))


def export_delta(
    store: Reader, path: str, *, tx: TimeLike | None = None, options: Options | None = None
) -> int:
    """Append to the Delta tables at an address what they do not have yet of a store, up to `tx` (default: now). Gives how many rows and closings.

    `options`: settings of the object store. Raises ConflictError for tables of another store, InvalidError for a view or a store that lies elsewhere,
    EngineError where the tables cannot be written; what was committed before is kept, and the next call goes on from there.
    """
    done = Lake(str(path), options).write_new(ChangeFeed(store), None if tx is None else instant(tx))  # type: ignore[arg-type]
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
            if set(rows.schema.names) < set(columns.names):  # an earlier release made the table
                rows = rows.replace_schema(columns)
            connection.register(f"{name}_log", rows)
        connection.execute(statements("lake"))
        return answered(connection, text, params)


@contextmanager
def _refused(place: str, is_there: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turns what the library refuses into an EngineError that names the table, and a part that somebody else has written into a ConflictError, unless
    `is_there` says that this process has."""
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
    """What the library says, in one line; of an object store's own words, which are XML, the code and the message."""
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
