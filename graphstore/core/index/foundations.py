"""What rests on what: a thing that stands is shaky while something it rests on has fallen and nobody has looked at it since.

Nothing is marked when a thing falls. It is found when asked, along the links that hold at the coordinate, so it is exact at every one.
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
"""So many looks for each thing that rests on something are taken; then it is worth while to know how far falls reach."""
HALF = 0.5
"""So many of them at one coordinate; then it is worth while to look at each thing once, for all questions there."""

KEPT = 4
"""Coordinates at which it is kept what was found."""
_BACK = 64

Path = tuple[int, Any]  # a link row, and the path that goes on from there; () at its end


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
        # what was looked at -> when a fall that shakes it was told, 0 for none: any such fall, and the latest
        self._some: dict[int, Instant] = {}
        self._latest: dict[int, Instant] = {}
        self._looks = 0
        self._last = _last_told(index, tx)

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
            self._some[ent] = self._shaken_by(ent)
        return self._some[ent] > 0

    def _shaken_by(self, ent: int) -> Instant:
        """When a fall that shakes an entity was told, 0 for none: the first one met, where least was said since on the way.

        A word said after the last fall of all ends the way at once.
        """
        index, tx, last, reach = self.index, self.tx, self._last, _reach(self.index, self.tx)
        done: set[int] = set()
        ways = [(self._affirmed(ent), ent)]
        found = 0
        while ways and not found:
            said, at = heappop(ways)
            if at in done or said >= last:
                continue
            done.add(at)
            for base, _ in self._bases(at):
                if base in done or (reach is not None and reach.get(base, OPEN) > tx):
                    continue
                standing = self._standing(base)
                if standing in FALLEN:
                    told = self._fell(base)[0]
                elif standing != "stands" or base not in index.rests:
                    continue
                else:
                    told = self._latest.get(base, self._some.get(base, -1))
                    if told < 0:
                        heappush(ways, (max(said, self._affirmed(base)), base))
                        continue
                if told > said:
                    found = told
                    break
                if told and base in self._some:  # another fall may shake both
                    heappush(ways, (max(said, self._affirmed(base)), base))
        self._looked(len(done))
        return found

    def _looked(self, looks: int) -> None:
        self._looks += looks
        state = _state(self.index)
        if state is not None:
            state.looks += looks

    def _look_up_from(self, ent: int) -> None:
        """Find the latest fall that shakes an entity, and that of everything it rests on: each thing is looked at once for all questions here.

        Up to what has fallen first, then down from the latest fall: it shakes on as far as nobody has said a word since.
        """
        tx, rests, reach = self.tx, self.index.rests, _reach(self.index, self.tx)
        said = {ent: self._affirmed(ent)}
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
                    if base not in said:
                        said[base] = self._affirmed(base)
                        todo.append(base)
        latest = dict.fromkeys(said, 0)
        for told, at in sorted(falls, reverse=True):
            todo = [at]
            while todo:
                one = todo.pop()
                if not latest[one] and said[one] < told:
                    latest[one] = told
                    todo += above.get(one, ())
        self._latest.update(latest)
        self._looked(len(said))

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
        """Whether anything was ever taken from an entity, or superseded it, or it was forgotten: else it cannot have fallen."""
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
        """How an entity stands for what rests on it: what is forgotten later as it does here, an evicted event as it did before."""
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
        took = {index.r_close[row] for row in index.rows_of[ent]} - {-1}
        ops = sorted({op for op in took if index.o_verb[op] in FORGETTING} | {last}, reverse=True)
        fell = (op for op in ops if index.o_tx[op] <= self.tx and _is_fall(index, op, ent))
        return next(fell, -1)

    def _upto(self, ent: int) -> Instant:
        """The tx here, or the last one before an entity was forgotten."""
        index = self.index
        if ent not in index.gone:
            return self.tx
        took = (index.r_close[row] for row in index.rows_of[ent] if index.r_close[row] >= 0)
        forgot = (index.o_tx[op] for op in took if index.o_verb[op] in FORGETTING)
        return min(self.tx, min(forgot, default=OPEN) - 1)

    def _fell(self, ent: int) -> tuple[Instant, int]:
        """When it was told that an entity has fallen here, and by which operation."""
        index, tx = self.index, self._upto(ent)
        forgot = self._forgot(ent)
        if forgot >= 0:
            return index.o_tx[forgot], forgot
        superseded = self._standing(ent) == "superseded"
        if superseded and (index.is_event[ent] or index.last_cover(ent, self.valid, tx) < 0):
            op = min(self._superseding(ent))  # there was nothing to take
        else:
            op = index.removed_by(ent, self.valid, tx)
            if superseded:  # it may have found the validity over already
                op = max(op, min(self._superseding(ent)))
        return (index.o_tx[op], op) if op >= 0 else (index.born[ent], op)

    def _superseding(self, ent: int) -> Iterator[int]:
        """The operations that first said the supersessions of an entity that hold here."""
        index, tx = self.index, self._upto(ent)
        for link in index.successors[ent]:
            if index.find_link(link, self.valid, tx) >= 0:
                yield index.k_op[index.rows_of_link[link][0]]

    def _affirmed(self, ent: int) -> Instant:
        """When the last word was said of an entity that stands: its description that holds, or a confirmation."""
        index = self.index
        said = index.born[ent]
        if not index.is_event[ent]:
            row = (
                index.last_cover(ent, self.valid, self.tx)
                if ent in index.gone
                else index.find(ent, self.valid, self.tx)
            )
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


class _State:
    """What is known of an index as it was committed last: what was found at the last coordinates, how many looks were taken, how far falls reach,
    and when something fell."""

    def __init__(self) -> None:
        self.stamp = (0, 0)
        self.looks = 0
        self.reach: dict[int, Instant] = {}
        self.reach_known: Instant = -OPEN  # so far it is right: of coordinates up to this tx
        self.found: OrderedDict[tuple[Instant, Instant], Resting] = OrderedDict()
        self.told: list[Instant] = []  # when anything fell, in order
        self.fallen: list[int] = []  # and what
        self._read = Mark()
        self._open = (-1, -1)  # the transaction that is open, and how often something was undone in it
        self._looked = Mark()  # so far it was looked at for falls
        self._felled = False

    def felled_now(self, index: Index) -> bool:
        """Whether a transaction still open has made anything fall. What was looked at once is not looked at again, unless something was undone."""
        here = (index.transactions, index.undone)
        if self._open != here:
            self._open, self._looked, self._felled = here, index.mark(), False
        if not self._felled:
            now = index.lengths()
            self._felled = any(True for _ in _falls_told(index, self._looked, now))
            self._looked = now
        return self._felled

    def catch_up(self, index: Index) -> None:
        """Know of what was committed since. What was found of coordinates that may have come before it stays right."""
        settled = self.stamp[1]
        self.stamp = (index.transactions, index.last_tx)
        self.reach_known = min(self.reach_known, settled)
        for place in [place for place in self.found if place[1] > settled]:
            del self.found[place]
        mark = index.mark()
        falls = [*_falls_told(index, self._read, mark)]
        falls += [(gap[0], ent) for ent, gaps in index.gaps.items() for gap in gaps if gap[0] > settled]
        for told, ent in sorted(falls):
            self.told.append(told)
            self.fallen.append(ent)
        self._read = mark


_states: WeakKeyDictionary[Index, _State] = WeakKeyDictionary()


def _committed(index: Index) -> _State:
    """What is known of the index as it was committed last."""
    state = _states.get(index)
    if state is None:
        state = _states[index] = _State()
    if state.stamp != (index.transactions, index.last_tx):
        state.catch_up(index)
    return state


def _state(index: Index) -> _State | None:
    """What is known of the index as it is; None while a transaction changes it."""
    return None if index.pending else _committed(index)


def resting_at(index: Index, valid: Instant, tx: Instant) -> Resting:
    """What rests on what at (valid, tx): what was found there before, where that is right still."""
    state = _state(index)
    if state is None:
        return Resting(index, valid, tx)
    found = state.found.pop((valid, tx), None) or Resting(index, valid, tx)
    state.found[valid, tx] = found
    if len(state.found) > KEPT:
        state.found.popitem(last=False)
    return found


def within_reach(index: Index, ent: int, tx: Instant) -> bool:
    """Whether a fall that was told by `tx` may shake an entity at all."""
    reach = _reach(index, tx)
    return reach is None or reach.get(ent, OPEN) <= tx


def _reach(index: Index, tx: Instant) -> dict[int, Instant] | None:
    """When it was first told of a fall of a thing, or of one it can rest on by links of any time: before that nothing shakes it. None: not known
    of coordinates at `tx`.

    It is found for all at once, when looking has cost as much; then most reads have nowhere to look. What is written later does not change it.
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


def _last_told(index: Index, tx: Instant) -> Instant:
    """No fall of what something rests on was told by `tx` after this instant."""
    state = _committed(index)
    if index.pending and state.felled_now(index):
        return tx
    at = bisect_right(state.told, tx) - 1
    for back in range(at, max(at - _BACK, -1), -1):
        if state.fallen[back] in index.based:
            return state.told[back]
    return state.told[at - _BACK] if at >= _BACK else 0


def _is_fall(index: Index, op: int, ent: int) -> bool:
    """Whether a forgetting shakes what rests on the thing: all but the eviction of an event."""
    return index.o_verb[op] == "erase" or not index.is_event[ent]


def _falls_told(index: Index, since: Mark, upto: Mark) -> Iterator[tuple[Instant, int]]:
    """When a thing lost validity, was superseded or was forgotten, and what, as was written between two marks."""
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
    ):  # born and gone in one transaction, known by a link alone
        if not index.rows_of[ent]:
            yield index.born[ent], ent


def _reached(index: Index, state: _State) -> dict[int, Instant]:
    """When the first fall was told of each thing, or of what it can rest on."""
    reach: dict[int, Instant] = {}
    for tx, root in zip(state.told, state.fallen, strict=True):
        todo = [root] if root in index.based else []
        while todo:
            ent = todo.pop()
            if ent in reach:
                continue
            reach[ent] = tx
            todo += [index.l_src[link] for link in index.into.get(ent, ()) if index.l_kind[link] in RESTING]
            todo += [index.l_tgt[link] for link in index.out.get(ent, ()) if index.l_kind[link] in RESTED]
    return reach
