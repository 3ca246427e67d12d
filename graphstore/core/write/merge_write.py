"""Writing a merge: what a `MergePlan` holds is recorded on the trunk in one transaction, at one new instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from graphstore.core.index.occurrences import Happened
from graphstore.core.read.sight import Core
from graphstore.core.read.view_diff import description
from graphstore.core.write.act import Act
from graphstore.core.write.carrying import Carrying, writer_of
from graphstore.core.write.linking import Claim, Ends, Linking
from graphstore.core.write.merge_plan import MergePlan, NodePlan, Triple, Win, between, claimed, triple_of
from graphstore.core.write.transaction import Transaction
from graphstore.core.write.trust import TRUST, Trust
from graphstore.values.event_fields import differing
from graphstore.values.models import Json, Merge
from graphstore.values.period import (
    BEGINNING,
    OPEN,
    Instant,
    Period,
    coalesce,
    exactly,
    moment,
    overlap,
    without_all,
)
from graphstore.values.threeway import Statement


class MergeWriter:
    """The writing of one plan."""

    def __init__(self, trunk: Core, branch: Core, work: Transaction, plan: MergePlan, base: Instant) -> None:
        self.trunk, self.branch, self.work, self.plan, self.base = trunk, branch, work, plan, base
        self.mine, self.theirs = trunk.index, branch.index
        self.name = self.theirs.branch or self.mine.branch or ""
        self.entries = plan.since.entries
        self._lost: dict[int, list[Period]] = defaultdict(list)  # the periods that things of the trunk lost
        self._versions: dict[
            int, int
        ] = {}  # version of the branch -> its copy on the trunk, made by this merge
        self.added: list[str] = []
        self.changed: list[str] = []
        self.ended: list[str] = []
        self.links: list[str] = []

    def write(self) -> Merge:
        """Write the plan in the caller's transaction."""
        work = self.work
        verb = "pull" if self.theirs.branch is None else "merge"
        work.branches.append([verb, self.name])
        work.op(verb, self.name)
        self._decisions()
        self._settings()
        self._carry()
        for plan in self.plan.nodes.values():
            self._node(plan)
        for ent, instants in self.plan.events.items():
            self._event(ent, instants)
        for ent in self.plan.retracted:
            self._retract(ent)
        for triple, wins in self.plan.links.items():
            self._link(triple, wins)
        for plan in self.plan.nodes.values():
            for other, period in plan.closes:
                self._close(self.mine.ids[self.theirs.names[plan.ent]], other, period)
        self._ranks()
        return Merge(
            merged=True,
            conflicts=tuple(self.plan.conflicts),
            added=tuple(self.added),
            changed=tuple(self.changed),
            ended=tuple(self.ended),
            links=tuple(dict.fromkeys(self.links)),
            left_out=tuple(self.plan.left_out),
            tx=moment(work.tx),
        )

    def _carry(self) -> None:
        """Do what the trunk has left alone as it was done, and take it out of the plan."""
        plan, theirs = self.plan, self.theirs
        ents, links, _ = plan.carried
        for ent in ents:
            name = theirs.names[ent]
            is_new = name not in self.mine.ids
            if ent in plan.nodes:
                node = plan.nodes.pop(ent)
                if node.gained():
                    (self.added if is_new else self.changed).append(name)
                if node.lost() and not is_new:
                    self.ended.append(name)
            elif ent in plan.events:
                del plan.events[ent]
                (self.added if is_new else self.changed).append(name)
            elif ent in plan.retracted:
                plan.retracted.remove(ent)
                self.ended.append(name)
        for link in links:
            plan.links.pop(triple_of(self.branch, link), None)
        carrying = Carrying(self.trunk, self.branch, self.work, self.base, plan)
        carrying.write()
        self.links += [self.mine.l_name[carrying.link[link]] for link in links]

    def _op(self, verb: str, subject: str, source_op: int = -1) -> int:
        """Record an operation, with author, reason and arguments of the branch's operation that it repeats."""
        if source_op < 0:
            return self.work.op(verb, subject)
        theirs = self.theirs
        reason = self.branch.body(theirs.o_pos[source_op], theirs.o_len[source_op]).get("reason")
        place = self.work.reason(reason)
        op = self.mine.add_op(self.work.tx, verb, subject, theirs.o_author[source_op], *place)
        if verb == theirs.o_verb[source_op]:
            entry = self.entries.get(source_op, {})
            self.work.record(op, {name: value for name, value in entry.items() if name != "ops"})
        return op

    def _writer(self, source_op: int) -> Trust:
        return writer_of(self.trunk, self.branch, source_op)

    def _decisions(self) -> None:
        verbs = {"link": "decide_link", "cycle": "decide_link"}
        for found in self.plan.conflicts:
            if found.what not in ("kind", "trust"):
                since = "" if found.valid_from is None else f" from {exactly(found.valid_from)}"
                until = "" if found.valid_to is None else f" to {exactly(found.valid_to)}"
                choice = (
                    f"of the trunk and branch {self.name!r} the {found.decision} is followed{since}{until}"
                )
                self.work.op(verbs.get(found.what, "decide"), found.id, choice)

    def _settings(self) -> None:
        for kind in self.plan.kinds:
            self.work.op("define_kind", kind["name"])
            self.mine.kinds.append(kind)
        self.trunk.vocabulary.reset(self.mine.kinds)
        for name in self.theirs.promoted:
            if name not in self.mine.promoted:
                self.work.op("promote_kind", name)
                self.mine.promoted.append(name)

    def _ranks(self) -> None:
        """The branch's ranks, once all else was written under those of the trunk."""
        if self.plan.trust is not None:
            self.work.op("set_trust", "")
            self.mine.add_settings([{TRUST: self.plan.trust}])

    # ------------------------------------------------------------------ nodes

    def _node(self, plan: NodePlan) -> None:
        theirs, name = self.theirs, self.theirs.names[plan.ent]
        described: dict[int, list[Period]] = defaultdict(list)
        for period, word in plan.wins:
            if word is not None:
                described[theirs.r_ver[word.row]].append(period)
        ours = plan.ours
        if ours < 0:
            if not described:
                return
            ours = self._new(plan.ent)
            self.added.append(name)
        elif described:
            self.changed.append(name)
        verb = "add_node" if plan.ours < 0 else "revise"
        for ver in sorted(described):
            row = next(row for row in theirs.rows_of[plan.ent] if theirs.r_ver[row] == ver)
            op = self._op(verb, name, theirs.r_op[row])
            self._describe(ours, ver, coalesce(described[ver]), op)
        for period in plan.lost():
            if ours >= 0:
                self._take(plan.ent, ours, period)
        if plan.lost():
            self.ended.append(name)

    def _new(self, ent: int) -> int:
        theirs = self.theirs
        return self.mine.add_entity(
            theirs.names[ent], bool(theirs.is_event[ent]), theirs.kind[ent], theirs.key[ent], theirs.scope[ent], self.work.tx
        )  # fmt: skip

    def _describe(self, ours: int, ver: int, periods: list[Period], op: int) -> None:
        """Merge a version of the branch: one that the trunk has is believed again, another is added with a number of the trunk."""
        there, work = self._there(ver), self.work
        self._writer(self.theirs.v_op[ver]).guard(ours, periods)
        if there >= 0:
            for period in periods:
                work.believe_again(ours, there, period, op)
            return
        body = description(self.branch, ver)
        if self.mine.rows_of[ours]:
            Act(self.trunk, work).turn(ours, periods, body["content"], op)
        work.describe(ours, periods, body, op, self.theirs.v_num[ver])
        self._came(ours, ver)

    def _there(self, ver: int) -> int:
        """The trunk's version that a version of the branch is, or was merged as; -1: none."""
        found = self._versions.get(ver)
        return self.plan.shared.find(ver) if found is None else found

    def _came(self, ours: int, ver: int) -> int:
        there = self._versions[ver] = self.mine.versions_of[ours][-1]
        self.work.aliases.append((self.theirs.v_num[ver], there))
        return there

    def _take(self, ent: int, ours: int, period: Period) -> None:
        """Stop believing it over a period: piece by piece as on the branch, with the branch's verbs and reasons."""
        for (start, stop), source_op in self._takings(ent, period):
            verb = self.theirs.o_verb[source_op] if source_op >= 0 else "supersede"
            verb = verb if verb in ("retract", "end", "correct") else "supersede"
            self._writer(source_op).guard(ours, [(start, stop)])
            self.work.take(ours, (start, stop), self._op(verb, self.theirs.names[ent], source_op))
        self._lost[ours].append(period)

    def _takings(self, ent: int, period: Period) -> Iterable[tuple[Period, int]]:
        """The pieces of a period that a node of the branch lost, each with the operation that removed it."""
        index = self.theirs
        edges = {period[0], period[1]}
        edges |= {edge for row in index.rows_of[ent] for edge in (index.r_from[row], index.r_to[row])}
        edges |= {edge for _, start, stop, _ in index.gaps.get(ent, ()) for edge in (start, stop)}
        within = sorted(edge for edge in edges if period[0] <= edge <= period[1])
        found: list[tuple[Period, int]] = []
        for start, stop in pairwise(within):
            source_op = index.removed_by(ent, start, OPEN - 1)
            if found and found[-1][1] == source_op:
                found[-1] = ((found[-1][0][0], stop), source_op)
            else:
                found.append(((start, stop), source_op))
        return found

    def _close(self, new: int, old: int, period: Period) -> None:
        """Replace a value of a slot by one of the branch, with a `supersedes` link where that is possible."""
        linking = Linking(self.trunk, self.work)
        ends = Ends(new, linking.kind("supersedes"), old)
        said = self.theirs.rows_of[self.theirs.ids[self.mine.names[new]]]
        self._writer(self.theirs.v_op[self.theirs.r_ver[said[-1]]] if said else -1).guard(old, [period])
        if linking.closes_cycle(ends, self.work.tx) or linking.overlapping(ends, period, self.work.tx):
            self.work.take(old, period, self.work.op("supersede", self.mine.names[old]))
        else:
            linking.supersede(new, old, Claim(created_by="store"), since=period[0], until=period[1])

    # ------------------------------------------------------------------ events

    def _event(self, ent: int, instants: list[Instant]) -> None:
        theirs, name = self.theirs, self.theirs.names[ent]
        ours = self.mine.ids.get(name, -1)
        first, op = theirs.rows_of[ent][0], -1
        body = description(self.branch, theirs.versions_of[ent][0])
        told = Happened(theirs, self.branch.raw, OPEN - 1, OPEN - 1).told(ent)
        reported = {**body, **_taken(told, theirs.first_reported(ent))}
        if ours < 0:
            ours = self._new(ent)
            op = self._op("record_event", name, theirs.r_op[first])
            kept = {field: value for field, value in reported.items() if value is not None}
            self.work.describe(ours, [(instants[0], OPEN)], kept, op)
            self.added.append(name)
            instants = instants[1:]
        else:
            self.changed.append(name)
        for at in instants:
            own = differing(reported, {**body, **_taken(told, at)})
            if op < 0 or own:
                op = self._op("record_event", name, theirs.r_op[first])
            self.work.happen_again(ours, at, op, own)

    def _retract(self, ent: int) -> None:
        name, source_op = self.theirs.names[ent], self.theirs.r_close[self.theirs.rows_of[ent][-1]]
        self._writer(source_op).guard(self.mine.ids[name])
        self.work.take(self.mine.ids[name], (BEGINNING, OPEN), self._op("retract", name, source_op))
        self.ended.append(name)

    # ------------------------------------------------------------------ links

    def _link(self, triple: Triple, wins: list[Win]) -> None:
        for name in (triple.source, triple.target):
            if name not in self.mine.ids:
                self._bare(self.theirs.ids[name])
        for period, word in wins:
            if word is None:
                self._unlink(triple, period)
            else:
                self._link_holds(triple, period, word)

    def _bare(self, ent: int) -> None:
        """Merge a thing that a link names but that holds nowhere any more, with its last description."""
        theirs, name, work = self.theirs, self.theirs.names[ent], self.work
        ours = self._new(ent)
        row = theirs.rows_of[ent][-1] if theirs.rows_of[ent] else -1
        source_op = theirs.r_close[row] if row >= 0 else -1
        ver = theirs.r_ver[row] if row >= 0 else theirs.versions_of[ent][-1]
        period = (theirs.r_from[row], theirs.r_to[row]) if row >= 0 else (work.tx, OPEN)
        verb = "record_event" if theirs.is_event[ent] else "add_node"
        work.describe(ours, [period], description(self.branch, ver), work.op(verb, name), theirs.v_num[ver])
        self._came(ours, ver)
        taken = theirs.o_verb[source_op] if source_op >= 0 else "supersede"
        work.take(ours, period, self._op("retract" if taken == "retract" else "supersede", name, source_op))
        self._lost[ours].append((BEGINNING, OPEN))
        self.added.append(name)

    def _unlink(self, triple: Triple, period: Period) -> None:
        mine = self.mine
        source_op = max(
            (self.theirs.k_close[row] for link in between(self.theirs, triple) for row in self.theirs.rows_of_link[link]),
            default=-1,
        )  # fmt: skip
        for link in between(mine, triple):
            if any(
                overlap((mine.k_from[row], mine.k_to[row]), period)
                for row in mine.believed_link(link, self.work.tx)
            ):
                self._writer(source_op).guard_links(mine.believed_link(link, self.work.tx))
                self.work.take_link(link, period, self._op("unlink", mine.l_name[link], source_op))
                self.links.append(mine.l_name[link])
                self._gives_back(link, period)

    def _link_holds(self, triple: Triple, period: Period, word: Statement) -> None:
        mine, theirs, work = self.mine, self.theirs, self.work
        there = theirs.k_link[word.row]
        link = self._on_the_trunk(triple, there, period)
        reason, metadata, strength, inferred, by = claimed(self.branch, word.row)
        verb = "supersede" if triple.kind == "supersedes" else "link"
        subject = triple.target if verb == "supersede" else mine.l_name[link]
        claim = Claim(reason, strength or None, by, metadata, bool(inferred))
        Linking(self.trunk, work).claim(link, period, claim, work.op(verb, subject))
        self.links.append(mine.l_name[link])
        if triple.kind == "supersedes":
            self._takes(link, there, period)

    def _on_the_trunk(self, triple: Triple, there: int, period: Period) -> int:
        """The trunk's link for the triple; added if there is none."""
        mine, theirs = self.mine, self.theirs
        known = between(mine, triple)
        for link in known:
            rows = mine.believed_link(link, self.work.tx)
            if any(overlap((mine.k_from[row], mine.k_to[row]), period) for row in rows):
                return link
        name = theirs.l_name[there]
        link = mine.link_ids.get(name, -1)
        if link in known:
            return link
        if link >= 0:
            name = Linking(self.trunk, self.work).new_link_id()
        ends = (mine.ids[theirs.names[end]] for end in (theirs.l_src[there], theirs.l_tgt[there]))
        source, target = ends
        return mine.add_link(name, source, triple.kind, target)

    def _takes(self, link: int, there: int, period: Period) -> None:
        """Copy what a supersession of the branch took, so that it can be restored: where this merge took it, and where nothing else holds."""
        mine = self.mine
        old = mine.l_tgt[link]
        plan = self.plan.nodes.get(self.theirs.l_tgt[there])
        taken = []
        for ver, start, stop in self.theirs.taken.get(there, ()):
            gone = overlap((start, stop), period)
            if gone is None:
                continue
            lost = [part for whole in self._lost[old] if (part := overlap(gone, whole))]
            free = without_all(gone, plan.stated) if plan else []
            taken += [(self._version(old, ver), *part) for part in coalesce([*lost, *free])]
        self.work.set_taken(link, [*mine.taken.get(link, ()), *taken])

    def _version(self, ours: int, ver: int) -> int:
        """The trunk's version for a version of the branch; one that holds nowhere any more is merged as well."""
        there = self._there(ver)
        if there >= 0:
            return there
        self.work.describe(ours, (), description(self.branch, ver), -1, self.theirs.v_num[ver])
        return self._came(ours, ver)

    def _gives_back(self, link: int, period: Period) -> None:
        mine = self.mine
        if mine.l_kind[link] == "supersedes" and mine.taken.get(link):
            left = [
                (ver, *piece)
                for ver, start, stop in mine.taken[link]
                for piece in without_all((start, stop), [period])
            ]
            self.work.set_taken(link, left)


def _taken(told: list[tuple[Instant, Json]], at: Instant) -> Json:
    """What an occurrence at that instant says of itself, removed from those told."""
    found = next((one for one in told if one[0] == at), (at, {}))
    if found in told:
        told.remove(found)
    return found[1]
