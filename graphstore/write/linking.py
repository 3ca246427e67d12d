"""Record links: find an existing one, refuse one that is not allowed or closes a cycle, and take the validity that a supersession takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from graphstore.errors import ConflictError, InvalidError
from graphstore.read.columns import Taken
from graphstore.read.working_set import WorkingSet
from graphstore.values.drawn_ids import drawn
from graphstore.values.inputs import new_name
from graphstore.values.models import Json
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, exactly, overlap, without_all
from graphstore.values.random_bits import random_64
from graphstore.values.vocabulary import JOINED, Kind, same_maker
from graphstore.view.rows import of_sentence
from graphstore.view.sight import Core, in_time
from graphstore.write.transaction import Transaction
from graphstore.write.trust import Trust

T = TypeVar("T")
Wanted = tuple[Instant | None, Instant]
"""The period of a link as a caller gives it. None as its start: the default start of the kind."""


class LinkEnds(NamedTuple):
    """Holds the ends and the kind of a link. The ends are entity numbers."""

    source: int
    kind: Kind
    target: int


@dataclass
class LinkClaim:
    """Holds the attributes of a link other than its ends and its period."""

    reason: str | None = None
    strength: int | None = None
    created_by: str = "user"
    metadata: Json = field(default_factory=dict)
    inferred: bool = False
    history: bool = False  # one end was made from the other in its state at that time
    id: str | None = None  # the id requested for a new link

    def body(self) -> Json:
        """Return the body for the journal; empty without a reason and metadata."""
        fields: Json = {} if self.reason is None else {"reason": self.reason}
        if self.metadata:
            fields["metadata"] = self.metadata
        return fields


class Linking:
    """Records the links of one transaction."""

    def __init__(
        self, core: Core, work: Transaction, *, source: str | None = None, verb: str = "link", op: int = -1
    ) -> None:
        """Start with the settings that all links share.

        Args:
            source: the source of what takes time from others; None for the author of the transaction.
            verb: the verb of the operation that records each link.
            op: one operation that records all links; -1 to record one operation for each link.
        """
        self.core = core
        self.index = core.index
        self.work = work
        self.trust = Trust(core, work.author, source)
        self._verb, self._operation = verb, op

    def kind(self, name: str) -> Kind:
        """Return a kind of link by its canonical name."""
        return self.core.vocabulary.kinds[name]

    def say(self, ends: LinkEnds, since: Instant | None, until: Instant, claim: LinkClaim) -> int:
        """Record `source kind target` from `since` on, with the effects of its kind on the ends. None: the default start of the kind. Returns the row."""
        if ends.kind.name == "supersedes":
            return self.supersede(ends.source, ends.target, claim, since=since, until=until)
        if ends.kind.name == "corrects":
            period = self._period(ends, (since, until))
            self._refuse_paradox(LinkEnds(ends.target, self.kind("supersedes"), ends.source), period)
            row = self.join(ends, period, claim)
            self.correct(ends.source, ends.target, period, claim.reason)
            return row
        return self.join(ends, (since, until), claim)

    def supersede(
        self, new: int, old: int, claim: LinkClaim, *, since: Instant | None = None, until: Instant = OPEN
    ) -> int:
        """Record `new supersedes old`, and end the validity of `old` from then on. Returns the link's row.

        Without `since`, it applies from the start of `new`. Repeating it keeps the same link and also takes what was described of `old` since.
        """
        index = self.index
        begun = index.start(new, self.work.tx)
        if old in index.gone:
            raise ConflictError(f"{index.names[old]!r} is {index.word(old)}: it cannot be superseded.")
        if begun is None:
            raise ConflictError(
                f"nothing is believed of {index.names[new]!r}: it cannot supersede {index.names[old]!r}."
            )
        is_event = index.is_event[old]
        started = index.start(old, self.work.tx) if is_event else index.stated_start(old)
        start, stop = index.stated_start(new) or begun if since is None else since, until
        cut = start if started is None else max(start, started)
        if since is None and until == OPEN and started is not None and not is_event:
            if started > self.work.tx:
                cut = started  # a plan: replace all of it
            else:
                stop = self._resumes(new, old, cut)
        if cut >= until:
            raise InvalidError(
                f"{index.names[new]!r} would supersede {index.names[old]!r} from {exactly(cut)}, but the link would end at {exactly(until)}. "
                "Give a later valid_to, or none."
            )
        self._refuse_paradox(LinkEnds(old, self.kind("corrects"), new), (cut, stop))
        ends, before = LinkEnds(new, self.kind("supersedes"), old), len(index.k_link)
        alike = self._alike(ends, self.work.tx)
        there = [row for row in alike if overlap(self._held(row), (cut, stop))]
        if there:
            said = (None if since is None else cut, until)
            rows = self._supersede_again(there, ends, said, claim)
        else:
            rows = [self._join(ends, (cut, stop), cut, alike, claim)]
        for row in rows:
            self._take(row, is_new=row >= before)
        return rows[0]

    def _refuse_paradox(self, back: LinkEnds, period: Period) -> None:
        """Raise ConflictError if a link that a caller recorded makes the same two things give way the other way round: neither would hold."""
        index = self.index
        source, target = index.names[back.source], index.names[back.target]
        if any(
            index.c_by[index.k_claim[row]] != "store" for row in self.overlapping(back, period, self.work.tx)
        ):
            raise ConflictError(
                f"{source!r} {back.kind.name} {target!r} already over part of that time, so neither would hold. "
                f"retract({source!r}) if it was wrong, and {target!r} holds again; or unlink that first."
            )

    def _resumes(self, new: int, old: int, cut: Instant) -> Instant:
        """Return when the old thing holds again: at the given end of its successor, if it is stated beyond that; else OPEN."""
        index = self.index
        if not index.has_given_end(new):
            return OPEN
        end = index.stated_end(new) or OPEN
        return end if end > cut and index.stated_over(old, (end, OPEN)) else OPEN

    def _supersede_again(self, there: list[int], ends: LinkEnds, said: Wanted, claim: LinkClaim) -> list[int]:
        """Return the rows of an existing supersession. Rows that the store minted become the caller's.

        Raises ConflictError for other attributes or another date: what it took would have to be given back or taken again.
        """
        index = self.index
        first, last = index.k_from[there[0]], index.k_to[there[-1]]
        moved = said[0] not in (None, first) or said[1] not in (OPEN, last)
        others = [row for row in there if not self._states(row, claim)]
        if moved or not all(self._gives_way(row, claim) for row in others):
            raise ConflictError(self._difference(there, ends, said, claim))
        rows = [row for row in there if row not in others]
        for row in others:
            link = index.k_link[row]
            rows.append(self.claim(link, self._held(row), claim, self._op(link)))
        return sorted(rows, key=index.k_from.__getitem__)

    def _take(self, row: int, *, is_new: bool) -> None:
        """Stop believing the superseded thing over the period of a row that supersedes it."""
        index = self.index
        link, held = index.k_link[row], self._held(row)
        old = index.l_tgt[link]
        if index.is_event[old]:
            return
        if not is_new and not index.over(index.now_of[old], held):
            return
        op = index.k_op[row] if is_new else self._op(link)
        self.trust.guard(old, [held])
        self.keep(old, self.work.stop_believing(old, held, op), op, index.l_src[link], [held])

    def keep(self, old: int, gone: list[Taken], op: int, by: int, spans: list[Period]) -> None:
        """Keep what thing `by` takes of thing `old` over some periods, to restore it when the bound is withdrawn. `op`: the operation, or -1."""
        self.work.keep(old, gone)

    def correct(self, new: int, old: int, span: Period, reason: str | None) -> None:
        """Stop believing the old thing over the part of `span` for which the new one is stated; an event is taken back whole. Raises ConflictError if a more trusted source
        recorded it."""
        index, work = self.index, self.work
        spans = index.stated_over(new, span)
        if index.is_event[old] and spans:
            spans = [ALWAYS]
        if any(index.over(index.now_of[old], part) for part in spans):
            self.trust.guard(old, spans)
            op = work.op("correct", index.names[old], reason)
            self.keep(
                old, [piece for part in spans for piece in work.stop_believing(old, part, op)], op, new, spans
            )
        else:
            self.keep(old, [], -1, new, spans)

    def join(self, ends: LinkEnds, span: Wanted, claim: LinkClaim) -> int:
        """Record a link over a period. Returns the last row written, or the row that already states the link.

        Writes nothing over times for which a link with the same attributes exists. Else it extends a link that overlaps or touches the period, or adds a new one.
        """
        return self._join(ends, self._period(ends, span), span[0], self._alike(ends, self.work.tx), claim)

    def _join(
        self, ends: LinkEnds, period: Period, since: Instant | None, alike: list[int], claim: LinkClaim
    ) -> int:
        """Implement `join`. `alike`: the believed rows of links with these ends."""
        index = self.index
        if ends.source == ends.target:
            raise InvalidError(f"{index.names[ends.source]!r} cannot be linked to itself.")
        there = [row for row in alike if overlap(self._held(row), period)] if alike else alike
        fresh = self._unsaid(there, ends, period, claim) if there else [period]
        if not fresh:
            return there[0]
        self._refuse_senseless(ends, since, period)
        if ends.kind.acyclic and not there:
            self._refuse_cycle(ends, self.work.tx)
        link = index.k_link[there[0]] if there else self._touched(alike, period, claim)
        if link < 0:
            name = self.new_link_id(ends) if claim.id is None else self._free_link_id(claim.id)
            link = index.add_link(name, ends.source, ends.kind.name, ends.target)
        op, row = self._op(link), -1
        for piece in fresh:
            for other in {index.k_link[row] for row in there} - {link}:
                self.work.take_link(other, piece, op)
            row = self.claim(link, piece, claim, op)
        return row

    def _period(self, ends: LinkEnds, span: Wanted) -> Period:
        since, until = span
        begins = self.begins(ends) if since is None else since
        if begins >= until:
            default = f" {ends.kind.name} begins by itself at {exactly(begins)}:" if since is None else ""
            raise InvalidError(
                f"empty period:{default} valid_from {exactly(begins)} is not before valid_to {exactly(until)}. "
                "A period is half-open, [from, to), and from must come first."
            )
        return begins, until

    def begins(self, ends: LinkEnds) -> Instant:
        """Return the default start of a link. For a dependency or a cause it is the start of the dependant. For a correction it is the start of what corrects; else the
        transaction's instant."""
        index, tx = self.index, self.work.tx
        if not (ends.kind.causal or ends.kind.rests or ends.kind.name == "corrects"):
            return tx
        start = index.start(ends.target if ends.kind.upholds else ends.source, tx)
        return tx if start is None else start

    def _unsaid(self, there: list[int], ends: LinkEnds, period: Period, claim: LinkClaim) -> list[Period]:
        """Return the parts of a period over which a claim must be written. Raises ConflictError where other attributes hold that it does not replace."""
        stated = [row for row in there if self._states(row, claim)]
        for row in there:
            if row not in stated and not self._gives_way(row, claim):
                raise ConflictError(self._difference([row], ends, period, claim))
        return without_all(period, map(self._held, stated))

    def _touched(self, alike: list[int], period: Period, claim: LinkClaim) -> int:
        """Return the link among these rows whose period touches `period`; -1 if there is none or the caller wants another id."""
        index = self.index
        for row in alike:
            name = index.l_name[index.k_link[row]]
            start, stop = self._held(row)
            if (stop == period[0] or start == period[1]) and claim.id in (None, name):
                return index.k_link[row]
        return -1

    def _held(self, row: int) -> Period:
        return self.index.k_from[row], self.index.k_to[row]

    def _op(self, link: int) -> int:
        """Return the operation that records a link."""
        if self._operation >= 0:
            return self._operation
        index = self.index
        supersedes = self._verb == "supersede"
        return self.work.op(self._verb, index.names[index.l_tgt[link]] if supersedes else index.l_name[link])

    def claim(self, link: int, span: Period, claim: LinkClaim, op: int) -> int:
        """Record that a link holds over a period with these attributes. Returns the row."""
        index, work, body = self.index, self.work, claim.body()
        if index.rows_of_link[link]:
            work.take_link(link, span, op)
        claims = index.claims_of[link]
        number = 1 + max(index.c_num[one] for one in claims) if claims else 1
        place = work.body(body) if body else (0, 0)
        said = claim.strength or 0, int(claim.inferred), int(claim.history), claim.created_by
        made = index.add_claim(link, number, said, place, op)
        if index.o_len[op] == 0:  # the body of the claim contains the reason of the operation
            index.o_pos[op], index.o_len[op] = place
        return index.open_link_row(made, span, work.tx, op)

    def overlapping(self, ends: LinkEnds, span: Period, tx: Instant) -> list[int]:
        """Return the believed rows of links with these ends that overlap a period, by valid_from. A symmetric kind matches in both directions."""
        return [row for row in self._alike(ends, tx) if overlap(self._held(row), span)]

    def _alike(self, ends: LinkEnds, tx: Instant) -> list[int]:
        """Return the believed rows of links with these ends, by valid_from."""
        index = self.index
        rows = [row for link in of_sentence(index, *ends) for row in index.believed_link(link, tx)]
        return sorted(rows, key=index.k_from.__getitem__) if len(rows) > 1 else rows

    def _difference(self, rows: list[int], ends: LinkEnds, said: Wanted, claim: LinkClaim) -> str:
        """Return the message for a link that exists with other attributes or another period."""
        index = self.index
        name = index.l_name[index.k_link[rows[0]]]
        start, stop = index.k_from[rows[0]], index.k_to[rows[-1]]
        there = f"from {exactly(start)}" + ("" if stop >= OPEN else f" to {exactly(stop)}")
        other = next((row for row in rows if not self._states(row, claim)), rows[0])
        unlike = [
            f"{what} {was!r}, not {wanted!r}"
            for (what, was), wanted in zip(
                self._said(other).items(), _attributes(claim).values(), strict=True
            )
            if was != wanted
        ]
        if ends.kind.name == "supersedes":
            if said[0] not in (None, start):
                unlike.append(f"from {exactly(start)}, not {exactly(said[0] or 0)}")
            if said[1] not in (OPEN, stop):
                unlike.append(f"to {exactly(stop)}, not {exactly(said[1])}")
        return (
            f"{index.names[ends.source]} {ends.kind.name} {index.names[ends.target]} is there already as {name!r} {there}, otherwise: "
            f"{'; '.join(unlike)}. Say it as it is there, or unlink({name!r}) it first."
        )

    def _gives_way(self, row: int, claim: LinkClaim) -> bool:
        """Return True if an explicit claim replaces a row: the row was inferred, or the store created it."""
        claimed = self.index.k_claim[row]
        minted = self.index.c_by[claimed] == "store" != claim.created_by
        return not claim.inferred and (bool(self.index.c_inferred[claimed]) or minted)

    def _states(self, row: int, claim: LinkClaim) -> bool:
        said, wanted = self._said(row), _attributes(claim)
        if same_maker(said["created_by"], claim.created_by):
            said["created_by"] = claim.created_by
        return said == wanted

    def _said(self, row: int) -> Json:
        """Return the attributes of a row."""
        return _attributes(claim_of(self.core, row))

    def _refuse_senseless(self, ends: LinkEnds, since: Instant | None, period: Period) -> None:
        """Raise InvalidError for a link that contradicts the order of time. Raise ConflictError for two things that would cause each other. `since`: the valid_from given."""
        index, tx = self.index, self.work.tx
        source, kind, target = ends
        if kind.causal and not in_time(index, source, target, since, tx):
            begun = index.start(target, tx) or 0
            way = (
                "an event begins when it occurred"
                if index.is_event[source]
                else "give the valid_from at which the effect began"
            )
            raise InvalidError(
                f"a cause may not start after its effect: {index.names[target]!r} begins at {exactly(begun)}, after {index.names[source]!r}. "
                f"Turn the link round; {way}."
            )
        if kind.causal and not kind.symmetric:
            back = self.overlapping(LinkEnds(target, kind, source), period, tx)
            if back:
                name = index.l_name[index.k_link[back[0]]]
                raise ConflictError(
                    f"{index.names[target]} {kind.name} {index.names[source]} is there already as {name!r} over part of that time: "
                    f"two things cannot cause each other. unlink({name!r}) it first, or give another period."
                )
        if kind.forward:
            first, second = index.start(source, tx), index.start(target, tx)
            if first is not None and second is not None and first > second:
                raise InvalidError(
                    f"{kind.name} runs from earlier to later: {index.names[source]!r} begins at {exactly(first)}, after "
                    f"{index.names[target]!r} at {exactly(second)}. Turn the link round."
                )

    def _refuse_cycle(self, ends: LinkEnds, tx: Instant) -> None:
        """Raise ConflictError if the target already leads to the source by believed links of this kind over any period."""
        if self.closes_cycle(ends, tx):
            source, target = self.index.names[ends.source], self.index.names[ends.target]
            raise ConflictError(
                f"{source!r} {ends.kind.name} {target!r} would close a cycle: {target!r} already leads to {source!r} by {ends.kind.name}. "
                "Unlink that first, or retract the one that was wrong."
            )

    def closes_cycle(self, ends: LinkEnds, tx: Instant) -> bool:
        """Return True if the target already leads to the source by believed links of this kind over any period."""
        index = self.index
        source, kind, target = ends

        def over(ent: int, side: dict[int, list[int]]) -> Iterator[int]:
            for link in index.of_kinds(side, ent, (kind.name,)):
                if index.l_kind[link] == kind.name and index.believed_link(link, tx):
                    yield link

        def onward(ent: int) -> Iterator[int]:
            return (index.l_tgt[link] for link in over(ent, index.out))

        return next(over(source, index.into), None) is not None and leads(target, source, onward)

    def new_link_id(self, ends: LinkEnds | None = None) -> str:
        """Return a link id that is not in use. `ends`: the ends of the link, from which its id may be drawn."""
        names = self.index.names
        sentence = ends and (names[ends.source], ends.kind.name, names[ends.target])
        return drawn(lambda: f"lnk_{random_64()}", self.index.link_ids, sentence)

    def _free_link_id(self, name: str) -> str:
        name = new_name("link id", name)
        if name in self.index.link_ids:
            raise ConflictError(f"link {name!r} is known already. Choose another id.")
        return name


def claim_of(core: Core, row: int) -> LinkClaim:
    """Return the attributes of a link in one of its rows."""
    index, number = core.index, core.index.k_claim[row]
    body = core.body(index.c_pos[number], index.c_len[number])
    return LinkClaim(
        body.get("reason"),
        index.c_strength[number] or None,
        index.c_by[number],
        body.get("metadata", {}),
        bool(index.c_inferred[number]),
        bool(index.c_history[number]),
    )


def joined_into(index: WorkingSet, ent: int, tx: Instant) -> int:
    """Return the node that a node was joined into, directly or by further joins; the node itself if it is not joined."""
    while True:
        links = index.of_kinds(index.into, ent, (JOINED,))
        by = next((link for link in links if index.believed_link(link, tx)), -1)
        if by < 0:
            return ent
        ent = index.l_src[by]


def leads(start: T, goal: T, onward: Callable[[T], Iterable[T]]) -> bool:
    """Return True if the goal can be reached from the start. `onward`: returns the neighbours one step away."""
    seen, todo = {start}, [start]
    while todo:
        for one in onward(todo.pop()):
            if one == goal:
                return True
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return False


def _attributes(claim: LinkClaim) -> Json:
    return {
        "reason": claim.reason,
        "strength": claim.strength,
        "created_by": claim.created_by,
        "metadata": claim.metadata,
        "confidence": "inferred" if claim.inferred else "explicit",
        "history": claim.history,
    }
