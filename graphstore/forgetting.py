"""What has to leave the journal when a thing is evicted or erased, and how it leaves: found in the index, blanked segment by segment.

The line that says a thing is forgotten comes first. Killed anywhere after it, the same is found again and finished when the store is opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphstore.files import Moves
from graphstore.index import FORGETTING, Index
from graphstore.journal import Journal, Place, segment_of


def remaining(index: Index) -> list[Place]:
    """The contents of forgotten things that are in the journal still. A body that something else uses too is not among them."""
    if not index.gone:
        return []
    wanted = {index.v_pos[ver]: index.v_len[ver] for ent in index.gone for ver in index.versions_of[ent]}
    kept: set[int] = set()
    names = {index.names[ent] for ent in index.gone}
    for link in _touched(index):
        forgotten = _forgotten(index, link)
        if forgotten:
            names.add(index.l_name[link])
        for claim in index.claims_of[link]:
            if forgotten:
                wanted[index.c_pos[claim]] = index.c_len[claim]
            else:
                kept.add(index.c_pos[claim])
    for op, length in enumerate(index.o_len):
        if length == 0:
            continue
        if index.o_subject[op] in names and index.o_verb[op] not in FORGETTING:
            wanted[index.o_pos[op]] = length
        else:
            kept.add(index.o_pos[op])
    return [Place(pos, length) for pos, length in sorted(wanted.items()) if length and pos not in kept]


def _touched(index: Index) -> Iterable[int]:
    return {link for ent in index.gone for side in (index.out, index.into) for link in side.get(ent, ())}


def _forgotten(index: Index, link: int) -> bool:
    """Whether what is said of a link goes too: of an erased thing nothing is said any more, of an evicted one its neighbours may speak."""
    words = {index.word(index.l_src[link]), index.word(index.l_tgt[link])}
    return "erased" in words or "" not in words


def blank(index: Index, places: Iterable[Place]) -> None:
    """The index no longer leads to these bodies."""
    _place(index, {place.pos for place in places}, None, None)
    index.finished()


def finish(index: Index, journal: Journal) -> None:
    """Write every segment anew that holds what is forgotten. Raises EngineError when the disk refuses; what is done stays done."""
    by_segment: dict[int, list[Place]] = defaultdict(list)
    for place in remaining(index):
        by_segment[segment_of(place)].append(place)
    for segment, places in by_segment.items():
        moves = journal.blank(segment, places)
        _place(index, {place.pos for place in places}, segment, moves)
    index.finished()


def _place(index: Index, gone: set[int], segment: int | None, moves: Moves | None) -> None:
    for column, lengths in (
        (index.v_pos, index.v_len),
        (index.c_pos, index.c_len),
        (index.o_pos, index.o_len),
    ):
        for at, pos in enumerate(column):
            if lengths[at] == 0:
                continue
            if pos in gone:
                column[at] = lengths[at] = 0
            elif moves is not None and segment_of(Place(pos, 0)) == segment:
                column[at] = moves.to(pos)


def names(index: Index) -> Iterator[bytes]:
    """The ids of what is forgotten, as they stand in a line."""
    return (index.names[ent].encode() for ent in index.gone)
