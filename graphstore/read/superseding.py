"""Answers what became of a thing: the steps from it to its replacements, and what stands now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.described import described, described_versions, things
from graphstore.read.ids import resolve
from graphstore.read.link_story import became, step_by
from graphstore.read.linked import LinkedRow, link_of, link_period_rows
from graphstore.read.operations import done_by
from graphstore.read.points import Point
from graphstore.values.findings import LinkSupersession, Step, Supersession
from graphstore.values.models import UPRIGHT, Event, How, Node
from graphstore.values.period import OPEN, Instant, Union
from graphstore.values.vocabulary import JOINED

_LEADS_AWAY = {
    JOINED: 0,
    "supersedes": 0,
    "transition": 1,
    "corrects": 2,
}  # kind of link -> rank, most specific first
_HOW: dict[str, How] = {"corrects": "corrected", JOINED: "joined"}


class Removal(NamedTuple):
    """A period of a thing, and the operation that removed it. `is_gap`: the period was opened and removed within one transaction."""

    is_gap: int
    number: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant | None
    counts: int
    said_by: int | None
    said_counts: int | None
    removed_by: int | None
    retracts: int | None
    known_since: Instant
    undone_by: int | None

    @property
    def is_believed(self) -> bool:
        """Return True if the period is believed at the coordinate."""
        return self.tx_to is None and not self.is_gap

    def covers(self, at: Instant) -> bool:
        """Return True if the period contains an instant."""
        return self.valid_from <= at < self.valid_to


class Revision(NamedTuple):
    """The version of a node that replaced the previous one, the operation that recorded it, and its start."""

    number: int
    said_by: int
    valid_from: Instant


WHAT_SUPERSEDED = Statement("what_superseded", LinkedRow)
LAST_REVISION = Statement("last_revision", Revision)
REMOVALS = Statement("removals", Removal)


def what_superseded(point: Point, id: str) -> Supersession | LinkSupersession:
    """Return what became of a thing, over the whole time line believed at the tx: each step away from it (who, why, since, recorded), and what stands now.

    Steps that start after the valid time are `planned`. For `{id}-v{n}`, newer versions of the node are steps too; for a node that was only revised, the
    version that replaced the last one; for a link, how it was unlinked, restated or ended. Raises NotFoundError for an unknown id.
    """
    rows, found = _reached(point, id) if isinstance(id, str) else ([], {})
    if isinstance(id, str) and id in found:
        return _Walk(point, rows, found).steps_from(id, 0)
    periods = link_period_rows(point, id)
    if periods:
        return became(point, periods)
    entity, number = resolve(point, id)
    return _Walk(point, *_reached(point, entity.id)).steps_from(entity.id, 0 if entity.is_event else number)


def _reached(point: Point, id: str) -> tuple[list[LinkedRow], dict[str, Node | Event]]:
    """Return the links that lead from a thing to its direct and indirect replacements, and all these things."""
    rows = point.rows(WHAT_SUPERSEDED, id=id)
    return rows, things(point, dict.fromkeys([id, *(row.source for row in rows)]))


class _Walk:
    """One breadth-first walk over the whole time line believed at a tx."""

    def __init__(self, point: Point, rows: list[LinkedRow], things: dict[str, Node | Event]) -> None:
        self._point = point
        self._rows = rows
        self._things = things
        self._into: dict[str, list[LinkedRow]] = {}  # links to a target, in order, one of each source
        self._holding: dict[str, list[LinkedRow]] = {}  # those of them that hold here
        for row in rows:
            self._into.setdefault(row.target, []).append(row)
        for target, into in self._into.items():
            if len(into) > 1:
                best: dict[str, LinkedRow] = {}
                for row in sorted(into, key=self._rank):
                    best.setdefault(row.source, row)
                self._into[target] = into = [row for row in into if best[row.source] is row]
            self._holding[target] = [row for row in into if self._rank(row)[0] == 0]
        self._steps: list[Step] = []
        self._current: list[Node | Event] = []

    @cached_property
    def _places(self) -> dict[int, int]:
        """Return the position of each row in the statement's order, by the id of the object."""
        return {id(row): place for place, row in enumerate(self._rows)}

    def _rank(self, row: LinkedRow) -> tuple[int, int, int]:
        """Return a sort key for the links of one pair. The first is the step: one that holds, else the next planned one, else the last one; then by kind."""
        kind, valid = _LEADS_AWAY[row.kind], self._point.valid
        if valid < row.valid_from:
            return 1, row.valid_from, kind
        if row.valid_to is not None and row.valid_to <= valid:
            return 2, -row.valid_to, kind
        return 0, 0, kind

    def steps_from(self, subject: str, number: int) -> Supersession:
        """Return what became of an entity. With a version number, newer versions come first."""
        thing = self._things[subject]
        if number:
            thing = described(self._point, subject, number)
            self._revisions(subject, number)
        in_place = self._in_place(subject)
        level, seen = [subject], {subject}
        while level:
            found = [row for id in level for row in self._into.get(id, ())]
            if len(found) > 1:
                found.sort(key=lambda row: self._places[id(row)])
            for each in level:
                if each in in_place:
                    self._end(each)
            level = []
            for row in found:
                if row.source not in seen:
                    seen.add(row.source)
                    level.append(row.source)
                    self._steps.append(self._step(row))
        if not self._steps and not number and thing.standing in (*UPRIGHT, "not_yet"):
            self._last_revision(subject)
        return Supersession.made(
            {
                "subject": thing,
                "chain": tuple(self._steps),
                "current": tuple(self._current),
                "standing": thing.standing,
            }
        )

    def _in_place(self, subject: str) -> set[str]:
        """Return what links that hold here lead to: the last of these stand in place of the subject."""
        found, waiting = {subject}, [subject]
        for id in waiting:
            new = [row.source for row in self._holding.get(id, ()) if row.source not in found]
            found.update(new)
            waiting += new
        return found

    def _end(self, id: str) -> None:
        """Add a thing that nothing replaces here to what stands now, or add a step if it has ended without replacement."""
        rows = self._holding.get(id, ())
        if rows and any(row.kind != "corrects" for row in rows):
            return
        thing = self._things[id]
        if thing.standing in UPRIGHT:
            self._current.append(thing)
        elif thing.standing in ("retracted", "ended") and not rows:
            self._over(id, "retracted" if thing.standing == "retracted" else "ended")

    def _step(self, row: LinkedRow) -> Step:
        source = self._things[row.source]
        link = link_of(self._point, row, source.standing, self._things[row.target].standing)
        return Step.made(
            {
                "how": _HOW.get(link.kind, "superseded"),
                "link": link,
                "node": source,
                "who": link.author or link.created_by,
                "why": link.reason,
                "since": link.valid_from,
                "recorded_at": link.recorded_at,
                "planned": row.valid_from > self._point.valid,
            }
        )

    def _over(self, id: str, how: How) -> None:
        """Add a step for a thing that ended without replacement."""
        valid, rows = self._point.valid, self._removals(id)
        over = [row for row in rows if row.is_believed and row.valid_to <= valid]
        if how == "ended" and over:
            last = max(over, key=lambda row: row.valid_to)
            operation = self._removal_at(rows, last.valid_to)
            self._without_link(how, None, last.said_by if operation is None else operation, last.valid_to)
            return
        operation = self._removed_by(rows, valid)
        if operation is None:  # it never held there, and nothing of it is left
            operation = _last(row.removed_by for row in rows)
        if operation is not None and not self._is_correction(id, operation):
            covers = [row for row in rows if row.counts and row.covers(valid)]
            since = covers[-1].valid_from if covers else rows[0].known_since
            self._without_link(how, None, operation, since)

    def _is_correction(self, id: str, operation: int) -> bool:
        """Return True if an operation corrected a thing by another one that a step names."""
        is_corrected = any(row.kind == "corrects" for row in self._into.get(id, ()))
        return is_corrected and done_by(self._point, (operation,))[operation][0] == "correct"

    def _removals(self, id: str) -> list[Removal]:
        return self._point.rows(REMOVALS, id=id, undone=self._point.undone)

    def _removed_by(self, rows: list[Removal], valid: Instant) -> int | None:
        """Return the operation that removed an instant of a thing: the last of all if it retracted the rest, else the last that removed that instant."""
        last = _last(row.removed_by for row in rows)
        is_left = any(row.is_believed for row in rows)
        if not is_left and any(row.retracts for row in rows if row.removed_by == last):
            return last
        return self._removal_at(rows, valid)

    def _removal_at(self, rows: list[Removal], at: Instant) -> int | None:
        """Return the last operation that removed an instant of a thing; None if none did."""
        covers = [row for row in rows if row.covers(at)]
        periods = [row for row in covers if not row.is_gap]
        found = [row.removed_by for row in covers if row.is_gap]
        if self._point.any_undone:  # what an undone transaction introduced never was so, at any time
            found += [row.undone_by for row in rows]
            periods = [row for row in periods if row.removed_by is not None]
        return _last([*found, *(row.removed_by for row in periods[-1:])])

    def _revisions(self, id: str, number: int) -> None:
        """Add a step for each newer version that was recorded over valid time lost by version `number`, in the order of belief. Versions that an undo
        removed are skipped."""
        rows = [row for row in self._removals(id) if not row.is_gap]
        lost = [row for row in rows if row.number == number and row.tx_to is not None]
        lost.sort(key=_ended, reverse=True)
        free, shown = Union(), dict[int, Removal]()
        for row in rows:
            while lost and _ended(lost[-1]) <= row.tx_from:
                old = lost.pop()
                free.add((old.valid_from, old.valid_to))
            later = row.number or 0
            counts = later > number and later not in shown and row.said_counts != 0
            if counts and free.overlaps((row.valid_from, row.valid_to)):
                shown[later] = row
        nodes = described_versions(self._point, id, shown) if shown else {}
        for later, row in shown.items():
            self._without_link("revised", nodes[later], row.said_by, row.valid_from)

    def _last_revision(self, id: str) -> None:
        """Add a step for the version that replaced the previous one, if there is one."""
        for row in self._point.rows(LAST_REVISION, id=id, undone=self._point.undone):
            self._without_link("revised", described(self._point, id, row.number), row.said_by, row.valid_from)

    def _without_link(self, how: How, node: Node | None, operation: int | None, since: Instant) -> None:
        assert operation is not None
        self._steps.append(step_by(self._point, how, operation, since, node=node))


def _ended(row: Removal) -> Instant:
    return OPEN if row.tx_to is None else row.tx_to


def _last(operations: Iterable[int | None]) -> int | None:
    """Return the last of some operations; None if there is none."""
    return max((operation for operation in operations if operation is not None), default=None)
