"""Standings that a write works out from what it wrote itself, and from the open rows: they are those that all rows of the past give."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from tests.change.programs import DAYS, END, Hours
from tests.support import standing_rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")

NODES, EVENTS = [f"node-{number}" for number in range(5)], ["evt-a", "evt-b"]
KINDS = ["derived_from"] * 8 + ["supports", "supports", "caused_by", "corrects", "leans_on"]


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def store(tmp_path: Path, hours: Hours):
    """Some nodes in a folder; at the end all rows are compared."""
    with graphstore.open(tmp_path / "memory.gs", clock=hours, durability="interval") as opened:
        for id in NODES:
            hours.move()
            opened.add_node("fact", {"of": id}, id=id, valid_from=DAYS[0])
        yield opened
        count, differing = standing_rows.compare(opened)
        assert count
        assert not differing


def standings(store: GraphStore, id: str) -> list[str]:
    """How a thing stands on each day."""
    return [store.as_of(valid=day).inspect(id).node.standing for day in DAYS[:6]]


def test_a_node_that_ends_before_it_is_superseded_is_ended_and_then_superseded(store, hours):
    old, new = NODES[:2]
    store.supersede(old, by=new, valid_from=DAYS[4])
    hours.move()
    store.revise(old, {"again": True}, valid_from=DAYS[0], valid_to=END)
    hours.move()
    store.end(old, at=DAYS[2])

    assert ["stands", "stands", "ended", "ended", "superseded", "superseded"] == standings(store, old)


def test_what_came_and_went_where_a_link_supersedes_is_superseded(store, hours):
    old, new = NODES[:2]
    for do in (
        lambda: store.supersede(old, by=new, valid_from=DAYS[1]),
        lambda: store.revise(old, {"again": True}, valid_from=DAYS[1]),
        lambda: store.retract(old, valid_from=DAYS[1], reason="wrong"),
    ):
        hours.move()
        do()
    hours.move()
    with store.transaction():
        store.revise(old, {"once": "more"}, valid_from=DAYS[3], valid_to=DAYS[4])
        store.supersede(old, by=new, valid_from=DAYS[1])

    assert ["stands", "retracted", "retracted", "superseded", "retracted", "retracted"] == standings(
        store, old
    )


def test_a_node_whose_first_description_is_undone_and_done_again_ended_between_its_times(store, hours):
    hours.move()
    first = store.add_node("fact", {}, id="late", valid_from=DAYS[4])
    hours.move()
    store.revise("late", {"early": True}, valid_from=DAYS[0], valid_to=DAYS[2])
    hours.move()
    store.undo(first.tx_from, reason="a slip")
    taken_back = store.changes()[-1].tx
    hours.move()
    store.undo(taken_back, reason="it was none")

    assert ["stands", "stands", "ended", "ended", "stands", "stands"] == standings(store, "late")


def test_what_is_taken_back_to_its_last_part_after_it_ended_falls_once_more(store, hours):
    """Nothing is left of it, so it shakes what was confirmed before, also where that rests on it over other times."""
    base, above = NODES[:2]
    for do in (
        lambda: store.link(above, "derived_from", base, valid_from=DAYS[2]),
        lambda: store.retract(base, reason="wrong"),
        lambda: store.revise(base, {"again": True}, valid_from=DAYS[0]),
        lambda: store.confirm(above, reason="looked at"),
        lambda: store.end(base, at=DAYS[1]),
    ):
        hours.move()
        do()
    assert ["stands", "stands", *["shaky"] * 4] == standings(store, above)
    hours.move()
    store.confirm(above, reason="looked at it again")
    assert ["stands"] * 6 == standings(store, above)
    hours.move()
    store.retract(base, reason="wrong")

    assert ["stands", "stands", *["shaky"] * 4] == standings(store, above)


@pytest.mark.parametrize("seed", seeds(4, 20, 1_000))
def test_the_rows_of_a_random_history_say_how_everything_stands(store, hours, seed):
    """Single verbs, blocks, branches that are merged, loads, and undo of anything."""
    chance = random.Random(seed)
    for number in range(chance.choice([20, 50, 90])):
        hours.move()
        try:
            match chance.choice(["verb"] * 11 + ["block"] * 4 + ["undo"] * 3 + ["merge", "load"]):
                case "verb":
                    act(store, chance)
                case "block":
                    with store.transaction():
                        attempt(store, chance, chance.randint(2, 6))
                case "undo":
                    store.undo(chance.choice(store.changes()[-chance.choice([4, 90]) :]).tx, reason="no")
                case "merge":
                    attempt(store.branch(f"branch-{number}"), chance, chance.randint(1, 5))
                    attempt(store, chance, 1)
                    hours.move()
                    store.merge(f"branch-{number}")
                case "load":
                    store.bulk_load(
                        versions=[
                            {
                                "node_id": chance.choice(NODES),
                                "content": {"n": n},
                                "valid_from": chance.choice(DAYS),
                            }
                            for n in range(6)
                        ]
                    )
        except GraphStoreError:
            pass  # the store refuses it: nothing of it is there


def attempt(store: GraphStore, chance: random.Random, count: int) -> None:
    """Do some verbs, those that the store does not refuse."""
    for _ in range(count):
        with suppress(GraphStoreError):
            act(store, chance)


def act(store: GraphStore, chance: random.Random) -> None:
    """Do one verb."""
    node, other = chance.choice(NODES), chance.choice(NODES + EVENTS)
    first, last = sorted(chance.sample(DAYS, 2))
    span = chance.choice(
        [{}, {"valid_from": first}, {"valid_from": first, "valid_to": chance.choice([last, END])}]
    )
    content = {"colour": chance.choice("rgb"), "size": chance.choice([1, 2])}
    verbs = {
        "add": lambda: store.add_node("fact", content, id=node, key=chance.choice([None, "slot"]), **span),
        "event": lambda: store.record_event(
            "deploy", "of a build", id=chance.choice(EVENTS), occurred_at=first
        ),
        "revise": lambda: store.revise(node, content, minor=chance.random() < 0.2, **span),
        "amend": lambda: store.amend(node, {"size": chance.choice([1, 2, 3])}, **span),
        "link": lambda: store.link(node, chance.choice(KINDS), other, **span),
        "unlink": lambda: store.unlink(chance.choice(store.links_from(node) or store.backlinks_to(node)).id),
        "supersede": lambda: store.supersede(other, by=node, valid_from=chance.choice([None, first])),
        "retract": lambda: store.retract(other, reason="wrong", **(span if other in NODES else {})),
        "end": lambda: store.end(node, at=first),
        "confirm": lambda: store.confirm(other, reason="so"),
        "kind": lambda: store.define_kind("leans_on", rests=["revised", "shaky", "ended"]),
        "evict": lambda: store.evict(ids=[other], reason="old"),
    }
    often = ["revise"] * 8 + ["link"] * 10 + ["supersede", "amend", "confirm", "retract", "unlink", "add"] * 4
    name = chance.choice(
        [*often, "end", "end", "event", "event", "kind"] + ["evict"] * (chance.random() < 0.1)
    )
    if name == "unlink" and not (store.links_from(node) or store.backlinks_to(node)):
        return
    verbs[name]()


def test_an_invalidation_writes_rows_of_what_it_makes_shaky_and_no_others(store, hours):
    """Also where it leaves nothing of a foundation, and reaches what rests on it at every instant."""
    hours.move()
    with store.transaction():
        for number in range(200):
            store.add_node("fact", {}, id=f"ground-{number}", valid_from=DAYS[4])
            store.add_node(
                "fact", {}, id=f"above-{number}", valid_from=DAYS[0], derived_from=f"ground-{number}"
            )
        store.add_node("fact", {}, id="top", valid_from=DAYS[1], derived_from="above-7")
    counts = []
    for ground in ("ground-7", "ground-8"):
        hours.move()
        store.retract(ground, reason="wrong")
        rows = store._core.rows.database.rows
        counts.append((rows("SELECT count(*) FROM shaky")[0][0], rows("SELECT count(*) FROM absence")[0][0]))

    assert [(2, 1), (3, 2)] == counts
