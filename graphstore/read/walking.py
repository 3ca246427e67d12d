"""Walks and paths over the rows of a ledger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read import walks
from graphstore.read.described import things
from graphstore.read.ids import resolve
from graphstore.read.linked import LINKS_OVER, link_of
from graphstore.read.points import Point, as_json
from graphstore.read.walks import By, Direction, Pass
from graphstore.values.models import Chain
from graphstore.values.period import Instant


class Way(NamedTuple):
    """A link that leads on from a thing: the numbers of both, and of its period."""

    near: int
    far: int
    far_id: str
    id: str
    period: int
    valid_from: Instant
    recorded_at: Instant


WAYS = Statement("ways", Way)


def walk(
    point: Point,
    ids: Iterable[str] | str,
    kinds: Iterable[str] | str = (),
    hops: int = 2,
    direction: Direction = "both",
) -> Chain:
    """Return what lies around the ids, at most `hops` links away: the nearest first, the first id as root.

    Raises NotFoundError for an unknown id, InvalidError for an unknown kind or direction.
    """
    return walks.walk(RowsGround(point), ids, kinds, hops, direction)


def path(
    point: Point,
    source: str,
    target: str,
    kinds: Iterable[str] | str = (),
    by: By = "hops",
    direction: Direction = "out",
    depth: int | None = None,
) -> Chain:
    """Return the best path along links whose `valid_from` never goes back. Raises NotFoundError when there is none."""
    return walks.path(RowsGround(point), source, target, kinds, by, direction, depth)


def paths(
    point: Point,
    source: str,
    target: str,
    kinds: Iterable[str] | str = (),
    direction: Direction = "out",
    limit: int = 100,
    depth: int = 10,
) -> list[Chain]:
    """Return every path along links whose `valid_from` never goes back, by (hops, order, arrival, link ids)."""
    return walks.paths(RowsGround(point), source, target, kinds, direction, limit, depth)


class RowsGround:
    """The things and links of a ledger at a coordinate, as `walks.Ground` has them. Numbers are those of the tables."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self.valid, self.tx, self.vocabulary = point.valid, point.tx, point.vocabulary
        self._ids: dict[int, str] = {}
        self._orders: dict[int, tuple[Instant, Instant, str]] = {}
        self._onward: dict[tuple[int, frozenset[str], frozenset[str]], list[Pass]] = {}

    def number(self, id: str) -> int:
        """Return the number of the thing that an id names."""
        entity, _ = resolve(self._point, id)
        self._ids[entity.thing] = entity.id
        return entity.thing

    def id(self, thing: int) -> str:
        """Return the id of a thing that was reached or named."""
        return self._ids[thing]

    def onward(self, thing: int, ahead: frozenset[str], back: frozenset[str]) -> list[Pass]:
        """Return the links that lead on from a thing, in no order."""
        self.fetch([thing], ahead, back)
        return self._onward[thing, ahead, back]

    def fetch(self, things: Iterable[int], ahead: frozenset[str], back: frozenset[str]) -> None:
        """Read the links of some things by one statement, of each thing once."""
        wanted = [thing for thing in things if (thing, ahead, back) not in self._onward]
        if not wanted:
            return
        for thing in wanted:
            self._onward[thing, ahead, back] = []
        kinds = {"ahead": as_json(list(ahead)), "back": as_json(list(back))}
        for way in self._point.rows(WAYS, numbers=as_json(wanted), **kinds):
            self._ids[way.far] = way.far_id
            self._orders[way.period] = way.valid_from, way.recorded_at, way.id
            self._onward[way.near, ahead, back].append((way.valid_from, way.id, way.period, way.far))

    def order(self, row: int) -> tuple[Instant, Instant, str]:
        """Return what links are ordered by: when they begin to hold, when they were recorded, id."""
        return self._orders[row]

    def chain(self, root: int, reached: Iterable[int], walked: Iterable[int], truncated: bool) -> Chain:
        """Make the value of a walk."""
        ids = [self._ids[root], *(self._ids[thing] for thing in reached)]
        found = things(self._point, ids)
        rows = self._point.rows(LINKS_OVER, periods=as_json(list(walked)))
        links = [
            link_of(self._point, row, found[row.source].standing, found[row.target].standing) for row in rows
        ]
        return Chain.made(
            {
                "root": found[ids[0]],
                "nodes": tuple([found[id] for id in ids[1:]]),
                "links": tuple(links),
                "truncated": truncated,
            }
        )
