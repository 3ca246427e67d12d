"""What a coordinate costs: at either end of a long history, by its name, for links that came and went, and when what is old weighs less."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.data import SEED
from benchmarks.timing import once, race, together
from graphstore.memory.recall import recall
from graphstore.values.decay import Decay

BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
STEPS = {"node": (1, 100, 10_000), "links_from": (1, 100, 1_000)}
LAST = BEGAN + timedelta(hours=10_000)
CALLS = 300
MICRO, MILLI = 1e-6, 1e-3
FACTS = 50_000


def long_histories(arena: Arena) -> Iterator[Row]:
    """A node and a link told anew each hour, read at the first, a middle and the last hour. The floor is the history of one step."""
    store = _told_each_hour()
    chance = random.Random(SEED)

    def ask(verb: str, steps: int, hour: int) -> Any:
        view = store.as_of(valid=BEGAN + timedelta(hours=hour, minutes=30), tx=LAST)
        return (
            view.node(f"n{steps}").content["hour"]
            if verb == "node"
            else view.links_from(f"a{steps}")[0].reason
        )

    def reads(verb: str, steps: int) -> float:
        return together(ask, [(verb, steps, chance.randrange(steps)) for _ in range(CALLS)])

    for verb, (one, *many) in STEPS.items():
        for steps in many:
            hours = (0, steps // 2, steps - 1)
            assert [str(hour) for hour in hours] == [str(ask(verb, steps, hour)) for hour in hours]
            lanes = {"ours": partial(reads, verb, steps), "floor": partial(reads, verb, one)}
            work = f"{verb} as of, its history {steps:,} steps long"
            budget = 12 * MICRO if verb == "node" else None
            yield arena.row(work, race(lanes, arena.turns), budget, "a history of one step")
    yield _by_name(arena, store)
    store.close()


def _told_each_hour() -> graphstore.GraphStore:
    """In a store of its own: nodes `n…` described anew, and `a… uses b…` said again with another reason, from each hour on."""
    store = graphstore.open(":memory:", clock=lambda: LAST)
    hours = [BEGAN + timedelta(hours=hour) for hour in range(max(STEPS["node"]))]
    with store.transaction(at=BEGAN - timedelta(days=1)):
        for steps, name in itertools.product(STEPS["links_from"], "ab"):
            store.add_node("fact", {}, id=f"{name}{steps}", valid_from=BEGAN)
        for steps in STEPS["links_from"]:
            for hour in range(steps):
                during = {"valid_from": hours[hour], "valid_to": hours[hour + 1]}
                store.link(f"a{steps}", "uses", f"b{steps}", reason=str(hour), **during)
    for hour, at in enumerate(hours):
        with store.transaction(at=at):
            for steps in STEPS["node"]:
                if hour == 0:
                    store.add_node("fact", {"hour": 0}, id=f"n{steps}", valid_from=at)
                elif hour < steps:
                    store.revise(f"n{steps}", {"hour": hour}, valid_from=at)
    return store


def _by_name(arena: Arena, store: graphstore.GraphStore) -> Row:
    """Among a thousand snapshots."""
    for number in range(1_000):
        store.snapshot(f"snapshot {number}")
    chance = random.Random(SEED)
    named = [(f"snapshot {chance.randrange(1_000)}",) for _ in range(CALLS)]
    at = [(one.valid, one.tx) for one in store.snapshots()][:CALLS]
    assert store.as_of("snapshot 7").at.tx == store.snapshots()[7].tx
    lanes = {
        "ours": lambda: together(store.as_of, named),
        "floor": lambda: together(lambda valid, tx: store.as_of(valid=valid, tx=tx), at),
    }
    return arena.row(
        "as_of(name) among 1,000 snapshots", race(lanes, arena.turns), None, "as_of(valid=, tx=)"
    )


def decayed(arena: Arena) -> Iterator[Row]:
    """Beside the same recall without decay, over facts of all ages; and what telling the accesses costs."""
    store = graphstore.open(":memory:")
    chance, vocabulary = random.Random(SEED), [f"word{number}" for number in range(2_000)]
    now = store.at.valid
    store.bulk_load(
        versions=[
            {
                "node_id": f"n{number}",
                "content": {"says": " ".join(chance.sample(vocabulary, 8)) + (" common" if number % 10 == 0 else "")},
                "valid_from": now - timedelta(days=chance.randrange(2_000)),
            }
            for number in range(FACTS)
        ]
    )  # fmt: skip
    view = store.as_of()
    recall(view, "common")
    for text, what in (("word5 word17", "two rare words"), ("common", "a word in ten says")):
        assert _weighed(view, text) == [hit.node.id for hit in recall(view, text, hops=0, decay=Decay())]
        lanes = {
            "ours": lambda text=text: once(partial(recall, view, text, decay=Decay()))[0],
            "floor": lambda text=text: once(partial(recall, view, text))[0],
        }
        yield arena.row(
            f"recall with decay, {what}, {FACTS:,} facts", race(lanes, arena.turns), None, "recall without"
        )
    took = []
    store.flush_accesses()
    for _ in range(arena.rounds):
        store.touch([f"n{number}" for number in range(1_000)])
        seconds, told = once(store.flush_accesses)
        assert told == 1_000
        took.append(seconds)
    yield arena.row("accesses of 1,000 things told", {"ours": median(took)}, None, "")
    store.close()


def _weighed(view: Any, text: str) -> list[str]:
    """The ten best of all matches, each score multiplied by the weight."""
    plain = {hit.node.id: hit.text_score for hit in recall(view, text, FACTS, hops=0)}
    weights = {hit.node.id: hit.weight for hit in recall(view, text, FACTS, hops=0, decay=Decay())}
    return sorted(plain, key=lambda id: (-plain[id] * weights[id], id))[:10]
