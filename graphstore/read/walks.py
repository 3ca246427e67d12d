"""Walks over several links: the surroundings of things, and paths that respect time, from the rows of a ledger.

A link is walked from source to target (`out`), from target to source (`in`), or in both directions (`both`). An inverse name reverses the direction; a
symmetric kind is walked from both ends. Links in the answer have their stored direction.

A path respects time if the `valid_from` of its links never decreases. What can follow a link then depends only on that link. So each link is visited once, at
the first opportunity, and a search is linear in the number of links. With `both`, a path may also run against time or be a chain of causes. Each of these
orders is a separate search, for which the instants are negated or all set to 0.
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
]  # a link on a path: its start (as `LinksOnward` counts time), its id, the number of its period, and the thing it leads to

DIRECTIONS = ("out", "in", "both")
BESTS = ("hops", "arrival")
_BACK: dict[str, Direction] = {"out": "in", "in": "out", "both": "both"}
_ONE_WAY: tuple[Direction, ...] = ("out", "in")


class LinkOnward(NamedTuple):
    """A link that leads on from a thing, with the numbers of both ends and of its period."""

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
        # the links that lead on from things, in no order, as far as they were read
        self.onward: dict[tuple[int, frozenset[str], frozenset[str]], list[Pass]] = {}

    def number(self, id: str) -> int:
        """Return the number of the thing with an id."""
        entity, _ = resolve(self._point, id)
        self._ids[entity.thing] = entity.id
        return entity.thing

    def id(self, thing: int) -> str:
        """Return the id of a thing that was reached or named."""
        return self._ids[thing]

    def fetch(self, things: Iterable[int], ahead: frozenset[str], back: frozenset[str]) -> None:
        """Read with one statement the links that hold and have one of the things as source (kinds `ahead`) or as target (kinds `back`)."""
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
        """Return the sort key of a link: when it starts, when it was recorded, its id."""
        return self._orders[row]

    def chain(self, root: int, reached: Iterable[int], walked: Iterable[int], truncated: bool) -> Chain:
        """Return the answer of a walk."""
        ids = [self._ids[root], *(self._ids[thing] for thing in reached)]
        rows = self._point.rows(LINKS_OVER, periods=as_json(list(walked)))
        chain = chain_of(self._point, ids, rows, truncated)
        assert chain is not None
        return chain


def walk(
    point: Point, ids: Iterable[str] | str, kinds: Kinds = (), hops: int = 2, direction: Direction = "both"
) -> Chain:
    """Return all that is at most `hops` links away from any of the ids, nearest first. The first id is the root.

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
    """Return the path along links whose `valid_from` never decreases that has the fewest hops or the earliest arrival. Raises NotFoundError if there is
    none."""
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
    """Return all paths along links whose `valid_from` never decreases and that visit no thing twice, by (hops, order, arrival, link ids)."""
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
    """Return the orders that a path may have: forward in time; with `both` also back in time, and along causal links in each direction."""
    forward = LinksOnward(ground, kinds, direction)
    if direction != "both":
        return [forward]
    known = ground.vocabulary.kinds
    causal = [name for name in sorted(frozenset().union(*_named(ground, kinds))) if known[name].causal]
    chains = [LinksOnward(ground, causal, way, pace=0) for way in _ONE_WAY] if causal else []
    return [forward, LinksOnward(ground, kinds, direction, pace=-1), *chains]


def _each_once(trails: Iterable[Trail]) -> Iterator[Trail]:
    """Yield each trail once: one whose links all start together is found in several orders."""
    seen = set()
    for trail in trails:
        rows = tuple(row for _, _, row, _ in trail)
        if rows not in seen:
            seen.add(rows)
            yield trail


class LinksOnward:
    """The links that lead on from things, of some kinds and in one direction.

    `pace`: the factor for their instants. 1: time increases along a path; -1: it decreases; 0: all links start together.
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
        # kinds to walk from source to target, and kinds to walk from target to source
        self._sides = frozenset(ahead), frozenset(back)

    def back(self) -> LinksOnward:
        """Return the same links for the opposite direction."""
        kinds, direction = self._named
        return LinksOnward(self._ground, kinds, _BACK[direction], pace=self._pace)

    def fetch(self, things: Iterable[int]) -> None:
        """Read with one statement the links of things that the search visits next."""
        self._ground.fetch([thing for thing in things if thing not in self._in_order], *self._sides)

    def onward(self, thing: int) -> list[Pass]:
        """Return the links that lead on from a thing, in no order."""
        self._ground.fetch([thing], *self._sides)
        return self._ground.onward[(thing, *self._sides)]

    def in_order(self, thing: int) -> list[Pass]:
        """Return the links that lead on from a thing, by their start, then by id. They are sorted once."""
        found = self._in_order.get(thing)
        if found is None:
            pace = self._pace
            found = self._in_order[thing] = sorted(
                (pace * since, id, row, far) for since, id, row, far in self.onward(thing)
            )
        return found


class Search:
    """Searches breadth first from one thing along links whose `valid_from` does not decrease.

    Steps are numbered in the order of discovery: by hops, then by the ids of the links on their path. The first step over a link is the best one, since what
    can follow depends only on the link.
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
        """Search from `start`, from the instant `since` on. Never visit things in `avoid`, and do not begin with the link rows in `without`.

        `to_go`: the fewest hops from each thing to the goal; things that are too far away are skipped.
        """
        self.ways = ways
        self.start, self.goal = start, goal
        self.since = since
        self.avoid = {start, *avoid}
        self.to_go = to_go
        self.steps: list[Pass] = []
        self._before: list[int] = []  # the previous step of each step, -1 for a first one
        self._left = {start: [each for each in ways.in_order(start) if each[2] not in without]}

    def first(self, depth: int) -> Trail | None:
        """Return the path to the goal with the fewest hops; of equal ones, the one with the first link ids. None if there is none."""
        for level in self.levels(depth):
            for step in level:
                if self.steps[step][3] == self.goal:
                    return self.trail(step)
        return None

    def first_and_earliest(self, depth: int) -> Trail | None:
        """Return the path to the goal with the fewest hops, then the earliest arrival, then the first link ids. None if there is none."""
        for level in self.levels(depth):
            arrived = [step for step in level if self.steps[step][3] == self.goal]
            if arrived:
                return self.trail(min(arrived, key=self._arrival))
        return None

    def earliest(self, depth: int) -> Trail | None:
        """Return the path to the goal with the earliest arrival, then the fewest hops, then the first link ids. None if there is none."""
        arrived = [step for level in self.levels(depth) for step in level if self.steps[step][3] == self.goal]
        return self.trail(min(arrived, key=self._arrival)) if arrived else None

    def levels(self, depth: int) -> Iterator[range]:
        """Yield the steps of one hop, then those of two, and so on."""
        level = self._over([(-1, each) for each in self._leaving(self.start, self.since, depth)])
        while level:
            yield level
            depth -= 1
            if depth > 0:
                self.ways.fetch({self.steps[step][3] for step in level} - {self.goal})
            level = self._over([(step, each) for step in level for each in self._after(step, depth)])

    def trail(self, step: int) -> Trail:
        """Return the links from the start to a step."""
        found = []
        while step >= 0:
            found.append(self.steps[step])
            step = self._before[step]
        return found[::-1]

    def _arrival(self, step: int) -> Instant:
        return self.steps[step][0]

    def _over(self, onward: list[tuple[int, Pass]]) -> range:
        """Number new steps. Previous steps are already numbered by the ids of their links, so sorting by (previous step, id) continues that order."""
        first = len(self.steps)
        onward.sort(key=lambda each: (each[0], each[1][1]))
        self.steps += [each for _, each in onward]
        self._before += [before for before, _ in onward]
        return range(first, len(self.steps))

    def _after(self, step: int, depth: int) -> list[Pass]:
        since, _, _, far = self.steps[step]
        return [] if far == self.goal else self._leaving(far, since, depth)

    def _leaving(self, ent: int, since: Instant, depth: int) -> list[Pass]:
        """Return the links that start at `since` or later, lead on from a thing, and were not walked yet."""
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
    """Finds all simple paths that respect time from one thing to another, by hops, then arrival, then link ids.

    One search finds the best path of a set. The rest of the set is split into smaller sets: paths that leave the best path at its first thing, at its second,
    and so on. So each path costs a few searches, however many paths there are (Yen 1971, Lawler 1972).
    """

    def __init__(self, ways: LinksOnward, back: LinksOnward, start: int, goal: int, depth: int) -> None:
        self.ways = ways
        self.start, self.goal, self.depth = start, goal, depth
        self.to_go = _hops_to(back, goal, depth)
        # of each set: its best path, the number of first links that all its paths share, and the link rows that must not follow these
        self._sets: list[tuple[int, Instant, list[str], Trail, int, frozenset[int]]] = []

    def found(self) -> Iterator[Trail]:
        """Yield the paths, each as a list of links."""
        self._add([], frozenset())
        while self._sets:
            _, _, _, trail, common, without = heappop(self._sets)
            for at in range(common, len(trail)):
                self._add(trail[:at], frozenset({trail[at][2]}) | (without if at == common else frozenset()))
            yield trail

    def _add(self, common: Trail, without: frozenset[int]) -> None:
        """Add the set of paths that begin with `common` and do not continue over the link rows in `without`, if it is not empty."""
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
    """Return the fewest hops to the goal from each thing within `depth` hops of it."""
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
    """Return kinds in a form that can be iterated several times."""
    return tuple(kinds) if isinstance(kinds, Iterable) and not isinstance(kinds, str) else kinds


def _named(ground: WalkGround, kinds: Kinds) -> tuple[frozenset[str], frozenset[str]]:
    """Return the named kinds that are walked forward and those that are walked in reverse. Without names: all kinds with `walked` set."""
    vocabulary = ground.vocabulary
    straight, turned = vocabulary.named(kinds)
    if straight or turned:
        return straight, turned
    return frozenset(kind.name for kind in vocabulary.kinds.values() if kind.walked), frozenset()


def _described(kinds: Kinds, direction: str, depth: int | None) -> str:
    """Return a phrase for messages: the links along which a path was searched."""
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    way = {"out": "from source to target", "in": "from target to source", "both": "either way"}[direction]
    within = "" if depth is None else f" within {depth} hop{'s' if depth > 1 else ''}"
    return f"along {' and '.join(names) or 'any'} links, {way},{within}".removesuffix(",")
