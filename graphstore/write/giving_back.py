"""Giving back: when a supersession is unlinked, or its successor retracted, what it took is believed again."""

from __future__ import annotations

from graphstore.read.columns import Taken
from graphstore.read.working_set import WorkingSet
from graphstore.values.period import OPEN, Period, overlap, without_all
from graphstore.view.sight import Core
from graphstore.write.linking import Claim, Ends, Linking, beside
from graphstore.write.transaction import Transaction
from graphstore.write.trust import Trust

_MINTED = ("transition", "contradicts")


def let_go(core: Core, work: Transaction, new: int, span: Period, trust: Trust, op: int) -> None:
    """Take back, over a period, the supersessions that a thing made by being said, and what was minted with them; what they took comes back.

    Raises ConflictError when one of them was recorded by a more trusted author.
    """
    index = core.index
    for link in index.of_kinds(index.out, new, ("supersedes",)):
        if index.l_kind[link] == "supersedes":
            rows = _over(index, link, span, work.tx)
            trust.guard_links(rows)
            if rows:
                unlink_supersession(core, work, link, span, op, pass_on=True)


def unlink_supersession(
    core: Core, work: Transaction, link: int, span: Period, op: int, *, pass_on: bool
) -> None:
    """Unlink a supersession and what was minted beside it over a period, and give back what it took.

    `pass_on`: where another value of the slot holds what would come back, that value supersedes it from there on.
    """
    index = core.index
    gone = work.take_link(link, span, op)
    for kind in _MINTED:
        for other in beside(index, link, kind):
            for row in _over(index, other, span, work.tx):
                part = overlap((index.k_from[row], index.k_to[row]), span)
                if part and (kind == "transition" or index.c_by[index.k_claim[row]] == "store"):
                    work.take_link(other, part, op)
    for part in gone:
        _give_back(core, work, link, part, op, pass_on=pass_on)


def _over(index: WorkingSet, link: int, span: Period, tx: int) -> list[int]:
    rows = index.believed_link(link, tx)
    return [row for row in rows if overlap((index.k_from[row], index.k_to[row]), span)]


def _give_back(core: Core, work: Transaction, link: int, freed: Period, op: int, *, pass_on: bool) -> None:
    index = core.index
    old = index.l_tgt[link]
    passed: list[tuple[int, Taken]] = []
    for ver, start, stop in work.free(link, freed):
        over = index.over(index.now_of[old], (start, stop))
        believed = [(index.r_from[row], index.r_to[row]) for row in over]
        for part in without_all((start, stop), believed):
            holders = _holders(index, old, part) if pass_on else []
            for hole in without_all(part, [(index.r_from[row], index.r_to[row]) for row in holders]):
                work.restore(old, ver, hole, op)
            for row in holders:
                shared = overlap((index.r_from[row], index.r_to[row]), part)
                if shared is not None:
                    passed.append((index.r_ent[row], (ver, *shared)))
    for holder, piece in passed:
        _pass_on(core, work, holder, old, piece, op)


def _holders(index: WorkingSet, old: int, part: Period) -> list[int]:
    """Return the rows of the other values of a thing's slot that hold over a period now."""
    key = index.key[old]
    if key is None:
        return []
    over = index.over(index.held((key, index.scope[old])), part)
    return [row for row in over if index.r_ent[row] != old]


def _pass_on(core: Core, work: Transaction, holder: int, old: int, piece: Taken, op: int) -> None:
    """Let the value that holds where another would come back supersede it from there on."""
    index, linking = core.index, Linking(core, work)
    ends = Ends(holder, linking.kind("supersedes"), old)
    if linking.closes_cycle(ends, work.tx):
        return
    later = index.now_of[old].first_since(piece[2]) >= 0
    during = (piece[1], piece[2] if later else OPEN)
    there = linking.overlapping(ends, during, work.tx)
    if there:
        link = index.k_link[there[0]]
    else:
        minted = Claim(created_by="store")
        link = index.k_link[linking.join(ends, during, minted, op)]
        for name in _MINTED:
            beside_it = Ends(holder, linking.kind(name), old)
            if not linking.overlapping(beside_it, during, work.tx):
                linking.join(beside_it, during, minted, op)
    work.set_taken(link, [*index.taken.get(link, ()), piece])
