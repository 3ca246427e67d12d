"""Follows falls from what was invalidated to its dependants, and finds what is shaky.

The latest fall is followed first, so that most entities are visited once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.standing_facts import NOW, Facts, Fall, Ground
from graphstore.values.period import Period, coalesce, overlap, without_all
from graphstore.values.vocabulary import RESTS

_ADDING = frozenset({"revise", "amend", "retract", "correct"})
"""Verbs that never make a dependant less shaky: what they close falls by a later operation, and for at least the same kinds of link."""
_NOTHING: list[Period] = []


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

    def __init__(self, facts: Facts, touched: Touched, first: int, changed: ChangedParts) -> None:
        self._facts, self._first, self._changed = facts, first, changed
        self._fallen = touched.fallen
        self._found: dict[int, list[Period]] = {}
        self._anew = self._worked_out_anew(touched)  # entities whose shaky parts are worked out from nothing
        self._below: set[int] = set(self._anew)  # and those by which a fall may reach them
        self._resting: dict[int, list[Ground]] = {}  # of what may have fallen: which of those rest on it
        self._whole: dict[int, list[Period]] = {}
        """What a later fall has reached, that no thing on the way stopped."""

    def result(self) -> dict[int, list[Period]]:
        """Return the shaky periods of each entity whose rows may have to change."""
        if not self._anew:
            return {}
        for fall, root, reached in sorted(self._reaching(), key=lambda one: -one[0].operation):
            self._spread(fall, root, reached)
        self._facts.shaky.load(self._found)
        result = {entity: self._found.get(entity, _NOTHING) for entity in self._anew}
        for entity, periods in self._found.items():
            if entity not in self._anew:
                result[entity] = _fewest([*periods, *self._facts.shaky[entity]])
        return result

    def _worked_out_anew(self, touched: Touched) -> set[int]:
        """Return what was touched, and its shaky dependants, direct or not: their flags are worked out again. An entity without links has no flags."""
        facts = self._facts
        level = facts.linked(touched.fallen | touched.itself)
        found = set(level)
        while level:
            facts.shaky.load(level)
            leading = [entity for entity in level if facts.shaky[entity] or self._may_shake_less(entity)]
            facts.load_below(leading)
            others = {ground.other for entity in leading for ground in facts.dependants(entity)} - found
            facts.shaky.load(others)
            level = {other for other in others if facts.shaky[other]}
            found |= level
        return found

    def _may_shake_less(self, entity: int) -> bool:
        return entity in self._fallen and not self._has_only_fallen(entity)

    def _has_only_fallen(self, entity: int) -> bool:
        """Whether all that the transaction did to an entity's time is to close parts of it, or to describe them anew."""
        facts, first = self._facts, self._first
        if self._changed.is_new(entity):
            return not facts.has_dependants_before(entity, first)
        closed = self._changed.closed(entity)
        opened = [(row.start, row.stop) for row in self._changed.opened(entity)]
        lost = coalesce((row.start, row.stop) for row in closed)
        return (
            facts.resting is RESTS  # of another kind a newer fall may count less than an older one
            and not any(without_all(period, lost) for period in opened)
            and all(facts.verb(row.closed_by or 0) in _ADDING for row in closed)
            and not self._changed.removed(entity)
            and not facts.ever_superseded(entity)
            and facts.forgotten(entity) is None
        )

    def _sources(self) -> set[int]:
        """The entities whose falls may reach what is worked out anew, or were changed."""
        facts, found = self._facts, self._fallen & self._anew
        level = set(self._anew)
        while level:
            facts.load_upright(level)
            # of the others, only what fell in this transaction may reach them
            resting = [
                one for one in level if any(looked < self._first for _, _, looked in facts.upright(one))
            ]
            facts.load_above(resting)
            shaky = []
            for entity in resting:
                for ground in facts.grounds[entity]:
                    base = ground.other
                    if facts.may_have_fallen(base):
                        found.add(base)
                        self._resting.setdefault(base, []).append(ground._replace(other=entity))
                    if base not in self._below and facts.shaky[base]:
                        shaky.append((entity, ground))
            leaves = self._leaves({entity for entity, _ in shaky})
            level = {ground.other for entity, ground in shaky if entity not in leaves}
            for entity, ground in shaky:
                if entity in leaves and "shaky" in facts.resting[ground.kind]:
                    self._take_over(entity, ground)
            self._below |= level
        return found

    def _leaves(self, entities: Iterable[int]) -> set[int]:
        """Return the nodes at which nobody has ever looked, on which nothing rests, and which replace nothing."""
        facts = self._facts
        plain = [
            entity
            for entity in entities
            if all(looked == -1 for _, _, looked in facts.upright(entity))
            and not facts.entity(entity).is_event
            and not facts.replaces_any(entity)
        ]
        facts.load_dependants(plain)
        return {entity for entity in plain if not facts.dependants(entity)}

    def _take_over(self, entity: int, ground: Ground) -> None:
        """Let what reaches a foundation reach an entity that nobody has ever looked at, and on which nothing rests."""
        arrived = [both for one in self._facts.shaky[ground.other] if (both := overlap(one, ground[1:3]))]
        _add(self._found, entity, _common(arrived, self._unseen(entity, NOW)))

    def _reaching(self) -> Iterator[tuple[Fall, int, dict[int, list[Period]]]]:
        """The falls, of what, and which parts of what they reach directly."""
        facts = self._facts
        sources = self._sources()
        facts.load_believed(sources)
        for root in sources:
            grounds = facts.dependants(root) if root in self._fallen else self._resting_on(root)
            periods = self._periods(root, grounds)
            parts = facts.falls(root, periods, grounds) if periods else []
            if any(fall.word == "revised" for part in parts for fall in part.falls):
                facts.load_recorded(grounds)
            reached: dict[Fall, dict[int, list[Period]]] = {}
            for ground in grounds:
                for part in parts:
                    for start, stop, fall in facts.counted(part, root, ground):
                        reached.setdefault(fall, {}).setdefault(ground.other, []).append((start, stop))
            for fall, first in reached.items():
                yield fall, root, first

    def _periods(self, root: int, grounds: list[Ground]) -> list[Period]:
        """Return over which periods a fall may newly reach what rests on an entity by links, or reaches what is worked out anew."""
        changed = self._changed.periods(root) if root in self._fallen else _NOTHING
        found = {
            both
            for ground in grounds
            for both in ((ground[1:3],) if ground.other in self._below else _common([ground[1:3]], changed))
        }
        return coalesce(found)

    def _resting_on(self, root: int) -> list[Ground]:
        exempt = self._facts.replacers(root)
        return [ground for ground in self._resting.get(root, ()) if ground.other not in exempt]

    def _spread(self, fall: Fall, root: int, level: dict[int, list[Period]]) -> None:
        """Follow a fall from its entity to the dependants.

        A path on which something changed may lead to dependants that the fall has not reached before. On another path, what leads to `_anew` is enough.
        """
        facts, is_stopped = self._facts, False
        changed = (
            set(level) if root in self._fallen else set[int]()
        )  # reached by a path on which something changed
        exempt = facts.replacers(root)
        left: dict[int, list[Period]] = {}  # what the fall may reach of each entity, and has not reached yet
        reached: dict[int, list[Period]] = {}
        while level:
            facts.load_below(level)
            further: dict[int, list[Period]] = {}
            for entity, arrived in level.items():
                if entity not in left:
                    left[entity] = self._reachable(entity, fall.operation)
                parts = _common(arrived, left[entity]) if left[entity] else []
                if not parts:
                    continue
                if entity in exempt or (fall.word == "ended" and facts.entity(entity).is_event):
                    is_stopped = True
                    continue
                left[entity] = _without(left[entity], parts)
                _add(reached, entity, parts)
                if entity in self._anew:
                    changed.add(entity)
                for ground in facts.dependants(entity):
                    if left.get(ground.other, True) and (entity in changed or ground.other in self._below):
                        self._pass_on(ground, parts, further)
                        if entity in changed:
                            changed.add(ground.other)
            level = further
        for entity, parts in reached.items():
            _add(self._found, entity, parts)
            if not is_stopped:
                _add(self._whole, entity, parts)

    def _pass_on(self, ground: Ground, parts: list[Period], further: dict[int, list[Period]]) -> None:
        """Add the parts of a foundation over which an entity rests on it."""
        other, start, stop, _, kind = ground
        if "shaky" in self._facts.resting[kind]:
            for part in parts:
                if both := overlap(part, (start, stop)):
                    further.setdefault(other, []).append(both)

    def _reachable(self, entity: int, operation: int) -> list[Period]:
        """Return over which periods an operation may make an entity shaky, and no later one did."""
        unseen, holes = self._unseen(entity, operation), self._whole.get(entity)
        return _without(unseen, holes) if holes else unseen

    def _unseen(self, entity: int, operation: int) -> list[Period]:
        """Return the periods over which an entity stands and was not rechecked since an operation."""
        parts = self._facts.upright(entity)
        return _fewest([(start, stop) for start, stop, looked in parts if looked < operation])


def _add(found: dict[int, list[Period]], entity: int, parts: list[Period]) -> None:
    """Add parts to those of an entity. Lists are shared, and never changed."""
    earlier = found.get(entity)
    found[entity] = coalesce([*earlier, *parts]) if earlier else parts


def _fewest(periods: list[Period]) -> list[Period]:
    return periods if len(periods) < 2 else coalesce(periods)


def _common(first: list[Period], second: list[Period]) -> list[Period]:
    """Return the instants that both have, as the fewest periods."""
    if first == second:
        return second
    return _fewest([both for one in first for other in second if (both := overlap(one, other))])


def _without(periods: list[Period], holes: list[Period]) -> list[Period]:
    """Return the parts of periods outside all holes."""
    if periods == holes:
        return _NOTHING
    return [part for period in periods for part in without_all(period, holes)]
