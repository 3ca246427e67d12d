"""Retention: which contents are evicted, by age, size and kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from graphstore.ledger.chain import REQUIRES, dumps, hashed
from graphstore.read.occurrences import Raw
from graphstore.read.working_set import WorkingSet
from graphstore.values import spans
from graphstore.values.models import Json
from graphstore.values.period import BEGINNING, OPEN, Instant, moment
from graphstore.values.random_bits import random_64

if TYPE_CHECKING:
    from graphstore.write.transaction import Transaction

RETENTION = "retention"
DAY = 86_400_000_000
AFTER_EVICTION = 0.8  # of the allowed size, so that not every commit evicts
_TOMBSTONE = 64  # approximate bytes that an eviction adds for each thing
_LINE = 512  # approximate bytes that it adds once
# Bytes that remain of an evicted event: the head that recorded it, its part of the head that evicted it, and its place in a trace. Measured:
# 370 to 470 where its id is short or generated, 580 for a commit, 700 for a span of a trace and for an event with a link.
_AUDIT = 500
_AUDITS = 0.25  # of the allowed size: what remains of evicted events may take so much before it is summed up
SUMS = "evicted"  # in the body of the operation that summed them up: day -> type -> how many

Sums = dict[str, dict[str, int]]


class Evictable(Protocol):
    """What may be evicted of one line of belief, by numbers."""

    def oldest(
        self,
        kinds: frozenset[str] | None,
        before: Instant | None,
        now: Instant,
        *,
        tombstones: bool = False,
    ) -> list[int]:
        """Return what may be evicted, the oldest first: events, and nodes of `kinds` that have ended by `before` (default `now`); with
        `tombstones` what was evicted earlier as well."""
        ...

    @property
    def evicted(self) -> list[int]:
        """Return the events that were evicted before."""
        ...

    def number(self, id: str) -> int | None:
        """Return the number of an id; None where it is not known on this line."""
        ...

    def name(self, ent: int) -> str:
        """Return the id of one of these."""
        ...

    def kind(self, ent: int) -> str:
        """Return the kind of a node, or the type of an event."""
        ...

    def last(self, ent: int) -> Instant:
        """Return when an event happened last."""
        ...

    def size(self, ent: int) -> int:
        """Return what the contents of one take, in bytes."""
        ...


class Content(NamedTuple):
    """A node that is not forgotten: when it was first recorded, its id and its scope."""

    born: Instant
    name: str
    scope: str


def enough(of: Evictable, ents: list[int], bytes_over: int, keep_audit: bool) -> list[int]:
    """Return the first of `ents` whose removal frees more than so many bytes."""
    taken = []
    bytes_over += _LINE if bytes_over >= 0 else 0
    for ent in ents:
        if bytes_over <= 0:
            break
        bytes_over -= freed(of, [ent], keep_audit)
        taken.append(ent)
    return taken


def outgrown(of: Evictable, size: int, allowed: int, now: Instant) -> tuple[list[int], bool]:
    """Return what is to go from a journal of more than the allowed bytes, the oldest events; and whether nothing is to remain of them, nor of the
    events that were evicted before. Never all that stand: where that would not do, the older half."""
    over = size - int(allowed * AFTER_EVICTION)
    there = of.oldest(None, None, now)
    ents = _not_all(there, enough(of, there, over, True))
    evicted = of.evicted
    if (len(evicted) + len(ents)) * _AUDIT <= allowed * _AUDITS:
        return ents, False
    ents = _not_all(there, enough(of, there, over - len(evicted) * _AUDIT, False))
    return evicted + ents, True


def _not_all(there: list[int], ents: list[int]) -> list[int]:
    return ents if len(ents) < len(there) else ents[: len(ents) // 2]


def sums_of(of: Evictable, ents: Iterable[int]) -> Sums:
    """Return how many events of which type happened last on which day, of UTC."""
    sums: Sums = {}
    for ent in ents:
        day, kind = sums.setdefault(moment(of.last(ent)).date().isoformat(), {}), of.kind(ent)
        day[kind] = day.get(kind, 0) + 1
    return sums


def together(one: Sums, other: Sums) -> Sums:
    """Both sums as one."""
    return {
        day: dict(Counter(one.get(day, {})) + Counter(other.get(day, {}))) for day in sorted({*one, *other})
    }


def freed(of: Evictable, ents: list[int], keep_audit: bool) -> int:
    """Return how many bytes the removal of their contents frees, approximately."""
    contents = [of.size(ent) for ent in ents]
    if keep_audit:
        return sum(max(size - _TOMBSTONE, 0) for size in contents)
    return sum(contents) + 4 * _TOMBSTONE * len(ents)


def forget(work: Transaction, verb: str, names: list[str], raw: Raw) -> None:
    """Record that things are forgotten, here or on a branch, and stop believing them. An evicted event keeps its place in its trace."""
    index = work.index
    for name in names:
        op, ent = work.op(verb, name), index.ids.get(name, -1)
        if ent >= 0:
            if verb == "evict" and index.is_event[ent] and (place := _place(index, raw, ent)):
                work.leave(op, {"place": place})
            work.take(ent, (BEGINNING, OPEN), op)
        index.forget(ent, op)


def _place(index: WorkingSet, raw: Raw, ent: int) -> Json:
    ver = index.versions_of[ent][0]
    body = bytes(raw(index.v_pos[ver], index.v_len[ver])) if index.v_len[ver] else b""
    return spans.place(orjson.loads(body)) if b'"trace_id":"' in body else {}


def without_trace(
    tx: Instant, count: int, author: str | None, reason: str | None, sums: Sums | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the line that records that things were removed, without naming them; with `sums` how many of what were, of which day."""
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
