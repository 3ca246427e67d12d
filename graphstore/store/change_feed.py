"""What was recorded and what was closed after a position, as Arrow tables: for copies elsewhere that follow a store.

A table only grows, by rows and by *closings*: a closing says of one row when, and by which operation, the belief in it ended. How many of both a copy has
taken is its position. A copy that keeps its position in the same transaction as the rows has each of them once, however often it is interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from graphstore.errors import ConflictError, InvalidError
from graphstore.graph.arrow_tables import instants, names_of, numbers
from graphstore.graph.result import arrow_out
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.ledger import Ledger
from graphstore.store.feed_from_rows import RowFeed
from graphstore.store.feed_source import End
from graphstore.values.gc_pause import no_collecting
from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.store.store import Store

T = TypeVar("T")

PART = 50_000
"""Rows, or closings, read at once."""
_ROWS = {"nodes": "entities", "versions": "rows", "events": "rows", "occurrences": "seen", "links": "link_rows",
         "operations": "ops"}  # fmt: skip
_CLOSINGS = {"versions": "closings", "events": "closings", "links": "link_closings"}
_LABELS = {
    "nodes": "Node",
    "versions": "Version",
    "occurrences": "Occurrence",
    "links": "LINK",
    "operations": "Op",
}
NAMES = tuple(_ROWS)
"""The tables, in the order in which a copy takes them: when the operations of a transaction are there, so is all that they did."""


class Position(NamedTuple):
    """How much of a table was taken: so many of the rows and closings that the store counts, and the tx of its last transaction then, in microseconds."""

    rows: int = 0
    closings: int = 0
    tx: Instant = 0


class ChangeFeed:
    """The tables of a store, read from a position on. Beside whoever writes; it sees what is committed and durable."""

    def __init__(self, store: Store) -> None:
        """Raises InvalidError for a view, and for a store that lies elsewhere: its rows are read where it is."""
        if getattr(store, "_core", None) is None or not hasattr(store, "query_tables"):
            raise InvalidError(
                f"{store!r} is no store that is open here. Open its folder with read_only=True."
            )
        self._store = store

    def identity(self) -> str | None:
        """What tells this store, or this branch of one, from others: its first transaction. None while nothing is recorded."""
        return self._read(lambda source: source.identity())

    def goal(self, tx: Instant | None = None) -> dict[str, Position]:
        """How far each table has come, or had come at a tx."""
        self._store.refresh()
        if not self._store.read_only:
            self._store._core.journal.settle()
        mark, last = self._read(lambda source: source.reached(tx))
        counts = mark._asdict()
        return {
            name: Position(counts[_ROWS[name]], counts.get(_CLOSINGS.get(name, ""), 0), last)
            for name in NAMES
        }

    def check(self, since: Position, copy: str) -> None:
        """Raise ConflictError when a copy at this position has what the store has not."""
        if since.tx and not self._read(lambda source: source.has(since.tx)):
            raise ConflictError(
                f"{copy} has a transaction that the store has not: it was made from another store, or from a later state of this one. "
                "Name another place, or remove what is there."
            )

    def parts(
        self, name: str, since: Position, upto: Position, part: int | None = None
    ) -> Iterator[tuple[pa.Table, Position]]:
        """The rows of a table from one position to another, then its closings, at most `part` (default `PART`) at once, each with the position after it.

        Rows have the columns of `cypher/schema.cypher`, `row` as a number, but no tx_to and no closed_by; an open end of valid time is null. Closings have
        `row`, `tx_to` and `closed_by`. Instants are in UTC.
        """
        part = part or PART
        for low in range(since.rows, upto.rows, part):
            high = min(low + part, upto.rows)
            yield self._rows(name, low, high), Position(high, since.closings, since.tx)
        for low in range(since.closings, upto.closings, part):
            high = min(low + part, upto.closings)
            yield self._closed(name, low, high), Position(upto.rows, high, since.tx)

    def events(self, ids: list[str]) -> pa.Table:
        """Events as the graph tables have them now, one row each, with both ends of the belief in them; of the ids that are nodes none."""
        table = self._read(lambda source: source.events(ids))
        for at, column in enumerate(table.schema):
            if pa.types.is_timestamp(column.type):
                table = table.set_column(at, column.name, table[at].cast(pa.timestamp("us", tz="UTC")))
        return table

    def things(self, low: int, high: int) -> list[str]:
        """The ids of the nodes and events from one number of rows of `nodes` to another."""
        return [thing.id for thing in self._read(lambda source: source.history.things(low, high))]

    def of_rows(self, rows: list[int]) -> list[str]:
        """Of which event each row of `events` is."""
        return self._read(lambda source: source.owners(rows))

    def ends(self, rows: list[int]) -> list[End]:
        """Where each row of `links` is."""
        return self._read(lambda source: source.ends(rows))

    def forgotten(self, since: Position, upto: Position) -> dict[str, list[str]]:
        """What was evicted or erased by the operations between two positions, by the table that had its contents: ids of nodes and events, which lead to
        `versions` and `events`, and of their links."""
        return self._read(lambda source: source.forgotten(since.rows, upto.rows))

    def without_reason(self, operations: list[str]) -> list[str]:
        """Those of some operations, by id, that have no reason, or none any more."""
        return self._read(lambda source: source.without_reason(operations))

    def of_things(self, name: str, ids: list[str], upto: Position) -> pa.Table:
        """The rows up to a position that some nodes, events or links have in `versions`, `events` or `links`, as they are to be read now."""

        def read(source: RowFeed) -> pa.Table:
            rows = source.periods(name, ids, upto.rows)
            tables = [_known(_table(source, name, row, row + 1)) for row in rows]
            return pa.concat_tables(tables) if tables else _known(_table(source, name, 0, 0))

        return self._read(read)

    def _rows(self, name: str, low: int, high: int) -> pa.Table:
        return self._read(lambda source: _known(_table(source, name, low, high)))

    def _closed(self, name: str, low: int, high: int) -> pa.Table:
        closed = self._read(lambda source: source.closed(name, low, high))
        return _known(
            pa.table(
                {
                    "row": numbers([each.number for each in closed]),
                    "tx_to": instants([each.tx_to for each in closed]),
                    "closed_by": names_of([each.closed_by for each in closed]),
                }
            )
        )

    def _read(self, read: Callable[[RowFeed], T]) -> T:
        """Read what is committed, and not what a transaction of this thread shows to itself."""
        store, core = self._store, self._store._core
        store._coordinate()  # refuses a store that is closed
        core.hide_rows()
        rows = core.rows
        assert isinstance(rows, (Ledger, BranchLedger))
        with rows.snapshot() as database, no_collecting():
            return read(RowFeed(rows, database))


def _table(source: RowFeed, name: str, low: int, high: int) -> pa.Table:
    if name == "events":
        return source.event_periods(low, high)
    table = source.history.table(_LABELS[name], range(low, high))
    return table.drop_columns(["source_label", "target_label"]) if name == "links" else table


def _known(table: pa.Table) -> pa.Table:
    """The columns as a copy has them: instants in UTC, an open end null, the number of a row as a number."""
    is_closing = table.column_names == ["row", "tx_to", "closed_by"]
    if not is_closing:
        table = table.drop_columns([name for name in ("tx_to", "closed_by") if name in table.column_names])
    table = arrow_out(table)
    if "row" in table.column_names:
        at = table.column_names.index("row")
        table = table.set_column(at, "row", table["row"].cast(pa.int64()))
    return table
