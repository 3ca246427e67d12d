"""The graphs for Cypher: the tables of the whole history, and the graph of one view; each is updated or built on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphstore.core.index.index import Index
from graphstore.core.journal.journal import Journal
from graphstore.core.tables import libraries
from graphstore.values.period import OPEN, Instant
from graphstore.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from graphstore.core.tables.engine import Engine
    from graphstore.core.tables.projection import Projection
    from graphstore.values.models import Problem

KEPT_VIEWS = 4


class Graphs:
    """Opens the engine on first use: a store without Cypher queries never loads it."""

    def __init__(
        self,
        folder: Path | None,
        index: Index,
        journal: Journal,
        vocabulary: Vocabulary,
        *,
        driver: str,
        notify: Callable[[str], None],
    ) -> None:
        self._folder, self._index, self._journal, self._vocabulary = folder, index, journal, vocabulary
        self.driver, self._notify = driver, notify
        self._projection: Projection | None = None
        self._views: OrderedDict[tuple[Instant, Instant, Instant], Engine] = OrderedDict()

    def follow(self, index: Index) -> None:
        """Drop everything built on the old index, which was rebuilt."""
        self._views.clear()  # not closed: another thread may be reading one; it goes with its last reader
        if self._projection is not None:
            self._projection.abandon()
            self._projection = None
        self._index = index

    def forget(self) -> None:
        """Something was evicted or erased: let go of everything that holds contents."""
        self.follow(self._index)

    @property
    def projection(self) -> Projection:
        """The tables of the whole history."""
        libraries.load(self.driver)
        from graphstore.core.tables.projection import Projection

        if self._projection is None:
            self._projection = Projection(
                self._folder, self._index, self._journal, driver=self.driver, notify=self._notify
            )
        return self._projection

    def tables(self) -> Engine:
        """The tables, caught up."""
        return self.projection.engine()

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Rebuild the tables from the index."""
        self.projection.rebuild(progress)

    def verify(self) -> list[Problem]:
        """What of the tables differs from the index."""
        return self.projection.verify()

    def view(self, valid: Instant, tx: Instant, pending: Sequence[bytes] = ()) -> Engine:
        """The graph at (valid, tx) in memory. Kept for every coordinate at which nothing differs from this one.

        `pending`: the bodies of the transaction still open, whose places are not in the journal yet.
        """
        libraries.load(self.driver)
        from graphstore.core.tables.view_graph import build

        last = self._last_transaction(tx)
        for span in self._views:
            if span[0] <= valid < span[1] and span[2] == last:
                self._views.move_to_end(span)
                return self._views[span]
        engine = build(
            self._index, self._journal, valid, tx, self._vocabulary, driver=self.driver, pending=pending
        )
        if not self._index.pending:  # a transaction still open may change its own view
            self._views[(*self._valid_span(valid), last)] = engine
        while len(self._views) > KEPT_VIEWS:
            self._views.popitem(
                last=False
            )  # not closed: another thread may be reading it; it goes with its last reader
        return engine

    def _last_transaction(self, tx: Instant) -> Instant:
        instants = self._index.o_tx
        at = bisect_right(instants, tx)
        return instants[at - 1] if at else -OPEN

    def _valid_span(self, valid: Instant) -> tuple[Instant, Instant]:
        """The longest stretch of valid time around `valid` in which no row of the index begins or ends and no event comes again."""
        index = self._index
        spans = [
            _around(column, valid)
            for column in (index.r_from, index.r_to, index.s_at, index.k_from, index.k_to)
        ]
        return max(before for before, _ in spans), min(after for _, after in spans)

    def nodes_arrow(self, valid: Instant, tx: Instant, pending: Sequence[bytes] = ()) -> Any:
        """The nodes that stand at (valid, tx) as an Arrow table, from the tables; from the view's own graph while a transaction is open."""
        if self._index.pending:
            from graphstore.core.tables.texts import text

            return self.view(valid, tx, pending).arrow(text("view_nodes", driver=self.driver))
        return self.projection.nodes_at(valid, tx)

    def close(self) -> None:
        """Let go of every engine; the tables are closed cleanly."""
        while self._views:
            self._views.popitem()[1].close()
        if self._projection is not None:
            self._projection.close()
            self._projection = None


def _around(column: array[int], valid: Instant) -> tuple[Instant, Instant]:
    """The last instant of a column that is not after `valid`, and the first that is."""
    import pyarrow
    from pyarrow import compute

    if not column:
        return -OPEN, OPEN
    numbers = pyarrow.Array.from_buffers(pyarrow.int64(), len(column), [None, pyarrow.py_buffer(column)])
    before = compute.max(numbers.filter(compute.less_equal(numbers, valid))).as_py()
    after = compute.min(numbers.filter(compute.greater(numbers, valid))).as_py()
    return -OPEN if before is None else before, OPEN if after is None else after
