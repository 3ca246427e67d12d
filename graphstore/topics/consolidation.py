"""The room of consolidation: proposes statements to summarise in one, and lists the summaries.

A proposal reads a view: statements that no longer hold, and similar ones, by kind and scope. They form groups without contradictions, each with a
draft of its summary. Nothing is written before `fold`. Members stay as they are, and retracting a summary undoes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphstore.errors import InvalidError
from graphstore.store import registry
from graphstore.values import sameness, similar_pairs
from graphstore.values.assertions import Assertion, disagreement
from graphstore.values.findings import words
from graphstore.values.inputs import json_object, text_of, whole_within
from graphstore.values.keys import slot_name
from graphstore.values.models import UPRIGHT, Event, Json, Node, Value
from graphstore.values.period import OPEN, Instant, TimeLike, during, when
from graphstore.values.text import line
from graphstore.values.time_range import plural
from graphstore.view import conflicts
from graphstore.view.sight import Sight

if TYPE_CHECKING:
    from graphstore.store.store import Store
    from graphstore.view.view import Reader

__all__ = ["Consolidation", "Group", "Summarise", "brief", "consolidate", "consolidations", "fold"]

SUMMARY = "summary"
"""The kind of the nodes that `fold` creates."""
LEAST_SIMILAR = 0.2
"""Below this, statements that share a word by chance would form one group."""
_LISTED = 8  # the most statements that a short summary repeats
_REPLACING = frozenset({"supersedes", "transition"})
_FOLDING = frozenset({"derived_from"})
_OVER = frozenset({"superseded", "ended"})


class Summarise(Protocol):
    """Drafts a summary from the members of a group, earliest first. It is called without a lock held."""

    def __call__(self, nodes: Sequence[Node], /) -> Mapping[str, Any]: ...


class Group(Value):
    """Statements of one kind and scope that could be summed up in one: the members, the earliest first, a draft of the summary, and why."""

    kind: str
    scope: str
    members: tuple[Node, ...]
    content: Json
    reason: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the members."""
        return tuple(node.id for node in self.members)

    def __str__(self) -> str:
        return f"{self.reason}: {', '.join(self.ids)}"


class Consolidation(Value):
    """A summary that stands, what it sums up (with whatever standing), and who folded it, why and when it was recorded."""

    summary: Node
    members: tuple[Node | Event, ...]
    who: str | None
    why: str | None
    recorded_at: datetime

    def __str__(self) -> str:
        return f"{self.summary.id} sums up {', '.join(each.id for each in self.members)}"


# ---- proposing --------------------------------------------------------------------------------


def brief(nodes: Sequence[Node]) -> Json:
    """Return a summary made without a model: the number of statements, their period, and each distinct one in short."""
    lines = list(dict.fromkeys(line(words(node)) for node in nodes))
    more = [f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    first = min(node.valid_from for node in nodes)
    ends = [node.valid_to for node in nodes]
    last = None if None in ends else max(end for end in ends if end is not None)
    head = f"{plural(len(nodes), nodes[0].kind)}, {during(first, last)}"
    summary, to = f"{head}: {'; '.join([*lines[:_LISTED], *more])}", last and last.isoformat()
    return {"summary": summary, "count": len(nodes), "from": first.isoformat(), "to": to}


@registry.read("consolidation")
def consolidate(
    view: Reader,
    *,
    kind: str | None = None,
    topic: str | None = None,
    before: TimeLike | None = None,
    similar: float = 0.5,
    at_least: int = 2,
    summarise: Summarise = brief,
) -> list[Group]:
    """Propose what to sum up at a view's coordinate, the largest group first. Nothing is written.

    What no longer holds (superseded or ended) is one group with what took its place in turn, with what filled the same slot, and with what is alike (at
    least `similar` of the words shared with the latest); what stands is grouped with what is alike, but for what `contradictions()` lists. `topic` (a tag or a
    key) and `before` (what began earlier) leave out all else; then what is old, or over, is a group for that reason alone. What is folded already is not
    proposed again. Raises InvalidError for numbers out of range, and what `summarise` raises.
    """
    _refuse_bad(similar, at_least, summarise)
    wanted = _Wanted(
        None if kind is None else text_of("kind", kind),
        None if topic is None else _TopicFilter(text_of("topic", topic)),
        OPEN if before is None else view.instant_of(before, "before"),
    )
    with view.reading() as sight:
        contradictions = _Contradictions(sight)
        found = [
            (lot, [sight.node(each.row, sight.standing(each.ent)) for each in members])
            for lot, candidates in _lots(sight, wanted).items()
            for members in _groups(sight, lot, candidates, wanted, similar, contradictions)
            if len(members) >= at_least
        ]
    groups = [_drafted(lot, nodes, wanted, summarise) for lot, nodes in found]
    return sorted(groups, key=lambda group: (-len(group.members), group.ids))


def _refuse_bad(similar: object, at_least: object, summarise: object) -> None:
    number = isinstance(similar, (int, float)) and not isinstance(similar, bool)
    if not number or not LEAST_SIMILAR <= similar <= 1:  # type: ignore[operator]
        raise InvalidError(f"similar {similar!r} is out of range. Give a number from {LEAST_SIMILAR} to 1.")
    whole_within("at_least", at_least, 2)
    if not callable(summarise):
        raise InvalidError(f"summarise {summarise!r} cannot be called. Give a function of a list of nodes.")


class _TopicFilter:
    """Selects a tag, or a key with or without a version (`auth`, `auth_v2`)."""

    def __init__(self, name: str) -> None:
        self.name = name.strip().removeprefix("#")
        self._key = re.compile(rf"{re.escape(slot_name(name))}(_v\d+)?\Z")

    def covers(self, key: str | None, tags: Iterable[str]) -> bool:
        """Return True if the key or one of the tags is about the topic."""
        if key is not None and self._key.match(key):
            return True
        return any(tag.casefold() == self.name.casefold() for tag in tags)


class _Wanted(NamedTuple):
    kind: str | None
    topic: _TopicFilter | None
    before: Instant


class _Lot(NamedTuple):
    """Identifies statements that may share a group: same kind and scope, all standing or all over."""

    kind: str
    scope: str
    over: bool


class _Candidate(NamedTuple):
    """Holds a statement that may be summarised, with its last row of valid time."""

    since: Instant
    recorded: Instant
    row: int
    ent: int
    statement: str
    words: frozenset[str]


def _lots(sight: Sight, wanted: _Wanted) -> dict[_Lot, list[_Candidate]]:
    """Return the statements that may be summarised, latest first."""
    folded = {member for folding in _foldings(sight).values() for member in folding.members}
    lots: dict[_Lot, list[_Candidate]] = {}
    for ent in sight.entities(False, wanted.kind):
        kind = sight.kind(ent)
        if ent in folded or (kind == SUMMARY and wanted.kind is None):
            continue
        standing, row = sight.shown_by(ent)
        over = standing in _OVER
        if row < 0 or not (over or standing == "stands") or sight.since(row) >= wanted.before:
            continue
        body = sight.body_of(row)
        if wanted.topic and not wanted.topic.covers(sight.key(ent), body.get("tags", ())):
            continue
        text = sameness.statement(body["content"], body.get("text"))
        lots.setdefault(_Lot(kind, sight.scope(ent), over), []).append(
            _Candidate(sight.since(row), sight.recorded(row), row, ent, text, sameness.tokens(text))
        )
    for lot in lots.values():
        lot.sort(reverse=True)
    return lots


class _Contradictions:
    """Finds standing statements with an undecided contradiction, as `contradictions()` lists them."""

    def __init__(self, sight: Sight) -> None:
        self._at = sight
        self._disputed = conflicts.disputed(sight)
        self._linked = conflicts.linked(sight)
        self._asserted: dict[int, list[Assertion]] = {}

    def between(self, one: _Candidate, other: _Candidate) -> bool:
        pairs = {(one.ent, other.ent), (other.ent, one.ent)}
        if not self._disputed.isdisjoint(pairs):
            return True
        older, newer = sorted((one, other))
        said = disagreement(self._says(newer), self._says(older))
        return said is not None and self._linked.isdisjoint(pairs)

    def _says(self, each: _Candidate) -> list[Assertion]:
        found = self._asserted.get(each.row)
        if found is None:
            found = self._asserted[each.row] = conflicts.asserted(self._at, each.row)
        return found


def _groups(
    sight: Sight,
    lot: _Lot,
    candidates: list[_Candidate],
    wanted: _Wanted,
    similar: float,
    contradictions: _Contradictions,
) -> Iterator[list[_Candidate]]:
    """Yield the groups of a lot, each earliest first. No group of standing statements contains a contradiction."""
    together = _Together(len(candidates))
    aged = wanted.topic is not None and (lot.over or wanted.before < OPEN)
    if aged:
        for at in range(1, len(candidates)):
            together.join(0, at)
    elif lot.over:
        for one, other in _tied(sight, candidates):
            together.join(one, other)
    if not aged:
        for one, other in _alike(candidates, similar):
            together.join(one, other)
    for places in together.groups():
        members = [candidates[at] for at in reversed(places)]
        yield from [members] if lot.over else _apart(members, contradictions)


def _tied(sight: Sight, candidates: list[_Candidate]) -> Iterator[tuple[int, int]]:
    """Yield pairs of places whose statements were values of one slot, or replaced each other."""
    place = {each.ent: at for at, each in enumerate(candidates)}
    first: dict[str, int] = {}
    for ent, at in place.items():
        key = sight.key(ent)
        if key is not None:
            yield first.setdefault(key, at), at
        for edge in sight.edges(ent, "out", _REPLACING):
            other = place.get(edge.target, -1)
            if other >= 0 and sight.held(edge.link) >= 0:
                yield at, other


def _alike(candidates: list[_Candidate], similar: float) -> Iterator[tuple[int, int]]:
    """Yield pairs of similar statements. Each joins the latest one it resembles, and then attracts no other: the ends of a chain may differ wholly."""
    taken: set[int] = set()
    sets = [each.words for each in candidates]
    for later, earlier in similar_pairs.alike(sets):
        if taken.isdisjoint((later, earlier)) and sameness.jaccard(sets[later], sets[earlier]) >= similar:
            taken.add(earlier)
            yield later, earlier


def _apart(members: list[_Candidate], contradictions: _Contradictions) -> Iterator[list[_Candidate]]:
    """Yield the members in as many groups as needed to separate all contradictions."""
    groups: list[list[_Candidate]] = []
    for each in members:
        for group in groups:
            if not any(contradictions.between(each, other) for other in group):
                group.append(each)
                break
        else:
            groups.append([each])
    yield from groups


class _Together:
    """Groups places by joining pairs (union-find)."""

    def __init__(self, count: int) -> None:
        self._up = list(range(count))

    def _top(self, at: int) -> int:
        while self._up[at] != at:
            self._up[at] = at = self._up[self._up[at]]
        return at

    def join(self, one: int, other: int) -> None:
        one, other = self._top(one), self._top(other)
        self._up[max(one, other)] = min(one, other)

    def groups(self) -> list[list[int]]:
        """Return the places of each group, in order."""
        groups: dict[int, list[int]] = {}
        for at in range(len(self._up)):
            groups.setdefault(self._top(at), []).append(at)
        return list(groups.values())


def _drafted(lot: _Lot, nodes: list[Node], wanted: _Wanted, summarise: Summarise) -> Group:
    about = f" about {wanted.topic.name!r}" if wanted.topic else ""
    if lot.over:
        why = "no longer hold"
    elif wanted.topic and wanted.before < OPEN:
        why = f"are from before {when(wanted.before)}"
    else:
        why = "are alike"
    return Group(
        kind=lot.kind,
        scope=lot.scope,
        members=tuple(nodes),
        content=json_object("the summary", summarise(nodes)),
        reason=f"{plural(len(nodes), lot.kind)}{about} that {why}",
    )


# ---- folding ----------------------------------------------------------------------------------


@registry.write("consolidation")
def fold(store: Store, groups: Iterable[Group]) -> list[Node]:
    """Write the summaries of these groups, in one transaction: a node of kind `summary` in the scope of its members, `derived_from` each of them.

    Raises ConflictError or NotFoundError when a member was forgotten meanwhile; nothing is then written.
    """
    if isinstance(groups, Group | str) or not isinstance(groups, Iterable):
        raise InvalidError(f"groups {groups!r} is no list. Give the groups that consolidate() gave.")
    made = []
    with store.transaction():
        for group in groups:
            if not isinstance(group, Group):
                raise InvalidError(f"{group!r} is no group. Give the groups that consolidate() gave.")
            summary = group.content.get("summary")
            text = summary if isinstance(summary, str) else None
            node = store.add_node(SUMMARY, group.content, text=text, scope=group.scope, reason=group.reason)
            made.append(store.fold(group.ids, into=node.id, reason=group.reason))
    return made


@dataclass(frozen=True, slots=True)
class _Folding:
    """Holds the members of a summary, and the operation that linked the first of them."""

    members: list[int]
    op: int


@registry.read("consolidation")
def consolidations(view: Reader) -> list[Consolidation]:
    """The summaries that stand at a view's coordinate and what each sums up, the one recorded last first."""
    with view.reading() as sight:
        found = sorted(_foldings(sight).items(), key=lambda each: (each[1].op, each[0]), reverse=True)
        return [_consolidation(sight, sight.thing(ent), folding) for ent, folding in found]


def _consolidation(sight: Sight, summary: Node | Event, folding: _Folding) -> Consolidation:
    assert isinstance(summary, Node)
    made = sight.change(folding.op)
    return Consolidation(
        summary=summary,
        members=tuple(map(sight.thing, folding.members)),
        who=made.author,
        why=made.reason,
        recorded_at=made.tx,
    )


def _foldings(sight: Sight) -> dict[int, _Folding]:
    """Return the foldings by standing summary. A summary is recognized by the verb `fold`, or by its kind."""
    found: dict[int, _Folding] = {}
    for edge in map(sight.edge, sight.held_of(_FOLDING)):
        source = edge.source
        if sight.is_event(source):
            continue
        op, verb = sight.made_by(edge.link)
        if (verb == "fold" or sight.kind(source) == SUMMARY) and sight.standing(source) in UPRIGHT:
            found.setdefault(source, _Folding([], op)).members.append(edge.target)
    return found
