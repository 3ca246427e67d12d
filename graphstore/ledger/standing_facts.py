"""Reads from the rows of a ledger how entities stand, what became of them, and what rests on them.

An invalidation is called a fall, and a recheck a look. The numbers of operations state which came first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from graphstore.core.journal.line import DESCRIBING, FORGETTING, RETRACTING, UNDO
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.period import BEGINNING, OPEN, Instant, Period, instant, overlap, without_all
from graphstore.values.vocabulary import OF_EVENTS, RESTS, UPHOLDING

Rows = list[tuple[Any, ...]]
NOW: Instant = OPEN - 1
_LINKS_FROM = (
    "SELECT l.target, p.valid_from, p.valid_to, l.number, l.kind FROM link l CROSS JOIN link_period p "
    "WHERE l.source = ? AND p.link = l.number AND p.closed_by IS NULL"
)
_LINKS_TO = (
    "SELECT l.source, p.valid_from, p.valid_to, l.number, l.kind FROM link l CROSS JOIN link_period p "
    "WHERE l.target = ? AND p.link = l.number AND p.closed_by IS NULL"
)
_RETRACTED_SOMEWHERE = -1  # in place of an operation: the retraction that overlaps the link decides


class Fall(NamedTuple):
    """States what invalidated an entity: the operation, and the word for it (superseded, revised, retracted …)."""

    operation: int
    word: str


class FallenPart(NamedTuple):
    """Gives the falls of an entity over a part of valid time. Of two, the first counts where a link overlaps what was retracted, else the second."""

    start: Instant
    stop: Instant
    falls: list[Fall]


class Row(NamedTuple):
    """A row of `period`."""

    number: int
    version: int
    start: Instant
    stop: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None


class LinkRow(NamedTuple):
    """A row of `link_period`, with the operation that recorded its claim first."""

    link: int
    start: Instant
    stop: Instant
    tx_from: Instant
    tx_to: Instant
    recorded_by: int


class Ground(NamedTuple):
    """States that one entity rests on another over a period, by a link believed now. `counts`: the words of the falls that count for that link."""

    other: int
    start: Instant
    stop: Instant
    link: int
    counts: frozenset[str]


class Entity(NamedTuple):
    """A row of `entity`."""

    number: int
    id: str
    is_event: bool
    tx_from: Instant


class Facts:
    """Reads what the rows say now of entities and links, each once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._entities: dict[int, Entity] = {}
        self._rows: dict[int, list[Row]] = {}
        self._believed: dict[int, list[Row]] = {}
        self._removed: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._operations: dict[int, tuple[Instant, str, str]] = {}
        self._link_rows: dict[int, list[LinkRow]] = {}
        self._replaced: dict[int, set[int]] = {}
        self._falls: dict[int, list[FallenPart]] = {}
        self._upright: dict[int, list[tuple[Instant, Instant, int]]] = {}
        self._dependants: dict[int, list[Ground]] = {}
        self._grounds: dict[int, list[Ground]] = {}
        self._may_have_fallen: dict[int, bool] = {}
        self._superseding: dict[int, list[int]] = {}
        [(self._any_undone, self._any_kinds)] = self._all(
            "SELECT EXISTS (SELECT 1 FROM undone), EXISTS (SELECT 1 FROM defined)"
        )
        self.resting: Mapping[str, frozenset[str]] = self._kinds() if self._any_kinds else RESTS

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> Rows:
        return self._connection.execute(statement, values).fetchall()

    def _kinds(self) -> dict[str, frozenset[str]]:
        """The kinds by which one end rests on the other, those of this store too."""
        found = dict(RESTS)
        for (text,) in self._all("SELECT kind FROM defined ORDER BY number"):
            kind = orjson.loads(text)
            if kind.get("rests"):
                found[kind["name"]] = frozenset(kind["rests"])
        return found

    # ------------------------------------------------------------------ rows

    def entity(self, number: int) -> Entity:
        """The row of an entity."""
        found = self._entities.get(number)
        if found is None:
            [(id, is_event, tx)] = self._all(
                "SELECT id, is_event, tx_from FROM entity WHERE number = ?", (number,)
            )
            found = self._entities[number] = Entity(number, id, bool(is_event), tx)
        return found

    def rows(self, entity: int) -> list[Row]:
        """The periods of an entity, in the order in which they were written."""
        found = self._rows.get(entity)
        if found is None:
            found = self._rows[entity] = [
                Row(*row)
                for row in self._all(
                    "SELECT number, version, valid_from, valid_to, tx_from, tx_to, opened_by, closed_by FROM period WHERE entity = ? ORDER BY number",
                    (entity,),
                )
            ]
        return found

    def believed(self, entity: int) -> list[Row]:
        """The periods of an entity believed now, by valid_from."""
        found = self._believed.get(entity)
        if found is None:
            believed = (row for row in self.rows(entity) if row.closed_by is None)
            found = self._believed[entity] = sorted(believed, key=lambda row: row.start)
        return found

    def operation(self, number: int) -> tuple[Instant, str, str]:
        """The tx, verb and subject of an operation."""
        found = self._operations.get(number)
        if found is None:
            found = self._operations[number] = self._all(
                "SELECT tx, verb, subject FROM operation WHERE number = ?", (number,)
            )[0]
        return found

    def verb(self, operation: int) -> str:
        """The verb of an operation."""
        return self.operation(operation)[1]

    def counts(self, operation: int) -> bool:
        """Whether the transaction of an operation is not taken back."""
        if not self._any_undone:
            return True
        undos = self._all("SELECT operation FROM undone WHERE tx = ?", (self.operation(operation)[0],))
        return not any(self.counts(undo) for (undo,) in undos)

    def link_rows(self, link: int) -> list[LinkRow]:
        """The periods of a link, in the order in which they were written."""
        found = self._link_rows.get(link)
        if found is None:
            found = self._link_rows[link] = [
                LinkRow(*row)
                for row in self._all(
                    "SELECT p.link, p.valid_from, p.valid_to, p.tx_from, p.tx_to, c.operation FROM link_period p CROSS JOIN claim c "
                    "WHERE p.link = ? AND c.number = p.claim ORDER BY p.number",
                    (link,),
                )
            ]
        return found

    def superseding(self, entity: int) -> list[int]:
        """The links that ever superseded an entity."""
        found = self._superseding.get(entity)
        if found is None:
            found = self._superseding[entity] = [
                link
                for (link,) in self._all(
                    "SELECT number FROM link WHERE target = ? AND kind = 'supersedes' ORDER BY number",
                    (entity,),
                )
            ]
        return found

    def forgotten(self, entity: int) -> tuple[str, int] | None:
        """The word and the operation by which an entity was evicted or erased last."""
        rows = self._all("SELECT word, operation FROM forgotten WHERE entity = ?", (entity,))
        return rows[0] if rows else None

    def removed(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """What was taken of an entity and is in no period: start, stop, operation; in the order of the operations."""
        found = self._removed.get(entity)
        if found is None:
            rows = self._all(
                "SELECT valid_from, valid_to, operation FROM removed WHERE entity = ? ORDER BY rowid",
                (entity,),
            )
            found = self._removed[entity] = [row for row in rows if self.counts(row[2])]
        return found

    def changed(self, entity: int) -> list[tuple[Instant, Instant, int, bool]]:
        """When the content of an entity changed: start, stop, operation, and whether that is certain; in the order of the operations."""
        return [
            (start, stop, by, bool(certain))
            for start, stop, by, certain in self._all(
                "SELECT valid_from, valid_to, operation, is_certain FROM changed WHERE entity = ? ORDER BY rowid",
                (entity,),
            )
            if self.counts(by)
        ]

    def replaced_by(self, entity: int) -> set[int]:
        """What an entity supersedes or corrects by a link believed now, over whatever time."""
        found = self._replaced.get(entity)
        if found is None:
            found = self._replaced[entity] = {
                target
                for (target,) in self._all(
                    "SELECT l.target FROM link l WHERE l.source = ? AND l.kind IN ('supersedes', 'corrects') "
                    "AND EXISTS (SELECT 1 FROM link_period p WHERE p.link = l.number AND p.closed_by IS NULL)",
                    (entity,),
                )
            }
        return found

    def shaky_rows(self, entity: int) -> list[Period]:
        """Over which valid time the open rows say that an entity is shaky."""
        return self._all(
            "SELECT valid_from, valid_to FROM shaky WHERE entity = ? AND tx_to = ? ORDER BY valid_from",
            (entity, OPEN),
        )

    # ------------------------------------------------------------------ what rests on what

    def dependants(self, base: int) -> list[Ground]:
        """What rests on an entity by links believed now, but for what supersedes or corrects it."""
        found = self._dependants.get(base)
        if found is None:
            found = self._dependants[base] = [
                ground
                for ground in (*self._linked_to(base), *self._upheld_by(base))
                if base not in self.replaced_by(ground.other)
            ]
        return found

    def _linked_to(self, base: int) -> Iterator[Ground]:
        for entity, start, stop, link, kind in self._all(_LINKS_TO, (base,)):
            rests = kind in self.resting and kind not in UPHOLDING
            if rests and (kind in OF_EVENTS or not self.entity(entity).is_event):
                yield Ground(entity, start, stop, link, self.resting[kind])

    def _upheld_by(self, base: int) -> Iterator[Ground]:
        for entity, start, stop, link, kind in self._all(_LINKS_FROM, (base,)):
            if kind in UPHOLDING and not self.entity(entity).is_event and not self._is_confirmation(base):
                yield Ground(entity, start, stop, link, self.resting[kind])

    def _is_confirmation(self, entity: int) -> bool:
        return self._all(
            "SELECT is_event = 1 AND kind = ? FROM entity WHERE number = ?", (CONFIRMATION, entity)
        ) == [(1,)]

    def grounds(self, entity: int) -> list[Ground]:
        """What an entity rests on by links believed now."""
        found = self._grounds.get(entity)
        if found is None:
            found = self._grounds[entity] = [*self._linked_from(entity), *self._upholding(entity)]
        return found

    def _linked_from(self, entity: int) -> Iterator[Ground]:
        is_event = self.entity(entity).is_event
        for base, start, stop, link, kind in self._all(_LINKS_FROM, (entity,)):
            if kind in self.resting and kind not in UPHOLDING and (not is_event or kind in OF_EVENTS):
                yield Ground(base, start, stop, link, self.resting[kind])

    def _upholding(self, entity: int) -> Iterator[Ground]:
        if self.entity(entity).is_event:
            return
        for base, start, stop, link, kind in self._all(_LINKS_TO, (entity,)):
            if kind in UPHOLDING and not self._is_confirmation(base):
                yield Ground(base, start, stop, link, self.resting[kind])

    def may_have_fallen(self, entity: int) -> bool:
        """Whether anything ever became of an entity that may count."""
        found = self._may_have_fallen.get(entity)
        if found is None:
            [(found,)] = self._all(
                "SELECT EXISTS (SELECT 1 FROM period WHERE entity = ?1 AND (valid_to < ?2 OR closed_by IS NOT NULL)) "
                "OR EXISTS (SELECT 1 FROM changed WHERE entity = ?1) OR EXISTS (SELECT 1 FROM removed WHERE entity = ?1) "
                "OR EXISTS (SELECT 1 FROM link WHERE target = ?1 AND kind = 'supersedes') "
                "OR NOT EXISTS (SELECT 1 FROM period WHERE entity = ?1)",
                (entity, OPEN),
            )
            self._may_have_fallen[entity] = bool(found)
        return bool(found)

    def is_linked(self, entity: int) -> bool:
        """Whether any link was ever made from or to an entity."""
        [(found,)] = self._all(
            "SELECT EXISTS (SELECT 1 FROM link WHERE source = ?1) OR EXISTS (SELECT 1 FROM link WHERE target = ?1)",
            (entity,),
        )
        return bool(found)

    def has_dependants_before(self, entity: int, operation: int) -> bool:
        """Whether anything rested on an entity before an operation."""
        return any(
            row.recorded_by < operation
            for ground in self.dependants(entity)
            for row in self.link_rows(ground.link)
        )

    # ------------------------------------------------------------------ how an entity stands

    def last_cover(self, entity: int, valid: Instant, upto: Instant = NOW) -> Row | None:
        """The period written last over an instant that was not taken back, believed or not."""
        for row in reversed(self.rows(entity)):
            if row.start <= valid < row.stop and row.tx_from <= upto and self.counts(row.opened_by):
                return row
        return None

    def is_superseded(self, entity: int, valid: Instant, upto: Instant = NOW) -> bool:
        """Whether a supersession of an entity holds at an instant."""
        return any(
            row.start <= valid < row.stop and row.tx_from <= upto < row.tx_to
            for link in self.superseding(entity)
            for row in self.link_rows(link)
        )

    def standing(self, entity: int, valid: Instant) -> str:
        """How an entity that was not forgotten stands at an instant: stands, not_yet, retracted, superseded or ended."""
        believed = self.believed(entity)
        is_event = self.entity(entity).is_event
        if any(row.start <= valid < row.stop for row in believed):
            return "superseded" if is_event and self.is_superseded(entity, valid) else "stands"
        if is_event:
            return "not_yet" if believed else "retracted"
        return self._absence(entity, valid, believed)

    def _absence(self, entity: int, valid: Instant, believed: list[Row]) -> str:
        if believed and valid < believed[0].start:
            return "not_yet"
        last = -1 if believed else self.last_removal(entity)
        if self.is_retraction(last) or self.is_retraction(self.removal_at(entity, valid)):
            return "retracted"
        if self.is_superseded(entity, valid):
            return "superseded"
        if believed:
            return "ended"
        begun = [
            row.start
            for link in self.superseding(entity)
            for row in self.link_rows(link)
            if row.tx_to == OPEN
        ]
        if begun:
            return "not_yet" if valid < min(begun) else "ended"
        return "ended" if last >= 0 else "retracted"

    def is_retraction(self, operation: int) -> bool:
        """Whether an operation said that what it removed never was so."""
        return operation >= 0 and self.verb(operation) in RETRACTING

    def _removes(self, operation: int | None, entity: int, upto: Instant) -> bool:
        """Whether an operation that closed a period of an entity took something of it away."""
        if operation is None:
            return False
        tx, verb, subject = self.operation(operation)
        if tx > upto or verb in DESCRIBING:
            return False
        if verb == UNDO and instant(subject) != self.entity(entity).tx_from:
            return False
        return self.counts(operation)

    def removal_at(self, entity: int, valid: Instant) -> int:
        """The operation that removed an instant of an entity last; -1: none did."""
        found = -1
        if self._any_undone:
            undos = self._all("SELECT operation FROM undone WHERE tx = ?", (self.entity(entity).tx_from,))
            found = max((undo for (undo,) in undos if self.counts(undo)), default=-1)
            for row in reversed(self.rows(entity)):
                if row.start <= valid < row.stop and self._removes(row.closed_by, entity, NOW):
                    found = max(found, row.closed_by or 0)
                    break
        else:
            cover = self.last_cover(entity, valid)
            if cover is not None and self._removes(cover.closed_by, entity, NOW):
                found = cover.closed_by or 0
        gaps = (by for start, stop, by in self.removed(entity) if start <= valid < stop)
        return max(found, max(gaps, default=-1))

    def last_removal(self, entity: int, upto: Instant = NOW) -> int:
        """The last operation that took something of an entity away; -1: none did."""
        gaps = [by for _, _, by in self.removed(entity) if self.operation(by)[0] <= upto]
        closing = [
            row.closed_by
            for row in self.rows(entity)
            if row.closed_by is not None and self._removes(row.closed_by, entity, upto)
        ]
        return max((*gaps, *closing), default=-1)

    def removals(self, entity: int) -> list[tuple[int, Period]]:
        """What was taken of an entity: each operation with a period that it removed."""
        gaps = self.removed(entity)
        found = [(by, (start, stop)) for start, stop, by in gaps]
        listed = {by for _, _, by in gaps}
        pieces: dict[tuple[int, int], list[Period]] = {}
        for row in self.rows(entity):
            pieces.setdefault((row.opened_by, row.version), []).append((row.start, row.stop))
        for row in self.rows(entity):
            by = row.closed_by
            if by is not None and by not in listed and self._removes(by, entity, NOW):
                kept = pieces.get((by, row.version), ())
                found += [(by, part) for part in without_all((row.start, row.stop), kept)]
        return found

    def edges(self, entity: int) -> list[Instant]:
        """The instants at which the standing of an entity may change, and the ends of time."""
        found = {BEGINNING, OPEN}
        for row in self.rows(entity):
            found.update((row.start, row.stop))
        for start, stop, *_ in (*self.removed(entity), *self.changed(entity)):
            found.update((start, stop))
        for link in self.superseding(entity):
            for one in self.link_rows(link):
                found.update((one.start, one.stop))
        return sorted(found)

    def absences(self, entity: int) -> list[tuple[Instant, Instant, str]]:
        """How an entity stands where it does not: superseded, ended or retracted, over which parts of valid time."""
        found: list[tuple[Instant, Instant, str]] = []
        for start, stop in pairwise(self.edges(entity)):
            word = self.standing(entity, start)
            if word in ("stands", "not_yet"):
                continue
            if found and found[-1][1:] == (start, word):
                start = found.pop()[0]
            found.append((start, stop, word))
        return found

    # ------------------------------------------------------------------ what became of an entity

    def falls(self, entity: int) -> list[FallenPart]:
        """What became of an entity, over which parts of valid time."""
        found = self._falls.get(entity)
        if found is None:
            found = self._falls[entity] = list(self._all_falls(entity))
        return found

    def _all_falls(self, entity: int) -> Iterator[FallenPart]:
        gone = self.forgotten(entity)
        forgot = -1 if gone is None else self._forgot(entity, gone[1])
        last: FallenPart | None = None
        for start, stop in pairwise(self.edges(entity)):
            if forgot >= 0:
                falls = [Fall(forgot, FORGETTING[self.verb(forgot)])]
            else:
                falls = self._became(entity, start, NOW if gone is None else self._before_forgotten(entity))
            if last is not None and last.falls == falls:
                last = FallenPart(last.start, stop, falls)
                continue
            if last is not None and last.falls:
                yield last
            last = FallenPart(start, stop, falls)
        if last is not None and last.falls:
            yield last

    def _stands_at(self, entity: int, valid: Instant) -> bool:
        return any(row.start <= valid < row.stop for row in self.believed(entity))

    def _forgot(self, entity: int, last: int) -> int:
        """The operation by which an entity was forgotten and so has fallen; -1: none. The eviction of an event is no fall: it was too old to keep, and no less true."""
        closing = {row.closed_by for row in self.rows(entity) if row.closed_by is not None}
        forgetting = sorted({by for by in closing if self.verb(by) in FORGETTING} | {last}, reverse=True)
        is_event = self.entity(entity).is_event
        return next((by for by in forgetting if self.verb(by) == "erase" or not is_event), -1)

    def _before_forgotten(self, entity: int) -> Instant:
        """The last tx before an entity was forgotten first."""
        closing = {row.closed_by for row in self.rows(entity) if row.closed_by is not None}
        return min((self.operation(by)[0] - 1 for by in closing if self.verb(by) in FORGETTING), default=NOW)

    def _became(self, entity: int, valid: Instant, upto: Instant) -> list[Fall]:
        if self.entity(entity).is_event:
            return self._became_of_event(entity, valid, upto)
        if self._stands_at(entity, valid):
            return self._revisions(entity, valid)
        here = self.removal_at(entity, valid)
        if self.is_retraction(here):
            return [self._retraction(here)]
        other = self._other_fall(entity, here, valid)
        if not self.believed(entity) and self.is_retraction(self.last_removal(entity)):
            return [Fall(_RETRACTED_SOMEWHERE, "retracted"), *other]
        return other

    def _became_of_event(self, entity: int, valid: Instant, upto: Instant) -> list[Fall]:
        believed = [row for row in self.rows(entity) if row.tx_from <= upto < row.tx_to]
        if any(row.start <= valid < row.stop for row in believed):
            by = self._superseded_by(entity, valid, upto)
            return [Fall(min(by), "superseded")] if by else []
        if believed:
            return []
        last = self.last_removal(entity, upto)
        return [self._retraction(last)] if last >= 0 else []

    def _other_fall(self, entity: int, here: int, valid: Instant) -> list[Fall]:
        """The fall of a node that was not retracted here; `here`: the operation that removed this instant."""
        by = self._superseded_by(entity, valid, NOW)
        if by:
            return [Fall(max(min(by), here), "superseded")]
        if here >= 0:
            return [Fall(here, "ended")]
        if self.standing(entity, valid) == "not_yet":
            return []
        [(first,)] = self._all("SELECT min(operation) FROM version WHERE entity = ?", (entity,))
        return [] if first is None else [Fall(first, "ended")]

    def _retraction(self, operation: int) -> Fall:
        return Fall(operation, "corrected" if self.verb(operation) == "correct" else "retracted")

    def _revisions(self, entity: int, valid: Instant) -> list[Fall]:
        """The last change of the content of an entity that stands, if there is one: where that does not count, no earlier one does."""
        for start, stop, by, certain in reversed(self.changed(entity)):
            if start <= valid < stop and (certain or self._differs(entity, by, valid)):
                return [Fall(by, "revised")]
        return []

    def _differs(self, entity: int, operation: int, valid: Instant) -> bool:
        """Whether a revision recorded by an older release, which does not say so, changed the content."""
        said = self._all(
            "SELECT DISTINCT v.operation, v.body FROM period p CROSS JOIN version v WHERE p.entity = ?1 AND p.valid_from <= ?2 AND p.valid_to > ?2 "
            "AND v.number = p.version ORDER BY v.operation",
            (entity, valid),
        )
        new = next((body for by, body in said if by == operation), None)
        earlier = [body for by, body in said if by < operation]
        return new is not None and bool(earlier) and self._content(new) != self._content(earlier[-1])

    def _content(self, body: int) -> Any:
        data = self._all("SELECT data FROM body WHERE number = ?", (body,))[0][0]
        return None if data is None else orjson.loads(data)["content"]

    def _superseded_by(self, entity: int, valid: Instant, upto: Instant) -> list[int]:
        """The operations that recorded the supersessions of an entity that hold at an instant."""
        return [
            self._recorded_first(link)
            for link in self.superseding(entity)
            if any(
                row.start <= valid < row.stop and row.tx_from <= upto < row.tx_to
                for row in self.link_rows(link)
            )
        ]

    def _recorded_first(self, link: int, valid: Instant | None = None) -> int:
        """The first operation that recorded a link, over an instant or over any time."""
        spans = [
            *((row.start, row.stop, row.recorded_by) for row in self.link_rows(link)),
            *self._all("SELECT valid_from, valid_to, operation FROM linked WHERE link = ?", (link,)),
        ]
        return min(
            (by for start, stop, by in spans if (valid is None or start <= valid < stop) and self.counts(by)),
            default=-1,
        )

    # ------------------------------------------------------------------ what counts for a link

    def counted(self, part: FallenPart, base: int, ground: Ground) -> Iterator[tuple[Instant, Instant, Fall]]:
        """The fall of a foundation over a part of valid time, as far as it counts for a link to it: start, stop, fall."""
        start, stop = max(part.start, ground.start), min(part.stop, ground.stop)
        if start >= stop:
            return
        fall = part.falls[0]
        if fall.word == "revised":
            if "revised" in ground.counts:
                for begun, ended in self._recorded_alike(ground.link, (start, stop)):
                    if fall.operation > self._recorded_first(ground.link, begun):
                        yield begun, ended, fall
            return
        if fall.operation == _RETRACTED_SOMEWHERE:
            period = (ground.start, ground.stop)
            mine = [
                by for by, span in self.removals(base) if self.is_retraction(by) and overlap(span, period)
            ]
            if mine:
                fall = self._retraction(max(mine))
            elif len(part.falls) == 1:
                return
            else:
                fall = part.falls[1]
        if fall.word in ground.counts:
            yield start, stop, fall

    def _recorded_alike(self, link: int, part: Period) -> Iterator[Period]:
        """The pieces of a period over each of which one operation recorded a link first."""
        edges = {*part}
        spans = [
            *((row.start, row.stop) for row in self.link_rows(link)),
            *self._all("SELECT valid_from, valid_to FROM linked WHERE link = ?", (link,)),
        ]
        edges.update(edge for span in spans for edge in span if part[0] < edge < part[1])
        return pairwise(sorted(edges))

    def upright(self, entity: int) -> list[tuple[Instant, Instant, int]]:
        """Over which parts of valid time an entity stands, each with the operation that looked at it last (-1: none), in order."""
        found = self._upright.get(entity)
        if found is None:
            found = self._upright[entity] = (
                [] if self.forgotten(entity) else list(self._standing_parts(entity))
            )
        return found

    def _standing_parts(self, entity: int) -> Iterator[tuple[Instant, Instant, int]]:
        confirmed = self._confirmed_last(entity)
        if self.entity(entity).is_event:
            for start, stop in pairwise(self.edges(entity)):
                if self.standing(entity, start) == "stands":
                    yield start, stop, confirmed
            return
        for row in self.believed(entity):
            [(by,)] = self._all("SELECT operation FROM version WHERE number = ?", (row.version,))
            described = by if by is not None and self.verb(by) in DESCRIBING else -1
            yield row.start, row.stop, max(described, confirmed)

    def _confirmed_last(self, entity: int) -> int:
        one = self.entity(entity)
        rows = self._all(
            "SELECT number, tx FROM operation WHERE subject = ? AND verb = 'confirm' ORDER BY number DESC",
            (one.id,),
        )
        return next((by for by, tx in rows if tx >= one.tx_from and self.counts(by)), -1)
