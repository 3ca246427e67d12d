"""What stands at a coordinate and is shaky, and why: what it rests on, and what became of that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice, takewhile
from typing import Any, NamedTuple

from graphstore.core.index.foundations import Path, Resting, ShakyEntity
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.part_of_index import SHAKY, Number, PartOfIndex
from graphstore.ledger.statements import Statement
from graphstore.read.described import things
from graphstore.read.linked import LINKS_OVER, Linked, link_of
from graphstore.read.points import Point, as_json
from graphstore.values.inputs import whole_number
from graphstore.values.models import OUTSIDE, Link, Node, Shaky
from graphstore.values.period import Instant, moment
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
_VISIBLE = "SELECT number FROM link_period WHERE number IN (SELECT value FROM json_each(?))"
_FORGOTTEN = b'{"content":null}'


def shaky(point: Point, limit: int | None = None) -> list[Shaky]:
    """Return what stands here and rests on something that has fallen since it was last revised or confirmed: the latest fall first, then the nearest to it.

    `limit`: the largest number of answers.
    """
    most = whole_number("limit", limit)
    with no_collecting():
        resting = _RestingInRows(point)
        found = list(islice(_with_outside(point, resting), most))
        names, links, why = resting.index.names, _links(point, found), _reasons(point, found)
        ends = [end for row in links.values() for end in (row.source, row.target)]
        shown = things(point, dict.fromkeys([*ends, *(names[one.ent] for one in found)]))

        def link(number: int) -> Link:
            row = links[number]
            return link_of(point, row, shown[row.source].standing, shown[row.target].standing)

        ways = Ways[Link]()
        return [
            Shaky.made(
                {
                    "node": shown[names[one.ent]],
                    "root": _outside(one.fell_at) if one.root < 0 else shown[names[one.root]],
                    "links": ways.of(one.path, link) if one.path else (),
                    "why": why.get(one.op),
                    "recorded_at": moment(one.fell_at),
                }
            )
            for one in found
        ]


def _with_outside(point: Point, resting: _RestingInRows) -> Iterator[ShakyEntity]:
    """Give what is shaky; within scopes in the order of the whole store, and with the part of a way inside where it leads outside (`root` is -1)."""
    if point.whole is point:
        yield from resting.shaky_entities()
        return
    own = {one.ent: one for one in resting.shaky_entities()}
    inside = {row.number for row in point.rows(SHAKY)}
    for one in _RestingInRows(point.whole).shaky_entities():
        found = own.pop(one.ent, None)
        if found is not None:
            yield found
        elif one.ent in inside:
            yield one._replace(root=-1, op=-1, path=_inside(point, one.path))
    yield from own.values()


def _inside(point: Point, path: Path) -> Path:
    """Return the links of a way up to the first that leads outside."""
    numbers = list[int]()
    while path:
        numbers.append(path[0])
        path = path[1]
    rows = point.database.rows(_VISIBLE, (as_json(numbers),))
    visible = {number for (number,) in rows}
    kept: Path = ()
    for number in reversed(list(takewhile(visible.__contains__, numbers))):
        kept = (number, kept)
    return kept


def _outside(fell_at: Instant) -> Node:
    """Return what stands for a thing outside of scopes."""
    fields: dict[str, Any] = {
        **dict.fromkeys(Node.model_fields),
        "id": OUTSIDE, "kind": "outside", "scope": "", "number": 1, "content": {}, "tags": (), "trigger": "initial", "standing": "shaky",
        **dict.fromkeys(("recorded_at", "valid_from", "tx_from"), moment(fell_at)),
    }  # fmt: skip
    return Node.made(fields)


class _RestingInRows(Resting):
    """What rests on what at a coordinate, as far as it is shaky."""

    def __init__(self, point: Point) -> None:
        super().__init__(PartOfIndex(point), point.valid, point.tx, partial(_body, point))
        self._point = point

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
