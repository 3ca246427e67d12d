"""Fill slots: decide what a new value does to the existing values, and when a repeated value confirms one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from graphstore.read.columns import ENDED
from graphstore.values import sameness
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.inputs import event_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, Period, coalesce, without_all
from graphstore.values.vocabulary import maker_of
from graphstore.write.act import Act
from graphstore.write.bounds import MINTED, Bounds
from graphstore.write.linking import LinkClaim, LinkEnds, Linking
from graphstore.write.recording import RecordEvent, Recording
from graphstore.write.trust import Trust


class Slot(NamedTuple):
    """Names the slot of a value: a key and a scope hold at most one value at a time, of any kind. `kind`: the kind of this value."""

    kind: str
    key: str
    scope: str


class Filling:
    """Puts one value into a slot, in one transaction. The value does not end where an entity of `named` (superseded explicitly) or `corrected` begins."""

    def __init__(
        self,
        act: Act,
        slot: Slot,
        start: Instant,
        stop: Instant | None,
        *,
        named: frozenset[int] = frozenset(),
        corrected: frozenset[int] = frozenset(),
        source: str | None = None,
    ) -> None:
        self.core, self.index, self.work = act.core, act.index, act.work
        self.slot = slot
        self.named, self.corrected, self.source = named, corrected, source
        self.stop = OPEN if stop is None else stop  # the end of the stated period
        self.rows: list[int] = []
        self._unsure: list[Period] = []  # periods in which a hidden value may win
        self.spans = self._place(start, stop)

    def restated(self, body: Json) -> int:
        """Return the row that already has this content at the start and is stated for the whole period, or -1."""
        index, start = self.index, self.spans[0][0]
        for row in self.rows:
            ent = index.r_ent[row]
            if index.r_from[row] <= start < index.r_to[row] and index.kind[ent] == self.slot.kind:
                held = self._body(row)
                if not sameness.alike(held["content"], body["content"]) or not _same_text(held, body):
                    return -1
                wanted = (start, self.spans[0][1] if index.stated_start(ent) == start else self.stop)
                whole = index.r_to[row] >= self.spans[-1][1]
                return row if whole and wanted in index.stated_over(ent, wanted) else -1
        return -1

    def refuse_untrusted(self) -> None:
        """Raise ConflictError if the value would close one whose source or author ranks higher."""
        trust = Trust(self.core, self.work.author, self.source)
        for row in self._met() if trust.ranks else ():
            trust.guard(self.index.r_ent[row], self.spans)

    def close(self, new: int, reason: str | None, op: int) -> None:
        """End the values that held during the period of the new value, and link the new value to what it replaced."""
        index, work = self.index, self.work
        bounds = Bounds(self.core, work, source=self.source, op=op)
        if left := without_all((self.spans[0][0], self.stop), self.spans):
            work.keep(new, [(index.versions_of[new][-1], *part) for part in left])
        met: dict[int, list[Period]] = {}
        for row in self._met():
            met.setdefault(index.r_ent[row], []).append((index.r_from[row], index.r_to[row]))
        for ent, parts in met.items():
            if ent in self.corrected or ent in self.named:
                continue
            for span in self.spans:
                work.keep(ent, work.stop_believing(ent, span, op))
            for first, _ in parts:
                bounds.mint(new, ent, max(first, self.spans[0][0]), LinkClaim(reason), op)
        bounds.settle((self.slot.key, self.slot.scope), self._unsure)
        for ent in sorted(self.named & met.keys()):
            if (index.stated_start(ent) or 0) <= self.spans[0][0]:
                self._succeed(bounds, new, ent, reason)

    def _succeed(self, bounds: Bounds, new: int, old: int, reason: str | None) -> None:
        """Link the new value to a value that it supersedes by name."""
        index = self.index
        claim = LinkClaim(reason=reason, created_by=maker_of(self.source, self.work.author))
        row = bounds.supersede(new, old, claim)
        for name in MINTED[1:]:
            bounds.join(
                LinkEnds(new, bounds.kind(name), old),
                (index.k_from[row], index.k_to[row]),
                replace(claim, created_by="store"),
            )

    def link_next(self, new: int, op: int) -> None:
        """Link the next value to the new value, if it begins where the new one ends."""
        index = self.index
        bounds = Bounds(self.core, self.work, source=self.source, op=op)
        for _, stop in self.spans:
            for row in self.rows:
                if index.r_from[row] == stop:
                    bounds.mint(index.r_ent[row], new, stop, LinkClaim(), op)

    def _place(self, start: Instant, stop: Instant | None) -> list[Period]:
        """Return the periods in which the value wins from `start` on. They end at `stop` if given, else wherever a value with a later start holds. Sets `rows`."""
        index, gives_way = self.index, self.named | self.corrected
        rows = index.held((self.slot.key, self.slot.scope))
        row = rows.last_before(start + 1)
        if stop is not None:
            self.rows = [*([row] if row >= 0 else ()), *rows.between(start + 1, stop + 1)]
            return [(start, stop)]
        met = self.rows = [row] if row >= 0 else []
        spans, at = list[Period](), start
        while (row := rows.first_since(max(at, start + 1) if not met else index.r_from[met[-1]] + 1)) >= 0:
            if index.r_from[row] <= start:
                break
            met.append(row)
            ent = index.r_ent[row]
            if ent in gives_way or (index.stated_start(ent) or 0) <= start:
                continue
            if at < index.r_from[row]:
                spans += self._without_ended((at, index.r_from[row]), start)
            at = index.r_to[row]
            if self._goes_on(ent, index.r_from[row], start):
                return spans
        return [*spans, *self._without_ended((at, OPEN), start)] if at < OPEN else spans

    def _without_ended(self, period: Period, start: Instant) -> list[Period]:
        """Return the parts of a period that no later value with an explicit end blocks. Nothing holds after such an end."""
        index = self.index
        plain = [row for row in self.rows if not index.has_given_end(index.r_ent[row])]
        if not without_all(period, [(index.r_from[row], index.r_to[row]) for row in plain]):
            return [period]  # a later value would win over what holds there
        bounds, ended = Bounds(self.core, self.work), list[Period]()
        for ent, (ver, *piece), _ in index.kept_in((self.slot.key, self.slot.scope), period, after=start):
            if ver == ENDED:
                whole = (piece[0], piece[1])
                ended += without_all(whole, bounds.limits(ent, whole))
        self._unsure += ended
        return without_all(period, ended)

    def _goes_on(self, ent: int, begins: Instant, start: Instant) -> bool:
        """Return True if a value holds from its start and is stated without an end. From there on no value that starts at `start` wins over it.

        A value with a given end that starts no later than `start` may win over it meanwhile, and gives that time to the one that starts at `start`.
        """
        index, bounds = self.index, Bounds(self.core, self.work)
        if index.has_given_end(ent) or index.stated_start(ent) != begins:
            return False
        rest = (begins, OPEN)
        whole = coalesce([*index.stated_over(ent, rest), *index.ended_over(ent, rest)]) == [rest]
        if not whole or bounds.limits(ent, rest):
            return False
        given = index.given_since((self.slot.key, self.slot.scope), ent)
        return not any(
            (index.stated_start(one) or 0) <= start and bounds.in_the_way(one, rest) for one in given
        )

    def _met(self) -> list[int]:
        index = self.index
        return [
            row
            for row in self.rows
            if any(index.r_from[row] < stop and start < index.r_to[row] for start, stop in self.spans)
        ]

    def _body(self, row: int) -> Json:
        index = self.index
        ver = index.r_ver[row]
        return self.core.body(index.v_pos[ver], index.v_len[ver])


def _same_text(held: Json, body: Json) -> bool:
    """Return True if two descriptions with similar contents have the same text. If there is content, one text may be missing."""
    one, other = held.get("text"), body.get("text")
    if one is None or other is None:
        return one == other or bool(held["content"])
    return sameness.same(one, other)


def confirm(act: Act, row: int, reason: str | None, said: Json) -> None:
    """Record a confirmation of a row. If another source confirms it, record an event that supports the thing.
    `said`: the `source`; for a value that is stated again, also all fields that describe it.
    """
    index, work = act.index, act.work
    ent, ver = index.r_ent[row], index.r_ver[row]
    name = index.names[ent]
    op = work.op("confirm", name, reason)
    held = act.core.body(index.v_pos[ver], index.v_len[ver])
    work.hold(op, {name: value for name, value in said.items() if value != held.get(name)})
    source = said.get("source")
    if source is None or source == held.get("source"):
        return
    text = f"{source} says so too"  # the reason is stored with the operation, so that erasing the thing erases it too
    type, body = event_of(
        CONFIRMATION, text, "system", None, source=source, fingerprint=f"{name} by {source}"
    )
    written = Recording(act).write(RecordEvent(type, body))
    linking = Linking(act.core, work, op=op)
    linking.join(
        LinkEnds(written.ent, linking.kind("supports"), ent), (work.tx, OPEN), LinkClaim(created_by="store")
    )
