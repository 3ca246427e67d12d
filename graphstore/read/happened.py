"""Events at a coordinate: how often they happened, what they say now, whether they are open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point, as_json
from graphstore.values.fingerprints import NEVER_OPEN
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json, Status
from graphstore.values.period import Instant

_POINTS = "points"  # the setting: types of events that cannot be open
_OWN, _FIRST = (
    "own",
    "first",
)  # what an occurrence says otherwise; that it is the earliest of an event recorded with it


class Occurrence(NamedTuple):
    """One occurrence of an event, or of what resolved it (`link`); `occurred_at` is None where there is none after the first report."""

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


class Setting(NamedTuple):
    """The value of a setting, as JSON."""

    value: str


HAPPENED = Statement("happened", Occurrence)
SETTING = Statement("setting", Setting)


@dataclass
class History:
    """What is known of one event."""

    own: list[Occurrence] = field(default_factory=list)
    resolving: dict[str, list[Occurrence]] = field(default_factory=dict)


class Happened:
    """What happened to some events, as known at a coordinate."""

    def __init__(self, point: Point, ids: list[str]) -> None:
        self.point = point
        self._histories: dict[str, History] = {}
        for row in point.rows(HAPPENED, ids=as_json(ids), undone=point.undone):
            history = self._histories.setdefault(row.id, History())
            (history.own if row.link is None else history.resolving.setdefault(row.link, [])).append(row)
        if point.whole is not point:  # whether an event is open may depend on what is outside of scopes
            whole = Happened(point.whole, list(self._histories))
            for id, history in self._histories.items():
                known = whole.of(id)
                history.own[0] = history.own[0]._replace(is_superseded=known.own[0].is_superseded)
                history.resolving = known.resolving
        self._points: frozenset[str] | None = None

    def seen(self, rows: list[Occurrence]) -> tuple[Instant, Instant, int]:
        """Return the first and the last instant, and how many there are, up to the coordinate. Of a future event: as of its beginning."""
        known = [rows[0].first_reported, *(row.occurred_at for row in rows if row.occurred_at is not None)]
        first = min(known)
        by = max(self.point.valid, first)
        past = [at for at in known if at <= by]
        return first, max(past), len(past)

    def of(self, id: str) -> History:
        """Return the history of one of the events."""
        return self._histories[id]

    def latest(self, id: str, body: Json) -> Json:
        """Return the body of an event with what its latest occurrence says. One that gave no metadata leaves those there are."""
        told = self._told(id)
        own = told[-1][1]
        if own.get("metadata", ...) is None:
            given = (said.get("metadata", body.get("metadata")) for _, said in reversed(told))
            own = {**own, "metadata": next((each for each in given if each is not None), None) or {}}
        return {**body, **own}

    def status(self, id: str, type: str, body: Json, is_forgotten: bool) -> Status | None:
        """Return the status of an event; None for what cannot be open or was retracted."""
        history = self.of(id)
        own = history.own[0]
        is_point = type in NEVER_OPEN or type in self._defined_points()
        if is_point or authorized_of(type, body) is not None or not (is_forgotten or own.is_believed):
            return None
        if own.is_superseded:
            return "superseded"
        _, last, _ = self.seen(history.own)
        for rows in history.resolving.values():
            since = rows[0].since
            again = self.seen(rows)[1] if rows[0].is_event else None
            if (since is not None and since >= last) or (
                again is not None and last <= again <= self.point.valid
            ):
                return "resolved"
        return "active"

    def place(self, id: str) -> Json:
        """Return the place in its trace that an evicted event left behind."""
        row = self.of(id).own[0]
        place: Json = self.point.content(row.place, row.place_checksum, f"event {id!r}").get("place", {})
        return place

    def _told(self, id: str) -> list[tuple[Instant, Json]]:
        """Return the occurrences up to the coordinate, in order, each with what it says otherwise than the first report."""
        rows = self.of(id).own
        first: Json = {}
        found: list[tuple[Instant, Json]] = []
        for row in rows:
            if row.occurred_at is None:
                continue
            says = self.point.content(row.data, row.checksum, f"an occurrence of event {id!r}")
            if _FIRST in says:
                found.append((row.occurred_at, first))
                first = says.get(_OWN, {})
            else:
                found.append((row.occurred_at, says.get(_OWN, {})))
        found.insert(0, (rows[0].first_reported, first))
        by = max(self.point.valid, min(at for at, _ in found))
        return sorted((one for one in found if one[0] <= by), key=lambda one: one[0])

    def _defined_points(self) -> frozenset[str]:
        if self._points is None:
            rows = self.point.rows(SETTING, name=_POINTS)
            self._points = frozenset(orjson.loads(rows[0].value) or ()) if rows else frozenset()
        return self._points
