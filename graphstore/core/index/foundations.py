"""What rests on what: a thing that stands is shaky while something it rests on has fallen and nobody looked at it since.

The rows of `shaky` say which things are. Here the links that hold at a coordinate are followed, to tell why: what fell, and by which way. What came before what
is a matter of operations, never of transactions: how a world was grouped changes no answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from graphstore.core.index.index import Index
from graphstore.core.journal.line import DESCRIBING, FORGETTING
from graphstore.values.period import OPEN, Instant, overlap
from graphstore.values.vocabulary import OF_EVENTS, UPHOLDING

Raw = Callable[[int, int], bytes]
Path = tuple[Any, ...]  # a link row, and the path that goes on from there; () at its end


class ShakyEntity(NamedTuple):
    """A shaky thing, the fallen thing it rests on, the way from the former to the latter, and when the fall was recorded."""

    ent: int
    root: int
    path: Path
    fell_at: Instant
    op: int


class Fall(NamedTuple):
    """What became of a thing at an instant: by which operation, and the word for it."""

    op: int
    word: str


class _Fallen(NamedTuple):
    """A fall, of what, and what rests on it directly: each with the row of its link."""

    fall: Fall
    root: int
    first: list[tuple[int, int]]


class Resting:
    """What rests on what at (valid, tx). `raw` reads a body by its place."""

    def __init__(self, index: Index, valid: Instant, tx: Instant, raw: Raw) -> None:
        self.index = index
        self.valid, self.tx = valid, tx
        self._raw = raw
        self._falling = index.resting
        self._rows: dict[int, int] = {}
        self._standings: dict[int, str] = {}
        self._own: dict[int, list[Fall]] = {}  # what became of each thing, whatever rests on it
        self._passed: set[int] = (
            set()
        )  # what some fall does not shake that an older one may, by the same ways
        self._resting_on: dict[int, list[tuple[int, int]]] = {}  # by what; each with the row of its link
        self._shaken_by: dict[int, list[tuple[int, int]]] = {}  # those of them that are shaky with it
        self._looked: dict[int, int] = {}  # the operation by which each was looked at last

    # ------------------------------------------------------------------ all things

    def shaky_entities(self) -> Iterator[ShakyEntity]:
        """Everything that is shaky: the latest fall first, then the nearest to it, then in the order their links were recorded."""
        index = self.index
        seen: set[int] = set()
        for fell_at, group in groupby(self._latest_fallen(), key=lambda one: index.o_tx[one.fall.op]):
            for fallen, ent, path in self._spread(list(group), seen):
                if ent not in index.gone:
                    yield ShakyEntity(ent, fallen.root, path, fell_at, fallen.fall.op)

    def _latest_fallen(self) -> list[_Fallen]:
        """Return the falls here, the latest first."""
        fallen = [one for base in sorted(self.index.based) for one in self._fallen_of(base)]
        return sorted(fallen, key=lambda one: self.index.o_tx[one.fall.op], reverse=True)

    def _fallen_of(self, base: int) -> Iterator[_Fallen]:
        """The falls of one thing here, each with what it shakes directly. What an earlier revision shakes is shaken by those of the last transaction
        that revised it too: it is listed with nothing."""
        index = self.index
        found: dict[Fall, list[tuple[int, int]]] = {}
        falls = self._became(base)
        if not falls:
            return
        revised = falls[0].word == "revised"
        last = (
            bisect_left(falls, index.o_tx[falls[-1].op], key=lambda fall: index.o_tx[fall.op])
            if revised
            else 0
        )
        earlier, latest = falls[:last], falls[last:]
        recorded: list[int] = []
        for ent, row in self._dependants(base):
            counts = self._falling[index.l_kind[index.k_link[row]]]
            if earlier and "revised" in counts:
                recorded.append(self._recorded(row))
            for fall in self.counted(base, row, latest):
                if fall.word in counts:
                    found.setdefault(fall, []).append((ent, row))
        for fall, first in found.items():
            yield _Fallen(fall, base, first)
        for fall in earlier if recorded else ():
            if fall.op > min(recorded):
                yield _Fallen(fall, base, [])

    def _spread(self, group: list[_Fallen], seen: set[int]) -> Iterator[tuple[_Fallen, int, Path]]:
        """What the falls recorded in one transaction shake, with the paths back to them: breadth first, each thing once."""
        alike = len(group) == 1 or not self._looks_between(group)
        if not alike:
            ways: dict[int, tuple[int, _Fallen, Path]] = {}
            for fallen in group:
                for ent, (length, path) in self._spread_one(fallen).items():
                    if ent not in seen and (ent not in ways or length < ways[ent][0]):
                        ways[ent] = (length, fallen, path)
            seen.update(ways)
            for ent, (_, fallen, path) in sorted(ways.items(), key=lambda way: way[1][0]):
                yield fallen, ent, path
            return
        level: list[tuple[_Fallen, int, int, Path]] = [
            (fallen, ent, row, ()) for fallen in group for ent, row in fallen.first
        ]
        while level:
            following = []
            for fallen, ent, row, rest in level:
                if ent in seen:
                    continue
                if not self._shakes(fallen, ent):
                    continue
                seen.add(ent)
                path = (row, rest)
                yield fallen, ent, path
                if ent in self.index.based:
                    following += [(fallen, one, by, path) for one, by in self._onward(ent)]
            level = following
        if not self._passed <= seen:
            yield from self._around(group, seen)

    def _around(self, group: list[_Fallen], seen: set[int]) -> Iterator[tuple[_Fallen, int, Path]]:
        """What the falls of a group shake by ways that lead through things that another fall shook first, which passed by what lies beyond."""
        for fallen in group:
            for ent, (_, path) in self._spread_one(fallen).items():
                if ent not in seen:
                    seen.add(ent)
                    yield fallen, ent, path

    def _spread_one(self, fallen: _Fallen) -> dict[int, tuple[int, Path]]:
        """Everything that one fall shakes: how many links away, and the path back."""
        found: dict[int, tuple[int, Path]] = {}
        level: list[tuple[int, int, Path]] = [(ent, row, ()) for ent, row in fallen.first]
        length = 0
        while level:
            length += 1
            following = []
            for ent, row, rest in level:
                if ent not in found and self._shakes(fallen, ent):
                    path = (row, rest)
                    found[ent] = (length, path)
                    following += [(one, by, path) for one, by in self._onward(ent)]
            level = following
        return found

    def _looks_between(self, group: list[_Fallen]) -> bool:
        """Whether anybody looked at something between the falls of one transaction."""
        ops = [fallen.fall.op for fallen in group]
        return self._is_look_among(min(ops), max(ops))

    def _is_look_among(self, first: int, stop: int) -> bool:
        """Return True if any operation from `first` on, before `stop`, looked at something."""
        raise NotImplementedError

    def _shakes(self, fallen: _Fallen, ent: int) -> bool:
        """Whether a fall at the end of a way shakes a thing on it."""
        if self.standing(ent) != "stands" or self.looked(ent) >= fallen.fall.op:
            return False
        happened = fallen.fall.word == "ended" and self.index.is_event[ent]
        if happened or self.index.replaces(ent, fallen.root, self.tx):
            self._passed.add(ent)
            return False
        return True

    def _onward(self, ent: int) -> list[tuple[int, int]]:
        """What an entity shakes by being shaky, and the link rows that record it."""
        found = self._shaken_by.get(ent)
        if found is None:
            index, falling = self.index, self._falling
            found = self._shaken_by[ent] = [
                (one, row)
                for one, row in self._dependants(ent)
                if "shaky" in falling[index.l_kind[index.k_link[row]]]
            ]
        return found

    # ------------------------------------------------------------------ links

    def _dependants(self, base: int) -> list[tuple[int, int]]:
        """What rests on an entity here, and the link rows that record it."""
        found = self._resting_on.get(base)
        if found is None:
            index, tx = self.index, self.tx
            rows = self._upheld_by(base)
            replaced = base in index.successors or base in index.corrected
            found = self._resting_on[base] = []
            for row in rows:
                link = index.k_link[row]
                kind = index.l_kind[link]
                if kind in UPHOLDING:
                    ent = index.l_tgt[link]
                    rests = not index.is_event[ent] and not index.confirms(link)
                else:
                    ent = index.l_src[link]
                    rests = not index.is_event[ent] or kind in OF_EVENTS
                if rests and not (replaced and index.replaces(ent, base, tx)):
                    found.append((ent, row))
        return found

    def _upheld_by(self, base: int) -> Iterator[int]:
        """The rows of links that hold here by which anything may rest on an entity."""
        index, falling, valid, tx = self.index, self._falling, self.valid, self.tx
        for side, kinds, upholds in ((index.into, falling, False), (index.out, UPHOLDING, True)):
            for link in index.of_kinds(side, base, kinds):
                kind = index.l_kind[link]
                if kind in falling and (kind in UPHOLDING) == upholds:
                    row = index.find_link(link, valid, tx)
                    if row >= 0:
                        yield row

    def _told_first(self, link: int, valid: Instant | None = None) -> int:
        """The first operation that recorded a link, over an instant or over any time."""
        index, tx = self.index, self.tx
        ops = [
            op
            for at, start, stop, op in index.link_ghosts.get(link, ())
            if at <= tx and (valid is None or start <= valid < stop)
        ]
        ops += [
            index.c_op[index.k_claim[row]]
            for row in index.rows_of_link[link]
            if index.k_tx[row] <= tx and (valid is None or index.k_from[row] <= valid < index.k_to[row])
        ]
        return min((op for op in ops if not index.undone_by or index.believed_op(op, tx)), default=-1)

    # ------------------------------------------------------------------ what became of one thing

    def _became(self, base: int) -> list[Fall]:
        """`became`, worked out once."""
        found = self._own.get(base)
        if found is None:
            found = self._own[base] = self.became(base)
        return found

    def counted(self, base: int, row: int, found: list[Fall]) -> list[Fall]:
        """What became of a thing here, as far as it counts for a link to it."""
        index = self.index
        if found[0].word == "revised":
            recorded = self._recorded(row)
            return [fall for fall in found if fall.op > recorded]
        if found[0].op < 0:  # nothing is left of it, and its last retraction decides
            period = (index.k_from[row], index.k_to[row])
            removals = index.removals(base, self.tx)
            mine = [op for op, part in removals if index.is_retraction(op, base) and overlap(part, period)]
            return [self._retraction(max(mine))] if mine else found[1:]
        return found

    def _recorded(self, row: int) -> int:
        """The first operation that recorded the link of a row here."""
        recorded = self.index.recorded_once(row)
        return self._told_first(self.index.k_link[row], self.valid) if recorded is None else recorded

    def _retraction(self, op: int) -> Fall:
        return Fall(op, "corrected" if self.index.o_verb[op] == "correct" else "retracted")

    def became(self, ent: int) -> list[Fall]:
        """What became of a thing here, the same for all links: its revisions, or its fall; a first one without an operation stands for that
        retraction which a link overlaps."""
        index, valid = self.index, self.valid
        standing = self.standing(ent)
        if standing == "stands":
            return [Fall(op, "revised") for op in self._turned(ent)][::-1]
        forgot = self._forgot(ent)
        if forgot >= 0:
            return [Fall(forgot, FORGETTING[index.o_verb[forgot]])]
        tx = self._upto(ent)
        if index.is_event[ent]:
            if standing == "superseded":
                return [Fall(min(self._superseding(ent)), standing)]
            return [self._retraction(index.last_removal(ent, tx))] if standing == "retracted" else []
        here = index.removal_at(ent, valid, tx)
        if index.is_retraction(here, ent):
            return [self._retraction(here)]
        other = self._other_fall(ent, here, tx)
        if not index.believed(ent, tx) and index.is_retraction(index.last_removal(ent, tx), ent):
            return [Fall(-1, "retracted"), *other]
        return other

    def _other_fall(self, ent: int, here: int, tx: Instant) -> list[Fall]:
        """The fall of a node that was not retracted here; `here`: the operation that took this instant."""
        index = self.index
        superseding = list(self._superseding(ent))
        if superseding:
            return [Fall(max(min(superseding), here), "superseded")]
        if here >= 0:
            return [Fall(here, "ended")]
        if self.standing(ent) == "not_yet":
            return []
        first = min((index.v_op[ver] for ver in index.versions_of[ent] if index.v_op[ver] >= 0), default=-1)
        return [Fall(first, "ended")] if first >= 0 and index.o_tx[first] <= tx else []

    def _turned(self, ent: int) -> Iterator[int]:
        """The operations that changed the content of a thing here, the latest first."""
        index, tx, valid = self.index, self.tx, self.valid
        for at, start, stop, op in reversed(index.turns.get(ent, ())):
            there = at <= tx and start <= valid < stop and (not index.undone_by or index.believed_op(op, tx))
            if there and (op not in index.unread or self._differs(ent, op)):
                yield op

    def _differs(self, ent: int, op: int) -> bool:
        """Whether a revision of an old journal, which does not say so, changed the content here."""
        index, valid = self.index, self.valid
        rows = [row for row in index.rows_of[ent] if index.r_from[row] <= valid < index.r_to[row]]
        written = [index.v_op[index.r_ver[row]] for row in rows]
        new = next((index.r_ver[row] for row, by in zip(rows, written, strict=True) if by == op), -1)
        earlier = [(by, index.r_ver[row]) for row, by in zip(rows, written, strict=True) if by < op]
        if new < 0 or not earlier:
            return False
        return bool(self._content(new) != self._content(max(earlier)[1]))

    def _content(self, ver: int) -> Any:
        length = self.index.v_len[ver]
        return orjson.loads(self._raw(self.index.v_pos[ver], length))["content"] if length else None

    def standing(self, ent: int) -> str:
        """The standing of an entity for what rests on it: what is forgotten later stands as here, an evicted event as before."""
        found = self._standings.get(ent)
        if found is None:
            index = self.index
            row = self._holding(ent)
            if row >= 0 and not index.is_event[ent]:
                self._standings[ent] = "stands"
                return "stands"
            forgot = self._forgot(ent)
            if forgot >= 0:
                found = FORGETTING[index.o_verb[forgot]]
            elif ent in index.gone:
                found = index.stood(ent, self.valid, self._upto(ent))
            else:
                found = index.standing(ent, self.valid, self.tx)
            self._standings[ent] = found
        return found

    def _holding(self, ent: int) -> int:
        """The row of an entity that holds here, or -1."""
        row = self._rows.get(ent)
        if row is None:
            row = self._rows[ent] = self.index.find(ent, self.valid, self.tx)
        return row

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

    def _superseding(self, ent: int) -> Iterator[int]:
        """The operations that recorded the supersessions of an entity that hold here."""
        index, tx = self.index, self._upto(ent)
        for link in index.successors.get(ent, ()):
            if index.find_link(link, self.valid, tx) >= 0:
                yield self._told_first(link)

    def looked(self, ent: int) -> int:
        """The last operation by which somebody looked at a standing thing: a confirmation, or a later description that holds here; -1: none."""
        found = self._looked.get(ent)
        if found is None:
            found = self._looked[ent] = self._last_look(ent)
        return found

    def _last_look(self, ent: int) -> int:
        index = self.index
        looked = -1
        if not index.is_event[ent]:
            gone = index.gone and ent in index.gone
            row = index.last_cover(ent, self.valid, self.tx) if gone else self._holding(ent)
            said = index.v_op[index.r_ver[row]] if row >= 0 else -1
            if said >= 0 and index.o_verb[said] in DESCRIBING:
                looked = said
        is_confirmed = index.names[ent] in index.confirmed
        return max(looked, index.confirmed_last(ent, self.tx)) if is_confirmed else looked


def _is_fall(index: Index, op: int, ent: int) -> bool:
    """Whether forgetting a thing shakes what rests on it: always, except the eviction of an event."""
    return index.o_verb[op] == "erase" or not index.is_event[ent]
