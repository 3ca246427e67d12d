"""Decides from the rows of things and links which of them hold at a coordinate, and how things stand there.

Each column has one value per row of a kind, at the number of the row; -1 means none. Subclasses fill the columns: the working set of a transaction, and the
readers of a ledger at one coordinate.

Prefixes: `v_` versions (contents), `r_` rows of versions, `l_` links, `c_` claims (a link's attributes), `k_` rows of links, `s_` occurrences of events after
the first recorded one, `o_` operations.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from typing import Any

from graphstore.ledger.chain import DESCRIBING, FORGOTTEN_BY, RETRACTING, UNDO
from graphstore.ledger.database import RowReader
from graphstore.read.columns import Gap, Mark
from graphstore.values.period import OPEN, Instant, Period, instant, without_all

# columns; typed as lists, since only their values are used
Numbers = list[int]
Texts = list[str]
Lists = list[list[int]]


class Index:
    """The rows of a store, as far as they were read."""

    ids: Mapping[str, int]
    link_ids: Mapping[str, int]
    names: Texts
    is_event: Numbers
    born: Numbers
    kind: Texts
    key: list[str | None]
    scope: Texts
    slots: dict[tuple[str, str], list[int]]  # (key, scope)
    aliases: Mapping[tuple[str, int, str], int]  # (branch, number there, id) -> version
    versions_of: dict[int, list[int]]
    rows_of: dict[int, list[int]]  # in the order of writing
    now_of: Any  # believed now, by valid_from
    out: dict[int, list[int]]
    into: dict[int, list[int]]
    successors: dict[int, list[int]]  # entity -> supersedes links to it
    v_ent: Numbers
    v_num: Numbers
    v_pos: Numbers
    v_len: Numbers
    v_op: Numbers
    r_ent: Numbers
    r_ver: Numbers
    r_from: Numbers
    r_to: Numbers
    r_tx: Numbers
    r_end: Numbers
    r_op: Numbers
    r_close: Numbers
    l_name: Texts
    l_kind: Texts
    l_src: Numbers
    l_tgt: Numbers
    rows_of_link: Lists
    c_strength: Numbers
    c_inferred: Numbers
    c_history: Numbers
    c_by: Texts
    c_pos: Numbers
    c_len: Numbers
    c_op: Numbers
    k_link: Numbers
    k_claim: Numbers
    k_from: Numbers
    k_to: Numbers
    k_tx: Numbers
    k_end: Numbers
    k_op: Numbers
    k_close: Numbers
    s_at: Numbers
    s_tx: Numbers
    s_op: Numbers
    s_first: Numbers
    s_last: Numbers
    seen_of: Any  # event -> its occurrences, in the order of writing
    o_tx: Numbers
    o_verb: Texts
    o_subject: Texts
    o_author: list[str | None]
    o_pos: Numbers
    o_len: Numbers
    o_told: Numbers
    last_tx: Instant
    gone: Mapping[int, int]  # forgotten entity -> the operation that evicted or erased it
    confirmed: dict[str, list[int]]  # id -> the operations that confirmed it
    undone_by: dict[Instant, list[int]]  # tx of a transaction -> the operations that undid it
    gaps: dict[int, list[Gap]]  # entity -> (tx, from, to, operation that removed it)
    link_ghosts: dict[int, list[Gap]]  # parts stated of a link that no row shows: (tx, from, to, operation)
    branch: str | None  # the branch whose rows these are; None for the trunk
    lineage: tuple[str, ...]  # the branch and its ancestors, its own name first
    forked: Mark | None  # the numbers of rows that a branch has from the trunk

    def read_line(self, database: RowReader) -> None:
        """Set the line of belief from a database."""
        self.branch, self.forked = database.branch, None
        if self.branch is not None:
            of_trunk = database.line.of_trunk
            self.forked = Mark(versions=of_trunk["version"], ops=of_trunk["operation"])

    @property
    def whole(self) -> Index:
        """Return an index that also reads outside of scopes: itself."""
        return self

    def setting_at(self, name: str, tx: Instant) -> Any:
        """Return the value of a setting at `tx`; None if it was not set by then."""
        raise NotImplementedError

    def mark(self) -> Mark:
        """Return the numbers of committed rows."""
        raise NotImplementedError

    # ------------------------------------------------------------------ rows that hold

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return the row of an entity that holds at (valid, tx), or -1."""
        if ent in self.gone:
            return -1
        row = self.last_cover(ent, valid, tx)
        return row if row >= 0 and self.r_end[row] > tx else -1

    def last_cover(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Return the last row written up to `tx` whose valid time contains `valid`, whether believed at `tx` or not; -1 if there is none.

        This row shows the last decision about the instant: any later decision would have written a later row or closed this one.
        """
        r_tx, r_from, r_to = self.r_tx, self.r_from, self.r_to
        rows = (
            row for row in reversed(self.rows_of[ent]) if r_from[row] <= valid < r_to[row] and r_tx[row] <= tx
        )
        return next((row for row in rows if not self.undone_by or self.believed_op(self.r_op[row], tx)), -1)

    def believed(self, ent: int, tx: Instant) -> list[int]:
        """Return the rows of an entity believed at `tx`, by valid_from."""
        rows = [row for row in self.rows_of[ent] if self.r_tx[row] <= tx < self.r_end[row]]
        return sorted(rows, key=self.r_from.__getitem__)

    def start(self, ent: int, tx: Instant) -> Instant | None:
        """Return the first valid_from believed of an entity; None if nothing is believed."""
        rows = self.believed(ent, tx)
        return self.r_from[rows[0]] if rows else None

    def find_link(self, link: int, valid: Instant, tx: Instant) -> int:
        """Return the row of a link that holds at (valid, tx), or -1."""
        rows = self.rows_of_link[link]
        for row in rows if len(rows) == 1 else reversed(rows):
            if self.k_tx[row] <= tx < self.k_end[row] and self.k_from[row] <= valid < self.k_to[row]:
                return row
        return -1

    def of_kinds(self, side: dict[int, list[int]], ent: int, kinds: Collection[str]) -> list[int]:
        """Return links on one side of an entity in order of recording: at least those of the given kinds. Subclasses may filter."""
        return side.get(ent, [])

    def link_since(self, row: int) -> Instant:
        """Return when a row of a link was recorded. For a row that an undo opened again, return when it was first recorded."""
        if self.o_verb[self.k_op[row]] != UNDO:
            return self.k_tx[row]
        here = (self.k_claim[row], self.k_from[row], self.k_to[row])
        rows = self.rows_of_link[self.k_link[row]]
        alike = (one for one in rows if (self.k_claim[one], self.k_from[one], self.k_to[one]) == here)
        return self.k_tx[next(alike)]

    def believed_link(self, link: int, tx: Instant) -> list[int]:
        """Return the rows of a link believed at `tx`, by valid_from."""
        rows = [r for r in self.rows_of_link[link] if self.k_tx[r] <= tx < self.k_end[r]]
        return sorted(rows, key=self.k_from.__getitem__) if len(rows) > 1 else rows

    def first_reported(self, ent: int) -> Instant:
        """Return the instant at which an event happened as first recorded. All other instants are in its occurrences."""
        for row in self.rows_of[ent]:
            if (
                self.r_tx[row] < self.r_end[row]
            ):  # skip a row that was opened and closed in one transaction; one that is open may follow
                return self.r_from[row]
        return self.born[ent]

    def last_written(self, ent: int, tx: Instant) -> int:
        """Return the last row of an entity written by `tx` that is not undone, or else the last undone one; -1 if there is none."""
        rows = [row for row in self.rows_of[ent] if self.r_tx[row] <= tx]
        kept = (row for row in reversed(rows) if not self.undone_by or self.believed_op(self.r_op[row], tx))
        return next(kept, rows[-1] if rows else -1)

    def believed_op(self, op: int, tx: Instant) -> bool:
        """Return True if an operation counts at `tx`: it was recorded, and its transaction is not undone there."""
        if self.o_tx[op] > tx:
            return False
        undos = self.undone_by.get(self.o_tx[op]) if self.undone_by else None
        return not undos or not any(self.believed_op(undo, tx) for undo in undos)

    # ------------------------------------------------------------------ standing

    def standing(self, ent: int, valid: Instant, tx: Instant) -> str:
        """Return the standing at (valid, tx) of an entity known at `tx`."""
        return self.face(ent, valid, tx)[0]

    def face(self, ent: int, valid: Instant, tx: Instant) -> tuple[str, int]:
        """Return the standing of an entity at (valid, tx), and the row that shows it there: the one that holds, else its last cover, or -1."""
        row = self.find(ent, valid, tx)
        if row >= 0:
            away = bool(self.is_event[ent]) and self.superseded(ent, valid, tx)
            return "superseded" if away else "stands", row
        cover = self.last_cover(ent, valid, tx)
        if ent in self.gone:
            return self.word(ent), cover
        if self.is_event[ent]:
            return "not_yet" if self.believed(ent, tx) else "retracted", cover
        return self._absence(ent, valid, tx, cover), cover

    def confirmations(self, ent: int, tx: Instant) -> list[int]:
        """Return the operations that confirmed an entity, as known at `tx`."""
        born = self.born[ent]  # ignore confirmations of an earlier thing of this id that was never stored
        ops = self.confirmed.get(self.names[ent], ())
        return [op for op in ops if born <= self.o_tx[op] and self.believed_op(op, tx)]

    def confirmed_last(self, ent: int, tx: Instant) -> int:
        """Return the last of `confirmations`, or -1."""
        born, ops = self.born[ent], self.confirmed.get(self.names[ent], ())
        return next((op for op in reversed(ops) if born <= self.o_tx[op] and self.believed_op(op, tx)), -1)

    def word(self, ent: int) -> str:
        """Return `evicted` or `erased` for a forgotten entity; empty for others."""
        op = self.gone.get(ent, -1)
        return "" if op < 0 else FORGOTTEN_BY[self.o_verb[op]]

    def tombstone(self, ent: int) -> dict[str, Any]:
        """Return the tombstone that replaces the body of a forgotten thing."""
        word = self.word(ent)
        return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}

    def last_seen(self, ent: int, tx: Instant = OPEN) -> Instant:
        """Return the latest instant at which an event happened, as known at `tx`."""
        first, again = self.first_reported(ent), self.seen_of.get(ent, [])
        known = bisect_right(again, tx, key=self.s_tx.__getitem__)
        if self.undone_by:
            rows = (row for row in again[:known] if self.believed_op(self.s_op[row], tx))
            return max(first, max(map(self.s_at.__getitem__, rows), default=first))
        return max(first, self.s_last[again[known - 1]]) if known else first

    def _absence(self, ent: int, valid: Instant, tx: Instant, cover: int) -> str:
        believed = self.believed(ent, tx)
        if believed and valid < self.r_from[believed[0]]:
            return "not_yet"
        last = -1 if believed else self.last_removal(ent, tx)
        if self.is_retraction(last, ent) or self.is_retraction(self._removal(ent, valid, tx, cover), ent):
            return "retracted"
        if self.superseded(ent, valid, tx):
            return "superseded"
        if believed:
            return "ended"
        later = (row for link in self.successors.get(ent, ()) for row in self.believed_link(link, tx))
        if any(valid < self.k_from[row] for row in later):
            return "superseded"  # a plan that was replaced before it started
        return "ended" if last >= 0 else "retracted"

    # ------------------------------------------------------------------ removals

    def is_retraction(self, op: int, ent: int) -> bool:
        """Return True if an operation states that what it removed never was so."""
        return op >= 0 and self.o_verb[op] in RETRACTING

    def _removal(self, ent: int, valid: Instant, tx: Instant, cover: int) -> int:
        r_from, r_to, r_tx = self.r_from, self.r_to, self.r_tx
        found = -1
        if self.undone_by:
            undos = (op for op in self.undone_by.get(self.born[ent], ()) if self.believed_op(op, tx))
            found = max(undos, default=-1)  # what an undone transaction introduced never was so, at any time
            for row in reversed(self.rows_of[ent]):
                if r_from[row] <= valid < r_to[row] and r_tx[row] <= tx and self._removes(row, ent, tx):
                    found = max(found, self.r_close[row])
                    break
        elif cover >= 0 and self._removes(cover, ent, tx):
            found = self.r_close[cover]
        for removed_at, start, stop, op in reversed(self.gaps.get(ent, ())):
            if op > found and removed_at <= tx and start <= valid < stop and self.believed_op(op, tx):
                return op
        return found

    def _removes(self, row: int, ent: int, tx: Instant) -> bool:
        """Return True if the closing of a row removed a part of its entity, as known at `tx`."""
        return self.r_end[row] <= tx and self._removed(self.r_close[row], ent, tx)

    def _removed(self, op: int, ent: int, tx: Instant) -> bool:
        """Return True if an operation that closed a row of an entity removed a part of it, as known at `tx`."""
        verb = self.o_verb[op]
        if self.o_tx[op] > tx or verb in DESCRIBING:
            return False
        if verb == UNDO and instant(self.o_subject[op]) != self.born[ent]:
            return False
        return not self.undone_by or self.believed_op(op, tx)

    def last_removal(self, ent: int, tx: Instant) -> int:
        """Return the last operation that removed a part of an entity, as known at `tx`; -1 if none did."""
        gaps = (op for at, _, _, op in self.gaps.get(ent, ()) if at <= tx and self.believed_op(op, tx))
        closing = {*map(self.r_close.__getitem__, self.rows_of[ent])} - {-1}
        closed = (op for op in sorted(closing, reverse=True) if self._removed(op, ent, tx))
        return max(max(gaps, default=-1), next(closed, -1))

    def removals(self, ent: int, tx: Instant) -> list[tuple[int, Period]]:
        """Return what was removed from an entity, as known at `tx`, as pairs of operation and period."""
        gaps = self.gaps.get(ent, ())
        found = [(op, (start, stop)) for at, start, stop, op in gaps if at <= tx and self.believed_op(op, tx)]
        listed = {gap[3] for gap in gaps}
        pieces: dict[tuple[int, int], list[Period]] = {}
        for row in self.rows_of[ent]:
            pieces.setdefault((self.r_op[row], self.r_ver[row]), []).append(
                (self.r_from[row], self.r_to[row])
            )
        for row in self.rows_of[ent]:
            op = self.r_close[row]
            if op not in listed and self._removes(row, ent, tx):
                kept = pieces.get((op, self.r_ver[row]), ())
                found += [(op, part) for part in without_all((self.r_from[row], self.r_to[row]), kept)]
        return found

    def superseded(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Return True if a supersession of the entity holds at (valid, tx)."""
        return any(self.find_link(link, valid, tx) >= 0 for link in self.successors.get(ent, ()))
