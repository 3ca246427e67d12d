"""When things are shaky, as is known now: kept as spans of valid time, so that a read does not follow what rests on what.

Of each thing that was asked for, and of what it rests on, the spans are kept in which a fall reaches it that nobody has looked at since. They are made
from the links and rows believed now, by the rules of `Resting`, which stays the judge where the spans leave a doubt. A write drops those of what it
touches and of what falls of that reach, at the next read. They hold at every tx from the last change on that they were made from; where nothing that was
ever recorded can have shaken a thing, at every tx.

Spans are made, and dropped, while the store's lock is held; to look at them needs none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from graphstore.core.index.columns import Mark
from graphstore.core.index.foundations import Fall, Raw, Resting
from graphstore.core.index.index import Index
from graphstore.core.journal.line import DESCRIBING, UNDO
from graphstore.values.period import OPEN, Instant, Period
from graphstore.values.vocabulary import UPHOLDING

# valid from, to; the last fall that reaches a thing there: surely, and at most, as operations; what fell, and whether it ended
Span = tuple[Instant, Instant, int, int, int, bool]
Ground = tuple[int, int, frozenset[str]]  # what a thing rests on, the link row, and the falls that count
OwnFalls = tuple[Instant, Instant, list[Fall]]  # valid from, to
Own = tuple[Instant, list[OwnFalls] | None]  # since when it is right, and spans; None: too many

FEW = 1000
"""So many spans are kept of a thing; where there are more, those beside each other become one that leaves more open."""
DEEP = 200
"""Of a thing with more rows, or links of supersession, no spans are made: the judge is asked."""
HUB = 256
"""A thing with more links moves what rests on it on as it is asked for, and not all at once."""
MOST_HUBS = 8
"""What rests on more hubs is asked of the judge."""
ENOUGH = 64
"""At one read at most so many spans are made of what a thing rests on; it is asked of the judge then, and later reads go on from there."""
SAVED = 100_000
"""Of at most so many things that nobody asked for spans are made when an index is saved, and after a load."""
YES, NO, ASK_JUDGE, NOT_KEPT = 1, 0, -1, -2
BEFORE = -(1 << 62)  # before every instant
AFTER = OPEN
_SEVERAL = -2
_REPLACING = frozenset({"supersedes", "corrects"})


class Spans(NamedTuple):
    """Where falls reach a thing; right at every tx from `since` on. `BEFORE`: no fall that was ever recorded does, by any way."""

    since: Instant
    starts: list[Instant]
    spans: list[Span]
    made: int = 0  # in which round
    hubs: frozenset[int] = frozenset()  # that it rests on, by whatever way


_OPEN_ALL = Spans(0, [BEFORE], [(BEFORE, AFTER, -1, AFTER, _SEVERAL, True)])
_NEVER = Spans(BEFORE, [], [])


class Shaken:
    """The spans of an index as it was committed last. `touched`: what changed since without a row of its own."""

    def __init__(self, index: Index, raw: Raw | None) -> None:
        self.touched: set[int] = set()
        self.raw = raw
        self._index = index
        self._kept: dict[int, Spans | None] = {}  # None: those that were kept are not right any more
        self._own: dict[int, Own] = {}
        self._few: set[int] = set()  # what is no hub as long as no link is added
        self._hubs: set[int] = set()  # whose changes are looked up by what rests on them,
        self._moved: dict[int, int] = {}  # and in which round they changed last
        self._round = 0
        self._mark = index.mark()
        self._kinds = len(index.kinds)
        self._stamp = (index.transactions, index.last_tx)

    def says(self, ent: int, valid: Instant, tx: Instant) -> int:
        """Whether an entity that stands at (valid, tx) is shaky: YES, NO, ASK_JUDGE, or NOT_KEPT. It needs no lock: what is kept stays right for the tx
        of who reads, whatever is written meanwhile."""
        index = self._index
        if tx > self._stamp[1]:
            if self._stamp != (index.transactions, index.last_tx):
                return NOT_KEPT
            begun = index.open_since
            if begun is not None and tx >= begun:
                return ASK_JUDGE  # who writes reads what is not committed
        found = self._of(ent)
        if found is None or (found.hubs and self._is_stale(found)):
            return NOT_KEPT
        if tx < found.since:
            return ASK_JUDGE
        at = bisect_right(found.starts, valid) - 1
        if at < 0:
            return NO
        _, stop, least, most, _, _ = found.spans[at]
        if valid >= stop:
            return NO
        return YES if least >= 0 else ASK_JUDGE if most >= 0 else NO

    def keeps(self, ent: int) -> bool:
        """Whether each standing of an entity as is known now is kept, so that the judge is not asked."""
        found = self._of(ent)
        return (
            found is not None
            and not self._is_stale(found)
            and self._stamp == (self._index.transactions, self._index.last_tx)
            and all(span[2] >= 0 for span in found.spans)
        )

    def look(self, ent: int) -> None:
        """Keep the spans of a thing. Not beside an open transaction."""
        self.follow()
        if not self._index.pending and not self._is_kept(ent):
            self._make(ent)

    def fill(self, since: Mark) -> None:
        """Keep the spans of things that were described or linked since. Not beside an open transaction."""
        index = self._index
        self.follow()
        if index.pending:
            return
        links = set(index.k_link[since.link_rows :])
        self._fill(sorted({*index.r_ent[since.rows :], *self._ends(links)}))

    def _fill(self, ents: Iterable[int]) -> None:
        index, left = self._index, SAVED
        for ent in ents:
            if ent in index.rests and ent in index.tainted:
                while not self._is_kept(ent):
                    if left == 0:
                        return
                    self._make(ent)
                    left -= 1

    def _of(self, ent: int) -> Spans | None:
        """What is kept of a thing. No lock is held: what was dropped meanwhile stays so."""
        return self._kept.get(ent)

    def _is_stale(self, found: Spans) -> bool:
        """Whether a hub below has changed since."""
        return any(self._moved.get(hub, 0) > found.made for hub in found.hubs)

    def _is_kept(self, ent: int) -> bool:
        found = self._of(ent)
        if found is not None and found.hubs and self._is_stale(found):
            self._kept[ent] = None
            return False
        return found is not None

    # ------------------------------------------------------------------ what a write changes

    def follow(self) -> None:
        """Drop what the commits since may have changed."""
        index, mark = self._index, self._mark
        stamp = (index.transactions, index.last_tx)
        if self._stamp == stamp:
            return
        now = index.mark()
        self._round += 1
        if now.links > mark.links:
            self._few.clear()
        touched, self.touched = self.touched, set()
        if len(index.kinds) != self._kinds or UNDO in map(index.o_verb.__getitem__, range(mark.ops, now.ops)):
            self._forget_all()
        elif self._kept or self._own:
            touched.update(index.r_ent[mark.rows : now.rows])
            touched.update(index.r_ent[row] for row in index.closings[mark.closings : now.closings])
            links = set(index.k_link[mark.link_rows : now.link_rows])
            links.update(
                index.k_link[row] for row in index.link_closings[mark.link_closings : now.link_closings]
            )
            for subject in map(index.o_subject.__getitem__, range(mark.ops, now.ops)):
                if subject in index.ids:
                    touched.add(index.ids[subject])
                elif subject in index.link_ids:
                    links.add(index.link_ids[subject])
            touched.update(self._ends(links))
            if len(touched) > len(self._kept):
                self._forget_all()
            else:
                self._drop(touched)
        self._kinds, self._mark, self._stamp = (
            len(index.kinds),
            now,
            stamp,
        )  # the stamp last: others look at it

    def _ends(self, links: set[int]) -> Iterator[int]:
        """What rests on something by one of the links, or replaces something or is replaced."""
        index, resting = self._index, self._index.resting
        for link in links:
            kind = index.l_kind[link]
            if kind in resting:
                yield (index.l_tgt if kind in UPHOLDING else index.l_src)[link]
            elif kind in _REPLACING:
                yield index.l_src[link]
                yield index.l_tgt[link]

    def _forget_all(self) -> None:
        self._kept, self._own, self._hubs, self._moved = {}, {}, set(), {}

    def _drop(self, touched: set[int]) -> None:
        """Drop the spans of things, and of what rests on them as far as there are any."""
        for ent in touched:
            self._own.pop(ent, None)
            if self._of(ent) is not None:
                self._kept[ent] = None
        self._above(list(touched))

    def _above(self, dropped: list[int], *, hub: bool = False) -> None:
        """Drop the spans of what falls of some things reach, or make a note for those above a hub. `hub`: it is found out to be one, and all that rest on it
        have to know."""
        index, kept, direct = self._index, self._kept, len(dropped)
        for at, ent in enumerate(dropped):
            if ent in self._hubs:
                self._moved[ent] = self._round
            elif ent in index.based:
                for one, counts in index.resting_on(ent):
                    reached = "shaky" in counts or (at < direct and (hub or self._may_fall(ent, counts)))
                    if reached and self._of(one) is not None:
                        kept[one] = None
                        dropped.append(one)

    def _is_hub(self, base: int) -> bool:
        """Whether a thing has many links. What was made before one was known to be a hub knows nothing of it, and is dropped."""
        index = self._index
        if len(index.into.get(base, ())) + len(index.out.get(base, ())) <= HUB:
            self._few.add(base)
        elif base not in self._hubs:
            self._above([base], hub=True)
            self._hubs.add(base)
        return base in self._hubs

    # ------------------------------------------------------------------ making spans

    def _make(self, ent: int) -> None:
        """Keep the spans of a thing, and of what it rests on: when all are made, and no hub was found on the way."""
        while True:
            known = len(self._hubs)
            fresh = self._made(ent)
            if len(self._hubs) == known:
                self._kept.update(fresh)
                return

    def _made(self, ent: int) -> dict[int, Spans]:
        index = self._index
        fresh: dict[int, Spans] = {}
        way: list[tuple[int, Iterator[tuple[int, int, frozenset[str]]]]] = [(ent, iter(index.grounds(ent)))]
        open_still = {ent}
        while way:
            if len(fresh) >= ENOUGH:
                return fresh if not self._in_rings(fresh, open_still) else {ent: _OPEN_ALL}
            one, left = way[-1]
            for _, base, counts in left:
                if (
                    "shaky" in counts
                    and base in index.tainted
                    and base not in fresh
                    and base not in open_still
                    and not self._is_kept(base)
                ):
                    open_still.add(base)
                    way.append((base, iter(index.grounds(base))))
                    break
            else:
                fresh[one] = self._spans(one, fresh)
                open_still.discard(one)
                way.pop()
        return fresh

    def _in_rings(self, fresh: dict[int, Spans], open_still: set[int]) -> bool:
        """Whether any of what was made rests on what was not."""
        grounds = self._index.grounds
        return any(base in open_still for one in fresh for _, base, _ in grounds(one))

    def _grounds(self, ent: int, fresh: dict[int, Spans]) -> tuple[list[Ground], Instant, set[int]]:
        """What a thing rests on by links believed now, as far as a fall of it may count; when any link changed last by which it ever rested on that;
        and the hubs among all that it ever rested on."""
        index = self._index
        tainted, fell = index.tainted, index.fell
        found: list[Ground] = []
        hubs: set[int] = set()
        since = BEFORE
        for link, base, counts in index.grounds(ent):
            if base not in self._few and self._is_hub(base):
                hubs.add(base)
            shaken = "shaky" in counts and base in tainted
            if shaken:
                below = self._of(base) or fresh.get(base)
                if below is not None:
                    hubs |= below.hubs
                    shaken = below.since > BEFORE
            if shaken or (base in fell and self._may_fall(base, counts)):
                since = max(since, index.link_changed_last(link))
                if not index.replaces(ent, base, index.last_tx):
                    rows = index.rows_of_link[link]
                    found += [(base, row, counts) for row in rows if index.k_end[row] >= OPEN]
        return found, since, hubs

    def _may_fall(self, base: int, counts: frozenset[str]) -> bool:
        """Whether anything ever became of a thing that fell, as was known at any tx, that may count."""
        index = self._index
        return (
            "ended" in counts
            or base in index.refuted
            or ("revised" in counts and base in index.turns)
            or ("superseded" in counts and base in index.successors)
        )

    def _spans(self, ent: int, fresh: dict[int, Spans]) -> Spans:
        """The spans of a thing from what it rests on; what is on the way here itself leaves all open."""
        index = self._index
        if len(index.now_of[ent]) > DEEP:
            return _OPEN_ALL
        grounds, since, hubs = self._grounds(ent, fresh)
        if len(hubs) > MOST_HUBS:
            return _OPEN_ALL
        if since == BEFORE:
            return Spans(BEFORE, [], [], self._round, frozenset(hubs)) if hubs else _NEVER
        event = bool(index.is_event[ent])
        replaced: set[int] = set()
        for link in index.of_kinds(index.out, ent, _REPLACING):
            if index.l_kind[link] in _REPLACING:
                since = max(since, index.link_changed_last(link))
                if index.believed_link(link, index.last_tx):
                    replaced.add(index.l_tgt[link])
        found: list[Span] = []
        for base, row, counts in grounds:
            start, stop = index.k_from[row], index.k_to[row]
            if base in index.fell:
                changed, own = self._own_falls(base)
                since = max(since, changed)
                if own is None:
                    found.append((start, stop, -1, AFTER, _SEVERAL, True))
                found += self._counted(ent, base, row, counts, own or ())
            if "shaky" in counts and base in index.tainted:
                below = self._of(base) or fresh.get(base)
                if below is None:  # they rest on each other
                    found.append((start, stop, -1, AFTER, _SEVERAL, True))
                    continue
                since = max(since, below.since)
                for begins, ends, least, most, root, ended in below.spans:
                    if begins < stop and start < ends:
                        if (ended and event) or (replaced and (root in replaced or root == _SEVERAL)):
                            least = -1
                        found.append((max(begins, start), min(ends, stop), least, most, root, ended))
        spans: list[Span] = []
        if found:
            upright, changed = self._upright(ent)
            since, spans = max(since, changed), _over(found, upright)
        return Spans(since, [span[0] for span in spans], spans, self._round, frozenset(hubs))

    def _counted(
        self, ent: int, base: int, row: int, counts: frozenset[str], own: Iterable[OwnFalls]
    ) -> Iterator[Span]:
        """The spans over which falls of a foundation reach what rests on it by a row of a link."""
        index = self._index
        event, recorded = index.is_event[ent], index.recorded_once(row)
        since, until = index.k_from[row], index.k_to[row]
        for begins, ends, falls in own:
            if until <= begins or ends <= since:
                continue
            part = max(begins, since), min(ends, until)
            revised = falls[0].word == "revised"
            if revised and recorded is not None:
                if "revised" in counts and falls[-1].op > recorded:
                    yield *part, falls[-1].op, falls[-1].op, base, False
                continue
            for start, stop in self._alike(row, part) if revised else (part,):
                mine = self._at(start).counted(base, row, falls) if revised or falls[0].op < 0 else falls
                count = [
                    fall for fall in mine if fall.word in counts and not (event and fall.word == "ended")
                ]
                if count:
                    last = max(count)
                    yield start, stop, last.op, last.op, base, last.word == "ended"

    def _alike(self, row: int, part: Period) -> Iterable[Period]:
        """The parts of a period over each of which the link of a row was recorded first by one operation."""
        index, link = self._index, self._index.k_link[row]
        rows, ghosts = index.rows_of_link[link], index.link_ghosts.get(link, ())
        if len(rows) == 1 and not ghosts:
            return (part,)
        edges = {edge for one in rows for edge in (index.k_from[one], index.k_to[one])}
        edges.update(edge for _, start, stop, _ in ghosts for edge in (start, stop))
        return pairwise(sorted({*part, *(edge for edge in edges if part[0] < edge < part[1])}))

    def _own_falls(self, base: int) -> Own:
        """What became of a thing, by spans of valid time, whatever rests on it."""
        found = self._own.get(base)
        if found is None:
            index = self._index
            if len(index.rows_of[base]) > DEEP or len(index.successors.get(base, ())) > DEEP:
                found = 0, None
            else:
                cuts, since = self._cuts(base)
                found = since, list(self._fallen(base, cuts))
            self._own[base] = found
        return found

    def _fallen(self, base: int, cuts: list[Instant]) -> Iterator[OwnFalls]:
        """What became of a thing between each two instants at which that may change."""
        index = self._index
        plain = not (index.is_event[base] or base in index.gone or index.undone_by or index.unread)
        turns = index.turns.get(base, ())
        rows = [(index.r_from[row], index.r_to[row]) for row in index.now_of[base]] if plain else []
        at = 0
        for start, stop in pairwise(cuts):
            while at < len(rows) and rows[at][1] <= start:
                at += 1
            if at < len(rows) and rows[at][0] <= start:
                here = (turn[3] for turn in reversed(turns) if turn[1] <= start < turn[2])
                last = next(here, None)  # of several only the last counts
                falls = [] if last is None else [Fall(last, "revised")]
            elif rows and start == BEFORE:
                continue  # it begins later
            else:
                falls = self._at(start if start > BEFORE else stop - 1).became(base)
            if falls:
                yield start, stop, falls

    def _at(self, valid: Instant) -> Resting:
        """The judge at an instant, as is known now."""
        assert self.raw is not None
        return Resting(self._index, valid, self._index.last_tx, self.raw)

    def _cuts(self, ent: int) -> tuple[list[Instant], Instant]:
        """Where the standing of a thing may change in valid time, and when it changed last."""
        index = self._index
        rows = index.rows_of[ent]
        cuts = {BEFORE, AFTER}
        cuts.update(map(index.r_from.__getitem__, rows))
        cuts.update(map(index.r_to.__getitem__, rows))
        for side in (index.gaps, index.turns):
            for _, start, stop, _ in side.get(ent, ()):
                cuts.add(start)
                cuts.add(stop)
        for link in index.successors.get(ent, ()):
            for row in index.rows_of_link[link]:
                cuts.add(index.k_from[row])
                cuts.add(index.k_to[row])
        return sorted(cuts), max(index.changed_last(ent), index.undone_last())

    def _upright(self, ent: int) -> tuple[list[tuple[Instant, Instant, int]], Instant]:
        """The periods over which a thing stands, each with the operation that looked at it last; and when that changed last."""
        index = self._index
        if index.is_event[ent]:
            cuts, since = self._cuts(ent)
            there = [(start, stop, self._at(start)) for start, stop in pairwise(cuts[1:])]
            return [
                (start, stop, at.looked(ent)) for start, stop, at in there if at.standing(ent) == "stands"
            ], max(since, self._confirmed(ent)[1])
        since = max(index.changed[ent], index.undone_last(), index.forgotten_at(ent))
        if ent in index.gone:
            return [], since
        confirmed, at = self._confirmed(ent)
        found = []
        for row in index.now_of[ent]:
            said = index.v_op[index.r_ver[row]]
            looked = said if said >= 0 and index.o_verb[said] in DESCRIBING else -1
            found.append((index.r_from[row], index.r_to[row], max(looked, confirmed)))
        return found, max(since, at)

    def _confirmed(self, ent: int) -> tuple[int, Instant]:
        """The last confirmation of a thing, and when any was recorded last."""
        index = self._index
        every = index.confirmed.get(index.names[ent], ())
        if not every:
            return -1, 0
        return index.confirmed_last(ent, index.last_tx), index.o_tx[every[-1]]


def _over(found: list[Span], upright: list[tuple[Instant, Instant, int]]) -> list[Span]:
    """The last falls that reach a thing over each span in which it stands, of those that nobody has looked at since."""
    found.sort()
    cuts = {span[0] for span in found}
    cuts.update([span[1] for span in found], [span[0] for span in upright], [span[1] for span in upright])
    doubts = any(span[2] != span[3] for span in found)
    least: list[tuple[int, Instant, int, bool]] = []  # heaps, the last fall first
    most: list[tuple[int, Instant]] = []  # where there are doubts: else it is the same
    spans: list[Span] = []
    last: tuple[int, int, int, bool] | None = None
    come = at = 0
    for start, stop in pairwise(sorted(cuts)):
        while come < len(found) and found[come][0] <= start:
            _, end, surely, perhaps, root, ended = found[come]
            if surely >= 0:
                heappush(least, (-surely, end, root, ended))
            if doubts:
                heappush(most, (-perhaps, end))
            come += 1
        while at < len(upright) and upright[at][1] <= start:
            at += 1
        if at == len(upright):
            break
        begun, _, looked = upright[at]
        if begun > start:
            continue
        while least and least[0][1] <= start:
            heappop(least)
        while most and most[0][1] <= start:
            heappop(most)
        reached = -least[0][0] if least else -1
        perhaps = -most[0][0] if most else reached
        if perhaps <= looked:
            continue
        _, _, root, ended = least[0] if reached > looked else (0, 0, _SEVERAL, False)
        reach = reached if reached > looked else -1, perhaps, root, ended
        if spans and reach == last and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, stop, *reach))
        last = reach
    return spans if len(spans) <= FEW else _coarser(spans)


def _coarser(spans: list[Span]) -> list[Span]:
    """Spans that touch as one: where a fall reaches surely all over, and where that is open."""
    found: list[Span] = []
    for start, stop, least, most, root, ended in spans:
        if found and found[-1][1] == start and (found[-1][2] >= 0) == (least >= 0):
            since, _, low, high, *_ = found.pop()
            start, least, most, root, ended = since, min(low, least), max(high, most), _SEVERAL, True
        found.append((start, stop, least, most, root, ended))
    return found


def _kept_by(index: Index, raw: Raw) -> Shaken:
    found: Shaken | None = index._shaken
    if found is None:
        found = index._shaken = Shaken(index, raw)
    found.raw = raw
    return found


def look(index: Index, raw: Raw, ent: int) -> Shaken:
    """The spans kept of an index, those of an entity too where they can be made. The store's lock is held."""
    found = _kept_by(index, raw)
    found.look(ent)
    return found


def follow(index: Index, raw: Raw) -> None:
    """Drop the spans that commits since may have changed, so that those of all else answer for now. The store's lock is held."""
    _kept_by(index, raw).follow()


def fill(index: Index, raw: Raw, since: Mark) -> None:
    """Keep the spans of what was written since, so that no read makes them. The store's lock is held, and no transaction is open."""
    _kept_by(index, raw).fill(since)
