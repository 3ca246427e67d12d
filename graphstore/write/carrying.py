"""Carry over what a merge takes: repeat each operation of a branch on the trunk, in order and with its own verb.

Changes are cut to the periods over which the `MergePlan` lets the branch win. The result equals that of doing them on the trunk, all in one transaction: how operations are
grouped changes no standing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, cast

from graphstore.errors import ConflictError
from graphstore.ledger.chain import DESCRIBING
from graphstore.read.columns import ENDED
from graphstore.read.happened import FIRST
from graphstore.read.working_set import WorkingSet
from graphstore.search.source import description
from graphstore.values.findings import Merge
from graphstore.values.models import Json
from graphstore.values.period import (
    ALWAYS,
    OPEN,
    Instant,
    Period,
    coalesce,
    exactly,
    moment,
    overlap,
    without_all,
)
from graphstore.values.threeway import Cell
from graphstore.values.vocabulary import JOINED
from graphstore.view.sight import Core
from graphstore.write import joining
from graphstore.write.changes_since import Contained, LineCore
from graphstore.write.linking import LinkClaim, LinkEnds, Linking, claim_of
from graphstore.write.merge_plan import MergePlan, Triple, between, triple_of
from graphstore.write.transaction import Transaction
from graphstore.write.trust import TRUST, Trust, last_to_rank

RECHECKING = frozenset({"confirm", *DESCRIBING})
Act = Callable[[], object]
Acts = defaultdict[int, list[Act]]  # the changes to make, by operation of the branch


class Carrying:
    """Writes to the trunk the operations of a branch that a plan takes over."""

    def __init__(self, trunk: Core, branch: Core, work: Transaction, plan: MergePlan, base: Instant) -> None:
        self.trunk, self.branch, self.work, self.plan, self.base = trunk, branch, work, plan, base
        self.mine, self.theirs = trunk.index, branch.index
        self.name = self.theirs.branch or self.mine.branch or ""
        self.linking = Linking(trunk, work, verb="supersede")
        self.since, self.shared = plan.since, plan.shared
        # by numbers of the branch: what is carried over, and over which periods
        self.during: dict[int, list[Period]] = {}
        self.links: dict[int, list[Period]] = {}
        self.ent: dict[int, int] = {}  # number on the branch -> number on the trunk
        self.ver: dict[int, int] = {}
        self.link: dict[int, int] = {}
        self.claim: dict[int, int] = {}
        self.ops: dict[int, int] = {}
        self.decided: dict[str, int] = {}  # the operations of decisions, by the id of what they decide

    def write(self) -> Merge:
        """Write the plan in the caller's transaction."""
        work, plan = self.work, self.plan
        self._refuse_other_joins()
        first = len(self.mine.o_tx)
        verb = "pull" if self.theirs.branch is None else "merge"
        work.branches.append([verb, self.name])
        work.op(verb, self.name)
        self._decisions()
        self._settings()
        told = self._meet()
        self._meet_links(told["added"])
        for op, acts in sorted(self._acts().items()):
            self._op(op)
            for act in acts:
                act()
        for ent, share in plan.things.items():
            for cell in share.forced:
                self._force(ent, cell)
        for triple, share in plan.links.items():
            for cell in share.forced:
                self._force_link(triple, cell)
        for link in self.links:
            self._came_and_went(link)
        for ent in self.ent:
            self._taken(ent)
        self._arguments()
        self._note_coverage(first)
        work.carried = True
        self.mine._said.clear()
        for ent, share in plan.things.items():
            for other, period in share.closes:
                self._replace(ent, other, period)
        joining.gather(self.trunk, work, list(self.link.values()))
        if plan.trust is not None:  # after everything else was written under the ranks of the trunk
            Trust(self.trunk, last_to_rank(cast(LineCore, self.branch).database)).guard_map(
                plan.trust, work.tx
            )
            work.op("set_trust", "")
            self.mine.add_settings([{TRUST: plan.trust}])
        told["links"] = list(dict.fromkeys(self.mine.l_name[ours] for ours in self.link.values()))
        told["left_out"] = plan.left_out
        found: dict[str, Any] = {name: tuple(ids) for name, ids in told.items()}
        return Merge(merged=True, conflicts=tuple(plan.conflicts), tx=moment(work.tx), **found)

    def _refuse_other_joins(self) -> None:
        """Raise ConflictError if both sides joined one node: what either moved cannot be put together."""
        for triple in {triple_of(self.branch, link) for link in self.since.links}:
            if triple.kind != JOINED or triple not in self._joins(self.theirs, triple.target):
                continue
            for name in (triple.source, triple.target):
                for other in self._joins(self.mine, name) - self._joins(self.theirs, name):
                    raise ConflictError(
                        f"{triple.target!r} was joined into {triple.source!r}, and on the other side {other.target!r} into {other.source!r}. "
                        f"Take one of the two back first: split({other.target!r}, reason=…)."
                    )

    def _joins(self, index: WorkingSet, name: str) -> set[Triple]:
        """Return the believed joins at a node."""
        ent = index.ids.get(name, -1)
        links = [link for side in (index.out, index.into) for link in index.of_kinds(side, ent, (JOINED,))]
        return {
            Triple(index.names[index.l_src[link]], JOINED, index.names[index.l_tgt[link]])
            for link in links
            if index.believed_link(link, self.work.tx)
        }

    def _decisions(self) -> None:
        verbs = {"link": "decide_link", "cycle": "decide_link"}
        for found in self.plan.conflicts:
            if found.what in ("kind", "trust"):
                continue
            since = "" if found.valid_from is None else f" from {exactly(found.valid_from)}"
            until = "" if found.valid_to is None else f" to {exactly(found.valid_to)}"
            choice = f"of the trunk and branch {self.name!r} the {found.decision} is followed{since}{until}"
            self.decided[found.id] = self.work.op(verbs.get(found.what, "decide"), found.id, choice)

    def _settings(self) -> None:
        for kind in self.plan.kinds:
            self.work.op("define_kind", kind["name"])
            self.mine.kinds.append(kind)
        self.trunk.vocabulary.reset(self.mine.kinds)
        for name in self.theirs.promoted:
            if name not in self.mine.promoted:
                self.work.op("promote_kind", name)
                self.mine.promoted.append(name)

    # ------------------------------------------------------------------ things and links on the trunk

    def _meet(self) -> dict[str, list[str]]:
        """Find each thing on the trunk, or add it. Returns the ids added, changed and ended."""
        told: dict[str, list[str]] = {"added": [], "changed": [], "ended": []}
        for ent, share in self.plan.things.items():
            is_new, name = share.ours < 0, self.theirs.names[ent]
            if is_new and not (share.is_whole or share.gained()):
                continue  # its slot is taken
            self.during[ent] = without_all(ALWAYS, share.held)
            self.ent[ent] = self._new(ent) if is_new else share.ours
            if share.gained() or share.instants:
                told["added" if is_new else "changed"].append(name)
            if (share.lost() and not is_new) or share.is_retracted:
                told["ended"].append(name)
        return told

    def _new(self, ent: int) -> int:
        theirs = self.theirs
        return self.mine.add_entity(
            theirs.names[ent], bool(theirs.is_event[ent]), theirs.kind[ent], theirs.key[ent], theirs.scope[ent], self.work.tx
        )  # fmt: skip

    def _meet_links(self, added: list[str]) -> None:
        """Find each link on the trunk, or add it. Missing ends are added too; an end that no longer holds gets its last description."""
        mine, theirs, tx = self.mine, self.theirs, self.work.tx
        for link in sorted(self.since.links):
            triple, name = triple_of(self.branch, link), theirs.l_name[link]
            share = self.plan.links.get(triple)
            if share is None or not share.is_merged:
                continue
            ends = theirs.l_src[link], theirs.l_tgt[link]
            for end in ends:
                if theirs.names[end] not in mine.ids:
                    self._bare(end)
                    added.append(theirs.names[end])
            held = {
                (theirs.k_from[row], theirs.k_to[row]): row for row in theirs.believed_link(link, self.base)
            }
            there = {
                one: {(mine.k_from[row], mine.k_to[row]): row for row in mine.believed_link(one, tx)}
                for one in between(mine, triple)
            }
            alike = [one for one in there if mine.l_name[one] == name]
            ours = next(iter(alike or [one for one in there if held.keys() & there[one].keys()]), -1)
            if ours < 0:
                name = self.linking.new_link_id() if name in mine.link_ids else name
                source, target = (mine.ids[theirs.names[end]] for end in ends)
                ours = mine.add_link(name, source, triple.kind, target)
            self.links[link], self.link[link] = without_all(ALWAYS, share.held), ours
            for period, row in held.items():
                twin = there.get(ours, {}).get(period, -1)
                if twin >= 0 and claim_of(self.branch, row) == claim_of(self.trunk, twin):
                    self.claim[theirs.k_claim[row]] = mine.k_claim[twin]

    def _bare(self, ent: int) -> None:
        theirs, work = self.theirs, self.work
        ours = self.ent[ent] = self._new(ent)
        row = next(reversed(theirs.rows_of[ent]), -1)
        period = (theirs.r_from[row], theirs.r_to[row]) if row >= 0 else (work.tx, OPEN)
        ver = self._version(theirs.r_ver[row] if row >= 0 else theirs.versions_of[ent][-1])
        self.mine.open_row(ver, period, work.tx, self.mine.v_op[ver])
        gone = theirs.r_close[row] if row >= 0 else -1
        is_retracted = gone >= 0 and theirs.o_verb[gone] == "retract"
        work.stop_believing(
            ours, period, self._op(gone) if is_retracted else work.op("supersede", theirs.names[ent])
        )

    # ------------------------------------------------------------------ operations

    def _acts(self) -> Acts:
        """Return what each operation of the branch did to what is carried over, closings first."""
        theirs, first, acts = self.theirs, self.since.first_op, Acts(list)
        for ent, during in self.during.items():
            for row in theirs.rows_of[ent]:
                for part in parts(during, (theirs.r_from[row], theirs.r_to[row])):
                    if self.base < theirs.r_end[row] < OPEN:
                        op = theirs.r_close[row]
                        acts[op].insert(0, partial(self._close, ent, part, op))
                    if theirs.r_tx[row] > self.base:
                        acts[theirs.r_op[row]].append(partial(self._open, ent, row, part))
                        acts[theirs.v_op[theirs.r_ver[row]]]
            for op, act in self._unseen(ent):
                acts[op].append(act)
            if theirs.is_event[ent]:
                for op, act in self._occurrences(ent):
                    acts[op].append(act)
        for op in self.plan.looks:
            acts[op]
        for link, during in self.links.items():
            for row in theirs.rows_of_link[link]:
                for part in parts(during, (theirs.k_from[row], theirs.k_to[row])):
                    if self.base < theirs.k_end[row] < OPEN:
                        acts[theirs.k_close[row]].insert(0, partial(self._unlink, row, part))
                    if theirs.k_tx[row] > self.base:
                        acts[theirs.k_op[row]].append(partial(self._hold, row, part))
                        acts[theirs.c_op[theirs.k_claim[row]]]
        known = self.plan.known_here  # what these did is here already
        return Acts(
            list, {op: done for op, done in acts.items() if op >= first and theirs.o_tx[op] not in known}
        )

    def _unseen(self, ent: int) -> Iterator[tuple[int, Act]]:
        """Yield what operations did that no row shows: changes of content, removals, versions added and removed again."""
        theirs, work, ours = self.theirs, self.work, self.ent[ent]

        def removed(number: int, part: Period) -> None:
            work.removals.append((ours, part, self._op(number)))

        def turned(number: int, part: Period) -> None:
            work.turn(ours, part, self._op(number))

        def came(number: int, part: Period) -> None:
            work.ghost(ours, part, self._version(number))

        found = [(op, period, removed, op) for op, period in theirs.removals(ent, OPEN - 1)]
        found += [(op, (start, stop), turned, op) for _, start, stop, op in self.since.turns(ent)]
        for tx, start, stop, ver in theirs.ghosts.get(ent, ()):
            found += [(theirs.v_op[ver], (start, stop), came, ver)] if tx > self.base else []
        for op, period, act, number in found:
            for part in parts(self.during[ent], period) if theirs.believed_op(op, OPEN - 1) else ():
                yield op, partial(act, number, part)

    def _occurrences(self, ent: int) -> Iterator[tuple[int, Act]]:
        """Yield what operations did to an event. If the trunk has recorded something of it too, only the new occurrences are recorded again."""
        theirs, share, ours = self.theirs, self.plan.things[ent], self.ent[ent]
        rows = [row for row in theirs.seen_of.get(ent, ()) if theirs.believed_op(theirs.s_op[row], OPEN - 1)]
        if share.is_whole:
            for row in rows:
                if theirs.s_tx[row] > self.base:
                    yield theirs.s_op[row], partial(self._seen, ent, row)
            return
        if share.is_retracted:
            op = theirs.r_close[theirs.rows_of[ent][-1]]
            yield op, partial(self._close, ent, ALWAYS, op)
        first = theirs.first_reported(ent), theirs.v_op[theirs.versions_of[ent][0]]
        left = list(share.instants)
        for at, op in [first, *((theirs.s_at[row], theirs.s_op[row]) for row in rows)]:
            if at in left and op >= self.since.first_op:
                left.remove(at)
                yield op, partial(self._again, ours, at, op)

    def _op(self, op: int) -> int:
        """Return the operation on the trunk for one of the branch; records it at the first call."""
        if op >= 0 and op not in self.ops:
            theirs = self.theirs
            subject = theirs.o_subject[op]
            link = theirs.link_ids.get(subject, -1)
            if link in self.link and theirs.o_verb[op] in ("link", "unlink", "resolve"):
                subject = self.mine.l_name[self.link[link]]
            body = self.branch.body(theirs.o_pos[op], theirs.o_len[op])
            body.pop("salt", None)
            ours = self.ops[op] = self.work.op_of(theirs.o_verb[op], subject, theirs.o_author[op], body)
            if (recorded := self.since.recorded.get(op)) is not None:
                self.work.recorded[ours] = recorded
        return self.ops.get(op, -1)

    def _arguments(self) -> None:
        """Record the arguments of the operations carried over. Some operations of a call may be left out."""
        for op, ours in sorted(self.ops.items(), key=itemgetter(1)):
            entry = dict(self.since.entries.get(op, {}))
            count = sum(each in self.ops for each in range(op, op + entry.pop("ops", 1)))
            self.work.record(ours, entry | {"ops": count} if count > 1 else entry)

    def _note_coverage(self, first: int) -> None:
        """Record which invalidations the carried rechecks cover: those that their own line contained. `first`: the number of the first operation of this merge."""
        rechecks = {ours: op for op, ours in self.ops.items() if self.theirs.o_verb[op] in RECHECKING}
        contained = Contained(self.trunk, self.branch) if rechecks else None
        for ours, op in sorted(rechecks.items()):
            assert contained is not None
            ranges = coalesce([*contained.before(op), (first - 1, ours)])
            if ranges != [(-1, ours)]:
                self.work.covers[ours] = ranges

    def _writer(self, op: int) -> Trust:
        """Return the trunk's trust in the writer of an operation of the branch: in the source it described, else in its author."""
        theirs, source = self.theirs, None
        if op < 0:
            return Trust(self.trunk, None)
        ent = theirs.ids.get(theirs.o_subject[op], -1)
        if ent >= 0 and self.mine.setting(TRUST):
            said = (ver for ver in theirs.versions_of[ent] if theirs.v_op[ver] == op)
            source = next((description(self.branch, ver).get("source") for ver in said), None)
        return Trust(self.trunk, theirs.o_author[op], source)

    # ------------------------------------------------------------------ rows

    def _close(self, ent: int, wanted: Period, op: int, by: int = -1) -> None:
        """Stop believing a thing over a period. `by`: another operation, whose writer counts."""
        mine, ours = self.mine, self.ent[ent]
        rows = mine.over(mine.now_of[ours], wanted)
        if rows:
            self._writer(op if by < 0 else by).guard(ours, [wanted])
        for row in rows:  # an earlier merge may have split it elsewhere
            whole = (mine.r_from[row], mine.r_to[row])
            mine.close_row(row, self.work.tx, self._op(op))
            for piece in without_all(whole, [wanted]):
                mine.open_row(mine.r_ver[row], piece, self.work.tx, self._op(op))

    def _open(self, ent: int, row: int, part: Period) -> None:
        theirs, op, ver = self.theirs, self.theirs.r_op[row], self.theirs.r_ver[row]
        self._close(ent, part, op, theirs.v_op[ver])
        if self.plan.things[ent].is_whole:
            self.mine.open_row(self._version(ver), part, self.work.tx, self._op(op))
        else:
            self.work.restore(self.ent[ent], self._version(ver), part, self._op(op))

    def _force(self, ent: int, cell: Cell) -> None:
        """Follow the branch over a period where one side took back what the other states or confirmed. No later row of the branch may show this."""
        if cell.theirs is not None:
            version = self._version(self.theirs.r_ver[cell.theirs.row])
            name = self.theirs.names[ent]
            by = self.decided[name] if name in self.decided else self._op(self.since.decisions[name])
            self.work.restore(self.ent[ent], version, cell.period, by)
        elif cell.theirs_gone is not None:
            self._close(ent, cell.period, cell.theirs_gone.operation)

    def _force_link(self, triple: Triple, cell: Cell) -> None:
        """Take back a link over a period where the branch took it back and the trunk has stated it since."""
        if cell.theirs is None and cell.theirs_gone is not None:
            operation = cell.theirs_gone.operation
            for link in between(self.mine, triple):
                self._writer(operation).guard_links(self.mine.believed_link(link, self.work.tx))
                self.work.take_link(link, cell.period, self._op(operation))

    def _version(self, ver: int) -> int:
        """Return the trunk's version for one of the branch. A missing version is written with a number of the trunk."""
        found = self.ver.get(ver)
        if found is None:
            found = self.shared.find(ver)
            if found < 0:
                theirs, ours = self.theirs, self.ent[self.theirs.v_ent[ver]]
                op = self._op(theirs.v_op[ver])
                number = theirs.v_num[ver] and max(theirs.v_num[ver], self.work.next_number(ours))
                place = self.work.body(description(self.branch, ver))
                found = self.mine.add_version(ours, number, *place, op)
                self.work.aliases += [(number, found)] if (number := theirs.v_num[ver]) else []
            self.ver[ver] = found
        return found

    def _again(self, ours: int, at: Instant, op: int) -> None:
        self.work.happen_again(ours, at, self._op(op), {})

    def _seen(self, ent: int, row: int) -> None:
        theirs, ours, at, source = self.theirs, self.ent[ent], self.theirs.s_at[row], self.theirs.s_op[row]
        gone = (
            one
            for one in theirs.rows_of[ent]
            if theirs.r_close[one] == source and theirs.r_tx[one] > self.base
        )
        before = next(gone, -1)
        if before >= 0 and self.mine.first_reported(ours) == at:  # its first row is never stored
            at = theirs.r_from[before]
            self.work.leave(self._op(source), {FIRST: True})
        self.mine.add_seen(ours, at, self.work.tx, self._op(source))

    def _unlink(self, row: int, part: Period) -> None:
        mine, op = self.mine, self.theirs.k_close[row]
        for link in between(mine, triple_of(self.branch, self.theirs.k_link[row])):
            rows = mine.believed_link(link, self.work.tx)
            over = [there for there in rows if overlap((mine.k_from[there], mine.k_to[there]), part)]
            if over:
                self._writer(op).guard_links(over)
                self.work.take_link(link, part, self._op(op))

    def _hold(self, row: int, part: Period) -> None:
        theirs, op = self.theirs, self._op(self.theirs.k_op[row])
        for link in between(self.mine, triple_of(self.branch, theirs.k_link[row])):
            self.work.take_link(link, part, op)
        self.mine.open_link_row(self._claimed(theirs.k_claim[row]), part, self.work.tx, op)

    def _claimed(self, claim: int) -> int:
        found = self.claim.get(claim)
        if found is None:
            mine, theirs = self.mine, self.theirs
            link = self.link[theirs.c_link[claim]]
            body: Json = self.branch.body(theirs.c_pos[claim], theirs.c_len[claim])
            body.pop("salt", None)
            number = 1 + max((mine.c_num[one] for one in mine.claims_of[link]), default=0)
            place = self.work.body(body) if body else (0, 0)
            said = (
                theirs.c_strength[claim],
                theirs.c_inferred[claim],
                theirs.c_history[claim],
                theirs.c_by[claim],
            )
            found = self.claim[claim] = mine.add_claim(
                link, number, said, place, self._op(theirs.c_op[claim])
            )
        return found

    def _came_and_went(self, link: int) -> None:
        theirs, ours, during = self.theirs, self.link[link], self.links[link]
        for _, start, stop, op in theirs.link_ghosts.get(link, ()):
            if op >= self.since.first_op and theirs.believed_op(op, OPEN - 1):
                for part in parts(during, (start, stop)):
                    self.work.link_ghost(ours, part, self._op(op))

    def _taken(self, ent: int) -> None:
        """Carry over what is stated of a thing of the branch but does not hold there, so that it can be restored."""
        ours, during = self.ent[ent], self.during.get(ent, [ALWAYS])
        pieces, mine = self.theirs.taken.get(ent, ()), self.mine.taken.get(ours, ())
        kept = [(ver, *part) for ver, *piece in mine for part in without_all((piece[0], piece[1]), during)]
        fresh = [
            (ver if ver == ENDED else self._version(ver), *part)
            for ver, *piece in pieces
            for part in parts(during, (piece[0], piece[1]))
        ]
        if sorted([*kept, *fresh]) != sorted(mine):
            self.work.set_taken(ours, [*kept, *fresh])

    def _replace(self, ent: int, old: int, period: Period) -> None:
        """Replace a value of a slot with one of the branch, with a `supersedes` link if possible."""
        new, last = self.ent[ent], self.theirs.r_ver[self.theirs.rows_of[ent][-1]]
        ends = LinkEnds(new, self.linking.kind("supersedes"), old)
        self._writer(self.theirs.v_op[last]).guard(old, [period])
        if self.linking.closes_cycle(ends, self.work.tx) or self.linking.overlapping(
            ends, period, self.work.tx
        ):
            self.work.stop_believing(old, period, self.work.op("supersede", self.mine.names[old]))
        else:
            self.linking.supersede(new, old, LinkClaim(created_by="store"), since=period[0], until=period[1])


def parts(during: Iterable[Period], period: Period) -> list[Period]:
    """Return the parts of a period that lie in some others."""
    return [part for each in during if (part := overlap(each, period))]
