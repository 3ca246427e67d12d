"""Carrying the operations of a branch over to the trunk, for what the trunk has left alone since: each as what it was, in its order.

The result is that of doing them on the trunk, all in one transaction: how operations are grouped changes no standing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import itemgetter

from graphstore.core.read.sight import Core
from graphstore.core.read.view_diff import description
from graphstore.core.write.linking import Linking
from graphstore.core.write.merge_plan import MergePlan
from graphstore.core.write.transaction import Transaction
from graphstore.core.write.trust import TRUST, Trust
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, overlap, without

Act = tuple[Callable[[int], None], int]  # what to do, with which row of the branch


class Carrying:
    """The operations on some things and links of a branch, written on the trunk."""

    def __init__(
        self,
        trunk: Core,
        branch: Core,
        work: Transaction,
        base: Instant,
        plan: MergePlan,
    ) -> None:
        self.trunk, self.branch, self.work, self.base = trunk, branch, work, base
        self.mine, self.theirs = trunk.index, branch.index
        self.ents, self.links, self.looks = plan.carried
        self.linking = Linking(trunk, work)
        self.since, self.shared = plan.since, plan.shared
        self.ent: dict[int, int] = {}  # of the branch -> of the trunk
        self.ver: dict[int, int] = {}
        self.link: dict[int, int] = {}
        self.claim: dict[int, int] = {}
        self.ops: dict[int, int] = {}
        self.made_versions: list[int] = []  # versions of the branch that the trunk had not
        self.made_links: list[int] = []

    def write(self) -> None:
        """Write them in the caller's transaction."""
        for ent in self.ents:
            self._meet(ent)
        for link in self.links:
            self._meet_link(link)
        for op, acts in sorted(self._acts().items()):
            self._op(op)
            for act, row in acts:
                act(row)
        for ent in self.ents:
            self._changes(ent)
        for link in self.links:
            self._taken(link)
        self._arguments()
        self.work.carried = True
        self.mine._said.clear()

    # ------------------------------------------------------------------ what there is on the trunk

    def _meet(self, ent: int) -> None:
        """Pair a thing of the branch with that of the trunk, row by row as both believed it when the branch was merged last."""
        mine, theirs, name = self.mine, self.theirs, self.theirs.names[ent]
        ours = mine.ids.get(name, -1)
        if ours < 0:
            ours = mine.add_entity(
                name, bool(theirs.is_event[ent]), theirs.kind[ent], theirs.key[ent], theirs.scope[ent], self.work.tx
            )  # fmt: skip
        self.ent[ent] = ours
        there = {(mine.r_from[row], mine.r_to[row]): row for row in mine.now_of[ours]}
        for row in theirs.believed(ent, self.base):
            twin = there.get((theirs.r_from[row], theirs.r_to[row]), -1)
            if twin >= 0:
                self.ver[theirs.r_ver[row]] = mine.r_ver[twin]

    def _meet_link(self, link: int) -> None:
        mine, theirs = self.mine, self.theirs
        name = theirs.l_name[link]
        ends = self._end(theirs.l_src[link]), self._end(theirs.l_tgt[link])
        ours = self._there(link, ends)
        if ours < 0:
            if name in mine.link_ids:
                name = self.linking.new_link_id()
            ours = mine.add_link(name, ends[0], theirs.l_kind[link], ends[1])
        self.link[link] = ours
        there = {(mine.k_from[row], mine.k_to[row]): row for row in mine.believed_link(ours, self.work.tx)}
        for row in theirs.believed_link(link, self.base):
            twin = there.get((theirs.k_from[row], theirs.k_to[row]), -1)
            if twin >= 0:
                self.claim[theirs.k_claim[row]] = mine.k_claim[twin]

    def _there(self, link: int, ends: tuple[int, int]) -> int:
        """The trunk's link that a link of the branch is, known by its id, or after a merge by what holds; -1: none."""
        mine, theirs = self.mine, self.theirs
        alike = mine.saying(ends[0], theirs.l_kind[link], ends[1])
        for one in alike:
            if mine.l_name[one] == theirs.l_name[link]:
                return one
        held = {(theirs.k_from[row], theirs.k_to[row]) for row in theirs.believed_link(link, self.base)}
        for one in alike:
            if held & {(mine.k_from[row], mine.k_to[row]) for row in mine.believed_link(one, self.work.tx)}:
                return one
        return -1

    def _end(self, ent: int) -> int:
        return self.ent[ent] if ent in self.ent else self.mine.ids[self.theirs.names[ent]]

    # ------------------------------------------------------------------ operations

    def _acts(self) -> dict[int, list[Act]]:
        """What each operation of the branch did to what is carried, closings first."""
        theirs, base = self.theirs, self.base
        acts: dict[int, list[Act]] = defaultdict(list)
        first = self.since.first_op
        for ent in self.ents:
            for row in theirs.rows_of[ent]:
                if base < theirs.r_end[row] < OPEN:
                    acts[theirs.r_close[row]].insert(0, (self._close, row))
            for row in theirs.rows_of[ent]:
                if theirs.r_tx[row] > base:
                    acts[theirs.r_op[row]].append((self._open, row))
                    acts[theirs.v_op[theirs.r_ver[row]]]
            for seen in theirs.seen_of.get(ent, ()):
                if theirs.s_tx[seen] > base and theirs.believed_op(theirs.s_op[seen], OPEN - 1):
                    acts[theirs.s_op[seen]].append((self._seen, seen))
            for op in self._named_by(ent, first):
                acts[op]
        for op in self.looks:
            acts[op]
        for link in self.links:
            for row in theirs.rows_of_link[link]:
                if base < theirs.k_end[row] < OPEN:
                    acts[theirs.k_close[row]].insert(0, (self._unlink, row))
            for row in theirs.rows_of_link[link]:
                if theirs.k_tx[row] > base:
                    acts[theirs.k_op[row]].append((self._hold, row))
                    acts[theirs.c_op[theirs.k_claim[row]]]
        return {op: done for op, done in acts.items() if op >= first}

    def _named_by(self, ent: int, first: int) -> Iterable[int]:
        """The operations that show in no row: changes of content, what came and went."""
        theirs = self.theirs
        for _, _, _, op in (*self.since.turns(ent), *theirs.gaps.get(ent, ())):
            if op >= first and theirs.believed_op(op, OPEN - 1):
                yield op
        for _, _, _, ver in theirs.ghosts.get(ent, ()):
            if theirs.v_op[ver] >= first:
                yield theirs.v_op[ver]

    def _op(self, op: int) -> int:
        """The operation of the trunk for one of the branch."""
        if op not in self.ops:
            theirs = self.theirs
            subject = theirs.o_subject[op]
            link = theirs.link_ids.get(subject, -1)
            if link in self.link and theirs.o_verb[op] in ("link", "unlink", "resolve"):
                subject = self.mine.l_name[self.link[link]]
            body = self.branch.body(theirs.o_pos[op], theirs.o_len[op])
            body.pop("salt", None)
            self.ops[op] = self.work.op_of(theirs.o_verb[op], subject, theirs.o_author[op], body)
        return self.ops[op]

    # ------------------------------------------------------------------ rows

    def _close(self, row: int) -> None:
        mine, theirs = self.mine, self.theirs
        ours = self.ent[theirs.r_ent[row]]
        wanted = (theirs.r_from[row], theirs.r_to[row])
        op = self.ops[theirs.r_close[row]]
        writer_of(self.trunk, self.branch, theirs.r_close[row]).guard(ours, [wanted])
        for there in mine.over(mine.now_of[ours], wanted):  # an earlier merge may have split it elsewhere
            whole = (mine.r_from[there], mine.r_to[there])
            mine.close_row(there, self.work.tx, op)
            for piece in without(whole, wanted):
                mine.open_row(mine.r_ver[there], piece, self.work.tx, op)

    def _open(self, row: int) -> None:
        theirs = self.theirs
        ver = self._version(theirs.r_ver[row])
        self.mine.open_row(
            ver, (theirs.r_from[row], theirs.r_to[row]), self.work.tx, self.ops[theirs.r_op[row]]
        )

    def _version(self, ver: int) -> int:
        """The trunk's version for one of the branch; one it has not is written with a number of the trunk."""
        found = self.ver.get(ver)
        if found is None:
            theirs = self.theirs
            ours = self.ent[theirs.v_ent[ver]]
            found = self.shared.find(ver)
            if found < 0:
                op = self._op_said(theirs.v_op[ver])
                number = theirs.v_num[ver] and max(theirs.v_num[ver], self.work.next_number(ours))
                place = self.work.body(description(self.branch, ver))
                found = self.mine.add_version(ours, number, *place, op)
                if number:
                    self.made_versions.append(ver)
                    self.work.aliases.append((theirs.v_num[ver], found))
            self.ver[ver] = found
        return found

    def _op_said(self, op: int) -> int:
        return self._op(op) if op >= self.since.first_op else -1

    def _seen(self, seen: int) -> None:
        theirs = self.theirs
        ours = self.ent[theirs.s_ent[seen]]
        self.mine.add_seen(ours, theirs.s_at[seen], self.work.tx, self.ops[theirs.s_op[seen]])

    def _unlink(self, row: int) -> None:
        mine, theirs = self.mine, self.theirs
        wanted = (theirs.k_from[row], theirs.k_to[row])
        link = self.link[theirs.k_link[row]]
        rows = mine.believed_link(link, self.work.tx)
        over = [there for there in rows if overlap((mine.k_from[there], mine.k_to[there]), wanted)]
        writer_of(self.trunk, self.branch, theirs.k_close[row]).guard_links(over)
        self.work.take_link(link, wanted, self.ops[theirs.k_close[row]])

    def _hold(self, row: int) -> None:
        theirs = self.theirs
        claim = self._claimed(theirs.k_claim[row])
        during = (theirs.k_from[row], theirs.k_to[row])
        self.mine.open_link_row(claim, during, self.work.tx, self.ops[theirs.k_op[row]])
        self.made_links.append(self.link[theirs.k_link[row]])

    def _claimed(self, claim: int) -> int:
        found = self.claim.get(claim)
        if found is None:
            mine, theirs = self.mine, self.theirs
            link = self.link[theirs.c_link[claim]]
            body: Json = self.branch.body(theirs.c_pos[claim], theirs.c_len[claim])
            body.pop("salt", None)
            number = 1 + max((mine.c_num[one] for one in mine.claims_of[link]), default=0)
            place = self.work.body(body) if body else (0, 0)
            found = self.claim[claim] = mine.add_claim(
                link, number, theirs.c_strength[claim], theirs.c_inferred[claim], theirs.c_by[claim], *place,
                self._op_said(theirs.c_op[claim]),
            )  # fmt: skip
        return found

    # ------------------------------------------------------------------ what the rows do not show

    def _arguments(self) -> None:
        """Record the arguments of the operations that came over. Of a call with several operations some may be left out."""
        for op, ours in sorted(self.ops.items(), key=itemgetter(1)):
            entry = dict(self.since.entries.get(op, {}))
            count = sum(each in self.ops for each in range(op, op + entry.pop("ops", 1)))
            self.work.record(ours, entry | {"ops": count} if count > 1 else entry)

    def _changes(self, ent: int) -> None:
        theirs, ours = self.theirs, self.ent[ent]
        first = self.since.first_op
        for op, period in theirs.removals(ent, OPEN - 1):
            if op >= first:
                self.work.removals.append((ours, period, self._op(op)))
        for _, start, stop, op in self.since.turns(ent):
            if op >= first and theirs.believed_op(op, OPEN - 1):
                self.work.turn(ours, (start, stop), self._op(op))
        for tx, start, stop, ver in theirs.ghosts.get(ent, ()):
            if tx > self.base and theirs.believed_op(theirs.v_op[ver], OPEN - 1):
                self.work.ghost(ours, (start, stop), self._version(ver))

    def _taken(self, link: int) -> None:
        """What a supersession of the branch took, so that it can be restored."""
        theirs, ours = self.theirs, self.link[link]
        for _, start, stop, op in theirs.link_ghosts.get(link, ()):
            if op >= self.since.first_op and theirs.believed_op(op, OPEN - 1):
                self.work.link_ghost(ours, (start, stop), self._op(op))
        pieces = theirs.taken.get(link, ())
        if theirs.l_tgt[link] in self.ent and (pieces or link in self.since.taking):
            self.work.set_taken(ours, [(self._version(ver), start, stop) for ver, start, stop in pieces])


def writer_of(trunk: Core, branch: Core, op: int) -> Trust:
    """The trust that the trunk has in who did an operation on a branch: in the source of what it described, else in its author."""
    theirs = branch.index
    if op < 0:
        return Trust(trunk, None)
    source = None
    ent = theirs.ids.get(theirs.o_subject[op], -1)
    if ent >= 0 and trunk.index.setting(TRUST):
        said = (ver for ver in theirs.versions_of[ent] if theirs.v_op[ver] == op)
        source = next((description(branch, ver).get("source") for ver in said), None)
    return Trust(trunk, theirs.o_author[op], source)
