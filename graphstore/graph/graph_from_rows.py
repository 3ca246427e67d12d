"""Read the graph of a view, or of many coordinates, from the rows of the ledger, by statements."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from graphstore.graph.arrow_tables import (
    arrow_out,
    columns_by_name,
    columns_of,
    description_columns,
    event_tombstone,
    table_of,
    tombstone,
    whole_bodies,
)
from graphstore.graph.texts import LINK
from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, thing_rows
from graphstore.read.happened import HappenedTimes
from graphstore.read.index_of_rows import SHAKY
from graphstore.read.linked import LINKS_OVER, LinkedRow
from graphstore.read.points import NotInRows, Point, as_json
from graphstore.values.coordinates import Axis
from graphstore.values.gc_pause import no_collecting
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant

LABELS = ("Node", "Absent", "Event")
NODE, ABSENT, EVENT = LABELS
Group = tuple[str, str, str]
"""A kind of link, and the labels of its ends."""
_SHOWN = ("id", "kind", "key", "scope", "number", "content", "text", "tags", "trigger", "source", "author")
_OF_NODES = ("id", "kind", "key", "scope", "number", "author", "told", "valid_from", "valid_to", "tx_from")
_OF_ABSENT = ("id", "kind", "key", "scope", "number", "standing", "author", "valid_from", "tx_from")
_OF_LINKS = ("source", "target", "id", "kind", "strength", "created_by", "author", "valid_from", "tx_from")


class GraphSpan(NamedTuple):
    """Rows that hold at some instant of both spans, each with its end not included; where instants of an axis are said, at one of these. `fields`: the
    properties that are read, None for all."""

    valid: tuple[Instant, Instant]
    tx: tuple[Instant, Instant]
    axis: Axis = "valid"
    instants: tuple[Instant, ...] = ()
    fields: frozenset[str] | None = None

    @classmethod
    def at(cls, valid: Instant, tx: Instant) -> GraphSpan:
        """Return the span of one coordinate."""
        return cls((valid, valid + 1), (tx, tx + 1))


class PeriodBounds(NamedTuple):
    """Says when something holds, and when it was believed."""

    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant


class HeldPeriod(NamedTuple):
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


class NumberedId(NamedTuple):
    """A node or event by its number."""

    number: int
    id: str


class StandingStretch(NamedTuple):
    """The last instant before another, and the first after it, at which anything begins or ends."""

    since: Instant | None
    until: Instant | None


class ViewState(NamedTuple):
    """The last transaction of a point, how many entities it knows, and what was forgotten by now, which changes past answers."""

    last: Instant | None
    known: int
    rewritten: int
    forgotten: int
    forgotten_by: int | None

    @property
    def forgetting(self) -> tuple[int, int, int | None]:
        """Return what is another value as soon as something more was forgotten."""
        return self.rewritten, self.forgotten, self.forgotten_by


HELD = Statement("held", HeldPeriod)
HELD_LINKS = Statement("held_links", HeldLinks)
KNOWN = Statement("known", NumberedId)
STRETCH = Statement("stretch", StandingStretch)
STATE = Statement("state", ViewState)


class RowSource:
    """Reads what the rows have of a span at a point. What is read later is read only while nothing was forgotten since, else NotInRows is raised.

    `periods`: of nodes, each its number, that of the node, and its bounds; `link_periods`: of links, each its number, its kind, the numbers of what
    it joins, and its bounds.
    """

    def __init__(self, point: Point, span: GraphSpan) -> None:
        self._point = point
        self._state = state_of(point)
        held = point.rows(HELD, **_bounds(span))
        [arrays] = point.rows(HELD_LINKS, **_bounds(span))
        links = list(zip(*map(orjson.loads, arrays), strict=True))
        if span.instants:
            held = [row for row in held if _holds(span, row)]
            links = [row for row in links if _holds(span, PeriodBounds(*row[4:]))]
        nodes = [row for row in held if not row.is_event]
        self._nodes = _node_columns(point, nodes)
        self.periods = [(row.period, row.entity, PeriodBounds(*row[8:12])) for row in nodes]
        self.link_periods = links
        self._events = [row.id for row in held if row.is_event]
        self._labels = {row.entity: EVENT if row.is_event else NODE for row in held}
        self.kinds = {row[1] for row in links}
        self.size = self._state.known, len(links), sum(row.size for row in held)

    def nodes(self) -> tuple[dict[str, pa.Array], list[Json]]:
        """Return the columns of the nodes that stand, in each of their periods, but for how they do; and their contents. They are handed over: what is large
        is not kept as long as the graph."""
        handed_over, self._nodes = self._nodes, ({}, [])
        return handed_over

    def standings(self) -> list[str]:
        """Return how these nodes stand."""
        shaky = {row.number for row in self._rows_now().rows(SHAKY)}
        return ["shaky" if entity in shaky else "stands" for _, entity, _ in self.periods]

    def events(self) -> pa.Table:
        """Return what has happened and is believed: the rows of Event."""
        point = self._rows_now()
        happened = HappenedTimes(point, self._events)
        rows = thing_rows(point, self._events)
        bodies = [_body(happened, row) for row in rows]
        columns = columns_of(rows, Described)
        first, last, times = (
            ([], [], [])
            if not rows
            else zip(*(happened.seen(happened.history_of(row.id).own) for row in rows), strict=True)
        )
        own: dict[str, Sequence[Any]] = {
            "id": columns["id"],
            "type": columns["kind"],
            "occurred_at": first,
            "first_seen": first,
            "last_seen": last,
            "count": times,
            "status": [
                happened.status(row.id, row.kind, body, is_forgotten=False)
                for row, body in zip(rows, bodies, strict=True)
            ],
            "standing": columns["standing"],
            "author": columns["author"],
            "tx_from": columns["known_since"],
        }
        latest = [_with_latest(happened, row, body) for row, body in zip(rows, bodies, strict=True)]
        return table_of(EVENT, own, latest)

    def absent(self) -> tuple[pa.Table, list[Json]]:
        """Return what is known and does not hold, with its last content: the rows of Absent, and with them the contents of those that are nodes, of others nothing."""
        point, labels = self._rows_now(), self._labels
        rows = thing_rows(point, [row.id for row in point.rows(KNOWN) if row.number not in labels])
        happened = HappenedTimes(point, [row.id for row in rows if row.is_event])
        bodies = []
        for row in rows:
            body = _body(happened, row)
            if row.is_event:
                body = body if row.forgotten else _with_latest(happened, row, body)
                body = _as_description(body)
            bodies.append(body)
        columns = columns_of(rows, Described)
        own = {name: columns[name] for name in _OF_ABSENT}
        own |= {"told": columns["recorded_at"], "valid_to": list(map(_end, columns["valid_to"]))}
        contents = [
            {} if row.is_event else body.get("content", {}) for row, body in zip(rows, bodies, strict=True)
        ]
        return table_of(ABSENT, own, bodies), contents

    def groups(self) -> dict[Group, list[int]]:
        """Return the numbers of the periods of links, which are handed over."""
        links, self.link_periods = self.link_periods, []
        groups: dict[Group, list[int]] = {}
        for number, kind, *ends in (row[:4] for row in links):
            source, target = (self._labels.get(end, ABSENT) for end in ends)
            groups.setdefault((kind, source, target), []).append(number)
        return groups

    def links(self, periods: Sequence[int]) -> pa.Table:
        """Return links by the numbers of their periods."""
        point = self._rows_now()
        rows = point.rows(LINKS_OVER, periods=as_json(list(periods)))
        columns = columns_of(rows, LinkedRow)
        own = {name: columns[name] for name in _OF_LINKS}
        own |= {"told": columns["recorded_at"], "valid_to": list(map(_end, columns["valid_to"]))}
        own["history"] = columns["is_history"]
        own["confidence"] = ["inferred" if each else "explicit" for each in columns["is_inferred"]]
        bodies = whole_bodies(point, columns["data"], columns["checksum"], lambda at: f"link {rows[at].id!r}")
        return table_of(LINK, own, bodies)

    def _rows_now(self) -> Point:
        """Return the point, unless something was forgotten meanwhile. Raises NotInRows then."""
        if state_of(self._point) != self._state:
            raise NotInRows
        return self._point


def state_of(point: Point) -> ViewState:
    """Return by what a ledger tells whether an answer at a point is still right. How things stand may depend on what is outside of scopes."""
    [state] = point.whole.rows(STATE)
    return state


def stretch_of(point: Point) -> tuple[Instant, Instant]:
    """Return the stretch of valid time around a point in which nothing begins, ends or happens."""
    [stretch] = point.whole.rows(STRETCH)
    return -OPEN if stretch.since is None else stretch.since, _end(stretch.until)


def nodes_as_table(point: Point) -> pa.Table:
    """Return the nodes that stand at a point as the table that a view gives: instants are in UTC, and an open end is null."""
    with no_collecting():
        held = point.rows(HELD, **_bounds(GraphSpan.at(point.valid, point.tx)))
        found, _ = _node_columns(point, [row for row in held if not row.is_event])
    shown = {name: found[name] for name in _SHOWN} | {"recorded_at": found["told"]}
    shown |= {name: found[name] for name in ("valid_from", "valid_to", "tx_from")}
    return arrow_out(pa.table({**shown, "tx_to": pa.nulls(len(found["told"]), pa.timestamp("us"))}))


def _node_columns(point: Point, rows: list[HeldPeriod]) -> tuple[dict[str, pa.Array], list[Json]]:
    """Make the columns of nodes, but for how they stand; and return their contents."""
    columns = columns_of(rows, HeldPeriod)
    bodies = whole_bodies(
        point,
        columns["data"],
        columns["checksum"],
        lambda at: f"node {rows[at].id!r}, version {rows[at].number}",
    )
    own = columns_by_name({name: columns[name] for name in _OF_NODES})
    return {**own, **description_columns(bodies)}, [body.get("content") or {} for body in bodies]


def _bounds(span: GraphSpan) -> dict[str, Instant]:
    return dict(zip(PeriodBounds._fields, (*span.valid, *span.tx), strict=True))


def _holds(span: GraphSpan, row: HeldPeriod | PeriodBounds) -> bool:
    """Return True if a period holds at one of the instants of a span."""
    since, until = (row.valid_from, row.valid_to) if span.axis == "valid" else (row.tx_from, row.tx_to)
    return bisect_left(span.instants, since) < bisect_left(span.instants, until)


def _end(instant: Instant | None) -> Instant:
    return OPEN if instant is None else instant


def _body(happened: HappenedTimes, row: Described) -> Json:
    """Return the body of a version; of a forgotten thing what is left of it."""
    what = f"event {row.id!r}" if row.is_event else f"node {row.id!r}, version {row.number}"
    body = happened.point.content(row.data, row.checksum, what)
    if body:
        return body
    word = row.forgotten or ""
    return event_tombstone(word, happened.place(row.id)) if row.is_event else tombstone(word)


def _with_latest(happened: HappenedTimes, row: Described, body: Json) -> Json:
    """Return the body of an event with the metadata of its latest occurrence."""
    metadata = happened.latest(row.id, body).get("metadata")
    return body if metadata == body.get("metadata") else {**body, "metadata": metadata}


def _as_description(event: Json) -> Json:
    """Return the body of an event as that of a node: what it says is the content."""
    return {
        "content": {name: value for name, value in event.items() if name not in ("salt", "content")},
        "text": event.get("description"),
        "source": event.get("source"),
        "trigger": None,
    }
