"""Read the whole history from the rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar, cast
from zlib import crc32

from graphstore.core.index.columns import Mark
from graphstore.core.journal.line import GENESIS
from graphstore.core.journal.positions import BLOCK, Position
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
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.closings import Closings, closings
from graphstore.ledger.database import Readable
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.statements import Statement
from graphstore.read.points import as_json
from graphstore.values.period import Instant

_NUMBERS = ("number", "told_by", "opened_by", "closed_by")  # columns with numbers of rows

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
    """What a ledger has committed on one line. All numbers are the places of rows in the order of the line."""

    def __init__(self, rows: Ledger | BranchLedger) -> None:
        self._of_line = rows
        self._ledger = rows.ledger if isinstance(rows, BranchLedger) else rows

    def reading(self) -> AbstractContextManager[object]:
        """Return a block that reads one state of the ledger."""
        return self._of_line.snapshot()

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
        return self._placed(self._range(THINGS, "entity", first, stop))

    def nodes(self, numbers: Sequence[int]) -> list[Node]:
        """Return the rows of these nodes."""
        return self._rows(NODES, numbers=self._numbers(numbers))

    def events(self, numbers: Sequence[int]) -> list[Event]:
        """Return the rows of these events."""
        return [
            event._replace(
                data=self._whole(event.body, event.data, event.checksum),
                place=self._whole(event.place_body, event.place, event.place_checksum),
            )
            for event in self._placed(self._rows(EVENTS, numbers=self._numbers(numbers)))
        ]

    def versions(self, first: int, stop: int) -> list[Version]:
        """Return those of the periods that are of nodes."""
        return self._checked(self._range(VERSIONS, "period", first, stop))

    def occurrences(self, first: int, stop: int) -> list[Occurrence]:
        """Return occurrences."""
        return self._placed(self._range(OCCURRENCES, "occurrence", first, stop))

    def operations(self, first: int, stop: int) -> list[Operation]:
        """Return operations."""
        return self._checked(self._range(OPERATIONS, "operation", first, stop))

    def links(self, first: int, stop: int) -> list[Link]:
        """Return periods of links."""
        return self._checked(self._range(LINKS, "link_period", first, stop))

    def closed_versions(self, since: Mark, upto: Mark) -> list[ClosedVersion]:
        """Return what was closed between two marks."""
        return self._placed(self._rows(CLOSED_VERSIONS, numbers=as_json(self._closings(since, upto).periods)))

    def changed_events(self, since: Mark, upto: Mark) -> list[ChangedEvent]:
        """Return the events of which a period was opened or closed between two marks."""
        first, closed = self._database.line.row("period", since.rows), self._closings(since, upto).periods
        return self._placed(self._rows(CHANGED_EVENTS, first=first, numbers=as_json(closed)))

    def closed_links(self, since: Mark, upto: Mark) -> list[ClosedLink]:
        """Return what was closed of links between two marks."""
        return self._placed(
            self._rows(CLOSED_LINKS, numbers=as_json(self._closings(since, upto).link_periods))
        )

    def _closings(self, since: Mark, upto: Mark) -> Closings:
        return closings(self._database, since.closings, upto.closings)

    @property
    def _database(self) -> Readable:
        return self._of_line.database

    def _rows(self, statement: Statement[T], **values: Any) -> list[T]:
        return statement.rows(self._database, values)

    def _range(self, statement: Statement[T], table: str, first: int, stop: int) -> list[T]:
        row = self._database.line.row
        return self._rows(statement, first=row(table, first), stop=row(table, stop))

    def _numbers(self, entities: Sequence[int]) -> str:
        row = self._database.line.row
        return as_json([row("entity", place) for place in entities])

    def _placed(self, rows: list[T]) -> list[T]:
        """Return rows with places in place of numbers."""
        if self._of_line is self._ledger:
            return rows
        found: list[Any] = []
        for row in cast("list[Any]", rows):
            numbers = {name: getattr(row, name) for name in _NUMBERS if name in row._fields}
            found.append(
                row._replace(
                    **{name: None if number is None else number % SPAN for name, number in numbers.items()}
                )
            )
        return found

    def _checked(self, rows: list[S]) -> list[S]:
        rows = self._placed(rows)
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
