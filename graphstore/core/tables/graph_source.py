"""What the graph of a view takes from a store, and the tables that are made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.journal.line import dumps
from graphstore.core.tables.arrow_tables import (
    columns_of as columns_of,
)
from graphstore.core.tables.arrow_tables import (
    description_columns,
    event_columns,
    instants,
    json_text,
    numbers,
    texts,
)
from graphstore.values.coordinates import Axis
from graphstore.values.models import Json
from graphstore.values.period import Instant

LABELS = ("Node", "Absent", "Event")
NODE, ABSENT, EVENT = LABELS


class Span(NamedTuple):
    """Rows that hold at some instant of both spans, each with its end not included; where instants of an axis are said, at one of these. `fields`: the
    properties that are read, None for all."""

    valid: tuple[Instant, Instant]
    tx: tuple[Instant, Instant]
    axis: Axis = "valid"
    instants: tuple[Instant, ...] = ()
    fields: frozenset[str] | None = None

    @classmethod
    def of(cls, valid: Instant, tx: Instant) -> Span:
        """Return the span of one coordinate."""
        return cls((valid, valid + 1), (tx, tx + 1))


class Bounds(NamedTuple):
    """When something holds, and when it was believed."""

    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant


class NodePeriod(NamedTuple):
    """A period of a node: its number, and that of the node."""

    number: int
    node: int
    bounds: Bounds


class LinkPeriod(NamedTuple):
    """A period of a link: its number, and those of the things that the link joins."""

    number: int
    kind: str
    source: int
    target: int
    bounds: Bounds


class Group(NamedTuple):
    """Links of one kind between things of two labels."""

    kind: str
    source: str
    target: str


class Thing(NamedTuple):
    """A node or event, and the period that shows it. Of an event, `body` has the metadata of its latest occurrence."""

    id: str
    kind: str
    key: str | None
    scope: str
    number: int
    standing: str
    author: str | None
    told: Instant
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    is_event: bool
    body: Json


class Occurred(NamedTuple):
    """When an event happened first and last, how often, its status, and when it was recorded first."""

    first: Instant
    last: Instant
    times: int
    status: str | None
    known_since: Instant


class LinkShown(NamedTuple):
    """A link over one period. `told`: when its attributes were recorded first."""

    id: str
    kind: str
    source: str
    target: str
    strength: int | None
    is_inferred: bool | int
    created_by: str
    author: str | None
    told: Instant
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    body: Json


def events_as_table(events: list[tuple[Thing, Occurred]]) -> pa.Table:
    """Make the rows of Event."""
    things = columns_of([thing for thing, _ in events], Thing)
    occurred = columns_of([each for _, each in events], Occurred)
    first = instants(occurred["first"])
    return pa.table(
        {
            "id": texts(things["id"]),
            "type": texts(things["kind"]),
            "occurred_at": first,
            "first_seen": first,
            "last_seen": instants(occurred["last"]),
            "count": numbers(occurred["times"]),
            "status": texts(occurred["status"]),
            **event_columns(things["kind"], things["body"]),
            "standing": texts(things["standing"]),
            "author": texts(things["author"]),
            "tx_from": instants(occurred["known_since"]),
        }
    )


def absent_as_table(things: list[Thing]) -> tuple[pa.Table, list[Json]]:
    """Make the rows of Absent. Returns with them the contents of those that are nodes, of others nothing."""
    columns = columns_of(things, Thing)
    bodies = [_as_description(thing.body) if thing.is_event else thing.body for thing in things]
    contents = [{} if thing.is_event else thing.body.get("content", {}) for thing in things]
    table = pa.table(
        {
            **{name: texts(columns[name]) for name in ("id", "kind", "key", "scope")},
            "number": numbers(columns["number"]),
            **description_columns(bodies),
            "standing": texts(columns["standing"]),
            **_told(columns),
            **_periods(columns),
            "content": texts(
                [dumps(body["content"]).decode() if "content" in body else None for body in bodies]
            ),
        }
    )
    return table, contents


def links_as_table(links: Iterable[LinkShown]) -> pa.Table:
    """Make the rows of a kind of link."""
    columns = columns_of(list(links), LinkShown)
    return pa.table(
        {
            **{name: texts(columns[name]) for name in ("source", "target", "id", "kind")},
            "reason": texts([body.get("reason") for body in columns["body"]]),
            "strength": numbers(columns["strength"]),
            "confidence": texts(["inferred" if each else "explicit" for each in columns["is_inferred"]]),
            "created_by": texts(columns["created_by"]),
            "metadata": texts([json_text(body.get("metadata")) for body in columns["body"]]),
            **_told(columns),
            **_periods(columns),
        }
    )


def with_latest(body: Json, latest: Json) -> Json:
    """Return the body of an event with the metadata of its latest occurrence."""
    metadata = latest.get("metadata")
    return body if metadata == body.get("metadata") else {**body, "metadata": metadata}


def _told(columns: dict[str, list[Any]]) -> dict[str, pa.Array]:
    told = numbers(columns["told"])
    return {
        "author": texts(columns["author"]),
        "told": told.cast(pa.timestamp("us")),
        "remainder": pc.less(told, numbers(columns["tx_from"])),
    }


def _periods(columns: dict[str, list[Any]]) -> dict[str, pa.Array]:
    return {name: instants(columns[name]) for name in ("valid_from", "valid_to", "tx_from")}


def _as_description(event: Json) -> Json:
    """Return the body of an event as that of a node: what it says is the content."""
    return {
        "content": {name: value for name, value in event.items() if name not in ("salt", "content")},
        "text": event.get("description"),
        "source": event.get("source"),
        "trigger": None,
    }
