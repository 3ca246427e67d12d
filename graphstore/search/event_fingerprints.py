"""Keeps the fingerprints of the events of a ledger, each read once."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.occurrences import fingerprint_of
from graphstore.read.points import Point


class Reported(NamedTuple):
    """Describes an event, and what it says."""

    number: int
    id: str
    data: bytes
    checksum: int


class Reach(NamedTuple):
    """Counts how often rows were removed from the chain, how many entities were forgotten, and the number of the next entity."""

    rewritten: int
    forgotten: int
    entities: int


FINGERPRINTS = Statement("fingerprints", Reported)
REACH = Statement("fingerprints_reach", Reach)


class Fingerprints:
    """Keeps the number and the fingerprint of each event of one store that has one, read on one thread at a time. What was forgotten since makes it read all anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._looked = 0  # entities
        self._found: list[tuple[int, str]] = []

    def follow(self, point: Point) -> list[tuple[int, str]]:
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

    def _read(self, point: Point, first: int) -> Iterator[tuple[int, str]]:
        for row in point.rows(FINGERPRINTS, first=first):
            fingerprint = fingerprint_of(point.content(row.data, row.checksum, f"event {row.id!r}"))
            if fingerprint is not None:
                yield row.number, fingerprint
