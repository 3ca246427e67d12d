"""Count how often things are looked up. A read must not cost a write, so counts are in memory and are written to the journal occasionally, in one operation.

A written count has the instant of its transaction, so a count as of a coordinate never changes. Counts not written when the store is closed are kept in a
table of the ledger, since a reader writes no transaction. A crash loses only unwritten counts.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.read.standing_rules import Index

Counts = tuple[Instant, Mapping[str, int]]
"""The instant at which counts were written, and the counts by id."""

EVERY = 15 * 60 * 1_000_000
"""Microseconds: the first commit this long after the last write includes the counts."""


class Accesses:
    """The counts of one store: written ones, and those waiting. One thread changes them at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting: dict[str, int] = {}
        self._last: Instant | None = None
        self._begin(None)

    def _begin(self, state: Hashable) -> None:
        self._state = state
        self._looked = 0  # operations read so far
        # by id: instants, each with the total count by then
        self._written: dict[str, list[tuple[Instant, int]]] = {}

    def forget_written(self) -> None:
        """Drop the written counts, to be read again."""
        with self._lock:
            self._begin(None)

    def again(self, counts: dict[str, int]) -> None:
        """Add counts from before the store was opened to those waiting for the next commit."""
        if counts:
            self.waiting, self._last = counts, -EVERY

    def count(self, names: Iterable[str]) -> None:
        """Count one more lookup of each of these things."""
        with self._lock:
            waiting = self.waiting
            for name in names:
                waiting[name] = waiting.get(name, 0) + 1

    def due(self, tx: Instant) -> bool:
        """Return True if a transaction at `tx` is to write the waiting counts. The first transaction after a count starts the wait."""
        if not self.waiting:
            return False
        if self._last is None:
            self._last = tx
        return tx - self._last >= EVERY

    def take_waiting(self, index: Index, tx: Instant) -> dict[str, int]:
        """Take the waiting counts for a transaction at `tx`. If that fails, return them with `back`."""
        with self._lock:
            counts = {name: count for name, count in self.waiting.items() if name in index.ids}
            self.waiting, self._last = {}, tx
        return counts

    def back(self, counts: dict[str, int]) -> None:
        """Put back counts that were not written."""
        with self._lock:
            for name, count in counts.items():
                self.waiting[name] = self.waiting.get(name, 0) + count

    def total(self, name: str, tx: Instant) -> int:
        """Return how often a thing had been looked up by `tx`, as written by then and read by `read_written`."""
        found = self._written.get(name, [])
        known = bisect_right(found, tx, key=itemgetter(0))
        return found[known - 1][1] if known else 0

    def read_written(
        self, state: Hashable, operations: int, written: Callable[[int], Iterable[Counts]]
    ) -> None:
        """Read the counts committed since the last call. `written` returns those from an operation on. For another `state` all are read again."""
        with self._lock:
            if self._state != state or operations < self._looked:
                self._begin(state)
            if self._looked == operations:
                return
            for tx, counts in written(self._looked):
                for name, count in counts.items():
                    totals = self._written.setdefault(name, [])
                    totals.append((tx, count + (totals[-1][1] if totals else 0)))
            self._looked = operations
