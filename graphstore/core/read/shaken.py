"""What stands at a coordinate and is shaky, and why: what it rests on, and what became of that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from graphstore.core.index.foundations import Resting, ShakyEntity
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.part_of_index import Number, PartOfIndex
from graphstore.ledger.statements import Statement
from graphstore.read.described import things
from graphstore.read.linked import LINKS_OVER, Linked, link_of
from graphstore.read.points import Point, as_json
from graphstore.values.inputs import whole_number
from graphstore.values.models import Link, Shaky
from graphstore.values.period import moment
from graphstore.values.ways import Ways


class Body(NamedTuple):
    """The bytes of a body (None: they were removed), and their CRC-32."""

    data: bytes | None
    checksum: int


class Reason(NamedTuple):
    """The body that has the reason of an operation."""

    number: int
    data: bytes | None
    checksum: int | None


LOOKS_AMONG = Statement("looks_among", Number)
REASONS = Statement("reasons", Reason)
BODY = Statement("body", Body)
_FORGOTTEN = b'{"content":null}'


def shaky(point: Point, limit: int | None = None) -> list[Shaky]:
    """Return what stands here and rests on something that has fallen since it was last revised or confirmed: the latest fall first, then the nearest to it.

    `limit`: the largest number of answers.
    """
    most = whole_number("limit", limit)
    with no_collecting():
        resting = _RestingInRows(point)
        found = list(islice(resting.shaky_entities(), most))
        names, links, why = resting.index.names, _links(point, found), _reasons(point, found)
        shown = things(
            point, dict.fromkeys(end for row in links.values() for end in (row.source, row.target))
        )

        def link(number: int) -> Link:
            row = links[number]
            return link_of(point, row, shown[row.source].standing, shown[row.target].standing)

        ways = Ways[Link]()
        return [
            Shaky.made(
                {
                    "node": shown[names[one.ent]],
                    "root": shown[names[one.root]],
                    "links": ways.of(one.path, link),
                    "why": why[one.op],
                    "recorded_at": moment(one.fell_at),
                }
            )
            for one in found
        ]


class _RestingInRows(Resting):
    """What rests on what at a coordinate, as far as it is shaky."""

    def __init__(self, point: Point) -> None:
        super().__init__(PartOfIndex(point), point.valid, point.tx, partial(_body, point))
        self._point = point

    def _perhaps_fallen(self) -> Iterator[int]:
        return iter(sorted(self.index.based))

    def _is_look_among(self, first: int, stop: int) -> bool:
        return bool(self._point.rows(LOOKS_AMONG, first=first, stop=stop))


def _body(point: Point, number: int, _: int) -> bytes:
    """Return the body of a version of a node."""
    [row] = point.rows(BODY, number=number)
    point.content(row.data, row.checksum, "a version of a node")
    return row.data or _FORGOTTEN


def _links(point: Point, found: list[ShakyEntity]) -> dict[int, Linked]:
    """Return the links of all ways, by the numbers of their periods."""
    seen: set[int] = set()
    numbers: dict[int, None] = {}
    for path in (one.path for one in found):
        while path and id(path) not in seen:
            seen.add(id(path))
            numbers[path[0]] = None
            path = path[1]
    rows = point.rows(LINKS_OVER, periods=as_json(list(numbers)))
    return dict(zip(numbers, rows, strict=True))


def _reasons(point: Point, found: list[ShakyEntity]) -> dict[int, str | None]:
    """Return why things fell, by the operations that recorded it."""
    rows = point.rows(REASONS, numbers=as_json(list({one.op for one in found})))
    what = "the reason of operation"
    return {
        row.number: point.content(row.data, row.checksum, f"{what} {row.number}").get("reason")
        for row in rows
    }
