"""Every period of the store in memory: verbs decide on it, point reads use it.

A copy of the journal, never trusted over it. Its columns are in `columns.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any

from graphstore.core.index.columns import Mark, Taken
from graphstore.core.index.hulls import Blocks, Hull, Parts, Runs
from graphstore.core.index.latest_versions import LatestVersions, Said
from graphstore.core.index.replay import Followed
from graphstore.core.index.rollback import cut_back
from graphstore.core.journal.line import DESCRIBING, FORGETTING, RETRACTING, UNDO
from graphstore.values.fingerprints import CONFIRMATION
from graphstore.values.period import OPEN, Instant, Period, instant, without_all
from graphstore.values.vocabulary import OF_EVENTS, UPHOLDING

_FEW = 48
BESIDE = 100  # names on either side of one that is not known, among which may be what was meant


class Index(Followed):
    """The resident copy of the journal. Rows of the columns are addressed by number; -1 means none."""

    # ------------------------------------------------------------------ state

    def mark(self) -> Mark:
        """The committed lengths, without an open transaction."""
        while True:
            turn = self._turn
            found = self._committed or self._applying or self.lengths()
            if turn == self._turn:  # else another thread has begun to write, perhaps between two columns
                return found

    @property
    def pending(self) -> bool:
        """Whether an open transaction has changed something."""
        return self._committed is not None and self._committed != self.lengths()

    @property
    def open_since(self) -> Instant | None:
        """The tx of the open transaction, None before its first operation."""
        mark = self._committed
        return self.o_tx[mark.ops] if mark is not None and len(self.o_tx) > mark.ops else None

    @property
    def whole(self) -> Index:
        """Return what also reads outside of scopes: itself."""
        return self

    def begin(self) -> Mark:
        """Begin pending changes, until `keep` or `undo`."""
        self._committed = mark = self.lengths()
        self._turn += 1
        return mark

    def keep(self, tx: Instant) -> None:
        """Commit the pending changes."""
        self._committed = None
        self.seal(tx)

    def undo(self, mark: Mark, *, open_still: bool = False) -> None:
        """Cut everything back to `mark`. With `open_still` the transaction goes on from there."""
        with self._members.lock:
            self._members.cut(self, mark.entities, mark.links, mark.rows, mark.seen)
            cut_back(self, mark)
        if not open_still:
            self._committed = None

    @property
    def unfinished(self) -> bool:
        """Whether contents of forgotten things may still be in the journal."""
        return self.left is not None

    # ------------------------------------------------------------------ reading

    def find(self, ent: int, valid: Instant, tx: Instant) -> int:
        """The row of an entity that holds at (valid, tx), or -1."""
        if self.gone and ent in self.gone:
            return -1
        changed = self.changed
        if tx >= changed[ent]:
            rows, row = self.now_of[ent], -1
            if len(rows) == 1:
                row = rows[0]
            else:
                at = bisect_right(rows, valid, key=self.r_from.__getitem__)
                if at:
                    row = rows[at - 1]
            if tx >= changed[ent]:  # nor changed while it was looked at
                return row if row >= 0 and self.r_from[row] <= valid < self.r_to[row] else -1
        row = self.last_cover(ent, valid, tx)
        return row if row >= 0 and self.r_end[row] > tx else -1

    def last_cover(self, ent: int, valid: Instant, tx: Instant) -> int:
        """The row written last, not after `tx`, whose valid time holds `valid`; believed at `tx` or not. -1 when there is none.

        The last decision about an instant is in that row: a later one would have written a later row, or closed this one.
        """
        rows = self.rows_of[ent]
        row = self._last_over(ent, rows, valid, tx)
        if row < 0 or not self.undone_by or self.believed_op(self.r_op[row], tx):
            return row
        r_tx, r_from, r_to = self.r_tx, self.r_from, self.r_to  # it was undone: the last that was not
        there = (row for row in reversed(rows) if r_from[row] <= valid < r_to[row] and r_tx[row] <= tx)
        return next((row for row in there if self.believed_op(self.r_op[row], tx)), -1)

    def _last_over(self, ent: int, rows: list[int], valid: Instant, tx: Instant) -> int:
        """Of the rows of an entity the one written last, not after `tx`, whose valid time holds `valid`; undone or not. -1: none."""
        r_tx, r_from, r_to = self.r_tx, self.r_from, self.r_to
        if len(rows) <= _FEW:
            for row in reversed(rows):
                if r_from[row] <= valid < r_to[row] and r_tx[row] <= tx:
                    return row
            return -1
        blocks = self._blocks.get(ent)
        if blocks is None:
            blocks = self._blocks[ent] = Blocks()
        count = len(rows) if r_tx[rows[-1]] <= tx else bisect_right(rows, tx, key=r_tx.__getitem__)
        return blocks.last(rows, count, r_from, r_to, valid)

    def believed(self, ent: int, tx: Instant) -> list[int]:
        """The rows of an entity believed at `tx`, by valid_from."""
        if tx >= self.changed[ent]:
            rows = self.now_of[ent][:]
            if tx >= self.changed[ent]:
                return rows
        rows = self.rows_of[ent]
        count = bisect_right(rows, tx, key=self.r_tx.__getitem__)
        return sorted((r for r in rows[:count] if self.r_end[r] > tx), key=self.r_from.__getitem__)

    def start(self, ent: int, tx: Instant) -> Instant | None:
        """The first valid_from believed of an entity, None when nothing is believed."""
        if tx >= self.changed[ent]:
            first = self.now_of[ent][:1]
            if tx >= self.changed[ent]:  # nor changed while it was looked at
                return self.r_from[first[0]] if first else None
        rows = self.believed(ent, tx)
        return self.r_from[rows[0]] if rows else None

    def find_link(self, link: int, valid: Instant, tx: Instant) -> int:
        """The row of a link that holds at (valid, tx), or -1."""
        rows = self.rows_of_link[link]
        for row in rows if len(rows) == 1 else reversed(rows):
            if self.k_tx[row] <= tx < self.k_end[row] and self.k_from[row] <= valid < self.k_to[row]:
                return row
        return -1

    def perhaps(
        self,
        side: dict[int, list[int]],
        ent: int,
        valid: Instant,
        tx: Instant,
        kinds: Collection[str] | None = None,
    ) -> list[int]:
        """The links on one side of an entity that may hold at (valid, tx): all that do, in order, and few that ended long ago; of a long list those of
        the kinds alone."""
        links = side.get(ent, [])
        if len(links) <= _FEW:
            return links
        if kinds is None:
            return self._in_runs(ent, links, valid, tx)
        parts = [part for kind, part in list(self._parts(ent, links).items()) if kind in kinds]
        found = [part if len(part) <= _FEW else self._in_runs(ent, part, valid, tx) for part in parts]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    def of_kinds(self, side: dict[int, list[int]], ent: int, kinds: Collection[str]) -> list[int]:
        """The links on one side of an entity: all, or where they are many those of the kinds alone; in order."""
        links = side.get(ent, [])
        if len(links) <= _FEW:
            return links
        parts = [part for kind, part in list(self._parts(ent, links).items()) if kind in kinds]
        return sorted(link for part in parts for link in part) if len(parts) != 1 else parts[0]

    def grounds(self, ent: int) -> list[tuple[int, int, frozenset[str]]]:
        """The links by which an entity ever rested on something: what that is, and the falls of it that count."""
        out, into = self.out.get(ent, ()), self.into.get(ent, ())
        there = len(out), len(into), len(self.kinds)
        found = self._grounds.get(ent)
        if found is None or found[0] != there:
            found = self._grounds[ent] = there, list(self._find_grounds(ent))
        return found[1]

    def _find_grounds(self, ent: int) -> Iterator[tuple[int, int, frozenset[str]]]:
        falling, event = self.resting, self.is_event[ent]
        for link in self.of_kinds(self.out, ent, falling):
            kind = self.l_kind[link]
            if kind in falling and kind not in UPHOLDING and (not event or kind in OF_EVENTS):
                yield link, self.l_tgt[link], falling[kind]
        for link in self.of_kinds(self.into, ent, UPHOLDING) if not event else ():
            if self.l_kind[link] in UPHOLDING and not self.confirms(link):
                yield link, self.l_src[link], falling[self.l_kind[link]]

    def recorded_once(self, row: int) -> int | None:
        """The operation that recorded the link of a row, None where several did."""
        link = self.k_link[row]
        once = len(self.rows_of_link[link]) == 1 and not self.undone_by and link not in self.link_ghosts
        return self.c_op[self.k_claim[row]] if once else None

    def confirms(self, link: int) -> bool:
        """Whether a link comes from a confirmation: it is no foundation."""
        source = self.l_src[link]
        return bool(self.is_event[source]) and self.kind[source] == CONFIRMATION

    def saying(
        self, source: int, kind: str, target: int, near: Period | None = None, tx: Instant = OPEN
    ) -> list[int]:
        """Every link ever made that says `source kind target`, in order; `near`: of many only what may be believed at `tx` over a time that overlaps or
        touches that period."""
        out, into = self.out.get(source), self.into.get(target)
        if not out or not into:
            return []
        ent, links, far = (source, out, self.l_tgt) if len(out) <= len(into) else (target, into, self.l_src)
        other = target if links is out else source
        if len(links) <= _FEW:
            return [link for link in links if far[link] == other and self.l_kind[link] == kind]
        parts = _parts(self._by, ("ends", ent), links, lambda link: (self.l_kind[link], far[link]))
        found = parts.get((kind, other), [])
        if near is None or len(found) <= _FEW:
            return found[:]
        return self._in_runs(ent, found, near[0] - 1, tx, near[1])

    def keeping(self, ent: int) -> list[int]:
        """Return the supersessions of an entity that keep something of it to give back."""
        return [link for link in self.successors.get(ent, ()) if self.taken.get(link)]

    def fresh_version(self, ent: int) -> int:
        """Return the version of an entity that the open transaction has added last; -1: none."""
        versions = self.versions_of[ent]
        return versions[-1] if versions and versions[-1] >= self.mark().versions else -1

    def fresh_rows(self, ent: int) -> Iterator[int]:
        """Return the rows of an entity that the open transaction has added, the last one first."""
        first = self.mark().rows
        return takewhile(lambda row: row >= first, reversed(self.rows_of[ent]))

    def newest_version(self, ent: int) -> int:
        """Return the version with the highest number that an entity had before the open transaction; -1: none."""
        versions = self.versions_of[ent]
        stored = reversed(range(bisect_left(versions, self.mark().versions)))
        return next((versions[at] for at in stored if self.v_num[versions[at]]), -1)

    def said_over(self, ent: int, span: Period) -> Iterable[Said]:
        """Return what was said of an entity last over the parts of a period, in order. The first and the last piece may reach beyond it."""
        said = self.said(ent)
        if not said or said[-1][1] <= span[0]:
            return ()
        last = len(said) - 1  # which is mostly the one that is described anew
        if said[last][0] > span[0]:
            last = bisect_right(said, span[0], key=lambda one: one[1])
        return islice(said, last, None)

    def said_last(self, ent: int, mark: Mark) -> dict[int, list[Period]]:
        """The periods over which each version since `mark` was said last, without those of rows that an open transaction will keep."""
        fresh = [*self.fresh_rows(ent)][::-1]
        if not fresh or self._shows_all_said(ent, fresh):
            return {}
        kept: dict[int, list[int]] = {}
        for row in sorted(fresh, key=self.r_from.__getitem__):
            if self.r_close[row] < 0:
                kept.setdefault(self.r_ver[row], []).append(row)
        said = LatestVersions(reversible=False)  # nothing that was said before is over any of it
        ghosts = [(start, stop, ver) for _, start, stop, ver in self.ghosts.get(ent, ())]
        pieces = [(self.r_from[row], self.r_to[row], self.r_ver[row]) for row in fresh] + ghosts
        self._write_all(
            said, [(self.v_op[ver], start, stop, ver) for start, stop, ver in pieces if ver >= mark.versions]
        )
        found: dict[int, list[Period]] = {}
        begun, ended = min(map(self.r_from.__getitem__, fresh)), max(map(self.r_to.__getitem__, fresh))
        for start, stop, ver in said.between(begun, ended):
            holes = [
                (self.r_from[row], self.r_to[row]) for row in self.over(kept.get(ver, []), (start, stop))
            ]
            found.setdefault(ver, []).extend(without_all((start, stop), holes))
        return found

    def _shows_all_said(self, ent: int, rows: list[int]) -> bool:
        """Whether those of these rows that are believed are plainly all that they said last: each that is closed was replaced whole by the next one."""
        if ent in self.ghosts:
            return False
        begun, ended, opened, closed, told = self.r_from, self.r_to, self.r_op, self.r_close, self.v_op
        first, last, gone, before = 0, 0, False, -1
        for row in rows:
            start, stop, op = begun[row], ended[row], opened[row]
            if op < before or op != told[self.r_ver[row]] or (gone and (first < start or stop < last)):
                return False
            first, last, gone, before = start, stop, closed[row] >= 0, op
        return not gone

    def rows_of_version(self, ent: int, number: int) -> list[int]:
        """The rows of a version of an entity, in the order they were written."""
        rows = self.rows_of[ent]
        if len(rows) <= _FEW:
            return [row for row in rows if self.v_num[self.r_ver[row]] == number]
        return _parts(self._by, ("number", ent), rows, lambda row: self.v_num[self.r_ver[row]]).get(
            number, []
        )

    def _in_runs(
        self, ent: int, links: list[int], valid: Instant, tx: Instant, upto: Instant | None = None
    ) -> list[int]:
        return self._runs_of(ent, links).perhaps(valid, tx, upto)

    def _runs_of(self, ent: int, links: list[int]) -> Runs:
        there = self._runs.setdefault(ent, [])
        runs = next((each for each in there if each.links is links), None)
        if runs is None:
            runs = Runs(links, self._hull)
            there.append(runs)
        return runs

    def _parts(self, ent: int, links: list[int]) -> dict[str, list[int]]:
        """The links of a long list by their kinds."""
        return _parts(self._by, ("kind", ent), links, self.l_kind.__getitem__)

    def link_since(self, row: int) -> Instant:
        """When a row of a link was recorded; one that an undo opened again, when it was recorded first."""
        if self.o_verb[self.k_op[row]] != UNDO:
            return self.k_tx[row]
        here = (self.k_claim[row], self.k_from[row], self.k_to[row])
        rows = self.rows_of_link[self.k_link[row]]
        alike = (one for one in rows if (self.k_claim[one], self.k_from[one], self.k_to[one]) == here)
        return self.k_tx[next(alike)]

    def _hull(self, link: int) -> Hull:
        rows = self.rows_of_link[link]
        return Hull(
            min((self.k_from[row] for row in rows), default=OPEN),
            max((self.k_to[row] for row in rows), default=-OPEN),
            min((self.k_tx[row] for row in rows), default=OPEN),
            max((self.k_end[row] for row in rows), default=-OPEN),
        )

    def believed_link(self, link: int, tx: Instant) -> list[int]:
        """The rows of a link believed at `tx`, by valid_from."""
        rows = [r for r in self.rows_of_link[link] if self.k_tx[r] <= tx < self.k_end[r]]
        return sorted(rows, key=self.k_from.__getitem__) if len(rows) > 1 else rows

    def known_by(self, tx: Instant) -> int:
        """Return the number above those of the entities that are known at an instant."""
        return bisect_right(self.born, tx)

    def ops_at(self, tx: Instant) -> range:
        """Return the operations of a transaction."""
        return range(bisect_left(self.o_tx, tx), bisect_right(self.o_tx, tx))

    def ops_beside(self, tx: Instant) -> list[int]:
        """Return the last committed operation before an instant, and the first one from then on, where there are such."""
        at = bisect_left(self.o_tx, tx)
        return [op for op in (at - 1, at) if 0 <= op < self.mark().ops]

    def instants_between(self, first: Instant, stop: Instant) -> list[Instant]:
        """Return the instants of the transactions in [first, stop), in order."""
        ops = range(bisect_left(self.o_tx, first), bisect_left(self.o_tx, stop))
        return list(dict.fromkeys(map(self.o_tx.__getitem__, ops)))

    def rows_at(self, tx: Instant) -> range:
        """Return the rows of things that a transaction opened."""
        return range(bisect_left(self.r_tx, tx), bisect_right(self.r_tx, tx))

    def link_rows_at(self, tx: Instant) -> range:
        """Return the rows of links that a transaction opened."""
        return range(bisect_left(self.k_tx, tx), bisect_right(self.k_tx, tx))

    def link_rows_after(self, tx: Instant) -> list[range]:
        """Return the rows of links that were opened after an instant."""
        return [range(bisect_right(self.k_tx, tx), len(self.k_tx))]

    def closed_at(self, tx: Instant) -> tuple[list[int], list[int]]:
        """Return the rows of things, and of links, that a transaction closed, in order."""
        found = []
        for closings, ends in ((self.closings, self.r_end), (self.link_closings, self.k_end)):
            at = ends.__getitem__
            first, stop = bisect_left(closings, tx, key=at), bisect_right(closings, tx, key=at)
            found.append(list(closings[first:stop]))
        return found[0], found[1]

    def taken_at(self, tx: Instant, new: Iterable[int]) -> dict[int, tuple[list[Taken], list[Taken]]]:
        """Return what each supersession that a transaction touched had taken before and after it; `new`: the links that it made."""
        found: dict[int, list[Taken]] = {}
        later: dict[int, list[Taken]] = {}
        for at, link, before in self.retaken[bisect_left(self.retaken, tx, key=itemgetter(0)) :]:
            if at == tx:
                found[link] = before
            else:
                later.setdefault(link, before)
        for link in new:
            if link in self.taken:
                found.setdefault(link, [])
        return {link: (before, later.get(link, self.taken[link])) for link, before in found.items()}

    def settings_at(self, tx: Instant) -> dict[str, tuple[Any, Any]]:
        """Return the settings that a transaction changed, by name: what each was before, and what it left."""
        at = bisect_left(self.noted, tx, key=itemgetter(0))
        if at == len(self.noted) or self.noted[at][0] != tx:
            return {}
        first, stop = self.noted[at - 1][3] if at else 0, self.noted[at][3]
        found: dict[str, tuple[Any, Any]] = {}
        for setting in self.settings[first:stop]:
            for name, value in setting.items():
                before = bisect_left(self.set_at[name], first) - 1
                found[name] = (self.settings[self.set_at[name][before]][name] if before >= 0 else None, value)
        return found

    def first_reported(self, ent: int) -> Instant:
        """The instant of an event that was recorded first. All others are in its occurrences."""
        for row in self.rows_of[ent]:
            if (
                self.r_tx[row] < self.r_end[row]
            ):  # skip a row opened and closed in one transaction, which an open one may have
                return self.r_from[row]
        return self.born[ent]

    def last_written(self, ent: int, tx: Instant) -> int:
        """The row of an entity written last by `tx` and not taken back; one that was, if there is no other; -1 for none."""
        rows = [row for row in self.rows_of[ent] if self.r_tx[row] <= tx]
        kept = (row for row in reversed(rows) if not self.undone_by or self.believed_op(self.r_op[row], tx))
        return next(kept, rows[-1] if rows else -1)

    def standing(self, ent: int, valid: Instant, tx: Instant) -> str:
        """How an entity known at `tx` stands at (valid, tx)."""
        return self.face(ent, valid, tx)[0]

    def face(self, ent: int, valid: Instant, tx: Instant) -> tuple[str, int]:
        """How an entity known at `tx` stands at (valid, tx), and the row that shows it there: the one that holds, else its last cover, or -1."""
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

    def changed_last(self, ent: int) -> Instant:
        """When how an entity stands, at whatever valid time, changed last, but for what was undone."""
        since = max(self.changed[ent], self.forgotten_at(ent))
        for side in (self.gaps, self.turns):
            if ent in side:
                since = max(since, max((gap[0] for gap in side[ent]), default=0))
        if ent in self.successors:
            since = max(since, max(map(self.link_changed_last, self.successors[ent]), default=0))
        return since

    def link_changed_last(self, link: int) -> Instant:
        """When the rows of a link changed last."""
        rows = self.rows_of_link[link]
        if len(rows) == 1:
            end = self.k_end[rows[0]]
            return end if end < OPEN else self.k_tx[rows[0]]
        ends = (self.k_end[row] for row in rows)
        return max((*(self.k_tx[row] for row in rows), *(end for end in ends if end < OPEN)), default=0)

    def undone_last(self) -> Instant:
        """When anything was undone last."""
        return max((self.o_tx[ops[-1]] for ops in self.undone_by.values()), default=0)

    def forgotten_at(self, ent: int) -> Instant:
        """When an entity was forgotten last."""
        op = self.gone.get(ent, -1)
        return self.o_tx[op] if op >= 0 else 0

    def stood(self, ent: int, valid: Instant, tx: Instant) -> str:
        """How an entity stood at (valid, tx) before it was forgotten."""
        cover = self.last_cover(ent, valid, tx)
        if cover >= 0 and self.r_end[cover] > tx:
            away = bool(self.is_event[ent]) and self.superseded(ent, valid, tx)
            return "superseded" if away else "stands"
        if self.is_event[ent]:
            return "not_yet" if self.believed(ent, tx) else "retracted"
        return self._absence(ent, valid, tx, cover)

    def confirmations(self, ent: int, tx: Instant) -> list[int]:
        """The operations that confirmed an entity, as known at `tx`."""
        born = self.born[ent]  # an earlier thing with its name that was never stored does not count
        ops = self.confirmed.get(self.names[ent], ())
        return [op for op in ops if born <= self.o_tx[op] and self.believed_op(op, tx)]

    def confirmed_last(self, ent: int, tx: Instant) -> int:
        """The last of `confirmations`, -1: none."""
        born, ops = self.born[ent], self.confirmed.get(self.names[ent], ())
        return next((op for op in reversed(ops) if born <= self.o_tx[op] and self.believed_op(op, tx)), -1)

    def word(self, ent: int) -> str:
        """`evicted` or `erased` for what was forgotten, else empty."""
        op = self.gone.get(ent, -1)
        return "" if op < 0 else FORGETTING[self.o_verb[op]]

    def tombstone(self, ent: int) -> dict[str, Any]:
        """The tombstone of a forgotten thing, in place of its body."""
        word = self.word(ent)
        return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}

    def last_seen(self, ent: int, tx: Instant = OPEN) -> Instant:
        """When an event happened last, as far as was known at `tx`."""
        first, again = self.first_reported(ent), self.seen_of.get(ent, [])
        known = bisect_right(again, tx, key=self.s_tx.__getitem__)
        if self.undone_by:
            rows = (row for row in again[:known] if self.believed_op(self.s_op[row], tx))
            return max(first, max(map(self.s_at.__getitem__, rows), default=first))
        return max(first, self.s_last[again[known - 1]]) if known else first

    def setting_at(self, name: str, tx: Instant) -> Any:
        """Return the setting of a name as it was at `tx`, None when it was not set by then."""
        places, at = self.set_at.get(name, ()), bisect_right(self.noted, tx, key=lambda noted: noted[0])
        known = len(self.settings) if at == len(self.noted) else self.noted[at - 1][3] if at else 0
        last = bisect_left(places, known)
        return self.settings[places[last - 1]][name] if last else None

    def setting(self, name: str) -> Any:
        """The setting of a name, None when it was never set."""
        places = self.set_at.get(name)
        return self.settings[places[-1]][name] if places else None

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
        begun = [
            self.k_from[row] for link in self.successors.get(ent, ()) for row in self.believed_link(link, tx)
        ]
        if begun:
            return "not_yet" if valid < min(begun) else "ended"
        return "ended" if last >= 0 else "retracted"

    # ------------------------------------------------------------------ what was taken away

    def removed_by(self, ent: int, valid: Instant, tx: Instant) -> int:
        """The operation by which an entity lost `valid`, as known at `tx`: the last of all if that retracted what was left, else the one that
        removed that instant last. -1: none did.
        """
        if not self.believed(ent, tx):
            last = self.last_removal(ent, tx)
            if self.is_retraction(last, ent):
                return last
        return self.removal_at(ent, valid, tx)

    def replaces(self, ent: int, other: int, tx: Instant) -> bool:
        """Whether a thing supersedes or corrects another, over whatever time: then that other cannot fall under it."""
        if other not in self.successors and other not in self.corrected:
            return False
        return any(
            self.l_src[link] == ent and self.believed_link(link, tx)
            for side in (self.successors, self.corrected)
            for link in side.get(other, ())
        )

    def is_retraction(self, op: int, ent: int) -> bool:
        """Whether an operation said that what it removed of an entity never was so."""
        return op >= 0 and self.o_verb[op] in RETRACTING

    def removal_at(self, ent: int, valid: Instant, tx: Instant) -> int:
        """The operation that removed `valid` of an entity last, as known at `tx`; -1: none did."""
        return self._removal(ent, valid, tx, self.last_cover(ent, valid, tx))

    def _removal(self, ent: int, valid: Instant, tx: Instant, cover: int) -> int:
        r_from, r_to, r_tx = self.r_from, self.r_to, self.r_tx
        found = -1
        if self.undone_by:
            undos = (op for op in self.undone_by.get(self.born[ent], ()) if self.believed_op(op, tx))
            found = max(undos, default=-1)  # what an undone transaction introduced never was, at any time
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
        """Whether the closing of a row took something of its entity away, as known at `tx`."""
        return self.r_end[row] <= tx and self._removed(self.r_close[row], ent, tx)

    def _removed(self, op: int, ent: int, tx: Instant) -> bool:
        """Whether an operation that closed a row of an entity took something of it away, as known at `tx`."""
        verb = self.o_verb[op]
        if self.o_tx[op] > tx or verb in DESCRIBING:
            return False
        if verb == UNDO and instant(self.o_subject[op]) != self.born[ent]:
            return False
        return not self.undone_by or self.believed_op(op, tx)

    def last_removal(self, ent: int, tx: Instant) -> int:
        """The last operation that took something of an entity away, as known at `tx`; -1: none did."""
        gaps = (op for at, _, _, op in self.gaps.get(ent, ()) if at <= tx and self.believed_op(op, tx))
        closing = {*map(self.r_close.__getitem__, self.rows_of[ent])} - {-1}
        closed = (op for op in sorted(closing, reverse=True) if self._removed(op, ent, tx))
        return max(max(gaps, default=-1), next(closed, -1))

    def removals(self, ent: int, tx: Instant) -> list[tuple[int, Period]]:
        """What was taken of an entity, as known at `tx`: each operation with a period it removed."""
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
        """Whether a supersession of the entity holds at (valid, tx)."""
        links = self.successors.get(ent, [])
        few = len(links) <= _FEW
        for link in links if few else chain.from_iterable(self._runs_of(ent, links).one_by_one(valid, tx)):
            if self.find_link(link, valid, tx) >= 0:
                return True
        return False

    def starting_with(self, prefix: str) -> Iterator[int]:
        """The entities whose id begins with `prefix`, in order of id."""
        for name in self._beginning(self._sorted, self.names, prefix):
            ent = self.ids.get(name)
            if ent is not None:
                yield ent

    def links_starting_with(self, prefix: str) -> Iterator[int]:
        """The links whose id begins with `prefix`, in order of id."""
        for name in self._beginning(self._sorted_links, self.l_name, prefix):
            link = self.link_ids.get(name)
            if link is not None:
                yield link

    def _beginning(self, kept: list[list[str]], names: Sequence[str], prefix: str) -> Iterator[str]:
        """The names that begin so, in order. `kept`: as `_in_order` keeps them."""
        ordered = _in_order(kept, names)
        at = bisect_left(ordered, prefix)
        while at < len(ordered) and ordered[at].startswith(prefix):
            yield ordered[at]
            at += 1

    def ids_beside(self, id: str) -> list[str]:
        """The ids that a misspelt one may mean: of many those beside it in order, so that saying what is not known costs the same in any store."""
        return _beside(self._sorted, self.names, id)

    def link_ids_beside(self, id: str) -> list[str]:
        """As `ids_beside`, of links."""
        return _beside(self._sorted_links, self.l_name, id)

    def naming(self, name: str, tx: Instant) -> list[int]:
        """The operations recorded by `tx` that name a thing or a link, in no order."""
        count, subjects = self.mark().ops, self.o_subject
        ops = self._mentions.naming(name, subjects, count, (self.ids, self.link_ids))
        ops += [op for op in range(count, len(subjects)) if subjects[op] == name]
        return [op for op in ops if self.o_tx[op] <= tx]


def _in_order(kept: list[list[str]], names: Sequence[str]) -> list[str]:
    """All names in order. `kept`: the last time it was asked; cleared by an undo, shorter after an add."""
    ordered = kept[0] if kept else []
    if len(ordered) != len(names):
        known = len(ordered) if len(ordered) < len(names) else 0
        added = [names[at] for at in range(known, len(names))] if known else list(names)
        ordered = ordered[:known]  # others look at what was there
        if len(added) <= _FEW:
            for name in added:
                insort(ordered, name)
        else:
            ordered += added
            ordered.sort()
        kept[:] = [ordered]
    return ordered


def _beside(kept: list[list[str]], names: Sequence[str], name: str) -> list[str]:
    if len(names) <= 2 * BESIDE:
        return list(names)
    ordered = _in_order(kept, names)
    at = bisect_left(ordered, name)
    return ordered[max(0, at - BESIDE) : at + BESIDE]


def _parts(
    kept: dict[tuple[str, int], list[Parts]],
    by: tuple[str, int],
    whole: list[int],
    part_of: Callable[[int], Any],
) -> dict[Any, list[int]]:
    """A long list in parts, which are kept; `by`: what they share, and whose list it is."""
    there = kept.setdefault(by, [])
    found = next((each for each in there if each.whole is whole), None)
    if found is None:
        found = Parts(whole)
        there.append(found)
    return found.follow(part_of).parts
