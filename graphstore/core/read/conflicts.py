"""Contradictions: `contradicts` links, and pairs of nodes on the same subject that differ.

Nothing is decided automatically: a contradiction of two things that stand stays open until it is resolved.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from graphstore.core.read.sight import Sight
from graphstore.errors import NotFoundError
from graphstore.values import sameness
from graphstore.values.inputs import whole_number
from graphstore.values.models import UPRIGHT, Contradiction
from graphstore.values.period import Instant, exactly
from graphstore.values.similar_pairs import alike

BOTH = "both"
_SHARED = sameness.RELATED[0] / sameness.RELATED[1]
RECORDS = frozenset({"session", "segment"})
"""Kinds of node that record what was done: two similar ones do not contradict each other."""
DECISION = "decision"  # the name under which a link's metadata keeps what was decided


# ---- reading ----------------------------------------------------------------------------------


def contradictions(
    sight: Sight, *, settled: bool, candidates: bool, limit: int | None
) -> list[Contradiction]:
    """The contradictions here: recorded ones, then candidates; newer first, at most `limit`."""
    limit = whole_number("limit", limit)
    found: Iterator[Contradiction] = iter(_explicit(sight, settled))
    if candidates:
        found = chain(found, _candidates(sight))
    return list(islice(found, limit))


def _explicit(sight: Sight, settled: bool) -> list[Contradiction]:
    rows = [
        row
        for link, kind in enumerate(sight.index.l_kind)
        if kind == "contradicts" and (row := sight.held(link)) >= 0
    ]
    rows.sort(key=sight.link_order, reverse=True)
    found = (of_link(sight, row) for row in rows)
    return [each for each in found if settled or not each.settled]


def between(sight: Sight, one: int, other: int) -> Contradiction:
    """The contradiction of two things: by the newest link between them, else as candidates."""
    index = sight.index
    rows = rows_between(sight, one, other)
    if rows:
        return of_link(sight, max(rows, key=sight.link_order))
    names = f"{index.names[one]!r} and {index.names[other]!r}"
    refused = NotFoundError(
        f"{names} do not contradict each other at {exactly(sight.valid)}: no contradicts link joins them, and they are no candidates. "
        f"To record that they do: link({index.names[one]!r}, 'contradicts', {index.names[other]!r})."
    )
    group = next((rows for rows in _groups(sight, {one, other}) if len(rows) == 2), None)
    pair = next(_alike(sight, group), None) if group else None
    if pair is None or not linked(sight).isdisjoint({(one, other), (other, one)}):
        raise refused
    return _candidate(sight, pair)


def rows_between(sight: Sight, one: int, other: int) -> list[int]:
    """The rows of `contradicts` links between two things that hold here."""
    index = sight.index
    return [
        row
        for source, target in ((one, other), (other, one))
        for link in index.out.get(source, ())
        if index.l_tgt[link] == target
        and index.l_kind[link] == "contradicts"
        and (row := sight.held(link)) >= 0
    ]


def of_link(sight: Sight, row: int) -> Contradiction:
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


class _Pair(NamedTuple):
    """Two rows of nodes that may contradict each other, the newer first."""

    age: tuple[Instant, Instant, int]
    newer: int
    older: int
    overlap: float


def _candidates(sight: Sight) -> Iterator[Contradiction]:
    joined = linked(sight)
    streams = [_alike(sight, rows) for rows in _groups(sight) if len(rows) > 1]
    entity = sight.index.r_ent
    for pair in heapq.merge(*streams, key=lambda each: each.age, reverse=True):
        newer, older = entity[pair.newer], entity[pair.older]
        if (newer, older) not in joined and (older, newer) not in joined:
            yield _candidate(sight, pair)


def _candidate(sight: Sight, pair: _Pair) -> Contradiction:
    entity = sight.index.r_ent
    return Contradiction.made(
        {
            "link": None,
            "source": sight.thing(entity[pair.newer]),
            "target": sight.thing(entity[pair.older]),
            "settled": False,
            "overlap": pair.overlap,
            "decision": None,
        }
    )


def _groups(sight: Sight, among: Iterable[int] | None = None) -> list[list[int]]:
    """The rows of nodes that hold here, by kind and scope; in each the newest first."""
    index = sight.index
    groups: dict[tuple[str, str], list[int]] = {}
    for ent in sight.entities(events=False) if among is None else among:
        stated = not index.is_event[ent] and index.kind[ent] not in RECORDS
        row = sight.find(ent) if stated else -1
        if row >= 0:
            groups.setdefault((index.kind[ent], index.scope[ent]), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: _age(sight, row), reverse=True)
    return list(groups.values())


def _age(sight: Sight, row: int) -> tuple[Instant, Instant, int]:
    return sight.index.r_from[row], sight.index.r_tx[row], row


def disputed(sight: Sight) -> set[tuple[int, int]]:
    """The pairs joined by an undecided `contradicts` link."""
    return {
        (sight.index.ids[each.source.id], sight.index.ids[each.target.id]) for each in _explicit(sight, False)
    }


def differ(one: str, other: str, share: float) -> bool:
    """Whether two statements with this overlap have the same subject and differ."""
    return share >= _SHARED and (share < sameness.SAME or not sameness.same(one, other))


def _alike(sight: Sight, rows: list[int]) -> Iterator[_Pair]:
    """The pairs whose statements share words and are not the same, the newest first."""
    statements = [_statement(sight, row) for row in rows]
    words = [sameness.tokens(each) for each in statements]
    for newer, older in alike(words):
        share = sameness.jaccard(words[newer], words[older])
        if differ(statements[newer], statements[older], share):
            yield _Pair(_age(sight, rows[newer]), rows[newer], rows[older], share)


def _statement(sight: Sight, row: int) -> str:
    index = sight.index
    ver = index.r_ver[row]
    body = sight.core.body(index.v_pos[ver], index.v_len[ver])
    return sameness.statement(body["content"], body.get("text"))


def linked(sight: Sight) -> set[tuple[int, int]]:
    """The pairs joined by a lifecycle or `contradicts` link here, which are no candidates."""
    index, kinds = sight.index, sight.core.vocabulary.kinds
    decisive = {name for name, kind in kinds.items() if kind.group == "lifecycle"} | {"contradicts"}
    return {
        (index.l_src[link], index.l_tgt[link])
        for link, kind in enumerate(index.l_kind)
        if kind in decisive and sight.held(link) >= 0
    }
