"""The index of a branch: the trunk's as it was at the fork, plus the branch's lines since.

It is never saved, but built on demand. What was evicted or erased on the trunk since is forgotten here too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.index.index import Index
from graphstore.core.index.rollback import cut_to, twin
from graphstore.core.journal.branch_records import BranchRecord, BranchRecords
from graphstore.core.journal.line import FORGETTING
from graphstore.core.journal.positions import Line, Place
from graphstore.ledger.ledger import Ledger
from graphstore.values.period import Instant, instant
from tests.support.hidden_contents import hide

Uncommitted = Callable[[Index], None]  # undoes what an open transaction on the trunk has taken


def build(
    trunk: Index, journal: Ledger, record: BranchRecord, uncommitted: Uncommitted | None = None
) -> Index:
    """Build the index of a branch from that of the trunk and the journal. `left` has the forgotten contents still in the journal."""
    with no_collecting():
        if record.parent is not None:
            index = build(trunk, journal, record.parent, uncommitted)
        else:
            index = twin(trunk)
            if uncommitted is not None:
                uncommitted(index)
            index._committed = None
        index.branch, index.branch_records, index.left = record.name, BranchRecords(), None
        index.lineage = (record.name, *index.lineage)
        forked = cut_to(index, record.fork)
        if record.parent is None:
            index.forked = forked
        later = _forgettings(trunk, record.fork)
        for line in lines(journal, record):
            tx = instant(line.head["tx"])
            while later and trunk.o_tx[later[-1]] < tx:
                _forget(index, trunk, later.pop())
            index.apply(line.head, line.places)
        while later:
            _forget(index, trunk, later.pop())
        if index.gone:
            hide(index)
    return index


def lines(journal: Ledger, record: BranchRecord) -> Iterator[Line]:
    """The lines of a branch."""
    for pos, length in record.pieces:
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


def _forget(index: Index, trunk: Index, source_op: int) -> None:
    name, tx = trunk.o_subject[source_op], trunk.o_tx[source_op]
    op = index.add_op(
        tx,
        trunk.o_verb[source_op],
        name,
        trunk.o_author[source_op],
        trunk.o_pos[source_op],
        trunk.o_len[source_op],
    )
    index.last_tx = tx
    ent = index.ids.get(name, -1)
    if ent >= 0:
        for row in list(index.now_of[ent]):
            index.close_row(row, tx, op)
        index.forget(ent, op)


# ------------------------------------------------------------------------------------- forgetting
