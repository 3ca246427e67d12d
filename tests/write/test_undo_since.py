"""`undo(since=)` takes back a transaction and every later one, in one step; and a clock that is far from the last transaction is told."""

from __future__ import annotations

import os
import random

import pytest

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError
from tests.conftest import Clock
from tests.support.ledger_rows import recorded

pytestmark = pytest.mark.in_process("its own clocks, many stores")


def reads(store):
    """What stands now, as a reader sees it, without what belongs to system time."""
    system = {"tx_from", "tx_to", "recorded_at"}
    return (
        sorted(node.model_dump_json(exclude=system) for node in store.nodes()),
        sorted(
            link.model_dump_json(exclude=system)
            for node in store.nodes()
            for link in store.links_from(node.id)
        ),
        sorted(event.model_dump_json(exclude=system) for event in store.events()),
        store.trust,
    )


def write_some(store, chance: random.Random, number: int) -> None:
    """One verb at random, refused or not."""
    ids = [node.id for node in store.nodes()] or ["none"]
    one, other = chance.choice(ids), chance.choice(ids)
    verbs = [
        lambda: store.add_node("fact", {"n": number}, id=f"n{number}", key=chance.choice([None, "slot"])),
        lambda: store.revise(one, {"n": number}),
        lambda: store.amend(one, {"m": number}),
        lambda: store.supersede(one, by=other),
        lambda: store.end(one),
        lambda: store.retract(one, reason="wrong"),
        lambda: store.link(one, "supports", other),
        lambda: store.undo(chance.choice(store.changes()), reason="a slip"),
        lambda: store.set_trust({"user": number % 3}),
    ]
    if number == 0:
        verbs = verbs[:1]
    try:
        chance.choice(verbs)()
    except (ConflictError, InvalidError, NotFoundError):
        return


@pytest.mark.parametrize("seed", range(25))
def test_what_stands_is_as_it_was_before_the_first_of_them(seed):
    chance, clock = random.Random(seed), Clock("2026-01-01")
    with graphstore.open(":memory:", clock=clock) as store:
        for number in range(12):
            clock.move(days=1)
            write_some(store, chance, number)
        before, last = reads(store), store.changes()
        for number in range(12, 20):
            clock.move(days=1)
            write_some(store, chance, number)
        after, count = reads(store), len(store.changes())
        clock.move(days=1)
        later = [each for each in store.changes() if not last or each.tx > last[-1].tx]
        if not later:
            return

        done = store.undo(since=later[0], reason="the clock was wrong")

        assert ("undo", "the clock was wrong") == (done.verb, done.reason)
        assert before == reads(store)
        assert store.verify().ok
        assert {done.tx} == {each.tx for each in store.changes()[count:]}
        clock.move(days=1)
        store.undo(done, reason="it was right")
        assert after == reads(store)


def test_nothing_is_written_where_one_of_them_cannot_be_taken_back(tmp_path):
    clock = Clock("2026-01-01")
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        first = store.add_node("fact", {"n": 1}, id="a")
        clock.move(days=1)
        store.snapshot("release")
        clock.move(days=1)
        store.add_node("fact", {"n": 2}, id="b")
        before, written = reads(store), recorded(store.path)

        with pytest.raises(ConflictError, match="snapshot"):
            store.undo(since=first.tx_from, reason="all of it")
        clock.move(days=1)
        with pytest.raises(NotFoundError, match="no transaction since"):
            store.undo(since=clock(), reason="x")
        with pytest.raises(InvalidError, match="one of the two"):
            store.undo(reason="x")
        with pytest.raises(InvalidError, match="one of the two"):
            store.undo(first.tx_from, since=first.tx_from, reason="x")

        assert before == reads(store)
        assert written == recorded(store.path)


@pytest.mark.parametrize(
    ("opened", "told"),
    [("2026-01-05", None), ("2026-02-01", "31 days ahead"), ("2025-12-01", "31 days behind")],
)
def test_a_clock_far_from_the_last_transaction_is_told(tmp_path, opened, told):
    with graphstore.open(tmp_path / "memory.gs", clock=Clock("2026-01-01")) as store:
        last = store.add_node("fact", {}, id="a").tx_from
    os.utime(tmp_path / "memory.gs" / "ledger.db", (last.timestamp(), last.timestamp()))
    with graphstore.open(tmp_path / "memory.gs", clock=Clock(opened)) as store:
        assert ([] if told is None else [told]) == [
            told for notice in store.notices if told and told in notice
        ]
        assert (told is None) == (not store.notices)
        node = store.add_node("fact", {}, id="b")
        assert node.tx_from > last
        assert node.valid_from == node.tx_from
    with graphstore.open(tmp_path / "memory.gs", clock=Clock("2025-12-01"), read_only=True) as reader:
        assert any("behind the last transaction" in notice for notice in reader.notices)


def test_what_a_wrong_clock_wrote_is_taken_back_and_the_store_goes_on_by_the_last_transaction(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=Clock("2026-01-01")) as store:
        store.add_node("fact", {"n": 1}, id="a")
    with graphstore.open(path, clock=Clock("2031-01-01")) as store:
        wrong = store.revise("a", {"n": 2}).tx_from
        store.add_node("fact", {"n": 3}, id="b")
    with graphstore.open(path, clock=Clock("2026-01-02")) as store:
        assert "behind" in store.notices[0]
        done = store.undo(since=wrong, reason="the clock was five years ahead")
        assert ["a"] == [node.id for node in store.nodes()]
        assert {"n": 1} == store.node("a").content
        again = store.add_node("fact", {"n": 3}, id="c", valid_from="2026-01-02")
        assert wrong < done.tx < again.tx_from
        assert store.verify().ok
