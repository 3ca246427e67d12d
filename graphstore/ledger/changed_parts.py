"""Finds the parts of valid time in which a transaction may have changed the standing of entities, and their standing there now.

Elsewhere the open rows of `absence` still apply. So a write reads only what it wrote itself, and not the past of the entities that it touches. Where that is
not enough (an entity was removed as a whole, it is an event, something was forgotten or undone …), the standing is computed from all rows of the entity.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

from graphstore.ledger.chain import FORGOTTEN_BY, UNDO, dumps
from graphstore.ledger.standing_facts import ROW, Absence, Facts, PeriodRow, joined
from graphstore.values.period import ALWAYS, Instant, Period, coalesce, without_all

Head = dict[str, Any]
_LAST = "BETWEEN (SELECT {0} FROM next_number) - ?1 AND (SELECT {0} FROM next_number) - 1"
_OPENED = f"SELECT {ROW} FROM period p WHERE p.number {_LAST.format('period')}"
_REMOVED = (
    f"SELECT entity, valid_from, valid_to, operation FROM removed WHERE number {_LAST.format('removed')}"
)
_CHANGED = f"SELECT entity, valid_from, valid_to FROM changed WHERE number {_LAST.format('changed')}"
_SUPERSEDED = "SELECT l.target, p.valid_from, p.valid_to, p.closed_by IS NULL FROM {} l.number = p.link AND l.kind = 'supersedes'"
_LINKS_OPENED = _SUPERSEDED.format(
    f"link_period p CROSS JOIN link l WHERE p.number {_LAST.format('link_period')} AND"
)
_LINKS_CLOSED = _SUPERSEDED.format(
    "json_each(?1) s CROSS JOIN link_period p CROSS JOIN link l WHERE p.number = s.value AND"
)
_BELIEVED_OVER = "SELECT valid_from, valid_to FROM period WHERE entity = ?1 AND closed_by IS NULL AND valid_from < ?3 AND valid_to > ?2"


class ChangedParts:
    """Finds what a transaction changed in the entities that it touched. Its operations are numbered from `first` on."""

    def __init__(
        self,
        facts: Facts,
        heads: list[Head],
        first: int,
        entities: Collection[int],
        closed: dict[int, list[PeriodRow]],
    ) -> None:
        self._facts, self._first, self.closed = facts, first, closed
        self._since = facts.believed_since(entities, first) if entities else {}
        self._periods: dict[int, list[Period]] = {}
        verbs = {verb for head in heads for verb, *_ in head.get("ops", ())}
        self._is_undo = UNDO in verbs
        # otherwise something was forgotten, or an older release wrote the heads without recording what changed
        self._is_plain = verbs.isdisjoint(FORGOTTEN_BY) and all(
            "turns" in head or "rows" not in head for head in heads
        )
        self.opened = self._added(_OPENED, heads, "rows")
        facts.load_operations({row.closed_by for rows in closed.values() for row in rows})
        self.removed = self._added(_REMOVED, heads, "gaps")
        self._changed = self._added(_CHANGED, heads, "turns")
        self._links_opened = self._added(_LINKS_OPENED, heads, "link_rows")
        numbers = [row for head in heads if "link_closed" in head for row, _ in head["link_closed"]]
        self._links_closed = self._found(_LINKS_CLOSED, dumps(numbers).decode()) if numbers else {}

    def _added(self, statement: str, heads: list[Head], name: str) -> dict[int, list[Any]]:
        """Return the rows that the heads added to a table, its last ones, by touched entity."""
        count = sum(len(head[name]) for head in heads if name in head)
        return self._found(statement, count) if count else {}

    def _found(self, statement: str, asked: int | str) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for entity, *row in self._facts.fetch(statement, asked) if self._since else ():
            if entity in self._since:
                found.setdefault(entity, []).append(
                    PeriodRow._make(row) if len(row) == len(PeriodRow._fields) else row
                )
        return found

    def is_new(self, entity: int) -> bool:
        """Return True if no period of an entity was opened before the transaction."""
        return not self._since[entity][0]

    def periods(self, entity: int) -> list[Period]:
        """Return the periods outside of which the falls of an entity are unchanged."""
        return self._periods.get(entity, [ALWAYS])

    def absences(self, entities: Collection[int]) -> dict[int, list[Absence]]:
        """Return for each entity the parts of valid time in which it does not stand, with its standing."""
        facts = self._facts
        facts.entities.load(entities)
        facts.absence.load(entities)
        if len(entities) > 1:
            facts.ever_superseded.load(entities)
        found = {
            entity: None if self.is_new(entity) or not self._is_plain else self._kept_or_changed(entity)
            for entity in entities
        }
        facts.load_whole([entity for entity in entities if found[entity] is None])
        return {
            entity: facts.absences(entity) if absences is None else absences
            for entity, absences in found.items()
        }

    def _kept_or_changed(self, entity: int) -> list[Absence] | None:
        """Return the absences of an entity as changed by the rows of this transaction; None if these rows do not suffice."""
        facts = self._facts
        opened, closed = self.opened.get(entity, []), self.closed.get(entity, [])
        if facts.entity(entity).is_event or any(row.opened_by >= self._first for row in closed):
            return None
        if self._is_undo and (facts.ever_removed(entity) or facts.was_ever_unmade(entity)):
            return None
        _, first, kept = self._since[entity]
        befores = [row.start for row in closed] if kept is None else [kept, *(row.start for row in closed)]
        before = min(befores, default=None)
        if first is None:
            return (
                self._of_nothing_believed(entity) if before is None else self._of_all_removed(entity, closed)
            )
        if before is None:
            return None
        links = self._links_opened.get(entity, []) + self._links_closed.get(entity, [])
        spans = [(row.start, row.stop) for row in (*opened, *closed)]
        spans += [(start, stop) for start, stop, _ in (*self.removed.get(entity, ()), *links)]
        changed = coalesce([*spans, (min(first, before), max(first, before))] if first != before else spans)
        standing = [(row.start, row.stop) for row in opened]
        if links:
            linked = coalesce((start, stop) for start, stop, _ in links)
            standing += facts.fetch(_BELIEVED_OVER, entity, linked[0][0], linked[-1][1])
        standing = coalesce(standing)
        parts = []
        for period in changed:
            for part in without_all(period, standing):
                found = self._absences_over(entity, part, first, closed)
                if found is None:
                    return None
                parts += found
        if not self._is_undo:
            turns = ((start, stop) for start, stop in self._changed.get(entity, ()))
            self._periods[entity] = coalesce([*changed, *turns])
        return _replaced(facts.absence[entity], changed, parts)

    def _of_all_removed(self, entity: int, closed: list[PeriodRow]) -> list[Absence] | None:
        """Return the absences of an entity whose time was all removed: it is retracted everywhere if the last removal was a retraction. None if unknown."""
        by = [row.closed_by or 0 for row in closed if self._facts.removes(row.closed_by, entity)]
        by += [operation for _, _, operation in self.removed.get(entity, ())]
        return [(*ALWAYS, "retracted")] if by and self._facts.is_retraction(max(by)) else None

    def _of_nothing_believed(self, entity: int) -> list[Absence] | None:
        """Return the absences of an entity of which nothing was believed before either. One superseded everywhere stays so when superseded again."""
        known = self._facts.absence[entity]
        is_touched = self._is_undo or entity in self.removed or entity in self._links_closed
        return known if not is_touched and known == [(*ALWAYS, "superseded")] else None

    def _absences_over(
        self, entity: int, period: Period, first: Instant, closed: list[PeriodRow]
    ) -> list[Absence] | None:
        """Return the absences of a node, believed from `first` on, over a period in which it does not stand; None if this transaction's rows do not suffice."""
        facts, known = self._facts, self._facts.absence[entity]
        gaps, superseded = self.removed.get(entity, ()), facts.superseded_over(entity, period)
        edges = {first, *(edge for row in closed for edge in (row.start, row.stop))}
        edges.update(edge for row in (*gaps, *superseded, *known) for edge in row[:2])
        inside = sorted(edge for edge in edges if period[0] < edge < period[1])
        closed = sorted(closed, key=lambda row: row.start)
        starts = [row.start for row in closed]
        found: list[Absence] = []
        for start, stop in pairwise((period[0], *inside, period[1])):
            if start < first:
                continue
            if self._is_undo:
                return None
            was = next((word for since, until, word in known if since <= start < until), None)
            by = max((operation for since, until, operation in gaps if since <= start < until), default=-1)
            at = bisect_right(starts, start) - 1
            is_closed = at >= 0 and start < closed[at].stop
            if is_closed and facts.removes(closed[at].closed_by, entity):
                by = max(by, closed[at].closed_by or 0)
            if by < 0 and (is_closed or was is None):
                return None
            if facts.is_retraction(by) or (by < 0 and was == "retracted"):
                word = "retracted"
            else:
                is_superseded = any(since <= start < until for since, until in superseded)
                word = "superseded" if is_superseded else "ended"
            found.append((start, stop, word))
        return found


def _replaced(known: Iterable[Absence], changed: list[Period], parts: Iterable[Absence]) -> list[Absence]:
    """Return known absences with those over some periods replaced by others."""
    kept = [(*part, word) for start, stop, word in known for part in without_all((start, stop), changed)]
    return joined(sorted([*kept, *parts]))
