"""More than one hop: walks around things, and paths that respect time, over the rows of a ledger.

A link is walked from its source to its target (`out`), the other way (`in`), or either way (`both`). An inverse name walks it the other way round, a
symmetric kind is walked from both ends. Links are shown as they are stored, whichever way they were walked.

A path respects time when the `valid_from` of its links never goes back. So where a link leads does not depend on how its source was
reached, and each link has to be walked once only, the first time it may be: that keeps the search linear in the links. A path either way
may go against time as well, or be a chain of causes: each of these orders is a search of its own, over instants that are turned round or all alike.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush, merge
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger.statements import Statement
from graphstore.read.described import chain_of
from graphstore.read.ids import resolve
from graphstore.read.linked import LINKS_OVER
from graphstore.read.points import Point, as_json
from graphstore.values.findings import Chain
from graphstore.values.inputs import at_least_one
from graphstore.values.period import OPEN, Instant, exactly

Direction: TypeAlias = Literal["out", "in", "both"]
By: TypeAlias = Literal["hops", "arrival"]
Kinds: TypeAlias = Iterable[str] | str
Trail: TypeAlias = list["Pass"]
Pass: TypeAlias = tuple[
    Instant, str, int, int
]  # a link on the way: when it begins to hold (as its `LinksOnward` count time), its id; its row, and the thing it leads to

DIRECTIONS = ("out", "in", "both")
BESTS = ("hops", "arrival")
_BACK: dict[str, Direction] = {"out": "in", "in": "out", "both": "both"}
_ONE_WAY: tuple[Direction, ...] = ("out", "in")


class LinkOnward(NamedTuple):
    """A link that leads on from a thing: the numbers of both, and of its period."""

    near: int
    far: int
    far_id: str
    id: str
    period: int
    valid_from: Instant
    recorded_at: Instant


WAYS = Statement("ways", LinkOnward)


class WalkGround:
    """The things and links of a ledger at a coordinate, by their numbers in the tables."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self.valid, self.tx, self.vocabulary = point.valid, point.tx, point.vocabulary
        self._ids: dict[int, str] = {}
        self._orders: dict[int, tuple[Instant, Instant, str]] = {}
        # the links that lead on from a thing, in no order, as far as they were fetched
        self.onward: dict[tuple[int, frozenset[str], frozenset[str]], list[Pass]] = {}

    def number(self, id: str) -> int:
        """Return the number of the thing that an id names."""
        entity, _ = resolve(self._point, id)
        self._ids[entity.thing] = entity.id
        return entity.thing

    def id(self, thing: int) -> str:
        """Return the id of a thing that was reached or named."""
        return self._ids[thing]

    def fetch(self, things: Iterable[int], ahead: frozenset[str], back: frozenset[str]) -> None:
        """Read by one statement the links that hold with some things as their source, of the kinds `ahead`, or as their target, of the kinds `back`."""
        wanted = [thing for thing in things if (thing, ahead, back) not in self.onward]
        if not wanted:
            return
        self.onward.update({(thing, ahead, back): [] for thing in wanted})
        kinds = {"ahead": as_json(list(ahead)), "back": as_json(list(back))}
        for way in self._point.rows(WAYS, numbers=as_json(wanted), **kinds):
            self._ids[way.far] = way.far_id
            self._orders[way.period] = way.valid_from, way.recorded_at, way.id
            self.onward[way.near, ahead, back].append((way.valid_from, way.id, way.period, way.far))

    def order(self, row: int) -> tuple[Instant, Instant, str]:
        """Return what links are ordered by: when they begin to hold, when they were recorded, id."""
        return self._orders[row]

    def chain(self, root: int, reached: Iterable[int], walked: Iterable[int], truncated: bool) -> Chain:
        """Make the value of a walk."""
        ids = [self._ids[root], *(self._ids[thing] for thing in reached)]
        rows = self._point.rows(LINKS_OVER, periods=as_json(list(walked)))
        chain = chain_of(self._point, ids, rows, truncated)
        assert chain is not None
        return chain


def walk(
    point: Point, ids: Iterable[str] | str, kinds: Kinds = (), hops: int = 2, direction: Direction = "both"
) -> Chain:
    """Return what lies at most `hops` links away from any of the ids, the nearest first, the first id as root.

    Raises NotFoundError for an unknown id, InvalidError for an unknown kind or direction.
    """
    at_least_one("hops", hops)
    ground = WalkGround(point)
    roots = list(dict.fromkeys(map(ground.number, _ids(ids))))
    if not roots:
        raise InvalidError("a walk wants a thing to start from. Give an id, or a list of ids.")
    ways = LinksOnward(ground, kinds, direction)
    seen, frontier = set(roots), roots
    reached = roots[1:]
    walked: dict[int, None] = {}
    while frontier and hops:
        hops -= 1
        level = []
        ways.fetch(frontier)
        for thing in frontier:
            for _, _, row, far in sorted(ways.onward(thing), key=lambda each: ground.order(each[2])):
                walked[row] = None
                if far not in seen:
                    seen.add(far)
                    level.append(far)
        reached += level
        frontier = level
    ways.fetch(frontier)
    beyond = any(far not in seen for thing in frontier for _, _, _, far in ways.onward(thing))
    return ground.chain(roots[0], reached, walked, beyond)


def path(
    point: Point,
    source: str,
    target: str,
    kinds: Kinds = (),
    *,
    by: By = "hops",
    direction: Direction = "out",
    depth: int | None = None,
) -> Chain:
    """Return the path along links whose `valid_from` never goes back that has the fewest hops, or the earliest arrival. Raises NotFoundError when there is none."""
    if by not in BESTS:
        raise InvalidError.choice("way to choose a path (by=)", by, BESTS)
    ground, kinds = WalkGround(point), _kept(kinds)
    most = OPEN if depth is None else at_least_one("depth", depth)
    start, goal = ground.number(source), ground.number(target)
    orders = _orders(ground, kinds, direction)
    if start == goal:
        return ground.chain(start, (), (), False)
    best: Trail | None = None
    for ways in orders:
        search = Search(ways, start, goal)
        trail = search.first(most) if by == "hops" else search.earliest(most)
        if trail is not None:
            best, most = trail, len(trail) - 1
        if best is not None and (by == "arrival" or most == 0):
            break
    if best is None:
        order = "the order of time" if len(orders) == 1 else "the order of time or against it"
        raise NotFoundError(
            f"no path from {ground.id(start)!r} to {ground.id(goal)!r} {_described(kinds, direction, depth)}, in {order}, "
            f"at valid {exactly(ground.valid)} as known at {exactly(ground.tx)}."
        )
    return _along(ground, start, best, False)


def paths(
    point: Point,
    source: str,
    target: str,
    kinds: Kinds = (),
    *,
    direction: Direction = "out",
    limit: int = 100,
    depth: int = 10,
) -> list[Chain]:
    """Return all paths along links whose `valid_from` never goes back that pass no thing twice, by (hops, order, arrival, link ids)."""
    ground, kinds = WalkGround(point), _kept(kinds)
    at_least_one("limit", limit)
    at_least_one("depth", depth)
    start, goal = ground.number(source), ground.number(target)
    orders = _orders(ground, kinds, direction)
    if start == goal:
        return [ground.chain(start, (), (), False)]
    found = merge(*(Paths(ways, ways.back(), start, goal, depth).found() for ways in orders), key=len)
    trails = list(islice(_each_once(found), min(limit, sys.maxsize - 1) + 1))
    cut = len(trails) > limit
    return [_along(ground, start, trail, cut and n == limit) for n, trail in enumerate(trails[:limit], 1)]


def _orders(ground: WalkGround, kinds: Kinds, direction: Direction) -> list[LinksOnward]:
    """Return the orders a path may have: forward in time; either way also back in time, and along causal links from effect to cause or from cause to
    effect, whenever these began to hold."""
    forward = LinksOnward(ground, kinds, direction)
    if direction != "both":
        return [forward]
    known = ground.vocabulary.kinds
    causal = [name for name in sorted(frozenset().union(*_named(ground, kinds))) if known[name].causal]
    chains = [LinksOnward(ground, causal, way, pace=0) for way in _ONE_WAY] if causal else []
    return [forward, LinksOnward(ground, kinds, direction, pace=-1), *chains]


def _each_once(trails: Iterable[Trail]) -> Iterator[Trail]:
    """Yield the trails, each the first time only: one whose links begin together has several orders."""
    seen = set()
    for trail in trails:
        rows = tuple(row for _, _, row, _ in trail)
        if rows not in seen:
            seen.add(rows)
            yield trail


class LinksOnward:
    """Which links lead on from a thing: of some kinds, in one direction.

    `pace`: what their instants are multiplied with. 1: time goes on, -1: it goes back, 0: all begin together.
    """

    def __init__(self, ground: WalkGround, kinds: Kinds, direction: Direction, *, pace: int = 1) -> None:
        """Raises InvalidError for an unknown kind or direction."""
        if direction not in DIRECTIONS:
            raise InvalidError.choice("direction", direction, DIRECTIONS)
        self._ground = ground
        self._pace = pace
        self._named = kinds, direction
        self._in_order: dict[int, list[Pass]] = {}
        straight, turned = _named(ground, kinds)
        even = {name for name in straight if ground.vocabulary.kinds[name].symmetric}
        ahead, back = (straight, turned | even) if direction == "out" else (turned | even, straight)
        if direction == "both":
            ahead = back = straight | turned
        # along which kinds from source to target, and along which the other way
        self._sides = frozenset(ahead), frozenset(back)

    def back(self) -> LinksOnward:
        """Return the same links, walked the other way."""
        kinds, direction = self._named
        return LinksOnward(self._ground, kinds, _BACK[direction], pace=self._pace)

    def fetch(self, things: Iterable[int]) -> None:
        """Read together the links of things from which the search is going on."""
        self._ground.fetch([thing for thing in things if thing not in self._in_order], *self._sides)

    def onward(self, thing: int) -> list[Pass]:
        """Return the links that lead on from a thing, in no order."""
        self._ground.fetch([thing], *self._sides)
        return self._ground.onward[(thing, *self._sides)]

    def in_order(self, thing: int) -> list[Pass]:
        """Return the links that lead on from a thing, by when they begin to hold, then by id. They are read once."""
        found = self._in_order.get(thing)
        if found is None:
            pace = self._pace
            found = self._in_order[thing] = sorted(
                (pace * since, id, row, far) for since, id, row, far in self.onward(thing)
            )
        return found


class Search:
    """Breadth first from one thing along links whose `valid_from` does not go back.

    Steps are numbered as they are found: by hops, then by the ids of the links that lead there. The first step over a link is the best one over
    it, for what can follow a link depends on nothing but the link.
    """

    def __init__(
        self,
        ways: LinksOnward,
        start: int,
        goal: int,
        *,
        since: Instant = -OPEN,
        avoid: Collection[int] = (),
        without: Collection[int] = (),
        to_go: Mapping[int, int] | None = None,
    ) -> None:
        """From `start` on from an instant: through none of the things to avoid, and not first over the link rows in `without`.

        `to_go`: the least number of hops from each thing to the goal; what is too far away is left out.
        """
        self.ways = ways
        self.start, self.goal = start, goal
        self.since = since
        self.avoid = {start, *avoid}
        self.to_go = to_go
        self.steps: list[Pass] = []
        self._before: list[int] = []  # the step that a step follows, -1 for the first
        self._left = {start: [each for each in ways.in_order(start) if each[2] not in without]}

    def first(self, depth: int) -> Trail | None:
        """Return the path to the goal with the fewest hops; of equals, the one with the first ids."""
        for level in self.levels(depth):
            for step in level:
                if self.steps[step][3] == self.goal:
                    return self.trail(step)
        return None

    def first_and_earliest(self, depth: int) -> Trail | None:
        """Return the path to the goal with the fewest hops; of equals, by the earliest arrival and then the first ids."""
        for level in self.levels(depth):
            arrived = [step for step in level if self.steps[step][3] == self.goal]
            if arrived:
                return self.trail(min(arrived, key=self._arrival))
        return None

    def earliest(self, depth: int) -> Trail | None:
        """Return the path to the goal with the earliest arrival; of equals, by the fewest hops and then the first ids."""
        arrived = [step for level in self.levels(depth) for step in level if self.steps[step][3] == self.goal]
        return self.trail(min(arrived, key=self._arrival)) if arrived else None

    def levels(self, depth: int) -> Iterator[range]:
        """Yield the steps with one hop, with two, and so on."""
        level = self._over([(-1, each) for each in self._leaving(self.start, self.since, depth)])
        while level:
            yield level
            depth -= 1
            if depth > 0:
                self.ways.fetch({self.steps[step][3] for step in level} - {self.goal})
            level = self._over([(step, each) for step in level for each in self._after(step, depth)])

    def trail(self, step: int) -> Trail:
        """Return the links from the start up to a step."""
        found = []
        while step >= 0:
            found.append(self.steps[step])
            step = self._before[step]
        return found[::-1]

    def _arrival(self, step: int) -> Instant:
        return self.steps[step][0]

    def _over(self, onward: list[tuple[int, Pass]]) -> range:
        """Number the steps. Those they follow are numbered by the ids of their links: so are these."""
        first = len(self.steps)
        onward.sort(key=lambda each: (each[0], each[1][1]))
        self.steps += [each for _, each in onward]
        self._before += [before for before, _ in onward]
        return range(first, len(self.steps))

    def _after(self, step: int, depth: int) -> list[Pass]:
        since, _, _, far = self.steps[step]
        return [] if far == self.goal else self._leaving(far, since, depth)

    def _leaving(self, ent: int, since: Instant, depth: int) -> list[Pass]:
        """Return the links that lead on from a thing from an instant on, and that no step has walked."""
        if depth < 1:
            return []
        left = self._left.get(ent)
        if left is None:
            left = self._left[ent] = self.ways.in_order(ent).copy()
        at = bisect_left(left, (since,))
        found, left[at:] = left[at:], []
        if self.to_go is not None:
            found = [each for each in found if self.to_go.get(each[3], depth) < depth]
        return [each for each in found if each[3] not in self.avoid]


class Paths:
    """Every time-respecting simple path from one thing to another, few hops first, then early arrivals, then by link ids.

    The best of a set of paths is found by one search. What is left of the set without it falls into smaller sets: those that part from it at its first
    thing, at its second, and so on. So each path costs a few searches, however many there are (Yen 1971, Lawler 1972).
    """

    def __init__(self, ways: LinksOnward, back: LinksOnward, start: int, goal: int, depth: int) -> None:
        self.ways = ways
        self.start, self.goal, self.depth = start, goal, depth
        self.to_go = _hops_to(back, goal, depth)
        # the best path of each set, and what makes the set: how many of its links are common to all, and which do not follow them
        self._sets: list[tuple[int, Instant, list[str], Trail, int, frozenset[int]]] = []

    def found(self) -> Iterator[Trail]:
        """Yield the paths, each as its links."""
        self._add([], frozenset())
        while self._sets:
            _, _, _, trail, common, without = heappop(self._sets)
            for at in range(common, len(trail)):
                self._add(trail[:at], frozenset({trail[at][2]}) | (without if at == common else frozenset()))
            yield trail

    def _add(self, common: Trail, without: frozenset[int]) -> None:
        """The set of the paths that begin in common and then go on over none of these links."""
        since, _, _, at = common[-1] if common else (-OPEN, "", -1, self.start)
        passed = {self.start, *(far for _, _, _, far in common)}
        search = Search(
            self.ways, at, self.goal, since=since, avoid=passed, without=without, to_go=self.to_go
        )
        rest = search.first_and_earliest(self.depth - len(common))
        if rest is not None:
            trail = common + rest
            names = [name for _, name, _, _ in trail]
            heappush(self._sets, (len(trail), trail[-1][0], names, trail, len(common), without))


def _hops_to(back: LinksOnward, goal: int, depth: int) -> dict[int, int]:
    """Return the least number of hops to the goal, of each thing within `depth` hops of it."""
    to_go, frontier = {goal: 0}, [goal]
    for hops in range(1, depth + 1):
        level = []
        back.fetch(frontier)
        for ent in frontier:
            for _, _, _, near in back.in_order(ent):
                if near not in to_go:
                    to_go[near] = hops
                    level.append(near)
        if not level:
            break
        frontier = level
    return to_go


def _along(ground: WalkGround, start: int, trail: Trail, truncated: bool) -> Chain:
    return ground.chain(start, [far for _, _, _, far in trail], [row for _, _, row, _ in trail], truncated)


def _ids(ids: Iterable[str] | str) -> list[str]:
    if not isinstance(ids, (str, Iterable)):
        raise InvalidError(f"{ids!r} is no id. Give an id, or a list of ids.")
    return [ids] if isinstance(ids, str) else list(ids)


def _kept(kinds: Kinds) -> Kinds:
    """Return kinds that can be asked for several times."""
    return tuple(kinds) if isinstance(kinds, Iterable) and not isinstance(kinds, str) else kinds


def _named(ground: WalkGround, kinds: Kinds) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stored kinds that are meant, and those that are meant the other way round. Without names: all that are walked."""
    vocabulary = ground.vocabulary
    straight, turned = vocabulary.named(kinds)
    if straight or turned:
        return straight, turned
    return frozenset(kind.name for kind in vocabulary.kinds.values() if kind.walked), frozenset()


def _described(kinds: Kinds, direction: str, depth: int | None) -> str:
    """Return the links a path was searched along, in words."""
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    way = {"out": "from source to target", "in": "from target to source", "both": "either way"}[direction]
    within = "" if depth is None else f" within {depth} hop{'s' if depth > 1 else ''}"
    return f"along {' and '.join(names) or 'any'} links, {way},{within}".removesuffix(",")
