"""What a merge would do: for each thing and link changed on a branch since it forked or was merged, which side holds when.

Only reads. A different change on both sides is a conflict; so is what cannot coexist with the trunk. What is merged is in a
`MergePlan`; `merge_write.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from graphstore.core.index.index import Index
from graphstore.core.journal.line import dumps
from graphstore.core.read.sight import Core
from graphstore.core.read.view_diff import description
from graphstore.core.read.working_sight import WorkingSight
from graphstore.core.write.changes_since import ChangesSince, SharedVersions
from graphstore.core.write.trust import TRUST
from graphstore.errors import InvalidError
from graphstore.values.models import Event, Json, Link, MergeConflict, Node
from graphstore.values.period import OPEN, Instant, Period, coalesce, end_moment, moment, overlap, without_all
from graphstore.values.threeway import Cell, Piece, Statement, cells

Side = Literal["trunk", "branch"]
Decide = Mapping[str, str] | Callable[[MergeConflict], str | None] | str | None
Win = tuple[Period, Statement | None]
_CHOICES: tuple[Side, Side] = ("trunk", "branch")
_SUCCEEDING = frozenset({"supersedes", "transition"})  # kinds whose link records that the target was replaced


class Triple(NamedTuple):
    """A link by its ends, as ids, and its kind; the ends of a symmetric kind are sorted."""

    source: str
    kind: str
    target: str


@dataclass
class NodePlan:
    """What is merged of one node. `ours` is its number on the trunk, -1 for a new one."""

    ent: int
    ours: int
    wins: list[Win] = field(default_factory=list)
    kept: list[Period] = field(default_factory=list)  # what was decided for the trunk
    stated: list[Period] = field(default_factory=list)  # when the node holds on any of the three sides
    closes: list[tuple[int, Period]] = field(
        default_factory=list
    )  # the periods it takes from other values of its slot

    def only(self, periods: Iterable[Period]) -> list[Win]:
        """The wins outside these periods."""
        holes = list(periods)
        return [(piece, word) for whole, word in self.wins for piece in without_all(whole, holes)]

    def gained(self) -> list[Period]:
        """When it holds according to the branch."""
        return coalesce(period for period, word in self.wins if word is not None)

    def lost(self) -> list[Period]:
        """When it no longer holds according to the branch."""
        return coalesce(period for period, word in self.wins if word is None)


class Carried(NamedTuple):
    """What is carried over as it was done, by numbers of the branch: things, links, and the operations that confirmed something."""

    ents: list[int]
    links: list[int]
    looks: list[int]


@dataclass
class MergePlan:
    """All that is merged: things by their number on the branch, links by their triple."""

    nodes: dict[int, NodePlan] = field(default_factory=dict)
    events: dict[int, list[Instant]] = field(
        default_factory=dict
    )  # new events and new occurrences, with their instants
    retracted: list[int] = field(default_factory=list)  # events
    links: dict[Triple, list[Win]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # links
    carried: Carried = field(default_factory=lambda: Carried([], [], []))
    kinds: list[Json] = field(default_factory=list)
    trust: Json | None = None
    since: ChangesSince = field(kw_only=True)  # what the branch recorded
    shared: SharedVersions = field(kw_only=True)
    conflicts: list[MergeConflict] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        carried = any(self.carried)
        stated = self.events or self.retracted or self.links or self.kinds or self.trust or self.conflicts
        return not (carried or stated or any(node.wins for node in self.nodes.values()))

    @property
    def undecided(self) -> bool:
        return any(conflict.decision is None for conflict in self.conflicts)


class Planning:
    """The comparison of a trunk and a branch. `base`: up to this instant the trunk has all that the branch has.

    `pulls`: it is the other way round, and `trunk` here is the branch that takes over what the trunk has.
    """

    def __init__(
        self, trunk: Core, branch: Core, base: Instant, now: Instant, decide: Decide, *, pulls: bool = False
    ) -> None:
        self.pulls = pulls
        self.trunk, self.branch, self.base, self.now = trunk, branch, base, now
        self.mine, self.theirs = trunk.index, branch.index
        self.decide = decide
        self.since_here, self.since = ChangesSince(trunk, base), ChangesSince(branch, base)
        self.plan = MergePlan(since=self.since, shared=SharedVersions(trunk, branch))
        self._words: dict[tuple[bool, int], bytes] = {}

    def made(self) -> MergePlan:
        """The plan."""
        self._kinds()
        self._trust()
        for ent in self._touched:
            if self.theirs.is_event[ent]:
                self._event(ent)
            else:
                self._node(ent)
        self._slots()
        self._links()
        self.plan.carried = self._carried()
        self._refuse_idle()
        return self.plan

    def _refuse_idle(self) -> None:
        """Raise InvalidError for a decision on what is in no conflict: the caller expects another state."""
        if isinstance(self.decide, Mapping):
            in_conflict = dict.fromkeys(conflict.id for conflict in self.plan.conflicts)
            for id in self.decide:
                if id not in in_conflict:
                    raise InvalidError(
                        f"decide names {id!r}, which is in no conflict. In conflict: {', '.join(in_conflict) or 'nothing'}."
                    )

    # ------------------------------------------------------------------ conflicts

    def _conflict(self, id: str, what: str, choices: tuple[Side, ...] = _CHOICES, **more: Any) -> Side:
        """Add a conflict and its decision. An undecided one counts as `trunk`: then nothing is written anyway."""
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
        """The name of a side for the caller, and back."""
        return side if not self.pulls else "branch" if side == "trunk" else "trunk"

    def _decided(self, found: MergeConflict) -> Side | None:
        decide = self.decide
        if decide is None or isinstance(decide, str):
            wanted = decide
            if found.choices == (self._side("trunk"),) and decide == self._side("branch"):
                wanted = None
        else:
            wanted = decide(found) if callable(decide) else decide.get(found.id)
        if wanted is None:
            return None
        for side in found.choices:
            if side == wanted:
                return side
        raise InvalidError.choice(f"decision on {found.what} {found.id!r}", wanted, found.choices)

    # ------------------------------------------------------------------ nodes

    @cached_property
    def _touched(self) -> list[int]:
        """The entities changed on the branch since, in the order they were first known; not the forgotten ones."""
        mine, theirs = self.mine, self.theirs
        return sorted(
            ent
            for ent in self.since.things
            if ent not in theirs.gone and mine.ids.get(theirs.names[ent], -1) not in mine.gone
        )

    def _node(self, ent: int) -> None:
        index, name = self.theirs, self.theirs.names[ent]
        ours = self.mine.ids.get(name, -1)
        if ours >= 0 and not self._is_one(ent, ours):
            self._conflict(name, "identity", ("trunk",))
            return
        was = index.believed(ent, self.base) if index.born[ent] <= self.base else []
        plan = self.plan.nodes[ent] = NodePlan(ent, ours)
        for cell in cells(
            self._pieces(self.branch, was),
            self._pieces(self.trunk, self.mine.now_of[ours] if ours >= 0 else ()),
            self._pieces(self.branch, index.now_of[ent]),
        ):
            plan.stated.append(cell.period)
            if cell.outcome == "conflict":
                if self._disputed(name, cell) == "trunk":
                    plan.kept.append(cell.period)
                    continue
            elif cell.outcome == "ours":
                continue
            plan.wins.append((cell.period, cell.theirs))

    def _is_one(self, ent: int, ours: int) -> bool:
        one, other = self.theirs, self.mine
        return bool(one.is_event[ent]) == bool(other.is_event[ours]) and (
            one.kind[ent], one.key[ent], one.scope[ent],
        ) == (other.kind[ours], other.key[ours], other.scope[ours])  # fmt: skip

    def _pieces(self, core: Core, rows: Iterable[int]) -> list[Piece]:
        index = core.index
        return [
            Piece(index.r_from[row], index.r_to[row], Statement(self._word(core, row), row)) for row in rows
        ]

    def _word(self, core: Core, row: int) -> bytes:
        ver = core.index.r_ver[row]
        key = (core is self.trunk, ver)
        if key not in self._words:
            self._words[key] = dumps(description(core, ver))
        return self._words[key]

    def _disputed(self, name: str, cell: Cell) -> Side:
        start = cell.start
        sights = (
            WorkingSight(self.branch, start, self.base),
            WorkingSight(self.trunk, start, self.now),
            WorkingSight(self.branch, start, self.now),
        )
        shown = [
            None if word is None else _shown(sight, word.row)
            for sight, word in zip(sights, cell[2:], strict=True)
        ]
        three: dict[str, Any] = dict(zip(("base", "ours", "theirs"), shown, strict=True))
        return self._conflict(name, "node", during=cell.period, **three)

    # ------------------------------------------------------------------ slots

    def _slots(self) -> None:
        """Find values that would hold in a slot beside a value of the trunk."""
        index = self.mine
        for plan in self.plan.nodes.values():
            key = self.theirs.key[plan.ent]
            if key is None or not plan.gained():
                continue
            for other in index.slots.get((key, self.theirs.scope[plan.ent]), ()):
                if other == plan.ours:
                    continue
                for period in self._held_after(other):
                    for gained in plan.gained():
                        both = overlap(period, gained)
                        if both is not None:
                            self._collision(plan, other, both)

    def _held_after(self, ours: int) -> list[Period]:
        """When a node of the trunk holds after the merge."""
        index = self.mine
        ent = self.theirs.ids.get(index.names[ours], -1)
        lost = self.plan.nodes[ent].lost() if ent in self.plan.nodes else []
        held = [(index.r_from[row], index.r_to[row]) for row in index.now_of[ours]]
        return coalesce(piece for whole in held for piece in without_all(whole, lost))

    def _collision(self, plan: NodePlan, other: int, both: Period) -> None:
        mine, now = self.mine, self.now
        name = self.theirs.names[plan.ent]
        held = mine.find(other, both[0], now)
        word = next(word for period, word in plan.wins if word is not None and overlap(period, both))
        side = self._conflict(
            name,
            "slot",
            during=both,
            other=mine.names[other],
            ours=None if held < 0 else _shown(WorkingSight(self.trunk, both[0], now), held),
            theirs=_shown(WorkingSight(self.branch, both[0], now), word.row),
        )
        if side == "branch":
            plan.closes.append((other, both))
        else:
            plan.wins = plan.only([both])
            plan.kept.append(both)

    # ------------------------------------------------------------------ events

    def _event(self, ent: int) -> None:
        """Plan an event: it exists or not, and its occurrences only grow."""
        index, mine, name = self.theirs, self.mine, self.theirs.names[ent]
        ours = mine.ids.get(name, -1)
        if ours < 0:
            if index.now_of[ent]:
                self.plan.events[ent] = _happened(index, ent)
            return
        versions = index.versions_of[ent][0], mine.versions_of[ours][0]
        alike = self._is_one(ent, ours) and description(self.branch, versions[0]) == description(
            self.trunk, versions[1]
        )
        if not alike:
            self._conflict(name, "identity", ("trunk",))
            return
        before = _happened(index, ent, self.base) if index.born[ent] <= self.base else []
        there = _happened(mine, ours)
        if not index.now_of[ent]:
            if mine.now_of[ours] and index.born[ent] <= self.base and self._goes(ent, ours, before, there):
                self.plan.retracted.append(ent)
            return
        fresh = _left(_happened(index, ent), before if index.born[ent] <= self.base else there)
        if fresh and mine.now_of[ours]:
            self.plan.events[ent] = fresh
        elif fresh:
            theirs = _shown(WorkingSight(self.branch, self.now, self.now), index.now_of[ent][0])
            self._conflict(name, "event", ("trunk",), theirs=theirs)

    def _goes(self, ent: int, ours: int, before: list[Instant], there: list[Instant]) -> bool:
        """Whether an event retracted on the branch is retracted: unless it happened again on the trunk, and the trunk is kept."""
        if not _left(there, before):
            return True
        shown = _shown(WorkingSight(self.trunk, self.now, self.now), self.mine.now_of[ours][0])
        return self._conflict(self.theirs.names[ent], "event", ours=shown) == "branch"

    # ------------------------------------------------------------------ links

    def _links(self) -> None:
        for triple in self._triples():
            wins = self._won(triple)
            if not wins:
                continue
            if not all(self._comes(name) for name in (triple.source, triple.target)):
                self.plan.left_out += self._names(triple)
            elif self._closes_cycle(triple, wins):
                self._conflict(
                    self._names(triple)[0],
                    "cycle",
                    ("trunk",),
                    other=triple.target,
                    theirs=self._link(wins),
                )
                self._stay(triple, wins)
            else:
                self.plan.links[triple] = wins

    def _triples(self) -> list[Triple]:
        """The links changed on the branch since."""
        return list(dict.fromkeys(self.triple(link) for link in sorted(self.since.links)))

    def triple(self, link: int) -> Triple:
        """The triple of a link of the branch."""
        return triple_of(self.branch, link)

    def _names(self, triple: Triple) -> list[str]:
        return [self.theirs.l_name[link] for link in between(self.theirs, triple)]

    def _won(self, triple: Triple) -> list[Win]:
        wins: list[Win] = []
        theirs, ours = between(self.theirs, triple), between(self.mine, triple)
        for cell in cells(
            self._link_pieces(self.branch, theirs, self.base),
            self._link_pieces(self.trunk, ours, OPEN - 1),
            self._link_pieces(self.branch, theirs, OPEN - 1),
        ):
            if cell.outcome == "ours" or (cell.outcome == "conflict" and self._disputed_link(triple, cell)):
                continue
            wins.append((cell.period, cell.theirs))
        target = self.theirs.ids[triple.target]
        if triple.kind in _SUCCEEDING and target in self.plan.nodes:
            kept = self.plan.nodes[target].kept
            wins = [(piece, word) for whole, word in wins for piece in without_all(whole, kept)]
        return wins

    def _link_pieces(self, core: Core, links: list[int], tx: Instant) -> list[Piece]:
        index = core.index
        return [
            Piece(index.k_from[row], index.k_to[row], Statement(dumps(claimed(core, row)), row))
            for link in links
            for row in index.believed_link(link, tx)
        ]

    def _disputed_link(self, triple: Triple, cell: Cell) -> bool:
        """Add a conflict on a link. True: the trunk's is kept."""
        sights = (
            WorkingSight(self.branch, cell.start, self.base),
            WorkingSight(self.trunk, cell.start, self.now),
            WorkingSight(self.branch, cell.start, self.now),
        )
        shown = [
            None if word is None else sight.link(word.row)
            for sight, word in zip(sights, cell[2:], strict=True)
        ]
        three: dict[str, Any] = dict(zip(("base", "ours", "theirs"), shown, strict=True))
        name = self._names(triple)[-1]
        return self._conflict(name, "link", during=cell.period, **three) == "trunk"

    def _link(self, wins: list[Win]) -> Link | None:
        word = next((word for _, word in wins if word is not None), None)
        return None if word is None else WorkingSight(self.branch, self.now, self.now).link(word.row)

    def _comes(self, name: str) -> bool:
        """Whether something is on the trunk after the merge."""
        ent = self.theirs.ids[name]
        if name in self.mine.ids or ent in self.plan.events:
            return True
        if ent in self.theirs.gone:  # forgotten before the trunk knew it
            return False
        if self.theirs.is_event[ent]:
            return not self.theirs.now_of[ent]
        plan = self.plan.nodes.get(ent)  # one that holds nowhere is merged with its last description
        return plan is None or not self.theirs.now_of[ent] or any(word for _, word in plan.wins)

    def _closes_cycle(self, triple: Triple, wins: list[Win]) -> bool:
        if not self.branch.vocabulary.kinds[triple.kind].acyclic or not any(word for _, word in wins):
            return False
        seen, todo = {triple.target}, [triple.target]
        while todo:
            for name in self._onward(todo.pop(), triple.kind):
                if name == triple.source:
                    return True
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
        return False

    def _onward(self, name: str, kind: str) -> Iterator[str]:
        """Where links of a kind lead from a thing, on the trunk after the merge as planned so far."""
        index = self.mine
        for link in index.of_kinds(index.out, index.ids.get(name, -1), (kind,)):
            target = index.names[index.l_tgt[link]]
            rows = index.believed_link(link, OPEN - 1)
            lost = [
                period for period, word in self.plan.links.get(Triple(name, kind, target), ()) if not word
            ]
            held = ((index.k_from[row], index.k_to[row]) for row in rows)
            if index.l_kind[link] == kind and any(without_all(whole, lost) for whole in held):
                yield target
        for triple, wins in self.plan.links.items():
            if triple[:2] == (name, kind) and any(word for _, word in wins):
                yield triple.target

    def _stay(self, triple: Triple, wins: list[Win]) -> None:
        """Leave a link out. What a supersession left out would take stays."""
        self.plan.left_out += self._names(triple)
        target = self.plan.nodes.get(self.theirs.ids[triple.target])
        if triple.kind == "supersedes" and target is not None:
            held = [period for period, word in wins if word is not None]
            gained = [win for win in target.wins if win[1] is not None]
            target.wins = [*gained, *(win for win in target.only(held) if win[1] is None)]

    # ------------------------------------------------------------------ what is carried over as it was done

    def _carried(self) -> Carried:
        """What the trunk has left alone since the branch began or was merged last, and is in no conflict."""
        mine, theirs = self.mine, self.theirs
        known = self._known_here()
        looks = [
            each
            for each in self.since.operations
            if each.verb == "confirm" and each.tx not in known and theirs.believed_op(each.number, OPEN - 1)
        ]
        in_conflict = {conflict.id for conflict in self.plan.conflicts}
        ents = {
            ent
            for ent in self._touched
            if theirs.names[ent] not in in_conflict
            and not self._is_changed_here(ent)
            and not self._came_otherwise(ent)
            and known.isdisjoint(
                tx for row in theirs.rows_of[ent] for tx in (theirs.r_tx[row], theirs.r_end[row])
            )
        }
        links = self._free_links(ents, known)
        looked = [
            each.number
            for each in looks
            if each.subject in mine.ids or theirs.ids.get(each.subject, -1) in ents
        ]
        return Carried(sorted(ents), sorted(links), looked)

    def _is_changed_here(self, ent: int) -> bool:
        """Return True if the trunk has changed an entity of the branch since, or another one of its slot."""
        mine, theirs = self.mine, self.theirs
        ours, key = mine.ids.get(theirs.names[ent], -1), theirs.key[ent]
        slot = () if key is None else mine.slots.get((key, theirs.scope[ent]), ())
        return any(self.since_here.is_changed(each) for each in ({ours} - {-1}) | set(slot))

    def _came_otherwise(self, ent: int) -> bool:
        """Return True if the trunk believes an entity where the branch has begun to since: both have it from elsewhere, as from another branch."""
        mine, theirs = self.mine, self.theirs
        ours = mine.ids.get(theirs.names[ent], -1)
        if ours < 0:
            return False
        held = [(mine.r_from[row], mine.r_to[row]) for row in mine.now_of[ours]]
        was = [(theirs.r_from[row], theirs.r_to[row]) for row in theirs.believed(ent, self.base)]
        fresh = [
            (theirs.r_from[row], theirs.r_to[row])
            for row in theirs.rows_of[ent]
            if theirs.r_tx[row] > self.base
        ]
        return _begins_within(held, was, fresh)

    def _link_came_otherwise(self, link: int) -> bool:
        """Return True if the trunk believes a link where the branch has begun to since."""
        mine, theirs, triple = self.mine, self.theirs, self.triple(link)
        here, there = between(mine, triple), between(theirs, triple)
        held, was = (
            [(index.k_from[row], index.k_to[row]) for each in links for row in index.believed_link(each, tx)]
            for index, links, tx in ((mine, here, OPEN - 1), (theirs, there, self.base))
        )
        fresh = [
            (theirs.k_from[row], theirs.k_to[row])
            for row in theirs.rows_of_link[link]
            if theirs.k_tx[row] > self.base
        ]
        return _begins_within(held, was, fresh)

    def _known_here(self) -> set[Instant]:
        """The transactions of the branch since that took over what was recorded here."""
        lines = self.mine.lineage
        return {
            each.tx
            for each in self.since.operations
            if each.verb == "pull" or (each.verb == "merge" and each.subject in lines)
        }

    def _free_links(self, ents: set[int], known_here: set[Instant]) -> set[int]:
        """The links to carry over. What is superseded by one that is not carried is taken out of `ents`."""
        mine, theirs = self.mine, self.theirs
        here = self.since_here
        left_out = {*self.plan.left_out, *(conflict.id for conflict in self.plan.conflicts)}
        every = self.since.links
        links = set()
        for link in every:
            ends = theirs.l_src[link], theirs.l_tgt[link]
            own = known_here.isdisjoint(
                tx for row in theirs.rows_of_link[link] for tx in (theirs.k_tx[row], theirs.k_end[row])
            )
            known = own and all(end in ents or theirs.names[end] in mine.ids for end in ends)
            if (
                known
                and theirs.l_name[link] not in left_out
                and not any(map(here.is_link_changed, between(mine, self.triple(link))))
                and not self._link_came_otherwise(link)
            ):
                links.add(link)
        while True:
            held = {
                link for link in links
                if (theirs.l_kind[link] in _SUCCEEDING and theirs.l_tgt[link] in self.plan.nodes and theirs.l_tgt[link] not in ents)
                or any(end not in ents and theirs.names[end] not in mine.ids for end in (theirs.l_src[link], theirs.l_tgt[link]))
            }  # fmt: skip
            away = {theirs.l_tgt[link] for link in every - links if theirs.l_kind[link] in _SUCCEEDING} & ents
            if not held and not away:
                return links
            links -= held
            ents -= away

    # ------------------------------------------------------------------ the store's own

    def _kinds(self) -> None:
        known = {kind["name"]: kind for kind in self.mine.kinds}
        for kind in self.theirs.kinds:
            there = known.get(kind["name"])
            if there is None:
                self.plan.kinds.append(kind)
            elif there != kind:
                self._conflict(kind["name"], "kind", ("trunk",))

    def _trust(self) -> None:
        ours, theirs = self.mine.setting(TRUST), self.theirs.setting(TRUST)
        was = self.theirs.setting_at(TRUST, self.base)
        if theirs in (was, ours):
            return
        if ours == was or self._conflict(TRUST, "trust") == "branch":
            self.plan.trust = theirs


def triple_of(core: Core, link: int) -> Triple:
    """The triple of a link."""
    index = core.index
    ends = [index.names[index.l_src[link]], index.names[index.l_tgt[link]]]
    kind = index.l_kind[link]
    if core.vocabulary.kinds[kind].symmetric:
        ends.sort()
    return Triple(ends[0], kind, ends[1])


def between(index: Index, triple: Triple) -> list[int]:
    """The links with this triple."""
    source, kind, target = (
        index.ids.get(triple.source, -1),
        triple.kind,
        index.ids.get(triple.target, -1),
    )
    found = set(index.saying(source, kind, target))
    if kind in index.symmetric:
        found.update(index.saying(target, kind, source))
    return sorted(found)


def claimed(core: Core, row: int) -> list[Any]:
    """The attributes of a link in one of its rows."""
    index = core.index
    claim = index.k_claim[row]
    body = core.body(index.c_pos[claim], index.c_len[claim])
    return [
        body.get("reason"),
        body.get("metadata", {}),
        index.c_strength[claim],
        index.c_inferred[claim],
        index.c_by[claim],
    ]


def _begins_within(held: list[Period], was: list[Period], fresh: list[Period]) -> bool:
    """Return True if one of the fresh periods is over what one side holds and the other did not."""
    alone = [piece for whole in held for piece in without_all(whole, was)]
    return any(without_all(piece, fresh) != [piece] for piece in alone)


def _shown(sight: WorkingSight, row: int) -> Node | Event:
    index = sight.index
    if index.is_event[index.r_ent[row]]:
        return sight.event(row, "stands")
    return sight.node(row, "stands")


def _happened(index: Index, ent: int, tx: Instant = OPEN) -> list[Instant]:
    """The instants of an event, in the order they were recorded, as known at `tx`."""
    again = [index.s_at[row] for row in index.seen_of.get(ent, ()) if index.s_tx[row] <= tx]
    return [index.first_reported(ent), *again]


def _left(instants: list[Instant], known: list[Instant]) -> list[Instant]:
    """The instants not among those known, as multisets."""
    rest = list(known)
    fresh = []
    for at in instants:
        if at in rest:
            rest.remove(at)
        else:
            fresh.append(at)
    return fresh
