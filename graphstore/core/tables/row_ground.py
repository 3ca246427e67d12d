"""The graph of a view read from the rows of the ledger, by statements: the index is not loaded for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import orjson
import pyarrow as pa

from graphstore.core.index.part_of_index import SHAKY
from graphstore.core.tables.arrow_tables import body_columns, instants, numbers, texts
from graphstore.core.tables.ground import (
    ABSENT,
    EVENT,
    NODE,
    Group,
    LinkShown,
    Occurred,
    Thing,
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
    """A node or event that holds, with the version and the period that does."""

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
    author: str | None
    told: Instant
    size: int
    data: bytes | None
    checksum: int


class HeldLinks(NamedTuple):
    """The links that hold, as JSON arrays: the numbers of their periods, their kinds, and the numbers of the entities that they join."""

    numbers: str
    kinds: str
    sources: str
    targets: str


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


class RowGround:
    """What the rows have at a point. What is read later is read only while the ledger is in the same state, else NotInRows is raised."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._state = state_of(point)
        held = point.rows(HELD)
        self._nodes = [row for row in held if not row.is_event]
        self._events = [row.id for row in held if row.is_event]
        self._labels = {row.entity: EVENT if row.is_event else NODE for row in held}
        [links] = point.rows(HELD_LINKS)
        self._numbers, self._kinds, self._sources, self._targets = map(orjson.loads, links)
        self.size = self._state.known, len(self._numbers), sum(row.size for row in held)

    def nodes(self) -> dict[str, pa.Array]:
        """Return the columns of the nodes that stand, but for how they do."""
        rows = self._nodes
        bodies = [_checked(self._point, row) for row in rows]
        return {
            "id": texts([row.id for row in rows]),
            "kind": texts([row.kind for row in rows]),
            "key": texts([row.key for row in rows]),
            "scope": texts([row.scope for row in rows]),
            "number": numbers([row.number for row in rows]),
            **body_columns(bodies),
            "author": texts([row.author for row in rows]),
            "told": instants([row.told for row in rows]),
            "valid_from": instants([row.valid_from for row in rows]),
            "valid_to": instants([row.valid_to for row in rows]),
            "tx_from": instants([row.tx_from for row in rows]),
        }

    def standings(self) -> list[str]:
        """Return how these nodes stand."""
        shaky = {row.number for row in self._rows_now().rows(SHAKY)}
        return ["shaky" if row.entity in shaky else "stands" for row in self._nodes]

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
        """Return the numbers of the links that hold."""
        label = self._labels.get
        sources, targets = ([label(end, ABSENT) for end in ends] for ends in (self._sources, self._targets))
        groups: dict[tuple[str, str, str], list[int]] = {}
        for number, group in zip(self._numbers, zip(self._kinds, sources, targets, strict=True), strict=True):
            groups.setdefault(group, []).append(number)
        return {Group(*group): numbers for group, numbers in groups.items()}

    def links(self, numbers: Sequence[int]) -> Iterator[LinkShown]:
        """Return links by their numbers."""
        point = self._rows_now()
        for row in point.rows(LINKS_OVER, periods=as_json(list(numbers))):
            yield LinkShown(
                row.id, row.kind, row.source, row.target, row.strength, row.is_inferred, row.created_by, row.author, row.recorded_at,
                row.valid_from, _end(row.valid_to), row.tx_from, point.content(row.data, row.checksum, f"link {row.id!r}"),
            )  # fmt: skip

    def kinds(self) -> set[str]:
        """Return the kinds of the links that hold."""
        return set(self._kinds)

    def _rows_now(self) -> Point:
        """Return the point, unless something was forgotten meanwhile. Raises NotInRows then."""
        if state_of(self._point) != self._state:
            raise NotInRows
        return self._point


def state_of(point: Point) -> State:
    """Return by what a ledger tells whether an answer at a point is still right."""
    [state] = point.rows(STATE)
    return state


def stretch_of(point: Point) -> tuple[Instant, Instant]:
    """Return the stretch of valid time around a point in which nothing begins, ends or happens."""
    [stretch] = point.rows(STRETCH)
    return -OPEN if stretch.since is None else stretch.since, _end(stretch.until)


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
