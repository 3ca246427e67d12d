"""Read the graph of a view, or of many coordinates, from the rows of the ledger by SQL statements."""

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
"""The kind of a link, and the labels of its ends."""
_SHOWN = ("id", "kind", "key", "scope", "number", "content", "text", "tags", "trigger", "source", "author")
_OF_NODES = ("id", "kind", "key", "scope", "number", "author", "told", "valid_from", "valid_to", "tx_from")
_OF_ABSENT = ("id", "kind", "key", "scope", "number", "standing", "author", "valid_from", "tx_from")
_OF_LINKS = ("source", "target", "id", "kind", "strength", "created_by", "author", "valid_from", "tx_from")


class GraphSpan(NamedTuple):
    """Selects the rows that hold at some instant of both spans, whose ends are not included; with `instants`, at one of these on `axis`. `fields`: the
    properties that are read; None for all."""

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
    """The bounds of the time when something holds, and of the time when it was believed."""

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
    """Holds periods of links as JSON arrays: their numbers, the kinds of the links, the numbers of the entities at their ends, and their bounds."""

    periods: str
    kinds: str
    sources: str
    targets: str
    valid_from: str
    valid_to: str
    tx_from: str
    tx_to: str


class NumberedId(NamedTuple):
    """Pairs the number of a node or event with its id."""

    number: int
    id: str


class StandingStretch(NamedTuple):
    """The last instant before a coordinate, and the first after it, at which anything begins or ends."""

    since: Instant | None
    until: Instant | None


class ViewState(NamedTuple):
    """Holds the last transaction of a point, how many entities it knows, and counts of what was forgotten by now, which changes past answers."""

    last: Instant | None
    known: int
    rewritten: int
    forgotten: int
    forgotten_by: int | None

    @property
    def forgetting(self) -> tuple[int, int, int | None]:
        """Return a value that changes whenever something more is forgotten."""
        return self.rewritten, self.forgotten, self.forgotten_by


HELD = Statement("held", HeldPeriod)
HELD_LINKS = Statement("held_links", HeldLinks)
KNOWN = Statement("known", NumberedId)
STRETCH = Statement("stretch", StandingStretch)
STATE = Statement("state", ViewState)


class RowSource:
    """Reads the rows of a span at a point. Later reads raise NotInRows if something was forgotten since.

    `periods`: of nodes, each with its number, that of the node, and its bounds. `link_periods`: of links, each with its number, its kind, the numbers of
    its ends, and its bounds.
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
        """Return the columns of the standing nodes in each of their periods, without the standing, and their contents. The source drops them: large contents
        must not live as long as the graph."""
        handed_over, self._nodes = self._nodes, ({}, [])
        return handed_over

    def standings(self) -> list[str]:
        """Return the standings of these nodes."""
        shaky = {row.number for row in self._rows_now().rows(SHAKY)}
        return ["shaky" if entity in shaky else "stands" for _, entity, _ in self.periods]

    def events(self) -> pa.Table:
        """Return the rows of Event: what has happened and is believed."""
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
        """Return the rows of Absent: what is known and does not hold, with its last content. Also return the contents of its nodes, and {} for events."""
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
        """Group the numbers of link periods by kind and labels of the ends; the source drops the periods."""
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
        """Return the point. Raises NotInRows if something was forgotten meanwhile."""
        if state_of(self._point) != self._state:
            raise NotInRows
        return self._point


def state_of(point: Point) -> ViewState:
    """Return the state that decides whether a graph at a point is still right. It is of the whole ledger: standings may depend on other scopes."""
    [state] = point.whole.rows(STATE)
    return state


def stretch_of(point: Point) -> tuple[Instant, Instant]:
    """Return the stretch of valid time around a point in which nothing begins, ends or happens."""
    [stretch] = point.whole.rows(STRETCH)
    return -OPEN if stretch.since is None else stretch.since, _end(stretch.until)


def nodes_as_table(point: Point) -> pa.Table:
    """Return the standing nodes at a point as the table of a view: instants in UTC, open ends null."""
    with no_collecting():
        held = point.rows(HELD, **_bounds(GraphSpan.at(point.valid, point.tx)))
        found, _ = _node_columns(point, [row for row in held if not row.is_event])
    shown = {name: found[name] for name in _SHOWN} | {"recorded_at": found["told"]}
    shown |= {name: found[name] for name in ("valid_from", "valid_to", "tx_from")}
    return arrow_out(pa.table({**shown, "tx_to": pa.nulls(len(found["told"]), pa.timestamp("us"))}))


def _node_columns(point: Point, rows: list[HeldPeriod]) -> tuple[dict[str, pa.Array], list[Json]]:
    """Return the columns of nodes without the standing, and the contents of the nodes."""
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
    """Return the body of a version; of a forgotten thing its tombstone."""
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
    """Convert the body of an event to that of a node: its fields are the content."""
    return {
        "content": {name: value for name, value in event.items() if name not in ("salt", "content")},
        "text": event.get("description"),
        "source": event.get("source"),
        "trigger": None,
    }
