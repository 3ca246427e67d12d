"""The fingerprints and the traces of the events of a ledger, read once and kept."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from graphstore.core.index.occurrences import fingerprint_of
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point


class Reported(NamedTuple):
    """An event, and what it says."""

    number: int
    id: str
    data: bytes
    checksum: int


class Reach(NamedTuple):
    """How often rows were removed from the chain, how many entities were forgotten, and the number of the next entity."""

    rewritten: int
    forgotten: int
    entities: int


FINGERPRINTS = Statement("fingerprints", Reported)
REACH = Statement("fingerprints_reach", Reach)


class Traced(NamedTuple):
    """An event that may be in a trace: what it says, or what was kept of that."""

    number: int
    period: int
    id: str
    data: bytes | None
    checksum: int
    place: bytes | None
    place_checksum: int | None


class InTrace(NamedTuple):
    """An event in a trace, and the number of its first period."""

    period: int
    number: int
    trace: str


TRACED = Statement("traced", Traced)
T = TypeVar("T")


class _Followed(Generic[T]):
    """What the events of one store say, read on one thread at a time. What was forgotten since makes it read all anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._looked = 0  # entities
        self._found: list[T] = []

    def follow(self, point: Point) -> list[T]:
        """Read what new events say. Returns what was found, in the order in which the events were recorded."""
        [reach] = point.rows(REACH)
        with self._lock:
            if self._state != reach[:2] or reach.entities < self._looked:
                self._state, self._looked, self._found = reach[:2], 0, []
            if self._looked < reach.entities:
                # a new list: who reads the one before goes on with it
                self._found = [*self._found, *self._read(point, self._looked)]
                self._looked = reach.entities
            return self._found

    def _read(self, point: Point, first: int) -> Iterator[T]:
        raise NotImplementedError


class Fingerprints(_Followed[tuple[int, str]]):
    """The number and the fingerprint of each event that has one."""

    def _read(self, point: Point, first: int) -> Iterator[tuple[int, str]]:
        for row in point.rows(FINGERPRINTS, first=first):
            fingerprint = fingerprint_of(point.content(row.data, row.checksum, f"event {row.id!r}"))
            if fingerprint is not None:
                yield row.number, fingerprint


class Traces(_Followed[InTrace]):
    """The events that are in a trace, evicted ones too."""

    def _read(self, point: Point, first: int) -> Iterator[InTrace]:
        for row in point.rows(TRACED, first=first):
            body = point.content(row.data, row.checksum, f"event {row.id!r}")
            if not body:
                kept = point.content(row.place, row.place_checksum, f"event {row.id!r}")
                body = kept.get("place", {})
            if body.get("trace_id") is not None:
                yield InTrace(row.period, row.number, body["trace_id"])
