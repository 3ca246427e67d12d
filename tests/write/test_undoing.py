"""Undo: one transaction taken back, and what stands in its way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
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


def test_what_a_supersession_took_is_given_back_after_an_undo_of_several_verbs(
    plan: GraphStore, clock: Clock
) -> None:
    clock.move(days=20)
    with plan.transaction():
        plan.revise("friday", {"day": "FRIDAY"})  # its row comes and goes in this transaction
        plan.retract("friday", reason="a slip")
    plan.undo(plan.changes()[-1].tx, reason="it was right")
    plan.retract("friday", valid_from="2026-01-12", valid_to="2026-01-14", reason="not then")

    assert ["monday"] == [node.id for node in plan.as_of(valid="2026-01-13").nodes(key="day")]
    assert ["friday"] == [node.id for node in plan.as_of(valid="2026-01-15").nodes(key="day")]


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


# ---------------------------------------------------------------------- what stands in its way


def _said(store: GraphStore) -> None:
    for id in ("one", "two", "three"):
        store.add_node("fact", {}, id=id, valid_from="2026-01-01")


def _keyed(store: GraphStore, id: str) -> None:
    store.add_node("fact", {"day": id}, id=id, key="day", valid_from="2026-01-01")


def _superseded(store: GraphStore) -> None:
    store.link("two", "supersedes", "one", valid_from="2026-01-05", id="link-1")


def _linked(store: GraphStore) -> None:
    store.link("one", "related_to", "two", valid_from="2026-01-05", id="link-1")


BUILT_ON: dict[str, tuple[Callable[[GraphStore], object], ...]] = {
    # name: what there was, what is to be undone, what was done since
    "one": (_said, lambda s: s.revise("one", {"n": 1}), lambda s: s.revise("one", {"n": 2})),
    "one: confirmed": (_said, lambda s: s.revise("one", {"n": 1}), lambda s: s.confirm("one", reason="so")),
    "one: said again": (
        _said,
        lambda s: s.retract("one", reason="a slip"),
        lambda s: s.revise("one", {"n": 2}, valid_from="2026-01-03"),
    ),
    "friday": (
        lambda s: _keyed(s, "monday"),
        lambda s: s.retract("monday", reason="a slip"),
        lambda s: _keyed(s, "friday"),
    ),
    "link-1": (_said, _linked, lambda s: s.unlink("link-1")),
    "one: what was taken of it": (
        _said,
        _superseded,
        lambda s: s.add_node("fact", {}, id="right", corrects="one", valid_from="2026-01-01"),
    ),
    "link-2": (
        lambda s: (_said(s), _linked(s)),
        lambda s: s.unlink("link-1"),
        lambda s: s.link("one", "related_to", "two", valid_from="2026-01-07", id="link-2"),
    ),
    "link-1: a cycle": (
        lambda s: (_said(s), _superseded(s)),
        lambda s: s.unlink("link-1"),
        lambda s: s.link("one", "supersedes", "two", valid_from="2026-01-08", valid_to="2026-01-09"),
    ),
    "trust": (_said, lambda s: s.set_trust({"user": 2}), lambda s: s.set_trust({"user": 3})),
    "broke": (
        _said,
        lambda s: s.record_event("error", "it broke", id="broke", occurred_at="2026-01-01"),
        lambda s: s.record_event("error", "it broke", occurred_at="2026-01-02"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("named", BUILT_ON)
def test_what_was_built_on_a_transaction_stands_in_the_way_of_its_undo(
    store: GraphStore, clock: Clock, named: str
) -> None:
    before, done, since = BUILT_ON[named]
    before(store)
    clock.move(days=1)
    done(store)
    slip = store.changes()[-1].tx
    clock.move(days=1)
    since(store)
    count = len(list(store.changes()))
    with pytest.raises(ConflictError, match=f"by what concerns .*{named.partition(':')[0]!r}"):
        store.undo(slip, reason="a slip")

    assert count == len(list(store.changes()))
    assert store.verify().ok


def _shown(store: GraphStore) -> list[tuple[object, ...]]:
    then = store.as_of(valid="2026-01-08")
    nodes = {node.id: then.inspect(node.id).node for node in store.as_of(valid="2026-01-02").nodes()}
    return [
        (node.id, node.standing, node.number, node.content, node.valid_from, node.valid_to)
        for node in nodes.values()
    ]


@pytest.mark.parametrize("named", [name for name in BUILT_ON if name not in ("broke", "one: confirmed")])
def test_and_once_that_is_undone_no_more(store: GraphStore, clock: Clock, named: str) -> None:
    before, done, since = BUILT_ON[named]
    before(store)
    clock.move(days=1)
    told = _shown(store)
    done(store)
    slip = store.changes()[-1].tx
    clock.move(days=1)
    since(store)
    clock.move(days=1)
    store.undo(store.changes()[-1].tx, reason="too early")
    clock.move(days=1)
    store.undo(slip, reason="a slip")

    assert told == _shown(store)
    assert store.verify().ok


def test_an_undo_that_was_undone_stands_in_the_way_again(store: GraphStore, clock: Clock) -> None:
    _said(store)
    for done in (lambda: store.revise("one", {"n": 1}), lambda: store.retract("one", reason="no")):
        clock.move(days=1)
        done()
    told, back = store.changes()[-2].tx, store.undo(store.changes()[-1].tx, reason="yes")
    store.undo(back, reason="no")
    with pytest.raises(ConflictError, match="'one'"):
        store.undo(told, reason="a slip")


def test_what_happened_twice_in_one_transaction_is_undone_as_one(store: GraphStore) -> None:
    with store.transaction():
        store.record_event("error", "it broke", id="broke", occurred_at="2026-01-01")
        store.record_event("error", "it broke", occurred_at="2026-01-02")
    store.undo(store.changes()[-1].tx, reason="a slip")
    assert [] == store.events()


def test_a_supersession_of_another_transaction_keeps_what_it_took(store: GraphStore, clock: Clock) -> None:
    _said(store)
    store.add_node("fact", {}, id="four", valid_from="2026-01-01")
    _superseded(store)
    clock.move(days=1)
    store.link("four", "supersedes", "three", valid_from="2026-01-05", id="link-2")
    slip = store.undo(store.changes()[-1].tx, reason="a slip")
    store.unlink("link-1")
    assert ["one", "three"] == [id for id in ("one", "three") if store.inspect(id).node.standing == "stands"]
    clock.move(days=1)
    store.undo(slip, reason="it was none")
    store.unlink("link-2")
    assert "stands" == store.inspect("three").node.standing


def test_who_ranks_lower_may_not_undo(store: GraphStore) -> None:
    for done in (_said, _linked, lambda s: s.revise("three", {"n": 1})):
        with store.transaction(author="ann"):
            done(store)
    store.set_trust({"ann": 1})
    for told in {change.tx for change in store.changes() if change.verb in ("link", "revise")}:
        with pytest.raises(ConflictError, match="trust"):
            store.undo(told, reason="a slip")


# ---------------------------------------------------------------------- which transaction is meant


def test_a_second_names_the_only_transaction_within_it(store: GraphStore, clock: Clock) -> None:
    noon = clock.now.replace(hour=12)
    for seconds in (0.5, 1.0, 1.25, 2.999999, 4.25, 4.75):
        clock.set(noon + timedelta(seconds=seconds))
        store.add_node("fact", {}, id=f"at-{seconds}")
    clock.set(noon + timedelta(hours=1))
    for named in (3, 4.5, -1, 5, 3600):
        with pytest.raises(NotFoundError, match="no transaction at"):
            store.undo(noon + timedelta(seconds=named), reason="a slip")
    with pytest.raises(ConflictError, match=r"2 transactions lie in the second of .*12:00:04.25Z, .*04.75Z"):
        store.undo(noon + timedelta(seconds=4), reason="a slip")
    for named in (0, 1, 1.25, 2, 4.75, 4.25):
        store.undo(noon + timedelta(seconds=named), reason="a slip")
        clock.move(hours=1)
    assert [] == store.nodes()


def test_a_link_id_is_text(store: GraphStore) -> None:
    for id in (5, ["lnk"]):
        with pytest.raises(InvalidError, match=r"link_id .* is no text"):
            store.unlink(id)
