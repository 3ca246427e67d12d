"""What verbs cost, in steps of the interpreter, at two sizes: no verb looks through what it was not told about."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, Link, Node, NotFoundError, View
from tests.conftest import Clock, after
from tests.stories.test_costs import (
    FEW,
    FLAT,
    FLAT_READS,
    LINEAR,
    LINEAR_READS,
    MANY,
    SINCE,
    crowd,
    deep,
    hub,
    pair,
    slot,
)
from tests.support.steps import statement_steps, steps

pytestmark = pytest.mark.in_process("counts the steps inside this process")

Verb = Callable[[GraphStore, str], object]


def replaced(size: int) -> GraphStore:
    """So many that were superseded, one by one, and as many settings."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    with store.transaction():
        for n in range(size):
            store.add_node("fact", {"n": n}, id=f"old-{n}", valid_from=SINCE)
    for n in range(size):
        clock.move(seconds=1)
        store.add_node("fact", {"n": n}, id=f"next-{n}", supersedes=f"old-{n}")
        store.snapshot(f"after {n}")
    return store


def layers(size: int) -> GraphStore:
    """One that was described so often, and what rests on it, which was confirmed as often."""
    store = graphstore.open(":memory:", clock=(clock := Clock()))
    store.add_node("fact", {"n": -1}, id="base", valid_from=SINCE)
    for n in range(20):  # of few a read would look at all
        store.add_node("fact", {}, id=f"aside-{n}", derived_from="base", valid_from=SINCE)
    store.add_node("fact", {}, id="middle", derived_from="base", valid_from=SINCE)
    store.add_node("fact", {}, id="top", derived_from="middle", valid_from=SINCE)
    for n in range(size):
        clock.move(seconds=1)
        store.revise("base", {"n": n})
        store.confirm("middle", reason="still so")
    clock.move(seconds=1)
    return store


def kinds(size: int) -> GraphStore:
    """So many kinds of links."""
    store = graphstore.open(":memory:", clock=Clock())
    with store.transaction():
        for n in range(size):
            store.define_kind(f"kind_{n}")
    return store


def branched(size: int) -> GraphStore:
    """So many branches in use."""
    store = graphstore.open(":memory:", clock=Clock())
    store.add_node("fact", {}, id="one")
    for n in range(size):
        store.branch(f"branch-{n}")
    return store


def outdone(size: int) -> GraphStore:
    """One that so many superseded."""
    store = graphstore.open(":memory:", clock=Clock())
    with store.transaction():
        for n in range(size):
            store.add_node("fact", {}, id=f"next-{n}", valid_from=SINCE)
        store.add_node("fact", {}, id="old", valid_from=SINCE)
    with store.transaction():
        for n in range(size):
            store.supersede("old", by=f"next-{n}")
    return store


def undo(store: GraphStore, told: Node | Link) -> None:
    store.undo(told.tx_from, reason="a slip")


FLAT_VERBS: list[tuple[Callable[[int], GraphStore], str, Verb]] = [
    (crowd, "record_event", lambda store, new: store.record_event("deploy", "of a build", id=new)),
    (crowd, "record_event on one", lambda store, new: store.record_event("error", "boom", id=new, related_to="one")),
    (crowd, "add_node", lambda store, new: store.add_node("fact", {"n": 1}, id=new)),
    (crowd, "add_node in a slot", lambda store, new: store.add_node("fact", {"n": new}, key="window")),
    (crowd, "add_node derived from one", lambda store, new: store.add_node("fact", {}, id=new, derived_from="c5")),
    (crowd, "revise", lambda store, new: store.revise("leaf-1", {"n": new})),
    (crowd, "amend", lambda store, new: store.amend("leaf-2", {"n": new})),
    (crowd, "supersede", lambda store, new: store.supersede("leaf-3", by=fresh(store, new))),
    (crowd, "confirm", lambda store, new: store.confirm("c9", reason=new)),
    (crowd, "retract", lambda store, new: store.retract(fresh(store, new), reason="wrong")),
    (crowd, "end", lambda store, new: store.end(fresh(store, new), at=after(3))),
    (crowd, "link", lambda store, new: store.link(fresh(store, new), "derived_from", "c3")),
    (crowd, "link and unlink", lambda store, new: store.unlink(store.link(fresh(store, new), "uses", "c3").id)),
    (crowd, "add and undo", lambda store, new: store.undo(store.add_node("fact", {}, id=new).tx_from, reason="slip")),
    (crowd, "touch", lambda store, new: store.touch("c5")),
    (crowd, "flush_accesses", lambda store, new: (store.touch("c6"), store.flush_accesses())),
    (crowd, "snapshot", lambda store, new: store.snapshot(new)),
    (crowd, "fold", lambda store, new: store.fold([fresh(store, new)], into={"n": new})),
    (crowd, "resolve", lambda store, new: decided(store, new)),
    (crowd, "in_transaction", lambda store, new: store.in_transaction(lambda same: same.revise("leaf-1", {"n": new}))),
    (crowd, "define_kind", lambda store, new: store.define_kind(new)),
    (crowd, "define_point", lambda store, new: store.define_point(new)),
    (crowd, "promote_kind", lambda store, new: (store.define_kind(new), store.promote_kind(new))),
    (crowd, "set_retention", lambda store, new: store.set_retention(days=next(_numbers) + 9)),
    (crowd, "set_trust", lambda store, new: store.set_trust({new: 1})),
    (crowd, "set_languages", lambda store, new: store.set_languages(["english"])),
    (crowd, "what is not known", lambda store, new: unknown(store, new)),
    (crowd, "branch", lambda store, new: store.branch(new)),
    (crowd, "delete_branch", lambda store, new: (store.branch(new), store.delete_branch(new))),
    (crowd, "evict_old", lambda store, new: store.evict_old()),
    (replaced, "add and undo", lambda store, new: undo(store, store.add_node("fact", {}, id=new))),
    (replaced, "revise and undo", lambda store, new: undo(store, store.revise("next-3", {"n": new}))),
    (replaced, "supersede and undo", lambda store, new: undo(store, store.supersede("next-4", by=fresh(store, new))[0])),
    (hub, "revise and undo", lambda store, new: undo(store, store.revise("hub", {"n": new}))),
    (layers, "revise a base and read what rests on it", lambda store, new: (
        store.revise("base", {"n": new}), store.node("top"), store.node("middle"))),
    (layers, "revise what was confirmed", lambda store, new: store.revise("middle", {"n": new})),
    (layers, "link to a base", lambda store, new: store.link(fresh(store, new), "derived_from", "base").target_standing),
    (kinds, "define_kind", lambda store, new: store.define_kind(new)),
    (kinds, "link", lambda store, new: store.link(fresh(store, new), "uses", fresh(store, f"{new}-to"))),
    (branched, "branch", lambda store, new: store.branch(new)),
    (branched, "delete_branch", lambda store, new: (store.branch(new), store.delete_branch(new))),
    (branched, "on", lambda store, new: store.on("branch-5")),
    (branched, "revise", lambda store, new: store.revise("one", {"n": new})),
    (branched, "revise on a branch", lambda store, new: store.on("branch-5").revise("one", {"n": new})),
    (outdone, "supersede", lambda store, new: store.supersede("old", by=fresh(store, new))),
    (deep, "revise from a day on", lambda store, new: store.revise("deep", {"n": new}, valid_from=after(40))),
    (deep, "amend a day", lambda store, new: store.amend("deep", {"n": new}, valid_from=after(60), valid_to=after(61))),
    (deep, "confirm", lambda store, new: store.confirm("deep", reason=new)),
    (hub, "link to it", lambda store, new: store.link(fresh(store, new), "derived_from", "hub", valid_from=SINCE)),
    (hub, "link from it", lambda store, new: store.link("hub", "supports", fresh(store, new))),
    (pair, "link with the same ends", lambda store, new: between(store)),
    (pair, "link of another kind", lambda store, new: store.unlink(store.link("left", "part_of", "right").id)),
    (slot, "the next value", lambda store, new: store.add_node("fact", {"n": new}, key="k")),
    (slot, "a value between two", lambda store, new: store.add_node(
        "fact", {"n": new}, key="k", valid_from=after(100), valid_to=after(101))),
    (slot, "revise", lambda store, new: store.revise("value-9", {"n": new}, valid_from=after(9), valid_to=after(10))),
]  # fmt: skip

_numbers = itertools.count()


def fresh(store: GraphStore, id: str) -> str:
    store.add_node("fact", {"n": id}, id=f"{id}-too", valid_from=after(2))
    return f"{id}-too"


def between(store: GraphStore) -> None:
    """A link over an hour that none with the same ends covers, taken back at once."""
    since = after(5.2)
    link = store.link("left", "uses", "right", valid_from=since, valid_to=after(5.3))
    store.unlink(link.id)


def decided(store: GraphStore, id: str) -> None:
    """Two that say opposite things, one of which is kept."""
    one, other = fresh(store, id), fresh(store, f"{id}-too")
    store.link(one, "contradicts", other)
    found = store.contradiction(one, other)
    assert found is not None
    store.resolve(found, keep=one, reason="so")


def unknown(store: GraphStore, id: str) -> None:
    with pytest.raises(NotFoundError):
        store.node(id)


def growth_of(world: Callable[[int], GraphStore], name: str, verb: Verb) -> float:
    """How many times the steps of a verb grow from a small store to a large one. It is called once before it is counted."""
    counted = []
    for size in (FEW, MANY):
        with world(size) as store:
            verb(store, f"new{next(_numbers):05}")
            counted.append(steps(lambda store=store: verb(store, f"new{next(_numbers):05}")))  # type: ignore[misc]
    return counted[1] / counted[0]


SMALLER = {replaced: 6, layers: 6, branched: 6, deep: 6, hub: 3}
"""Worlds that take long to make, and by how much they are smaller."""

LARGE_EFFECTS = dict.fromkeys(
    ("hub: revise and undo", "deep: revise from a day on", "deep: amend a day", "deep: confirm"),
    LINEAR * MANY / FEW,
)
"""How many times the steps of verbs may grow that write as many rows as there are things that rest on what they change, or work out over as many
periods which are all believed now where it is shaky, and what rests on it."""

MISSED = dict.fromkeys(
    (
        "layers: revise what was confirmed", "branched: branch", "branched: delete_branch", "pair: link with the same ends",
        "slot: the next value", "slot: a value between two", "slot: revise",
    ),
    LINEAR * MANY / FEW,
)  # fmt: skip
"""Verbs whose statements look at more rows than they need: at all periods of one thing that were ever shaky, at all branches, at all links with the same ends, at all
nodes of one slot. They are to be mended."""


@pytest.mark.parametrize(
    "world", dict.fromkeys(verb[0] for verb in FLAT_VERBS), ids=lambda world: world.__name__
)
def test_a_verb_costs_the_same_however_much_there_is_beside_it(world) -> None:
    """What is counted are the steps of the interpreter and of SQLite. The verbs are done one after another in the same two stores, the last first: a
    retention that one sets is no matter of `evict_old`."""
    grown = {}
    with world(FEW // SMALLER.get(world, 1)) as few, world(MANY // SMALLER.get(world, 1)) as many:
        for _, name, verb in (one for one in reversed(FLAT_VERBS) if one[0] is world):
            found = []
            for count in (lambda _, call: steps(call), statement_steps):
                counted = []
                for store in (few, many):
                    verb(store, f"new{next(_numbers):05}")
                    counted.append(count(store, lambda: verb(store, f"new{next(_numbers):05}")))  # noqa: B023
                found.append((counted[1] + 1) / (counted[0] + 1))
            if max(found) >= (LARGE_EFFECTS | MISSED).get(f"{world.__name__}: {name}", FLAT):
                grown[name] = found
    assert not grown


LINEAR_VERBS: list[tuple[Callable[[int], GraphStore], str, Verb]] = [
    (crowd, "erase", lambda store, new: store.erase(fresh(store, new), reason="asked to")),
    (crowd, "evict", lambda store, new: store.evict(ids=[fresh(store, new)], reason="old")),
    (crowd, "rebuild", lambda store, new: store.rebuild()),
    (crowd, "merge", lambda store, new: (store.branch(new).revise("c5", {"n": new}), store.merge(new))),
]
"""Each reads or writes the whole store."""


@pytest.mark.parametrize("verb", LINEAR_VERBS, ids=lambda verb: f"{verb[0].__name__}: {verb[1]}")
def test_a_verb_on_the_whole_store_grows_with_it_and_no_faster(verb) -> None:
    assert growth_of(*verb) < LINEAR * MANY / FEW


def _failed(store: GraphStore) -> None:
    with store.transaction():
        store.add_node("fact", {}, id="never")
        store.link("never", "uses", "c3")
        store.revise("c5", {"n": "never"}, valid_from=after(7))
        store.link("never", "uses", "nowhere")


REFUSED: list[tuple[type[Exception], Callable[[GraphStore], object]]] = [
    (InvalidError, lambda store: store.revise("c5", "no object")),  # type: ignore[arg-type]
    (NotFoundError, lambda store: store.revise("nothing", {})),
    (NotFoundError, lambda store: store.link("c5", "uses", "nowhere")),
    (ConflictError, lambda store: store.add_node("fact", {}, id="c5")),
    (NotFoundError, _failed),
]


def test_what_is_refused_costs_the_same_however_much_there_is() -> None:
    def refuse(store: GraphStore, kind: type[Exception], call: Callable[[GraphStore], object]) -> None:
        with pytest.raises(kind) as error:
            call(store)
        assert str(error.value)

    with crowd(FEW) as few, crowd(MANY) as many:
        for kind, call in REFUSED:
            counted = []
            for store in (few, many):
                refuse(store, kind, call)
                counted.append(steps(lambda store=store, one=(kind, call): refuse(store, *one)))  # type: ignore[misc]
            assert counted[1] / counted[0] < FLAT, (kind, counted)


def test_an_export_grows_with_the_store_and_no_faster(tmp_path: Path) -> None:
    counted = []
    for size in (FEW, MANY):
        with crowd(size) as store:
            counted.append(steps(lambda store=store, size=size: store.export(tmp_path / f"{size}.jsonl")))  # type: ignore[misc]
    assert counted[1] / counted[0] < LINEAR * MANY / FEW


def again(store: GraphStore, count: int) -> None:
    """One node described so often."""
    store.add_node("fact", {"n": -1}, id="one")
    for n in range(count):
        store.revise("one", {"n": n})


def day_by_day(store: GraphStore, count: int) -> None:
    store.add_node("fact", {"n": -1}, id="one", valid_from=after(0))
    for n in range(1, count):
        store.revise("one", {"n": n}, valid_from=after(n))


def here_and_there(store: GraphStore, count: int) -> None:
    """Another content for one second in ten, the latest first."""
    store.add_node("fact", {"n": -1}, id="one", valid_from=after(0))
    for n in range(count, 0, -1):
        store.amend("one", {"n": n}, valid_from=after(10 * n), valid_to=after(10 * n + 1))


def at_one_instant(store: GraphStore, count: int) -> None:
    """So many values of one slot, each in place of the last."""
    for n in range(count):
        store.add_node("fact", {"n": n}, key="k", valid_from=after(0))


def in_turn(store: GraphStore, count: int) -> None:
    """So many values of one slot."""
    for n in range(count):
        store.add_node("fact", {"n": n}, key="k", valid_from=after(n))


def chain(store: GraphStore, count: int) -> None:
    store.add_node("fact", {"n": 0}, id="n0")
    for n in range(1, count):
        store.add_node("fact", {"n": n}, id=f"n{n}", supersedes=f"n{n - 1}")


def star(store: GraphStore, count: int) -> None:
    store.add_node("fact", {}, id="hub")
    for n in range(count):
        store.add_node("fact", {"n": n}, id=f"n{n}", derived_from="hub")


def loaded(store: GraphStore, count: int) -> None:
    store.bulk_load(
        versions=[{"node_id": "one", "content": {"n": n}, "valid_from": SINCE} for n in range(count)]
    )


def revised_and_undone(store: GraphStore, count: int) -> None:
    store.add_node("fact", {"n": -1}, id="one")
    for n in range(count):
        undo(store, store.revise("one", {"n": n}))


def amended_and_undone(store: GraphStore, count: int) -> None:
    store.add_node("fact", {"n": -1}, id="one", valid_from=after(0))
    for n in range(count):
        undo(store, store.amend("one", {"n": n}, valid_from=after(n), valid_to=after(n + 1)))


def all_undone(store: GraphStore, count: int) -> None:
    """So many revisions, all of them taken back at once."""
    first = store.add_node("fact", {"n": -1}, id="one")
    for n in range(count):
        store.revise("one", {"n": n})
    store.undo(since=first.tx_from, reason="slips")


def twice_at_once(store: GraphStore, count: int) -> None:
    """One described twice in each of so many transactions."""
    store.add_node("fact", {"n": -1}, id="one", valid_from=after(0))
    for n in range(count):
        with store.transaction():
            store.revise("one", {"n": n}, valid_from=after(n))
            store.amend("one", {"n": -n}, valid_from=after(n), valid_to=after(n + 1))


def told(store: GraphStore, tell: Callable[[GraphStore, int], None], count: int, *, at_once: bool) -> None:
    if not at_once or tell is loaded:
        tell(store, count)
        return
    with store.transaction():
        tell(store, count)


def growth_of_all(tell: Callable[[GraphStore, int], None]) -> float:
    """How many times the steps grow from sixty verbs to six times as many."""
    counted = []
    for count in (60, 360):
        clock = Clock()
        clock.move(days=5_000)
        with graphstore.open(":memory:", clock=clock) as store:
            counted.append(steps(lambda store=store, count=count: tell(store, count)))  # type: ignore[misc]
    return counted[1] / counted[0]


@pytest.mark.parametrize("at_once", [True, False], ids=["in one transaction", "in one each"])
@pytest.mark.parametrize(
    "tell", [again, day_by_day, here_and_there, in_turn, at_one_instant, chain, star, loaded]
)
def test_many_verbs_on_one_thing_cost_as_much_each(tell, at_once) -> None:
    """A transaction of many has several lines, which costs a little more for each thing."""
    assert growth_of_all(lambda store, count: told(store, tell, count, at_once=at_once)) < LINEAR * 7


@pytest.mark.parametrize("tell", [revised_and_undone, amended_and_undone, all_undone, twice_at_once])
def test_many_transactions_on_one_thing_cost_as_much_each(tell) -> None:
    assert growth_of_all(tell) < LINEAR * 7


def test_a_line_has_of_what_is_kept_of_a_thing_only_what_came_and_went() -> None:
    """A value holds but for a day in two, over each of which another value of its slot keeps it from holding; then one of these is retracted."""
    lengths = []
    for count in (FEW // 20, FEW // 2):
        with graphstore.open(":memory:", clock=Clock()) as store:
            store.add_node("fact", {}, id="base", key="k", valid_from=after(0))
            for n in range(100, 100 + count):
                store.add_node(
                    "fact", {"n": n}, id=f"n{n}", key="k", valid_from=after(2 * n), valid_to=after(2 * n + 1)
                )
            store.retract("n105", reason="a slip", valid_from=after(210), valid_to=after(211))
            assert store.as_of(valid=after(210.5)).node("base").standing == "stands"
            writer = store._trunk._core.journal.database.writer  # type: ignore[union-attr]
            lengths.append(
                [
                    length
                    for (length,) in writer.execute(
                        "SELECT length(head) FROM chain ORDER BY number DESC LIMIT 2"
                    )
                ]
            )
    assert all(many < FLAT * few for few, many in zip(*lengths, strict=True))


NOT_COUNTED = {
    "export": "a test of its own",
    "save": "a picture of what is asked",
    **dict.fromkeys(("brief", "forget", "join", "joinable", "merge_store", "split", "warnings_of"), "the plans of their statements are tested"),
    **dict.fromkeys(("setting", "keep_setting", "keep_settings"), "what the verbs and reads that are counted do"),
    **dict.fromkeys(("reading", "verb", "together", "coordinate", "instant_of", "bounds_of", "fixed", "pinned", "vocabulary", "recipes", "on", "refresh", "close"), "they look at nothing"),
}  # fmt: skip
"""Methods whose steps say nothing, each with why."""


def test_every_read_and_every_verb_is_counted_or_says_why_not() -> None:
    counted: set[str] = set()
    for call in (*(one[2] for one in (*FLAT_READS, *LINEAR_READS, *FLAT_VERBS, *LINEAR_VERBS)), fresh, between, decided, loaded, told):  # fmt: skip
        counted |= set(call.__code__.co_names)  # type: ignore[attr-defined]
    public = {
        name
        for of in (GraphStore, View)
        for name in dir(of)
        if not name.startswith("_") and callable(getattr(of, name))
    }
    assert public - counted == NOT_COUNTED.keys() & public - counted
