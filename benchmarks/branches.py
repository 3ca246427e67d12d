"""What a branch costs: to begin one, to ask it first, to merge a thousand changes. A small store is the floor: its size is to make no difference."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import apart, once

DEPTH, SMALL, CHANGES = 10, 100, 1_000
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
MILLI = 1e-3


def filled(store: graphstore.GraphStore, nodes: int) -> graphstore.GraphStore:
    """Nodes of ten versions each, and three links a node."""
    names = [f"thing-{number}" for number in range(nodes)]
    store.bulk_load(
        versions=[
            {
                "node_id": name,
                "content": {"turn": turn, "says": "so it was then"},
                "valid_from": SINCE + timedelta(days=turn),
            }
            for name in names
            for turn in range(DEPTH)
        ],
        links=[
            {
                "source": name,
                "kind": "related_to",
                "target": names[(number + step) % nodes],
                "valid_from": SINCE,
            }
            for number, name in enumerate(names)
            for step in (1, 2, 3)
        ],
    )
    return store


def branches(arena: Arena) -> Iterator[Row]:
    nodes = arena.data.versions.num_rows // DEPTH
    store = filled(graphstore.open(arena.folder / "branches"), nodes)
    small = filled(graphstore.open(arena.folder / "branches_small"), SMALL)

    begun = {
        name: median(apart(line.branch, [(f"begun-{number}",) for number in range(5 * arena.turns)]))
        for name, line in (("ours", store), ("floor", small))
    }
    assert len(store.branches()) == 5 * arena.turns
    yield arena.row("branch(name)", begun, 10 * MILLI, "the same in a store of 1,000 versions")

    first: list[float] = []
    told: dict[str, list[float]] = {"ours": [], "floor": []}
    for turn in range(arena.turns):
        branch = store.on(f"begun-{turn}")
        seconds, node = once(lambda branch=branch: branch.node("thing-1"))
        assert node.content == {"turn": DEPTH - 1, "says": "so it was then"}
        first.append(seconds)
        for number in range(5):
            for name, line in (("ours", branch), ("floor", store)):
                told[name] += apart(line.revise, [(f"thing-{number}", {"turn": turn})])
    yield arena.row("the first question to a branch", {"ours": median(first)}, None, "")
    took = {name: median(seconds) for name, seconds in told.items()}
    yield arena.row("revise on a branch", took, 2 * took["floor"], "revise on the trunk")

    merged = []
    for turn in range(arena.turns):
        branch = store.branch(f"merged-{turn}")
        with branch.transaction():
            for number in range(CHANGES):
                branch.revise(f"thing-{number % nodes}", {"merged": turn, "n": number})
        compared = store.compare(f"merged-{turn}")
        assert min(CHANGES, nodes) == len(compared.changed)
        seconds, done = once(lambda turn=turn: store.merge(f"merged-{turn}"))
        assert done.merged and len(done.changed) == min(CHANGES, nodes)
        assert not store.compare(f"merged-{turn}")
        merged.append(seconds)
    yield arena.row(f"merge of {CHANGES:,} changes", {"ours": median(merged)}, 2.0, "")
    store.close()
    small.close()
