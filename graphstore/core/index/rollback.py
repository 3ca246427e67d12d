"""Rolling an index back: to where a failed transaction began, or to where a branch forked."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

from graphstore.core.index.columns import Columns, Mark
from graphstore.core.index.members import Members
from graphstore.core.index.operations_by_id import Mentions
from graphstore.core.journal.line import FORGETTING, UNDO
from graphstore.values.period import OPEN, Instant, instant

C = TypeVar("C", bound=Columns)
_OWN: dict[str, Callable[[], Any]] = {
    "_blocks": dict,
    "_runs": dict,
    "_by": dict,
    "_grounds": dict,
    "_mentions": Mentions,
    "_members": Members,
    "_sorted_links": list,
    "_said": dict,
    "_held": dict,
    "_sorted": list,
    "_shaken": lambda: None,
}  # caches that each index makes for itself


def mark_at(index: Columns, tx: Instant) -> Mark:
    """The committed lengths of an index as they were at an instant."""
    end, first = index.r_end.__getitem__, index.rows_of_link.__getitem__
    link_rows = bisect_right(index.k_tx, tx)
    transactions = bisect_right(index.t_tx, tx)
    return Mark(
        bisect_right(index.born, tx),
        index.t_ver[transactions - 1] if transactions else 0,
        bisect_right(index.r_tx, tx),
        bisect_right(index.closings, tx, key=end),
        bisect_right(range(len(index.l_name)), tx, key=lambda link: index.k_tx[first(link)[0]]),
        max(index.k_claim[:link_rows], default=-1) + 1,  # each claim has a row from its first transaction on
        link_rows,
        bisect_right(index.link_closings, tx, key=index.k_end.__getitem__),
        bisect_right(index.o_tx, tx),
        bisect_right(index.s_tx, tx),
    )


def twin(index: C) -> C:
    """A copy of the index that shares nothing that grows."""
    fresh = object.__new__(type(index))
    for name, value in vars(index).items():
        setattr(fresh, name, _OWN[name]() if name in _OWN else _copied(value))
    return fresh


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        deep = isinstance(next(iter(value.values()), None), list)
        return {key: part[:] for key, part in value.items()} if deep else value.copy()
    if isinstance(value, list):
        return [part[:] for part in value] if value and isinstance(value[0], list) else value[:]
    if isinstance(value, (array, bytearray)):
        return value[:]
    return value.copy() if isinstance(value, set) else value


def cut_to(index: Columns, tx: Instant) -> Mark:
    """Roll an index back to an instant. Returns its new lengths."""
    mark = mark_at(index, tx)
    while index.retaken and index.retaken[-1][0] > tx:
        _, link, before = index.retaken.pop()
        index.taken[link] = before
    for there in (index.gaps, index.ghosts, index.link_ghosts):
        for one, gaps in list(there.items()):
            if gaps[-1][0] > tx:
                _set(there, one, [gap for gap in gaps if gap[0] <= tx])
    for alias, ver in list(index.aliases.items()):
        if ver >= mark.versions:
            del index.aliases[alias]
    while index.noted and index.noted[-1][0] > tx:
        index.noted.pop()
    _, kinds, promoted, settings = index.noted[-1] if index.noted else (0, 0, 0, 0)
    del index.kinds[kinds:], index.promoted[promoted:]
    index.cut_settings(settings)
    index._said.clear()
    cut_back(index, mark)
    index.transactions = bisect_right(index.t_tx, tx)
    del index.t_tx[index.transactions :], index.t_ver[index.transactions :]
    index.last_tx = tx
    return mark


def cut_back(index: Columns, mark: Mark) -> None:
    """Cut every column back to `mark`, and what leads to its rows: what is cut alone is looked at, since each refused verb comes here."""
    before = index.lengths()
    described = {index.v_ent[ver] for ver in range(mark.versions, before.versions)}
    for ent in described if index._said else ():
        index.remove_versions(ent, mark.versions)
        if ent in index.ghosts or ent >= mark.entities:
            index._said.pop(ent, None)
    _undo_turns(index, mark)
    _undo_links(index, mark)
    _undo_rows(index, mark)
    _undo_seen(index, mark)
    for ent in range(len(index.names) - 1, mark.entities - 1, -1):
        del index.ids[index.names[ent]]
        for there in (index.gaps, index.ghosts):
            there.pop(ent, None)
        _drop_slot(index, ent)
        index._blocks.pop(ent, None)
    for column in (index.names, index.is_event, index.born, index.changed, index.kind, index.key, index.scope,
                   index.versions_of, index.rows_of, index.now_of):  # fmt: skip
        del column[mark.entities :]
    for ent in described:
        _cut_ghosts(index.ghosts, ent, mark.versions)
    for link in list(dict.keys(index.link_ghosts)):  # of those in a file the ones that were added to
        _cut_ghosts(index.link_ghosts, link, mark.ops)
    cut = range(mark.ops, len(index.o_verb))
    if any(index.o_verb[op] in FORGETTING for op in cut):
        index.gone.clear()
        for op, verb in enumerate(islice(index.o_verb, mark.ops)):
            # the subject is empty without a tombstone; some are known to another line alone, and may have been added here later
            ent = index.ids.get(index.o_subject[op], -1) if verb in FORGETTING else -1
            if ent >= 0 and index.born[ent] <= index.o_tx[op]:
                index.forget(ent, op)
    index.unread.difference_update(cut)
    undone = []
    for op in reversed(cut):
        if index.o_verb[op] == "confirm":
            index.confirmed[index.o_subject[op]].pop()
        elif index.o_verb[op] == UNDO:
            undone.append(instant(index.o_subject[op]))
            _pop(index.undone_by, undone[-1])
    for column in (index.o_tx, index.o_pos, index.o_len, index.o_verb, index.o_subject, index.o_author):
        del column[mark.ops :]
    for tx in undone:
        index.undo_changed(tx)
    if before.entities > mark.entities:
        index._sorted.clear()
    if before.links > mark.links:
        index._sorted_links.clear()
    if before != mark:
        for kept in (index._grounds, index._held):
            kept.clear()


def _cut(numbers: list[int], first: int) -> None:
    del numbers[bisect_left(numbers, first) :]


def _undo_rows(index: Columns, mark: Mark) -> None:
    _drop_parts(index, of_links=False)
    for at in range(len(index.closings) - 1, mark.closings - 1, -1):
        row = index.closings[at]
        index.r_end[row], index.r_close[row] = OPEN, -1
        index._believe(index.now_of[index.r_ent[row]], row)
    del index.closings[mark.closings :]
    for row in range(len(index.r_ent) - 1, mark.rows - 1, -1):
        ent = index.r_ent[row]
        index.rows_of[ent].pop()
        index.now_of[ent].remove(row)
        index._blocks.pop(ent, None)
    for column in (index.r_ent, index.r_ver, index.r_from, index.r_to,
                   index.r_tx, index.r_end, index.r_op, index.r_close):  # fmt: skip
        del column[mark.rows :]
    for ver in range(len(index.v_ent) - 1, mark.versions - 1, -1):
        index.versions_of[index.v_ent[ver]].pop()
    for column in (index.v_ent, index.v_num, index.v_pos, index.v_len, index.v_op):
        del column[mark.versions :]
    _drop_parts(index, of_links=False)  # those that a reader has made meanwhile


def _drop_parts(index: Columns, *, of_links: bool) -> None:
    for by, ent in list(index._by):
        if (by != "number") == of_links:
            index._by.pop((by, ent), None)


def _set(lists: dict[int, list[Any]], key: int, left: list[Any]) -> None:
    if left:
        lists[key] = left
    else:
        del lists[key]


def _cut_ghosts(ghosts: dict[int, list[Any]], key: int, first: int) -> None:
    gaps = ghosts.get(key)
    if gaps and gaps[-1][3] >= first:
        _set(ghosts, key, [gap for gap in gaps if gap[3] < first])


def _pop(lists: dict[Any, list[Any]], key: Any) -> None:
    lists[key].pop()
    if not lists[key]:
        del lists[key]


def _undo_turns(index: Columns, mark: Mark) -> None:
    while index.turned and index.turns[index.turned[-1]][-1][3] >= mark.ops:
        _pop(index.turns, index.turned.pop())


def _undo_links(index: Columns, mark: Mark) -> None:
    there = len(index.l_name), len(index.k_link), len(index.link_closings)
    if there != (mark.links, mark.link_rows, mark.link_closings):
        index._runs.clear()
        _drop_parts(index, of_links=True)
    for at in range(len(index.link_closings) - 1, mark.link_closings - 1, -1):
        row = index.link_closings[at]
        index.k_end[row], index.k_close[row] = OPEN, -1
    del index.link_closings[mark.link_closings :]
    for row in range(len(index.k_link) - 1, mark.link_rows - 1, -1):
        index.rows_of_link[index.k_link[row]].pop()
    for column in (
        index.k_link,
        index.k_claim,
        index.k_from,
        index.k_to,
        index.k_tx,
        index.k_end,
        index.k_op,
        index.k_close,
    ):
        del column[mark.link_rows :]
    for claim in range(len(index.c_link) - 1, mark.claims - 1, -1):
        index.claims_of[index.c_link[claim]].pop()
    for claims in (
        index.c_link,
        index.c_num,
        index.c_strength,
        index.c_inferred,
        index.c_pos,
        index.c_len,
        index.c_op,
        index.c_by,
    ):
        del claims[mark.claims :]
    for link in range(len(index.l_name) - 1, mark.links - 1, -1):
        del index.link_ids[index.l_name[link]]
        index.taken.pop(link, None)
        index.link_ghosts.pop(link, None)
        index.out[index.l_src[link]].pop()
        index.into[index.l_tgt[link]].pop()
        if index.l_kind[link] == "supersedes":
            index.successors[index.l_tgt[link]].pop()
        elif index.l_kind[link] == "corrects":
            index.corrected[index.l_tgt[link]].pop()
        for end in (index.l_src[link], index.l_tgt[link]):
            if index.even.get(end, ())[-1:] == [link]:  # not by its kind: that may be removed already
                index.even[end].pop()
    for links in (index.l_name, index.l_kind, index.l_src, index.l_tgt, index.rows_of_link, index.claims_of):
        del links[mark.links :]
    if there != (mark.links, mark.link_rows, mark.link_closings):
        index._runs.clear()  # those that a reader has made meanwhile
        _drop_parts(index, of_links=True)


def _undo_seen(index: Columns, mark: Mark) -> None:
    for row in range(len(index.s_ent) - 1, mark.seen - 1, -1):
        rows = index.seen_of[index.s_ent[row]]
        rows.pop()
        if not rows:
            del index.seen_of[index.s_ent[row]]
    for column in (index.s_ent, index.s_at, index.s_tx, index.s_op, index.s_first, index.s_last):
        del column[mark.seen :]
    while index.printed and index.printed[-1][0] >= mark.entities:
        index.prints[index.printed.pop()[1]].pop()
    index.looked = min(index.looked, mark.entities)


def _drop_slot(index: Columns, ent: int) -> None:
    key = index.key[ent]
    if key is not None:
        index.slots[key, index.scope[ent]].pop()
