"""Reads events at a coordinate: how often they happened, their latest contents, and whether they are open."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from graphstore.ledger.chain import OWN
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point, as_json
from graphstore.read.settings import setting_at
from graphstore.values import fingerprints
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json, Status
from graphstore.values.period import Instant

Seen = tuple[Instant, Instant, int]  # first, last, number
Told = tuple[Instant, Json]  # when an event happened, and how that occurrence differs from the first report

FIRST = "first"  # with `OWN`: the earliest occurrence of an event recorded in the same transaction
POINTS = "points"  # the setting with the types of events that cannot be open


class Occurrence(NamedTuple):
    """One occurrence of an event, or of what resolved it (`link`). `occurred_at` is None if there is none after the first report."""

    id: str
    link: str | None
    since: Instant | None
    is_event: int
    first_reported: Instant
    is_believed: int
    is_superseded: int
    occurred_at: Instant | None
    data: bytes | None
    checksum: int | None
    place: bytes | None
    place_checksum: int | None


HAPPENED = Statement("happened", Occurrence)


@dataclass
class EventHistory:
    """Holds the occurrences of one event and of what resolved it."""

    own: list[Occurrence] = field(default_factory=list)
    resolving: dict[str, list[Occurrence]] = field(default_factory=dict)


class HappenedTimes:
    """The histories of some events, as known at a coordinate."""

    def __init__(self, point: Point, ids: list[str]) -> None:
        self.point = point
        self._histories: dict[str, EventHistory] = {}
        for row in point.rows(HAPPENED, ids=as_json(ids), undone=point.undone):
            history = self._histories.setdefault(row.id, EventHistory())
            (history.own if row.link is None else history.resolving.setdefault(row.link, [])).append(row)
        if point.whole is not point:  # things outside of scopes may decide whether an event is open
            whole = HappenedTimes(point.whole, list(self._histories))
            for id, history in self._histories.items():
                known = whole.history_of(id)
                history.own[0] = history.own[0]._replace(is_superseded=known.own[0].is_superseded)
                history.resolving = known.resolving
        self._points: frozenset[str] | None = None

    def seen(self, rows: list[Occurrence]) -> Seen:
        """Return the first and last instant and the number of instants up to the coordinate. A future event counts as of its start."""
        return seen_by(_instants(rows), self.point.valid)

    def history_of(self, id: str) -> EventHistory:
        """Return the history of one of the events."""
        return self._histories[id]

    def latest(self, id: str, body: Json) -> Json:
        """Return the body of an event with the changes of its latest occurrence. If that gave no metadata, the earlier metadata stay."""
        what = f"an occurrence of event {id!r}"
        rows = [row for row in self.history_of(id).own if row.occurred_at is not None]
        said = [self.point.content(row.data, row.checksum, what) for row in rows]
        return latest_of(body, told_by(_instants(self.history_of(id).own), said, self.point.valid))

    def status(self, id: str, type: str, body: Json, is_forgotten: bool) -> Status | None:
        """Return the status of an event; None if it cannot be open or was retracted."""
        history = self.history_of(id)
        own = history.own[0]
        is_point = type in fingerprints.NEVER_OPEN or type in self._defined_points()
        if is_point or authorized_of(type, body) is not None or not (is_forgotten or own.is_believed):
            return None
        if own.is_superseded:
            return "superseded"
        resolving = [
            (rows[0].since or 0, self.seen(rows)[1] if rows[0].is_event else None)
            for rows in history.resolving.values()
        ]
        return status_of(self.seen(history.own)[1], resolving, self.point.valid)

    def place(self, id: str) -> Json:
        """Return the place in its trace that an evicted event has left."""
        row = self.history_of(id).own[0]
        place: Json = self.point.content(row.place, row.place_checksum, f"event {id!r}").get("place", {})
        return place

    def _defined_points(self) -> frozenset[str]:
        if self._points is None:
            self._points = frozenset(setting_at(self.point, POINTS) or ())
        return self._points


def _instants(rows: list[Occurrence]) -> list[Instant]:
    """Return all instants at which a thing happened, in the order of recording."""
    return [rows[0].first_reported, *(row.occurred_at for row in rows if row.occurred_at is not None)]


def seen_by(known: list[Instant], valid: Instant) -> Seen:
    """Return the first of some instants, the last one up to `valid`, and the number up to it. A future event counts as of its start."""
    first = min(known)
    past = [at for at in known if at <= max(valid, first)]
    return first, max(past), len(past)


def told_by(known: list[Instant], said: list[Json], valid: Instant) -> list[Told]:
    """Return the occurrences up to `valid`, in order, each with its differences from the first report: description, source, metadata (None: not given).

    Args:
        known: the instants of all occurrences, the first reported one first.
        said: the bodies of the operations that recorded the later ones.
        valid: the valid time; for a future event its start is used instead.
    """
    first: Json = {}
    own: list[Json] = []
    for body in said:
        own.append(first if FIRST in body else body.get(OWN, {}))
        if FIRST in body:
            first = body.get(OWN, {})
    by = max(valid, min(known))
    told = zip(known, [first, *own], strict=True)
    return sorted((one for one in told if one[0] <= by), key=itemgetter(0))


def latest_of(body: Json, told: list[Told]) -> Json:
    """Return the body of an event with the changes of its last occurrence. If that gave no metadata, the earlier metadata stay."""
    own = told[-1][1]
    if own.get("metadata", ...) is None:
        given = (said.get("metadata", body.get("metadata")) for _, said in reversed(told))
        own = {**own, "metadata": next((each for each in given if each is not None), None) or {}}
    return {**body, **own}


def status_of(last: Instant, resolving: list[tuple[Instant, Instant | None]], valid: Instant) -> Status:
    """Return `active` or `resolved`, the status of an event.

    Args:
        last: when it last happened.
        resolving: for each thing that resolves it, the start of that link; for an event also when that last happened.
        valid: the valid time.
    """
    for since, again in resolving:
        if since >= last or (again is not None and last <= again <= valid):
            return "resolved"
    return "active"
