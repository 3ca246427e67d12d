"""Describe a node again: `revise` writes a description over a time, `amend` changes fields of the existing ones. Only differences are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.columns import ENDED, Taken
from graphstore.values.content_diff import same
from graphstore.values.inputs import json_object, optional_text, part, version_body
from graphstore.values.models import Json, Node
from graphstore.values.period import (
    ALWAYS,
    OPEN,
    Period,
    TimeLike,
    coalesce,
    exactly,
    overlap,
    period,
    without_all,
)
from graphstore.write.act import Act
from graphstore.write.given_arguments import PERIOD, Noted, Verb, is_given, value_given
from graphstore.write.transaction import refuse_forgotten, refuse_taken_slot
from graphstore.write.trust import Trust, rank


@dataclass(frozen=True, slots=True)
class Revise(Verb[Node]):
    """See `GraphStore.revise`."""

    id: str
    content: Mapping[str, Any]
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    reason: str | None = None
    trigger: str = "user_feedback"
    source: str | None = None
    text: str | None = None
    tags: Iterable[str] | None = None
    minor: bool = False
    if_number: int | None = None
    name: ClassVar = "revise"
    recorded: ClassVar[dict[str, Noted]] = {
        **PERIOD, "tags": is_given, "source": is_given, "minor": value_given, "if_number": value_given,
    }  # fmt: skip

    def apply(self, act: Act) -> Node:
        """Write the description over the parts of the period where it differs from what is believed there."""
        index, work, source = act.index, act.work, self.source
        ent = act.known(self.id, node=True)
        refuse_forgotten(index, ent)
        spans = _revised(act, ent, self.valid_from, self.valid_to)
        act.expect(ent, self.if_number)
        describing = _Describing(act, ent)
        last = describing.body(work.last_version(ent))
        tags = last.get("tags", ()) if self.tags is None else self.tags
        body = version_body(self.content, self.text, tags, self.trigger, source)
        reason = optional_text("reason", self.reason)
        over, waiting = describing.rows(spans), describing.kept(spans)
        if not over or self.valid_to is not None:
            waiting = []  # what the caller states there holds
        alike = [
            (start, stop)
            for ver, start, stop in [
                *((index.r_ver[row], index.r_from[row], index.r_to[row]) for row in over),
                *waiting,
            ]
            if _alike(describing.body(ver), body, self.text is not None, source is not None)
        ]
        spans = coalesce(piece for span in spans for piece in without_all(span, alike))
        bounded = [
            part for _, *piece in waiting for span in spans if (part := overlap((piece[0], piece[1]), span))
        ]
        spans = [piece for span in spans for piece in without_all(span, bounded)]
        if not spans:
            return describing.left_alone(over)
        over = describing.rows(spans)
        trust = act.trust(source)
        trust.guard(ent, spans)
        if source is None:
            replaced = [index.r_ver[row] for row in over] or [work.last_version(ent)]
            if (same := describing.kept_source(replaced, trust)) is not None:
                body["source"] = same
        op = work.op("revise", index.names[ent], reason)
        if not self.minor:
            act.turn(ent, spans, body["content"], op, describing.body)
        row = work.describe(ent, spans, body, op)
        describing.keep(index.r_ver[row], [*spans, *bounded], bounded)
        refuse_taken_slot(index, ent, op)
        act.linking.enforce(ent)
        return act.written(ent, row, body)


@dataclass(frozen=True, slots=True)
class Amend(Verb[Node]):
    """See `GraphStore.amend`."""

    id: str
    patch: Mapping[str, Any]
    valid_from: TimeLike | None = None
    valid_to: TimeLike | None = None
    reason: str | None = None
    source: str | None = None
    if_number: int | None = None
    name: ClassVar = "amend"
    recorded: ClassVar[dict[str, Noted]] = {**PERIOD, "source": is_given, "if_number": value_given}

    def apply(self, act: Act) -> Node:
        """Change fields of each description that is believed in the period."""
        index, work = act.index, act.work
        ent = act.known(self.id, node=True)
        name = index.names[ent]
        refuse_forgotten(index, ent)
        during = part(self.valid_from, self.valid_to, act.time)
        describing = _Describing(act, ent)
        over = describing.rows([during])
        if not over:
            raise NotFoundError(
                f"nothing is believed of {name!r} over that time: there is nothing to amend. revise({name!r}, …) describes it anew there."
            )
        begins = index.stated_start(ent)
        if begins is not None and ALWAYS[0] < during[0] < begins:
            raise InvalidError(
                f"{name!r} begins {exactly(begins)}, after valid_from {exactly(during[0])}, and amend changes only what is there. Give a valid_from that is not before, "
                f"or leave it out for all of it; revise({name!r}, …, valid_from=) says what held before."
            )
        act.expect(ent, self.if_number)
        fields = json_object("patch", self.patch)
        source, reason = optional_text("source", self.source), optional_text("reason", self.reason)
        trust = act.trust(source)
        amended: dict[int, Json] = {}
        pieces: dict[int, list[Period]] = {}
        for row in over:
            ver = index.r_ver[row]
            old = describing.body(ver)
            content = {**old["content"], **fields}
            piece = overlap((index.r_from[row], index.r_to[row]), during)
            if piece is None or same(old["content"], content):
                continue
            pieces.setdefault(ver, []).append(piece)
            if ver not in amended:
                by = describing.kept_source([ver], trust) if source is None else source
                amended[ver] = version_body(content, old.get("text"), old.get("tags"), "user_feedback", by)
        if not amended:
            return describing.left_alone(over)
        trust.guard(ent, [piece for changed in pieces.values() for piece in changed])
        op = work.op("amend", name, reason)
        work.hold(op, {"patch": fields})
        for ver, body in amended.items():
            act.turn(ent, pieces[ver], body["content"], op, describing.body)
        written = {}
        for ver, body in amended.items():
            row = work.describe(ent, pieces[ver], body, op)
            written[row] = body
            kept = [(start, stop) for of, start, stop in describing.kept([during]) if of == ver]
            describing.keep(index.r_ver[row], [*pieces[ver], *kept], kept)
        act.linking.enforce(ent)
        versions = {index.r_ver[row]: row for row in written}
        now = index.find(ent, work.tx, work.tx)
        shown = versions.get(index.r_ver[now]) if now >= 0 else None
        if shown is None:
            shown = max(written, key=index.r_from.__getitem__)
        return act.written(ent, shown, written[shown])


class _Describing:
    """Reads what is believed of one node while it is described again. Each body is read once."""

    def __init__(self, act: Act, ent: int) -> None:
        self.act, self.index, self.ent = act, act.index, ent
        self._bodies: dict[int, Json] = {}

    def body(self, ver: int) -> Json:
        """Return the body of a version; {} for -1: all versions of the node were added and removed in one transaction."""
        if ver < 0:
            return {}
        found = self._bodies.get(ver)
        if found is None:
            found = self._bodies[ver] = self.act.body(ver)
        return found

    def rows(self, spans: Sequence[Period]) -> list[int]:
        """Return the rows believed over any of these periods, by valid time."""
        over, now = self.index.over, self.index.now_of[self.ent]
        if len(spans) == 1:
            return over(now, spans[0])
        return list(dict.fromkeys(row for span in sorted(spans) for row in over(now, span)))

    def kept(self, spans: Sequence[Period]) -> list[Taken]:
        """Return what is stated over any of these periods but does not hold, since another thing sets a bound there."""
        return [
            (ver, *part)
            for ver, start, stop in self.index.taken.get(self.ent, ())
            if ver != ENDED
            for span in spans
            if (part := overlap((start, stop), span))
        ]

    def keep(self, ver: int, spans: Sequence[Period], bounded: Sequence[Period]) -> None:
        """State a version over periods. Over the `bounded` ones it is kept and does not hold, since another thing sets a bound there."""
        pieces = self.index.taken.get(self.ent, ())
        left = [(other, *part) for other, start, stop in pieces for part in without_all((start, stop), spans)]
        left += [(ver, *part) for part in bounded]
        if left != list(pieces):
            self.act.work.set_taken(self.ent, left)

    def left_alone(self, rows: list[int]) -> Node:
        """Return the node if nothing had to be written: by the row that holds now if it is among `rows`, else by the last of them."""
        tx = self.act.work.tx
        now = self.index.find(self.ent, tx, tx)
        return self.act.shown(self.ent, now if now in rows else rows[-1])

    def kept_source(self, versions: Sequence[int], trust: Trust) -> str | None:
        """Return the source of the highest-ranked version; among equals, of the latest. None if the writer ranks lower, or if -1 is the only version (see `body`)."""
        index = self.index
        if max(versions) < 0:
            return None
        if not trust.ranks:
            source: str | None = self.body(max(versions, key=index.v_num.__getitem__)).get("source")
            return source

        def author(ver: int) -> str | None:
            return index.o_author[index.v_op[ver]] if index.v_op[ver] >= 0 else None

        def ranked(ver: int) -> tuple[float, int]:
            return rank(trust.ranks, self.body(ver).get("source"), author(ver)), index.v_num[ver]

        best = max(versions, key=ranked)
        source = self.body(best).get("source")
        return None if trust.outranked(source, author(best)) else source


def _alike(there: Json, body: Json, text: bool, source: bool) -> bool:
    """Return True if a version has the same content and tags as a description. Text and source are compared only if they were given."""
    return (
        there.get("tags", []) == body.get("tags", [])
        and (not text or there.get("text") == body.get("text"))
        and (not source or there.get("source") == body.get("source"))
        and same(there.get("content"), body["content"])
    )


def _revised(act: Act, ent: int, valid_from: TimeLike | None, valid_to: TimeLike | None) -> list[Period]:
    index = act.index
    name, now = index.names[ent], index.now_of[ent]
    if valid_from is None and valid_to is None:
        if not now:
            raise ConflictError(
                f"{name!r} has no validity left to describe anew. Give valid_from= (and valid_to=) to say when it holds."
            )
        return index.stated_over(ent, ALWAYS)
    if valid_from is not None:
        start = act.time(valid_from, "valid_from")
    elif now:
        start = index.stated_start(ent) or index.r_from[now[0]]
    else:
        raise ConflictError(f"{name!r} has no validity that valid_to could end. Give valid_from= as well.")
    if valid_to is not None:
        return [period(start, act.time(valid_to, "valid_to"))]
    if not now or index.r_to[now[-1]] <= start:
        return [period(start, OPEN)]
    return [period(start, index.stated_end(ent) or OPEN)]
