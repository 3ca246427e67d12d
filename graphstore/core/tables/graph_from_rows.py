"""The graph of a view read from the rows of the ledger, by statements."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple
from zlib import crc32

import orjson
import pyarrow as pa

from graphstore.core.index.part_of_index import SHAKY
from graphstore.core.tables.arrow_tables import body_columns, instants, numbers, shown_nodes, texts
from graphstore.core.tables.graph_source import (
    ABSENT,
    EVENT,
    NODE,
    Bounds,
    Group,
    LinkPeriod,
    LinkShown,
    NodePeriod,
    Occurred,
    Span,
    Thing,
    columns_of,
    with_latest,
)
from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, thing_rows
from graphstore.read.happened import Happened
from graphstore.read.linked import LINKS_OVER
from graphstore.read.points import NotInRows, Point, as_json
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant

Forgetting = tuple[int, int, int | None]


class Held(NamedTuple):
    """A period of a node or event, with the version that holds over it."""

    period: int
    entity: int
    is_event: int
    id: str
    kind: str
    key: str | None
    scope: str
    number: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    author: str | None
    told: Instant
    size: int
    data: bytes | None
    checksum: int


class HeldLinks(NamedTuple):
    """Periods of links, as JSON arrays: their numbers, the kinds of the links, the numbers of the entities that they join, and the bounds."""

    periods: str
    kinds: str
    sources: str
    targets: str
    valid_from: str
    valid_to: str
    tx_from: str
    tx_to: str


class Known(NamedTuple):
    """A node or event by its number."""

    number: int
    id: str


class Stretch(NamedTuple):
    """The last instant before another, and the first after it, at which anything begins or ends."""

    since: Instant | None
    until: Instant | None


class State(NamedTuple):
    """The last transaction of a point, how many entities it knows, and what was forgotten by now, which changes past answers."""

    last: Instant | None
    known: int
    rewritten: int
    forgotten: int
    forgotten_by: int | None

    @property
    def forgetting(self) -> Forgetting:
        """What is another value as soon as something more was forgotten."""
        return self.rewritten, self.forgotten, self.forgotten_by


HELD = Statement("held", Held)
HELD_LINKS = Statement("held_links", HeldLinks)
KNOWN = Statement("known", Known)
STRETCH = Statement("stretch", Stretch)
STATE = Statement("state", State)


class RowSource:
    """What the rows have of a span at a point. What is read later is read only while nothing was forgotten since, else NotInRows is raised."""

    def __init__(self, point: Point, span: Span) -> None:
        self._point = point
        self._state = state_of(point)
        held = point.rows(HELD, **_bounds(span))
        [arrays] = point.rows(HELD_LINKS, **_bounds(span))
        links = [orjson.loads(array) for array in arrays]
        if span.instants:
            held = [row for row in held if _holds(span, row)]
            kept = [_holds(span, bounds) for bounds in map(Bounds, *links[4:])]
            links = [list(compress(array, kept)) for array in links]
        nodes = [row for row in held if not row.is_event]
        self._columns = _node_columns(point, nodes)
        columns = columns_of(nodes, Held)
        self._periods = [columns[name] for name in ("period", "entity", *Bounds._fields)]
        self._events = [row.id for row in held if row.is_event]
        self._labels = {row.entity: EVENT if row.is_event else NODE for row in held}
        self._links, self._kinds = links, set(links[1])
        self.size = self._state.known, len(links[0]), sum(row.size for row in held)

    def nodes(self) -> dict[str, pa.Array]:
        """Return the columns of the nodes that stand, in each of their periods, but for how they do."""
        # handed over: what is large is not kept as long as the graph
        columns, self._columns = self._columns, {}
        return columns

    def periods(self) -> list[NodePeriod]:
        """Return these periods, in the same order."""
        periods, entities, *bounds = self._periods
        return list(map(NodePeriod, periods, entities, map(Bounds, *bounds)))

    def link_periods(self) -> list[LinkPeriod]:
        """Return the periods of links."""
        links, self._links = self._links, []
        return list(map(LinkPeriod, *links[:4], map(Bounds, *links[4:])))

    def standings(self) -> list[str]:
        """Return how these nodes stand."""
        shaky = {row.number for row in self._rows_now().rows(SHAKY)}
        return ["shaky" if entity in shaky else "stands" for entity in self._periods[1]]

    def events(self) -> list[tuple[Thing, Occurred]]:
        """Return what has happened and is believed."""
        point = self._rows_now()
        happened = Happened(point, self._events)
        found = []
        for row in thing_rows(point, self._events):
            body = _body(happened, row)
            status = happened.status(row.id, row.kind, body, is_forgotten=False)
            seen = happened.seen(happened.of(row.id).own)
            thing = _thing(row, with_latest(body, happened.latest(row.id, body)))
            found.append((thing, Occurred(*seen, status, row.known_since)))
        return found

    def absent(self) -> list[Thing]:
        """Return what is known and does not hold, with its last content."""
        point, labels = self._rows_now(), self._labels
        rows = thing_rows(point, [row.id for row in point.rows(KNOWN) if row.number not in labels])
        happened = Happened(point, [row.id for row in rows if row.is_event])
        found = []
        for row in rows:
            body = _body(happened, row)
            if row.is_event and not row.forgotten:
                body = with_latest(body, happened.latest(row.id, body))
            found.append(_thing(row, body))
        return found

    def groups(self) -> dict[Group, list[int]]:
        """Return the numbers of the periods of links."""
        (periods, kinds, *ends), self._links = self._links[:4], []
        sources, targets = ([self._labels.get(end, ABSENT) for end in side] for side in ends)
        groups: dict[tuple[str, str, str], list[int]] = {}
        for period, group in zip(periods, zip(kinds, sources, targets, strict=True), strict=True):
            groups.setdefault(group, []).append(period)
        return {Group(*group): numbers for group, numbers in groups.items()}

    def links(self, periods: Sequence[int]) -> list[LinkShown]:
        """Return links by the numbers of their periods, one of which may be there several times."""
        point, asked = self._rows_now(), list(dict.fromkeys(periods))
        rows = point.rows(LINKS_OVER, periods=as_json(asked))
        links = {
            period: LinkShown(
                row.id, row.kind, row.source, row.target, row.strength, row.is_inferred, row.created_by, row.author, row.recorded_at,
                row.valid_from, _end(row.valid_to), row.tx_from, point.content(row.data, row.checksum, f"link {row.id!r}"),
            )
            for period, row in zip(asked, rows, strict=True)
        }  # fmt: skip
        return list(map(links.__getitem__, periods))

    def kinds(self) -> set[str]:
        """Return the kinds of the links there are."""
        return self._kinds

    def _rows_now(self) -> Point:
        """Return the point, unless something was forgotten meanwhile. Raises NotInRows then."""
        if state_of(self._point) != self._state:
            raise NotInRows
        return self._point


def state_of(point: Point) -> State:
    """Return by what a ledger tells whether an answer at a point is still right. How things stand may depend on what is outside of scopes."""
    [state] = point.whole.rows(STATE)
    return state


def stretch_of(point: Point) -> tuple[Instant, Instant]:
    """Return the stretch of valid time around a point in which nothing begins, ends or happens."""
    [stretch] = point.whole.rows(STRETCH)
    return -OPEN if stretch.since is None else stretch.since, _end(stretch.until)


def nodes_as_table(point: Point) -> pa.Table:
    """Return the nodes that stand at a point as the table that a view gives."""
    held = point.rows(HELD, **_bounds(Span.of(point.valid, point.tx)))
    return shown_nodes(_node_columns(point, [row for row in held if not row.is_event]))


def _node_columns(point: Point, rows: list[Held]) -> dict[str, pa.Array]:
    """Make the columns of nodes, but for how they stand."""
    bodies, columns = [_checked(point, row) for row in rows], columns_of(rows, Held)
    return {
        **{name: texts(columns[name]) for name in ("id", "kind", "key", "scope", "author")},
        "number": numbers(columns["number"]),
        **body_columns(bodies),
        **{name: instants(columns[name]) for name in ("told", "valid_from", "valid_to", "tx_from")},
    }


def _bounds(span: Span) -> dict[str, Instant]:
    return dict(zip(Bounds._fields, (*span.valid, *span.tx), strict=True))


def _holds(span: Span, row: Held | Bounds) -> bool:
    """Return True if a period holds at one of the instants of a span."""
    since, until = (row.valid_from, row.valid_to) if span.axis == "valid" else (row.tx_from, row.tx_to)
    return bisect_left(span.instants, since) < bisect_left(span.instants, until)


def _end(instant: Instant | None) -> Instant:
    return OPEN if instant is None else instant


def _checked(point: Point, row: Held) -> bytes:
    """Return the bytes of a content. Raises DamageError when they are not what was written."""
    if row.data is None or crc32(row.data) != row.checksum:
        point.content(row.data, row.checksum, f"node {row.id!r}, version {row.number}")
    return row.data or b""


def _body(happened: Happened, row: Described) -> Json:
    """Return the body of a version; of a forgotten thing what is left of it."""
    what = f"event {row.id!r}" if row.is_event else f"node {row.id!r}, version {row.number}"
    body = happened.point.content(row.data, row.checksum, what)
    if body:
        return body
    word = row.forgotten or ""
    body = {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}
    return {**body, "authorized": None, **happened.place(row.id)} if row.is_event else body


def _thing(row: Described, body: Json) -> Thing:
    return Thing(
        row.id, row.kind, row.key, row.scope, row.number, row.standing, row.author, row.recorded_at,
        row.valid_from, _end(row.valid_to), row.tx_from, bool(row.is_event), body,
    )  # fmt: skip
