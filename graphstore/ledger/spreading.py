"""Follows falls from what was invalidated to its dependants, and finds what is shaky.

The latest fall is followed first, so that most entities are visited once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from graphstore.ledger.standing_facts import NOW, Facts, Fall, Ground
from graphstore.values.period import Instant, Period, coalesce, overlap, without_all
from graphstore.values.vocabulary import RESTS

_ADDING = frozenset({"revise", "amend", "retract", "correct"})
"""Verbs that never make a dependant less shaky: what they close falls by a later operation, and for at least the same kinds of link."""


class Touched(NamedTuple):
    """Lists what a transaction changed.

    `fallen`: entities whose periods, content or existence changed. `itself`: entities of which a link or the last recheck changed.
    """

    fallen: set[int]
    itself: set[int]

    def add(self, other: Touched) -> None:
        """Add what another transaction changed."""
        self.fallen.update(other.fallen)
        self.itself.update(other.itself)


class Spreading:
    """Finds what is shaky now, of all that a transaction may have changed. The operations of that transaction are numbered from `first` on."""

    def __init__(self, facts: Facts, touched: Touched, first: int) -> None:
        self._facts, self._first = facts, first
        self._fallen = touched.fallen
        self._stored: dict[int, list[Period]] = {}
        self._found: dict[int, list[Period]] = {}
        self._anew = self._worked_out_anew(touched)  # entities whose shaky parts are worked out from nothing
        self._below: set[int] = set(self._anew)  # and those by which a fall may reach them
        self._whole: dict[
            int, list[Period]
        ] = {}  # what a later fall has reached, that no thing on the way stopped

    def result(self) -> dict[int, list[Period]]:
        """Return the shaky periods of each entity whose rows may have to change."""
        for fall, root, reached in sorted(self._reaching(), key=lambda one: -one[0].operation):
            self._spread(fall, root, reached)
        result = {entity: coalesce(self._found.get(entity, ())) for entity in self._anew}
        for entity, periods in self._found.items():
            if entity not in self._anew:
                result[entity] = coalesce([*periods, *self._rows_of(entity)])
        return result

    def _rows_of(self, entity: int) -> list[Period]:
        found = self._stored.get(entity)
        if found is None:
            found = self._stored[entity] = self._facts.shaky_rows(entity)
        return found

    def _worked_out_anew(self, touched: Touched) -> set[int]:
        """Return what was touched, and its shaky dependants, direct or not: their flags are worked out again. An entity without links has no flags."""
        found = {entity for entity in (*touched.fallen, *touched.itself) if self._facts.is_linked(entity)}
        waiting = list(found)
        while waiting:
            entity = waiting.pop()
            may_shake_less = entity in touched.fallen and not self._has_only_fallen(entity)
            if may_shake_less or self._rows_of(entity):
                for ground in self._facts.dependants(entity):
                    if ground.other not in found and self._rows_of(ground.other):
                        found.add(ground.other)
                        waiting.append(ground.other)
        return found

    def _has_only_fallen(self, entity: int) -> bool:
        """Whether all that the transaction did to an entity's time is to close parts of it, or to describe them anew."""
        facts, first = self._facts, self._first
        rows = facts.rows(entity)
        if not rows or rows[0].opened_by >= first:
            return not facts.has_dependants_before(entity, first)
        closed = [row for row in rows if row.closed_by is not None and row.closed_by >= first]
        opened = [(row.start, row.stop) for row in rows if row.opened_by >= first]
        lost = coalesce((row.start, row.stop) for row in closed)
        return (
            facts.resting is RESTS  # of another kind a newer fall may count less than an older one
            and not any(without_all(period, lost) for period in opened)
            and all(facts.verb(row.closed_by or 0) in _ADDING for row in closed)
            and not any(by >= first for _, _, by in facts.removed(entity))
            and not facts.superseding(entity)
            and facts.forgotten(entity) is None
        )

    def _sources(self) -> set[int]:
        """The entities whose falls may reach what is worked out anew, or were changed."""
        facts, found = self._facts, self._fallen & self._anew
        waiting = list(self._anew)
        while waiting:
            entity = waiting.pop()
            looks = {looked for _, _, looked in facts.upright(entity)}
            if all(looked >= self._first for looked in looks):
                continue  # only what fell in this transaction may reach it
            is_plain = looks == {-1} and not facts.entity(entity).is_event and not facts.replaced_by(entity)
            is_leaf = is_plain and not facts.dependants(entity)
            for ground in facts.grounds(entity):
                base = ground.other
                if facts.may_have_fallen(base):
                    found.add(base)
                if base not in self._below and self._rows_of(base):
                    if is_leaf:
                        self._take_over(entity, ground)
                    else:
                        self._below.add(base)
                        waiting.append(base)
        return found

    def _take_over(self, entity: int, ground: Ground) -> None:
        """Let what reaches a foundation reach an entity that nobody has ever looked at, and on which nothing rests."""
        if "shaky" in ground.counts:
            for shaky in self._rows_of(ground.other):
                if both := overlap(shaky, (ground.start, ground.stop)):
                    self._found.setdefault(entity, []).extend(self._unseen(entity, both, NOW))

    def _reaching(self) -> Iterator[tuple[Fall, int, list[tuple[int, Instant, Instant]]]]:
        """The falls, of what, and which parts of what they reach directly."""
        facts = self._facts
        for root in self._sources():
            parts = facts.falls(root) if facts.dependants(root) else []
            if not parts:
                continue
            reached: dict[Fall, list[tuple[int, Instant, Instant]]] = {}
            for ground in facts.dependants(root):
                if root in self._fallen or ground.other in self._below:
                    for part in parts:
                        for start, stop, fall in facts.counted(part, root, ground):
                            reached.setdefault(fall, []).append((ground.other, start, stop))
            for fall, first in reached.items():
                yield fall, root, first

    def _spread(self, fall: Fall, root: int, first: list[tuple[int, Instant, Instant]]) -> None:
        """Follow a fall from its entity to the dependants."""
        facts, visited = self._facts, dict[int, list[Period]]()
        waiting, is_stopped = deque(first), False
        while waiting:
            entity, start, stop = waiting.popleft()
            holes = (*visited.get(entity, ()), *self._whole.get(entity, ()))
            parts = [
                part
                for piece in without_all((start, stop), holes)
                for part in self._unseen(entity, piece, fall.operation)
            ]
            if not parts:
                continue
            if (fall.word == "ended" and facts.entity(entity).is_event) or root in facts.replaced_by(entity):
                is_stopped = True
                continue
            visited[entity] = coalesce([*visited.get(entity, ()), *parts])
            is_open = entity in self._anew or entity not in self._below
            for ground in facts.dependants(entity):
                if "shaky" in ground.counts and (is_open or ground.other in self._below):
                    for part in parts:
                        if both := overlap(part, (ground.start, ground.stop)):
                            waiting.append((ground.other, *both))
        for entity, reached in visited.items():
            self._found[entity] = coalesce([*self._found.get(entity, ()), *reached])
            if not is_stopped:
                self._whole[entity] = coalesce([*self._whole.get(entity, ()), *reached])

    def _unseen(self, entity: int, piece: Period, operation: int) -> Iterator[Period]:
        """Yield the parts of a period over which an entity stands and was not rechecked since an operation."""
        parts = self._facts.upright(entity)
        at = max(bisect_right(parts, piece[0], key=lambda part: part[0]) - 1, 0)
        for start, stop, looked in parts[at : bisect_left(parts, piece[1], key=lambda part: part[0])]:
            if looked < operation and (both := overlap((start, stop), piece)):
                yield both
