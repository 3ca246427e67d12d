"""Who said it, and when, of a piece that a later write left: those who said it first over that time, at every door."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from tests.conftest import Clock, day

pytestmark = pytest.mark.served


@pytest.fixture
def corrected(store: GraphStore, clock: Clock) -> GraphStore:
    """Ana said in January what holds, and in February what takes its place; bob corrected March of both in June."""
    clock.set("2026-01-01")
    with store.transaction(author="ana"):
        store.add_node("fact", {"v": "old"}, id="old")
    clock.set("2026-02-01")
    with store.transaction(author="ana"):
        store.add_node("fact", {"v": "new"}, id="new", supersedes=["old"], reason="scale")
    clock.set("2026-06-01")
    with store.transaction(author="bob", reason="measured"):
        store.revise("new", {"v": "newer"}, valid_from="2026-03-01", valid_to="2026-04-01")
        link = store.links_from("new", ["supersedes"])[0]
        store.unlink(link.id, valid_from="2026-03-01", valid_to="2026-04-01")
    clock.set("2026-07-01")
    return store


def test_a_piece_of_a_description_is_its_first_authors(corrected: GraphStore) -> None:
    assert [
        ("2026-02-01", 1, "ana", day("2026-02-01"), day("2026-06-01")),
        ("2026-03-01", 2, "bob", day("2026-06-01"), day("2026-06-01")),
        ("2026-04-01", 1, "ana", day("2026-02-01"), day("2026-06-01")),
    ] == [
        (f"{row.valid_from:%Y-%m-%d}", row.number, row.author, row.recorded_at, row.tx_from)
        for row in corrected.history("new")
    ]


def test_what_superseded_it_was_said_by_who_said_so_first(corrected: GraphStore) -> None:
    (step,) = corrected.as_of(valid="2026-02-15").what_superseded("old").chain

    assert ("ana", "scale", day("2026-02-01")) == (step.who, step.why, step.recorded_at)
    assert "recorded 2026-02-01 by ana because: scale" in str(
        corrected.as_of(valid="2026-02-15").what_superseded("old")
    )


def test_a_link_names_who_said_it_first(corrected: GraphStore) -> None:
    (link,) = corrected.as_of(valid="2026-05-01").links_from("new", ["supersedes"])

    assert ("ana", day("2026-02-01"), day("2026-06-01")) == (link.author, link.recorded_at, link.tx_from)


def test_what_is_given_back_is_still_his_who_said_it(corrected: GraphStore) -> None:
    node = corrected.as_of(valid="2026-03-15").node("old")

    assert ("ana", day("2026-01-01"), day("2026-06-01")) == (node.author, node.recorded_at, node.tx_from)


def test_a_version_was_revised_by_who_wrote_the_next_whatever_was_left_of_that(
    corrected: GraphStore, clock: Clock
) -> None:
    with corrected.transaction(author="eve"):
        corrected.retract("new", valid_from="2026-03-10", valid_to="2026-04-01", reason="not that long")
    (step,) = corrected.what_superseded("new-v1").chain

    assert ("revised", "bob", "measured", day("2026-06-01")) == (
        step.how,
        step.who,
        step.why,
        step.recorded_at,
    )


def test_an_end_that_was_said_at_once_is_not_of_who_left_a_piece(store: GraphStore, clock: Clock) -> None:
    clock.set("2026-01-01")
    with store.transaction(author="ana"):
        store.add_node("fact", {"v": 1}, id="x", valid_to="2026-04-01", reason="a contract of three months")
    clock.set("2026-06-01")
    with store.transaction(author="bob"):
        store.revise("x", {"v": 2}, valid_from="2026-02-01", valid_to="2026-03-01")
    (step,) = store.what_superseded("x").chain

    assert ("ended", "ana", "a contract of three months", day("2026-01-01")) == (
        step.how, step.who, step.why, step.recorded_at,
    )  # fmt: skip


def test_an_end_that_was_said_later_is_of_who_said_it(store: GraphStore, clock: Clock) -> None:
    with store.transaction(author="ana"):
        store.add_node("fact", {"v": 1}, id="x")
    clock.set("2026-06-01")
    with store.transaction(author="bob"):
        store.end("x", at="2026-05-01", reason="cancelled")
    with store.transaction(author="eve"):
        store.revise("x", {"v": 2}, valid_from="2026-03-01", valid_to="2026-04-01")
    (step,) = store.what_superseded("x").chain

    assert ("bob", "cancelled") == (step.who, step.why)
    assert "ana" == store.as_of(valid="2026-04-15").node("x").author


def test_an_event_names_who_recorded_it(store: GraphStore, clock: Clock) -> None:
    with store.transaction(author="ana"):
        event = store.record_event("error", "boom", occurred_at="2026-01-15").event
    clock.move(days=1)
    with store.transaction(author="bob"):
        again = store.record_event("error", "boom", occurred_at="2026-01-10").event

    assert event.id == again.id
    assert ("ana", day("2026-02-01")) == (again.author, again.recorded_at)


def test_first_believed_in_june_is_what_was_first_believed_in_june(corrected: GraphStore) -> None:
    first = corrected.query_tables(
        "MATCH (v:Version) WHERE $since <= v.told AND v.told < $until AND NOT v.remainder RETURN v.ref AS ref, v.author AS author",
        since=day("2026-06-01"), until=day("2026-07-01"),
    )  # fmt: skip

    assert [{"ref": "new-v2", "author": "bob"}] == list(first)


def test_the_graph_of_a_view_says_who_said_it_first(corrected: GraphStore) -> None:
    view = corrected.as_of(valid="2026-05-01")

    (node,) = view.query("MATCH (n:Node) RETURN n.author AS author, n.told AS told, n.remainder AS remainder")
    assert {"author": "ana", "told": day("2026-02-01"), "remainder": True} == node
    (link,) = view.query(
        "MATCH ()-[l:SUPERSEDES]->() RETURN l.author AS author, l.told AS told, l.remainder AS remainder"
    )
    assert {"author": "ana", "told": day("2026-02-01"), "remainder": True} == link
