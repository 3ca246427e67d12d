"""What reads cost, in steps of the interpreter, at two sizes: nothing grows beyond what it answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, View, recall
from graphstore.events.report import history_report
from graphstore.ledger.readings import Agent, AnswerToRecord
from tests.conftest import Clock, after
from tests.support.steps import steps

pytestmark = pytest.mark.in_process("counts the steps inside this process")

FEW, MANY = 200, 1_000
FLAT = 1.5
"""How many times the steps of a read may grow whose answer is as long at both sizes."""
LINEAR = 1.2
"""And of one that grows with its answer, beside the sizes."""
SINCE = "2026-01-01"

Read = Callable[[GraphStore, View], object]

LEAVES = ("leaf-1", "leaf-2", "leaf-3")
"""Things on which nothing rests: who changes one pays for nothing else."""


def crowd(size: int, path: str | Path = ":memory:") -> GraphStore:
    """So many that rest on one another, and have nothing to do with those that are asked for."""
    store = graphstore.open(path, clock=(clock := Clock()))
    store.bulk_load(
        versions=[
            {"node_id": id, "content": {"what": id}, "valid_from": SINCE}
            for id in (*(f"c{n}" for n in range(size)), "one", "two", "three", "roof", "ground", *LEAVES)
        ],
        events=[
            {"id": f"e{n}", "type": "error", "description": f"boom {n}", "occurred_at": SINCE}
            for n in range(size // 4)
        ],
        links=[
            {"source": f"c{n}", "kind": kind, "target": f"c{n // 2}", "valid_from": SINCE}
            for n in range(1, size)
            for kind in ("derived_from", "reference")
        ]
        + [{"source": leaf, "kind": "derived_from", "target": "c5", "valid_from": SINCE} for leaf in LEAVES],
    )
    store.link("roof", "derived_from", "ground", valid_from=SINCE)
    store.retract("ground", reason="wrong")
    store.supersede("one", by="two", valid_from="2026-01-10")
    store.supersede("two", by="three", valid_from="2026-01-12")
    store.link("one", "contradicts", "three", valid_from=SINCE)
    store.add_node("fact", {}, id="0123456789abcdef", key="door")
    store.link("two", "uses", "one", id="lnk_0123456789abcdef")
    store.add_node("rule", {"what": "rare"}, id="rare", scope="aside", tags=["seldom"], valid_from=SINCE)
    store.record_event("deploy", "the only one", occurred_at="2026-01-10")
    clock.move(days=2)
    return store


def answered(store: GraphStore, ids: list[str]) -> None:
    """Record an answer that contained each of these things."""
    valid, tx = store.coordinate()
    recorder = store._record_reads()
    for id in ids:
        recorder.add(AnswerToRecord(Agent("ben"), "get", store._now(), valid, tx, {"things": [{"id": id}]}))
    recorder.flush()


def deep(size: int) -> GraphStore:
    """One of so many versions, what it rests on, which ended, and what rests on it."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    with store.transaction():
        for id in ("ground", "roof", "deep"):
            store.add_node("fact", {"n": 0}, id=id, valid_from=SINCE)
        store.link("deep", "derived_from", "ground", valid_from=SINCE)
        store.link("roof", "derived_from", "deep", valid_from=SINCE)
    clock.set(after(20 * size))
    store.bulk_load(
        versions=[
            {"node_id": "deep", "content": {"n": n}, "valid_from": after(n), "tx_from": after(10 * n)}
            for n in range(1, size)
        ]
    )
    store.end("ground", at=after(3))
    clock.move(days=2)
    return store


def undone(size: int) -> GraphStore:
    """`deep`, and something else was said and undone."""
    store = deep(size)
    store.undo(store.add_node("fact", {}, id="slip").tx_from, reason="a slip")
    return store


def fallen(size: int) -> GraphStore:
    """`deep`, all of which was taken back."""
    store = deep(size)
    store.retract("deep", reason="wrong")
    return store


def hub(size: int) -> GraphStore:
    """One on which so many rest, and which refers to as many, of which few do still; it rests on what was taken back."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    leaves = [f"leaf-{n}" for n in range(size)]
    store.bulk_load(
        versions=[{"node_id": id, "content": {}, "valid_from": SINCE} for id in (*leaves, "hub", "low")],
        links=[
            *({"source": id, "kind": "derived_from", "target": "hub", "valid_from": SINCE} for id in leaves),
            *(
                {
                    "source": "hub",
                    "kind": "reference",
                    "target": id,
                    "valid_from": SINCE,
                    "valid_to": "2026-01-03",
                }
                for id in leaves
            ),
        ],
    )
    store.link("hub", "derived_from", "low", valid_from=SINCE)
    store.link("hub", "uses", "low", valid_from=SINCE)
    store.retract("low", reason="wrong")
    clock.move(days=2)
    return store


def deep_hub(size: int) -> GraphStore:
    """One that was described many times, on which so many rest."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    leaves = [f"leaf-{n}" for n in range(size)]
    store.bulk_load(
        versions=[{"node_id": id, "content": {}, "valid_from": SINCE} for id in (*leaves, "hub")],
        links=[{"source": id, "kind": "derived_from", "target": "hub", "valid_from": SINCE} for id in leaves],
    )
    for n in range(size // 6):
        clock.move(seconds=1)
        store.revise("hub", {"n": n})
    clock.move(seconds=1)
    return store


def slot(size: int) -> GraphStore:
    """A slot with so many values, one after another, beside a slot with one."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    names = [f"value-{n}" for n in range(size)]
    store.bulk_load(
        nodes=[{"id": id, "kind": "fact", "key": id if id == "value-0" else "k"} for id in names],
        versions=[
            {"node_id": id, "content": {"n": n}, "valid_from": after(n), "valid_to": after(n + 1)}
            for n, id in enumerate(names)
        ],
    )
    clock.set(after(20 * size))
    return store


def pair(size: int) -> GraphStore:
    """Two with so many links between them, one after another, and as many to others; both ways."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    leaves = [f"leaf-{n}" for n in range(size)]
    store.bulk_load(
        versions=[{"node_id": id, "content": {}, "valid_from": SINCE} for id in (*leaves, "left", "right")],
        links=[
            *(
                {
                    "source": "left",
                    "kind": "uses",
                    "target": "right",
                    "valid_from": after(2 * n),
                    "valid_to": after(2 * n + 1),
                }
                for n in range(size)
            ),
            *({"source": "left", "kind": "reference", "target": id, "valid_from": SINCE} for id in leaves),
            *({"source": id, "kind": "uses", "target": "right", "valid_from": SINCE} for id in leaves),
        ],
    )
    store.link("left", "supports", "right", valid_from=SINCE)
    clock.set(after(20 * size))
    return store


def _happens(store: GraphStore) -> None:
    """One more event of a type of which there are few."""
    store.record_event("fix", f"again {next(NUMBERS)}", occurred_at=SINCE)


def _in_a_transaction(store: GraphStore) -> None:
    """A read between writes that are taken back."""
    with suppress(ZeroDivisionError), store.transaction():
        store.add_node("rule", {"what": "never"})
        assert len(store.nodes("rule")) == 2
        raise ZeroDivisionError


FLAT_READS: list[tuple[Callable[[int], GraphStore], str, Read]] = [
    (crowd, "node", lambda _, view: view.node("three")),
    (crowd, "node that is shaky", lambda _, view: view.node("roof")),
    (crowd, "event", lambda _, view: view.event("e1")),
    (crowd, "knows", lambda _, view: view.knows("one")),
    (crowd, "links_from", lambda _, view: view.links_from("one")),
    (crowd, "backlinks_to", lambda _, view: view.backlinks_to("one")),
    (crowd, "link_history", lambda _, view: view.link_history("two", "supersedes", "one")),
    (crowd, "inspect", lambda _, view: view.inspect("one")),
    (crowd, "inspect of a link", lambda _, view: view.inspect("lnk_0123456789abcdef")),
    (crowd, "grounds", lambda _, view: view.grounds("c99")),
    (crowd, "grounds of what is shaky", lambda _, view: view.grounds("roof")),
    (crowd, "readers_of", lambda store, _: store.readers_of("one")),
    (crowd, "history", lambda _, view: view.history("one")),
    (crowd, "versions", lambda _, view: view.versions("one")),
    (crowd, "diff", lambda _, view: view.diff("one", 1, 1)),
    (crowd, "operations", lambda _, view: view.operations("one")),
    (crowd, "operations of a link", lambda _, view: view.operations("lnk_0123456789abcdef")),
    (crowd, "whole_id", lambda _, view: view.whole_id("01234567")),
    (crowd, "whole_id of a link", lambda _, view: view.whole_id("lnk_01234567")),
    (crowd, "what_superseded", lambda _, view: view.what_superseded("one")),
    (crowd, "supersedes", lambda _, view: view.supersedes("three")),
    (crowd, "causes", lambda _, view: view.causes("one")),
    (crowd, "effects", lambda _, view: view.effects("one")),
    (crowd, "walk", lambda _, view: view.walk("one")),
    (crowd, "path", lambda _, view: view.path("two", "one")),
    (crowd, "paths", lambda _, view: view.paths("two", "one")),
    (crowd, "shaky", lambda _, view: view.shaky()),
    (crowd, "contradiction", lambda _, view: view.contradiction("one", "three")),
    (crowd, "contradictions of", lambda _, view: view.contradictions(of="one")),
    (crowd, "nodes of a key", lambda _, view: view.nodes(key="door")),
    (crowd, "nodes of a kind", lambda _, view: view.nodes("rule")),
    (crowd, "nodes of a scope", lambda _, view: view.nodes(scope="aside")),
    (crowd, "nodes of a kind and a scope", lambda _, view: view.nodes("fact", scope="aside")),
    (crowd, "nodes with a tag", lambda _, view: view.nodes(tag="seldom")),
    (crowd, "nodes as was known", lambda store, _: store.knowledge_at(SINCE).nodes("fact")),
    (crowd, "scan of a kind", lambda _, view: view.scan("rule", content=True)),
    (crowd, "scan with a tag", lambda _, view: view.scan(tag="seldom")),
    (crowd, "events of a type", lambda _, view: view.events("deploy")),
    (crowd, "events of a time", lambda _, view: view.events(since="2026-01-05", until="2026-01-15")),
    (crowd, "events by a past day", lambda store, _: store.as_of(valid="2025-12-31").events()),
    (crowd, "events after a write", lambda store, _: (_happens(store), store.events("fix"))),
    (crowd, "nodes in a transaction", lambda store, _: _in_a_transaction(store)),
    (crowd, "what happened", lambda _, view: history_report(view, type="deploy", since="30d")),
    (crowd, "recall by a kind", lambda _, view: recall.recall(view, "", kinds="rule")),
    (crowd, "contradictions that are recorded", lambda _, view: view.contradictions(candidates=False)),
    (crowd, "events related to", lambda _, view: view.events(related_to="one")),
    (crowd, "node on a past day", lambda store, _: store.as_of(valid=next(DAYS)).node("c99")),
    (crowd, "node after a write", lambda store, _: (store.confirm("c99", reason="seen"), store.node("c99"))),
    (crowd, "as it was known", lambda store, view: store.knowledge_at(view.at.tx).node("three")),
    (crowd, "changes since a day", lambda store, view: store.changes(since=view.at.tx - timedelta(days=1))),
    (crowd, "snapshots", lambda store, _: store.snapshots()),
    (crowd, "branches", lambda store, _: store.branches()),
    (crowd, "stats", lambda store, _: store.stats()),
    (crowd, "query of one", lambda _, view: view.query("MATCH (n:Node {id: 'one'}) RETURN n.id").rows()),
    (
        crowd,
        "query_tables of one",
        lambda store, _: store.query_tables("MATCH (n:Node {id: 'one'}) RETURN n.id").rows(),
    ),
    (crowd, "recipe", lambda store, _: store.recipe("why", id="one").rows()),
    (deep, "node", lambda _, view: view.node("deep")),
    (deep, "node on a past day", lambda store, _: store.as_of(valid=next(DAYS)).node("deep")),
    (deep, "node as was believed", lambda store, _: store.as_of(valid=after(9), tx=after(99)).node("deep")),
    (deep, "node that rests on it", lambda _, view: view.node("roof")),
    (deep, "links_from", lambda _, view: view.links_from("deep")),
    (deep, "backlinks_to", lambda _, view: view.backlinks_to("deep")),
    (deep, "grounds", lambda _, view: view.grounds("deep")),
    (deep, "grounds of what rests on it", lambda _, view: view.grounds("roof")),
    (deep, "what_superseded", lambda _, view: view.what_superseded("deep")),
    (deep, "a version", lambda _, view: view.node("deep-v3")),
    (deep, "a version as was believed", lambda store, _: store.as_of(tx=after(99)).node("deep-v3")),
    (deep, "diff", lambda _, view: view.diff("deep", 1, 3)),
    (deep, "changes between two days", lambda store, _: store.changes(since=after(30), until=after(60))),
    (
        deep,
        "changes_table between two days",
        lambda store, _: store.changes_table(after(30), after(60)).to_arrow(),
    ),
    (undone, "node as was believed", lambda store, _: store.as_of(valid=after(9), tx=after(99)).node("deep")),
    (undone, "a version as was believed", lambda store, _: store.as_of(tx=after(99)).node("deep-v3")),
    (undone, "node on a past day", lambda store, _: store.as_of(valid=next(DAYS)).node("deep")),
    (undone, "grounds of what rests on it", lambda _, view: view.grounds("roof")),
    (undone, "links_from", lambda _, view: view.links_from("deep")),
    (fallen, "links_from what rested on it", lambda _, view: view.links_from("roof")),
    (fallen, "backlinks_to", lambda _, view: view.backlinks_to("deep")),
    (fallen, "what_superseded", lambda _, view: view.what_superseded("deep")),
    (hub, "node", lambda _, view: view.node("hub")),
    (hub, "node on a past day", lambda store, _: store.as_of(valid=next(DAYS)).node("hub")),
    (hub, "node that rests on it", lambda _, view: view.node("leaf-3")),
    (hub, "links_from", lambda _, view: view.links_from("hub")),
    (hub, "links_from of a kind", lambda _, view: view.links_from("hub", "uses")),
    (hub, "links_from of what rests on it", lambda _, view: view.links_from("leaf-3")),
    (hub, "grounds", lambda _, view: view.grounds("hub")),
    (hub, "grounds of what rests on it", lambda _, view: view.grounds("leaf-3")),
    (hub, "what_superseded", lambda _, view: view.what_superseded("hub")),
    (hub, "causes", lambda _, view: view.causes("hub")),
    (hub, "operations", lambda _, view: view.operations("hub")),
    (hub, "path", lambda _, view: view.path("leaf-3", "low")),
    (hub, "the first that is shaky", lambda _, view: view.shaky(limit=1)),
    (deep_hub, "grounds of what rests on it", lambda _, view: view.grounds("leaf-3")),
    (pair, "links_from of a kind", lambda store, _: store.as_of(valid=after(6.5)).links_from("left", "uses")),
    (pair, "link_history of one link", lambda _, view: view.link_history("left", "supports", "right")),
    (slot, "node", lambda store, _: store.as_of(valid=after(3.5)).node("value-3")),
    (slot, "nodes of a key", lambda store, _: store.as_of(valid=after(0.5)).nodes(key="value-0")),
    (slot, "what_superseded", lambda _, view: view.what_superseded("value-3")),
]

LINEAR_READS: list[tuple[Callable[[int], GraphStore], str, Read]] = [
    (crowd, "nodes", lambda _, view: view.nodes()),
    (crowd, "scan", lambda _, view: view.scan()),
    (crowd, "events", lambda _, view: view.events()),
    (crowd, "compare", lambda store, view: view.compare(store.as_of(valid="2026-01-11"))),
    (crowd, "contradictions", lambda _, view: view.contradictions()),
    (crowd, "changes", lambda store, _: store.changes()),
    (crowd, "to_arrow", lambda _, view: view.to_arrow()),
    (crowd, "to_networkx", lambda _, view: view.to_networkx()),
    (crowd, "query", lambda _, view: view.query("MATCH (n:Node) RETURN n.id").rows()),
    (crowd, "over", lambda store, _: store.over(valid=("2026-01-05", "2026-01-15", "1 day")).nodes()),
    (crowd, "history_table", lambda store, _: store.history_table().to_arrow()),
    (crowd, "links_table", lambda store, _: store.links_table().to_arrow()),
    (crowd, "changes_table", lambda store, _: store.changes_table().to_arrow()),
    (crowd, "changes_to", lambda store, view: view.changes_to(store.as_of(valid="2026-01-11")).to_arrow()),
    (crowd, "verify", lambda store, _: store.verify()),
    (crowd, "sweep", lambda store, _: store.sweep()),
    (crowd, "without", lambda store, _: store.without(id="rare")),
    (
        deep,
        "over its versions",
        lambda store, _: store.over(valid=(after(0), after(300), "1 second")).nodes(),
    ),
    (deep, "changes_table", lambda store, _: store.changes_table().to_arrow()),
    (deep, "history", lambda _, view: view.history("deep")),
    (deep, "versions", lambda _, view: view.versions("deep")),
    (deep, "inspect", lambda _, view: view.inspect("deep")),
    (deep, "operations", lambda _, view: view.operations("deep")),
    (fallen, "grounds of what rested on it", lambda _, view: view.grounds("roof")),
    (deep, "what became of its first version", lambda _, view: view.what_superseded("deep-v1")),
    (hub, "backlinks_to", lambda _, view: view.backlinks_to("hub")),
    (hub, "inspect", lambda _, view: view.inspect("hub")),
    (hub, "walk", lambda _, view: view.walk("leaf-3")),
    (hub, "shaky", lambda _, view: view.shaky()),
    (hub, "node after a write", lambda store, _: (store.confirm("hub", reason="seen"), store.node("leaf-3"))),
    (deep_hub, "shaky", lambda _, view: view.shaky()),
    (
        deep_hub,
        "shaky after a write",
        lambda store, _: (store.confirm("leaf-3", reason="seen"), store.shaky(limit=9)),
    ),
    (
        deep_hub,
        "nodes after a write",
        lambda store, _: (store.confirm("leaf-3", reason="seen"), store.nodes()),
    ),
    (pair, "link_history", lambda _, view: view.link_history("left", "uses", "right")),
    (slot, "nodes of the key", lambda store, _: store.as_of(valid=after(3.5)).nodes(key="k")),
    (slot, "contradictions", lambda _, view: view.contradictions()),
]

NUMBERS = itertools.count()
DAYS = (f"2026-01-2{day}" for day in itertools.cycle(range(9)))
_stores: dict[tuple[Callable[[int], GraphStore], int], GraphStore] = {}


@pytest.fixture(scope="module", autouse=True)
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the crowds lie in files that were closed and opened again. All worlds are closed at the end."""
    for size in (FEW, MANY):
        path = tmp_path_factory.mktemp("crowd") / f"{size}.gs"
        crowd(size, path).close()
        _stores[crowd, size] = store = graphstore.open(path, clock=(clock := Clock()))
        clock.move(days=3)
        answered(store, ["one", *(f"c{n}" for n in range(size))])
    yield
    for store in _stores.values():
        store.close()
    _stores.clear()


def store_of(world: Callable[[int], GraphStore], size: int) -> GraphStore:
    if (world, size) not in _stores:
        _stores[world, size] = world(size)
    return _stores[world, size]


def growth(world: Callable[[int], GraphStore], read: Read) -> float:
    """How many times the steps of a read grow, the second time that it is asked."""
    counted = []
    for size in (FEW, MANY):
        store = store_of(world, size)
        read(store, store.as_of())
        view = store.as_of()
        counted.append(steps(lambda store=store, view=view: read(store, view)))  # type: ignore[misc]
    return counted[1] / counted[0]


def named(read: tuple[Callable[[int], GraphStore], str, Read]) -> str:
    return f"{read[0].__name__}: {read[1]}"


WHOLE_PAST = {"fallen: what_superseded", "hub: the first that is shaky"}
"""Reads that follow the whole past of a thing, or all that is shaky, by rows; the index in memory does not."""


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(
            read, marks=pytest.mark.xfail(named(read) in WHOLE_PAST, reason="rows are all read", strict=True)
        )
        for read in FLAT_READS
    ],
    ids=named,
)
def test_a_read_costs_the_same_however_much_there_is_beside_its_answer(read) -> None:
    world, _, asked = read
    assert growth(world, asked) < FLAT


@pytest.mark.parametrize("read", LINEAR_READS, ids=named)
def test_a_read_grows_with_its_answer_and_no_faster(read) -> None:
    world, _, asked = read
    assert growth(world, asked) < LINEAR * MANY / FEW


@pytest.mark.parametrize("read", ["operations", "whole_id"])
def test_what_is_made_at_the_first_call_grows_with_the_store_and_no_faster(tmp_path: Path, read: str) -> None:
    counted = []
    for size in (FEW, MANY):
        crowd(size, tmp_path / f"{size}.gs").close()
        with graphstore.open(tmp_path / f"{size}.gs") as store:
            store.inspect("c7")
            counted.append(steps(lambda store=store: getattr(store, read)("c5")))  # type: ignore[misc]
    assert counted[1] / counted[0] < LINEAR * MANY / FEW
