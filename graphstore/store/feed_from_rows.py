"""Read what a change feed gives from the rows of a ledger, of the trunk or of a branch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import orjson
import pyarrow as pa

from graphstore.graph.arrow_tables import tombstone
from graphstore.graph.history_from_rows import RowHistory
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.branch_rows import SPAN, Line
from graphstore.ledger.database import Readable
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement
from graphstore.read.columns import Mark
from graphstore.read.ids import Id
from graphstore.read.index_of_rows import LINKS_BESIDE, Number
from graphstore.read.points import Point, as_json
from graphstore.store.feed_source import EVENT, NODE, Closed, End, EventPeriod, event_periods_as_table
from graphstore.values.period import OPEN, Instant


class Recorded(NamedTuple):
    """Counts how much was recorded by an instant, and the first and the last transaction."""

    entities: int
    rows: int
    link_rows: int
    ops: int
    seen: int
    closings: int
    link_closings: int
    first: Instant | None
    last: Instant | None


class Closings(NamedTuple):
    """Counts the periods that a transaction closed."""

    tx: Instant
    closed: int


class Head(NamedTuple):
    """Gives the head of a line of the chain, as JSON, and the instant of its transaction."""

    tx: Instant
    head: bytes


class ClosedPeriod(NamedTuple):
    """Describes a period that was closed."""

    number: int
    is_event: int
    tx_to: Instant
    closed_by: int | None


class EventRow(NamedTuple):
    """Describes a period of an event, what it says, and what the operation that evicted it has kept."""

    number: int
    id: str
    type: str
    occurred_at: Instant
    tx_from: Instant
    opened_by: int
    word: str
    data: bytes | None
    checksum: int
    place: bytes | None
    place_checksum: int | None


class Joined(NamedTuple):
    """Names what a link joins."""

    kind: str
    source: str
    target: str
    from_event: int
    to_event: int


class Forgotten(NamedTuple):
    """Names a thing that was forgotten."""

    number: int
    id: str
    is_event: int


FEED_STATE = Statement("feed_state", Recorded)
FEED_CLOSINGS = Statement("feed_closings", Closings)
FEED_HEADS = Statement("feed_heads", Head)
FEED_CLOSED = Statement("feed_closed", ClosedPeriod)
FEED_EVENTS = Statement("feed_events", EventRow)
FEED_OWNERS = Statement("feed_owners", Id)
FEED_ENDS = Statement("feed_ends", Joined)
FEED_FORGOTTEN = Statement("feed_forgotten", Forgotten)
FEED_WITHOUT_REASON = Statement("feed_without_reason", Number)
FEED_PERIODS = Statement("feed_periods", Number)
FEED_THINGS = Statement("feed_things", Forgotten)


class RowFeed:
    """Reads what a ledger has committed. Periods, closings and operations are counted from 0 in the order of the line, [first, stop)."""

    def __init__(self, rows: Ledger | BranchLedger, database: Readable) -> None:
        self._point, self._line = Point(database, OPEN, OPEN), database.line
        self.history = RowHistory(rows)

    def identity(self) -> str | None:
        """Return the first transaction and the line; None while nothing is recorded."""
        [found] = self._point.rows(FEED_STATE)
        return None if found.first is None else f"{found.first} {self._point.database.branch or 'trunk'}"

    def reached(self, tx: Instant | None) -> tuple[Mark, Instant]:
        """Return how much there is, or was at a tx, and the tx of its last transaction (0: there is none)."""
        [found] = Point(self._point.database, OPEN, OPEN if tx is None else tx).rows(FEED_STATE)
        counts = found._asdict()
        last, _ = counts.pop("last"), counts.pop("first")
        return Mark(**counts), last or 0

    def has(self, tx: Instant) -> bool:
        """Return True if a transaction has this tx."""
        return self.reached(tx)[1] == tx

    def event_periods(self, first: int, stop: int) -> pa.Table:
        """Return the rows of those periods that are of events."""
        row = self._line.row
        rows = self._point.rows(FEED_EVENTS, first=row("period", first), stop=row("period", stop))
        return event_periods_as_table(list(map(self._event, rows)))

    def _event(self, row: EventRow) -> EventPeriod:
        body = self._point.content(row.data, row.checksum, f"event {row.id!r}")
        if not body:
            kept = self._point.content(row.place, row.place_checksum, f"event {row.id!r}")
            body = {**tombstone(row.word), "authorized": None, **kept.get("place", {})}
        number, opened_by = row.number % SPAN, row.opened_by % SPAN
        return EventPeriod(number, row.id, row.type, row.occurred_at, row.tx_from, opened_by, body)

    def closed(self, name: str, first: int, stop: int) -> list[Closed]:
        """Return those closings of periods, or of periods of links, that are of a table."""
        links, begin, since, until = name == "links", 0, None, None
        passed = 0
        for each in self._point.rows(FEED_CLOSINGS, links=links):
            if passed < stop and passed + each.closed > first:
                if since is None:
                    begin, since = passed, each.tx
                until = each.tx
            passed += each.closed
        if since is None:
            return []
        rows = self._point.rows(FEED_CLOSED, links=links, since=since, until=until)
        order = self._order_of_closings(since, until, links=links)
        rows.sort(key=lambda row: (row.tx_to, order.get((row.number, row.tx_to), len(order))))
        return [
            Closed(row.number % SPAN, row.tx_to, None if row.closed_by is None else row.closed_by % SPAN)
            for row in rows[first - begin : stop - begin]
            if links or bool(row.is_event) == (name == "events")
        ]

    def _order_of_closings(
        self, since: Instant, until: Instant | None, *, links: bool
    ) -> dict[tuple[int, Instant], int]:
        """Return the places that the heads of transactions give to the periods that they close. They do not name those of a branch that forgetting closes."""
        lines: dict[str | None, list[Line]] = {}
        line: Line | None = self._line
        while line is not None:
            lines.setdefault(line.name, []).append(line)
            line = line.parent
        table, field = ("link_period", "link_closed") if links else ("period", "closed")
        order: dict[tuple[int, Instant], int] = {}
        for tx, raw in self._point.rows(FEED_HEADS, since=since, until=until):
            head = orjson.loads(raw)
            for line in lines.get(head.get("branch"), ()):
                for place, _ in head.get(field, ()):
                    order.setdefault((line.row(table, place), tx), len(order))
        return order

    def events(self, ids: list[str]) -> pa.Table:
        """Return the rows of those of some things that are events."""
        things = self._point.rows(FEED_THINGS, ids=as_json(ids))
        return self.history.table("Event", [thing.number % SPAN for thing in things])

    def owners(self, periods: list[int]) -> list[str]:
        """Return the id of the thing of each period."""
        return [row.id for row in self._point.rows(FEED_OWNERS, numbers=self._numbers("period", periods))]

    def ends(self, periods: list[int]) -> list[End]:
        """Return what the link of each period of a link joins."""
        return [
            End(
                EVENT if row.from_event else NODE,
                row.source,
                row.kind,
                EVENT if row.to_event else NODE,
                row.target,
            )
            for row in self._point.rows(FEED_ENDS, numbers=self._numbers("link_period", periods))
        ]

    def forgotten(self, first: int, stop: int) -> dict[str, list[str]]:
        """Return what operations forgot, as `ChangeFeed.forgotten` does."""
        row = self._line.row
        things = self._point.rows(FEED_FORGOTTEN, first=row("operation", first), stop=row("operation", stop))
        links = self._point.rows(LINKS_BESIDE, numbers=as_json([thing.number for thing in things]))
        return {
            "versions": [thing.id for thing in things if not thing.is_event],
            "events": [thing.id for thing in things if thing.is_event],
            "links": list(dict.fromkeys(link.id for link in links)),
        }

    def without_reason(self, operations: list[str]) -> list[str]:
        """Return those of some operations that have no reason."""
        asked = self._numbers("operation", map(int, operations))
        return [str(row.number % SPAN) for row in self._point.rows(FEED_WITHOUT_REASON, numbers=asked)]

    def periods(self, name: str, ids: list[str], stop: int) -> list[int]:
        """Return the numbers of the periods of some things, or links."""
        links = name == "links"
        stop = self._line.row("link_period" if links else "period", stop)
        rows = self._point.rows(FEED_PERIODS, ids=as_json(ids), links=links, stop=stop)
        return [row.number % SPAN for row in rows]

    def _numbers(self, table: str, places: Iterable[int]) -> str:
        """Return the numbers of rows that are counted from 0, as a JSON array."""
        return as_json([self._line.row(table, place) for place in places])
