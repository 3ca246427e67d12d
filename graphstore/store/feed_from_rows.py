"""Read what a change feed gives from the rows of a ledger."""

from __future__ import annotations

from typing import NamedTuple, cast

import pyarrow as pa

from graphstore.core.index.columns import Mark
from graphstore.core.index.index_of_rows import LINKS_BESIDE
from graphstore.core.index.part_of_index import Number
from graphstore.core.journal.seam import Seam
from graphstore.core.tables.history_arrow import tombstone
from graphstore.core.tables.history_from_rows import RowHistory
from graphstore.core.tables.history_source import Event, HistorySource
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement
from graphstore.read.ids import Id
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
FEED_CLOSED = Statement("feed_closed", ClosedPeriod)
FEED_EVENTS = Statement("feed_events", EventRow)
FEED_OWNERS = Statement("feed_owners", Id)
FEED_ENDS = Statement("feed_ends", Joined)
FEED_FORGOTTEN = Statement("feed_forgotten", Forgotten)
FEED_WITHOUT_REASON = Statement("feed_without_reason", Number)
FEED_PERIODS = Statement("feed_periods", Number)
FEED_THINGS = Statement("feed_things", Forgotten)


class RowFeed:
    """Reads what a ledger has committed, whatever the point."""

    def __init__(self, point: Point, journal: Seam) -> None:
        self._point = Point(point.database, OPEN, OPEN, point.vocabulary)
        self.history: HistorySource = RowHistory(cast(Ledger, journal))

    def identity(self) -> str | None:
        """Return the first transaction and the line; None while nothing is recorded."""
        [found] = self._point.rows(FEED_STATE)
        return None if found.first is None else f"{found.first} trunk"

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
        return event_periods_as_table(
            [self._event(row) for row in self._point.rows(FEED_EVENTS, first=first, stop=stop)]
        )

    def _event(self, row: EventRow) -> EventPeriod:
        body = self._point.content(row.data, row.checksum, f"event {row.id!r}")
        if not body:
            kept = self._point.content(row.place, row.place_checksum, f"event {row.id!r}")
            body = {**tombstone(row.word), "authorized": None, **kept.get("place", {})}
        return EventPeriod(*row[:6], body)

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
        return [
            Closed(row.number, row.tx_to, row.closed_by)
            for row in rows[first - begin : stop - begin]
            if links or bool(row.is_event) == (name == "events")
        ]

    def events(self, ids: list[str]) -> list[Event]:
        """Return the rows of those of some things that are events."""
        things = self._point.rows(FEED_THINGS, ids=as_json(ids))
        return self.history.events([thing.number for thing in things if thing.is_event])

    def owners(self, periods: list[int]) -> list[str]:
        """Return the id of the thing of each period."""
        return [row.id for row in self._point.rows(FEED_OWNERS, numbers=as_json(periods))]

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
            for row in self._point.rows(FEED_ENDS, numbers=as_json(periods))
        ]

    def forgotten(self, first: int, stop: int) -> dict[str, list[str]]:
        """Return what operations forgot, as `ChangeFeed.forgotten` does."""
        things = self._point.rows(FEED_FORGOTTEN, first=first, stop=stop)
        links = self._point.rows(LINKS_BESIDE, numbers=as_json([thing.number for thing in things]))
        return {
            "versions": [thing.id for thing in things if not thing.is_event],
            "events": [thing.id for thing in things if thing.is_event],
            "links": list(dict.fromkeys(link.id for link in links)),
        }

    def without_reason(self, operations: list[str]) -> list[str]:
        """Return those of some operations that have no reason."""
        asked = as_json([int(id) for id in operations])
        return [str(row.number) for row in self._point.rows(FEED_WITHOUT_REASON, numbers=asked)]

    def periods(self, name: str, ids: list[str], stop: int) -> list[int]:
        """Return the numbers of the periods of some things, or links."""
        rows = self._point.rows(FEED_PERIODS, ids=as_json(ids), links=name == "links", stop=stop)
        return [row.number for row in rows]
