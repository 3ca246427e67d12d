"""Chains of causes over a working set, and that set as the ground of walks and paths (`graphstore/read/walks.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphstore.core.read.rows import Side
from graphstore.core.read.sight import Sight
from graphstore.read.walks import Pass
from graphstore.values.inputs import at_least_one
from graphstore.values.models import Chain
from graphstore.values.period import Instant
from graphstore.values.vocabulary import Vocabulary

if TYPE_CHECKING:
    from array import array


def causes(sight: Sight, id: str, depth: int) -> Chain:
    """What led to a thing, nearest first."""
    return _causal(sight, id, depth, sight.index.out, sight.index.l_tgt)


def effects(sight: Sight, id: str, depth: int) -> Chain:
    """What a thing led to, nearest first."""
    return _causal(sight, id, depth, sight.index.into, sight.index.l_src)


class IndexGround:
    """The things and links of the index at the coordinate of a sight, as `walks.Ground` has them."""

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self.valid, self.tx = sight.valid, sight.tx
        self.vocabulary: Vocabulary = sight.core.vocabulary

    def number(self, id: str) -> int:
        """Return the thing that an id names."""
        return self._sight.resolve(id)[0]

    def id(self, thing: int) -> str:
        """Return the id of a thing."""
        return self._sight.id(thing)

    def onward(self, thing: int, ahead: frozenset[str], back: frozenset[str]) -> list[Pass]:
        """Return the links that lead on from a thing, in no order."""
        index = self._sight.index
        l_kind, l_name, k_from, find = index.l_kind, index.l_name, index.k_from, index.find_link
        return [
            (k_from[row], l_name[link], row, ends[link])
            for side, kinds, ends in ((index.out, ahead, index.l_tgt), (index.into, back, index.l_src))
            for link in index.perhaps(side, thing, self.valid, self.tx, kinds)
            if l_kind[link] in kinds and (row := find(link, self.valid, self.tx)) >= 0
        ]

    def fetch(self, things: Iterable[int], ahead: frozenset[str], back: frozenset[str]) -> None:
        """There is nothing to be read: it is all in memory."""

    def order(self, row: int) -> tuple[Instant, Instant, str]:
        """Return what links are ordered by."""
        return self._sight.link_order(row)

    def chain(self, root: int, reached: Iterable[int], walked: Iterable[int], truncated: bool) -> Chain:
        """Make the value of a walk."""
        return _shown(self._sight, root, reached, walked, truncated)


def _causal(sight: Sight, id: str, depth: int, side: Side, ends: array[int]) -> Chain:
    """Breadth first over causal links; each link and each thing once."""
    at_least_one("depth", depth)
    root, _ = sight.resolve(id)
    k_link = sight.index.k_link
    seen, frontier = {root}, [root]
    reached: list[int] = []
    walked: dict[int, None] = {}
    while frontier and depth:
        depth -= 1
        level = []
        for ent in frontier:
            for row in sight.causal(ent, side):
                walked[row] = None
                far = ends[k_link[row]]
                if far not in seen:
                    seen.add(far)
                    level.append(far)
        reached += level
        frontier = level
    beyond = any(ends[k_link[row]] not in seen for ent in frontier for row in sight.causal(ent, side))
    return _shown(sight, root, reached, walked, beyond)


def _shown(sight: Sight, root: int, reached: Iterable[int], walked: Iterable[int], truncated: bool) -> Chain:
    thing, link = sight.thing, sight.link
    return Chain.made(
        {
            "root": thing(root),
            "nodes": tuple([thing(ent) for ent in reached]),
            "links": tuple([link(row) for row in walked]),
            "truncated": truncated,
        }
    )
