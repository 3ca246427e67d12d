"""Resolve a contradiction: write the decision into the link between the two things, and retract the rejected one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.values.assertions import DECISION
from graphstore.values.findings import Contradiction
from graphstore.values.models import Node
from graphstore.values.period import ALWAYS, OPEN, Period, exactly
from graphstore.view.conflicts import BOTH, of_link, rows_between
from graphstore.view.sight import Core
from graphstore.view.working_sight import WorkingSight
from graphstore.write.bounds import Bounds
from graphstore.write.linking import LinkClaim, LinkEnds, Linking, claim_of
from graphstore.write.transaction import Transaction


def resolve(
    core: Core, work: Transaction, contradiction: Contradiction, keep: str, reason: str
) -> Contradiction:
    """Record a decision: retract the rejected thing and link the kept one to it with `corrects`, or keep both.

    Raises InvalidError if `keep` is neither of the two. Raises ConflictError if the contradiction has changed since it was read.
    """
    if not isinstance(contradiction, Contradiction):
        raise InvalidError(f"{contradiction!r} is no contradiction. Pass one that contradictions() gave.")
    sight = WorkingSight(core, work.tx, work.tx)
    ends = _ends(sight, contradiction)
    kept = _kept(sight, ends, keep)
    row = _open_row(sight, contradiction, ends)
    decision = BOTH if kept is None else core.index.names[kept]
    linking = Linking(core, work, verb="resolve")
    link = (
        _new_decision(linking, sight, ends, decision, reason)
        if row < 0
        else _decide(linking, row, decision, reason)
    )
    if kept is not None:
        _correct(Linking(core, work), kept, ends[0] if kept == ends[1] else ends[1], reason)

    def make() -> Contradiction:
        after = WorkingSight(core, work.tx, work.tx)
        return of_link(after, after.held(link))

    return work.answer(Contradiction, make)


def _ends(sight: WorkingSight, contradiction: Contradiction) -> tuple[int, int]:
    """Return the two things. Raises ConflictError if one of them does not stand."""
    index = sight.index
    found = []
    for thing in (contradiction.source, contradiction.target):
        ent = index.ids.get(thing.id, -1)
        if ent < 0:
            raise NotFoundError.nearest("node or event", thing.id, partial(index.ids_beside, thing.id))
        if not sight.stands(ent):
            raise ConflictError(
                f"the contradiction is over: {thing.id!r} is {sight.standing(ent).replace('_', ' ')}. "
                "contradictions() lists what is open."
            )
        found.append(ent)
    return found[0], found[1]


def _kept(sight: WorkingSight, ends: tuple[int, int], keep: str) -> int | None:
    """Return the thing to keep, None if both stay."""
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


def _open_row(sight: WorkingSight, contradiction: Contradiction, ends: tuple[int, int]) -> int:
    """Return the row of the `contradicts` link between the two that holds now; -1 for a mere candidate. Raises ConflictError if the pair is already decided or has changed
    since the contradiction was read."""
    index = sight.index
    rows = rows_between(sight, *ends)
    for row in rows:
        decision = claim_of(sight.core, row).metadata.get(DECISION)
        if decision is not None:
            raise ConflictError(
                f"{index.names[ends[0]]!r} and {index.names[ends[1]]!r} are decided already: {decision!r} was kept. "
                "contradictions(settled=True) shows it."
            )
    link = contradiction.link
    if link is not None:
        rows = [row for row in rows if index.l_name[index.k_link[row]] == link.id]
        if not rows:
            raise ConflictError(
                f"link {link.id!r} no longer says so at {exactly(sight.valid)}. contradictions() lists what is open."
            )
    elif not rows:
        for thing, ent in zip((contradiction.source, contradiction.target), ends, strict=True):
            now = f"{index.names[ent]}-v{index.v_num[index.r_ver[sight.find(ent)]]}"
            if isinstance(thing, Node) and not index.is_event[ent] and now != thing.ref:
                raise ConflictError(
                    f"{thing.id!r} was described anew since, as {now!r}. Read contradictions() again."
                )
    return rows[0] if rows else -1


def _new_decision(
    linking: Linking, sight: WorkingSight, ends: tuple[int, int], decision: str, reason: str
) -> int:
    """Add a link with the decision for a candidate, from the time when both hold."""
    claim = LinkClaim(reason=reason, created_by="store", metadata={DECISION: decision})
    joined = LinkEnds(ends[0], linking.kind("contradicts"), ends[1])
    row = linking.join(joined, _free(linking, sight, joined), claim)
    return linking.index.k_link[row]


def _free(linking: Linking, sight: WorkingSight, ends: LinkEnds) -> Period:
    """Return the period in which both hold, without the periods of an existing link."""
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
    """Write the decision into an existing link. Its other attributes stay."""
    index, work = linking.index, linking.work
    link = index.k_link[row]
    op = work.op("resolve", index.l_name[link], reason)
    for each in index.believed_link(link, work.tx):
        was = claim_of(linking.core, each)
        claim = replace(was, metadata={**was.metadata, DECISION: decision})
        linking.claim(link, (index.k_from[each], index.k_to[each]), claim, op)
    return link


def _correct(linking: Linking, kept: int, other: int, reason: str) -> None:
    """Stop believing the other thing. Link the kept one to it with `corrects`, unless it is linked already."""
    index, work = linking.index, linking.work
    ends = LinkEnds(kept, linking.kind("corrects"), other)
    since = index.start(kept, work.tx)
    during = (work.tx if since is None else since, OPEN)
    if not linking.overlapping(ends, during, work.tx):
        linking.join(ends, during, LinkClaim(reason=reason, created_by="store"))
    linking.trust.guard(other)
    op = work.op("retract", index.names[other], reason)
    stated = index.stated_over(other, ALWAYS)
    gone = work.stop_believing(other, ALWAYS, op)
    work.drop_kept(other, ALWAYS)
    Bounds(linking.core, work, op=op).let_go(
        other, ALWAYS, stated, [(start, stop) for _, start, stop in gone]
    )
