"""Removing evicted and erased contents from the journal: found in the index, blanked segment by segment.

The line that records the forgetting comes first. From then on nothing leads to the contents. If the process is killed after it, the work is found
and finished when the store is opened.
"""

from __future__ import annotations

from array import array

from graphstore.core.index.index import Index
from graphstore.core.journal.line import OF_LINKS, OF_THE_STORE
from graphstore.core.journal.positions import Place


def remaining(index: Index) -> list[Place]:
    """The contents of forgotten things that the index still leads to, without bodies that something else uses too."""
    if not index.gone:
        return []
    wanted = {index.v_pos[ver]: index.v_len[ver] for ent in index.gone for ver in index.versions_of[ent]}
    kept: set[int] = set()
    forgotten = _forgotten(index)
    for link in _touched(index):
        until, claims = forgotten.get(link, -1), _first_claimed(index, link)
        for claim in index.claims_of[link]:
            if claims.get(claim, -1) < until:
                wanted[index.c_pos[claim]] = index.c_len[claim]
            else:
                kept.add(index.c_pos[claim])
    reasons = _reasons(index, forgotten, kept)
    wanted.update((pos, length) for pos, length in reasons.items() if pos not in kept)
    return [Place(pos, length) for pos, length in sorted(wanted.items()) if length]


def _reasons(index: Index, forgotten: dict[int, int], kept: set[int]) -> dict[int, int]:
    """The reasons of operations on what was forgotten, place -> length; `kept` gets the places of all others."""
    things = {index.names[ent]: op for ent, op in index.gone.items()}
    links = {index.l_name[link]: op for link, op in forgotten.items()}
    echoes = _echoes(index, forgotten)
    reasons: dict[int, int] = {}
    for op, length in enumerate(index.o_len):
        if length == 0:
            continue
        verb, subject = index.o_verb[op], index.o_subject[op]
        if verb == "erase" or verb in OF_THE_STORE:
            gone = False
        elif verb == "evict":  # the place that an eviction kept goes when the event is erased
            gone = op < things.get(subject, -1)
        else:
            gone = op in echoes or op < (links if verb in OF_LINKS else things).get(subject, -1)
        if gone:
            reasons[index.o_pos[op]] = length
        else:
            kept.add(index.o_pos[op])
    return reasons


def _echoes(index: Index, links: dict[int, int]) -> set[int]:
    """The operations whose reason is that of one of these links, whatever their subject: in a large transaction in a copy of its own."""
    return {
        index.k_op[row]
        for link, until in links.items()
        for row in index.rows_of_link[link]
        if index.k_op[row] < until
        and index.o_verb[index.k_op[row]] in ("link", "supersede")
        and index.o_len[index.k_op[row]] == index.c_len[index.k_claim[row]]
    }


def _touched(index: Index) -> set[int]:
    return {link for ent in index.gone for side in (index.out, index.into) for link in side.get(ent, ())}


def _forgotten(index: Index) -> dict[int, int]:
    """The links whose claims are forgotten too, each with the operation before which they were made: all of an erased thing; of an evicted one only
    those to other forgotten things. Later claims of a link, as by an import, stay.
    """
    found: dict[int, int] = {}
    for link in _touched(index):
        ends = index.l_src[link], index.l_tgt[link]
        ops = [index.gone[ent] for ent in ends if ent in index.gone]
        if len(ops) < 2:  # of a forgotten thing and one that is not
            ops = [index.gone[ent] for ent in ends if index.word(ent) == "erased"]
        if ops:
            found[link] = max(ops)
    return found


def _first_claimed(index: Index, link: int) -> dict[int, int]:
    """The first operation of each claim of a link."""
    found: dict[int, int] = {}
    for row in index.rows_of_link[link]:
        found.setdefault(index.k_claim[row], index.k_op[row])
    return found


def hide(index: Index) -> list[Place]:
    """Remove forgotten contents from the index. Returns all places that are in the journal still."""
    places = remaining(index)
    index.left = [*(index.left or ()), *places]
    gone = {place.pos for place in places}
    for column, lengths in _columns(index) if gone else ():
        for at, pos in enumerate(column):
            if pos in gone:
                column[at] = lengths[at] = 0
    return index.left


def _columns(index: Index) -> tuple[tuple[array[int], array[int]], ...]:
    """The places of bodies, each column with its lengths."""
    return (index.v_pos, index.v_len), (index.c_pos, index.c_len), (index.o_pos, index.o_len)
