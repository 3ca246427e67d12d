"""Undo: one transaction taken back, and what stands in its way."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, NotFoundError
from tests.conftest import Clock

pytestmark = pytest.mark.served


@pytest.fixture
def plan(store: GraphStore, clock: Clock) -> GraphStore:
    """A plan that was moved to another day."""
    store.add_node("plan", {"day": "monday"}, id="monday", key="day", valid_from="2026-01-01")
    clock.move(days=1)
    store.add_node("plan", {"day": "friday"}, id="friday", key="day", valid_from="2026-01-10")
    return store


def test_what_was_closed_is_open_again_as_it_was(plan: GraphStore, clock: Clock) -> None:
    before = plan.node("friday")
    clock.move(days=1)
    plan.retract("friday", reason="a slip")
    assert ["monday"] == [node.id for node in plan.nodes(key="day")]
    clock.move(days=1)
    done = plan.undo(plan.changes()[-1].tx, reason="it was right")

    again = plan.node("friday")
    assert ("undo", "it was right") == (done.verb, done.reason)
    assert (before.number, before.author, before.recorded_at) == (
        again.number,
        again.author,
        again.recorded_at,
    )
    assert ["friday"] == [thing.id for thing in plan.what_superseded("monday").current]


def test_what_it_introduced_stays_known_as_retracted(plan: GraphStore) -> None:
    past = plan.as_of()
    plan.undo(plan.changes()[-1].tx, reason="a slip")

    assert ["monday"] == [node.id for node in plan.nodes()]
    assert "retracted" == plan.inspect("friday").node.standing
    assert ["friday"] == [node.id for node in past.nodes()]


def test_an_undo_is_undone_and_done_again(plan: GraphStore) -> None:
    slip = plan.undo(plan.changes()[-1], reason="a slip")
    back = plan.undo(slip, reason="it was none")
    assert ["friday"] == [node.id for node in plan.nodes()]
    plan.undo(back, reason="it was one")

    assert ["monday"] == [node.id for node in plan.nodes()]
    with pytest.raises(ConflictError, match="taken back already"):
        plan.undo(back.tx, reason="twice")


def test_a_link_turned_round_in_one_transaction_is_turned_back(store: GraphStore) -> None:
    for id in ("one", "two"):
        store.add_node("fact", {}, id=id, valid_from="2026-01-01")
    (link,) = store.supersede("one", by="two", valid_from="2026-01-05")
    with store.transaction():
        store.unlink(link.id)
        store.supersede("two", by="one", valid_from="2026-01-07")
    store.undo(store.changes()[-1], reason="the wrong way round")

    assert [("two", "one")] == [(each.source, each.target) for each in store.supersedes("two")]
    assert store.verify().ok


def test_what_was_built_on_it_is_named_and_nothing_is_written(plan: GraphStore, clock: Clock) -> None:
    told = plan.changes()[-1].tx
    clock.move(days=1)
    plan.add_node("fact", {}, id="because", derived_from="friday")
    before = plan.stats()
    with pytest.raises(ConflictError, match="because"):
        plan.undo(told, reason="a slip")

    assert before == plan.stats()


def test_ranks_and_occurrences_are_taken_back(store: GraphStore, clock: Clock) -> None:
    store.set_trust({"user": 2})
    store.record_event("error", "it broke", id="broke", occurred_at="2026-01-01")
    clock.move(days=1)
    store.record_event("error", "it broke", occurred_at="2026-01-02")
    assert 2 == store.event("broke").count
    store.undo(store.changes()[-1], reason="seen twice by mistake")
    assert (1, "2026-01-01") == (
        store.event("broke").count,
        store.event("broke").last_seen.date().isoformat(),
    )
    store.set_trust({"user": 3})
    store.undo(store.changes()[-1], reason="no")

    assert {"user": 2} == store.trust


def test_what_cannot_be_taken_back_is_refused(plan: GraphStore) -> None:
    with pytest.raises(NotFoundError, match="no transaction"):
        plan.undo("2020-01-01", reason="which?")
    with pytest.raises(InvalidError, match="reason"):
        plan.undo(plan.changes()[-1], reason=" ")
    plan.define_kind("rests_upon")
    with pytest.raises(ConflictError, match="define_kind"):
        plan.undo(plan.changes()[-1], reason="a slip")


def test_it_is_no_part_of_a_transaction(plan: GraphStore) -> None:
    with plan.transaction(), pytest.raises(InvalidError, match=r"undo\(\) inside transaction"):
        plan.undo(plan.changes()[0], reason="no")


def test_it_is_in_the_journal_like_all_else(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01")
        store.revise("one", {"n": 2})
        store.undo(store.changes()[-1], reason="a slip")
        told = store.node("one"), store.versions("one")
    for saved in (True, False):
        if not saved:
            (path / "index.bin").unlink()
        with graphstore.open(path, clock=clock) as again:
            assert told == (again.node("one"), again.versions("one"))
            assert again.verify().ok


def test_what_was_undone_is_not_what_was_written_last(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-01", valid_to="2026-01-10")
    clock.move(days=1)
    store.revise("one", {"n": 2}, valid_from="2026-01-20", valid_to="2026-01-22")
    store.undo(store.changes()[-1], reason="a slip")
    clock.move(days=1)
    store.retract("one", reason="never")

    gone = store.inspect("one").node
    assert ("retracted", 1, {"n": 1}) == (gone.standing, gone.number, gone.content)
