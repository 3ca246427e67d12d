"""Reads a link by its id at a coordinate: everything about it, and what became of it."""

from __future__ import annotations

from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.described import things
from graphstore.read.ids import knows
from graphstore.read.linked import LinkedRow, link_of, link_period_rows
from graphstore.read.operations import done
from graphstore.read.points import Point
from graphstore.values.findings import LinkInspection, LinkSupersession, Step
from graphstore.values.models import How, Link, Node
from graphstore.values.period import OPEN, Instant, moment


class LinkChange(NamedTuple):
    """The number of the claim in one period of a link, and the operations that first recorded it, opened the period and closed it."""

    claim: int
    said_by: int
    opened_by: int
    closed_by: int | None


LINK_CHANGES = Statement("link_changes", LinkChange)


def inspected_by(point: Point, id: str) -> LinkInspection | None:
    """Return everything about the link with an id that was made by `tx`; None if there is none, or the id is that of a node or event."""
    rows = link_period_rows(point, id)
    return inspected(point, rows) if rows and not knows(point, id) else None


def inspected(point: Point, rows: list[LinkedRow]) -> LinkInspection:
    """Return everything about the link with these periods."""
    fate = _Fate(point, rows)
    shown = fate.shown
    ends = things(point, (shown.source, shown.target))
    return LinkInspection.made(
        {
            "link": fate.link(shown),
            "holds": fate.holds(shown),
            "source": ends[shown.source],
            "target": ends[shown.target],
            "history": tuple(map(fate.link, fate.believed)),
        }
    )


def became(point: Point, rows: list[LinkedRow]) -> LinkSupersession:
    """Return the steps of what became of the link with these periods, in the order of recording."""
    fate = _Fate(point, rows)
    return LinkSupersession.made(
        {"link": fate.link(fate.shown), "holds": fate.holds(fate.shown), "chain": tuple(fate.steps())}
    )


class _Fate:
    """The periods of one link, in the order of recording."""

    def __init__(self, point: Point, rows: list[LinkedRow]) -> None:
        self._point = point
        self._rows = rows
        self.believed = sorted((row for row in rows if row.tx_to is None), key=lambda row: row.valid_from)

    def link(self, row: LinkedRow) -> Link:
        """Return a period as a value."""
        return link_of(self._point, row)

    def holds(self, row: LinkedRow) -> bool:
        """Return True if a period holds here."""
        return row.tx_to is None and self._covers(row)

    @property
    def shown(self) -> LinkedRow:
        """Return the period that shows the link: the one that holds, else the last recorded of those that did, of those believed, or of all."""
        covering = [row for row in self._rows if self._covers(row)]
        held = [row for row in covering if row.tx_to is None]
        return (held or covering or self.believed or self._rows)[-1]

    def steps(self) -> list[Step]:
        """Return each step by which the link was unlinked, revised or ended here."""
        changes = self._point.rows(LINK_CHANGES, id=self._rows[0].id)
        periods = list(zip(self._rows, changes, strict=True))
        covering = [pair for pair in periods if self._covers(pair[0]) and pair[0].tx_from != pair[0].tx_to]
        found = []
        for (row, change), following in zip(covering, [*covering, None][1:], strict=True):
            operation = change.closed_by
            if operation is None:
                continue
            if following is None or following[1].opened_by != operation:
                left = [piece for piece, opened in periods if opened.opened_by == operation]
                found.append(self._step("unlinked", row, operation, self._cut(row, left)))
            elif following[1].claim != change.claim:
                later = following[0]
                found.append(self._step("revised", later, operation, later.valid_from))
        valid = self._point.valid
        over = [pair for pair in periods if pair[0].tx_to is None and _until(pair[0]) <= valid]
        if over and not covering:
            last, change = max(over, key=lambda pair: _until(pair[0]))
            found.append(self._step("ended", last, change.said_by, _until(last)))
        return found

    def _covers(self, row: LinkedRow) -> bool:
        return row.valid_from <= self._point.valid < _until(row)

    def _cut(self, row: LinkedRow, left: list[LinkedRow]) -> Instant:
        """Return the start of the removed part of a period: where the last piece left before the valid time ends."""
        ends = [_until(piece) for piece in left if row.valid_from <= piece.valid_from < self._point.valid]
        return max(ends, default=row.valid_from)

    def _step(self, how: How, row: LinkedRow, operation: int, since: Instant) -> Step:
        return step_by(self._point, how, operation, since, self.link(row))


def step_by(
    point: Point, how: How, operation: int, since: Instant, link: Link | None = None, node: Node | None = None
) -> Step:
    """Return the step that an operation made. For a revised link, author and reason are those of the revision."""
    by, reason = done(point, operation)
    revised = link if how == "revised" else None
    return Step.made(
        {
            "how": how,
            "link": link,
            "node": node,
            "who": by.author or (revised and revised.created_by),
            "why": revised.reason if revised else reason,
            "since": moment(since),
            "recorded_at": moment(by.tx),
            "planned": since > point.valid,
        }
    )


def _until(row: LinkedRow) -> Instant:
    return OPEN if row.valid_to is None else row.valid_to
