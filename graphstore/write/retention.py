"""Retention: select contents to evict by age, size and kind from the rows of a ledger, and report how things were forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from graphstore.errors import NotFoundError
from graphstore.ledger.branch_ledger import branch_databases
from graphstore.ledger.chain import REQUIRES, dumps, hashed
from graphstore.ledger.statements import Id, Number, Statement
from graphstore.read import settings
from graphstore.read.ids import beside
from graphstore.read.occurrences import Raw
from graphstore.read.points import Point, as_json
from graphstore.read.working_set import WorkingSet
from graphstore.values import spans
from graphstore.values.models import Json
from graphstore.values.period import BEGINNING, OPEN, Instant, moment
from graphstore.values.random_bits import random_64

if TYPE_CHECKING:
    from graphstore.ledger.database import RowReader
    from graphstore.write.transaction import Transaction

DAY = 86_400_000_000
AFTER_EVICTION = 0.8  # share of the allowed size to reach, so that not every commit evicts
_TOMBSTONE = 64  # approximate bytes that an eviction adds for each thing
_LINE = 512  # approximate bytes that it adds once
# Bytes that remain of an evicted event: the head that recorded it, its part of the evicting head, and its place in a trace. Measured: 370 to 470 with a short or generated
# id, 580 for a commit, 700 for a span of a trace and for an event with a link.
_AUDIT = 500
_AUDITS = 0.25  # share of the allowed size that remains of evicted events may take before they are summed up
SUMS = "evicted"  # field in the body of the operation that summed them up: day -> type -> count

Sums = dict[str, dict[str, int]]


class KindContent(NamedTuple):
    """A node that is not forgotten: when it was first recorded, its id and its scope."""

    born: Instant
    name: str
    scope: str


class Old(NamedTuple):
    """A node or event that may be evicted."""

    number: int
    id: str
    kind: str
    last: Instant
    forgotten_by: int | None


class Bytes(NamedTuple):
    """Counts the bytes of contents."""

    bytes: int


class ForgottenWord(NamedTuple):
    """Names how something was forgotten."""

    word: str


class EvictionTold(NamedTuple):
    """Stores what an eviction without tombstones recorded."""

    tx: Instant
    data: bytes
    checksum: int


EVICTABLE = Statement("evictable", Old)
CONTENTS = Statement("contents", KindContent)
CONTENT_BYTES = Statement("content_bytes", Bytes)
FORGOTTEN_HOW = Statement("forgotten_how", ForgottenWord)
BRANCH_IDS = Statement("branch_ids", Id)
ENTITY_NUMBER = Statement("entity_number", Number)
EVICTIONS_SINCE = Statement("evictions_since", EvictionTold)


class Evictable:
    """Finds by rows what may be evicted from one line of belief."""

    def __init__(self, database: RowReader) -> None:
        self._point = Point(database, OPEN, OPEN)

    def oldest(
        self,
        kinds: frozenset[str] | None,
        before: Instant | None,
        now: Instant,
        *,
        tombstones: bool = False,
    ) -> list[Old]:
        """Return what may be evicted, oldest first: events, and nodes of `kinds` that ended by `before` (default `now`). With `tombstones`, include what was evicted
        earlier."""
        return self._read(kinds, before, now, ["", "evicted"] if tombstones else [""])

    def evicted(self) -> list[Old]:
        """Return the events evicted so far, in the order of their eviction."""
        return sorted(self._read(None, None, OPEN, ["evicted"]), key=lambda each: each.forgotten_by or 0)

    def _read(
        self, kinds: frozenset[str] | None, before: Instant | None, now: Instant, words: list[str]
    ) -> list[Old]:
        return self._point.rows(
            EVICTABLE,
            kinds=None if kinds is None else as_json(sorted(kinds)),
            ended=now if before is None else before,
            before=before,
            words=as_json(words),
            undone=self._point.undone,
        )

    def contents(self, kind: str) -> list[KindContent]:
        """Return the nodes of a kind that are not forgotten, with any standing, in the order in which they were recorded."""
        return self._point.rows(CONTENTS, kind=kind)

    def contents_elsewhere(self, kind: str, setting: str) -> Iterator[tuple[Any, list[KindContent]]]:
        """Yield for each branch, deleted ones included, the value of a setting and the nodes of `contents` that the trunk does not know. This line must be the trunk."""
        for line in branches(self._point.database):
            found = [each for each in line.contents(kind) if self.number(each.name) is None]
            yield settings.setting(line._point, setting), found

    def size(self, number: int) -> int:
        """Return the size of a thing's contents in bytes."""
        return self._point.rows(CONTENT_BYTES, number=number)[0].bytes

    def number(self, id: str) -> int | None:
        """Return the number of an id; None if this line does not know it."""
        return next((each.number for each in self._point.rows(ENTITY_NUMBER, id=id)), None)

    def freed(self, number: int, keep_audit: bool) -> int:
        """Return approximately how many bytes are freed if a thing's contents are removed."""
        size = self.size(number)
        return max(size - _TOMBSTONE, 0) if keep_audit else size + 4 * _TOMBSTONE

    def enough(self, numbers: Iterable[int], bytes_over: int, keep_audit: bool) -> int:
        """Return how many of these things, from the first on, must be removed to free more than `bytes_over` bytes."""
        count = 0
        bytes_over += _LINE if bytes_over >= 0 else 0
        for number in numbers:
            if bytes_over <= 0:
                break
            bytes_over -= self.freed(number, keep_audit)
            count += 1
        return count

    def outgrown(self, size: int, allowed: int, now: Instant) -> tuple[list[Old], bool]:
        """Return the oldest events to remove from a journal that exceeds the allowed bytes; the older half if that would be all of them. The flag is True if no trace of
        them, nor of earlier evicted events, may remain."""
        over = size - int(allowed * AFTER_EVICTION)
        there = self.oldest(None, None, now)

        def oldest(bytes_over: int, keep_audit: bool) -> list[Old]:
            count = self.enough((each.number for each in there), bytes_over, keep_audit)
            return there[: count if count < len(there) else count // 2]

        found, evicted = oldest(over, True), self.evicted()
        if (len(evicted) + len(found)) * _AUDIT <= allowed * _AUDITS:
            return found, False
        return evicted + oldest(over - len(evicted) * _AUDIT, False), True


def sums_of(events: Iterable[Old]) -> Sums:
    """Return the number of events by day (UTC, of the last occurrence) and type."""
    sums: Sums = {}
    for event in events:
        day = sums.setdefault(moment(event.last).date().isoformat(), {})
        day[event.kind] = day.get(event.kind, 0) + 1
    return sums


def together(one: Sums, other: Sums) -> Sums:
    """Return the total of two sums."""
    return {
        day: dict(Counter(one.get(day, {})) + Counter(other.get(day, {}))) for day in sorted({*one, *other})
    }


def forget(work: Transaction, verb: str, names: list[str], raw: Raw) -> None:
    """Record that things are forgotten, here or on a branch, and stop believing them. An evicted event keeps its place in its trace."""
    index = work.index
    for name in names:
        op, ent = work.op(verb, name), index.ids.get(name, -1)
        if ent >= 0:
            if verb == "evict" and index.is_event[ent] and (place := _place(index, raw, ent)):
                work.leave(op, {"place": place})
            work.stop_believing(ent, (BEGINNING, OPEN), op)
        index.forget(ent, op)


def _place(index: WorkingSet, raw: Raw, ent: int) -> Json:
    ver = index.versions_of[ent][0]
    body = bytes(raw(index.v_pos[ver], index.v_len[ver])) if index.v_len[ver] else b""
    return spans.place(orjson.loads(body)) if b'"trace_id":"' in body else {}


def without_trace(
    tx: Instant, count: int, author: str | None, reason: str | None, sums: Sums | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the line that records the removal of things without naming them. `sums`: the numbers of removed events by day."""
    text = f"{count} removed without a trace" + (f": {reason}" if reason else "")
    if sums is not None:
        days = (
            f"{day} {', '.join(f'{many} {type}' for type, many in types.items())}"
            for day, types in sums.items()
        )
        text += f". By day: {'; '.join(days)}"
    told = {} if sums is None else {SUMS: sums}
    bodies = [dumps({"reason": text, "salt": random_64(), **told})]
    head = {"ops": [["evict", "", 0]], "requires": REQUIRES, "tx": moment(tx), "body": hashed(bodies)}
    if author is not None:
        head["author"] = author
    return head, bodies


def branches(database: RowReader) -> list[Evictable]:
    """Return the finder of evictable things for each branch, deleted ones included."""
    return [Evictable(line) for line in branch_databases(database)]


def words(database: RowReader, names: Iterable[str]) -> dict[str, str]:
    """Return how each of these full ids was forgotten: `evicted`, `erased` or empty. Raises NotFoundError for an id that no line knows."""
    point, found = Point(database, OPEN, OPEN), {}
    for name in names:
        rows = point.rows(FORGOTTEN_HOW, id=name)
        if not rows:
            known = (row.id for row in point.rows(BRANCH_IDS))
            raise NotFoundError.nearest("node or event", name, partial(chain, beside(point, name), known))
        found[name] = rows[0].word
    return found


def summed_before(database: RowReader, day: Instant) -> tuple[frozenset[Instant], Sums]:
    """Return the earlier transactions of the same day (UTC) that summed up evicted events, and the total of their sums."""
    point, found, sums = Point(database, OPEN, OPEN), set(), Sums()
    point.tx = day - day % DAY
    for row in point.rows(EVICTIONS_SINCE):
        told = point.content(row.data, row.checksum, "an eviction").get(SUMS)
        if told is not None:
            found.add(row.tx)
            sums = together(sums, told)
    return frozenset(found), sums
