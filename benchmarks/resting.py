"""What it costs that things are shaky: a hundred thousand that rest on one, which then falls; a node that rests on nothing is the floor."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import apart, once, race, together

DEPENDANTS, LISTED = 100_000, 1_000
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
CALLS = 300
MICRO, MILLI = 1e-6, 1e-3


def fill(store: graphstore.GraphStore) -> None:
    """One ground with what rests on it, others without, and things that rest on nothing."""
    names = ["ground", *(f"apart-{number}" for number in range(DEPENDANTS // 100))]
    resting = [f"thing-{number}" for number in range(DEPENDANTS)]
    store.bulk_load(
        versions=[{"node_id": id, "content": {"what": id}, "valid_from": SINCE} for id in [*names, *resting]],
        links=[
            {"source": id, "kind": "derived_from", "target": "ground", "valid_from": SINCE} for id in resting
        ],
    )


def resting(arena: Arena) -> Iterator[Row]:
    store = graphstore.open(arena.folder / "resting")
    fill(store)
    assert store.shaky() == []

    def row(work: str, took: dict[str, float], budget: float | None, floor_is: str) -> Row:
        made = arena.row(work, took, budget, floor_is)
        made.size = f"{DEPENDANTS // 1_000}k links"
        return made

    alone = iter([(f"apart-{number}",) for number in range(DEPENDANTS // 200)])
    idle, marked = [], []
    for turn in range(arena.turns):  # the ground falls, and stands again under another description
        idle += apart(lambda id: store.retract(id, reason="wrong"), itertools.islice(alone, 5))
        marked += apart(lambda: store.retract("ground", reason="wrong"), [()])
        assert store.node(f"thing-{turn}").standing == "shaky"
        store.revise("ground", {"what": "ground"}, valid_from=SINCE)
        assert store.node(f"thing-{turn}").standing == "stands"
    took = {"ours": median(marked), "floor": median(idle)}
    yield row(
        f"retract what {DEPENDANTS:,} rest on", took, 2 * took["floor"], "retract what nothing rests on"
    )

    store.retract("ground", reason="wrong")
    view = store.as_of()
    found = view.shaky(limit=LISTED)
    assert [f"thing-{number}" for number in range(LISTED)] == [one.node.id for one in found]
    assert {("ground", 1)} == {(one.root.id, len(one.links)) for one in found}
    listed = [once(lambda: view.shaky(limit=LISTED))[0] for _ in range(arena.turns)]
    yield row(f"shaky(limit={LISTED:,})", {"ours": median(listed)}, 100 * MILLI, "")

    things = itertools.cycle([(f"thing-{number}",) for number in range(0, DEPENDANTS, 7)])
    others = itertools.cycle([(f"apart-{number}",) for number in range(DEPENDANTS // 200, DEPENDANTS // 100)])
    lanes = {
        "ours": lambda: together(view.node, list(itertools.islice(things, CALLS))),
        "floor": lambda: together(view.node, list(itertools.islice(others, CALLS))),
    }
    yield row("node(id), shaky", race(lanes, arena.turns), 30 * MICRO, "node(id) that rests on nothing")
    store.close()
