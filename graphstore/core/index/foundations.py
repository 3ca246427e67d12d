"""What rests on what: a thing that stands is shaky while something it rests on has fallen and it was not revised or confirmed since.

Nothing is marked when a thing falls. Each read follows the links that hold at its coordinate, so the answer is exact at every coordinate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from graphstore.core.index.columns import RESTED, RESTING, Mark
from graphstore.core.index.index import Index
from graphstore.core.journal.line import FORGETTING
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.period import OPEN, Instant

FALLEN = frozenset({"superseded", "retracted", "evicted", "erased"})
OFTEN = 1
"""After so many lookups for each thing that rests on something, computing the reach of all falls is worthwhile."""
HALF = 0.5
"""After so many of them at one coordinate, examining every thing there once is worthwhile."""

KEPT = 4
"""The number of coordinates whose results are cached."""
_BACK = 64

Path = tuple[int, Any]  # a link row, and the path that goes on from there; () at its end


class ShakyEntity(NamedTuple):
    """A shaky thing, the fallen thing it rests on, the link rows from the former to the latter, and when the fall was recorded."""

    ent: int
    root: int
    rows: tuple[int, ...]
    fell_at: Instant
    op: int


class _Fall(NamedTuple):
    fell_at: Instant
    op: int
    root: int


class Resting:
    """What rests on what at (valid, tx)."""

    def __init__(self, index: Index, valid: Instant, tx: Instant) -> None:
        self.index = index
        self.valid, self.tx = valid, tx
        self._standings: dict[int, str] = {}
        # entity -> when a fall that shakes it was recorded, 0 for none: any such fall, and the latest
        self._some: dict[int, Instant] = {}
        self._latest: dict[int, Instant] = {}
        self._looks = 0
        self._last = _last_fall(index, tx)

    def is_shaky(self, ent: int) -> bool:
        """Whether an entity that stands is shaky."""
        if ent not in self.index.rests:
            return False
        if ent in self._latest:
            return self._latest[ent] > 0
        if ent not in self._some:
            if self._looks > HALF * len(self.index.rests):
                self._look_up_from(ent)
                return self._latest[ent] > 0
            self._some[ent] = self._shaky_since(ent)
        return self._some[ent] > 0

    def _shaky_since(self, ent: int) -> Instant:
        """When a fall that shakes an entity was recorded, 0 for none: the first one found, on the paths with the oldest affirmations.

        A path ends at an entity affirmed after the last fall of all.
        """
        index, tx, last, reach = self.index, self.tx, self._last, _reach(self.index, self.tx)
        done: set[int] = set()
        ways = [(self._affirmed(ent), ent)]
        found = 0
        while ways and not found:
            affirmed_at, at = heappop(ways)
            if at in done or affirmed_at >= last:
                continue
            done.add(at)
            for base, _ in self._bases(at):
                if base in done or (reach is not None and reach.get(base, OPEN) > tx):
                    continue
                standing = self._standing(base)
                if standing in FALLEN:
                    fell_at = self._fell(base)[0]
                elif standing != "stands" or base not in index.rests:
                    continue
                else:
                    fell_at = self._latest.get(base, self._some.get(base, -1))
                    if fell_at < 0:
                        heappush(ways, (max(affirmed_at, self._affirmed(base)), base))
                        continue
                if fell_at > affirmed_at:
                    found = fell_at
                    break
                if fell_at and base in self._some:  # another fall may shake both
                    heappush(ways, (max(affirmed_at, self._affirmed(base)), base))
        self._looked(len(done))
        return found

    def _looked(self, looks: int) -> None:
        self._looks += looks
        state = _state(self.index)
        if state is not None:
            state.looks += looks

    def _look_up_from(self, ent: int) -> None:
        """Find the latest fall that shakes an entity, and that of everything it rests on: each thing is examined once for all later calls.

        First up to the fallen things, then down from the latest fall, as far as nothing was affirmed since.
        """
        tx, rests, reach = self.tx, self.index.rests, _reach(self.index, self.tx)
        affirmed_at = {ent: self._affirmed(ent)}
        above: dict[int, list[int]] = {}
        falls: list[tuple[Instant, int]] = []
        todo = [ent]
        while todo:
            at = todo.pop()
            for base, _ in self._bases(at):
                if reach is not None and reach.get(base, OPEN) > tx:
                    continue
                standing = self._standing(base)
                if standing in FALLEN:
                    falls.append((self._fell(base)[0], at))
                elif standing != "stands" or base not in rests:
                    continue
                elif base in self._latest:
                    falls.append((self._latest[base], at))
                else:
                    above.setdefault(base, []).append(at)
                    if base not in affirmed_at:
                        affirmed_at[base] = self._affirmed(base)
                        todo.append(base)
        latest = dict.fromkeys(affirmed_at, 0)
        for fell_at, at in sorted(falls, reverse=True):
            todo = [at]
            while todo:
                one = todo.pop()
                if not latest[one] and affirmed_at[one] < fell_at:
                    latest[one] = fell_at
                    todo += above.get(one, ())
        self._latest.update(latest)
        self._looked(len(affirmed_at))

    def shaky_entities(self) -> Iterator[ShakyEntity]:
        """Everything that is shaky: the latest fall first, then the nearest to it, then in the order their links were recorded."""
        for fall, ent, path in self._spread(self._falls()):
            if ent not in self.index.gone:
                rows = []
                while path:
                    row, path = path
                    rows.append(row)
                yield ShakyEntity(ent, fall.root, tuple(rows), fall.fell_at, fall.op)

    def _falls(self) -> list[_Fall]:
        """The fallen things that something rests on, the latest fall first."""
        index = self.index
        known = len(index.born)  # the ends of an undone link may be undone too
        falls = [
            _Fall(*self._fell(base), base)
            for base in index.based
            if base < known and self._ever_lost(base) and index.born[base] <= self.tx
            if self._standing(base) in FALLEN
        ]
        return sorted(falls, key=lambda fall: (-fall.fell_at, fall.root))

    def _ever_lost(self, ent: int) -> bool:
        """Whether an entity ever lost validity, was superseded or forgotten: otherwise it cannot have fallen."""
        index, rows = self.index, self.index.rows_of[ent]
        return len(rows) != 1 or index.r_close[rows[0]] >= 0 or ent in index.successors or ent in index.gone

    def _spread(self, falls: list[_Fall]) -> Iterator[tuple[_Fall, int, Path]]:
        """What each fall shakes, with the path back to it: breadth first, each thing once."""
        seen: set[int] = set()
        for fall in falls:
            level: list[tuple[int, Any]] = [(fall.root, ())]
            while level:
                following = []
                for at, rest in level:
                    for ent, row in self._dependants(at):
                        if (
                            ent in seen
                            or self._standing(ent) != "stands"
                            or self._affirmed(ent) >= fall.fell_at
                        ):
                            continue
                        seen.add(ent)
                        path = (row, rest)
                        if ent in self.index.based:
                            following.append((ent, path))
                        yield fall, ent, path
                level = following

    def _bases(self, ent: int) -> Iterator[tuple[int, int]]:
        """What an entity rests on here, and the link rows that record it."""
        index = self.index
        yield from self._beside(index.out.get(ent, ()), index.l_tgt, RESTING)
        yield from self._beside(index.into.get(ent, ()), index.l_src, RESTED)

    def _dependants(self, ent: int) -> Iterator[tuple[int, int]]:
        """What rests on an entity here, and the link rows that record it."""
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
        """The standing of an entity for what rests on it: what is forgotten later stands as here, an evicted event as before."""
        found = self._standings.get(ent)
        if found is None:
            index = self.index
            forgot = self._forgot(ent)
            if forgot >= 0:
                found = FORGETTING[index.o_verb[forgot]]
            elif ent in index.gone:
                found = index.stood(ent, self.valid, self._upto(ent))
            else:
                found = index.standing(ent, self.valid, self.tx)
            self._standings[ent] = found
        return found

    def _forgot(self, ent: int) -> int:
        """The operation by which an entity was forgotten here, and so has fallen; -1 for none. An eviction is no fall of an event: it was too old
        to keep, and no less true."""
        index, last = self.index, self.index.gone.get(ent, -1)
        if last < 0:
            return -1
        closed_by = {index.r_close[row] for row in index.rows_of[ent]} - {-1}
        ops = sorted({op for op in closed_by if index.o_verb[op] in FORGETTING} | {last}, reverse=True)
        fell = (op for op in ops if index.o_tx[op] <= self.tx and _is_fall(index, op, ent))
        return next(fell, -1)

    def _upto(self, ent: int) -> Instant:
        """The tx here, or the last one before an entity was forgotten."""
        index = self.index
        if ent not in index.gone:
            return self.tx
        closed_by = (index.r_close[row] for row in index.rows_of[ent] if index.r_close[row] >= 0)
        forgot = (index.o_tx[op] for op in closed_by if index.o_verb[op] in FORGETTING)
        return min(self.tx, min(forgot, default=OPEN) - 1)

    def _fell(self, ent: int) -> tuple[Instant, int]:
        """When the fall of an entity here was recorded, and by which operation."""
        index, tx = self.index, self._upto(ent)
        forgot = self._forgot(ent)
        if forgot >= 0:
            return index.o_tx[forgot], forgot
        superseded = self._standing(ent) == "superseded"
        if superseded and (index.is_event[ent] or index.last_cover(ent, self.valid, tx) < 0):
            op = min(self._superseding(ent))  # there was nothing to take
        else:
            op = index.removed_by(ent, self.valid, tx)
            if superseded:  # the validity may have ended before
                op = max(op, min(self._superseding(ent)))
        return (index.o_tx[op], op) if op >= 0 else (index.born[ent], op)

    def _superseding(self, ent: int) -> Iterator[int]:
        """The operations that recorded the supersessions of an entity that hold here."""
        index, tx = self.index, self._upto(ent)
        for link in index.successors[ent]:
            if index.find_link(link, self.valid, tx) >= 0:
                yield index.k_op[index.rows_of_link[link][0]]

    def _affirmed(self, ent: int) -> Instant:
        """When a standing entity was last affirmed: by the description that holds, or by a confirmation."""
        index = self.index
        affirmed_at = index.born[ent]
        if not index.is_event[ent]:
            row = (
                index.last_cover(ent, self.valid, self.tx)
                if ent in index.gone
                else index.find(ent, self.valid, self.tx)
            )
            if row >= 0:
                ver = index.r_ver[row]
                affirmed_at = next(index.r_tx[one] for one in index.rows_of[ent] if index.r_ver[one] == ver)
        confirmed = index.confirmations(ent, self.tx) if index.names[ent] in index.confirmed else ()
        return max(affirmed_at, index.o_tx[confirmed[-1]]) if confirmed else affirmed_at


def _confirms(index: Index, link: int) -> bool:
    """Whether a link comes from a confirmation: it is no foundation."""
    source = index.l_src[link]
    return (
        index.l_kind[link] in RESTED and bool(index.is_event[source]) and index.kind[source] == CONFIRMATION
    )


class _State:
    """The cache for the last committed state of an index: results at the last coordinates, the number of lookups, the reach of falls,
    and the falls."""

    def __init__(self) -> None:
        self.stamp = (0, 0)
        self.looks = 0
        self.reach: dict[int, Instant] = {}
        self.reach_known: Instant = -OPEN  # valid for coordinates up to this tx
        self.found: OrderedDict[tuple[Instant, Instant], Resting] = OrderedDict()
        self.falls: list[Instant] = []  # the instants of all falls, in order
        self.fallen: list[int] = []  # and the entities
        self._read = Mark()
        self._open = (-1, -1)  # the transaction that is open, and how often something was undone in it
        self._looked = Mark()  # searched for falls up to here
        self._felled = False

    def felled_now(self, index: Index) -> bool:
        """Whether an open transaction has made anything fall. It is searched incrementally, unless something was undone."""
        here = (index.transactions, index.undone)
        if self._open != here:
            self._open, self._looked, self._felled = here, index.mark(), False
        if not self._felled:
            now = index.lengths()
            self._felled = any(True for _ in _falls_between(index, self._looked, now))
            self._looked = now
        return self._felled

    def catch_up(self, index: Index) -> None:
        """Catch up with the commits since. Results for earlier coordinates stay valid."""
        settled = self.stamp[1]
        self.stamp = (index.transactions, index.last_tx)
        self.reach_known = min(self.reach_known, settled)
        for place in [place for place in self.found if place[1] > settled]:
            del self.found[place]
        mark = index.mark()
        found = [*_falls_between(index, self._read, mark)]
        found += [(gap[0], ent) for ent, gaps in index.gaps.items() for gap in gaps if gap[0] > settled]
        for fell_at, ent in sorted(found):
            self.falls.append(fell_at)
            self.fallen.append(ent)
        self._read = mark


_states: WeakKeyDictionary[Index, _State] = WeakKeyDictionary()


def _committed(index: Index) -> _State:
    """The cache of the index as it was committed last."""
    state = _states.get(index)
    if state is None:
        state = _states[index] = _State()
    if state.stamp != (index.transactions, index.last_tx):
        state.catch_up(index)
    return state


def _state(index: Index) -> _State | None:
    """The cache of the index as it is; None while a transaction changes it."""
    return None if index.pending else _committed(index)


def resting_at(index: Index, valid: Instant, tx: Instant) -> Resting:
    """What rests on what at (valid, tx), from the cache where that is still valid."""
    state = _state(index)
    if state is None:
        return Resting(index, valid, tx)
    found = state.found.pop((valid, tx), None) or Resting(index, valid, tx)
    state.found[valid, tx] = found
    if len(state.found) > KEPT:
        state.found.popitem(last=False)
    return found


def within_reach(index: Index, ent: int, tx: Instant) -> bool:
    """Whether any fall recorded by `tx` may shake an entity."""
    reach = _reach(index, tx)
    return reach is None or reach.get(ent, OPEN) <= tx


def _reach(index: Index, tx: Instant) -> dict[int, Instant] | None:
    """When the first fall of each thing, or of one it can rest on by links of any time, was recorded: before that nothing shakes it. None: unknown
    for coordinates at `tx`.

    It is computed for all things at once, when lookups have cost as much; then most reads end at once. Later writes do not change it.
    """
    state = _state(index)
    if state is None:
        return None
    if tx > state.reach_known:
        if state.looks < OFTEN * len(index.rests):
            return None
        state.reach = _reached(index, state)
        state.reach_known, state.looks = OPEN, 0
    return state.reach


def _last_fall(index: Index, tx: Instant) -> Instant:
    """The last instant by `tx` at which a thing that something rests on may have fallen."""
    state = _committed(index)
    if index.pending and state.felled_now(index):
        return tx
    at = bisect_right(state.falls, tx) - 1
    for back in range(at, max(at - _BACK, -1), -1):
        if state.fallen[back] in index.based:
            return state.falls[back]
    return state.falls[at - _BACK] if at >= _BACK else 0


def _is_fall(index: Index, op: int, ent: int) -> bool:
    """Whether forgetting a thing shakes what rests on it: always, except the eviction of an event."""
    return index.o_verb[op] == "erase" or not index.is_event[ent]


def _falls_between(index: Index, since: Mark, upto: Mark) -> Iterator[tuple[Instant, int]]:
    """The falls written between two marks: when, and which entity lost validity, was superseded or forgotten."""
    for row in index.closings[since.closings : upto.closings]:
        op, ent = index.r_close[row], index.r_ent[row]
        if index.o_verb[op] != "revise" and (index.o_verb[op] not in FORGETTING or _is_fall(index, op, ent)):
            yield index.r_end[row], ent
    for row in range(since.link_rows, upto.link_rows):
        if index.l_kind[index.k_link[row]] == "supersedes":
            yield index.k_tx[row], index.l_tgt[index.k_link[row]]
    for op in range(since.ops, upto.ops):
        ent = index.ids.get(index.o_subject[op], -1) if index.o_verb[op] in FORGETTING else -1
        if ent >= 0 and _is_fall(index, op, ent):
            yield index.o_tx[op], ent
    for ent in range(
        since.entities, upto.entities
    ):  # added and removed in one transaction, known by a link alone
        if not index.rows_of[ent]:
            yield index.born[ent], ent


def _reached(index: Index, state: _State) -> dict[int, Instant]:
    """The first fall of each thing or of what it can rest on."""
    reach: dict[int, Instant] = {}
    for tx, root in zip(state.falls, state.fallen, strict=True):
        todo = [root] if root in index.based else []
        while todo:
            ent = todo.pop()
            if ent in reach:
                continue
            reach[ent] = tx
            todo += [index.l_src[link] for link in index.into.get(ent, ()) if index.l_kind[link] in RESTING]
            todo += [index.l_tgt[link] for link in index.out.get(ent, ()) if index.l_kind[link] in RESTED]
    return reach
