"""What rests on what: a thing that stands is shaky while something it rests on has fallen and nobody has looked at it since.

Nothing is marked when a thing falls. It is found when asked, along the links that hold at the coordinate, so it is exact at every one.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from graphstore.index import RESTED, RESTING, Index
from graphstore.period import Instant

FALLEN = frozenset({"superseded", "retracted", "evicted", "erased"})


class Shaken(NamedTuple):
    """A thing that is shaky, the fallen thing it rests on, the link rows from the former to the latter, and when the fall was told."""

    ent: int
    root: int
    rows: tuple[int, ...]
    told: Instant
    op: int


class Resting:
    """What rests on what at (valid, tx)."""

    def __init__(self, index: Index, valid: Instant, tx: Instant) -> None:
        self.index = index
        self.valid, self.tx = valid, tx
        self._standings: dict[int, str] = {}

    def is_shaky(self, ent: int) -> bool:
        """Whether an entity that stands is shaky.

        From it to what it rests on and on, each thing reached by the way on which the last word was said earliest: what fell after that word shakes it.
        """
        if ent not in self.index.rests:
            return False
        todo, seen = [(self._affirmed(ent), ent)], set()
        while todo:
            said, at = heappop(todo)
            if at in seen:
                continue
            seen.add(at)
            for base, _ in self._bases(at):
                if self._standing(base) in FALLEN:
                    if self._fell(base)[0] > said:
                        return True
                elif base not in seen and base in self.index.rests and self._standing(base) == "stands":
                    heappush(todo, (max(said, self._affirmed(base)), base))
        return False

    def shaken(self) -> Iterator[Shaken]:
        """Everything that is shaky: the latest fall first, then the nearest to it, then in the order their links were told."""
        known = len(self.index.born)  # a link that was undone may have had ends that were
        falls = [
            (*self._fell(base), base) for base in self.index.based if base < known and self._has_fallen(base)
        ]
        seen: set[int] = set()
        for told, op, root in sorted(falls, key=lambda fall: (-fall[0], fall[2])):
            level: list[tuple[int, tuple[int, ...]]] = [(root, ())]
            while level:
                following = []
                for at, rows in level:
                    for ent, row in self._dependants(at):
                        if ent in seen or self._standing(ent) != "stands" or self._affirmed(ent) >= told:
                            continue
                        seen.add(ent)
                        found = Shaken(ent, root, (row, *rows), told, op)
                        if ent in self.index.based:
                            following.append((ent, found.rows))
                        if ent not in self.index.gone:
                            yield found
                level = following

    def _bases(self, ent: int) -> Iterator[tuple[int, int]]:
        """What an entity rests on, and the link rows that say so here."""
        index = self.index
        for side, far, kinds in (
            (index.out, index.l_tgt, RESTING),
            (index.into, index.l_src, RESTED),
        ):
            for link in side.get(ent, ()):
                if index.l_kind[link] in kinds:
                    row = index.find_link(link, self.valid, self.tx)
                    if row >= 0:
                        yield far[link], row

    def _dependants(self, ent: int) -> Iterator[tuple[int, int]]:
        index = self.index
        for side, far, kinds in (
            (index.into, index.l_src, RESTING),
            (index.out, index.l_tgt, RESTED),
        ):
            for link in side.get(ent, ()):
                if index.l_kind[link] in kinds:
                    row = index.find_link(link, self.valid, self.tx)
                    if row >= 0:
                        yield far[link], row

    def _standing(self, ent: int) -> str:
        found = self._standings.get(ent)
        if found is None:
            gone = self.index.gone.get(ent, -1)
            later = (
                gone >= 0 and self.index.o_tx[gone] > self.tx
            )  # what is forgotten later shakes nothing here
            look = self.index.stood if later else self.index.standing
            found = self._standings[ent] = look(ent, self.valid, self.tx)
        return found

    def _has_fallen(self, ent: int) -> bool:
        return self.index.born[ent] <= self.tx and self._standing(ent) in FALLEN

    def _fell(self, ent: int) -> tuple[Instant, int]:
        """When it was told that an entity has fallen here, and by which operation."""
        index = self.index
        op = index.gone.get(ent, -1)
        if op >= 0 and index.o_tx[op] <= self.tx:
            return index.o_tx[op], op
        superseded = self._standing(ent) == "superseded"
        if superseded and (index.is_event[ent] or index.last_cover(ent, self.valid, self.tx) < 0):
            op = min(self._superseding(ent))  # there was nothing to take
        else:
            op = index.removed_by(ent, self.valid, self.tx)
            if superseded:  # it may have found the validity over already
                op = max(op, min(self._superseding(ent)))
        return (index.o_tx[op], op) if op >= 0 else (index.born[ent], op)

    def _superseding(self, ent: int) -> Iterator[int]:
        """The operations that first said the supersessions of an entity that hold here."""
        index = self.index
        for link in index.successors[ent]:
            if index.find_link(link, self.valid, self.tx) >= 0:
                yield index.k_op[index.rows_of_link[link][0]]

    def _affirmed(self, ent: int) -> Instant:
        """When the last word was said of an entity that stands: its description that holds, or a confirmation."""
        index = self.index
        said = index.born[ent]
        if not index.is_event[ent]:
            row = index.find(ent, self.valid, self.tx)
            if row >= 0:
                ver = index.r_ver[row]
                said = next(index.r_tx[one] for one in index.rows_of[ent] if index.r_ver[one] == ver)
        confirmed = index.confirmations(ent, self.tx) if index.names[ent] in index.confirmed else ()
        return max(said, index.o_tx[confirmed[-1]]) if confirmed else said
