"""Read the whole history from the rows of the ledger, without the index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from graphstore.core.index.columns import Mark
from graphstore.core.journal.block_checksums import BLOCK
from graphstore.core.journal.line import GENESIS
from graphstore.core.journal.positions import Position
from graphstore.core.tables.history_source import (
    ChangedEvent,
    ClosedLink,
    ClosedVersion,
    Event,
    Link,
    Node,
    Occurrence,
    Operation,
    Reached,
    Thing,
    Version,
)
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement
from graphstore.read.points import as_json
from graphstore.values.period import Instant

T = TypeVar("T")
S = TypeVar("S", Version, Operation, Link)


class State(NamedTuple):
    """How far a ledger goes."""

    entities: int
    periods: int
    link_periods: int
    operations: int
    occurrences: int
    line: int | None
    digest: str | None
    last: Instant | None
    forgetting: str


class Promoted(NamedTuple):
    """A kind of link that has a table of its own."""

    promoted: str


STATE = Statement("table_state", State)
PROMOTED = Statement("table_promoted", Promoted)
THINGS = Statement("table_things", Thing)
NODES = Statement("table_nodes", Node)
EVENTS = Statement("table_events", Event)
VERSIONS = Statement("table_versions", Version)
OCCURRENCES = Statement("table_occurrences", Occurrence)
OPERATIONS = Statement("table_operations", Operation)
LINKS = Statement("table_links", Link)
CLOSED_VERSIONS = Statement("table_closed_versions", ClosedVersion)
CHANGED_EVENTS = Statement("table_changed_events", ChangedEvent)
CLOSED_LINKS = Statement("table_closed_links", ClosedLink)


class RowHistory:
    """What a ledger has committed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def reading(self) -> AbstractContextManager[object]:
        """Return a block that reads one state of the ledger."""
        return self._ledger.database.snapshot()

    def reached(self) -> Reached:
        """Return how far the ledger goes."""
        [state] = self._rows(STATE)
        mark = Mark(
            entities=state.entities,
            rows=state.periods,
            closings=state.line or 0,  # closings are found by the lines that made them
            link_rows=state.link_periods,
            link_closings=state.line or 0,
            ops=state.operations,
            seen=state.occurrences,
        )
        return Reached(mark, [0, mark.closings], state.digest or GENESIS, state.last or 0, state.forgetting)

    def goes_on(self, done: Reached, now: Reached) -> bool:
        """Return True if the ledger only grew between the two."""
        return done.forgetting == now.forgetting and self._ledger.ends_at(list(done.end), done.digest)

    def transactions(self, upto: Reached) -> int:
        """Return how many transactions there are up to there."""
        return self._ledger.count((Position(*upto.end), upto.digest, None, 0))[1]

    def promoted(self) -> list[str]:
        """Return the kinds of link that were given tables of their own."""
        return [row.promoted for row in self._rows(PROMOTED)]

    def things(self, first: int, stop: int) -> list[Thing]:
        """Return nodes and events."""
        return self._rows(THINGS, first=first, stop=stop)

    def nodes(self, numbers: Sequence[int]) -> list[Node]:
        """Return the rows of these nodes."""
        return self._rows(NODES, numbers=as_json(list(numbers)))

    def events(self, numbers: Sequence[int]) -> list[Event]:
        """Return the rows of these events."""
        return [
            event._replace(
                data=self._whole(event.body, event.data, event.checksum),
                place=self._whole(event.place_body, event.place, event.place_checksum),
            )
            for event in self._rows(EVENTS, numbers=as_json(list(numbers)))
        ]

    def versions(self, first: int, stop: int) -> list[Version]:
        """Return those of the periods that are of nodes."""
        return self._checked(self._rows(VERSIONS, first=first, stop=stop))

    def occurrences(self, first: int, stop: int) -> list[Occurrence]:
        """Return occurrences."""
        return self._rows(OCCURRENCES, first=first, stop=stop)

    def operations(self, first: int, stop: int) -> list[Operation]:
        """Return operations."""
        return self._checked(self._rows(OPERATIONS, first=first, stop=stop))

    def links(self, first: int, stop: int) -> list[Link]:
        """Return periods of links."""
        return self._checked(self._rows(LINKS, first=first, stop=stop))

    def closed_versions(self, since: Mark, upto: Mark) -> list[ClosedVersion]:
        """Return what was closed between two marks."""
        return self._rows(CLOSED_VERSIONS, line=since.closings, last=upto.closings)

    def changed_events(self, since: Mark, upto: Mark) -> list[ChangedEvent]:
        """Return the events of which a period was opened or closed between two marks."""
        return self._rows(CHANGED_EVENTS, line=since.closings, last=upto.closings, first=since.rows)

    def closed_links(self, since: Mark, upto: Mark) -> list[ClosedLink]:
        """Return what was closed of links between two marks."""
        return self._rows(CLOSED_LINKS, line=since.link_closings, last=upto.link_closings)

    def _rows(self, statement: Statement[T], **values: Any) -> list[T]:
        return statement.rows(self._ledger.database, values)

    def _checked(self, rows: list[S]) -> list[S]:
        for at, row in enumerate(rows):
            data = self._whole(row.body, row.data, row.checksum)
            if data is not row.data:
                rows[at] = row._replace(data=data)
        return rows

    def _whole(self, body: int | None, data: bytes | None, checksum: int) -> bytes | None:
        """Return the data of a body; what is not what was written is asked of the ledger again, which refuses it by the name of its line."""
        if body is None or (checksum >= 0 if data is None else crc32(data) == checksum):
            return data
        return self._ledger.raw(body << BLOCK, 1)
