"""What cannot both be right: `contradicts` links, pairs of nodes that talk of the same and differ, and the decision between two.

Nothing is decided here by itself: a contradiction of two things that stand stays open until somebody resolves it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from graphstore import statements
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.inputs import whole_number
from graphstore.linking import Claim, Ends, Linking
from graphstore.models import UPRIGHT, Contradiction, Json, Node
from graphstore.pairing import alike
from graphstore.period import BEGINNING, OPEN, Instant, Period, iso
from graphstore.sight import Core, Sight
from graphstore.writing import Transaction

BOTH = "both"
_SHARED = statements.RELATED[0] / statements.RELATED[1]
RECORDS = frozenset({"session", "segment"})
"""Kinds of node that tell what was done: two that are alike do not contradict each other."""
DECISION = "decision"  # the name under which a link's metadata keeps what was decided


# ---- reading ----------------------------------------------------------------------------------


def contradictions(
    sight: Sight, *, settled: bool, candidates: bool, limit: int | None
) -> list[Contradiction]:
    """What contradicts each other here: what was said to, then what may; newer first, at most `limit`."""
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
    found = (_of_link(sight, row) for row in rows)
    return [each for each in found if settled or not each.settled]


def between(sight: Sight, one: int, other: int) -> Contradiction:
    """The contradiction of two things: by the newest link that says so, else as candidates."""
    index = sight.index
    rows = _rows_between(sight, one, other)
    if rows:
        return _of_link(sight, max(rows, key=sight.link_order))
    names = f"{index.names[one]!r} and {index.names[other]!r}"
    refused = NotFoundError(
        f"{names} do not contradict each other at {iso(sight.valid)}: no contradicts link joins them, and they are no candidates. "
        f"To say that they do: link({index.names[one]!r}, 'contradicts', {index.names[other]!r})."
    )
    group = next((rows for rows in _groups(sight, {one, other}) if len(rows) == 2), None)
    pair = next(_alike(sight, group), None) if group else None
    if pair is None or not linked(sight).isdisjoint({(one, other), (other, one)}):
        raise refused
    return _candidate(sight, pair)


def _rows_between(sight: Sight, one: int, other: int) -> list[int]:
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


def _of_link(sight: Sight, row: int) -> Contradiction:
    index, said = sight.index, sight.link(row)
    link = index.k_link[row]
    decision = said.metadata.get(DECISION)
    open_still = decision is None and {said.source_standing, said.target_standing} <= UPRIGHT
    return Contradiction(
        link=said,
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
    """The pairs of which a `contradicts` link says that they cannot both be right, and nobody has decided."""
    return {
        (sight.index.ids[each.source.id], sight.index.ids[each.target.id]) for each in _explicit(sight, False)
    }


def differ(one: str, other: str, share: float) -> bool:
    """Whether two statements that share this part of their words talk of the same and do not say the same."""
    return share >= _SHARED and (share < statements.SAME or not statements.same(one, other))


def _alike(sight: Sight, rows: list[int]) -> Iterator[_Pair]:
    """The pairs whose statements share words and are not the same, the newest first."""
    said = [_statement(sight, row) for row in rows]
    words = [statements.tokens(each) for each in said]
    for newer, older in alike(words):
        share = statements.jaccard(words[newer], words[older])
        if differ(said[newer], said[older], share):
            yield _Pair(_age(sight, rows[newer]), rows[newer], rows[older], share)


def _statement(sight: Sight, row: int) -> str:
    index = sight.index
    ver = index.r_ver[row]
    body = sight.core.body(index.v_pos[ver], index.v_len[ver])
    return statements.statement(body["content"], body.get("text"))


def linked(sight: Sight) -> set[tuple[int, int]]:
    """The pairs that a lifecycle or `contradicts` link joins here: what became of them is said."""
    index, kinds = sight.index, sight.core.vocabulary.kinds
    telling = {name for name, kind in kinds.items() if kind.group == "lifecycle"} | {"contradicts"}
    return {
        (index.l_src[link], index.l_tgt[link])
        for link, kind in enumerate(index.l_kind)
        if kind in telling and sight.held(link) >= 0
    }


# ---- deciding ---------------------------------------------------------------------------------


def resolve(
    core: Core, work: Transaction, contradiction: Contradiction, keep: str, reason: str
) -> Contradiction:
    """Write down who is right: the other is retracted and the kept one corrects it, or both stand side by side.

    Raises InvalidError for a `keep` that is neither, ConflictError when the contradiction is no longer as it was read.
    """
    if not isinstance(contradiction, Contradiction):
        raise InvalidError(f"{contradiction!r} is no contradiction. Pass one that contradictions() gave.")
    sight = Sight(core, work.tx, work.tx)
    ends = _ends(sight, contradiction)
    kept = _kept(sight, ends, keep)
    row = _open_row(sight, contradiction, ends)
    decision = BOTH if kept is None else core.index.names[kept]
    linking = Linking(core, work)
    link = (
        _say(linking, sight, ends, decision, reason) if row < 0 else _decide(linking, row, decision, reason)
    )
    if kept is not None:
        _correct(linking, kept, ends[0] if kept == ends[1] else ends[1], reason)
    after = Sight(core, work.tx, work.tx)
    return _of_link(after, after.held(link))


def _ends(sight: Sight, contradiction: Contradiction) -> tuple[int, int]:
    """The two things, which must stand."""
    index = sight.index
    found = []
    for thing in (contradiction.source, contradiction.target):
        ent = index.ids.get(thing.id, -1)
        if ent < 0:
            raise NotFoundError.nearest("node or event", thing.id, index.ids)
        if sight.standing(ent) not in UPRIGHT:
            raise ConflictError(
                f"the contradiction is over: {thing.id!r} is {sight.standing(ent).replace('_', ' ')}. "
                "contradictions() lists what is open."
            )
        found.append(ent)
    return found[0], found[1]


def _kept(sight: Sight, ends: tuple[int, int], keep: str) -> int | None:
    """The one that is right, None when both stay."""
    if keep == BOTH:
        return None
    names = [sight.index.names[ent] for ent in ends]
    try:
        ent, number = sight.resolve(keep)
    except (NotFoundError, InvalidError):
        ent, number = -1, 0
    if ent not in ends or number:
        raise InvalidError(
            f"keep {keep!r} is neither of the two. Give {names[0]!r}, {names[1]!r} or {BOTH!r}."
        )
    return ent


def _open_row(sight: Sight, contradiction: Contradiction, ends: tuple[int, int]) -> int:
    """The row of the `contradicts` link between the two that holds now, -1 when nobody has said it. Raises ConflictError when the pair is
    decided, or is not what it was when the contradiction was read.
    """
    index = sight.index
    rows = _rows_between(sight, *ends)
    for row in rows:
        decision = sight.link(row).metadata.get(DECISION)
        if decision is not None:
            raise ConflictError(
                f"{index.names[ends[0]]!r} and {index.names[ends[1]]!r} are decided already: {decision!r} was kept. "
                "contradictions(settled=True) shows it."
            )
    said = contradiction.link
    if said is not None:
        rows = [row for row in rows if index.l_name[index.k_link[row]] == said.id]
        if not rows:
            raise ConflictError(
                f"link {said.id!r} no longer says so at {iso(sight.valid)}. contradictions() lists what is open."
            )
    elif not rows:
        for thing, ent in zip((contradiction.source, contradiction.target), ends, strict=True):
            now = sight.thing(ent)
            if isinstance(thing, Node) and isinstance(now, Node) and now.ref != thing.ref:
                raise ConflictError(
                    f"{thing.id!r} was described anew since, as {now.ref!r}. Read contradictions() again."
                )
    return rows[0] if rows else -1


def _say(linking: Linking, sight: Sight, ends: tuple[int, int], decision: str, reason: str) -> int:
    """Make the link of a candidate, with the decision, over the time that both have held together."""
    name = linking.new_link_id()
    op = linking.work.op("resolve", name, reason)
    claim = Claim(reason=reason, created_by="store", metadata={DECISION: decision}, id=name)
    said = Ends(ends[0], linking.kind("contradicts"), ends[1])
    row = linking.join(said, _free(linking, sight, said), claim, op)
    return linking.index.k_link[row]


def _free(linking: Linking, sight: Sight, ends: Ends) -> Period:
    """From when both hold, open-ended; but not where the same was said at another time."""
    index = linking.index
    since = max(index.r_from[sight.find(ent)] for ent in (ends.source, ends.target))
    until = OPEN
    for row in linking.overlapping(ends, (since, OPEN), sight.tx):
        if index.k_to[row] <= sight.valid:
            since = max(since, index.k_to[row])
        else:
            until = min(until, index.k_from[row])
    return since, until


def _decide(linking: Linking, row: int, decision: str, reason: str) -> int:
    """Write the decision into a link that is there; all else that was said of it stays."""
    index, work = linking.index, linking.work
    link = index.k_link[row]
    op = work.op("resolve", index.l_name[link], reason)
    for each in index.believed_link(link, work.tx):
        number = index.k_claim[each]
        said: Json = linking.core.body(index.c_pos[number], index.c_len[number])
        claim = Claim(
            said.get("reason"),
            index.c_strength[number] or None,
            index.c_by[number],
            {**said.get("metadata", {}), DECISION: decision},
            bool(index.c_inferred[number]),
        )
        linking.claim(link, (index.k_from[each], index.k_to[each]), claim, op)
    return link


def _correct(linking: Linking, kept: int, other: int, reason: str) -> None:
    """Stop believing the other; the one kept corrects it, unless it does already."""
    index, work = linking.index, linking.work
    ends = Ends(kept, linking.kind("corrects"), other)
    since = index.start(kept, work.tx)
    during = (work.tx if since is None else since, OPEN)
    if not linking.overlapping(ends, during, work.tx):
        linking.join(ends, during, Claim(reason=reason, created_by="store"))
    work.take(other, (BEGINNING, OPEN), work.op("retract", index.names[other], reason))
