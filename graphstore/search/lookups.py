"""How often things were looked up: counted in memory, since a read must not cost a write, and written to the journal now and then in one operation.

A written count has its transaction's instant, so a count as of a coordinate never changes. What is not written when the store is closed is kept in a table of the ledger: who only reads writes no
transaction. A crash loses only unwritten counts.
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
"""How often things were looked up, by their ids, and when that was written."""

EVERY = 15 * 60 * 1_000_000
"""The first commit so many microseconds after the last write includes the counts."""


class Accesses:
    """The counts of one store: those written, and those waiting; they change one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting: dict[str, int] = {}
        self._last: Instant | None = None
        self._begin(None)

    def _begin(self, state: Hashable) -> None:
        self._state = state
        self._looked = 0  # operations read so far
        # by id: when, and how many in all by then
        self._written: dict[str, list[tuple[Instant, int]]] = {}

    def forget_written(self) -> None:
        """Have what was written read anew."""
        with self._lock:
            self._begin(None)

    def again(self, counts: dict[str, int]) -> None:
        """Wait for the next commit with what was counted before the store was opened."""
        if counts:
            self.waiting, self._last = counts, -EVERY

    def count(self, names: Iterable[str]) -> None:
        """Count one more lookup of each of these things."""
        with self._lock:
            waiting = self.waiting
            for name in names:
                waiting[name] = waiting.get(name, 0) + 1

    def due(self, tx: Instant) -> bool:
        """Return True if the waiting counts are to be written with a transaction at `tx`. The first one after a count begins the wait."""
        if not self.waiting:
            return False
        if self._last is None:
            self._last = tx
        return tx - self._last >= EVERY

    def take_waiting(self, index: Index, tx: Instant) -> dict[str, int]:
        """Take the waiting counts for a transaction at `tx`. When that fails, put them `back`."""
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
        """Read what was committed since. `written` gives what was written from an operation on, up to so many `operations`; another `state` begins anew."""
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
