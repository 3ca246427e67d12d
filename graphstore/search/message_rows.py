"""Find messages by sender, thread and trace, and events by trace and fingerprint, in the rows of a ledger. Rows of events are numbers of periods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.index_of_rows import Number
from graphstore.read.occurrences import fingerprint_of
from graphstore.read.points import Point, as_json
from graphstore.search.source import SourceAt
from graphstore.values.period import OPEN, Instant

_FIRST, _MORE = 64, 4  # messages of the first page, and how many times more each next page has
_FILTERS = ("sender", "thread", "trace", "type", "classification", "authorized")
_SEARCHED = ("thread", "trace", "sender")  # the filters by which messages are searched, the best first
_NO_FILTER: dict[str, Any] = dict.fromkeys(_FILTERS)


class HeldMessage(NamedTuple):
    """A message that holds."""

    number: int
    entity: int
    at: Instant
    id: str
    type: str
    sender: str | None
    thread: str | None


class ThreadMessage(NamedTuple):
    """A message of a thread."""

    number: int
    entity: int
    at: Instant


class MessagePlace(NamedTuple):
    """The time and thread of a message, and whether it was authorized."""

    number: int
    at: Instant
    thread: str | None
    authorized: int


class TraceNamed(NamedTuple):
    """The id of a trace."""

    trace: str


class Reported(NamedTuple):
    """An event with its body."""

    number: int
    id: str
    data: bytes
    checksum: int


MESSAGES = Statement("messages", HeldMessage)
MESSAGE = Statement("message", MessagePlace)
THREAD_BEFORE = Statement("thread_before", ThreadMessage)
THREAD_AFTER = Statement("thread_after", ThreadMessage)
TRACE_EVENTS = Statement("trace_events", Number)
TRACES = Statement("traces", TraceNamed)
FINGERPRINTS = Statement("fingerprints", Reported)


class MessageRows:
    """Finds the messages and traces of one ledger."""

    def __init__(self, point: Point) -> None:
        self._point = point

    def messages(
        self,
        sight: SourceAt,
        wanted: Mapping[str, Any],
        since: Instant,
        until: Instant,
        before: tuple[Instant, str] | None = None,
        among: set[int] | None = None,
    ) -> Iterator[int]:
        """Yield the rows of messages that stand here, happened in [since, until) and have the wanted values; newest first, starting below `before`.

        Args:
            among: only of these entities.
        """
        last = (min(until, sight.valid + 1), "")  # sorts before every id
        last = last if before is None else min(last, before)
        by = "among" if among is not None else next((name for name in _SEARCHED if name in wanted), "at")
        values = {**_NO_FILTER, **wanted, "by": by, "since": since}
        values["among"] = None if among is None else as_json(sorted(among))
        most = _FIRST if among is None else None
        while True:
            found = self._point.rows(MESSAGES, **values, last=last[0], id=last[1], most=most)
            for message in found:
                self._note(sight, message)
                yield message.number
            if most is None or len(found) < most:
                return
            last, most = (found[-1].at, found[-1].id), most * _MORE

    def _note(self, sight: SourceAt, message: HeldMessage) -> None:
        """Enter what was read of a message into the index."""
        index, row, ent = sight.index, message.number, message.entity
        index.r_ent[row], index.r_from[row] = ent, message.at
        index.names[ent], index.kind[ent] = message.id, message.type

    def voices(self, sight: SourceAt, field: str) -> Iterator[tuple[str, list[int]]]:
        """Yield each sender or thread with the rows of its standing messages, newest first; the one with the newest message comes first."""
        rows = self._point.rows(
            MESSAGES, **_NO_FILTER, by="at", since=-OPEN, last=OPEN, id="", among=None, most=None
        )
        found: dict[str, list[int]] = {}
        for message in rows:
            name = message.sender if field == "sender" else message.thread
            if name is not None:
                of_name = found.setdefault(name, [])
                if not of_name:
                    self._note(sight, message)
                of_name.append(message.number)
        return iter(found.items())

    def admitted(self) -> Callable[[int], bool]:
        """Return the test of whether an entity is not a message, or was authorized."""
        known: dict[int, bool] = {}

        def is_admitted(ent: int) -> bool:
            found = known.get(ent)
            if found is None:
                found = known[ent] = all(row.authorized for row in self._point.rows(MESSAGE, entity=ent))
            return found

        return is_admitted

    def around(self, sight: SourceAt, row: int, most: int) -> list[int]:
        """Return the rows of a message's thread: itself and up to `most` before and after it, by the time they happened, then as recorded."""
        index = sight.index
        ent = index.r_ent[row]
        found = next((each for each in self._point.rows(MESSAGE, entity=ent) if each.number == row), None)
        if found is None or found.thread is None:
            return []
        place = {"thread": found.thread, "at": found.at, "entity": ent}
        before = self._point.rows(THREAD_BEFORE, **place, most=most + 1)
        if not before or before[0].number != row:
            return []
        near = [*reversed(before), *self._point.rows(THREAD_AFTER, **place, most=most)]
        for message in near:
            index.r_ent[message.number] = message.entity
        return [message.number for message in near]

    def trace(self, trace_id: str) -> list[int]:
        """Return the events of a trace that have happened here, and the evicted ones that had, in the order in which they were first known."""
        return [event.number for event in self._point.rows(TRACE_EVENTS, trace=trace_id)]

    def traces(self) -> list[str]:
        """Return the ids of the traces in which something happened by then, in the order in which they were first known."""
        return [row.trace for row in self._point.rows(TRACES)]


def fingerprints(point: Point) -> Iterator[tuple[int, str]]:
    """Yield the number and the fingerprint of each event that has one, in the order in which they were recorded."""
    for row in point.rows(FINGERPRINTS):
        fingerprint = fingerprint_of(point.content(row.data, row.checksum, f"event {row.id!r}"))
        if fingerprint is not None:
            yield row.number, fingerprint
