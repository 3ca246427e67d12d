"""Giving back: when a supersession is unlinked, or its successor retracted, what it took is believed again."""

from __future__ import annotations

from graphstore.read.columns import Taken
from graphstore.values.period import OPEN, Period, overlap, without_all
from graphstore.write.linking import Claim, Ends, Linking

_MINTED = ("transition", "contradicts")


class GivingBack(Linking):
    """The supersessions that one operation takes back."""

    def let_go(self, new: int, span: Period) -> None:
        """Take back, over a period, the supersessions that a thing made by being said, and what was minted with them; what they took comes back.

        Raises ConflictError when one of them was recorded by a more trusted author.
        """
        index = self.index
        for link in index.of_kinds(index.out, new, ("supersedes",)):
            if index.l_kind[link] == "supersedes":
                rows = self._over(link, span)
                self.trust.guard_links(rows)
                if rows:
                    self.unlink(link, span, pass_on=True)

    def unlink(self, link: int, span: Period, *, pass_on: bool) -> None:
        """Unlink a supersession and what was minted beside it over a period, and give back what it took.

        `pass_on`: where another value of the slot holds what would come back, that value supersedes it from there on.
        """
        index, work, op = self.index, self.work, self._operation
        gone = work.take_link(link, span, op)
        for kind in _MINTED:
            for other in index.saying(index.l_src[link], kind, index.l_tgt[link]):
                for row in self._over(other, span):
                    part = overlap(self._held(row), span)
                    if part and (kind == "transition" or index.c_by[index.k_claim[row]] == "store"):
                        work.take_link(other, part, op)
        for part in gone:
            self._give_back(link, part, pass_on=pass_on)

    def _over(self, link: int, span: Period) -> list[int]:
        rows = self.index.believed_link(link, self.work.tx)
        return [row for row in rows if overlap(self._held(row), span)]

    def _give_back(self, link: int, freed: Period, *, pass_on: bool) -> None:
        index = self.index
        old = index.l_tgt[link]
        passed: list[tuple[int, Taken]] = []
        for ver, start, stop in self.work.free(link, freed):
            over = index.over(index.now_of[old], (start, stop))
            believed = [(index.r_from[row], index.r_to[row]) for row in over]
            for part in without_all((start, stop), believed):
                holders = self._holders(old, part) if pass_on else []
                for hole in without_all(part, [(index.r_from[row], index.r_to[row]) for row in holders]):
                    self.work.restore(old, ver, hole, self._operation)
                for row in holders:
                    shared = overlap((index.r_from[row], index.r_to[row]), part)
                    if shared is not None:
                        passed.append((index.r_ent[row], (ver, *shared)))
        for holder, piece in passed:
            self._pass_on(holder, old, piece)

    def _holders(self, old: int, part: Period) -> list[int]:
        """Return the rows of the other values of a thing's slot that hold over a period now."""
        index = self.index
        key = index.key[old]
        if key is None:
            return []
        over = index.over(index.held((key, index.scope[old])), part)
        return [row for row in over if index.r_ent[row] != old]

    def _pass_on(self, holder: int, old: int, piece: Taken) -> None:
        """Let the value that holds where another would come back supersede it from there on."""
        index, tx = self.index, self.work.tx
        ends = Ends(holder, self.kind("supersedes"), old)
        if self.closes_cycle(ends, tx):
            return
        later = index.now_of[old].first_since(piece[2]) >= 0
        during = (piece[1], piece[2] if later else OPEN)
        there = self.overlapping(ends, during, tx)
        if there:
            link = index.k_link[there[0]]
        else:
            minted = Claim(created_by="store")
            link = index.k_link[self.join(ends, during, minted)]
            for name in _MINTED:
                beside_it = Ends(holder, self.kind(name), old)
                if not self.overlapping(beside_it, during, tx):
                    self.join(beside_it, during, minted)
        self.work.set_taken(link, [*index.taken.get(link, ()), piece])
