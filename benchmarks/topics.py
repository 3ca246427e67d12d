"""What it costs to ask for a topic among ten thousand nodes: by key and by tag, beside the read of the node that is the answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import once, race, together
from graphstore import topics as room

TOPICS, CALLS = 5_000, 300
MICRO, MILLI = 1e-6, 1e-3


def fill(store: graphstore.GraphStore, topics: int) -> None:
    """Two statements a topic: half of the topics have one that superseded the other, the other half two that never met."""
    names = range(topics)
    store.bulk_load(
        nodes=[
            {"id": f"{age}{number}", "kind": "fact", "key": f"{_alone(number, age)}topic_{number}_v{version}"}
            for number in names
            for version, age in ((1, "old"), (2, "new"))
        ],
        versions=[
            {
                "node_id": f"{age}{number}",
                "content": {"says": f"{age} {number}", "sprint": version},
                "text": f"the {age} way of topic {number}",
                "tags": [f"{_alone(number, age)}tag-{number}"],
                "valid_from": f"2026-0{version}-01",
            }
            for number in names
            for version, age in ((1, "old"), (2, "new"))
        ],
        links=[
            {
                "source": f"new{number}",
                "kind": "supersedes",
                "target": f"old{number}",
                "valid_from": "2026-02-01",
            }
            for number in names
            if number % 2 == 0
        ],
    )


def _alone(number: int, age: str) -> str:
    return "other_" if number % 2 and age == "old" else ""


def topics(arena: Arena) -> Iterator[Row]:
    store = graphstore.open(arena.folder / "topics")
    count = arena.scaled(TOPICS)
    fill(store, count)
    view = store.as_of()
    first = [once(partial(room.latest_on, view, name))[0] for name in ("topic_0", "tag-0")]
    changed, alone = range(0, count, 2), range(1, count, 2)
    for number in (*changed[:50], *alone[:50]):
        found = [room.latest_on(view, name.format(number)) for name in ("topic_{}", "tag-{}")]
        before = [] if number % 2 else [f"old{number}"]
        for each in found:
            assert (f"new{number}", before) == (each.node.id, [one.id for one in each.previous])

    def lane(work: Callable[..., Any], form: str, numbers: range) -> Callable[[], float]:
        calls = itertools.cycle([(form.format(number),) for number in numbers])
        return lambda: together(work, list(itertools.islice(calls, CALLS)))

    def row(work: str, took: dict[str, float], budget: float | None, floor_is: str = "") -> Row:
        made = arena.row(work, took, budget, floor_is)
        made.size = f"{2 * count:,} nodes"
        return made

    latest = partial(room.latest_on, view)
    for work, form, numbers in (
        ("latest_on a key, nothing before it", "topic_{}", alone),
        ("latest_on a key, and what it was before", "topic_{}", changed),
        ("latest_on a tag, nothing before it", "tag-{}", alone),
        ("latest_on a tag, and what it was before", "tag-{}", changed),
    ):
        took = race(
            {"ours": lane(latest, form, numbers), "floor": lane(view.node, "new{}", numbers)}, arena.turns
        )
        yield row(work, took, 2 * took["floor"], "view.node(id)")
    yield row("the first question for a key", {"ours": first[0]}, None)
    yield row("the first question for a tag", {"ours": first[1]}, None)
    unknown = [once(partial(latest, f"nowhere{number}"))[0] for number in range(arena.turns)]
    yield row("an unknown topic, with those like it", {"ours": median(unknown)}, 100 * MILLI)
    store.close()
