"""The events that have happened by a coordinate."""

from __future__ import annotations

from functools import partial

from graphstore.ledger.statements import Statement
from graphstore.read.described import Described, event_of
from graphstore.read.happened import Happened
from graphstore.read.ids import resolve
from graphstore.read.linked import links_around
from graphstore.read.points import Point
from graphstore.read.settings import snapshots
from graphstore.values import coordinates
from graphstore.values.inputs import optional_text
from graphstore.values.models import Event
from graphstore.values.period import OPEN, Period, TimeLike, bounds

EVENTS = Statement("events", Described)


def events(
    point: Point,
    type: str | None = None,
    *,
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    related_to: str | None = None,
    pattern: str | None = None,
) -> list[Event]:
    """Return the events that have happened by a coordinate, newest `occurred_at` first. All filters must hold.

    `since` and `until`: an occurrence of it lies in [since, until). `related_to`: linked with that id either way. `pattern`: part of the description,
    whatever the case. Raises InvalidError when `since` is after `until`, NotFoundError for an unknown `related_to`.
    """
    for name, value in (("type", type), ("pattern", pattern)):
        optional_text(name, value)
    begin, end = _bounds(point, since, until)
    is_bounded = since is not None or until is not None
    rows = point.rows(
        EVENTS,
        type=type,
        related_to=None if related_to is None else resolve(point, related_to)[0].id,
        since=begin if is_bounded else None,
        until=end,
        undone=point.undone,
    )
    if pattern is not None:
        rows = [row for row in rows if pattern.lower() in _description(point, row).lower()]
    ids = [row.id for row in rows]
    happened, links = Happened(point, ids), links_around(point, ids)
    return [event_of(happened, row, tuple(links[row.id])) for row in rows]


def _bounds(point: Point, since: TimeLike | None, until: TimeLike | None) -> Period:
    read = partial(coordinates.resolve, now=min(point.valid, OPEN), names=lambda: snapshots(point))
    return bounds(
        -OPEN if since is None else read(since, "since"), OPEN if until is None else read(until, "until")
    )


def _description(point: Point, row: Described) -> str:
    description: str = point.content(row.data, row.checksum, f"event {row.id!r}")["description"]
    return description
