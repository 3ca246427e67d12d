"""The fingerprints of the events of a ledger, read once and kept."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import NamedTuple

from graphstore.core.index.occurrences import fingerprint_of
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point


class Reported(NamedTuple):
    """An event, and what it says."""

    number: int
    data: bytes
    checksum: int


class Reach(NamedTuple):
    """How often rows were removed from the chain, how many entities were forgotten, and the number of the next entity."""

    rewritten: int
    forgotten: int
    entities: int


FINGERPRINTS = Statement("fingerprints", Reported)
REACH = Statement("fingerprints_reach", Reach)


class Fingerprints:
    """The fingerprints of one store. They are read on one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._looked = 0  # entities
        self._found: list[tuple[int, str]] = []

    def follow(self, point: Point) -> list[tuple[int, str]]:
        """Read those of new events. Returns the number and the fingerprint of each event that has one, in the order they were recorded."""
        [reach] = point.rows(REACH)
        with self._lock:
            if self._state != reach[:2] or reach.entities < self._looked:
                self._state, self._looked, self._found = reach[:2], 0, []
            found = self._found
            if self._looked < reach.entities:
                found = found[:]  # who reads the list before it goes on with it
                for row in point.rows(FINGERPRINTS, first=self._looked):
                    body = point.content(row.data, row.checksum, "an event")
                    fingerprint = fingerprint_of(body)
                    if fingerprint is not None:
                        found.append((row.number, fingerprint))
                self._found, self._looked = found, reach.entities
            return found
