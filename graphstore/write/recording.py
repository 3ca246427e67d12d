"""Record an event: a new one, or an occurrence of the event with the same fingerprint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.occurrences import EventsAt, print_of
from graphstore.read.working_set import WorkingSet
from graphstore.values.drawn_ids import drawn
from graphstore.values.event_fields import differing
from graphstore.values.findings import Recorded
from graphstore.values.fingerprints import MENDING, SINGLE, digest
from graphstore.values.inputs import text_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, period
from graphstore.values.random_bits import random_64
from graphstore.values.vocabulary import creator_of
from graphstore.write.act import Act
from graphstore.write.given_arguments import Noted, Verb, is_given, known_ids
from graphstore.write.linking import LinkClaim, LinkEnds, Linking
from graphstore.write.transaction import Transaction

TOLD_APART = "told apart"
"""The setting: fingerprints for which each text is an event of its own."""


@dataclass(frozen=True, slots=True)
class RecordEvent(Verb[Recorded]):
    """See `GraphStore.record_event`. `type` and `body` are checked. `at`: None for now. `related_to`: ids of what it is about."""

    type: str
    body: Json
    id: str | None = None
    at: Instant | None = None
    related_to: tuple[str, ...] = ()
    name: ClassVar = "record_event"
    recorded: ClassVar[dict[str, Noted]] = {"id": is_given, "related_to": known_ids}

    def apply(self, act: Act) -> Recorded:
        """Record the event, or one more occurrence of it."""
        return Recording(act).record(self)


class WrittenEvent(NamedTuple):
    """Names the event of a report, whether it is new, and warnings about what could not be done."""

    ent: int
    is_new: bool
    warnings: tuple[str, ...] = ()


class Recording:
    """Records the events of one transaction."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.core, self.index, self.work = act.core, act.index, act.work

    def record(self, report: RecordEvent) -> Recorded:
        """Write a report. Returns its event as it is now."""
        report = self._to_the_letter(report)
        written = self.write(report)

        def make() -> Recorded:
            sight = self.act.sight()
            event = sight.event_and_links(written.ent, report.body if written.is_new else None)
            return Recorded.made({"event": event, "is_new": written.is_new, "warnings": written.warnings})

        return self.work.answer(Recorded, make)

    def write(self, report: RecordEvent) -> WrittenEvent:
        """Write a report. Writes nothing if its id is known, an occurrence if its fingerprint is known, else a new event.

        Raises ConflictError if the id is known with other content.
        """
        known = -1 if report.id is None else self._same(report, report.id)
        if known >= 0:
            return WrittenEvent(known, is_new=False)
        when = self.work.tx if report.at is None else report.at
        report = self._to_the_letter(report)
        ent = self._alike(report)
        is_new = ent < 0
        if is_new:
            ent, op = self._new(report, when)
        else:
            op = self.work.op("record_event", self.index.names[ent])
            first = self.act.body(self.index.versions_of[ent][0])
            self.work.happen_again(ent, when, op, differing(first, report.body))
        agent = report.body.get("agent")
        maker = f"agent:{agent}" if agent else "store"
        warnings = [self._relate(ent, other, when, maker, op) for other in report.related_to]
        return WrittenEvent(ent, is_new, tuple(filter(None, warnings)))

    def _new(self, report: RecordEvent, when: Instant) -> tuple[int, int]:
        name = self.new_id(when) if report.id is None else self.act.free_id(report.id)
        op = self.work.op("record_event", name)
        ent = self.index.add_entity(name, True, report.type, None, "", self.work.tx)
        self.work.describe(ent, [period(when, OPEN)], report.body, op)
        self.index.note_print(ent, report.body)
        return ent, op

    def new_id(self, at: Instant) -> str:
        """Return a new id for an event that happened at this instant."""
        return drawn(lambda: f"evt_{at // 1000}_{random_64()[:8]}", self.index.ids)

    def _same(self, report: RecordEvent, id: str) -> int:
        """Return the event with that id; -1 if the id is unknown. Raises ConflictError if its content is different."""
        index = self.index
        ent: int = index.ids.get(text_of("id", id), -1)
        if ent < 0:
            return -1
        if not index.is_event[ent]:
            raise ConflictError(f"{id!r} is a node already. Choose another id for the event.")
        ver = index.versions_of[ent][0]
        was = self.core.body(index.v_pos[ver], index.v_len[ver])
        was.pop("salt", None)
        happened = {index.first_reported(ent), *(index.s_at[row] for row in index.seen_of.get(ent, ()))}
        if (
            index.kind[ent] != report.type
            or was != report.body
            or (report.at is not None and report.at not in happened)
        ):
            raise ConflictError(
                f"event {id!r} is known with other content. An event is never revised: record a new one and link it."
            )
        return ent

    def _to_the_letter(self, report: RecordEvent) -> RecordEvent:
        """Return the report. If texts with its fingerprint are to be distinguished, it gets a fingerprint of its exact text."""
        body = report.body
        if not may_repeat(report) or body["fingerprint"] not in (self.index.setting(TOLD_APART) or ()):
            return report
        own = digest(report.type, body["description"], body.get("source"))
        return replace(report, body={**body, "fingerprint": own})

    def _alike(self, report: RecordEvent) -> int:
        """Return the event that a report without an id repeats, or -1. Of several the last recorded one counts."""
        if not may_repeat(report):
            return -1
        for ent in reversed(self.index.prints.get(print_of(report.body), ())):
            if self.index.kind[ent] == report.type and can_come_again(self.index, ent, self.work.tx):
                return ent
        return -1

    def _relation(self, event: int, other: int) -> tuple[str, bool]:
        """Return the kind of the link between an event and what it is about; and True if the link runs from the other to the event."""
        index = self.index
        happened = EventsAt(index, self.core.raw, self.work.tx, self.work.tx)
        if index.kind[event] in MENDING and happened.can_be_open(other):
            return "resolved_by", True
        if index.is_event[other] and index.kind[other] in MENDING and happened.can_be_open(event):
            return "resolved_by", False
        return "related_to", False

    def _minted(self, there: list[int]) -> str | None:
        """Return the maker of the first of these links that was made with an event, by the store or for an agent. None if there is none."""
        for row in there:
            maker = self.index.c_by[self.index.k_claim[row]]
            if creator_of(maker) in ("store", "agent"):
                return maker
        return None

    def _relate(self, event: int, other: str, at: Instant, maker: str, op: int) -> str | None:
        """Link an event to what it is about, made by `maker` unless an earlier maker is known. Returns a warning if that is not possible."""
        index = self.index
        try:
            target = self.act.known(other)
            name, turned = self._relation(event, target)
            linking = Linking(self.core, self.work, op=op)
            ends = (target, event) if turned else (event, target)
            if (
                name == "resolved_by" and not turned
            ):  # from when the fix happened, whichever was recorded first
                at = index.start(target, self.work.tx) or at
            joined, span = LinkEnds(ends[0], linking.kind(name), ends[1]), (at, OPEN)
            known = self._minted(linking.overlapping(joined, span, self.work.tx))
            linking.join(joined, span, LinkClaim(created_by=known or maker))
        except (NotFoundError, InvalidError, ConflictError) as error:
            return f"recorded without the link to {other!r}: {error}"
        return None


def may_repeat(report: RecordEvent) -> bool:
    """Return True if a report counts as an occurrence of an existing event with its fingerprint."""
    return (
        report.id is None
        and "fingerprint" in report.body
        and report.type not in SINGLE
        and "authorized" not in report.body
    )


def can_come_again(index: WorkingSet, ent: int, tx: Instant) -> bool:
    """Return True if a report with the fingerprint of an event is an occurrence of it: it is believed, and nothing superseded it."""
    return bool(index.now_of[ent]) and not index.superseded(ent, tx, tx)


def occur(work: Transaction, id: str, at: Instant, own: Json) -> None:
    """Record one more occurrence of the believed event `id`, with any fingerprint. `own`: the fields that differ from the first report."""
    work.happen_again(work.index.ids[id], at, work.op("record_event", id), own)
