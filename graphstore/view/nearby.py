"""Find the links that recall follows between things that stand, strongest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest

from graphstore.ledger.branch_rows import SPAN
from graphstore.view.sight import Sight

UNSAID_STRENGTH = 3
"""The strength assumed for a link without one."""
Step = tuple[int, int]  # the row of a link, and the thing it leads to


class NearbyLinks:
    """Finds the links between things that stand. A message that was not authorized is never followed."""

    def __init__(
        self,
        sight: Sight,
        along: frozenset[str] | None,
        direction: str,
        fan_out: int,
        seen: Callable[[int], bool] | None = None,
    ) -> None:
        index, kinds = sight.index, sight.core.vocabulary.kinds
        self._sight, self._index = sight, index
        self._version_of = sight.core.search.standing(sight).version_of
        self._kinds = along or frozenset(name for name, kind in kinds.items() if kind.walked)
        out, into = (index.out, index.l_tgt), (index.into, index.l_src)
        self._sides = {"out": (out,), "in": (into,), "both": (out, into)}[direction]
        # the sides on which only links of symmetric kinds are followed
        self._other = {"out": (into,), "in": (out,), "both": ()}[direction]
        self._same = frozenset(name for name in self._kinds if kinds[name].symmetric)
        self._fan_out = fan_out
        self._seen, self._admitted = seen, sight.admitted()
        self._held: dict[int, list[int]] = {}
        self._strongest: dict[int, list[Step]] = {}

    def degree(self, ent: int) -> int:
        """Return the number of links to follow from a thing."""
        return len(self._around(ent))

    def strongest(self, ent: int) -> list[Step]:
        """Return the rows of its strongest links and the things they lead to: by strength, then later first, then by id."""
        found = self._strongest.get(ent)
        if found is None:
            index = self._index
            rows = nsmallest(self._fan_out, self._around(ent), key=self._order)
            ends = [(index.l_src[index.k_link[row]], index.l_tgt[index.k_link[row]]) for row in rows]
            found = self._strongest[ent] = [
                (row, source if target == ent else target)
                for row, (source, target) in zip(rows, ends, strict=True)
            ]
            self._sight.index.read_links(thing for _, thing in found)
        return found

    def _order(self, row: int) -> tuple[int, int, int, str]:
        index = self._index
        strength = index.c_strength[index.k_claim[row]] or UNSAID_STRENGTH
        return -strength, -index.k_from[row], -index.k_tx[row], index.l_name[index.k_link[row]]

    def _around(self, ent: int) -> list[int]:
        held = self._held.get(ent)
        if held is None:
            held = self._held[ent] = []
            for side, far in self._sides:
                held += self._holding(side.get(ent, ()), far, self._kinds)
            for side, far in self._other:
                held += self._holding(side.get(ent, ()), far, self._same)
        return held if self._seen is None else self._shown(held, ent, self._seen)

    def _shown(self, rows: list[int], ent: int, seen: Callable[[int], bool]) -> list[int]:
        index = self._index
        ends = ((row, index.l_src[index.k_link[row]], index.l_tgt[index.k_link[row]]) for row in rows)
        return [row for row, source, target in ends if seen(source if target == ent else target)]

    def _holding(self, links: Iterable[int], far: Sequence[int], kinds: frozenset[str]) -> list[int]:
        standing, of_kind, held = self._version_of, self._index.l_kind, self._sight.held
        return [
            row
            for link in links
            if standing[far[link] % SPAN] >= 0 and of_kind[link] in kinds and self._admitted(far[link])
            if (row := held(link)) >= 0
        ]
