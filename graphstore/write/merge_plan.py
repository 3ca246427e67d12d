"""Plan a merge: decide for each thing and link changed on a branch since its fork or last merge, which side holds when.

Planning only reads. A different change on both sides is a conflict, and so is what cannot coexist with the trunk. A `MergePlan` has what is merged; `carrying.py` writes
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

from graphstore.errors import InvalidError
from graphstore.ledger.chain import dumps
from graphstore.read.working_set import WorkingSet
from graphstore.search.source import description
from graphstore.values.findings import Decide, MergeConflict
from graphstore.values.models import Event, Json, Node
from graphstore.values.period import (
    ALWAYS,
    OPEN,
    Instant,
    Period,
    coalesce,
    end_moment,
    moment,
    overlap,
    without_all,
)
from graphstore.values.threeway import Cell, StatedContent, StatedPiece, cells, with_gone
from graphstore.view.sight import Core
from graphstore.view.working_sight import WorkingSight
from graphstore.write.changes_since import ChangesSince, SharedVersions
from graphstore.write.linking import claim_of, leads
from graphstore.write.trust import TRUST

Side = Literal["trunk", "branch"]
Win = tuple[Period, StatedContent | None]
_CHOICES: tuple[Side, Side] = ("trunk", "branch")
_SUCCEEDING = frozenset({"supersedes", "transition"})  # kinds whose links record that the target was replaced


class Triple(NamedTuple):
    """A link by its ends, as ids, and its kind. The ends of a symmetric kind are sorted."""

    source: str
    kind: str
    target: str


@dataclass
class MergeShare:
    """Holds the merged part of one thing or link. `ours`: the number of a thing on the trunk, -1 for a new one."""

    ours: int = -1
    wins: list[Win] = field(default_factory=list)  # where the branch's statement holds instead of the trunk's
    kept: list[Period] = field(default_factory=list)  # periods decided for the trunk
    held: list[Period] = field(default_factory=list)  # where the trunk stays as it is, for any reason
    closes: list[tuple[int, Period]] = field(default_factory=list)  # values of its slot it replaces, and when
    forced: list[Cell] = field(default_factory=list)  # conflicts about a retraction, decided for the branch
    instants: list[Instant] = field(default_factory=list)  # of an event: its new occurrences
    is_retracted: bool = False  # of an event

    @property
    def is_whole(self) -> bool:
        """Return True if everything that the branch recorded of it is carried over."""
        return not self.held

    @property
    def is_merged(self) -> bool:
        """Return True if there may be something to write."""
        return self.is_whole or bool(self.wins or self.instants or self.is_retracted)

    def leave(self, periods: list[Period]) -> None:
        """Leave the trunk as it is over some periods."""
        self.wins = [(piece, word) for whole, word in self.wins for piece in without_all(whole, periods)]
        self.held += periods

    def gained(self) -> list[Period]:
        """Return the periods in which it holds according to the branch."""
        return coalesce(period for period, word in self.wins if word is not None)

    def lost(self) -> list[Period]:
        """Return the periods in which it no longer holds according to the branch."""
        return coalesce(period for period, word in self.wins if word is None)


@dataclass
class MergePlan:
    """Everything that is merged: things by their number on the branch, links by their triple."""

    things: dict[int, MergeShare] = field(default_factory=dict)
    links: dict[Triple, MergeShare] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # links
    looks: list[int] = field(default_factory=list)  # the operations of the branch that confirmed something
    kinds: list[Json] = field(default_factory=list)
    trust: Json | None = None
    since: ChangesSince = field(kw_only=True)  # what the branch recorded
    shared: SharedVersions = field(kw_only=True)
    conflicts: list[MergeConflict] = field(default_factory=list)
    known_here: frozenset[Instant] = frozenset()  # transactions of the branch that took over what is here

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing to write."""
        shares = (*self.things.values(), *self.links.values())
        stated = self.looks or self.kinds or self.trust or self.conflicts
        return not (stated or any(share.is_merged for share in shares))

    @property
    def undecided(self) -> bool:
        return any(conflict.decision is None for conflict in self.conflicts)


class Planning:
    """Compares a trunk and a branch. `base`: the trunk contains everything that the branch recorded up to this instant.

    `seen`: the branch contains everything that the trunk recorded up to this one; where that is later than `base`, what the trunk had then is the common base.
    `pulls`: the other direction. `trunk` is then the branch that takes over what the trunk has.
    """

    def __init__(
        self,
        trunk: Core,
        branch: Core,
        base: Instant,
        now: Instant,
        decide: Decide,
        *,
        seen: Instant | None = None,
        pulls: bool = False,
    ) -> None:
        self.pulls = pulls
        self.trunk, self.branch, self.base, self.now = trunk, branch, base, now
        self.mine, self.theirs = trunk.index, branch.index
        self.has_seen = seen is not None and seen > base
        self.parted = seen if seen is not None and self.has_seen else base  # the tx of the common base
        self.was = self.mine if self.has_seen else self.theirs  # the line that it is read from
        self.sides = (
            trunk if self.has_seen else branch,
            trunk,
            branch,
        )  # whose statements are the base, ours and theirs
        self.decide = decide
        self.since_here, self.since = ChangesSince(trunk, self.parted), ChangesSince(branch, base)
        self.plan = MergePlan(since=self.since, shared=SharedVersions(trunk, branch))

    def make_plan(self) -> MergePlan:
        """Return the plan."""
        self.plan.known_here = frozenset(self._known_here)
        self._kinds()
        self._trust()
        for ent in sorted(
            self.since.things | self._spoken_of() | self._decided_there()
        ):  # in the order in which they were first known
            ours = self.mine.ids.get(self.theirs.names[ent], -1)
            if ent in self.theirs.gone or ours in self.mine.gone:
                continue
            if ours >= 0 and not self._is_one(ent, ours):
                self._conflict(self.theirs.names[ent], "identity", ("trunk",))
            elif self.theirs.is_event[ent]:
                self._event(ent, ours)
            else:
                self._node(ent, ours)
        self._slots()
        self._links()
        self.plan.looks = self._looks()
        self._refuse_idle()
        return self.plan

    def _refuse_idle(self) -> None:
        """Raise InvalidError for a decision on something that is in no conflict: the caller expects another state."""
        in_conflict = dict.fromkeys(conflict.id for conflict in self.plan.conflicts)
        for id in self.decide if isinstance(self.decide, Mapping) else ():
            if id not in in_conflict:
                raise InvalidError(
                    f"decide names {id!r}, which is in no conflict. In conflict: {', '.join(in_conflict) or 'nothing'}."
                )

    # ------------------------------------------------------------------ conflicts

    def _conflict(self, id: str, what: str, choices: tuple[Side, ...] = _CHOICES, **more: Any) -> Side:
        """Add a conflict and its decision. Returns the winner; `trunk` for an undecided one, since nothing is written then."""
        during = more.pop("during", None)
        if during is not None:
            more |= {"valid_from": moment(during[0]), "valid_to": end_moment(during[1])}
        shown = tuple(self._side(side) for side in choices)
        told = {"id": id, "what": what, "choices": shown, "into": self._side("trunk")}
        found = MergeConflict.model_validate({**told, **more})
        decision = self._decided(found)
        self.plan.conflicts.append(found.model_copy(update={"decision": decision}))
        return "trunk" if decision is None else self._side(decision)

    def _side(self, side: Side) -> Side:
        """Translate the name of a side between the caller's view and this one."""
        return side if not self.pulls else "branch" if side == "trunk" else "trunk"

    def _decided(self, found: MergeConflict) -> Any:
        wanted: Any = self.decide
        if callable(wanted):
            wanted = wanted(found)
        elif isinstance(wanted, Mapping):
            wanted = wanted.get(found.id)
        elif found.choices == (self._side("trunk"),) and wanted == self._side("branch"):
            wanted = None
        if wanted is not None and wanted not in found.choices:
            raise InvalidError.choice(f"decision on {found.what} {found.id!r}", wanted, found.choices)
        return wanted

    def _spoken_of(self) -> set[int]:
        """Return what the branch mentioned without writing a row, if the trunk has changed it."""
        ids, changed = self.mine.ids, self.since_here.is_changed
        names = {ent: self.theirs.names[ent] for ent in self.since.spoken_of - self.since.things}
        self.mine.prepare_ids(names.values())
        return {ent for ent, name in names.items() if name in ids and changed(ids[name])}

    def _decided_there(self) -> set[int]:
        """Return what the branch decided when it took over what is here, also where that wrote no row there: the decision comes along."""
        if not self.has_seen:
            return set()
        self.theirs.prepare_ids(self.since.decisions)
        return {self.theirs.ids[name] for name in self.since.decisions if name in self.theirs.ids}

    def _is_decided_there(self, cell: Cell) -> bool:
        """Return True if the branch states what holds over a period by a decision, and not by a row that it has written since."""
        return self.has_seen and cell.theirs is not None and self.theirs.r_tx[cell.theirs.row] <= self.base

    # ------------------------------------------------------------------ nodes

    def _node(self, ent: int, ours: int) -> None:
        index, name = self.theirs, self.theirs.names[ent]
        common = ours if self.has_seen else ent
        is_old = common >= 0 and self.was.born[common] <= self.parted
        was = self.was.believed(common, self.parted) if is_old else []
        rows = was, self.mine.now_of[ours] if ours >= 0 else (), index.now_of[ent]
        three = cells(*map(self._pieces, self.sides, rows))
        if ours >= 0 and any(cell.ours != cell.theirs or cell.ours is None for cell in three):
            here = self.since_here.spoken(ours, ())
            three = with_gone(three, here, self.since.spoken(ent, self._known_here))
        share = self.plan.things[ent] = MergeShare(ours)
        self._divide(
            share, three, self._is_mixed(ent, ours), lambda cell: self._disputed(name, "node", cell, _shown)
        )
        if name in self.since.decisions:
            share.forced += [
                cell for cell in three if cell.outcome == "theirs" and self._is_decided_there(cell)
            ]

    def _divide(
        self, share: MergeShare, three: list[Cell], mixed: bool, disputed: Callable[[Cell], Side]
    ) -> None:
        """Record for each cell which side holds. `mixed`: both sides have changed the thing, or the branch already has a part from here."""
        for cell in three:
            if cell.outcome == "conflict" and disputed(cell) == "trunk":
                share.kept.append(cell.period)
            elif cell.outcome != "ours":
                share.wins.append((cell.period, cell.theirs))
                share.forced += [cell] if cell.is_clash else []
            mixed = mixed or cell.is_clash or cell.ours != cell.base
        if mixed:
            share.held = without_all(ALWAYS, [period for period, _ in share.wins])

    def _is_mixed(self, ent: int, ours: int) -> bool:
        """Return True if the trunk has changed a thing or its slot since, or the branch has already taken over a part of it."""
        index, key = self.theirs, self.theirs.key[ent]
        slot = () if key is None else self.mine.slots.get((key, index.scope[ent]), ())
        came_back = self._came_back(index.rows_of[ent], index.r_tx, index.r_end)
        return came_back or any(self.since_here.is_changed(each) for each in {ours, *slot} - {-1})

    def _is_one(self, ent: int, ours: int) -> bool:
        """Return True if a thing of the branch and one of the trunk with the same id are the same thing."""
        one, other = self.theirs, self.mine
        alike = bool(one.is_event[ent]) == bool(other.is_event[ours]) and (
            one.kind[ent], one.key[ent], one.scope[ent],
        ) == (other.kind[ours], other.key[ours], other.scope[ours])  # fmt: skip
        if not alike or not one.is_event[ent]:
            return alike
        versions = one.versions_of[ent][0], other.versions_of[ours][0]
        return description(self.branch, versions[0]) == description(self.trunk, versions[1])

    def _pieces(self, core: Core, rows: Iterable[int]) -> list[StatedPiece]:
        starts, stops, versions = core.index.r_from, core.index.r_to, core.index.r_ver
        words = ((row, dumps(description(core, versions[row]))) for row in rows)
        return [StatedPiece(starts[row], stops[row], StatedContent(word, row)) for row, word in words]

    def _disputed(self, id: str, what: str, cell: Cell, shown: Callable[[WorkingSight, int], Any]) -> Side:
        """Add a conflict about what base, ours and theirs state over a period. Returns the winner."""
        names, instants = ("base", "ours", "theirs"), (self.parted, self.now, self.now)
        three: dict[str, Any] = {
            name: None if word is None else shown(WorkingSight(core, cell.start, tx), word.row)
            for name, core, tx, word in zip(names, self.sides, instants, cell[2:5], strict=True)
        }
        for name, gone in (("ours", cell.ours_gone), ("theirs", cell.theirs_gone)):
            if gone is not None and what == "node":
                three[f"{name}_standing"] = gone.standing
        return self._conflict(id, what, during=cell.period, **three)

    # ------------------------------------------------------------------ slots

    def _slots(self) -> None:
        """Find values that would hold in a slot at the same time as a value of the trunk."""
        index = self.mine
        for ent, share in self.plan.things.items():
            key = self.theirs.key[ent]
            if key is None or not share.gained():
                continue
            for other in index.slots.get((key, self.theirs.scope[ent]), ()):
                for period, gained in product(self._held_after(other), share.gained()):
                    both = overlap(period, gained)
                    if other != share.ours and both is not None:
                        self._collision(ent, other, both)

    def _held_after(self, ours: int) -> list[Period]:
        """Return the periods in which a node of the trunk holds after the merge."""
        index = self.mine
        ent = self.theirs.ids.get(index.names[ours], -1)
        lost = self.plan.things[ent].lost() if ent in self.plan.things else []
        held = [(index.r_from[row], index.r_to[row]) for row in index.now_of[ours]]
        return coalesce(piece for whole in held for piece in without_all(whole, lost))

    def _collision(self, ent: int, other: int, both: Period) -> None:
        mine, now, share = self.mine, self.now, self.plan.things[ent]
        name = self.theirs.names[ent]
        held = mine.find(other, both[0], now)
        word = next(word for period, word in share.wins if word is not None and overlap(period, both))
        side = self._conflict(
            name,
            "slot",
            during=both,
            other=mine.names[other],
            ours=None if held < 0 else _shown(WorkingSight(self.trunk, both[0], now), held),
            theirs=_shown(WorkingSight(self.branch, both[0], now), word.row),
        )
        if side == "branch":
            share.closes.append((other, both))
        else:
            share.leave([both])
            share.kept.append(both)

    # ------------------------------------------------------------------ events

    def _event(self, ent: int, ours: int) -> None:
        """Plan an event. It exists or not, and occurrences are only added."""
        index, mine, name = self.theirs, self.mine, self.theirs.names[ent]
        share, common = MergeShare(ours), ours if self.has_seen else ent
        is_old = common >= 0 and self.was.born[common] <= self.parted
        happened = _happened(index, ent) if index.now_of[ent] else []
        there = _happened(mine, ours) if ours >= 0 else []
        before = _happened(self.was, common, self.parted) if is_old else []
        holds = ours >= 0 and bool(mine.now_of[ours])
        share.instants = _left(happened, before if is_old and ours >= 0 else there)
        is_stated = bool(share.instants) or (happened and self.since.is_confirmed(ent, self._known_here))
        if is_stated and ours >= 0 and not holds:
            theirs = _shown(WorkingSight(self.branch, self.now, self.now), index.now_of[ent][0])
            self._conflict(name, "event", ("trunk",), theirs=theirs)
            return
        is_confirmed = ours >= 0 and self.since_here.is_confirmed(ours, ())
        if ours >= 0 and (not is_old or is_confirmed or self._is_mixed(ent, ours)):
            share.held = [ALWAYS]
        if not happened and holds and is_old:
            share.is_retracted = True
            if is_confirmed or _left(there, before):
                shown = _shown(WorkingSight(self.trunk, self.now, self.now), mine.now_of[ours][0])
                share.is_retracted = self._conflict(name, "event", ours=shown) == "branch"
        self.plan.things[ent] = share

    # ------------------------------------------------------------------ links

    def _links(self) -> None:
        for triple in dict.fromkeys(triple_of(self.branch, link) for link in sorted(self.since.links)):
            share, names = self._divided(triple), self._names(triple)
            if not all(self._comes(name) for name in (triple.source, triple.target)):
                self.plan.left_out += names if share.wins else []
            elif share.gained() and self._closes_cycle(triple):
                row = next(word.row for _, word in share.wins if word is not None)
                link = WorkingSight(self.branch, self.now, self.now).link(row)
                self._conflict(names[0], "cycle", ("trunk",), other=triple.target, theirs=link)
                self.plan.left_out += names
                self._stay(triple, share)
            else:
                self.plan.links[triple] = share

    def _names(self, triple: Triple) -> list[str]:
        return [self.theirs.l_name[link] for link in between(self.theirs, triple)]

    def _divided(self, triple: Triple) -> MergeShare:
        theirs, ours = between(self.theirs, triple), between(self.mine, triple)
        common = ours if self.has_seen else theirs
        three = cells(
            *map(self._link_pieces, self.sides, (common, ours, theirs), (self.parted, OPEN - 1, OPEN - 1))
        )
        three = with_gone(
            three, self.since_here.unlinked(ours, ()), self.since.unlinked(theirs, self._known_here)
        )
        share, id, index = MergeShare(), self._names(triple)[-1], self.theirs
        mixed = any(self._came_back(index.rows_of_link[link], index.k_tx, index.k_end) for link in theirs)
        mixed = mixed or any(map(self.since_here.is_link_changed, ours))
        target = self.plan.things.get(index.ids[triple.target]) if triple.kind in _SUCCEEDING else None
        mixed = mixed or (target is not None and not target.is_whole)
        self._divide(share, three, mixed, lambda cell: self._disputed(id, "link", cell, WorkingSight.link))
        share.leave(target.kept if target else [])
        return share

    def _link_pieces(self, core: Core, links: list[int], tx: Instant) -> list[StatedPiece]:
        index = core.index
        return [
            StatedPiece(
                index.k_from[row], index.k_to[row], StatedContent(dumps(vars(claim_of(core, row))), row)
            )
            for link in links
            for row in index.believed_link(link, tx)
        ]

    def _comes(self, name: str) -> bool:
        """Return True if a thing is on the trunk after the merge."""
        ent = self.theirs.ids[name]
        if name in self.mine.ids:
            return True
        if ent in self.theirs.gone:  # forgotten before the trunk knew it
            return False
        share = self.plan.things.get(ent)
        if not self.theirs.now_of[ent]:  # it is merged with its last description
            return True
        return share is not None if self.theirs.is_event[ent] else share is None or bool(share.gained())

    def _closes_cycle(self, triple: Triple) -> bool:
        if not self.branch.vocabulary.kinds[triple.kind].acyclic:
            return False
        return leads(triple.target, triple.source, lambda name: self._onward(name, triple.kind))

    def _onward(self, name: str, kind: str) -> Iterator[str]:
        """Yield where links of a kind lead from a thing, on the trunk after the merge as planned so far."""
        index = self.mine
        for link in index.of_kinds(index.out, index.ids.get(name, -1), (kind,)):
            target = index.names[index.l_tgt[link]]
            share = self.plan.links.get(Triple(name, kind, target))
            lost = share.lost() if share else []
            held = ((index.k_from[row], index.k_to[row]) for row in index.believed_link(link, OPEN - 1))
            if index.l_kind[link] == kind and any(without_all(whole, lost) for whole in held):
                yield target
        for triple, share in self.plan.links.items():
            if triple[:2] == (name, kind) and share.gained():
                yield triple.target

    def _stay(self, triple: Triple, share: MergeShare) -> None:
        """Leave on the trunk what a rejected supersession would take."""
        target = self.plan.things.get(self.theirs.ids[triple.target])
        if triple.kind == "supersedes" and target is not None:
            pairs = product(target.lost(), share.gained())
            target.leave([part for gone, held in pairs if (part := overlap(gone, held))])

    # ------------------------------------------------------------------ operations without rows

    def _looks(self) -> list[int]:
        """Return the operations of the branch that confirmed things which the trunk has after the merge."""
        ids, things = self.theirs.ids, self.plan.things
        return [
            each.number
            for each in self.since.operations
            if each.verb == "confirm" and each.tx not in self._known_here and self.theirs.believed_op(each.number, OPEN - 1)
            and (each.subject in self.mine.ids or (ids.get(each.subject, -1) in things and self._comes(each.subject)))
        ]  # fmt: skip

    @cached_property
    def _known_here(self) -> set[Instant]:
        """Return the transactions of the branch since then that took over what was recorded here."""
        lines = self.mine.lineage
        return {
            each.tx
            for each in self.since.operations
            if each.verb == "pull" or (each.verb == "merge" and each.subject in lines)
        }

    def _came_back(self, rows: Iterable[int], began: Sequence[Instant], ended: Sequence[Instant]) -> bool:
        known = self._known_here
        return any(began[row] in known or ended[row] in known for row in rows)

    # ------------------------------------------------------------------ kinds of link and trust

    def _kinds(self) -> None:
        known = {kind["name"]: kind for kind in self.mine.kinds}
        for kind in self.theirs.kinds:
            if kind["name"] not in known:
                self.plan.kinds.append(kind)
            elif known[kind["name"]] != kind:
                self._conflict(kind["name"], "kind", ("trunk",))

    def _trust(self) -> None:
        ours, theirs = self.mine.setting(TRUST), self.theirs.setting(TRUST)
        was = self.was.setting_at(TRUST, self.parted)
        if theirs not in (was, ours) and (ours == was or self._conflict(TRUST, "trust") == "branch"):
            self.plan.trust = theirs


def triple_of(core: Core, link: int) -> Triple:
    """Return the triple of a link."""
    index = core.index
    ends = [index.names[index.l_src[link]], index.names[index.l_tgt[link]]]
    kind = index.l_kind[link]
    if core.vocabulary.kinds[kind].symmetric:
        ends.sort()
    return Triple(ends[0], kind, ends[1])


def between(index: WorkingSet, triple: Triple) -> list[int]:
    """Return the links with this triple."""
    source, kind, target = index.ids.get(triple.source, -1), triple.kind, index.ids.get(triple.target, -1)
    found = set(index.saying(source, kind, target))
    if kind in index.symmetric:
        found.update(index.saying(target, kind, source))
    return sorted(found)


def _shown(sight: WorkingSight, row: int) -> Node | Event:
    index = sight.index
    if index.is_event[index.r_ent[row]]:
        return sight.event(row, "stands")
    return sight.node(row, "stands")


def _happened(index: WorkingSet, ent: int, tx: Instant = OPEN) -> list[Instant]:
    """Return the instants of an event, in the order they were recorded, as known at `tx`."""
    again = [index.s_at[row] for row in index.seen_of.get(ent, ()) if index.s_tx[row] <= tx]
    return [index.first_reported(ent), *again]


def _left(instants: list[Instant], known: list[Instant]) -> list[Instant]:
    """Return the instants that are not among the known ones. Repeated instants count."""
    return list((Counter(instants) - Counter(known)).elements())
