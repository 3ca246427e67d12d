"""Find contradictions: recorded `contradicts` links, and pairs of nodes that state different values for the same subject.

Two nodes have the same subject if they are values of one slot, of one field of one subject, or of one topic tag (`values/assertions.py`). Each is compared with the few
before it in its group, so the cost grows linearly. Nothing is decided automatically.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from graphstore.errors import NotFoundError
from graphstore.search.asserted import ShortAssertion, read
from graphstore.values import sameness
from graphstore.values.assertions import (
    DECISION,
    RECORDS,
    WANTED,
    Assertion,
    about,
    different,
    disagreement,
    prose,
)
from graphstore.values.contrary import Clause, Comparison, clauses, compare_clauses, without_measures
from graphstore.values.findings import Contradiction
from graphstore.values.inputs import whole_number
from graphstore.values.keys import topic_name, version_of
from graphstore.values.models import UPRIGHT, Json
from graphstore.values.period import Instant, exactly
from graphstore.view.rows import NumberedRows
from graphstore.view.sight import Sight

BOTH = "both"
BEFORE = 10
"""The largest number of older statements of its group, newest first, with which a statement makes candidates."""
_NEAREST = 10  # search results compared for one thing
_PART_OF_BEST = 0.2  # of the score of the best match: what matches less shares common words alone
_TAGGED = 100  # nodes with its key or a tag of it that are compared for one thing

_CONTRADICTS = frozenset({"contradicts"})

Pairs = set[tuple[int, int]]
Meaning = Callable[[str, str], float | None]
"""Returns how near the meanings of two texts are, None where there is no embedder."""


# ---- reading ----------------------------------------------------------------------------------


def contradictions(
    sight: Sight,
    *,
    settled: bool,
    candidates: bool,
    limit: int | None,
    of: int | None = None,
    among: Iterable[int] | None = None,
) -> list[Contradiction]:
    """Return the contradictions here: recorded ones, then candidates; newer first, at most `limit`. `of`: only those of this thing. `among`: only candidates
    among these."""
    limit = whole_number("limit", limit)
    found: Iterator[Contradiction] = iter(_explicit(sight, settled, of))
    if candidates:
        among = among if of is None else {of, *near(sight, of, _NEAREST, sight.index.kind[of])}
        found = chain(found, _candidates(sight, among, of))
    return list(islice(found, limit))


def _explicit(sight: Sight, settled: bool, of: int | None = None) -> list[Contradiction]:
    if of is None:
        rows = sight.held_of(_CONTRADICTS)
    else:
        edges = chain(sight.edges(of, "out", _CONTRADICTS), sight.edges(of, "into", _CONTRADICTS))
        rows = list({row for edge in edges if (row := sight.held(edge.link)) >= 0})
    rows.sort(key=sight.link_order, reverse=True)
    sight.things(dict.fromkeys(end for row in rows for end in sight.edge(row)[3:]))  # read at once
    found = (of_link(sight, row) for row in rows)
    return [each for each in found if settled or not each.settled]


def between(sight: Sight, one: int, other: int, meaning: Meaning) -> Contradiction:
    """Return the contradiction of two things: by the newest link between them, else as candidates, else by their words and their meaning."""
    index = sight.index
    rows = rows_between(sight, one, other)
    if rows:
        return of_link(sight, max(rows, key=sight.link_order))
    found = next(_candidates(sight, {one, other}), None) if one != other else None
    found = _suspected(sight, one, other, meaning) if found is None and one != other else found
    if found is not None:
        return found
    names = f"{index.names[one]!r} and {index.names[other]!r}"
    raise NotFoundError(
        f"{names} do not contradict each other at {exactly(sight.valid)}: no contradicts link joins them, and they are no candidates. "
        f"To record that they do: link({index.names[one]!r}, 'contradicts', {index.names[other]!r})."
    )


def rows_between(
    sight: NumberedRows, one: int, other: int, kinds: frozenset[str] = _CONTRADICTS
) -> list[int]:
    """Return the rows, of links of some kinds between two things, that hold here."""
    return [
        row
        for start, end in ((one, other), (other, one))
        for edge in sight.edges(start, "out", kinds)
        if edge.target == end and (row := sight.held(edge.link)) >= 0
    ]


def of_link(sight: NumberedRows, row: int) -> Contradiction:
    index, shown = sight.index, sight.link(row)
    link = index.k_link[row]
    decision = shown.metadata.get(DECISION)
    open_still = decision is None and {shown.source_standing, shown.target_standing} <= UPRIGHT
    return Contradiction(
        link=shown,
        source=sight.thing(index.l_src[link]),
        target=sight.thing(index.l_tgt[link]),
        settled=not open_still,
        decision=None if decision is None else str(decision),
    )


# ---- candidates -------------------------------------------------------------------------------


class _Said(NamedTuple):
    """An assertion of a row."""

    row: int
    says: ShortAssertion


_Pair = tuple[int, int]  # two rows of nodes that may disagree, the newer first


def _candidates(
    sight: Sight, among: Iterable[int] | None = None, of: int | None = None
) -> Iterator[Contradiction]:
    """Yield the candidates among everything that holds here (or among `among`), newest first. `of`: only those of this thing."""
    entity = sight.index.r_ent
    found: set[_Pair] = set()
    for group in _groups(sight, among):
        found.update(_disagreeing(group) if of is None else _against_all(group, of, entity))
    if not found:
        return
    joined = _joined(sight, found, is_of_all=among is None)
    ages = {row: age(sight, row) for pair in found for row in pair}
    for pair in sorted(found, key=lambda pair: (ages[pair[0]], ages[pair[1]]), reverse=True):
        newer, older = entity[pair[0]], entity[pair[1]]
        if (newer, older) not in joined and (older, newer) not in joined:
            yield from _candidate(sight, *pair)


def _joined(sight: Sight, pairs: set[_Pair], *, is_of_all: bool) -> Pairs:
    """Return the pairs of things joined by a decisive link: all of them, or those of some pairs of rows."""
    if is_of_all:
        return linked(sight)
    entity = sight.index.r_ent
    things = {(entity[newer], entity[older]) for newer, older in pairs}
    sight.index.read_links({each for pair in things for each in pair})
    return {pair for pair in things if are_linked(sight, *pair)}


def _groups(sight: Sight, among: Iterable[int] | None) -> Iterator[list[_Said]]:
    """Return the assertions that hold here, grouped by scope and subject, newest first. Groups of one are left out."""
    index = sight.index
    if among is None:
        there = sight.node_rows()
    else:
        among = list(among)
        sight.index.read_things(among)
        there = [row for row in map(sight.find, among) if row >= 0]
    rows = [row for row in there if is_stated(sight, index.r_ent[row])]
    rows.sort(key=lambda row: age(sight, row), reverse=True)
    groups: dict[tuple[str, int], list[_Said]] = {}
    for row, said in sight.core.asserted.said(sight.core, rows):
        scope = index.scope[index.r_ent[row]]
        for each in said:
            groups.setdefault((scope, each.of), []).append(_Said(row, each))
    return (group for group in groups.values() if len(group) > 1)


def _disagreeing(group: list[_Said]) -> Iterator[_Pair]:
    """Yield each assertion with the newest older ones that state another value, at most `BEFORE`. Runs of one value are skipped at once."""
    after = list(range(1, len(group) + 1))  # the index where the next different value begins
    for at in range(len(group) - 2, -1, -1):
        if group[at].says.value == group[at + 1].says.value:
            after[at] = after[at + 1]
    for at, one in enumerate(group):
        if not one.says.renews:
            continue
        other, looked = after[at], 0
        while other < len(group) and looked < BEFORE:
            if group[other].says.value == one.says.value:
                other = after[other]
                continue
            looked += 1
            if _disagree(one, group[other]):
                yield one.row, group[other].row
            other += 1


def _against_all(group: list[_Said], of: int, entity: Sequence[int]) -> Iterator[_Pair]:
    """Yield one thing paired with all others of a group."""
    place = next((at for at, each in enumerate(group) if entity[each.row] == of), len(group))
    for at, each in enumerate(group) if place < len(group) else ():
        newer, older = (group[place], each) if place < at else (each, group[place])
        if _disagree(newer, older):
            yield newer.row, older.row


def _disagree(newer: _Said, older: _Said) -> bool:
    return newer.row != older.row and newer.says.renews and different(newer.says.value, older.says.value)


def _candidate(sight: Sight, newer: int, older: int) -> Iterator[Contradiction]:
    """Yield the candidate that two rows make. Yields nothing if only the short forms of what they state matched."""
    entity, core = sight.index.r_ent, sight.core
    says = disagreement(read(core, newer), read(core, older))
    if says is not None:
        yield Contradiction.made(
            {
                "link": None,
                "source": sight.thing(entity[newer]),
                "target": sight.thing(entity[older]),
                "settled": False,
                "about": about(says.of),
                "overlap": sameness.overlap(statement(sight, newer), statement(sight, older)),
                "decision": None,
            }
        )


def near(sight: Sight, ent: int, most: int, kind: str | None) -> Iterator[int]:
    """Yield the things that may have the same subject as a thing: those with its key or its tags, and the `most` of a kind (None: of any) nearest in words."""
    index, core = sight.index, sight.core
    row = sight.find(ent)
    if row < 0 or not is_stated(sight, ent):
        return
    key, scope, body = index.key[ent], index.scope[ent], sight.body_of(row)
    if not body:
        return
    if key is not None:
        keyed = core.naming.keyed(version_of(key)[0] or key)
        known = bisect_right(keyed, sight.tx, key=index.born.__getitem__)
        yield from keyed[max(known - _TAGGED, 0) : known]
    for tag in body.get("tags", ()):
        tagged = sight.tagged_versions(topic_name(tag))
        yield from (index.v_ent[ver] for ver in tagged[-_TAGGED:])
    words = without_measures(sameness.statement(body["content"], body.get("text")))
    kinds = frozenset[str]() if kind is None else frozenset({kind})
    found = sight.found(words, most, kinds, seen=lambda each: index.scope[each] == scope)
    others = [match for match in found.matches if match[0] != ent]
    yield from (each for each, score in others if score >= others[0][1] * _PART_OF_BEST)


class Stated(NamedTuple):
    """What a row states: its content, its whole statement, the clauses of its prose, what it asserts, and whether it is asserted and not wanted or asked."""

    content: Json
    statement: str
    clauses: tuple[Clause, ...]
    assertions: list[Assertion]
    is_asserted: bool


def stated(sight: Sight, row: int) -> Stated:
    """Return what a row states."""
    body, kind = sight.body_of(row), sight.index.kind[sight.index.r_ent[row]]
    content, text = body["content"], body.get("text")
    return Stated(
        content,
        sameness.statement(content, text),
        clauses(prose(content, text)),
        read(sight.core, row),
        kind not in WANTED,
    )


def compared(one: Stated, other: Stated, meaning: float | None = None) -> Comparison | None:
    """Return how two things relate: by what they assert, else by their words. None if they say different things.

    `meaning`: how near their meanings are, if the store has an embedder.
    """
    if sameness.same(one.statement, other.statement) and sameness.alike(one.content, other.content):
        return Comparison("same", sure=True)
    says = disagreement(one.assertions, other.assertions) or disagreement(other.assertions, one.assertions)
    if says is not None:
        return Comparison("contrary", about(says.of), sure=True)
    found = compare_clauses(one.clauses, other.clauses, meaning)
    is_refused = (
        found is not None and found.verdict == "contrary" and not (one.is_asserted and other.is_asserted)
    )
    return None if is_refused else found


def _suspected(sight: Sight, one: int, other: int, meaning: Meaning) -> Contradiction | None:
    """Return the contradiction of two things that their words alone suggest."""
    index = sight.index
    index.read_things([one, other])
    rows = sorted((row for row in map(sight.find, (one, other)) if row >= 0), key=lambda row: age(sight, row))
    if (
        len(rows) < 2
        or index.scope[one] != index.scope[other]
        or not (is_stated(sight, one) and is_stated(sight, other))
    ):
        return None
    older, newer = rows
    new, old = stated(sight, newer), stated(sight, older)
    found = compared(new, old, meaning(new.statement, old.statement))
    if found is None or found.verdict != "contrary" or are_linked(sight, one, other):
        return None
    return Contradiction(
        link=None, source=sight.thing(index.r_ent[newer]), target=sight.thing(index.r_ent[older]), settled=False,
        about=found.about, overlap=sameness.overlap(new.statement, old.statement),
    )  # fmt: skip


# ---- helpers of other modules -----------------------------------------------------------------


def is_stated(sight: Sight, ent: int) -> bool:
    """Return True if an entity states something: a node that is not a record of what was done."""
    return not sight.index.is_event[ent] and sight.index.kind[ent] not in RECORDS


def asserted(sight: Sight, row: int) -> list[Assertion]:
    """Return the assertions in the description of a row."""
    return read(sight.core, row)


def age(sight: Sight, row: int) -> tuple[Instant, Instant, int]:
    """Return the sort key of statements: when they begin to hold, when they were recorded."""
    return sight.index.r_from[row], sight.index.r_tx[row], row


def disputed(sight: Sight) -> Pairs:
    """Return the pairs joined by an undecided `contradicts` link."""
    return {
        (sight.index.ids[each.source.id], sight.index.ids[each.target.id]) for each in _explicit(sight, False)
    }


def linked(sight: Sight) -> Pairs:
    """Return the pairs joined by a lifecycle or `contradicts` link here, which are not candidates."""
    index = sight.index
    links = (index.k_link[row] for row in sight.held_of(_decisive(sight)))
    return {(index.l_src[link], index.l_tgt[link]) for link in links}


def are_linked(sight: NumberedRows, one: int, other: int) -> bool:
    """Return True if two things are joined by a lifecycle or `contradicts` link here."""
    return bool(rows_between(sight, one, other, _decisive(sight)))


def _decisive(sight: NumberedRows) -> frozenset[str]:
    kinds = sight.core.vocabulary.kinds
    return _CONTRADICTS.union(name for name, kind in kinds.items() if kind.group == "lifecycle")


def statement(sight: Sight, row: int) -> str:
    """Return the description of a row as text."""
    body = sight.body_of(row)
    return sameness.statement(body["content"], body.get("text"))
