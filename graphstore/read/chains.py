"""Follows causal links at a coordinate: what led to a thing, and what it led to."""

from __future__ import annotations

from graphstore.ledger.statements import Statement
from graphstore.read.described import chain_of
from graphstore.read.ids import resolve
from graphstore.read.linked import LinkedRow
from graphstore.read.points import Point, as_json
from graphstore.values.findings import Chain
from graphstore.values.inputs import at_least_one

CAUSES = Statement("causes", LinkedRow)
EFFECTS = Statement("effects", LinkedRow)
_UNLIMITED = 64  # links; from this depth on the statement has no limit


def causes(point: Point, id: str, depth: int = 5) -> Chain:
    """Return what led to this, nearest first, at most `depth` links away. Raises NotFoundError for an unknown id."""
    return _walk(point, CAUSES, id, at_least_one("depth", depth))


def effects(point: Point, id: str, depth: int = 5) -> Chain:
    """Return what this led to, nearest first, at most `depth` links away. Raises NotFoundError for an unknown id."""
    return _walk(point, EFFECTS, id, at_least_one("depth", depth))


def _walk(point: Point, statement: Statement[LinkedRow], id: str, depth: int) -> Chain:
    chain = _chain(point, statement, id, depth) if isinstance(id, str) else None
    if chain is None or not chain.links:
        known_as = resolve(point, id)[0].id  # composed otherwise, or joined into another node
        if chain is None or known_as != id:
            chain = _chain(point, statement, known_as, depth)
    assert chain is not None
    return chain


def _chain(point: Point, statement: Statement[LinkedRow], root: str, depth: int) -> Chain | None:
    """Return the chain from a thing, breadth first, with each link and thing once; None if no thing has exactly this id."""
    onward = _onward(point, statement, root, depth)
    reached: dict[str, None] = {root: None}
    frontier, walked = [root], []
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
    beyond = any(far not in reached for near in frontier for far, _ in onward.get(near, ()))
    return chain_of(point, list(reached), walked, beyond)


def _onward(
    point: Point, statement: Statement[LinkedRow], root: str, depth: int
) -> dict[str, list[tuple[str, LinkedRow]]]:
    """Return for each thing the links that lead on from it, in order, each with the thing at its other end."""
    kinds = as_json(list(point.vocabulary.causal))
    rows = point.rows(statement, id=root, depth=min(depth, _UNLIMITED), kinds=kinds, undone=point.undone)
    found: dict[str, list[tuple[str, LinkedRow]]] = {}
    for row in rows:
        if row.respects_time:
            near, far = (row.source, row.target) if statement is CAUSES else (row.target, row.source)
            found.setdefault(near, []).append((far, row))
    return found
