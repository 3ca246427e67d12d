"""Undo one transaction: close what it opened and open again what it closed, as a transaction of its own.

Operations are not removed. From the undo's instant on, those of the undone transaction do not count (`Index.believed_op`). Undoing an undo makes them count again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from graphstore.errors import ConflictError, NotFoundError
from graphstore.ledger.chain import FORGETTING, TOUCH, UNDO
from graphstore.read.columns import Taken
from graphstore.values.period import ALWAYS, Instant, Period, exactly, iso, overlap
from graphstore.values.vocabulary import JOINS
from graphstore.view.sight import Core
from graphstore.write.bounds import Bounds
from graphstore.write.linking import LinkEnds, Linking
from graphstore.write.transaction import Transaction
from graphstore.write.trust import Trust

_LASTING = frozenset(
    {*FORGETTING, "define_kind", "promote_kind", "set_retention", "snapshot", "branch", "delete_branch"}
)


_FEW = 16  # rows of links that are scanned instead of the list of a thing's links


class _Done(NamedTuple):
    """Holds the changes of a transaction: the rows it opened and closed, and the kept statements that it changed, before and after it."""

    rows: list[int]
    closed: list[int]
    unlinked: list[int]
    link_rows: list[int]
    taken: dict[int, tuple[list[Taken], list[Taken]]]


def undo_since(core: Core, work: Transaction, since: Instant, reason: str) -> None:
    """Take back every transaction since an instant that still counts, newest first. Raises what `Undoing.write` raises."""
    index, done = core.index, 0
    for of in reversed(index.instants_between(since, work.tx)):
        ops = index.ops_at(of)
        if all(index.o_verb[op] == TOUCH or not index.believed_op(op, work.tx) for op in ops):
            continue  # it states nothing, or is taken back already
        Undoing(core, work, of).write(reason)
        done += 1
    if not done:
        raise NotFoundError(
            f"there is no transaction since {exactly(since)} that counts. changes() lists them, each with its tx."
        )


def _written_at(rows: list[int], tx: Instant, written: Sequence[int]) -> Iterator[int]:
    """Yield the rows of one thing that were written at an instant, last one first: the open row is mostly the last."""
    at = written.__getitem__
    for place in reversed(range(bisect_left(rows, tx, key=at), bisect_right(rows, tx, key=at))):
        yield rows[place]


class Undoing:
    """Takes back one transaction, that at instant `of`."""

    def __init__(self, core: Core, work: Transaction, of: Instant) -> None:
        self.core, self.index, self.work, self.of = core, core.index, work, of
        self.ops = self.index.ops_at(of)
        self.done, self.settings = self._done(), self.index.settings_at(of)
        self.settings.pop(JOINS, None)  # other joins may need it
        self._why_not: list[str] = []

    def write(self, reason: str) -> None:
        """Write the undo. Raises NotFoundError if there is no such transaction. Raises ConflictError, with the ids, if something was built on it, it is taken back already,
        or it cannot be undone."""
        index, work = self.index, self.work
        self._refuse_lasting()
        goes, link_goes = self._current()
        self._refuse_built_on({*goes.values()}, {*link_goes.values()})
        trust = Trust(self.core, work.author)
        for row in goes.values():
            trust.guard(index.r_ent[row], [(index.r_from[row], index.r_to[row])])
        trust.guard_links(link_goes.values())
        for done in self.ops if trust.ranks else ():
            trust.admit(f"the transaction at {exactly(self.of)}", None, index.o_author[done])
        op = work.op(UNDO, iso(self.of), reason)
        for row in goes.values():
            index.close_row(row, work.tx, op)
        for row in self.done.closed:
            index.open_row(index.r_ver[row], (index.r_from[row], index.r_to[row]), work.tx, op)
        for row in link_goes.values():
            index.close_link_row(row, work.tx, op)
        self._refuse_cycles()
        for row in self.done.unlinked:
            index.open_link_row(index.k_claim[row], (index.k_from[row], index.k_to[row]), work.tx, op)
        for ent, (before, _) in self.done.taken.items():
            work.set_taken(ent, before)
        if index.instants_between(self.of + 1, work.tx):
            self._settle(op)
        index.add_settings([{name: before} for name, (before, _) in self.settings.items()])

    def _settle(self, op: int) -> None:
        """Derive what holds from the bounds that later transactions have set or withdrawn."""
        index, bounds = self.index, Bounds(self.core, self.work, op=op)
        links = {index.k_link[row] for row in self.done.link_rows}
        bounded = {index.l_tgt[link] for link in links if index.l_kind[link] in ("supersedes", "corrects")}
        for ent in sorted({*self.done.taken} | bounded):
            bounds.give_back(ent, ALWAYS)
        regions: dict[tuple[str, str], list[Period]] = {}
        for row in self.done.rows:
            if (slot := index.slot_of(index.r_ent[row])) is not None:
                regions.setdefault(slot, []).append((index.r_from[row], index.r_to[row]))
        for slot, periods in regions.items():
            bounds.settle(slot, periods)
        opened = {index.l_tgt[index.k_link[row]] for row in self.done.unlinked}
        for ent in sorted(opened | {index.r_ent[row] for row in self.done.closed}):
            bounds.enforce(ent)

    # ------------------------------------------------------------------ effects of the transaction

    def _done(self) -> _Done:
        index, of = self.index, self.of
        rows, link_rows = index.rows_at(of), index.link_rows_at(of)
        return _Done(list(rows), *index.closed_at(of), list(link_rows), index.taken_at(of))

    # ------------------------------------------------------------------ refusals

    def _nearest(self) -> str:
        """Return a sentence with the transactions before and after the instant."""
        index = self.index
        near = {index.o_tx[op]: op for op in index.ops_beside(self.of)}
        nearest = [
            f"{exactly(tx)} ({index.o_verb[op]} {index.o_subject[op]}{f' by {who}' if (who := index.o_author[op]) else ''})"
            for tx, op in sorted(near.items(), key=lambda each: abs(each[0] - self.of))
            if tx != self.work.tx
        ]
        return f" Nearest: {', '.join(nearest)}." if nearest else ""

    def _refuse_lasting(self) -> None:
        index, name = self.index, exactly(self.of)
        if not self.ops:
            raise NotFoundError(
                f"there is no transaction at {name}.{self._nearest()} changes() lists them, each with its tx."
            )
        if not any(index.believed_op(op, self.work.tx) for op in self.ops):
            raise ConflictError(
                f"the transaction at {name} is taken back already. Undo that undo to have it again."
            )
        for op in self.ops:
            if index.o_verb[op] in _LASTING:
                raise ConflictError(
                    f"the transaction at {name} has an operation {index.o_verb[op]!r} of {index.o_subject[op]!r}, which cannot be undone."
                )

    def _current(self) -> tuple[dict[int, int], dict[int, int]]:
        """Map each row that it opened to the open row with the same content: itself, or one restored by an undo. Notes the rows changed since."""
        index = self.index
        goes: dict[int, int] = {}
        link_goes: dict[int, int] = {}
        for row in self.done.rows:
            now = self._row_now(row)
            if now < 0:
                self._why_not.append(index.names[index.r_ent[row]])
            goes[row] = now
        for row in self.done.link_rows:
            now = self._link_row_now(row)
            if now < 0:
                self._why_not.append(index.l_name[index.k_link[row]])
            link_goes[row] = now
        for ent, (_, after) in self.done.taken.items():
            if sorted(index.taken[ent]) != sorted(after):
                self._why_not.append(index.names[ent])
        self._why_not += [name for name, (_, left) in self.settings.items() if index.setting(name) != left]
        return goes, link_goes

    def _row_now(self, row: int) -> int:
        index = self.index
        if index.r_close[row] < 0:
            return row
        for at in self._undone_at(index.r_end[row]):
            wanted = (index.r_ver[row], index.r_from[row], index.r_to[row])
            for other in _written_at(index.rows_of[index.r_ent[row]], at, index.r_tx):
                if (index.r_ver[other], index.r_from[other], index.r_to[other]) != wanted:
                    continue
                if (now := self._row_now(other)) >= 0:  # one transaction may have opened it more than once
                    return now
        return -1

    def _link_row_now(self, row: int) -> int:
        index = self.index
        if index.k_close[row] < 0:
            return row
        for at in self._undone_at(index.k_end[row]):
            wanted = (index.k_claim[row], index.k_from[row], index.k_to[row])
            for other in _written_at(index.rows_of_link[index.k_link[row]], at, index.k_tx):
                if (index.k_claim[other], index.k_from[other], index.k_to[other]) != wanted:
                    continue
                if (now := self._link_row_now(other)) >= 0:
                    return now
        return -1

    def _undone_at(self, tx: Instant) -> Iterator[Instant]:
        """Yield the instants at which a transaction was taken back, if the undo counts."""
        index = self.index
        for op in index.undone_by.get(tx, ()):
            if index.believed_op(op, self.work.tx):
                yield index.o_tx[op]

    def _refuse_built_on(self, goes: set[int], link_goes: set[int]) -> None:
        self._refuse_places(goes)
        self._refuse_sentences(link_goes)
        self._refuse_uses()
        self._refuse()

    def _refuse(self) -> None:
        if self._why_not:
            ids = list(dict.fromkeys(self._why_not))
            shown = ", ".join(map(repr, ids[:8])) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
            raise ConflictError(
                f"the transaction at {exactly(self.of)} cannot be taken back: something was built on it since, by what concerns {shown}. "
                "changes() lists what was done; undo that first, or write what is right now."
            )

    def _refuse_places(self, goes: set[int]) -> None:
        """Note what now holds where a row would be opened again, of the node or of its slot, and what came to hold since where a supersession would be."""
        index = self.index
        for row in self.done.closed:
            ent = index.r_ent[row]
            key = index.key[ent]
            there = index.now_of[ent] if key is None else index.held((key, index.scope[ent]))
            period = (index.r_from[row], index.r_to[row])
            over = index.over(there, period)
            self._why_not += [index.names[index.r_ent[one]] for one in over if one not in goes]
            self._why_not += self._superseded_since(ent, period)
        for row in self.done.unlinked:
            link, period = index.k_link[row], (index.k_from[row], index.k_to[row])
            if index.l_kind[link] == "supersedes" and index.c_by[index.k_claim[row]] != "store":
                over = index.over(index.now_of[index.l_tgt[link]], period)
                since = [one for one in over if one not in goes and index.r_tx[one] > self.of]
                self._why_not += [index.names[index.r_ent[one]] for one in since]

    def _superseded_since(self, ent: int, period: Period) -> list[str]:
        """Return what callers recorded since as superseding a thing over a period in which it was not believed: it took nothing there."""
        index, found = self.index, list[str]()
        for link in index.of_kinds(index.into, ent, ("supersedes",)):
            for row in index.believed_link(link, self.work.tx):
                claim, held = index.k_claim[row], (index.k_from[row], index.k_to[row])
                is_since = index.o_tx[index.c_op[claim]] > self.of and index.c_by[claim] != "store"
                found += [index.names[index.l_src[link]]] if is_since and overlap(held, period) else []
        return found

    def _refuse_sentences(self, goes: set[int]) -> None:
        """Note links that state the same sentence where a link row would be opened again."""
        index, linking = self.index, Linking(self.core, self.work)
        for row in self.done.unlinked:
            link = index.k_link[row]
            ends = LinkEnds(index.l_src[link], linking.kind(index.l_kind[link]), index.l_tgt[link])
            there = linking.overlapping(ends, (index.k_from[row], index.k_to[row]), self.work.tx)
            self._why_not += [index.l_name[index.k_link[one]] for one in there if one not in goes]
            if ends.kind.name in ("supersedes", "corrects") and self._is_retracted_since(ends.source):
                self._why_not.append(index.names[ends.source])

    def _is_retracted_since(self, ent: int) -> bool:
        """Return True if a part of a thing was retracted since: its bounds were withdrawn with it."""
        index, tx = self.index, self.work.tx
        closed = (index.r_close[row] for row in index.rows_of[ent] if self.of < index.r_end[row] < tx)
        return any(index.o_verb[op] == "retract" and index.believed_op(op, tx) for op in closed)

    def _refuse_cycles(self) -> None:
        """Raise ConflictError if a link that opens again would close a cycle with the links that remain."""
        index, linking = self.index, Linking(self.core, self.work)
        for row in self.done.unlinked:
            link = index.k_link[row]
            ends = LinkEnds(index.l_src[link], linking.kind(index.l_kind[link]), index.l_tgt[link])
            if ends.kind.acyclic and linking.closes_cycle(ends, self.work.tx):
                self._why_not.append(index.l_name[link])
        self._refuse()

    def _refuse_uses(self) -> None:
        """Note what it described if that was confirmed, happened again or was linked since."""
        index, of, tx = self.index, self.of, self.work.tx
        described = {
            index.r_ent[row] for row in self.done.rows if index.o_tx[index.v_op[index.r_ver[row]]] == of
        }
        for ent in described:
            later = [op for op in index.confirmed.get(index.names[ent], ()) if index.o_tx[op] > of]
            later += [op for row in index.seen_of.get(ent, ()) if index.o_tx[op := index.s_op[row]] > of]
            if any(index.believed_op(op, tx) for op in later):
                self._why_not.append(index.names[ent])
            for link, far in self._linked_since(ent):
                self._why_not += [index.l_name[link], index.names[far]]

    def _linked_since(self, ent: int) -> Iterator[tuple[int, int]]:
        """Yield the links at an entity that were recorded since, each with its other end."""
        index, of, tx = self.index, self.of, self.work.tx
        later = index.link_rows_after(of)
        count = sum(map(len, later))
        for side, near, far in (
            (index.out, index.l_src, index.l_tgt),
            (index.into, index.l_tgt, index.l_src),
        ):
            links: Collection[int] = side.get(ent, ()) if count > _FEW else ()
            if count <= _FEW or len(links) > count:  # for a hub, only links of which a row was written since
                written = map(index.k_link.__getitem__, chain.from_iterable(later))
                links = sorted({link for link in written if near[link] == ent})
            for link in links:
                claims = (index.k_claim[row] for row in index.believed_link(link, tx))
                if any(index.o_tx[index.c_op[claim]] > of for claim in claims):
                    yield link, far[link]
