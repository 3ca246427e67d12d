"""Spreads falls (invalidations) from what was invalidated to its dependants, and so finds what is shaky.

`KnownFalls` keeps which falls reach each entity over which valid time: where it stands, and where it has ended, since its last state still counts there. A
later fall hides an earlier one, unless a dependant was rechecked since both. But a fall by which the world changed hides no fall in `NEVER_SO`, since some
links let only these pass. And a fall that stops at some entity hides nothing: an ended foundation does not shake an event, its own correction does not shake
a replacement, and a look that a merge brought covers only some falls. So what reaches an entity over a part of time follows from the falls of its direct
foundations there. A transaction is followed over the parts of time that it changed:

1. Its own falls spread to the dependants. They are the latest and hide earlier ones.
2. A fall that no longer reaches an entity is removed from the dependants too, where it may have come from that entity.
3. Where falls were removed or may be added, the falls of an entity are computed again from its direct foundations.

The falls of an entity that is shaky by its rows but missing in `KnownFalls` are computed from its foundations when needed. So are those of its shaky
foundations and dependants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import NamedTuple

from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.standing_facts import Facts, Fall, Ground, overlapping, without_periods
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, coalesce, overlap, without_all
from graphstore.values.vocabulary import NEVER_SO, RESTS

_ADDING = frozenset({"revise", "amend", "retract", "correct"})
"""Verbs that never make a dependant less shaky: they close periods by a later fall, which counts for at least the same kinds of link."""
_NOTHING: list[Period] = []
_ALWAYS = [ALWAYS]
Cause = tuple[Fall, int]
"""A fall, and the entity that it invalidated."""


@dataclass(slots=True)
class TouchedEntities:
    """Holds what a transaction changed."""

    fallen: set[int] = field(default_factory=set)  # entities whose periods, content or existence changed
    itself: set[int] = field(default_factory=set)  # entities of which a link or the last recheck changed
    resting: set[int] = field(default_factory=set)  # entities that rest on something by a new link
    new_links: set[int] = field(default_factory=set)


class ReachedEntity(NamedTuple):
    """States that the fall of an entity (`root`) reaches another entity over a period, or is spreading to it."""

    start: Instant
    stop: Instant
    fall: Fall
    root: int


@dataclass(slots=True)
class KnownFalls:
    """Keeps which falls reach entities now, and which falls have stopped somewhere."""

    reached: dict[int, list[ReachedEntity]] = field(default_factory=dict)
    stopped: set[Cause] = field(default_factory=set)


Arriving = dict[int, list[ReachedEntity]]
_CAUSE, _OPERATION = itemgetter(2, 3), attrgetter("fall.operation")
_Lost = tuple[int, Instant, Instant, Cause | None]
"""An entity and a period over which a fall (None: any) no longer reaches it."""


class _StopFoundError(Exception):
    """Raised when a fall is first found to stop at an entity. From then on it hides nothing, so the work has to start again."""


class Spreading:
    """Finds the entities whose shakiness a transaction may have changed. The operations of the transaction are numbered from `first` on."""

    def __init__(
        self, facts: Facts, touched: TouchedEntities, first: int, changed: ChangedParts, known: KnownFalls
    ) -> None:
        self._facts, self._first, self._changed, self._known = facts, first, changed, known
        self._touched, self._fallen = touched, touched.fallen
        self._linked = facts.linked(touched.fallen | touched.itself | touched.resting)
        self._shaking_less: dict[int, bool] = {}
        self._shown: set[Cause] = set()  # earlier falls that this transaction found to stop somewhere

    def result(self) -> dict[int, list[Period]]:
        """Return the shaky periods of each entity whose rows may have to change."""
        if not self._linked:
            return {}
        while not self._is_worked_out():
            pass
        known, result = self._known.reached, dict[int, list[Period]]()
        for entity, found in self._gained.items():
            result[entity] = coalesce([*self._facts.shaky[entity], *(one[:2] for one in found)])
        for entity, reached in self._reached.items():
            periods = [one[:2] for one in reached]
            if entity in self._taken_over:
                periods += self._taken_over[entity]
                known.pop(entity, None)
            elif reached:
                known[entity] = reached
            else:
                known.pop(entity, None)
            result[entity] = _fewest(periods)
        return result

    def _is_worked_out(self) -> bool:
        """Compute what reaches entities. Return False if a fall was found to stop somewhere: then call this again."""
        self._reached: dict[int, list[ReachedEntity]] = {}  # the falls of known entities that have changed
        self._gained: dict[
            int, list[ReachedEntity]
        ] = {}  # falls that newly reach entities whose other falls are not known
        self._windows: dict[int, list[Period]] = {}  # the time over which falls are computed again
        self._taken_over: dict[int, list[Period]] = {}
        self._lost: list[_Lost] = []
        try:
            self._begin()
            arriving = self._spread_new_falls()
            self._lose()
            level = {entity for entity, periods in self._windows.items() if periods}
            level |= self._touched.resting & self._linked
            while level or arriving:
                self._gather(level, arriving)
                level = self._find_below(self._spread(arriving))
                arriving = {}
        except _StopFoundError:
            return False
        return True

    # ------------------------------------------------------------------ known falls of an entity

    def _reaching(self, entity: int) -> list[ReachedEntity] | None:
        """Return the falls that reach an entity; None if they are not known."""
        found = self._reached.get(entity)
        if found is None and (found := self._known.reached.get(entity)) is None:
            return None if self._facts.shaky[entity] else []
        return found

    def _find_wholly(self, entity: int) -> list[_Lost]:
        """Mark all falls of an unknown entity to be computed. Return what may no longer reach it."""
        self._windows[entity] = [ALWAYS]
        self._reached[entity] = self._gained.pop(entity, [])
        return [(entity, *part, None) for part in self._facts.shaky[entity]]

    def _lose_some(self, entity: int, lost: list[ReachedEntity]) -> list[_Lost]:
        """Remove falls that no longer reach an entity, and mark the time of these to be computed again. Return what was removed."""
        if not lost:
            return []
        reached = self._reaching(entity) or []
        holes: dict[Cause, list[Period]] = {}
        for one in lost:
            holes.setdefault(one[2:], []).append(one[:2])
        self._reached[entity] = [
            part
            for one in reached
            for part in (_outside(one, holes[one[2:]]) if one[2:] in holes else (one,))
        ]
        self._look_again(entity, (one[:2] for one in lost))
        return [(entity, one.start, one.stop, one[2:]) for one in lost]

    def _look_again(self, entity: int, periods: Iterable[Period]) -> None:
        self._windows[entity] = coalesce([*self._windows.get(entity, ()), *periods])

    # ------------------------------------------------------------------ changes of the transaction itself

    def _begin(self) -> None:
        """Remove falls that no longer reach the touched entities, and mark the time over which others may."""
        facts = self._facts
        facts.shaky.load(self._linked)
        facts.load_upright(self._linked)
        for entity in self._linked:
            is_linked_anew = entity in self._touched.itself
            reached = self._reaching(entity)
            if reached is None:
                self._lost += self._find_wholly(entity)
                continue
            if is_linked_anew:
                periods = _ALWAYS
            elif entity in self._fallen:  # its last state counts where it has ended
                ended = without_periods([part[:2] for part in facts.upright(entity)], self._standing(entity))
                periods = (
                    _fewest([*self._changed.periods(entity), *ended])
                    if ended
                    else self._changed.periods(entity)
                )
            else:
                periods = _NOTHING
            upright = facts.upright(entity)
            if reached:
                kept = [] if is_linked_anew else self._still_passing(entity, upright, reached)
                self._lost += self._lose_some(entity, _difference(reached, kept))
            if older := [part[:2] for part in upright if part[2] < self._first]:
                self._look_again(entity, _common(older, periods))
        if self._shown:
            for entity, reached in self._known.reached.items():
                self._look_again(entity, [one[:2] for one in reached if one[2:] in self._shown])

    def _standing(self, entity: int) -> list[Period]:
        return _fewest([part[:2] for part in self._facts.believed[entity]])

    def _still_passing(
        self, entity: int, upright: list[tuple[Instant, Instant, int]], reached: list[ReachedEntity]
    ) -> list[ReachedEntity]:
        """Return the parts of falls over which they still reach the entity: it was not rechecked since."""
        found = [
            one._replace(start=both[0], stop=both[1])
            for one in reached
            for start, stop, looked in overlapping(upright, one.start, one.stop)
            if looked < one.fall.operation and (both := overlap(one[:2], (start, stop)))
        ]
        if entity not in self._facts.covered:
            return found
        return [part for one in found for part in _outside(one, self._covering(entity, one.fall))]

    def _covering(self, entity: int, fall: Fall) -> list[Period]:
        """Return the parts of an entity's time in which looks of merges cover a fall."""
        covered = self._facts.covered.get(entity, ())
        return [one[:2] for one in covered if one.after < fall.operation <= one.upto]

    def _spread_new_falls(self) -> Arriving:
        """Spread the falls of this transaction, and remove falls that no longer reach dependants. Return the earlier falls that may newly reach some."""
        facts = self._facts
        roots = self._fallen & self._linked
        facts.load_dependants(roots)
        others = {ground.other for root in roots for ground in facts.dependants(root)}
        facts.load_spans(others)
        facts.shaky.load(others)
        asked = {}
        for root in roots:
            periods, over = self._changed.periods(root), set[Period]()
            grounds = []
            for ground in facts.dependants(root):
                if both := self._standing_over(ground, ground.other, periods):
                    over.update(both)
                    grounds.append(ground)
            if grounds:
                asked[root] = coalesce(over), grounds
        facts.load_fallen(asked)
        new: Arriving = {}
        earlier: Arriving = {}
        direct = list(self._counted(asked))
        for root, ground, counted in direct:
            for start, stop, fall in counted:
                if fall.operation >= self._first or fall.operation > self._looked_first(ground.other):
                    arriving = new if fall.operation >= self._first else earlier
                    arriving.setdefault(ground.other, []).append(ReachedEntity(start, stop, fall, root))
        self._spread(new)
        for root, ground, counted in direct:
            self._lost += self._lost_directly(root, ground, counted)
        return earlier

    def _standing_over(
        self, ground: Ground, entity: int, periods: list[Period], looked_before: int = OPEN
    ) -> list[Period]:
        """Return the parts of periods in which an entity rests on a foundation and may be reached, and its last look is before an operation."""
        since, until = ground.start, ground.stop
        over = [
            (max(start, since), min(stop, until))
            for start, stop, looked in (
                self._facts.spans(entity) if looked_before == OPEN else self._facts.upright(entity)
            )
            if start < until and since < stop and looked < looked_before
        ]
        return over if periods == _ALWAYS else _common(over, periods)

    def _counted(
        self, asked: dict[int, tuple[list[Period], list[Ground]]]
    ) -> Iterable[tuple[int, Ground, list[tuple[Instant, Instant, Fall]]]]:
        """Yield for each link the falls of its foundation over the requested periods, as far as they count for the link."""
        facts = self._facts
        for root, parts in facts.falls(asked).items():
            grounds = asked[root][1]
            if any(fall.word == "revised" for part in parts for fall in part.falls):
                facts.load_recorded(grounds)
            for ground in grounds:
                yield root, ground, [one for part in parts for one in facts.counted(part, root, ground)]

    def _lost_directly(
        self, root: int, ground: Ground, counted: list[tuple[Instant, Instant, Fall]]
    ) -> list[_Lost]:
        """Return what the dependant of a changed entity may have lost by the change, by one link."""
        entity = ground.other
        reached = self._reaching(entity)
        if reached is None:
            if (may_shake_less := self._shaking_less.get(root)) is None:
                may_shake_less = self._shaking_less[root] = self._may_shake_less(root)
            return self._find_wholly(entity) if may_shake_less else []
        earlier = [one for one in reached if one.root == root and one.fall.operation < self._first]
        if not earlier:
            return []
        periods = _common([ground[1:3]], self._changed.periods(root))
        lost = [
            ReachedEntity(start, stop, one.fall, root)
            for one in earlier
            for part in _common([one[:2]], periods)
            for start, stop in without_all(part, [fall[:2] for fall in counted if fall[2] == one.fall])
        ]
        return self._lose_some(entity, lost)

    def _may_shake_less(self, entity: int) -> bool:
        """Return False if the transaction only closed or redescribed parts of an entity's time, which never makes a dependant less shaky."""
        facts, first = self._facts, self._first
        if self._changed.is_new(entity):
            return facts.has_dependants_before(entity, first)
        closed = self._changed.closed.get(entity, ())
        opened = [(row.start, row.stop) for row in self._changed.opened.get(entity, ())]
        lost = coalesce((row.start, row.stop) for row in closed)
        return not (
            facts.resting is RESTS  # of custom kinds a newer fall may count less than an older one
            and not any(without_all(period, lost) for period in opened)
            and all(facts.verb(row.closed_by or 0) in _ADDING for row in closed)
            and entity not in self._changed.removed
            and not facts.ever_superseded[entity]
            and facts.forgotten(entity) is None
        )

    # ------------------------------------------------------------------ losses of dependants

    def _lose(self) -> None:
        """Remove falls that entities lost from their dependants, where these may have come from there."""
        facts, lost = self._facts, self._lost
        while lost:
            facts.load_below({entity for entity, *_ in lost})
            further: list[_Lost] = []
            for entity, start, stop, cause in lost:
                for ground in facts.dependants(entity):
                    both = overlap((start, stop), ground[1:3])
                    if both and "shaky" in facts.resting[ground.kind]:
                        further += self._lost_by(ground.other, both, cause)
            lost = further

    def _lost_by(self, entity: int, period: Period, cause: Cause | None) -> list[_Lost]:
        """Return what an entity loses where one of its foundations loses a fall (None: any) over a period."""
        reached = self._reaching(entity)
        if reached is None:
            is_shaky = any(overlap(period, part) for part in self._facts.shaky[entity])
            return self._find_wholly(entity) if is_shaky else []
        lost = [
            one._replace(start=both[0], stop=both[1])
            for one in reached
            if (one[2:] == cause or cause is None)
            and one.fall.operation < self._first
            and (both := overlap(one[:2], period))
        ]
        return self._lose_some(entity, lost)

    # ------------------------------------------------------------------ falls that reach entities through their foundations

    def _find_below(self, level: set[int]) -> set[int]:
        """Mark all falls of some entities to be computed, and those of their shaky dependants that are not known. Return all these entities."""
        facts, found = self._facts, set(level)
        while level:
            for entity in level:
                self._find_wholly(entity)
            facts.load_below(level)
            level = {
                ground.other
                for entity in level
                for ground in facts.dependants(entity)
                if "shaky" in facts.resting[ground.kind] and self._reaching(ground.other) is None
            }
            found |= level
        return found

    def _gather(self, level: set[int], arriving: Arriving) -> None:
        """Add to `arriving` what may reach entities through their foundations, over the time that is computed again."""
        facts = self._facts
        asked: dict[int, tuple[list[Period], list[Ground]]] = {}
        while level:
            facts.load_upright(level)
            # only falls of this transaction may reach the others
            resting = [
                one for one in level if any(looked < self._first for _, _, looked in facts.upright(one))
            ]
            facts.load_above(resting)
            unknown: list[tuple[int, Ground]] = []
            for entity in resting:
                windows = self._windows.get(entity, _NOTHING)
                for ground in facts.grounds[entity]:
                    is_new = ground.link in self._touched.new_links
                    over = self._standing_over(ground, entity, _ALWAYS if is_new else windows, self._first)
                    if not over:
                        continue
                    base = ground.other
                    if entity in facts.replacers(base):
                        ground = ground._replace(never_so=1)
                    if facts.may_have_fallen[base]:
                        periods, grounds = asked.setdefault(base, ([], []))
                        periods += over
                        grounds.append(ground._replace(other=entity))
                    if facts.shaky[base] or base in self._reached:
                        self._inherit(entity, ground, over, arriving, unknown)
            leaves = self._leaves({entity for entity, _ in unknown})
            level = set()
            for entity, ground in unknown:
                base = ground.other
                if entity in leaves and not ground.never_so:
                    self._take_over(entity, ground)
                elif base not in self._reached:
                    self._find_wholly(base)
                    level.add(base)
        self._gather_falls(asked, arriving)

    def _inherit(
        self,
        entity: int,
        ground: Ground,
        over: list[Period],
        arriving: Arriving,
        unknown: list[tuple[int, Ground]],
    ) -> None:
        """Add to `arriving` the known falls of a foundation over some periods. If they are not known, add the link to `unknown`."""
        base = ground.other
        if "shaky" not in self._facts.resting[ground.kind]:
            return
        reached = self._reaching(base)
        if reached is None:
            unknown.append((entity, ground))
            return
        looked = self._looked_first(entity)
        for one in reached:
            if one.fall.operation > looked and (not ground.never_so or one.fall.word in NEVER_SO):
                for period in over:
                    if both := overlap(one[:2], period):
                        arriving.setdefault(entity, []).append(ReachedEntity(*both, one.fall, one.root))

    def _gather_falls(self, asked: dict[int, tuple[list[Period], list[Ground]]], arriving: Arriving) -> None:
        """Add to `arriving` the falls of foundations themselves, over the time that is computed again."""
        facts = self._facts
        facts.load_fallen(asked)
        wanted = {base: (coalesce(periods), grounds) for base, (periods, grounds) in asked.items()}
        for root, ground, counted in self._counted(wanted):
            entity = ground.other
            looked = self._looked_first(entity)
            for start, stop, fall in counted:
                if fall.operation > looked:
                    arriving.setdefault(entity, []).append(ReachedEntity(start, stop, fall, root))

    def _leaves(self, entities: Collection[int]) -> set[int]:
        """Return the nodes that were never rechecked, on which nothing rests, and which replace nothing."""
        facts = self._facts
        facts.replaced.load(entities)
        plain = [
            entity
            for entity in entities
            if all(looked == -1 for _, _, looked in facts.upright(entity))
            and not facts.entity(entity).is_event
            and not facts.replaced[entity]
            and entity not in facts.covered
        ]
        facts.load_dependants(plain)
        return {entity for entity in plain if not facts.dependants(entity)}

    def _take_over(self, entity: int, ground: Ground) -> None:
        """Mark a leaf (see `_leaves`) as shaky where its foundation is, without computing single falls."""
        arrived = _common(self._facts.shaky[ground.other], [ground[1:3]])
        standing = [part[:2] for part in self._facts.upright(entity)]
        self._taken_over.setdefault(entity, []).extend(_common(arrived, _fewest(standing)))
        self._reached[entity] = self._reaching(entity) or []

    def _looked_first(self, entity: int) -> int:
        """Return the oldest of the last looks at the parts of an entity. No earlier fall reaches it."""
        return min((looked for _, _, looked in self._facts.upright(entity)), default=OPEN)

    # ------------------------------------------------------------------ spreading

    def _spread(self, level: Arriving) -> set[int]:
        """Spread falls to dependants, level by level. Return the entities that earlier falls reach and whose own falls are not known."""
        facts, unknown = self._facts, set[int]()
        while level:
            facts.load_below(level)
            covered = self._may_be_covered(level)
            facts.load_upright(covered)
            further: Arriving = {}
            for entity, arrived in level.items():
                if (
                    entity in covered
                    and self._reaching(entity) is None
                    and any(one.fall.operation < self._first for one in arrived)
                ):
                    unknown.add(entity)
                    arrived = [one for one in arrived if one.fall.operation >= self._first]
                passing = self._passing(entity, arrived, entity in covered)
                for other, since, until, _, kind, never_so in facts.dependants(entity) if passing else ():
                    if "shaky" in facts.resting[kind]:
                        passed = [
                            ReachedEntity(max(start, since), min(stop, until), fall, root)
                            for start, stop, fall, root in passing
                            if start < until and since < stop and (not never_so or fall.word in NEVER_SO)
                        ]
                        if passed:
                            further.setdefault(other, []).extend(passed)
            level = further
        return unknown

    def _may_be_covered(self, level: Arriving) -> set[int]:
        """Return the entities that may have been rechecked after a fall that arrives. After falls of this transaction only its own looks come."""
        touched, first = self._touched, self._first
        return {
            entity
            for entity, arrived in level.items()
            if min(map(_OPERATION, arrived)) < first or entity in touched.fallen or entity in touched.itself
        }

    def _passing(self, entity: int, arrived: list[ReachedEntity], is_covered: bool) -> list[ReachedEntity]:
        """Return the parts of arriving falls that newly reach an entity: it may be reached there, was not rechecked since, and no later fall hides them.

        `is_covered`: it may have been rechecked since.
        """
        stopped = self._known.stopped
        upright = self._facts.upright(entity) if is_covered else self._facts.spans(entity)
        reached = self._reaching(entity)
        kept = self._gained if reached is None else self._reached
        reached = self._gained.get(entity, []) if reached is None else reached
        found: list[ReachedEntity] = []
        for since, until, fall, root in sorted(arrived, key=_CAUSE, reverse=True):
            parts = [
                (max(start, since), min(stop, until))
                for start, stop, looked in upright
                if looked < fall.operation and start < until and since < stop
            ]
            if not parts:
                continue
            cause, is_never_so = (fall, root), fall.word in NEVER_SO
            if is_covered and entity in self._facts.covered:
                parts = self._without_covered(parts, cause, entity)
            holes = [
                one[:2]
                for one in reached
                if one.start < until
                and since < one.stop
                and one[2:] >= cause
                and (
                    one[2:] == cause
                    or (one[2:] not in stopped and (not is_never_so or one.fall.word in NEVER_SO))
                )
            ]
            parts = _without(_fewest(parts), holes) if holes else _fewest(parts)
            if not parts:
                continue
            if self._stops(cause, entity):
                continue
            if reached and cause not in stopped:
                begun, ended = parts[0][0], parts[-1][1]
                reached = [
                    part
                    for one in reached
                    for part in (
                        (one,)
                        if one.stop <= begun
                        or ended <= one.start
                        or one[2:] > cause
                        or (one.fall.word in NEVER_SO and not is_never_so)
                        else _outside(one, parts)
                    )
                ]
            new = [ReachedEntity(start, stop, fall, root) for start, stop in parts]
            reached = reached + new
            found += new
        if found:
            kept[entity] = reached
        return found

    def _stops(self, cause: Cause, entity: int) -> bool:
        """Return True if a fall stops at an entity. Raises _StopFoundError if it was not known to stop anywhere."""
        fall, root = cause
        is_stop = self._facts.is_exempt(entity, fall, root) or (
            fall.word == "ended" and bool(self._facts.entity(entity).is_event)
        )
        if is_stop:
            self._note_stop(cause)
        return is_stop

    def _note_stop(self, cause: Cause) -> None:
        """Record that a fall stops somewhere. Raises _StopFoundError if that was not known."""
        if cause not in self._known.stopped:
            self._known.stopped.add(cause)
            if cause[0].operation < self._first:
                self._shown.add(cause)
            raise _StopFoundError

    def _without_covered(self, parts: list[Period], cause: Cause, entity: int) -> list[Period]:
        """Return the parts of periods in which no look of a merge covers a fall. Raises _StopFoundError if that is the first stop of the fall."""
        left = [part for one in parts for part in without_all(one, self._covering(entity, cause[0]))]
        if left != parts:
            self._note_stop(cause)
        return left


def _difference(reached: list[ReachedEntity], kept: list[ReachedEntity]) -> list[ReachedEntity]:
    """Return the parts of falls that are not kept."""
    return [
        part
        for one in reached
        for part in _outside(one, [other[:2] for other in kept if other[2:] == one[2:]])
    ]


def _outside(one: ReachedEntity, holes: Iterable[Period]) -> list[ReachedEntity]:
    """Return the parts of a fall outside of all holes."""
    return [ReachedEntity(*part, one.fall, one.root) for part in without_all(one[:2], holes)]


def _fewest(periods: list[Period]) -> list[Period]:
    return periods if len(periods) < 2 else coalesce(periods)


def _common(first: list[Period], second: list[Period]) -> list[Period]:
    """Return the time that both have, as the fewest periods."""
    if first == second:
        return second
    return _fewest(
        [
            (start if start > since else since, stop if stop < until else until)
            for start, stop in first
            for since, until in second
            if start < until and since < stop
        ]
    )


def _without(periods: list[Period], holes: list[Period]) -> list[Period]:
    """Return the parts of periods outside of all holes."""
    if periods == holes:
        return _NOTHING
    return without_periods(periods, _fewest(holes))
