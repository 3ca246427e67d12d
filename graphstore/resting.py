"""What rests on what: a thing that stands is shaky while something it rests on has fallen and nobody has looked at it since.

Nothing is marked when a thing falls. It is found when asked, along the links that hold at the coordinate, so it is exact at every one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from graphstore.fingerprints import CONFIRMATION
from graphstore.index import RESTED, RESTING, Index
from graphstore.period import OPEN, Instant

FALLEN = frozenset({"superseded", "retracted", "evicted", "erased"})


MANY = 1_000  # so many steps up from single things cost what finding all that is shaky does

Path = tuple[int, Any]  # a link row, and the path that goes on from there; () at its end


OFTEN = 64
"""So many questions to one state of the store are answered by climbing; after that it is worth while to know how far falls reach."""


class Shaken(NamedTuple):
    """A thing that is shaky, the fallen thing it rests on, the link rows from the former to the latter, and when the fall was told."""

    ent: int
    root: int
    rows: tuple[int, ...]
    told: Instant
    op: int


class _Fall(NamedTuple):
    told: Instant
    op: int
    root: int


class Resting:
    """What rests on what at (valid, tx)."""

    def __init__(self, index: Index, valid: Instant, tx: Instant) -> None:
        self.index = index
        self.valid, self.tx = valid, tx
        self._standings: dict[int, str] = {}
        self._steps = 0
        self._all: frozenset[int] | None = None

    def is_shaky(self, ent: int) -> bool:
        """Whether an entity that stands is shaky.

        From it to what it rests on and on, each thing reached by the way on which the last word was said earliest: what fell after that word shakes it.
        """
        if ent not in self.index.rests:
            return False
        if self._all is not None:
            return ent in self._all
        first = _first_falls(self.index)
        if first is not None and first.get(ent, OPEN) > self.tx:
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
            self._steps += 1
            if self._steps > MANY:
                self._all = frozenset(found for _, found, _ in self._spread(self._falls()))
                return ent in self._all
        return False

    def shaken(self) -> Iterator[Shaken]:
        """Everything that is shaky: the latest fall first, then the nearest to it, then in the order their links were told."""
        for fall, ent, path in self._spread(self._falls()):
            if ent not in self.index.gone:
                rows = []
                while path:
                    row, path = path
                    rows.append(row)
                yield Shaken(ent, fall.root, tuple(rows), fall.told, fall.op)

    def _falls(self) -> list[_Fall]:
        """What has fallen of what something rests on, the latest first."""
        index = self.index
        known = len(index.born)  # a link that was undone may have had ends that were
        falls = [
            _Fall(*self._fell(base), base)
            for base in index.based
            if base < known and self._ever_lost(base) and index.born[base] <= self.tx
            if self._standing(base) in FALLEN
        ]
        return sorted(falls, key=lambda fall: (-fall.told, fall.root))

    def _ever_lost(self, ent: int) -> bool:
        """Whether anything was ever taken from an entity, or superseded it: else it cannot have fallen."""
        index, rows = self.index, self.index.rows_of[ent]
        return len(rows) != 1 or index.r_close[rows[0]] >= 0 or ent in index.successors or ent in index.gone

    def _spread(self, falls: list[_Fall]) -> Iterator[tuple[_Fall, int, Path]]:
        """What each fall shakes, with the way back to it: breadth first, each thing once."""
        seen: set[int] = set()
        for fall in falls:
            level: list[tuple[int, Any]] = [(fall.root, ())]
            while level:
                following = []
                for at, rest in level:
                    for ent, row in self._dependants(at):
                        if ent in seen or self._standing(ent) != "stands" or self._affirmed(ent) >= fall.told:
                            continue
                        seen.add(ent)
                        path = (row, rest)
                        if ent in self.index.based:
                            following.append((ent, path))
                        yield fall, ent, path
                level = following

    def _bases(self, ent: int) -> Iterator[tuple[int, int]]:
        """What an entity rests on, and the link rows that say so here."""
        index = self.index
        yield from self._beside(index.out.get(ent, ()), index.l_tgt, RESTING)
        yield from self._beside(index.into.get(ent, ()), index.l_src, RESTED)

    def _dependants(self, ent: int) -> Iterator[tuple[int, int]]:
        """What rests on an entity, and the link rows that say so here."""
        index = self.index
        yield from self._beside(index.into.get(ent, ()), index.l_src, RESTING)
        yield from self._beside(index.out.get(ent, ()), index.l_tgt, RESTED)

    def _beside(
        self, links: Iterable[int], far: Sequence[int], kinds: frozenset[str]
    ) -> Iterator[tuple[int, int]]:
        index = self.index
        for link in links:
            if index.l_kind[link] in kinds and not _confirms(index, link):
                row = index.find_link(link, self.valid, self.tx)
                if row >= 0:
                    yield far[link], row

    def _standing(self, ent: int) -> str:
        found = self._standings.get(ent)
        if found is None:
            index, gone = self.index, self.index.gone.get(ent, -1)
            later = gone >= 0 and index.o_tx[gone] > self.tx  # what is forgotten later shakes nothing here
            look = index.stood if later else index.standing
            found = self._standings[ent] = look(ent, self.valid, self.tx)
        return found

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


def _confirms(index: Index, link: int) -> bool:
    """Whether a link is what a confirmation says: nothing rests on that alone."""
    source = index.l_src[link]
    return (
        index.l_kind[link] in RESTED and bool(index.is_event[source]) and index.kind[source] == CONFIRMATION
    )


class _Shadow:
    """Of one committed state of an index: how often it was asked, and when asked often enough, how far falls can reach at all."""

    def __init__(self, state: tuple[int, Instant]) -> None:
        self.state = state
        self.asked = 0
        self.first: dict[int, Instant] | None = None


_shadows: WeakKeyDictionary[Index, _Shadow] = WeakKeyDictionary()


def _first_falls(index: Index) -> dict[int, Instant] | None:
    """When the first fall was told that can be reached from an entity by links of any time: before that it is not shaky. None: not known.

    It is found for all at once, when a state that does not change has been asked often: then most reads need not climb at all.
    """
    if index.mark() != index._lengths():
        return None
    shadow, state = _shadows.get(index), (index.transactions, index.last_tx)
    if shadow is None or shadow.state != state:
        shadow = _shadows[index] = _Shadow(state)
    shadow.asked += 1
    if shadow.first is None and shadow.asked > OFTEN:
        shadow.first = _reach(index, _first_told(index))
    return shadow.first


def _first_told(index: Index) -> dict[int, Instant]:
    """When it was first told of a thing that something rests on that it does not hold, or was replaced. A new description tells neither."""
    told: dict[int, Instant] = {}

    def note(ent: int, tx: Instant) -> None:
        if ent in index.based:
            told[ent] = min(tx, told.get(ent, tx))

    for row in index.closings:
        if index.o_verb[index.r_close[row]] != "revise":
            note(index.r_ent[row], index.r_end[row])
    for ent, gaps in index.gaps.items():
        for gap in gaps:
            note(ent, gap[0])
    for ent, links in index.successors.items():
        for link in links:
            for row in index.rows_of_link[link]:
                note(ent, index.k_tx[row])
    for ent, op in index.gone.items():
        note(ent, index.o_tx[op])
    return told


def _reach(index: Index, told: dict[int, Instant]) -> dict[int, Instant]:
    """The earliest of these instants that each thing can reach by what it rests on."""
    first: dict[int, Instant] = {}
    for root, tx in sorted(told.items(), key=lambda fall: fall[1]):
        todo = [root]
        while todo:
            ent = todo.pop()
            near = [index.l_src[link] for link in index.into.get(ent, ()) if index.l_kind[link] in RESTING]
            near += [index.l_tgt[link] for link in index.out.get(ent, ()) if index.l_kind[link] in RESTED]
            fresh = [one for one in near if one not in first]
            first.update(dict.fromkeys(fresh, tx))
            todo += fresh
    return first
