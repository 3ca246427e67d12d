"""Compute borrowed bounds: a statement holds except where a successor, a correction or another value of its slot takes its place.

A bound keeps what it takes (`Transaction.keep`). When the bound is withdrawn, the remaining statements determine what holds, in whatever order they were recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from graphstore.errors import ConflictError
from graphstore.ledger.chain import RETRACTING
from graphstore.read.columns import ENDED, Taken
from graphstore.values.period import ALWAYS, OPEN, Instant, Period, coalesce, overlap, without_all
from graphstore.write.linking import LinkClaim, LinkEnds, Linking

MINTED = ("supersedes", "transition", "contradicts")
"""The kinds of link that the store itself makes from a value of a slot to the value before it."""


class StatedValue(NamedTuple):
    """Holds one statement of a value of a slot over a part of its period.

    Args:
        row: the row by which the value holds there; -1 if it does not hold there.
        start: the first instant at which the value is stated.
    """

    ent: int
    ver: int
    part: Period
    row: int
    start: Instant


class Bounds(Linking):
    """Sets and withdraws the bounds of one operation."""

    # ------------------------------------------------------------------ withdrawing

    def let_go(self, new: int, span: Period, stated: list[Period], gone: Iterable[Period]) -> None:
        """Withdraw the supersessions and corrections by thing `new` over a period. Give back what they and its place in a slot took.

        Args:
            stated: the periods over which the thing was stated before.
            gone: the periods over which the thing held.

        Raises ConflictError if a more trusted author recorded one of the links.
        """
        index = self.index
        slot, regions = index.slot_of(new), [*gone]
        withdrawn: list[tuple[int, Period]] = []
        if index.has_given_end(new):
            regions += stated
        begins = index.stated_start(new)
        if begins is not None and stated and stated[0][0] < begins:
            regions += index.stated_over(new, ALWAYS)  # with a later start now, it may win over others
        for link in index.of_kinds(index.out, new, ("supersedes", "corrects")):
            rows = self._over(link, span)
            self.trust.guard_links(rows)
            old = index.l_tgt[link]
            for part in self._withdraw(link, span) if rows else ():
                withdrawn += [(old, part)] if index.l_kind[link] == "corrects" else []
                first = index.stated_start(old)
                follows = new > old and bool(stated) and (first is None or stated[0][0] >= first)
                if slot is not None and index.slot_of(old) == slot and follows:
                    # where another value won over the new one, the old one does not win either
                    regions += [
                        *without_all(part, stated),
                        *self.limits(new, part),
                        *self.in_the_way(old, part),
                    ]
                else:
                    self.give_back(old, part)
        if slot is not None:
            self.settle(slot, regions)
        for old, part in withdrawn:
            self._uncorrect(old, part)

    def unlink(self, link: int, span: Period) -> None:
        """Unlink a supersession or a correction over a period, with the links minted with it, and give back what it took.

        Raises ConflictError if another value of the slot holds where a value would come back.
        """
        old = self.index.l_tgt[link]
        for part in self._withdraw(link, span):
            self.give_back(old, part)
            self._refuse_held(old, part)
            if self.index.l_kind[link] == "corrects":
                self._uncorrect(old, part)

    def _uncorrect(self, old: int, freed: Period) -> None:
        """Let other bounds take what a withdrawn correction took of a thing over a period, so that it is not retracted there any more."""
        index, work = self.index, self.work
        if index.is_event[old]:
            return
        edges = {at for _, period in index.removals(old, work.tx) for at in period}
        for ver, start, stop in index.taken.get(old, ()):
            part = overlap((start, stop), freed) if ver != ENDED else None
            for left in without_all(part, self.limits(old, part, ("corrects",))) if part else ():
                for cell in pairwise(sorted({*left, *(at for at in edges if left[0] < at < left[1])})):
                    if index.standing(old, cell[0], work.tx) == "retracted":
                        op = self._operation
                        if index.o_verb[op] in RETRACTING:
                            op = work.op("supersede", index.names[old])
                        index.open_row(ver, cell, work.tx, op)
                        work.stop_believing(old, cell, op)

    def _refuse_held(self, old: int, freed: Period) -> None:
        index, slot = self.index, self.index.slot_of(old)
        for ver, start, stop in index.taken.get(old, ()) if slot is not None else ():
            part = overlap((start, stop), freed) if ver != ENDED else None
            for free in without_all(part, self.limits(old, part)) if part else ():
                for row in index.over(index.held(slot), free) if slot is not None else ():
                    raise ConflictError(
                        f"the slot {index.key[old]!r} is held by {index.names[index.r_ent[row]]!r} over part of that time, so {index.names[old]!r} "
                        "cannot come back. Retract that value, or supersede it."
                    )

    def _withdraw(self, link: int, span: Period) -> list[Period]:
        index, work, op = self.index, self.work, self._operation
        gone = work.take_link(link, span, op)
        if index.l_kind[link] == "supersedes":
            for kind in MINTED[1:]:
                for other in index.saying(index.l_src[link], kind, index.l_tgt[link]):
                    self._unmint(other, span)
        return gone

    def _unmint(self, link: int, span: Period) -> None:
        """Unlink a link over a period where the store minted it."""
        index = self.index
        for row in self._over(link, span):
            part = overlap(self._held(row), span)
            if part and (index.l_kind[link] == "transition" or self._is_minted(row)):
                self.work.take_link(link, part, self._operation)

    def _over(self, link: int, span: Period) -> list[int]:
        rows = self.index.believed_link(link, self.work.tx)
        return [row for row in rows if overlap(self._held(row), span)]

    def _is_minted(self, row: int) -> bool:
        return bool(self.index.c_by[self.index.k_claim[row]] == "store")

    def give_back(self, old: int, freed: Period) -> None:
        """Restore what is kept of a thing over a period, except where another bound still applies."""
        index = self.index
        if index.is_event[old]:  # an event comes back whole
            for ver, start, stop in [] if self.limits(old, ALWAYS) else [*index.taken.get(old, ())]:
                self._restore(old, ver, (start, stop))
            return
        pieces = [
            (ver, *part)
            for ver, start, stop in index.taken.get(old, ())
            if (part := overlap((start, stop), freed))
        ]
        slot = index.slot_of(old)
        if slot is not None:
            self.settle(slot, [(start, stop) for _, start, stop in pieces])
            return
        for ver, start, stop in pieces:
            for part in without_all((start, stop), self.limits(old, (start, stop))) if ver != ENDED else ():
                self._restore(old, ver, part)
        self.enforce(old)

    def limits(
        self, ent: int, period: Period, kinds: tuple[str, ...] = ("supersedes", "corrects")
    ) -> list[Period]:
        """Return the parts of a period over which a supersession or a correction, or a link of the given kinds, prevents a thing from holding."""
        index, found = self.index, list[Period]()
        slot = index.slot_of(ent)
        kinds = ("corrects",) if index.is_event[ent] else kinds
        for link in index.of_kinds(index.into, ent, kinds):
            new = index.l_src[link]
            for row in self._over(link, period):
                part = overlap(self._held(row), period)
                if part is None:
                    continue
                if index.l_kind[link] == "corrects":
                    found += [*index.stated_over(new, part), *index.ended_over(new, part)]
                elif slot is None or not self._is_minted(row) or index.slot_of(new) != slot:
                    found.append(part)  # else the slot decides
        return found

    # ------------------------------------------------------------------ corrections

    def enforce(self, ent: int) -> None:
        """Apply the corrections that start or end at a thing, so that no two things hold together that correct each other."""
        index = self.index
        for side in (index.out, index.into):
            for link in index.of_kinds(side, ent, ("corrects",)):
                for row in index.believed_link(link, self.work.tx):
                    self.correct(index.l_src[link], index.l_tgt[link], self._held(row), None)

    # ------------------------------------------------------------------ slots

    def keep(self, old: int, gone: list[Taken], op: int, by: int, spans: list[Period]) -> None:
        """Keep what thing `by` takes of thing `old` over some periods. The other values of its slot compete for that time."""
        super().keep(old, gone, op, by, spans)
        index, slot = self.index, self.index.slot_of(old)
        if slot is None:
            return
        regions = [(start, stop) for _, start, stop in gone]
        regions += [part for span in spans for part in self.in_the_way(old, span)]
        self.settle(slot, regions, op, by if index.slot_of(by) == slot else -1)

    def in_the_way(self, ent: int, period: Period) -> list[Period]:
        """Return the parts of a period over which a value may block others of its slot although it does not hold there."""
        index = self.index
        return index.ended_over(ent, period) + (
            index.stated_over(ent, period) if index.has_given_end(ent) else []
        )

    def settle(self, slot: tuple[str, str], regions: Iterable[Period], op: int = -1, new: int = -1) -> None:
        """Make the value hold in a slot, over some periods, that the statements about the slot determine.

        `new`: a value whose rows overlap rows whose time it takes; -1 for none.
        """
        index, op = self.index, self._operation if op < 0 else op
        won: list[StatedValue] = []
        for region in coalesce(regions):
            won += self._winners(self._statements(slot, region, new), region)
        fresh = [one for one in won if one.row < 0]
        if fresh and op < 0:
            op = self.work.op("supersede", index.names[fresh[0].ent])
        for one in fresh:
            for row in self._rows_in(slot, one.part, new):
                old = index.r_ent[row]
                by = self.work.op("supersede", index.names[old]) if index.o_verb[op] in RETRACTING else op
                self.work.keep(old, self.work.stop_believing(old, one.part, by))
        fresh = [one for one in fresh if one.ver != ENDED]
        for one in fresh:
            self._restore(one.ent, one.ver, one.part, op)
        for one in fresh:
            self._link_neighbours(slot, one, op)
        for ent in {one.ent for one in fresh}:
            self.enforce(ent)

    def _rows_in(self, slot: tuple[str, str], period: Period, new: int) -> list[int]:
        """Return the rows that hold in a slot over any part of a period. `new`: see `settle`."""
        index = self.index
        mine = index.over(index.now_of[new], period) if new >= 0 else []
        return list(dict.fromkeys([*index.over(index.held(slot), period), *mine]))

    def _statements(self, slot: tuple[str, str], region: Period, new: int) -> list[StatedValue]:
        """Return the statements about the values of a slot over a period."""
        index, found = self.index, list[StatedValue]()
        for row in self._rows_in(slot, region, new):
            part, ent = overlap((index.r_from[row], index.r_to[row]), region), index.r_ent[row]
            if part is not None:
                found.append(StatedValue(ent, index.r_ver[row], part, row, index.stated_start(ent) or 0))
        for ent, (ver, *piece), start in index.kept_in(slot, region):
            part = overlap((piece[0], piece[1]), region)
            if part is not None and ent not in index.gone:
                found.append(StatedValue(ent, ver, part, -1, start))
        return found

    def _winners(self, stated: list[StatedValue], region: Period) -> list[StatedValue]:
        """Return which statement holds over each part of a period in a slot. Supersessions and corrections bound them.

        A value with a given end wins over all values recorded before it. Of the others the latest start wins, then the latest recorded.
        """
        index = self.index
        if all(one.row >= 0 for one in stated):
            return []
        given = [
            (one.ent, part)
            for one in stated
            if index.has_given_end(one.ent)
            for part in without_all(one.part, self._limits_of(one))
        ]
        ranked = sorted(stated, key=lambda one: (one.start, one.ent), reverse=True)
        edges = sorted({at for _, part in given for at in part} | {*region})
        won: list[StatedValue] = []
        for cell in pairwise(edges):
            first = max((ent for ent, part in given if overlap(part, cell)), default=-1)
            left = [cell]
            for one in ranked:
                shared = [part for each in left if one.ent >= first and (part := overlap(one.part, each))]
                if not shared:
                    continue
                limits = self._limits_of(one)
                mine = [part for each in shared for part in without_all(each, limits)]
                won += [one._replace(part=part) for part in mine]
                left = [part for each in left for part in without_all(each, mine)]
                if not left:
                    break
        found: list[StatedValue] = []
        for one in sorted(won, key=lambda one: one.part):
            last = found[-1] if found else None
            if (
                last is not None
                and last.part[1] == one.part[0]
                and (last.ent, last.ver, last.row) == (one.ent, one.ver, one.row)
            ):
                found[-1] = last._replace(part=(last.part[0], one.part[1]))
            else:
                found.append(one)
        return found

    def _limits_of(self, one: StatedValue) -> list[Period]:
        return [] if one.row >= 0 else self.limits(one.ent, one.part)

    def _restore(self, ent: int, ver: int, part: Period, op: int = -1) -> None:
        """Make a kept statement hold again over a period, and remove that period from what is kept."""
        index, work = self.index, self.work
        op = self._operation if op < 0 else op
        pieces = index.taken.get(ent, ())
        left = [
            (kept, *piece)
            for kept, start, stop in pieces
            for piece in without_all((start, stop), [part] if kept == ver else [])
        ]
        if left != list(pieces):
            work.set_taken(ent, left)
        work.restore(ent, ver, part, op)

    def _link_neighbours(self, slot: tuple[str, str], won: StatedValue, op: int) -> None:
        """Link a value that holds again with its neighbours in time: the newer one supersedes the older one."""
        index = self.index
        held = index.held(slot)
        for link in index.of_kinds(index.into, won.ent, MINTED):
            if index.slot_of(index.l_src[link]) == slot:
                for row in self._over(link, won.part):
                    shared = overlap(self._held(row), won.part)
                    if shared and self._is_minted(row):
                        self.work.take_link(link, shared, op)
        start, stop = won.part
        after, before = held.first_since(stop), held.last_before(start)
        if after >= 0 and index.r_from[after] == stop:
            self.mint(index.r_ent[after], won.ent, stop, LinkClaim(), op)
        if before >= 0 and index.r_to[before] == start:
            self.mint(won.ent, index.r_ent[before], start, LinkClaim(), op)

    def mint(self, new: int, old: int, since: Instant, claim: LinkClaim, op: int) -> None:
        """Link a slot's value to the value whose time it takes from `since` on. Does nothing if `old` began later or such a link exists."""
        index = self.index
        kept = [(start, stop) for ver, start, stop in index.taken.get(old, ()) if ver != ENDED]
        if new == old or not any(start <= since < stop for start, stop in kept):
            return
        if ((index.stated_start(new) or 0), new) < ((index.stated_start(old) or 0), old):
            return
        following = index.now_of[old].first_since(since)
        during = (since, OPEN if following < 0 else index.r_from[following])
        linking = Linking(self.core, self.work, op=op)
        ends = LinkEnds(new, self.kind("supersedes"), old)
        if linking.overlapping(ends, during, self.work.tx) or linking.closes_cycle(ends, self.work.tx):
            return
        claim = LinkClaim(claim.reason, created_by="store")
        for name in MINTED:
            ends = LinkEnds(new, self.kind(name), old)
            if not linking.overlapping(ends, during, self.work.tx):
                linking.join(ends, during, claim)
