"""Finds what is shaky now, of all that a transaction may have changed: follows falls from what was invalidated to its dependants.

An entity is shaky at an instant if any fall reaches it there. So falls are followed one by one, and what they reach is added up. That is done for two reasons:

1. Falls may reach further than before: those of the transaction itself, and those that reach a touched entity. They are followed to wherever they lead (they are
   free), and what they reach is added to the open rows.
2. Where a shaky entity may have lost a fall, so may its shaky dependants. What reaches all these over that time is worked out again, from nothing: of what they
   rest on, that which is shaky is worked out too, and what that rests on. These falls are followed within what is worked out, and nowhere else. Where nobody has
   looked at anything that may lose a fall, its shaky foundations need no working out: whatever shakes them shakes it.

The latest fall comes first. It hides earlier ones: what rests on the entity is reached by the later fall too, unless it was rechecked since both. Only a fall that
stopped at some entity hides nothing that would go on from there (an ended foundation does not shake an event; a replacement does not rest on what it replaced).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphstore.ledger.changed_parts import ChangedParts
from graphstore.ledger.standing_facts import Facts, Fall, Fetch, Ground
from graphstore.values.period import ALWAYS, Instant, Period, coalesce, without, without_all

_NEVER: Period = (0, 0)
_NOTHING: list[tuple[int, Instant, Instant]] = []
_FEW = 8
Part = TypeVar("Part", bound=tuple[Any, ...])
Cause = tuple[Fall, int]
"""A fall, and the entity that fell."""
_ANY: Cause = Fall(0, "shaky"), -1
"""In place of a fall: any that reaches a foundation."""
Arrived = tuple[int, Instant, Instant, bool]
"""The entity to which a fall leads over a period, and whether it is free."""
Reached = tuple[Instant, Instant, bool, set[int]]
"""A period over which a fall reaches an entity, whether it is free, and where that fall stops."""
Asked = dict[int, tuple[list[Period], list[Ground]]]
"""Of foundations, the periods over which it is asked how they have fallen, and the links for which it may count."""
Leaning = tuple[Ground, Instant, Instant]
"""What an entity rests on by a link, and a part of the time over which it does."""


@dataclass(slots=True)
class Touched:
    """Lists what a transaction changed."""

    fallen: set[int] = field(default_factory=set)  # entities whose periods, content or existence changed
    itself: set[int] = field(default_factory=set)  # those of which a link or the last recheck changed
    resting: set[int] = field(default_factory=set)  # those that rest on something by a new link
    new_links: set[int] = field(default_factory=set)


class Spreading:
    """Finds what is shaky now, of all that a transaction may have changed.

    Args:
        first: the number of the first operation of the transaction; the others follow it.
        before: fetches the rows as they were before the transaction. None where the open rows do not say how things stood then.
    """

    def __init__(
        self, facts: Facts, touched: Touched, first: int, changed: ChangedParts, before: Fetch | None
    ) -> None:
        self._facts, self._first, self._changed, self._touched = facts, first, changed, touched
        self._before = before
        self._linked = facts.linked(touched.fallen | touched.itself | touched.resting)
        self._lost: dict[int, Period] = {}  # over which periods entities may lose falls in the first place
        self._losing: dict[int, Period] = {}  # shaky entities, and a period outside which they lose nothing
        self._windows: dict[int, Period] = {}  # over which periods it is worked out what reaches entities
        self._arriving: dict[Cause, list[Arrived]] = {}
        self._reached: dict[int, list[Reached]] = {}
        self._leaning: dict[int, list[Leaning]] = {}  # what these rest on, if it fell or is shaky
        self._within: dict[int, list[tuple[int, Instant, Instant]]] = {}  # by whom they are shaken

    def result(self) -> dict[int, list[Period]]:
        """Return the shaky periods of each entity of which these have changed."""
        if not self._linked:
            return {}
        self._begin()
        self._fall()
        self._lose()
        self._look_up()
        self._gather()
        for cause in sorted(self._arriving, key=lambda cause: cause[0].operation, reverse=True):
            self._follow(cause, self._arriving[cause])
        return self._changed_rows()

    def _changed_rows(self) -> dict[int, list[Period]]:
        result, shaky = {}, self._facts.shaky
        shaky.load(self._reached)
        for entity in self._losing.keys() | self._reached.keys():
            kept = before = shaky[entity]
            if before and (lost := self._losing.get(entity)):
                kept = []
                if before[0][0] < lost[0] or lost[1] < before[-1][1]:
                    kept = [part for period in before for part in without(period, lost)]
            periods = [one[:2] for one in self._reached.get(entity, ())]
            if kept or len(periods) > 1:
                periods = coalesce(kept + periods)
            if periods != before:
                result[entity] = periods
        return result

    # ------------------------------------------------------------------ what the transaction changed itself

    def _begin(self) -> None:
        """Note over which time the touched entities may lose falls, and over which time earlier falls may reach them."""
        facts = self._facts
        facts.shaky.load(self._linked)
        facts.load_upright(self._linked)
        for entity in self._linked:
            period = _NEVER
            if entity in self._touched.itself:
                period = ALWAYS
            elif entity in self._touched.fallen and (periods := self._changed.periods(entity)):
                period = periods[0][0], periods[-1][1]
            if facts.shaky[entity]:
                self._lost[entity] = period
            if entity in self._touched.resting or self._open_to_earlier(entity, *period):
                self._windows[entity] = period

    def _fall(self) -> None:
        """Let the falls of what was touched arrive at its dependants, and note which of these lose a fall."""
        facts, shaky = self._facts, self._facts.shaky
        roots = self._touched.fallen & self._linked
        facts.load_dependants(roots)
        shaky.load(ground.other for root in roots for ground in facts.dependants(root))
        asked: Asked = {}
        shaken: Asked = {}
        for root in roots:
            grounds = facts.dependants(root)
            spans = list({(ground.start, ground.stop) for ground in grounds})
            if over := _common(spans, self._changed.periods(root)):
                asked[root] = over, grounds
                if resting := [ground for ground in grounds if shaky[ground.other]]:
                    shaken[root] = over, resting
        counting: dict[int, list[tuple[Instant, Instant, Fall]]] = {}
        for root, ground, start, stop, fall in _falls(facts, asked):
            self._arriving.setdefault((fall, root), []).append((ground.other, start, stop, True))
            if shaken and shaky[ground.other]:
                counting.setdefault(ground.link, []).append((start, stop, fall))
        if shaken:
            self._lose_directly(shaken, counting)

    def _lose_directly(self, shaken: Asked, counting: dict[int, list[tuple[Instant, Instant, Fall]]]) -> None:
        """Note where shaky dependants lose falls of what was touched: those that counted for a link before the transaction, where none counts now that reaches as far.

        Args:
            shaken: what was touched, and its links to shaky dependants.
            counting: the falls that count for these links now.
        """
        facts = self._facts
        if self._before is None:
            for periods, grounds in shaken.values():
                for ground in grounds:
                    for part in _common([(ground.start, ground.stop)], periods):
                        _widen(self._lost, ground.other, *part)
            return
        facts.load_upright({ground.other for _, grounds in shaken.values() for ground in grounds})
        for _, ground, start, stop, fall in _falls(Facts(self._before), shaken):
            holes = [
                (since, until)
                for since, until, other in counting.get(ground.link, ())
                if other.operation >= fall.operation and (other.word != "ended" or fall.word == "ended")
            ]
            for begun, ended in without_all((start, stop), holes):
                if ground.other in self._linked or any(
                    since < ended and begun < until and looked < fall.operation
                    for since, until, looked in _overlapping(facts.upright(ground.other), begun, ended)
                ):
                    _widen(self._lost, ground.other, begun, ended)

    # ------------------------------------------------------------------ what is worked out from nothing

    def _lose(self) -> None:
        """Let the shaky dependants of shaky entities that may lose a fall lose it too."""
        facts, losing, later = self._facts, self._losing, self._lost
        shaky, passing = facts.shaky, facts.passing
        while later:
            shaky.load(later)
            facts.load_passing([one for one, period in later.items() if _touches(shaky[one], *period)], shaky)
            queue, later = list(later.items()), {}
            for entity, (begun, ended) in queue:  # it grows
                if not _touches(shaky[entity], begun, ended) or not _widen(losing, entity, begun, ended):
                    continue
                begun, ended = losing[entity]
                for other, first, last in passing[entity]:
                    start = begun if begun > first else first
                    stop = ended if ended < last else last
                    known = losing.get(other, _NEVER)
                    if start >= stop or (known[0] <= start and stop <= known[1]):
                        continue
                    if other in shaky and other in passing:
                        queue.append((other, (start, stop)))
                    else:
                        _widen(later, other, start, stop)
        for entity, period in losing.items():
            if entity not in self._linked or self._open_to_earlier(entity, *period):
                _widen(self._windows, entity, *period)

    def _look_up(self) -> None:
        """Work out what reaches the shaky foundations of what is worked out, too."""
        facts, windows, pending = self._facts, self._windows, set(self._windows)
        while pending:
            facts.load_above(pending)
            unknown = self._unknown(pending)
            pending = set()
            entities = {entity for entity, *_ in unknown}
            passing = self._taking_over(entities) if entities else entities
            for entity, base, begun, ended in unknown:
                if (base,) in facts.replaced[entity]:
                    continue
                for start, stop in self._open_to_earlier(entity, begun, ended):
                    if entity in passing:
                        kept = without_all((start, stop), [self._losing.get(base, _NEVER)])
                        for part in _common(facts.shaky[base], kept):
                            self._arriving.setdefault(_ANY, []).append((entity, *part, False))
                    elif _widen(windows, base, start, stop):
                        pending.add(base)

    def _unknown(self, entities: Collection[int]) -> list[tuple[int, int, Instant, Instant]]:
        """Note what entities rest on over the time for which that is worked out. Return them with shaky foundations over the time for which that is not."""
        facts, windows, new_links = self._facts, self._windows, self._touched.new_links
        shaky, may_have_fallen, unknown = facts.shaky, facts.may_have_fallen, []
        for entity in entities:
            begun, ended = windows[entity]
            self._leaning[entity] = leaning = []
            for ground in facts.grounds[entity]:
                base, start, stop, link, kind = ground
                rows = shaky[base]
                if not rows and not may_have_fallen[base]:
                    continue
                if link not in new_links:
                    start = begun if begun > start else start
                    stop = ended if ended < stop else stop
                if start >= stop:
                    continue
                leaning.append((ground, start, stop))
                if rows and "shaky" in facts.resting[kind] and _touches(rows, start, stop):
                    start, stop = max(start, rows[0][0]), min(stop, rows[-1][1])
                    known = windows.get(base, _NEVER)
                    if start < known[0] or known[1] < stop:
                        unknown.append((entity, base, start, stop))
        return unknown

    def _open_to_earlier(self, entity: int, begun: Instant, ended: Instant) -> list[Period]:
        """Return where, within a period, an entity stands and nobody looked at it in this transaction, so that earlier falls may reach it."""
        return [
            (max(start, begun), min(stop, ended))
            for start, stop, looked in _overlapping(self._facts.upright(entity), begun, ended)
            if looked < self._first and start < ended and begun < stop
        ]

    def _taking_over(self, entities: set[int]) -> set[int]:
        """Return those of some entities that every fall reaches that reaches a foundation. It need not be known which fall that is: what they shake, as far as
        that is worked out, it reaches too."""
        facts, losing = self._facts, self._losing.keys() - self._linked
        plain = self._plain(entities)
        facts.load_passing(plain)
        leaves = {entity for entity in plain if not facts.passing[entity]}
        # else something is worked out whose foundations have to be known, or goes on to what is not worked out
        is_closed = entities - leaves <= losing and self._linked.isdisjoint(
            self._losing.keys() & self._windows.keys()
        )
        return entities if is_closed and losing == self._plain(losing) else leaves

    def _plain(self, entities: set[int]) -> set[int]:
        """Return the nodes at which nobody has ever looked, and which replace nothing: no fall stops there."""
        facts = self._facts
        facts.replaced.load(entities)
        facts.load_upright(entities)
        return {
            entity
            for entity in entities
            if all(looked == -1 for _, _, looked in facts.upright(entity))
            and not facts.is_event(entity)
            and not facts.replaced[entity]
        }

    def _gather(self) -> None:
        """Let the falls of all foundations of what is worked out arrive, and note what shakes what there."""
        facts, within, may_have_fallen = self._facts, self._within, self._facts.may_have_fallen
        facts.replaced.load([entity for entity, leaning in self._leaning.items() if leaning])
        found = []
        for entity, leaning in self._leaning.items():
            replaced = facts.replaced[entity]
            for ground, start, stop in leaning:
                base = ground.other
                if replaced and (base,) in replaced:
                    continue
                if base in self._windows and "shaky" in facts.resting[ground.kind]:
                    within.setdefault(base, []).append((entity, ground.start, ground.stop))
                if may_have_fallen[base]:
                    found.append((entity, ground, start, stop))
        facts.load_upright({entity for entity, *_ in found})
        asked: Asked = {}
        for entity, ground, begun, ended in found:
            if over := self._open_to_earlier(entity, begun, ended):
                periods, grounds = asked.setdefault(ground.other, ([], []))
                periods += over
                grounds.append(ground._replace(other=entity))
        for root, ground, start, stop, fall in _falls(
            facts, {base: (coalesce(periods), grounds) for base, (periods, grounds) in asked.items()}
        ):
            is_free = root in self._touched.fallen or ground.other in self._linked
            self._arriving.setdefault((fall, root), []).append((ground.other, start, stop, is_free))

    # ------------------------------------------------------------------ following a fall

    def _follow(self, cause: Cause, later: Collection[Arrived]) -> None:
        """Follow a fall from where it arrives to all that it reaches."""
        facts, reached, within, operation = self._facts, self._reached, self._within, cause[0].operation
        uprights, passing, stops = facts.uprights, facts.passing, set[int]()
        may_stop = bool(facts.replacers(cause[1])) or cause[0].word == "ended"
        while later:
            facts.load_passing({one[0] for one in later if one[3]}, upright=True)
            if not all(one[3] for one in later):
                facts.load_upright(self._windows)
            queue, later = list(later), set[Arrived]()
            for arrived in queue:  # it grows
                entity, begun, ended, is_free = arrived
                onward = passing.get(entity) if is_free else within.get(entity, _NOTHING)
                upright = uprights.get(entity)
                if onward is None or upright is None:
                    later.add(arrived)
                    continue
                for since, until, looked in _overlapping(upright, begun, ended):
                    start = since if since > begun else begun
                    stop = until if until < ended else ended
                    if start >= stop or looked >= operation:
                        continue
                    if may_stop and self._stops(cause, entity):
                        stops.add(entity)
                        break
                    if entity not in reached:
                        reached[entity], parts = [], [(start, stop)]
                    else:
                        parts = self._not_hidden(cause, entity, start, stop, is_free)
                    for start, stop in parts:
                        reached[entity].append((start, stop, is_free, stops))
                        self._pass_on(queue, onward, start, stop, is_free)

    def _pass_on(
        self,
        queue: list[Arrived],
        onward: list[tuple[int, Instant, Instant]],
        start: Instant,
        stop: Instant,
        is_free: bool,
    ) -> None:
        """Add where a fall leads from where it reaches an entity over a period."""
        for other, first, last in onward:
            if first < stop and start < last:
                first = start if start > first else first
                last = stop if stop < last else last
                queue.append((other, first, last, is_free or other in self._linked))

    def _not_hidden(
        self, cause: Cause, entity: int, start: Instant, stop: Instant, is_free: bool
    ) -> list[Period]:
        """Return the parts of a period over which no later fall reaches an entity that goes wherever this one would go from there."""
        holes = []
        for begun, ended, was_free, stops in self._reached[entity]:
            is_overlapping = begun < stop and start < ended and (was_free or not is_free)
            if is_overlapping and all(self._stops(cause, other) for other in stops):
                if begun <= start and stop <= ended:
                    return []
                holes.append((begun, ended))
        return without_all((start, stop), holes)

    def _stops(self, cause: Cause, entity: int) -> bool:
        """Return True if a fall does not reach an entity, whenever anybody looked at that."""
        fall, root = cause
        return entity in self._facts.replacers(root) or (
            fall.word == "ended" and self._facts.is_event(entity)
        )


def _falls(facts: Facts, asked: Asked) -> Iterator[tuple[int, Ground, Instant, Instant, Fall]]:
    """Yield how foundations have fallen, as far as it counts for links to them: the foundation, the link, start, stop, fall."""
    facts.load_fallen(asked)
    for root, parts in facts.falls(asked).items():
        grounds = asked[root][1]
        if any(fall.word == "revised" for part in parts for fall in part.falls):
            facts.load_recorded(grounds)
        for part in parts:
            for ground, start, stop, fall in facts.counted(part, root, grounds):
                yield root, ground, start, stop, fall


def _widen(periods: dict[int, Period], entity: int, start: Instant, stop: Instant) -> bool:
    """Let the period of an entity cover another one. Returns False if it does so already."""
    known = periods.get(entity, _NEVER)
    if known == _NEVER:
        periods[entity] = start, stop
        return start < stop
    if known[0] <= start and stop <= known[1]:
        return False
    periods[entity] = min(known[0], start), max(known[1], stop)
    return True


def _overlapping(parts: list[Part], start: Instant, stop: Instant) -> list[Part]:
    """Return those of parts, which are in order and do not overlap each other, that overlap a period; of few parts, all."""
    if len(parts) < _FEW:
        return parts
    first = bisect_right(parts, start, key=lambda part: part[1])
    return parts[first : bisect_left(parts, stop, key=lambda part: part[0])]


def _touches(parts: list[Period], start: Instant, stop: Instant) -> bool:
    """Return True if any of parts, which are in order and do not overlap each other, overlaps a period."""
    if len(parts) == 1:
        return parts[0][0] < stop and start < parts[0][1]
    return any(since < stop and start < until for since, until in _overlapping(parts, start, stop))


def _common(first: list[Period], second: list[Period]) -> list[Period]:
    """Return the instants that both have, as the fewest periods."""
    return coalesce(
        (max(start, since), min(stop, until))
        for start, stop in first
        for since, until in second
        if start < until and since < stop
    )
