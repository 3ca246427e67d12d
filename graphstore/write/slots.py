"""Slots: what a new value does to the values already there, and how the same value again confirms one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from graphstore.values import sameness
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.inputs import event_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, Period
from graphstore.values.vocabulary import maker_of
from graphstore.write.act import Act
from graphstore.write.linking import Claim, Ends, Linking
from graphstore.write.recording import Recording, Report
from graphstore.write.trust import Trust

_MINTED = ("transition", "contradicts")  # beside `supersedes`


class Slot(NamedTuple):
    """Where a value belongs: at most one of a key and scope holds at a time, whatever its kind. `kind`: that of the value."""

    kind: str
    key: str
    scope: str


class Filling:
    """One value put into a slot, in one transaction. `named`: what it supersedes explicitly, `corrected`: what it corrects; the value does not end
    where one of these begins."""

    def __init__(
        self,
        act: Act,
        slot: Slot,
        start: Instant,
        stop: Instant | None,
        named: frozenset[int] = frozenset(),
        corrected: frozenset[int] = frozenset(),
        source: str | None = None,
    ) -> None:
        self.core, self.index, self.work = act.core, act.index, act.work
        self.slot = slot
        self.named, self.corrected, self.source = named, corrected, source
        self.during, self.rows = self._place(start, stop)
        ents = {self.index.r_ent[row] for row in self.rows}
        self._lasting = {ent for ent in ents if self._ends(ent) > self.during[1]}

    def restated(self, body: Json) -> int:
        """Return the row with the same content over the whole period, or -1."""
        index, (start, stop) = self.index, self.during
        for row in self.rows:
            is_whole = index.r_from[row] <= start and stop <= index.r_to[row]
            if is_whole and index.kind[index.r_ent[row]] == self.slot.kind:
                held = self._body(row)
                if sameness.alike(held["content"], body["content"]) and _same_text(held, body):
                    return row
        return -1

    def refuse_untrusted(self) -> None:
        """Raise ConflictError when the source would close a value of a source or author that ranks higher."""
        trust = Trust(self.core, self.work.author, self.source)
        for row in self._met() if trust.ranks else ():
            trust.guard(self.index.r_ent[row], [self.during])

    def close(self, new: int, reason: str | None, op: int) -> None:
        """End what held there for the period of the new value, and link the value with what it replaced."""
        start, stop = self.during
        for row in self._met():
            ent = self.index.r_ent[row]
            if ent in self.corrected:
                continue
            if self.index.r_from[row] <= start:
                # whether a prior value holds again after the new one
                until = stop if ent in self._lasting else OPEN
                claim = Claim(reason=reason, created_by=maker_of(self.source, self.work.author))
                self._replace(new, ent, (start, until), claim, op)
            elif ent not in self.named:
                self.work.take(ent, self.during, op)

    def follow(self, new: int, op: int) -> None:
        """Link the next value with the new one that ends where it begins, unless that would close a cycle."""
        index, stop = self.index, self.during[1]
        linking = Linking(self.core, self.work)
        for row in self.rows:
            ends = Ends(index.r_ent[row], linking.kind("supersedes"), new)
            if index.r_from[row] == stop and not linking.closes_cycle(ends, self.work.tx):
                self._replace(ends.source, new, (stop, OPEN), Claim(), op)

    def _replace(self, new: int, old: int, during: Period, claim: Claim, op: int) -> None:
        linking = Linking(self.core, self.work, source=self.source, op=op)
        minted = replace(claim, created_by="store")
        chosen = claim if old in self.named else minted
        linking.supersede(new, old, chosen, since=during[0], until=during[1])
        for name in _MINTED:
            linking.join(Ends(new, linking.kind(name), old), during, minted)

    def _place(self, start: Instant, stop: Instant | None) -> tuple[Period, list[int]]:
        """How long the value holds from `start` on: until `stop` if given, else until the next value begins; what holds over that time, and what begins
        where it ends."""
        index, gives_way = self.index, self.named | self.corrected
        begins = index.r_from.__getitem__
        rows = index.held((self.slot.key, self.slot.scope))
        if stop is None:
            later = rows.first_since(start + 1)
            while later >= 0 and index.r_ent[later] in gives_way:
                later = rows.first_since(begins(later) + 1)
            stop = OPEN if later < 0 else begins(later)
        first = rows.last_before(start + 1)
        return (start, stop), [*([first] if first >= 0 else ()), *rows.between(start + 1, stop + 1)]

    def _ends(self, ent: int) -> Instant:
        return self.index.r_to[self.index.now_of[ent][-1]]

    def _met(self) -> list[int]:
        index, (start, stop) = self.index, self.during
        return [row for row in self.rows if index.r_from[row] < stop and start < index.r_to[row]]

    def _body(self, row: int) -> Json:
        index = self.index
        ver = index.r_ver[row]
        return self.core.body(index.v_pos[ver], index.v_len[ver])


def _same_text(held: Json, body: Json) -> bool:
    """Return True if two descriptions with similar contents have the same text; beside contents, one text may be absent."""
    one, other = held.get("text"), body.get("text")
    if one is None or other is None:
        return one == other or bool(held["content"])
    return sameness.same(one, other)


def confirm(act: Act, row: int, reason: str | None, said: Json) -> None:
    """Record a confirmation of a row; one from another source is an event that supports the thing. `said`: the `source`, and of a value that is said again
    all that describes it."""
    index, work = act.index, act.work
    ent, ver = index.r_ent[row], index.r_ver[row]
    name = index.names[ent]
    op = work.op("confirm", name, reason)
    held = act.core.body(index.v_pos[ver], index.v_len[ver])
    work.hold(op, {name: value for name, value in said.items() if value != held.get(name)})
    source = said.get("source")
    if source is None or source == held.get("source"):
        return
    text = f"{source} says so too"  # the reason stays with the operation, so that erasing the thing takes it along
    type, body = event_of(
        CONFIRMATION, text, "system", None, source=source, fingerprint=f"{name} by {source}"
    )
    written = Recording(act).write(Report(type, body))
    linking = Linking(act.core, work, op=op)
    linking.join(Ends(written.ent, linking.kind("supports"), ent), (work.tx, OPEN), Claim(created_by="store"))
