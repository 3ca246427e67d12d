"""What the tables of the whole history take from a store, and the tables that are made of it: the same whatever the store is read by."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.columns import Mark
from graphstore.core.tables.arrow_tables import (
    body_columns,
    event_columns,
    instants,
    json_text,
    names_of,
    numbers,
    parsed,
    texts,
)
from graphstore.core.tables.graph_source import columns_of
from graphstore.values.models import Json
from graphstore.values.period import Instant

_ENDS = ("valid_from", "valid_to", "tx_from", "tx_to")
_BY = ("opened_by", "closed_by")


class Reached(NamedTuple):
    """How far a history goes, or tables have followed it. `end` and `digest`: of the last line of the journal. `forgetting`: what is another value as soon as
    something was forgotten."""

    mark: Mark
    end: Sequence[int]
    digest: str
    last_tx: Instant
    forgetting: str = ""


class Thing(NamedTuple):
    """A node or event by its number."""

    number: int
    id: str
    is_event: bool | int


class Node(NamedTuple):
    """A row of Node."""

    id: str
    kind: str
    key: str | None
    scope: str
    tx_from: Instant


class Event(NamedTuple):
    """A row of Event. `opened_by` and `closed_by`: numbers of operations. `word`: by what it was forgotten; `place`: the body of the operation that did so."""

    id: str
    type: str
    occurred_at: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int | None
    closed_by: int | None
    word: str
    data: bytes | None
    place: bytes | None
    body: int | None = None
    checksum: int = 0
    place_body: int | None = None
    place_checksum: int = 0


class Version(NamedTuple):
    """A row of Version. `word`: by what it was forgotten."""

    number: int
    node_id: str
    ordinal: int
    author: str | None
    told: Instant
    told_by: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None
    word: str
    data: bytes | None
    body: int | None = None
    checksum: int = 0


class Occurrence(NamedTuple):
    """A row of Occurrence."""

    number: int
    event_id: str
    occurred_at: Instant
    tx_from: Instant
    opened_by: int


class Operation(NamedTuple):
    """A row of Op."""

    number: int
    tx: Instant
    verb: str
    subject: str
    author: str | None
    data: bytes | None
    body: int | None = None
    checksum: int = 0


class Link(NamedTuple):
    """A row of a table of links."""

    number: int
    id: str
    kind: str
    source: str
    target: str
    from_event: bool | int
    to_event: bool | int
    strength: int | None
    is_inferred: bool | int
    created_by: str
    author: str | None
    told: Instant
    told_by: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None
    data: bytes | None
    body: int | None = None
    checksum: int = 0


class ClosedVersion(NamedTuple):
    """A row of Version that was closed, and by which operation."""

    number: int
    tx_to: Instant
    closed_by: int | None


class ChangedEvent(NamedTuple):
    """How far an event is believed."""

    number: int
    id: str
    tx_to: Instant
    closed_by: int | None


class ClosedLink(NamedTuple):
    """A row of a table of links that was closed."""

    number: int
    kind: str
    source: str
    target: str
    from_event: bool | int
    to_event: bool | int
    tx_to: Instant
    closed_by: int | None


class HistorySource(Protocol):
    """Everything a store has committed, by numbers: [first, stop) of each sort. `data` is JSON; of what was forgotten, or never given, empty or None.
    `body` and `checksum` are the source's own."""

    def reading(self) -> AbstractContextManager[None]:
        """Return a block that reads one state of the store."""

    def reached(self) -> Reached:
        """Return how far the history goes."""

    def goes_on(self, done: Reached, now: Reached) -> bool:
        """Return True if the history only grew between the two."""

    def transactions(self, upto: Reached) -> int:
        """Return how many transactions there are up to there."""

    def promoted(self) -> Sequence[str]:
        """Return the kinds of link that were given tables of their own."""

    def things(self, first: int, stop: int) -> list[Thing]:
        """Return nodes and events."""

    def nodes(self, numbers: Sequence[int]) -> list[Node]:
        """Return the rows of these nodes."""

    def events(self, numbers: Sequence[int]) -> list[Event]:
        """Return the rows of these events."""

    def versions(self, first: int, stop: int) -> list[Version]:
        """Return those of the periods that are of nodes."""

    def occurrences(self, first: int, stop: int) -> list[Occurrence]:
        """Return occurrences."""

    def operations(self, first: int, stop: int) -> list[Operation]:
        """Return operations."""

    def links(self, first: int, stop: int) -> list[Link]:
        """Return periods of links."""

    def closed_versions(self, since: Mark, upto: Mark) -> list[ClosedVersion]:
        """Return what was closed between two marks."""

    def changed_events(self, since: Mark, upto: Mark) -> list[ChangedEvent]:
        """Return the events of which a period was opened or closed between two marks."""

    def closed_links(self, since: Mark, upto: Mark) -> list[ClosedLink]:
        """Return what was closed of links between two marks."""


def nodes_as_table(nodes: list[Node]) -> pa.Table:
    """Make the rows of Node."""
    columns = columns_of(nodes, Node)
    return pa.table(
        {
            **{name: texts(columns[name]) for name in ("id", "kind", "key", "scope")},
            "tx_from": instants(columns["tx_from"]),
        }
    )


def events_as_table(events: list[Event]) -> pa.Table:
    """Make the rows of Event."""
    columns = columns_of(events, Event)
    bodies = [
        body or {**_tombstone(event.word), "authorized": None, **place.get("place", {})}
        for body, place, event in zip(parsed(columns["data"]), parsed(columns["place"]), events, strict=True)
    ]
    return pa.table(
        {
            "id": texts(columns["id"]),
            "type": texts(columns["type"]),
            "occurred_at": instants(columns["occurred_at"]),
            **event_columns(columns["type"], bodies),
            **{name: instants(columns[name]) for name in ("tx_from", "tx_to")},
            **{name: names_of(columns[name]) for name in _BY},
        }
    )


def versions_as_table(versions: list[Version]) -> pa.Table:
    """Make the rows of Version."""
    columns = columns_of(versions, Version)
    node_id, ordinal, words = texts(columns["node_id"]), numbers(columns["ordinal"]), columns["word"]
    return pa.table(
        {
            "row": names_of(columns["number"]),
            "node_id": node_id,
            "ref": pc.binary_join_element_wise(node_id, pc.cast(ordinal, pa.string()), texts(["-v"])[0]),
            "number": ordinal,
            **body_columns([data or b"" for data in columns["data"]], lambda at: _tombstone(words[at])),
            **_recorded(columns),
        }
    )


def occurrences_as_table(occurrences: list[Occurrence]) -> pa.Table:
    """Make the rows of Occurrence."""
    columns = columns_of(occurrences, Occurrence)
    return pa.table(
        {
            "row": names_of(columns["number"]),
            "event_id": texts(columns["event_id"]),
            "occurred_at": instants(columns["occurred_at"]),
            "tx_from": instants(columns["tx_from"]),
            "opened_by": names_of(columns["opened_by"]),
        }
    )


def operations_as_table(operations: list[Operation]) -> pa.Table:
    """Make the rows of Op."""
    columns = columns_of(operations, Operation)
    different = list(dict.fromkeys(columns["data"]))  # those of a transaction share its reason
    reasons = dict(zip(different, (body.get("reason") for body in parsed(different)), strict=True))
    return pa.table(
        {
            "id": names_of(columns["number"]),
            "tx": instants(columns["tx"]),
            **{name: texts(columns[name]) for name in ("verb", "subject", "author")},
            "reason": texts([reasons[data] for data in columns["data"]]),
        }
    )


def links_as_table(links: list[Link]) -> pa.Table:
    """Make the rows of a table of links."""
    columns = columns_of(links, Link)
    bodies = parsed(columns["data"])
    return pa.table(
        {
            "source": texts(columns["source"]),
            "target": texts(columns["target"]),
            "row": names_of(columns["number"]),
            "id": texts(columns["id"]),
            "kind": texts(columns["kind"]),
            "reason": texts([body.get("reason") for body in bodies]),
            "strength": numbers(columns["strength"]),
            "confidence": texts(["inferred" if each else "explicit" for each in columns["is_inferred"]]),
            "created_by": texts(columns["created_by"]),
            "metadata": texts([json_text(body.get("metadata")) for body in bodies]),
            **_recorded(columns),
        }
    )


def closings_as_table(closings: Sequence[ClosedVersion | ChangedEvent | ClosedLink], *ends: str) -> pa.Table:
    """Make rows of what was closed. `ends`: which ids are with it."""
    return pa.table(
        {
            **{name: texts([getattr(one, name) for one in closings]) for name in ends},
            "row": names_of([one.number for one in closings]),
            "closed_at": instants([one.tx_to for one in closings]),
            "op": names_of([one.closed_by for one in closings]),
        }
    )


def _tombstone(word: str) -> Json:
    """Return what stands in place of the body of something that was forgotten."""
    return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}


def _recorded(columns: dict[str, list[Any]]) -> dict[str, pa.Array]:
    """Make the columns of who recorded something first, of both periods and of the operations that opened and closed it."""
    told, known = numbers(columns["told"]), numbers(columns["tx_from"])
    return {
        "author": texts(columns["author"]),
        "told": told.cast(pa.timestamp("us")),
        "told_by": names_of(columns["told_by"]),
        "remainder": pc.less(told, known),
        **{name: instants(columns[name]) for name in _ENDS},
        **{name: names_of(columns[name]) for name in _BY},
    }
