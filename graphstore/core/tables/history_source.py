"""Define the rows from which the graph tables of the whole history are made.

`data` of a row is JSON; where it was evicted, erased or never given, it is empty or None. Only what reads the rows uses `body` and `checksum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphstore.core.index.columns import Mark
from graphstore.values.period import Instant


class Reached(NamedTuple):
    """States how far a history goes, or how far tables have followed it.

    `end` and `digest`: of the last line of the journal. `forgetting`: a text that changes as soon as something is evicted or erased.
    """

    mark: Mark
    end: Sequence[int]
    digest: str
    last_tx: Instant
    forgetting: str = ""


class Thing(NamedTuple):
    """Names a node or event by its number."""

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
    """States when a row of Version was closed, and by which operation."""

    number: int
    tx_to: Instant
    closed_by: int | None


class ChangedEvent(NamedTuple):
    """States until when an event is believed."""

    number: int
    id: str
    tx_to: Instant
    closed_by: int | None


class ClosedLink(NamedTuple):
    """States when a row of a table of links was closed, and by which operation."""

    number: int
    kind: str
    source: str
    target: str
    from_event: bool | int
    to_event: bool | int
    tx_to: Instant
    closed_by: int | None
