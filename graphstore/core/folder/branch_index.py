"""The index of a branch: that of the trunk as it was where the branch began, and the lines told on the branch since.

Nothing of it is kept: it is laid when somebody asks. What was evicted or erased on the trunk since is forgotten here too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from graphstore.core.folder.forgetting import hide
from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.index.rollback import cut_to, twin
from graphstore.core.journal.branch_records import Strand, Strands
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import FORGETTING
from graphstore.core.journal.positions import Line, Place
from graphstore.values.period import BEGINNING, OPEN, Instant, instant

Uncommitted = Callable[[Index], None]  # gives back what a transaction still open on the trunk has taken


def lay(trunk: Index, journal: Journal, strand: Strand, uncommitted: Uncommitted | None = None) -> Index:
    """The index of a branch, from that of the trunk and the journal. `left` holds what is forgotten and in the journal still."""
    with no_collecting():
        index = twin(trunk)
        if uncommitted is not None:
            uncommitted(index)
        index._committed = None
        index.branch, index.strands, index.left = strand.name, Strands(), None
        index.forked = cut_to(index, strand.fork)
        later = _forgettings(trunk, strand.fork)
        for line in lines(journal, strand):
            tx = instant(line.head["tx"])
            while later and trunk.o_tx[later[-1]] < tx:
                _forget(index, trunk, later.pop())
            index.apply(line.head, line.places)
        while later:
            _forget(index, trunk, later.pop())
        if index.gone:
            hide(index)
    return index


def lines(journal: Journal, strand: Strand) -> Iterator[Line]:
    """What was told on a branch."""
    for pos, length in strand.pieces:
        yield from journal.again(Place(pos, length))


def _forgettings(trunk: Index, since: Instant) -> list[int]:
    """The operations that evicted or erased something by name after an instant, the last first."""
    if trunk.mark().ops and not FORGETTING.keys().isdisjoint(trunk.o_verb):
        first = bisect_right(trunk.o_tx, since)
        return [
            op
            for op in range(trunk.mark().ops - 1, first - 1, -1)
            if trunk.o_verb[op] in FORGETTING and trunk.o_subject[op]
        ]
    return []


def _forget(index: Index, trunk: Index, told: int) -> None:
    name, tx = trunk.o_subject[told], trunk.o_tx[told]
    op = index.add_op(
        tx, trunk.o_verb[told], name, trunk.o_author[told], trunk.o_pos[told], trunk.o_len[told]
    )
    index.last_tx = tx
    ent = index.ids.get(name, -1)
    if ent >= 0:
        for row in list(index.now_of[ent]):
            index.close_row(row, tx, op)
        index.forget(ent, op)


# ------------------------------------------------------------------------------------- forgetting


def names_told(journal: Journal, strand: Strand) -> set[str]:
    """The ids of all things and links that the lines of a branch name."""
    found: set[str] = set()
    for line in lines(journal, strand):
        for entries in ("entities", "versions", "rows", "seen", "links", "claims", "link_rows"):
            found.update(entry[0] for entry in line.head.get(entries, ()))
        for _, source, _, target in line.head.get("links", ()):
            found |= {source, target}
        found.update(op[1] for op in line.head.get("ops", ()))
    return found


def born_on(journal: Journal, strand: Strand) -> set[str]:
    """The ids of the things that were first told on a branch."""
    return {entry[0] for line in lines(journal, strand) for entry in line.head.get("entities", ())}


def remaining(trunk: Index, journal: Journal) -> list[Place]:
    """The contents of forgotten things that lie in the lines of branches, deleted ones too."""
    gone = {trunk.o_subject[op] for op in _forgettings(trunk, BEGINNING - OPEN)}
    if not gone:
        return []
    for ent in trunk.gone:
        for side in (trunk.out, trunk.into):
            gone.update(trunk.l_name[link] for link in side.get(ent, ()))
    found: list[Place] = []
    for strand in trunk.strands:
        if strand.pieces and not gone.isdisjoint(names_told(journal, strand)):
            found += lay(trunk, journal, strand).left or ()
    return found
