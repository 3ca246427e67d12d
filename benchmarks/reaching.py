"""Measure writes by what they reach: a fact on which others rest is retracted, the retraction is undone, and a dependant is confirmed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import graphstore
from benchmarks import ours
from benchmarks.arena import Arena, Limit, Row
from benchmarks.data import shape
from benchmarks.promises import REACH, RECOMPUTE
from benchmarks.timing import apart, once, race, together

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
CALLS, LISTED = 300, 1_000
MILLI = 1e-3


def reaching(arena: Arena) -> Iterator[Row]:
    """Yield the rows of a notebook, a web, a chain and a hub. The limits are about p99: of a few calls, the slowest."""
    notebook = arena.shape("notebook")
    rests: dict[str, str] = {}
    for link in notebook.data.links.to_pylist():
        if link["kind"] == "derived_from":
            rests[link["target"]] = link["source"]
    step = max(len(rests) // (10 if arena.quick else 300), 1)
    chosen = [(id, dependant, dependant) for id, dependant in list(rests.items())[::step]]
    yield from _falls(arena, "a notebook", notebook.stores["ours"], chosen, 2, 3)
    for name, things, reached, recomputed in (("web", 20_000, 300, 300), ("chain", 10_000, None, 50)):
        lone = Arena(
            arena.size,
            shape(name, arena.scaled(things), superseded=0),
            arena.folder / f"lone_{name}",
            {"ours": ours},
        )
        lone.load()
        first, second, *_, last = lone.data.nodes["id"].to_pylist()
        calls = [(first, second, last)] * arena.rounds
        yield from _falls(
            arena, f"{name} of {arena.scaled(things):,}", lone.stores["ours"], calls, reached, recomputed
        )
        lone.close()
    yield from _hub(arena)


def _falls(
    arena: Arena,
    what: str,
    store: graphstore.GraphStore,
    calls: list[tuple[str, str, str]],
    reached: float | None,
    recomputed: float | None,
) -> Iterator[Row]:
    """Retract a thing on which another and a far one rest, and undo that. Revise it, and confirm the one that rests on it. Limits are in ms."""
    times: dict[str, list[float]] = {"reached": [], "undone": [], "confirmed": []}
    for id, _, far in calls:
        before = _standing(store, far)
        times["reached"] += apart(partial(store.retract, id, reason="wrong"), [()])
        after = _standing(store, far)
        assert after == "shaky" or after == before != "stands", far
        times["undone"] += apart(partial(store.undo, store.at.tx, reason="it was right"), [()])
        assert _standing(store, far) == before, far
    for turn, (id, dependant, far) in enumerate(calls):
        if _standing(store, dependant) == "stands":
            store.revise(id, {"says": f"otherwise {turn}"})
            assert "shaky" == _standing(store, dependant) == _standing(store, far), (dependant, far)
            times["confirmed"] += apart(partial(store.confirm, dependant, reason="looked at again"), [()])
            assert _standing(store, dependant) == "stands", dependant
    for work, name, limit, promise in (
        (f"retract what others rest on, {what}", "reached", reached, REACH),
        (f"undo of that, {what}", "undone", recomputed, RECOMPUTE),
        (f"a recheck, {what}", "confirmed", recomputed, RECOMPUTE),
    ):
        limits = (Limit(limit * MILLI, tail=True),) if limit else ()
        row = arena.row(work, {}, limits, promise=promise if limits else "")
        yield arena.spread(row, {"ours": times[name]}, set())


def _standing(store: graphstore.GraphStore, id: str) -> str:
    try:
        return store.node(id).standing
    except graphstore.NotFoundError:
        return "not there"


def _hub(arena: Arena) -> Iterator[Row]:
    """Measure a thing on which 100,000 rest, a read of one of them, and the list of those that are shaky."""
    many = arena.scaled(100_000)
    store = graphstore.open(arena.folder / "resting")
    names = ["ground", *(f"apart-{number}" for number in range(many // 100))]
    resting = [f"thing-{number}" for number in range(many)]
    store.bulk_load(
        versions=[{"node_id": id, "content": {"what": id}, "valid_from": SINCE} for id in [*names, *resting]],
        links=[
            {"source": id, "kind": "derived_from", "target": "ground", "valid_from": SINCE} for id in resting
        ],
    )
    assert store.shaky() == []
    calls = [("ground", f"thing-{turn}", f"thing-{turn}") for turn in range(arena.rounds)]
    yield from _falls(arena, f"a hub of {many:,}", store, calls, 700, None)

    store.retract("ground", reason="wrong")
    view, listed = store.as_of(), min(LISTED, many)
    found = view.shaky(limit=listed)
    assert [f"thing-{number}" for number in range(listed)] == [one.node.id for one in found]
    took = [once(lambda: view.shaky(limit=listed))[0] for _ in range(arena.turns)]
    yield arena.spread(arena.row(f"shaky(limit={listed:,})", {}), {"ours": took}, set())

    def lane(ids: list[str]) -> Callable[[], float]:
        calls = itertools.cycle([(id,) for id in ids])
        return lambda: together(view.node, list(itertools.islice(calls, CALLS)))

    lanes = {"ours": lane(resting[::7]), "floor": lane(names[1:])}
    yield arena.row("node(id), shaky", race(lanes, arena.turns), None, "node(id) that rests on nothing")
    store.close()
