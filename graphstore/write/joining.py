"""Record that two nodes are one thing, and take that back.

A join moves what is believed of one node to another one, by rows like any other write: links, contents where the other node has none, and a link `joined_from`, by which
reads and verbs find the other node under the id of the first. A split moves it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.read.columns import ENDED
from graphstore.values.inputs import optional_text, text_of
from graphstore.values.models import Link, Node
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, coalesce, without_all
from graphstore.values.vocabulary import JOINED, JOINS, maker_of
from graphstore.write.bounds import Bounds
from graphstore.write.given_arguments import Noted, Verb
from graphstore.write.linking import LinkClaim, LinkEnds, claim_of, joined_into
from graphstore.write.transaction import Transaction, refuse_forgotten

if TYPE_CHECKING:
    from graphstore.view.sight import Core
    from graphstore.write.act import Act

_BOUNDING = ("supersedes", "corrects")


@dataclass(frozen=True, slots=True)
class Join(Verb[Link]):
    """See `GraphStore.join`."""

    id: str
    into: str
    reason: str | None = None
    name: ClassVar = "join"
    recorded: ClassVar[dict[str, Noted]] = {}

    def apply(self, act: Act) -> Link:
        """Join the node, or return the link that says so already."""
        index, work = act.index, act.work
        old, new = act.known(self.id, node=True, is_exact=True), act.known(self.into, node=True)
        joining = Joining(act.core, work)
        row, meant = joining.joined_by(old), act.through(old)
        if row >= 0 and meant == new != old:
            return act.linked([row])[0]
        self._refuse(act, joining, old, new)
        trust = act.trust()
        trust.guard(old, [ALWAYS])
        for link in joining.links_of(old):
            trust.guard_links(index.believed_link(link, work.tx))
        op = work.op("join", index.names[old], optional_text("reason", self.reason))
        claim = LinkClaim(reason=self.reason, created_by=maker_of(None, work.author))
        row = Joining(act.core, work, op=op).join_nodes(old, new, claim)
        index.add_settings([{JOINS: True}])
        return act.linked([row])[0]

    def _refuse(self, act: Act, joining: Joining, old: int, new: int) -> None:
        """Raise InvalidError or ConflictError for two nodes that cannot be one thing."""
        index = act.index
        one, other = index.names[old], index.names[new]
        meant = act.through(old)
        if old == new:
            via = "" if self.into == other else f": {self.into!r} is joined into it"
            raise InvalidError(f"{one!r} cannot be joined into itself{via}. Give another id as into=.")
        if meant != old:
            into = index.names[meant]
            raise ConflictError(
                f"{one!r} is joined into {into!r} already. Join that one, join({into!r}, into={other!r}), "
                f"or take the join back first: split({one!r}, reason=…)."
            )
        for ent in (old, new):
            refuse_forgotten(index, ent)
        for what, column in (("kind", index.kind), ("scope", index.scope)):
            if column[old] != column[new]:
                raise InvalidError(
                    f"{one!r} is of {what} {column[old]!r} and {other!r} of {what} {column[new]!r}: only nodes of one {what} are joined. "
                    f"link({one!r}, 'related_to', {other!r}) relates them."
                )
        if index.key[old] not in (None, index.key[new]):
            turned = (
                f"join({other!r}, into={one!r})" if index.key[new] is None else f"retract({one!r}, reason=…)"
            )
            raise ConflictError(
                f"{one!r} is a value of the slot {index.key[old]!r} and {other!r} is not, so what is asked of the slot would be lost. "
                f"Use {turned} instead."
            )
        if joining.is_written_here(old):
            raise ConflictError(
                f"{one!r} or a link of it was written in this transaction, so the join could not be taken back. Join it in a later transaction."
            )
        if not index.now_of[new]:
            raise ConflictError(
                f"nothing is believed of {other!r}, so nothing can be joined into it. Join the other way round: join({other!r}, into={one!r})."
            )


@dataclass(frozen=True, slots=True)
class Split(Verb[Node]):
    """See `GraphStore.split`."""

    id: str
    reason: str
    name: ClassVar = "split"
    recorded: ClassVar[dict[str, Noted]] = {}

    def __post_init__(self) -> None:
        text_of("reason", self.reason)

    def apply(self, act: Act) -> Node:
        """Take the join of the node back."""
        index, work = act.index, act.work
        old = act.known(self.id, node=True, is_exact=True)
        row = Joining(act.core, work).joined_by(old)
        if row < 0:
            raise NotFoundError(
                f"{index.names[old]!r} is not joined into anything: there is nothing to split. what_superseded(id) names what an id was joined into."
            )
        act.trust().guard_links([row])
        op = work.op("split", index.names[old], self.reason)
        Joining(act.core, work, op=op).split_nodes(old, row)

        def make() -> Node:
            found = act.sight().thing(old)
            assert isinstance(found, Node)
            return found

        return work.answer(Node, make, id=index.names[old])


class Joining(Bounds):
    """Joins and splits nodes in one operation."""

    def joined_by(self, old: int) -> int:
        """Return the believed row of the link by which a node is joined into another; -1 if it is not joined."""
        index = self.index
        for link in index.of_kinds(index.into, old, (JOINED,)):
            for row in index.believed_link(link, self.work.tx):
                return row
        return -1

    def links_of(self, ent: int) -> list[int]:
        """Return the links ever made at a node, without those of joins, in order of recording."""
        index = self.index
        links = {*index.out.get(ent, ()), *index.into.get(ent, ())}
        return sorted(link for link in links if index.l_kind[link] != JOINED)

    def is_written_here(self, ent: int) -> bool:
        """Return True if this transaction opened a row of a node or of one of its links: closed again, it would never be stored."""
        index, tx = self.index, self.work.tx
        if any(index.r_tx[row] == tx for row in index.now_of[ent]):
            return True
        rows = (row for link in self.links_of(ent) for row in index.believed_link(link, tx))
        return any(index.k_tx[row] == tx for row in rows)

    # ------------------------------------------------------------------ joining

    def join_nodes(self, old: int, new: int, claim: LinkClaim) -> int:
        """Move all that is believed of a node to another one. Returns the row of their link."""
        index, op = self.index, self._operation
        starts = [index.stated_start(old), index.stated_start(new)]
        since = min((start for start in starts if start is not None), default=self.work.tx)
        stated = [(index.r_from[row], index.r_to[row], index.r_ver[row]) for row in index.now_of[old]]
        if index.slot_of(old) is None:
            stated += [(start, stop, ver) for ver, start, stop in index.taken.get(old, ()) if ver != ENDED]
        self.work.stop_believing(old, ALWAYS, op)
        self.work.drop_kept(old, ALWAYS)
        self._fill(new, stated)
        for link in self.links_of(old):
            self.move_link(link, old, new)
        return self.join(LinkEnds(new, self.kind(JOINED), old), (since, OPEN), claim)

    def _fill(self, new: int, stated: list[tuple[Instant, Instant, int]]) -> None:
        """Describe a node by versions of another one, over the times for which nothing is stated of it."""
        index, work = self.index, self.work
        slot = index.slot_of(new)
        held = [] if slot is None else [(index.r_from[row], index.r_to[row]) for row in index.held(slot)]
        taken, spans = [*index.stated_over(new, ALWAYS), *held], dict[int, list[Period]]()
        for start, stop, ver in sorted(stated):
            free = without_all((start, stop), taken)
            taken += free
            spans.setdefault(ver, []).extend(free)
        for ver, free in spans.items():
            if free:
                body = self.core.body(index.v_pos[ver], index.v_len[ver])
                work.describe(new, coalesce(free), {**body}, self._operation)

    def move_link(self, link: int, old: int, new: int) -> None:
        """Move the believed rows of a link from one of its ends to another node. Where that has such a link, nothing is written; a link between the two ends."""
        index, work, op = self.index, self.work, self._operation
        rows = [(self._held(row), claim_of(self.core, row)) for row in index.believed_link(link, work.tx)]
        work.take_link(link, ALWAYS, op)
        ends = self._moved(link, old, new)
        if ends.source == ends.target or not rows:
            return
        if ends.kind.acyclic and self.closes_cycle(ends, work.tx):
            if all(claim.created_by == "store" for _, claim in rows):
                return  # a value that came back to its slot
            names = index.names
            raise ConflictError(
                f"{names[old]!r} cannot be joined into {names[new]!r}: {names[ends.source]!r} {ends.kind.name} {names[ends.target]!r} would close a cycle. "
                f"unlink({index.l_name[link]!r}) first, if the two are one thing."
            )
        made = -1
        for period, claim in rows:
            for part in without_all(period, map(self._held, self._alike(ends, work.tx))):
                if made < 0:
                    made = index.add_link(self.new_link_id(ends), ends.source, ends.kind.name, ends.target)
                self._bound(ends, self.claim(made, part, claim, op), claim)

    def _moved(self, link: int, old: int, new: int) -> LinkEnds:
        """Return the ends of a link after one of them was joined into another node."""
        index = self.index
        source, target = (new if end == old else end for end in (index.l_src[link], index.l_tgt[link]))
        return LinkEnds(source, self.kind(index.l_kind[link]), target)

    def _bound(self, ends: LinkEnds, row: int, claim: LinkClaim) -> None:
        """Take from the target what a moved link states that its source replaced."""
        if ends.kind.name == "supersedes":
            self._take(row, is_new=True)
        elif ends.kind.name == "corrects":
            self.correct(ends.source, ends.target, self._held(row), claim.reason)

    # ------------------------------------------------------------------ splitting

    def split_nodes(self, old: int, row: int) -> None:
        """Take back what the join that a row of its link states moved, as far as it is still believed. What was recorded since stays at the other node."""
        index, work, op = self.index, self.work, self._operation
        at, new, by = index.k_tx[row], index.l_src[index.k_link[row]], self._of_join(row)
        closed = [one for one in index.rows_of[old] if index.r_end[one] == at]
        before, _ = index.taken_at(at).get(old, ([], []))
        unlinked = self._still_read(old, new, at)
        work.take_link(index.k_link[row], ALWAYS, op)
        self._empty(new, by)
        slot = index.slot_of(old)
        for one in closed:
            whole = index.r_from[one], index.r_to[one]
            held = (
                [] if slot is None else [(index.r_from[each], index.r_to[each]) for each in index.held(slot)]
            )
            for part in without_all(whole, held):
                index.open_row(index.r_ver[one], part, work.tx, op)
        if before:
            work.set_taken(old, before)
        for link_row in unlinked:
            period = self._held(link_row)
            index.open_link_row(index.k_claim[link_row], period, work.tx, op)
        for link in self.links_of(new):
            if any(index.c_op[index.k_claim[one]] in by for one in index.believed_link(link, work.tx)):
                if index.l_kind[link] in _BOUNDING:
                    self.unlink(link, ALWAYS)
                else:
                    work.take_link(link, ALWAYS, op)

    def _still_read(self, old: int, new: int, at: Instant) -> list[int]:
        """Return the rows of links of a node that its join closed, without those that were taken back since at the other node."""
        index, found = self.index, list[int]()
        for link in self.links_of(old):
            ends = self._moved(link, old, new)
            if {ends.source, ends.target} & index.gone.keys():
                continue
            for row in index.rows_of_link[link]:
                is_self = ends.source == ends.target
                if index.k_end[row] == at and (
                    is_self or self.overlapping(ends, self._held(row), self.work.tx)
                ):
                    found.append(row)
        return found

    def _of_join(self, row: int) -> set[int]:
        """Return the operations of the join that a row of its link states: one, or more where a merge moved links besides."""
        index, first = self.index, self.index.c_op[self.index.k_claim[row]]
        ops = index.ops_at(index.o_tx[first])
        return {
            op for op in ops if (index.o_verb[op], index.o_subject[op]) == ("join", index.o_subject[first])
        }

    def _empty(self, new: int, by: set[int]) -> None:
        """Stop believing the versions by which a join filled gaps of a node. `by`: the operations of the join."""
        index, work = self.index, self.work
        for row in [one for one in index.now_of[new] if index.v_op[index.r_ver[one]] in by]:
            index.close_row(row, work.tx, self._operation)
        pieces = index.taken.get(new, ())
        left = [piece for piece in pieces if piece[0] == ENDED or index.v_op[piece[0]] not in by]
        if len(left) < len(pieces):
            work.set_taken(new, left)


def gather(core: Core, work: Transaction, links: Iterable[int]) -> None:
    """Move links, which a merge brought to nodes that are joined into others, to those; and what is left at nodes whose join it brought."""
    index, plain = core.index, Joining(core, work)
    for link in links:
        joined = index.l_kind[link] == JOINED
        if joined:
            index.add_settings([{JOINS: True}])
        for end in (index.l_tgt[link],) if joined else (index.l_src[link], index.l_tgt[link]):
            new = joined_into(index, end, work.tx)
            for each in (plain.links_of(end) if joined else [link]) if new != end else ():
                if index.believed_link(each, work.tx):
                    Joining(core, work, op=work.op("join", index.names[end])).move_link(each, end, new)
