"""How often things were looked up. Counted in memory, for a read must not cost a write; told to the journal now and then, in one operation.

What is told carries its transaction's instant, so a count as of a coordinate never changes. What a crash takes is what was not told yet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from graphstore.core.index.index import Index
from graphstore.core.journal.line import COUNTS, TOUCH
from graphstore.core.search.source import Source
from graphstore.values.period import Instant

EVERY = 15 * 60 * 1_000_000
"""With the first commit so many microseconds after the last time, what was counted is told along."""


class Accesses:
    """The counts of one store: those told, and those that wait. Whoever asks holds the store's lock."""

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        self._last: Instant | None = None
        self._index: Index | None = None
        self._begin(None)

    def _begin(self, index: Index | None) -> None:
        self._index = index
        self._looked = 0  # operations that were looked at
        self._told: dict[
            str, tuple[list[Instant], list[int]]
        ] = {}  # by id: when, and how many in all by then

    def count(self, names: Iterable[str]) -> None:
        """Each of these things was looked up once more."""
        waiting = self.waiting
        for name in names:
            waiting[name] = waiting.get(name, 0) + 1

    def due(self, tx: Instant) -> bool:
        """Whether what waits is to be told with a transaction at `tx`. The first one after a count begins the wait."""
        if not self.waiting:
            return False
        if self._last is None:
            self._last = tx
        return tx - self._last >= EVERY

    def take(self, index: Index, tx: Instant) -> dict[str, int]:
        """What waits is written by a transaction at `tx`. When that fails it goes `back`."""
        told = {name: count for name, count in self.waiting.items() if name in index.ids}
        self.waiting, self._last = {}, tx
        return told

    def back(self, told: dict[str, int]) -> None:
        """They were not written after all."""
        for name, count in told.items():
            self.waiting[name] = self.waiting.get(name, 0) + count

    def told(self, name: str, tx: Instant) -> int:
        """How often a thing had been looked up by `tx`, as far as was told by then and `follow` has read."""
        found = self._told.get(name)
        if found is None:
            return 0
        known = bisect_right(found[0], tx)
        return found[1][known - 1] if known else 0

    def follow(self, core: Source) -> None:
        """Read what was committed since."""
        index = core.index
        goal = index.mark().ops
        if self._index is not index or goal < self._looked:
            self._begin(index)
        for op in range(self._looked, goal):
            if index.o_verb[op] == TOUCH:
                body = core.body(index.o_pos[op], index.o_len[op])
                for name, count in body.get(COUNTS, {}).items():
                    when, totals = self._told.setdefault(name, ([], []))
                    when.append(index.o_tx[op])
                    totals.append(count + (totals[-1] if totals else 0))
        self._looked = goal
