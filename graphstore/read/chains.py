"""What led to a thing, and what it led to: chains of causal links at a coordinate."""

from __future__ import annotations

from graphstore.ledger.statements import Statement
from graphstore.read.described import things
from graphstore.read.ids import resolve
from graphstore.read.linked import Linked, link_of
from graphstore.read.points import Point, as_json
from graphstore.values.inputs import at_least_one
from graphstore.values.models import Chain

CAUSES = Statement("causes", Linked)
EFFECTS = Statement("effects", Linked)
_UNLIMITED = 64  # links: from this depth on the statement follows all there are


def causes(point: Point, id: str, depth: int = 5) -> Chain:
    """Return what led to this, nearest first, at most `depth` links away. Raises NotFoundError for an unknown id."""
    return _Walk(CAUSES, point, depth).from_id(id)


def effects(point: Point, id: str, depth: int = 5) -> Chain:
    """Return what this led to, nearest first, at most `depth` links away. Raises NotFoundError for an unknown id."""
    return _Walk(EFFECTS, point, depth).from_id(id)


class _Walk:
    """One walk at one coordinate, breadth first: each link and each thing once."""

    def __init__(self, statement: Statement[Linked], point: Point, depth: int) -> None:
        self._statement = statement
        self._point = point
        self._depth = at_least_one("depth", depth)
        self._kinds = as_json(list(point.vocabulary.causal))

    def from_id(self, id: str) -> Chain:
        """Return the chain from the thing that an id names."""
        chain = self._chain(id) if isinstance(id, str) else None
        if chain is None:
            chain = self._chain(resolve(self._point, id)[0].id)
        assert chain is not None
        return chain

    def _chain(self, root: str) -> Chain | None:
        """Return the chain from a thing; None where no thing has exactly this id."""
        onward = self._onward(root)
        reached: dict[str, None] = {root: None}
        frontier, walked, depth = [root], [], self._depth
        while frontier and depth:
            depth -= 1
            level = []
            for near in frontier:
                for far, row in onward.get(near, ()):
                    walked.append(row)
                    if far not in reached:
                        reached[far] = None
                        level.append(far)
            frontier = level
        found = things(self._point, reached)
        if root not in found:
            return None
        links = [
            link_of(self._point, row, found[row.source].standing, found[row.target].standing)
            for row in walked
        ]
        return Chain.made(
            {
                "root": found[root],
                "nodes": tuple([found[id] for id in reached][1:]),
                "links": tuple(links),
                "truncated": any(far not in reached for near in frontier for far, _ in onward.get(near, ())),
            }
        )

    def _onward(self, root: str) -> dict[str, list[tuple[str, Linked]]]:
        """Return the links that lead on from each thing, in order, with the thing that each leads to."""
        depth = min(self._depth, _UNLIMITED)
        rows = self._point.rows(
            self._statement, id=root, depth=depth, kinds=self._kinds, undone=self._point.undone
        )
        found: dict[str, list[tuple[str, Linked]]] = {}
        for row in rows:
            if row.respects_time:
                near, far = (
                    (row.source, row.target) if self._statement is CAUSES else (row.target, row.source)
                )
                found.setdefault(near, []).append((far, row))
        return found
