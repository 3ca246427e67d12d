"""What a link's id answers: the period that shows it, all about it, and what became of it."""

from __future__ import annotations

from graphstore.core.read.sight import Sight
from graphstore.read import link_story
from graphstore.read.ids import knows
from graphstore.read.linked import link_period_rows
from graphstore.values.models import How, LinkInspection, LinkSupersession, Step
from graphstore.values.period import Instant, moment


def named(sight: Sight, id: str) -> int:
    """The link of exactly this id that was made by the sight's tx, or -1; a node or event of that id goes before."""
    link = sight.index.link_ids.get(id, -1) if isinstance(id, str) else -1
    return link if link >= 0 and sight.entity(id) < 0 and sight.was_made(link) else -1


def inspected_by(sight: Sight, id: str) -> LinkInspection | None:
    """All about the link of an id; None where `named` finds none."""
    if sight.point is not None:
        rows = link_period_rows(sight.point, id)
        return link_story.inspected(sight.point, rows) if rows and not knows(sight.point, id) else None
    link = named(sight, id)
    return inspected(sight, link) if link >= 0 else None


def recorded(sight: Sight, link: int) -> list[int]:
    """Every row of a link recorded up to the sight's tx, by (tx_from, valid_from)."""
    index = sight.index
    rows = [row for row in index.rows_of_link[link] if index.k_tx[row] <= sight.tx]
    return sorted(rows, key=lambda row: (index.k_tx[row], index.k_from[row]))


def inspected(sight: Sight, link: int) -> LinkInspection:
    """All about a link."""
    index = sight.index
    return LinkInspection(
        link=sight.link(_face(sight, link)),
        holds=sight.held(link) >= 0,
        source=sight.thing(index.l_src[link]),
        target=sight.thing(index.l_tgt[link]),
        history=tuple(sight.link(row) for row in sight.believed_link(link)),
    )


def became(sight: Sight, link: int) -> LinkSupersession:
    """What became of a link at the sight's valid time, step by step in the order it was recorded."""
    index = sight.index
    rows = [
        row
        for row in recorded(sight, link)
        if index.k_from[row] <= sight.valid < index.k_to[row] and index.k_tx[row] < index.k_end[row]
    ]
    chain = []
    for row, later in zip(rows, [*rows, -1][1:], strict=True):
        if index.k_end[row] > sight.tx:
            continue
        op = index.k_close[row]
        if later < 0 or index.k_op[later] != op:
            chain.append(_step(sight, "unlinked", row, op, _cut(sight, link, row, op)))
        elif index.k_claim[later] != index.k_claim[row]:
            chain.append(_step(sight, "revised", later, op, index.k_from[later]))
    over = [row for row in sight.believed_link(link) if index.k_to[row] <= sight.valid]
    if not rows and over:
        last = max(over, key=index.k_to.__getitem__)
        chain.append(_step(sight, "ended", last, index.c_op[index.k_claim[last]], index.k_to[last]))
    return LinkSupersession(
        link=sight.link(_face(sight, link)), holds=sight.held(link) >= 0, chain=tuple(chain)
    )


def _face(sight: Sight, link: int) -> int:
    """The row that shows a link: the one that holds, else the last recorded of those that did, of those believed, or of all."""
    index, held = sight.index, sight.held(link)
    if held >= 0:
        return held
    rows = recorded(sight, link)
    covering = [row for row in rows if index.k_from[row] <= sight.valid < index.k_to[row]]
    return (covering or sight.believed_link(link) or rows)[-1]


def _cut(sight: Sight, link: int, row: int, op: int) -> Instant:
    """From when on an operation took away the part of a row that covers the sight's valid time: from where what it left before that ends."""
    index = sight.index
    left = [
        index.k_to[piece]
        for piece in index.rows_of_link[link]
        if index.k_op[piece] == op and index.k_from[row] <= index.k_from[piece] < sight.valid
    ]
    return max(left, default=index.k_from[row])


def _step(sight: Sight, how: How, row: int, op: int, since: Instant) -> Step:
    index = sight.index
    link = sight.link(row)
    reason = sight.core.body(index.o_pos[op], index.o_len[op]).get("reason")
    return Step(
        how=how,
        link=link,
        node=None,
        who=index.o_author[op] or (link.created_by if how == "revised" else None),
        why=link.reason if how == "revised" else reason,
        since=moment(since),
        recorded_at=moment(index.o_tx[op]),
    )
