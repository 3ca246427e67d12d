"""Follows falls from what was invalidated to its dependants, and finds what is shaky.

The latest fall is followed first, so that most entities are visited once.

`Known` keeps for the next transaction which fall reached each shaky entity last. That fall decides what rests on the entity: a dependant that the latest
fall does not reach was rechecked since, so no earlier fall reaches it either. The exception is an entity at which some falls stop (`_HiddenFallError`): then
all is worked out from nothing. So a transaction reads the direct foundations of what it touched, and not the foundations of those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.standing_facts import Facts, Fall, Ground
from graphstore.values.period import BEGINNING, OPEN, Instant, Period, coalesce, overlap, without_all
from graphstore.values.vocabulary import RESTS

_ADDING = frozenset({"revise", "amend", "retract", "correct"})
"""Verbs that never make a dependant less shaky: what they close falls by a later operation, and for at least the same kinds of link."""
_NOTHING: list[Period] = []
Part = TypeVar("Part", bound=tuple[Any, ...])


class Touched(NamedTuple):
    """Lists what a transaction changed.

    `fallen`: entities whose periods, content or existence changed. `itself`: entities of which a link or the last recheck changed. `links`: links, with
    their `ends`.
    """

    fallen: set[int]
    itself: set[int]
    links: set[int]
    ends: set[int]

    def add(self, other: Touched) -> None:
        """Add what another transaction changed."""
        for mine, its in zip(self, other, strict=True):
            mine.update(its)


def nothing_touched() -> Touched:
    """Return what a transaction changed that has changed nothing yet."""
    return Touched(set(), set(), set(), set())


class Reached(NamedTuple):
    """States which fall reaches an entity over a period, the latest one. `is_whole`: no entity on any path stopped it."""

    start: Instant
    stop: Instant
    fall: Fall
    root: int
    is_whole: bool


Known = dict[int, list[Reached]]
"""Maps entities to the falls that reach them now, by time. A shaky entity that is missing has to be worked out."""
_NOTHING_KNOWN: list[Reached] = []


Cause = tuple[Fall, int]
"""A fall, and the entity that fell."""
Arrival = tuple[Fall, bool, Instant, Instant, int]
"""A fall on its way to an entity: whether something changed on the path, the period, and the entity that fell."""


class _HiddenFallError(Exception):
    """Raised where a fall stops at an entity, and an earlier one may pass by the same path, of which only the latest is known."""


class Spreading:
    """Finds what is shaky now, of all that a transaction may have changed. The operations of that transaction are numbered from `first` on."""

    def __init__(
        self, facts: Facts, touched: Touched, first: int, changed: ChangedParts, known: Known
    ) -> None:
        self._facts, self._first, self._changed, self._known = facts, first, changed, known
        self._fallen, self._touched = touched.fallen, touched
        self._begin()

    def _begin(self) -> None:
        self._found: dict[int, list[Period]] = {}
        self._reached: Known = {}  # the latest first
        self._trimmed: dict[int, list[Period]] = {}  # touched entities, and what of their flags stays
        self._anew = self._worked_out_anew()  # entities whose shaky parts are worked out from nothing
        self._below: set[int] = set(self._anew)  # and those by which a fall may reach them
        self._taken_over: set[int] = set()  # those of them of which no falls are known
        self._resting: dict[int, list[Ground]] = {}  # of what may have fallen: which of those rest on it
        self._arriving: dict[
            int, list[Arrival]
        ] = {}  # what reaches entities directly, or by a foundation whose falls are known
        self._inherited: set[Cause] = set()  # of these, what comes by such a foundation
        self._looks: dict[int, int] = {}

    def result(self) -> dict[int, list[Period]]:
        """Return the shaky periods of each entity whose rows may have to change."""
        try:
            self._spread_all()
        except _HiddenFallError:
            self._known.clear()
            self._begin()
            self._spread_all()
        self._facts.shaky.load(self._found)
        self._keep()
        result = {entity: self._found.get(entity, _NOTHING) for entity in self._anew}
        result.update((entity, _fewest(periods)) for entity, periods in self._trimmed.items())
        for entity, periods in self._found.items():
            if entity not in self._anew:
                before = self._trimmed.get(entity, self._facts.shaky[entity])
                result[entity] = _fewest([*periods, *before])
        return result

    def _spread_all(self) -> None:
        if not self._linked:
            return
        self._find_arriving()
        stopped, before = set[Cause](), -1
        while len(stopped) > before:  # what was hidden by a fall that stops somewhere may pass there
            before = len(stopped)
            self._reached = {}
            self._spread(self._arriving, stopped)
        for entity, reached in self._reached.items():
            _add(self._found, entity, _fewest([one[:2] for one in reached]))

    def _keep(self) -> None:
        """Keep which falls reach the entities of which all is known."""
        for entity in self._below - self._taken_over:
            self._known[entity] = _latest(self._reached.get(entity, []))
        for entity in self._taken_over:
            self._known.pop(entity, None)
        for entity, reached in self._reached.items():
            if entity not in self._below and (entity in self._known or not self._facts.shaky[entity]):
                self._known[entity] = _latest([*reached, *self._known.get(entity, ())])

    def _worked_out_anew(self) -> set[int]:
        """Return what was touched and may be reached by earlier falls too, and what may be less shaky: their flags are worked out again.

        An entity that never rested on another has none, and none is due to an entity on which nothing ever rested.
        """
        facts = self._facts
        self._linked = facts.linked(self._touched.fallen | self._touched.itself)
        facts.load_standing(self._linked)
        found: set[int] = set()
        level: dict[int, set[Reached] | None] = {}
        for entity in self._linked:
            reached = self._reached_before(entity)
            if reached is not None and self._gains_nothing(entity):
                kept = self._not_looked_at(entity, reached)
                self._known[entity] = kept
                self._trimmed[entity] = [one[:2] for one in kept]
                level[entity] = set(reached).difference(kept)
            else:
                found.add(entity)
                level[entity] = None if reached is None else set(reached)
        lost: dict[int, set[Reached] | None] = {}
        while level:
            leading = {entity: lose for entity, lose in level.items() if self._may_matter(entity, lose)}
            facts.load_below(leading)
            others = {ground.other for entity in leading for ground in facts.dependants(entity)}
            facts.load_standing(others)
            level = {}
            for entity, lose in leading.items():
                itself = self._may_shake_less(entity)
                for other in {
                    ground.other for ground in facts.dependants(entity) if facts.shaky[ground.other]
                }:
                    self._lose(other, self._lost_by(entity, lose, other, itself=itself), lost, level)
            found.update(level)
        for entity in found:
            self._trimmed.pop(entity, None)
        return found

    def _lose(
        self,
        entity: int,
        lose: set[Reached] | None,
        lost: dict[int, set[Reached] | None],
        level: dict[int, set[Reached] | None],
    ) -> None:
        """Note what an entity may lose of what reached it, and in `level` if that is more than it lost before. None: anything."""
        earlier = lost.get(entity, set[Reached]())
        if earlier is None or (lose is not None and lose <= earlier):
            return
        also = level.get(entity, set[Reached]())
        lost[entity] = None if lose is None else earlier | lose
        level[entity] = None if lose is None or also is None else also | (lose - earlier)

    def _reached_before(self, entity: int) -> list[Reached] | None:
        """Return which falls reached an entity before the transaction; None where that is not known."""
        return self._known.get(entity) if self._facts.shaky[entity] else []

    def _gains_nothing(self, entity: int) -> bool:
        """Whether no earlier fall reaches a touched entity that did not reach it before."""
        before = self._facts.upright_before.get(entity)
        if before is None or entity in self._touched.itself or entity in self._touched.ends:
            return False
        known = set(before)
        return not any(
            without_all(
                part[:2], [one[:2] for one in _overlapping(before, part[0], part[1]) if one[2] <= part[2]]
            )
            for part in self._facts.upright(entity)
            if part[2] < self._first and part not in known
        )

    def _not_looked_at(self, entity: int, reached: list[Reached]) -> list[Reached]:
        """Return the parts of what reached an entity over which it stands and was not looked at since."""
        return [
            one._replace(start=both[0], stop=both[1])
            for one in reached
            for start, stop, looked in _overlapping(self._facts.upright(entity), one.start, one.stop)
            if looked < one.fall.operation and (both := overlap(one[:2], (start, stop)))
        ]

    def _may_matter(self, entity: int, lose: set[Reached] | None) -> bool:
        """Whether what an entity may lose, or its own fall, may matter to what rests on it."""
        if lose is None and self._facts.shaky[entity]:
            return True
        return bool(lose) or self._may_shake_less(entity)

    def _lost_by(
        self, base: int, lose: set[Reached] | None, entity: int, *, itself: bool
    ) -> set[Reached] | None:
        """Return what an entity may lose where a foundation loses what reached it; with `itself`, also where that has fallen otherwise. None: anything."""
        reached = self._known.get(entity)
        if reached is None or self._may_stop(entity):
            return None
        found = {one for one in reached if one.root == base} if itself else set[Reached]()
        if lose is None:
            return {*reached} if self._facts.shaky[base] else found
        for other in lose:
            found.update(
                one for one in _overlapping(reached, other.start, other.stop) if one[2:4] == other[2:4]
            )
        return found

    def _may_stop(self, entity: int) -> bool:
        """Whether some falls stop at an entity."""
        return bool(self._facts.entity(entity).is_event) or self._facts.replaces_any(entity)

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
            # where nothing is left, an earlier retraction may count for a link instead of a later end
            and not (not facts.believed(entity) and facts.was_retracted_before(entity, first))
        )

    def _sources(self) -> set[int]:
        """The entities whose falls may reach what is worked out anew, or were changed."""
        facts, found = self._facts, self._fallen & self._linked
        level = set(self._anew)
        while level:
            facts.load_upright(level)
            # of the others, only what fell in this transaction may reach them
            resting = [
                one for one in level if any(looked < self._first for _, _, looked in facts.upright(one))
            ]
            facts.load_above(resting)
            shaky: list[tuple[int, Ground]] = []
            for entity in resting:
                for ground in facts.grounds[entity]:
                    base = ground.other
                    if facts.may_have_fallen(base):
                        found.add(base)
                        self._resting.setdefault(base, []).append(ground._replace(other=entity))
                    if base not in self._below and facts.shaky[base]:
                        self._inherit(entity, ground, shaky)
            leaves = self._leaves({entity for entity, _ in shaky})
            level = {ground.other for entity, ground in shaky if entity not in leaves}
            for entity, ground in shaky:
                if entity in leaves and "shaky" in facts.resting[ground.kind]:
                    self._take_over(entity, ground)
            self._below |= level
        return found

    def _inherit(self, entity: int, ground: Ground, unknown: list[tuple[int, Ground]]) -> None:
        """Let what reaches a shaky foundation reach an entity, if that is known; else add both to `unknown`."""
        if entity in self._facts.replacers(ground.other):
            return
        if (known := self._known.get(ground.other)) is None:
            unknown.append((entity, ground))
        elif "shaky" in self._facts.resting[ground.kind]:
            looked = self._looked_first(entity)
            for one in known:
                if one.fall.operation > looked and (both := overlap((one.start, one.stop), ground[1:3])):
                    self._inherited.add((one.fall, one.root))
                    self._arriving.setdefault(entity, []).append((one.fall, False, *both, one.root))

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
        self._taken_over.add(entity)
        arrived = [both for one in self._facts.shaky[ground.other] if (both := overlap(one, ground[1:3]))]
        standing = [(start, stop) for start, stop, _ in self._facts.upright(entity)]
        _add(self._found, entity, _common(arrived, _fewest(standing)))

    def _find_arriving(self) -> None:
        """Find which falls reach entities directly."""
        facts = self._facts
        sources = self._sources()
        facts.load_fallen(sources, self._fallen & self._linked)
        asked = {}
        for root in sources:
            grounds = facts.dependants(root) if root in self._fallen else self._resting_on(root)
            if periods := self._periods(root, grounds):
                asked[root] = periods, grounds
        facts.load_upright({ground.other for _, grounds in asked.values() for ground in grounds})
        for root, parts in facts.falls(asked, self._fallen).items():
            grounds, is_fallen = asked[root][1], root in self._fallen
            if any(fall.word == "revised" for part in parts for fall in part.falls):
                facts.load_recorded(grounds)
            for ground in grounds if parts else ():
                looked = self._looked_first(ground.other)
                for part in parts:
                    for start, stop, fall in facts.counted(part, root, ground):
                        if fall.operation > looked:
                            arriving = self._arriving.setdefault(ground.other, [])
                            arriving.append((fall, is_fallen, start, stop, root))

    def _looked_first(self, entity: int) -> int:
        """Return the operation that looked at an entity longest ago, of those that looked last at its parts: no earlier fall reaches it."""
        if (found := self._looks.get(entity)) is None:
            looks = (looked for _, _, looked in self._facts.upright(entity))
            found = self._looks[entity] = min(looks, default=OPEN)
        return found

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

    def _spread(self, level: dict[int, list[Arrival]], stopped: set[Cause]) -> None:
        """Follow falls to the dependants. Add those that stop at some of them to `stopped`.

        A path on which something changed may lead to dependants that the fall has not reached before. On another path, what leads to `_anew` is enough.
        """
        facts = self._facts
        while level:
            facts.load_below(level)
            further: dict[int, list[Arrival]] = {}
            for entity, arrived in level.items():
                passing = self._newly_reached(entity, arrived, stopped)
                is_anew = entity in self._anew
                for other, since, until, _, kind in facts.dependants(entity) if passing else ():
                    if "shaky" not in facts.resting[kind]:
                        continue
                    is_below = other in self._below
                    passed = [
                        (fall, is_changed or is_anew, max(start, since), min(stop, until), root)
                        for fall, is_changed, start, stop, root in passing
                        if start < until and since < stop and (is_changed or is_anew or is_below)
                    ]
                    if passed:
                        further.setdefault(other, []).extend(passed)
            level = further

    def _newly_reached(self, entity: int, arrived: list[Arrival], stopped: set[Cause]) -> list[Arrival]:
        """Return over which periods falls reach an entity that no later fall has reached: there it stands, and was not rechecked since."""
        upright, reached = self._facts.upright(entity), self._reached.setdefault(entity, [])
        known = _NOTHING_KNOWN if entity in self._below else self._known.get(entity, _NOTHING_KNOWN)
        found: list[Arrival] = []
        for fall, is_changed, since, until, root in sorted(arrived, reverse=True):
            operation = fall.operation
            parts = [
                (max(start, since), min(stop, until))
                for start, stop, looked in upright
                if looked < operation and start < until and since < stop
            ]
            if not parts:
                continue
            holes = [
                one[:2]
                for one in (*reached, *known)
                if one.fall.operation >= operation and (one.is_whole or one[2:4] == (fall, root))
            ]
            parts = _without(_fewest(parts), holes) if holes else _fewest(parts)
            if not parts:
                continue
            cause = fall, root
            if entity in self._facts.replacers(root) or (
                fall.word == "ended" and self._facts.entity(entity).is_event
            ):
                if cause in self._inherited:
                    raise _HiddenFallError
                stopped.add(cause)
                continue
            for part in parts:
                reached.append(Reached(*part, fall, root, cause not in stopped))
                found.append((fall, is_changed, *part, root))
        return found


def _add(found: dict[int, list[Period]], entity: int, parts: list[Period]) -> None:
    """Add parts to those of an entity. Lists are shared, and never changed."""
    earlier = found.get(entity)
    found[entity] = coalesce([*earlier, *parts]) if earlier else parts


def _latest(reached: list[Reached]) -> list[Reached]:
    """Return which fall is the latest over each part of time, in order."""
    found: list[Reached] = []
    together: list[Reached] = []  # each overlaps one before it
    upto = BEGINNING
    for one in sorted(reached):
        if one.start >= upto:
            found += _latest_of_few(together)
            together = []
        together.append(one)
        upto = max(upto, one.stop)
    return found + _latest_of_few(together)


def _latest_of_few(reached: list[Reached]) -> list[Reached]:
    if len(reached) < 2:
        return reached
    found: list[Reached] = []
    taken: list[Period] = []
    for one in sorted(reached, key=lambda one: -one.fall.operation):
        found += [one._replace(start=start, stop=stop) for start, stop in without_all(one[:2], taken)]
        taken = coalesce([*taken, one[:2]])
    return sorted(found)


def _overlapping(parts: list[Part], start: Instant, stop: Instant) -> list[Part]:
    """Return those of parts, which are in order and do not overlap each other, that overlap a period."""
    first = bisect_right(parts, start, key=lambda part: part[1])
    return parts[first : bisect_left(parts, stop, key=lambda part: part[0])]


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
    holes = _fewest(holes)
    return [
        part for period in periods for part in without_all(period, _overlapping(holes, period[0], period[1]))
    ]
