"""Standings as rows, on random worlds: at each coordinate they are what follows from the links and falls there.

The worlds are the programs of `tests/change`, told in random groups, with undo, erasure, eviction and kinds of link of their own in between.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from tests.change.oracle import Oracle
from tests.change.programs import (
    DAYS,
    NODES,
    Hours,
    draw,
    grouped,
    groupings,
    tell_store,
    vanishes,
)
from tests.support import standing_rows
from tests.support.ledger_rows import connected
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")


@pytest.mark.parametrize("seed", seeds(10, 30, 10_000))
def test_the_rows_say_at_each_coordinate_how_everything_stands(tmp_path: Path, seed: int) -> None:
    chance, hours = random.Random(seed), Hours()
    oracle = Oracle(hours)
    program = draw(chance, chance.choice([10, 24, 40]), oracle, hours)
    sizes = chance.choice(groupings(chance, len(program), 4))
    if vanishes(program, sizes):
        sizes = [1] * len(program)
    hours = Hours()
    with graphstore.open(tmp_path / "memory.gs", clock=hours, durability="interval") as store:
        for group in grouped(program, sizes):
            hours.move()
            try:
                with store.transaction():
                    for step in group:
                        tell_store(store, step)
            except (GraphStoreError, StopIteration):
                pass  # what was undone or erased before is missing now: the group leaves nothing
            if chance.random() < 0.3:
                hours.move()
                interfere(store, chance, hours)
        count, differing = standing_rows.compare(store)
        assert count
        assert not differing


def interfere(store: GraphStore, chance: random.Random, hours: Hours) -> None:
    """Do what no program does, where the store lets it be done."""
    ids = [node.id for node in store.nodes()]
    try:
        match chance.choice(
            ["undo", "undo", "undo", "undo", "erase", "evict", "lean", "load", "merge", "block", "block"]
        ):
            case "undo":
                store.undo(
                    chance.choice(store.changes()[-chance.choice([4, 20]) :]).tx, reason="it was not so"
                )
            case "load":
                versions = [(chance.choice(NODES), number, chance.choice(DAYS)) for number in range(4)]
                store.bulk_load(
                    versions=[
                        {"node_id": id, "content": {"n": n}, "valid_from": at} for id, n, at in versions
                    ]
                )
            case "merge" if ids:
                store.branch("aside").retract(
                    chance.choice(ids), reason="wrong", valid_from=chance.choice(DAYS)
                )
                hours.move()
                store.merge("aside")
            case "block" if len(ids) > 1:
                source, target = chance.sample(ids, 2)
                with store.transaction():
                    store.revise(target, {"in": "a block"}, valid_from=chance.choice(DAYS))
                    store.supersede(target, by=source, valid_from=chance.choice(DAYS))
            case "erase" if ids:
                store.erase(chance.choice(ids), reason="private")
            case "evict":
                store.evict(before=hours.now)
            case "lean" if len(ids) > 1:
                store.define_kind("leans_on", rests=["revised", "shaky", "ended"])
                source, target = chance.sample(ids, 2)
                store.link(source, "leans_on", target)
    except GraphStoreError:
        pass


@pytest.mark.parametrize("seed", seeds(5, 10, 1_000))
def test_a_process_that_writes_on_and_one_for_each_group_write_the_same_rows(
    tmp_path: Path, seed: int
) -> None:
    """What a process keeps of its earlier transactions changes no row."""
    told = [list[tuple[object, ...]](), list[tuple[object, ...]]()]
    for name, rows in zip(("one", "many"), told, strict=True):
        chance, hours = random.Random(seed), Hours()
        oracle = Oracle(hours)
        program = draw(chance, 40, oracle, hours)
        hours = Hours()
        store = graphstore.open(tmp_path / name, clock=hours, durability="interval")
        for group in grouped(program, chance.choice(groupings(chance, len(program), 4))):
            hours.move()
            try:
                with store.transaction():
                    for step in group:
                        tell_store(store, step)
            except (GraphStoreError, StopIteration):
                pass
            if name == "many":
                store.close()
                store = graphstore.open(tmp_path / name, clock=hours, durability="interval")
        store.close()
        with connected(tmp_path / name) as connection:
            for table in ("absence", "shaky"):
                rows += connection.execute(f"SELECT * FROM {table} ORDER BY entity, valid_from, tx_from")
    assert told[0] == told[1]


@pytest.mark.rest
def test_a_chain_of_thousands_and_a_hub_fall_and_rise_as_a_whole(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "memory.gs", durability="interval") as store:
        with store.transaction():
            for number in range(2_000):
                store.add_node("fact", {"n": number}, id=f"link-{number}")
                store.add_node("fact", {"n": number}, id=f"spoke-{number}")
                if number:
                    store.link(f"link-{number}", "derived_from", f"link-{number - 1}")
                store.link(f"spoke-{number}", "derived_from", "link-0")
        assert not shaky(store)
        store.revise("link-0", {"n": -1})
        assert 3_999 == len(shaky(store))
        store.confirm("link-1000", reason="looked at")
        assert 2_999 == len(shaky(store)), "nothing reaches what is above it"
        store.undo(store.changes()[-1].tx, reason="nobody looked")
        assert 3_999 == len(shaky(store))
        store.undo(store.changes()[-3].tx, reason="it was not revised")
        assert not shaky(store)


def test_a_new_fall_is_followed_past_what_was_shaky_before(tmp_path: Path) -> None:
    rests = {"base": (), "apart": (), "middle": "base", "top": "middle", "other": "middle", "last": "other"}
    with graphstore.open(tmp_path / "memory.gs") as store:
        for id, base in rests.items():
            store.add_node("fact", {"of": id}, id=id, derived_from=base, valid_from="2026-01-01")
        store.revise("base", {"of": "all"})
        store.confirm("top", reason="looked at")
        assert {"middle", "other", "last"} == shaky(store)
        with store.transaction():
            store.retract("base", reason="it never was")
            store.link("other", "derived_from", "apart")
        assert {"middle", "top", "other", "last"} == shaky(store)


@pytest.mark.parametrize("evicted_last", [True, False])
def test_what_rests_on_an_evicted_event_rests_on_what_that_rests_on(
    tmp_path: Path, evicted_last: bool
) -> None:
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"n": 1}, id="base", valid_from="2026-01-01")
        store.record_event("deploy", "release 7", id="event", occurred_at="2026-01-02")
        store.link("event", "derived_from", "base", valid_from="2026-01-02")
        store.add_node("fact", {"n": 2}, id="fact", derived_from="event", valid_from="2026-01-03")
        verbs = [
            lambda: store.retract("base", reason="wrong"),
            lambda: store.evict(ids=["event"], reason="old"),
        ]
        for do in verbs if evicted_last else reversed(verbs):
            do()
        assert {"fact"} == shaky(store) == {found.node.id for found in store.shaky()}
        assert ("shaky", "evicted") == (store.node("fact").standing, standing_rows.now(store)["event"])


def test_a_fall_that_stops_at_an_event_hides_no_earlier_one(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "memory.gs") as store:
        for id in ("base", "other", "next"):
            store.add_node("fact", {"of": id}, id=id, valid_from="2026-01-01")
        store.add_node("fact", {}, id="middle", valid_from="2026-01-02", derived_from=("base", "other"))
        store.record_event("deploy", "release 7", id="event", occurred_at="2026-01-03")
        store.link("event", "derived_from", "middle", valid_from="2026-01-03")
        store.supersede("base", by="next", valid_from="2026-01-02")
        store.end("other", at="2026-01-02")
        assert {"middle", "event"} == shaky(store)
        store.retract("next", reason="wrong")
        assert {"middle"} == shaky(store), "what ended does not shake what happened"


def shaky(store: GraphStore) -> set[str]:
    """The ids of what the rows say is shaky now."""
    found = standing_rows.now(store)
    return {id for id, standing in found.items() if standing == "shaky"}
