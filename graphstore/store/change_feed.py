"""Provide what was recorded and closed after a position, as Arrow tables, for copies elsewhere that follow a store.

A table only grows, by rows and by *closings*. A closing names a row, and when and by which operation the belief in it ended. The numbers of rows and closings that a copy
has taken are its position. A copy that saves its position in the same transaction as the rows has each of them once, however often it is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from graphstore.errors import ConflictError, InvalidError
from graphstore.graph.arrow_tables import arrow_out, as_table, columns_of, instants, names_of, numbers
from graphstore.graph.history_from_rows import RowHistory
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Id, Statement
from graphstore.read.index_of_rows import LINKS_BESIDE, Number
from graphstore.read.points import Point, as_json
from graphstore.values.gc_pause import no_collecting
from graphstore.values.period import OPEN, Instant

if TYPE_CHECKING:
    from graphstore.store.store import Store

PART = 50_000
"""The number of rows, or closings, read at once."""
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
"""The tables, in the order in which a copy takes them. When a copy has the operations of a transaction, it has everything that they did."""


class Position(NamedTuple):
    """Counts what was taken of a table: its rows and closings, and the tx of the store's last transaction then, in microseconds."""

    rows: int = 0
    closings: int = 0
    tx: Instant = 0


class RecordedCounts(NamedTuple):
    """Counts the rows recorded by an instant, with the first and the last transaction."""

    entities: int
    rows: int
    link_rows: int
    ops: int
    seen: int
    closings: int
    link_closings: int
    first: Instant | None
    last: Instant | None


class ClosedPeriod(NamedTuple):
    """A period that was closed."""

    number: int
    is_event: int | None
    tx_to: Instant
    closed_by: int


class EventRow(NamedTuple):
    """A period of an event, its content, and what the operation that evicted it has kept."""

    row: str
    id: str
    type: str
    occurred_at: Instant
    tx_from: Instant
    opened_by: str
    word: str
    data: bytes | None
    checksum: int
    place: bytes | None
    place_checksum: int | None


class End(NamedTuple):
    """The ends of a link: the label and id of its source, its kind, the label and id of its target."""

    source_label: str
    source: str
    kind: str
    target_label: str
    target: str


class ForgottenThing(NamedTuple):
    """Names a thing that was forgotten."""

    number: int
    id: str
    is_event: int


FEED_STATE = Statement("feed_state", RecordedCounts)
FEED_CLOSED = Statement("feed_closed", ClosedPeriod)
FEED_EVENTS = Statement("feed_events", EventRow)
FEED_OWNERS = Statement("feed_owners", Id)
FEED_ENDS = Statement("feed_ends", End)
FEED_FORGOTTEN = Statement("feed_forgotten", ForgottenThing)
FEED_WITHOUT_REASON = Statement("feed_without_reason", Number)
FEED_PERIODS = Statement("feed_periods", Number)
FEED_THINGS = Statement("feed_things", ForgottenThing)


class ChangeFeed:
    """Reads the tables of a store from a position on, concurrently with a writer. It sees what is committed and durable."""

    def __init__(self, store: Store) -> None:
        """Raise InvalidError for a view, and for a store in another process: its rows are read where it is."""
        if getattr(store, "_core", None) is None or not hasattr(store, "query_tables"):
            raise InvalidError(
                f"{store!r} is no store that is open here. Open its folder with read_only=True."
            )
        self._store = store

    def identity(self) -> str | None:
        """Return what distinguishes this store, or branch, from others: its first transaction. None while nothing is recorded."""
        with self._reading() as point:
            first = _recorded(point).first
            return None if first is None else f"{first} {point.database.branch or 'trunk'}"

    def goal(self, tx: Instant | None = None) -> dict[str, Position]:
        """Return the position of each table now, or at a tx."""
        self._store.refresh()
        if not self._store.read_only:
            self._store._core.journal.settle()
        with self._reading() as point:
            found = _recorded(point, OPEN if tx is None else tx)
        counts, last = found._asdict(), found.last or 0
        return {
            name: Position(counts[_ROWS[name]], counts.get(_CLOSINGS.get(name, ""), 0), last)
            for name in NAMES
        }

    def check(self, since: Position, copy: str) -> None:
        """Raise ConflictError if a copy at this position has a transaction that the store does not have."""
        with self._reading() as point:
            if since.tx and _recorded(point, since.tx).last != since.tx:
                raise ConflictError(
                    f"{copy} has a transaction that the store has not: it was made from another store, or from a later state of this one. "
                    "Name another place, or remove what is there."
                )

    def parts(
        self, name: str, since: Position, upto: Position, part: int | None = None
    ) -> Iterator[tuple[pa.Table, Position]]:
        """Yield the rows of a table from one position to another, then its closings, each part with the position after it. `part`: the largest number per part (default
        `PART`).

        Rows have the columns of `cypher/schema.cypher` without tx_to and closed_by; `row` is a number. An open end of valid time is null. Closings have `row`, `tx_to` and
        `closed_by`. Instants are in UTC.
        """
        part = part or PART
        for low in range(since.rows, upto.rows, part):
            high = min(low + part, upto.rows)
            yield self._rows(name, low, high), Position(high, since.closings, since.tx)
        for low in range(since.closings, upto.closings, part):
            high = min(low + part, upto.closings)
            yield self._closed(name, low, high), Position(upto.rows, high, since.tx)

    def events(self, ids: list[str]) -> pa.Table:
        """Return events as the graph tables have them now, one row each, with both ends of their belief. Ids of nodes give no row."""
        with self._reading() as point:
            things = point.rows(FEED_THINGS, ids=as_json(ids))
            table = self._history.table("Event", [thing.number % SPAN for thing in things])
        for at, column in enumerate(table.schema):
            if pa.types.is_timestamp(column.type):
                table = table.set_column(at, column.name, table[at].cast(pa.timestamp("us", tz="UTC")))
        return table

    def things(self, low: int, high: int) -> list[str]:
        """Return the ids of the nodes and events between two numbers of rows of `nodes`."""
        with self._reading():
            return [thing.id for thing in self._history.things(low, high)]

    def of_rows(self, rows: list[int]) -> list[str]:
        """Return the id of the event of each row of `events`."""
        with self._reading() as point:
            return [row.id for row in point.rows(FEED_OWNERS, numbers=_numbers(point, "period", rows))]

    def ends(self, rows: list[int]) -> list[End]:
        """Return the ends of each row of `links`."""
        with self._reading() as point:
            return point.rows(FEED_ENDS, numbers=_numbers(point, "link_period", rows))

    def forgotten(self, since: Position, upto: Position) -> dict[str, list[str]]:
        """Return the ids of what was evicted or erased between two positions, by the table that had its contents: nodes in `versions`, events in `events`, and their links."""
        with self._reading() as point:
            first, stop = (point.database.line.row("operation", each.rows) for each in (since, upto))
            things = point.rows(FEED_FORGOTTEN, first=first, stop=stop)
            links = point.rows(LINKS_BESIDE, numbers=as_json([thing.number for thing in things]))
        return {
            "versions": [thing.id for thing in things if not thing.is_event],
            "events": [thing.id for thing in things if thing.is_event],
            "links": list(dict.fromkeys(link.id for link in links)),
        }

    def without_reason(self, operations: list[str]) -> list[str]:
        """Return the operations among some ids that have no reason, or no longer have one."""
        with self._reading() as point:
            asked = _numbers(point, "operation", map(int, operations))
            return [str(row.number % SPAN) for row in point.rows(FEED_WITHOUT_REASON, numbers=asked)]

    def of_things(self, name: str, ids: list[str], upto: Position) -> pa.Table:
        """Return the rows of some nodes, events or links in `versions`, `events` or `links` up to a position, as they read now."""
        links = name == "links"
        with self._reading() as point:
            stop = point.database.line.row("link_period" if links else "period", upto.rows)
            rows = point.rows(FEED_PERIODS, ids=as_json(ids), links=links, stop=stop)
            places = [row.number % SPAN for row in rows]
            tables = [self._table(point, name, place, place + 1) for place in places]
            return pa.concat_tables(tables) if tables else self._table(point, name, 0, 0)

    def _rows(self, name: str, low: int, high: int) -> pa.Table:
        with self._reading() as point:
            return self._table(point, name, low, high)

    def _closed(self, name: str, low: int, high: int) -> pa.Table:
        links = name == "links"
        with self._reading() as point:
            rows = point.rows(FEED_CLOSED, links=links, passed=low, most=high - low)
        closed = [row for row in rows if links or bool(row.is_event) == (name == "events")]
        table = {
            "row": numbers([row.number % SPAN for row in closed]),
            "tx_to": instants([row.tx_to for row in closed]),
            "closed_by": names_of([row.closed_by % SPAN for row in closed]),
        }
        return arrow_out(pa.table(table))

    @property
    def _history(self) -> RowHistory:
        rows = self._store._core.rows
        assert isinstance(rows, (Ledger, BranchLedger))
        return RowHistory(rows)

    @contextmanager
    def _reading(self) -> Iterator[Point]:
        """Yield a point that reads what is committed, without the rows that a transaction of this thread shows to itself."""
        store, core = self._store, self._store._core
        store.coordinate()  # raises if the store is closed
        core.hide_rows()
        with core.rows.snapshot() as database, no_collecting():
            yield Point(database, OPEN, OPEN)

    def _table(self, point: Point, name: str, low: int, high: int) -> pa.Table:
        """Return rows of a table in the form for copies: instants in UTC, an open end null, the row number as a number, no end of the belief."""
        if name == "events":
            table = _event_periods(point, low, high)
        else:
            table = self._history.table(_LABELS[name], range(low, high))
        ends = ("source_label", "target_label", "tx_to", "closed_by")
        table = arrow_out(table.drop_columns([column for column in ends if column in table.column_names]))
        if "row" not in table.column_names:
            return table
        at = table.column_names.index("row")
        return table.set_column(at, "row", table["row"].cast(pa.int64()))


def _recorded(point: Point, tx: Instant = OPEN) -> RecordedCounts:
    [found] = Point(point.database, OPEN, tx).rows(FEED_STATE)
    return found


def _numbers(point: Point, table: str, places: Iterable[int]) -> str:
    """Return the numbers of rows, given as places in their line of belief, as a JSON array."""
    return as_json([point.database.line.row(table, place) for place in places])


def _event_periods(point: Point, first: int, stop: int) -> pa.Table:
    """Return the periods of [first, stop) that belong to events. An event has several if its first occurrence was recorded late, or if it was taken back and restored."""
    row = point.database.line.row
    events = point.rows(FEED_EVENTS, first=row("period", first), stop=row("period", stop))
    for event in events:  # raises DamageError for damaged content
        point.content(event.data, event.checksum, f"event {event.id!r}")
        point.content(event.place, event.place_checksum, f"event {event.id!r}")
    table = as_table("Event", columns_of(events, EventRow))
    names = table.column_names
    last = ["tx_from", "opened_by"]
    return table.select([*(name for name in names if name not in last), *last])
