"""Recording a link: whether it exists already, is allowed, or closes a cycle; and the validity a supersession takes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from graphstore.core.index.index import Index
from graphstore.core.read.sight import Core, in_time
from graphstore.core.write.transaction import Transaction
from graphstore.core.write.trust import Trust
from graphstore.errors import ConflictError, InvalidError
from graphstore.values.inputs import printable
from graphstore.values.models import Json
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, coalesce, exactly, overlap
from graphstore.values.vocabulary import Kind


class Ends(NamedTuple):
    """The ends and the kind of a link, as entity numbers."""

    source: int
    kind: Kind
    target: int


def beside(index: Index, link: int, kind: str) -> list[int]:
    """The links of another kind with the same ends."""
    source, target = index.l_src[link], index.l_tgt[link]
    return [
        other for other in index.out[source] if index.l_kind[other] == kind and index.l_tgt[other] == target
    ]


@dataclass
class Claim:
    """The attributes of a link besides its ends and its period."""

    reason: str | None = None
    strength: int | None = None
    created_by: str = "user"
    metadata: Json = field(default_factory=dict)
    inferred: bool = False
    id: str | None = None  # the id wanted for a new link

    def body(self) -> Json:
        """The body for the journal; empty without reason and metadata."""
        fields: Json = {} if self.reason is None else {"reason": self.reason}
        if self.metadata:
            fields["metadata"] = self.metadata
        return fields


class Linking:
    """The links of one transaction."""

    def __init__(self, core: Core, work: Transaction, source: str | None = None) -> None:
        self.core = core
        self.index = core.index
        self.work = work
        self.trust = Trust(core, work.author, source)

    def kind(self, name: str) -> Kind:
        """A kind by its canonical name."""
        return self.core.vocabulary.kinds[name]

    def supersede(
        self,
        new: int,
        old: int,
        claim: Claim,
        op: int = -1,
        *,
        verb: str = "supersede",
        since: Instant | None = None,
        until: Instant = OPEN,
    ) -> int:
        """Record `new supersedes old`, and take from `old` its validity from then on. Returns the link's row."""
        index = self.index
        begun = index.start(new, self.work.tx)
        if old in index.gone:
            raise ConflictError(f"{index.names[old]!r} is {index.word(old)}: it cannot be superseded.")
        if begun is None:
            raise ConflictError(
                f"nothing is believed of {index.names[new]!r}: it cannot supersede {index.names[old]!r}."
            )
        first = index.start(old, self.work.tx)
        start = begun if since is None else since
        cut = start if first is None else max(start, first)
        if cut >= until:
            raise InvalidError(
                f"{index.names[new]!r} would supersede {index.names[old]!r} from {exactly(cut)}, but the link would end at {exactly(until)}. "
                "Give a later valid_to, or none."
            )
        span = (cut, until)
        before = len(index.k_link)
        row = self.join(Ends(new, self.kind("supersedes"), old), span, claim, op, verb=verb)
        link = index.k_link[row]
        held = (index.k_from[row], index.k_to[row])
        if row >= before:
            op = index.k_op[row]
        elif not index.is_event[old] and any(overlap(held, during) for during in self.work.validity(old)):
            op = self._op(op, verb, link)  # recorded before, but the old one was revised since
        if op >= 0 and not index.is_event[old]:
            self.trust.guard(old, [held])
            gone = self.work.take(old, held, op)
            if gone or row >= before:
                self.work.set_taken(link, [*index.taken.get(link, ()), *gone])
        return row

    def correct(self, new: int, old: int, span: Period, reason: str | None) -> None:
        """Take back the old thing over the part of `span` that the new one holds; an event whole. Raises ConflictError for what a more trusted source said."""
        index, work = self.index, self.work
        spans = coalesce(
            part for row in index.now_of[new] if (part := overlap((index.r_from[row], index.r_to[row]), span))
        )
        if index.is_event[old] and spans:
            spans = [ALWAYS]
        self.trust.guard(old, spans)
        there = [(index.r_from[row], index.r_to[row]) for row in index.now_of[old]]
        if any(overlap(part, during) for part in spans for during in there):
            op = work.op("correct", index.names[old], reason)
            for part in spans:
                work.take(old, part, op)
        for part in spans if index.now_of[old] else spans and [ALWAYS]:
            work.drop_kept(old, part)

    def join(self, ends: Ends, span: Period, claim: Claim, op: int = -1, *, verb: str = "link") -> int:
        """The row of the link: an existing one, or a new one by the operation `op` or by one of its own."""
        index = self.index
        source, kind, target = ends
        if source == target:
            raise InvalidError(f"{index.names[source]!r} cannot be linked to itself.")
        there = self.overlapping(ends, span, self.work.tx)
        if there:
            return self._again(there, ends, span, claim, op, verb)
        self._refuse_senseless(ends, span[0], self.work.tx)
        if kind.acyclic:
            self._refuse_cycle(ends, self.work.tx)
        name = self.new_link_id() if claim.id is None else self._free_link_id(claim.id)
        link = index.add_link(name, source, kind.name, target)
        return self.claim(link, span, claim, self._op(op, verb, link))

    def _op(self, op: int, verb: str, link: int) -> int:
        if op >= 0:
            return op
        index = self.index
        return self.work.op(verb, index.l_name[link] if verb == "link" else index.names[index.l_tgt[link]])

    def claim(self, link: int, span: Period, claim: Claim, op: int) -> int:
        """Set the attributes of a link over a period. Returns the row."""
        return self.work.claim(
            link,
            span,
            strength=claim.strength,
            inferred=claim.inferred,
            by=claim.created_by,
            body=claim.body(),
            op=op,
        )

    def overlapping(self, ends: Ends, span: Period, tx: Instant) -> list[int]:
        """The believed rows of a link with these ends (either way round for a symmetric kind) over a common valid period."""
        index = self.index
        source, kind, target = ends
        pairs = [(source, target), (target, source)] if kind.symmetric else [(source, target)]
        rows = []
        for one, two in pairs:
            out, into = index.out.get(one, ()), index.into.get(two, ())
            for link in out if len(out) <= len(into) else into:
                if index.l_src[link] == one and index.l_tgt[link] == two and index.l_kind[link] == kind.name:
                    rows += [
                        r
                        for r in index.believed_link(link, tx)
                        if overlap((index.k_from[r], index.k_to[r]), span)
                    ]
        return rows

    def _again(self, there: list[int], ends: Ends, span: Period, claim: Claim, op: int, verb: str) -> int:
        index = self.index
        others = [row for row in there if not self._states(row, claim)]
        if not others:
            return there[0]
        fixed = [row for row in others if not self._gives_way(row, claim)]
        if fixed or len({index.k_link[row] for row in there}) > 1:
            name = index.l_name[index.k_link[(fixed or others)[0]]]
            raise ConflictError(
                f"{index.names[ends.source]} {ends.kind.name} {index.names[ends.target]} is there already as {name!r} with other "
                f"attributes over part of that time. unlink({name!r}) it first, or give the same attributes."
            )
        link = index.k_link[there[0]]
        return self.claim(link, span, claim, self._op(op, verb, link))

    def _gives_way(self, row: int, claim: Claim) -> bool:
        """Whether an explicit claim replaces a row: one that was inferred, or created by the store."""
        claimed = self.index.k_claim[row]
        minted = self.index.c_by[claimed] == "store" != claim.created_by
        return not claim.inferred and (bool(self.index.c_inferred[claimed]) or minted)

    def _states(self, row: int, claim: Claim) -> bool:
        index = self.index
        number = index.k_claim[row]
        body = self.core.body(index.c_pos[number], index.c_len[number])
        return (
            body.get("reason") == claim.reason
            and body.get("metadata", {}) == claim.metadata
            and (index.c_strength[number] or None) == claim.strength
            and bool(index.c_inferred[number]) == claim.inferred
            and index.c_by[number] == claim.created_by
        )

    def _refuse_senseless(self, ends: Ends, since: Instant, tx: Instant) -> None:
        index = self.index
        source, kind, target = ends
        if kind.causal and not in_time(index, source, target, since, tx):
            begun = index.start(target, tx) or 0
            raise InvalidError(
                f"a cause may not start after its effect: {index.names[target]!r} begins at {exactly(begun)}, after {index.names[source]!r}. "
                f"Turn the link round, or give the valid_from at which the effect began."
            )
        if kind.forward:
            first, second = index.start(source, tx), index.start(target, tx)
            if first is not None and second is not None and first > second:
                raise InvalidError(
                    f"{kind.name} runs from earlier to later: {index.names[source]!r} begins at {exactly(first)}, after "
                    f"{index.names[target]!r} at {exactly(second)}. Turn the link round."
                )

    def _refuse_cycle(self, ends: Ends, tx: Instant) -> None:
        """Raise ConflictError when the target already leads to the source by believed links of this kind, whatever their periods."""
        if self.closes_cycle(ends, tx):
            source, target = self.index.names[ends.source], self.index.names[ends.target]
            raise ConflictError(
                f"{source!r} {ends.kind.name} {target!r} would close a cycle: {target!r} already leads to {source!r} by {ends.kind.name}."
            )

    def closes_cycle(self, ends: Ends, tx: Instant) -> bool:
        """Whether the target already leads to the source by believed links of this kind, whatever their periods."""
        index = self.index
        source, kind, target = ends

        def onward(ent: int, side: dict[int, list[int]]) -> list[int]:
            return [
                n for n in side.get(ent, ()) if index.l_kind[n] == kind.name and index.believed_link(n, tx)
            ]

        if not onward(source, index.into):
            return False
        seen, todo = {target}, [target]
        while todo:
            for link in onward(todo.pop(), index.out):
                ent = index.l_tgt[link]
                if ent == source:
                    return True
                if ent not in seen:
                    seen.add(ent)
                    todo.append(ent)
        return False

    def new_link_id(self) -> str:
        """A link id that is not known yet."""
        known = self.index.link_ids
        while (name := f"lnk_{os.urandom(8).hex()}") in known:
            pass
        return name

    def _free_link_id(self, name: str) -> str:
        printable("link id", name)
        if name in self.index.link_ids:
            raise ConflictError(f"link {name!r} is known already. Choose another id.")
        return name
