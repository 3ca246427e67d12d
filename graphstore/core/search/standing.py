"""What stands at a coordinate, as a mask over all versions: computed from the columns of rows, then kept up with what is written."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from itertools import chain, compress, count
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.core.index.columns import Mark
from graphstore.core.index.index import Index
from graphstore.values.period import OPEN, Instant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Held(NamedTuple):
    """Rows that hold at an instant, and the time [since, until) around it in which the same ones do."""

    rows: list[int]
    since: Instant
    until: Instant


def holding(rows: list[int], start: array[int], stop: array[int], valid: Instant) -> Held:
    """Those of the rows that hold at `valid`; `start` and `stop` are the columns of their periods."""
    starts, stops = list(map(start.__getitem__, rows)), list(map(stop.__getitem__, rows))
    past, future = valid.__ge__, valid.__lt__  # as methods: filter() then asks them without a line of Python
    return Held(
        [row for row, begins, ends in zip(rows, starts, stops, strict=True) if begins <= valid < ends],
        max(chain(filter(past, starts), filter(past, stops)), default=-OPEN),
        min(chain(filter(future, starts), filter(future, stops)), default=OPEN + 1),
    )


class Replaced:
    """The events that ever were superseded: the only things whose rows do not tell alone whether they stand."""

    def __init__(self) -> None:
        self._links = 0
        self.events: dict[int, None] = {}

    def follow(self, index: Index) -> Iterable[int]:
        """Those of what is committed."""
        done, goal = self._links, index.mark().links
        kinds: Iterable[str] = index.l_kind
        if done:
            kinds = map(index.l_kind.__getitem__, range(done, goal))
        for link in compress(count(done), map("supersedes".__eq__, kinds)):
            if link < goal and index.is_event[ent := index.l_tgt[link]]:
                self.events[ent] = None
        self._links = goal
        return self.events


class Standing:
    """The version of each thing that stands at (valid, tx), and the valid time [since, until) around it in which this is so."""

    __slots__ = ("_words", "alive", "links", "mark", "ops", "pending", "since", "until", "version_of")

    def __init__(self, ops: int, mark: Mark | None) -> None:
        import numpy as np

        self.ops = ops  # operations known
        self.mark = mark  # of the index, if it was current
        self.pending = False  # of an open transaction
        self.since, self.until = -OPEN, OPEN + 1
        self.version_of: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # by entity; -1: it does not stand
        self.alive: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # by version: whether it stands
        self._words = -1  # of all that stands; -1: not counted
        # by caller, then by entity: its links to what stands
        self.links: dict[Hashable, dict[int, Held]] = {}

    def count(self) -> int:
        """How many things stand."""
        import numpy as np

        return int(np.count_nonzero(self.alive))

    def mean(self, lengths: NDArray[Any]) -> float:
        """The mean number of words of the things that stand."""
        import numpy as np

        if self._words < 0:
            self._words = int(lengths[np.flatnonzero(self.alive)].sum())
        return self._words / max(self.count(), 1)

    def copy(self) -> Standing:
        """One that can follow an open transaction, and be thrown away."""
        twin = Standing(self.ops, self.mark)
        twin.since, twin.until = self.since, self.until
        twin.version_of, twin.alive = self.version_of.copy(), self.alive.copy()
        return twin

    def moved_on(self, index: Index, ops: int, mark: Mark, valid: Instant, tx: Instant) -> Standing:
        """One that has followed up to `mark`, with the cached links; other threads may go on with this one."""
        twin = self.copy()
        twin.links = {by: dict(kept) for by, kept in list(self.links.items())}
        twin.follow(index, mark, valid, tx)
        twin.ops = ops
        return twin

    def follow(self, index: Index, mark: Mark, valid: Instant, tx: Instant) -> None:
        """Update what was changed since, up to `mark`."""
        was = self.mark
        assert was is not None
        touched = {index.r_ent[row] for row in range(was.rows, mark.rows)}
        touched.update(index.r_ent[row] for row in index.closings[was.closings : mark.closings])
        links = {index.k_link[row] for row in range(was.link_rows, mark.link_rows)}
        links.update(index.k_link[row] for row in index.link_closings[was.link_closings : mark.link_closings])
        touched.update(index.l_tgt[link] for link in links if index.l_kind[link] == "supersedes")
        self._look_anew(index, touched, links)
        self._words = -1
        self.grow(index)
        for ent in touched:
            ver = self.version_of[ent]
            if ver >= 0:
                self.alive[ver] = False
                self.version_of[ent] = -1
        self.mark = mark
        self._look(index, touched, valid, tx)

    def _look_anew(self, index: Index, touched: set[int], moved: set[int]) -> None:
        """Drop the cached links at the ends of changed links, and around things whose standing may have changed."""
        if self.links:
            l_src, l_tgt = index.l_src, index.l_tgt
            ends = {end for link in moved for end in (l_src[link], l_tgt[link])}
            ends.update(l_tgt[link] for ent in touched for link in index.out.get(ent, ()))
            ends.update(l_src[link] for ent in touched for link in index.into.get(ent, ()))
            for kept in self.links.values():
                for ent in ends:
                    kept.pop(ent, None)

    def without_links(self) -> Standing:
        """The same without cached links, and of the same columns."""
        twin = Standing(self.ops, self.mark)
        twin.since, twin.until = self.since, self.until
        twin.version_of, twin.alive = self.version_of, self.alive
        return twin

    def grow(self, index: Index) -> None:
        """Extend to all versions and things of the index, with the same standing."""
        self.grow_to(len(index.v_ent), len(index.names))

    def grow_to(self, versions: int, entities: int) -> None:
        """Extend to so many versions and things, with the same standing."""
        import numpy as np

        if (more := versions - len(self.alive)) > 0:
            self.alive = np.concatenate([self.alive, np.zeros(more, dtype=bool)])
        if (more := entities - len(self.version_of)) > 0:
            self.version_of = np.concatenate([self.version_of, np.full(more, -1, dtype=np.int32)])

    def look_at_all(self, index: Index, valid: Instant, tx: Instant, replaced: Iterable[int]) -> None:
        """Compute what stands from the columns. `replaced`: the events that were ever superseded."""
        import numpy as np

        known_rows = bisect_right(index.r_tx, tx)
        r_end, r_from, r_to, r_ent, r_ver = (
            np.array(column[:known_rows])
            for column in (index.r_end, index.r_from, index.r_to, index.r_ent, index.r_ver)
        )  # copies: an array with an exported buffer cannot grow
        believed = r_end > tx
        begun, over = r_from <= valid, r_to <= valid
        for bounds, past in ((r_from, begun), (r_to, over)):
            self.since = max(self.since, int(bounds[believed & past].max(initial=-OPEN)))
            self.until = min(self.until, int(bounds[believed & ~past].min(initial=OPEN + 1)))
        rows = np.flatnonzero(believed & begun & ~over)
        self.grow(index)
        self.version_of[r_ent[rows]] = r_ver[rows]
        fallen = [ent for ent in index.gone if self.version_of[ent] >= 0]
        fallen += [
            ent
            for ent in replaced
            if self.version_of[ent] >= 0 and ent not in index.gone and self._replaced(index, ent, valid, tx)
        ]
        self.version_of[fallen] = -1
        self.alive[self.version_of[self.version_of >= 0]] = True

    def _look(self, index: Index, ents: Iterable[int], valid: Instant, tx: Instant) -> None:
        """Compute which of these stand. A superseded event does not, nor does what was forgotten."""
        for ent in ents:
            held = -1
            for row in index.believed(ent, tx):
                start, stop = index.r_from[row], index.r_to[row]
                self.narrow(start, stop, valid)
                if start <= valid < stop:
                    held = row
            if held < 0 or ent in index.gone:
                continue
            if ent in index.successors and index.is_event[ent] and self._replaced(index, ent, valid, tx):
                continue
            self.version_of[ent] = ver = index.r_ver[held]
            self.alive[ver] = True

    def _replaced(self, index: Index, ent: int, valid: Instant, tx: Instant) -> bool:
        for link in index.successors[ent]:
            for row in index.believed_link(link, tx):
                self.narrow(index.k_from[row], index.k_to[row], valid)
        return index.superseded(ent, valid, tx)

    def narrow(self, start: Instant, stop: Instant, valid: Instant) -> None:
        """Note that something changes at these two instants, at one side of `valid` each or both."""
        for bound in (start, stop):
            if bound > valid:
                self.until = min(self.until, bound)
            else:
                self.since = max(self.since, bound)
