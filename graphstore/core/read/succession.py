"""The walk behind `what_superseded`: breadth first, from a thing to what took its place."""

from __future__ import annotations

from graphstore.core.index.gc_pause import no_collecting
from graphstore.core.read.sight import Sight
from graphstore.values.models import UPRIGHT, Event, How, Node, Step, Supersession
from graphstore.values.period import Instant, Union, moment

_LEADS_AWAY = {"supersedes": 0, "transition": 1, "corrects": 2}  # kinds of link, the most specific first
_KINDS = frozenset(_LEADS_AWAY)
_SHORT = 32  # levels that are few values


class Succession:
    """One walk at one coordinate."""

    def __init__(self, sight: Sight) -> None:
        self.sight = sight
        self.index = sight.index
        self.steps: list[Step] = []
        self.current: list[Node | Event] = []

    def of(self, subject: int, number: int) -> Supersession:
        """What became of an entity; with a number, of that version of it first."""
        thing: Node | Event
        if number and not self.index.is_event[subject]:
            thing = self.sight.described(subject, number)
            self._revisions(subject, number)
        else:
            thing = self.sight.thing(subject)
        seen = {subject}
        left = self._walk([subject], seen, _SHORT)
        if left:
            with no_collecting():  # a long chain is many values that all stay
                self._walk(left, seen)
        return Supersession.made(
            {
                "subject": thing,
                "chain": tuple(self.steps),
                "current": tuple(self.current),
                "standing": thing.standing,
            }
        )

    def _walk(self, level: list[int], seen: set[int], most: int | None = None) -> list[int]:
        """Walk on from things that are as many steps away. Returns where it is after so many levels: nothing when it is at the end."""
        l_src, k_link = self.index.l_src, self.index.k_link
        while level and most != 0:
            rows = self._after(level[0])
            if len(level) > 1:
                rows += [row for ent in level[1:] for row in self._after(ent)]
            if len(rows) > 1:
                rows.sort(key=self.sight.link_order)
            level = []
            for row in rows:
                ent = l_src[k_link[row]]
                if ent not in seen:
                    seen.add(ent)
                    level.append(ent)
                    self._step(row, ent)
            most = None if most is None else most - 1
        return level

    def _after(self, ent: int) -> list[int]:
        """The link rows that lead away from one thing. If none replaces it, it is an end: it stands, or it has ended."""
        index, sight = self.index, self.sight
        rows = sight.rows_of_links(index.into, ent, _KINDS)
        for row in rows:
            if index.l_kind[index.k_link[row]] != "corrects":
                break
        else:
            standing = sight.standing(ent)
            if standing in UPRIGHT:
                self.current.append(sight.thing(ent))
            elif standing in ("retracted", "ended") and not rows:
                self._over(ent, standing)
        return self._saying_most(rows) if len(rows) > 1 else rows

    def _saying_most(self, rows: list[int]) -> list[int]:
        """Of several links of one pair the most specific one, in order."""
        index = self.index
        kept: dict[int, int] = {}
        for row in sorted(rows, key=lambda row: _LEADS_AWAY[index.l_kind[index.k_link[row]]]):
            kept.setdefault(index.l_src[index.k_link[row]], row)
        return sorted(kept.values(), key=self.sight.link_order)

    def _step(self, row: int, ent: int) -> None:
        node = self.sight.thing(ent)
        link = self.sight.link(row)  # after the thing, which has computed the standing
        self.steps.append(
            Step.made(
                {
                    "how": "corrected" if link.kind == "corrects" else "superseded",
                    "link": link,
                    "node": node,
                    "who": link.author or link.created_by,
                    "why": link.reason,
                    "since": link.valid_from,
                    "recorded_at": link.recorded_at,
                }
            )
        )

    def _over(self, ent: int, standing: str) -> None:
        """The step of a thing that came to an end with nothing in its place."""
        index, valid, tx = self.index, self.sight.valid, self.sight.tx
        over = [row for row in index.believed(ent, tx) if index.r_to[row] <= valid]
        if standing == "ended" and over:
            row = max(over, key=index.r_to.__getitem__)
            op = index.removal_at(ent, index.r_to[row], tx)
            op = op if op >= 0 else index.v_op[index.r_ver[row]]  # it was said with its end
            self._without_link("ended", None, op, index.r_to[row])
            return
        op = index.removed_by(ent, valid, tx)
        if op < 0:  # it never held there, and nothing is left of it
            op = index.last_removal(ent, tx)
        if op >= 0:
            row = index.last_cover(ent, valid, tx)
            since = index.r_from[row] if row >= 0 else index.born[ent]
            how: How = "retracted" if standing == "retracted" else "ended"
            self._without_link(how, None, op, since)

    def _revisions(self, subject: int, number: int) -> None:
        """A step for each newer version that was written over valid time that version `number` had lost, in the order they were believed. What an undo
        took back is none."""
        index, tx = self.index, self.sight.tx
        rows = [row for row in index.rows_of[subject] if index.r_tx[row] <= tx]
        lost = [row for row in rows if index.v_num[index.r_ver[row]] == number and index.r_end[row] <= tx]
        lost.sort(key=index.r_end.__getitem__, reverse=True)
        last = {index.v_num[index.r_ver[row]]: row for row in rows}
        free, shown = Union(), set()
        for row in rows:
            while lost and index.r_end[lost[-1]] <= index.r_tx[row]:
                old = lost.pop()
                free.add((index.r_from[old], index.r_to[old]))
            later, period = index.v_num[index.r_ver[row]], (index.r_from[row], index.r_to[row])
            op = index.v_op[index.r_ver[row]]
            counts = later > number and later not in shown and (op < 0 or index.believed_op(op, tx))
            if counts and free.overlaps(period):
                shown.add(later)
                self._without_link(
                    "revised", self.sight.described(subject, later, last[later]), op, period[0]
                )

    def _without_link(self, how: How, node: Node | None, op: int, since: Instant) -> None:
        index = self.index
        self.steps.append(
            Step.made(
                {
                    "how": how,
                    "link": None,
                    "node": node,
                    "who": index.o_author[op],
                    "why": self.sight.core.body(index.o_pos[op], index.o_len[op]).get("reason"),
                    "since": moment(since),
                    "recorded_at": moment(index.o_tx[op]),
                }
            )
        )
