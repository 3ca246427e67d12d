"""What a value took from an earlier one comes back when it is taken back, or goes to the value that holds there."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytestmark = pytest.mark.served

Told = list[tuple[str, str, str, str | None]]


def say(store: GraphStore, id: str, valid_from: str, valid_to: str | None = None, **more: str) -> None:
    store.add_node("fact", {"day": id}, id=id, key="day", valid_from=valid_from, valid_to=valid_to, **more)


def periods(store: GraphStore, id: str) -> list[tuple[str, str | None]]:
    return [
        (f"{row.valid_from:%m-%d}", row.valid_to and f"{row.valid_to:%m-%d}") for row in store.history(id)
    ]


def links(store: GraphStore, id: str, target: str, valid: str) -> Told:
    """The links from one value to another at a time: kind, by whom, from, to."""
    return sorted(
        (link.kind, link.created_by, f"{link.valid_from:%m-%d}", link.valid_to and f"{link.valid_to:%m-%d}")
        for link in store.as_of(valid=valid).links_from(id)
        if link.target == target
    )


@pytest.fixture(params=[None, "2026-01-25"])
def three(store: GraphStore, clock: Clock, request: pytest.FixtureRequest) -> tuple[GraphStore, str | None]:
    """Three values of a slot, each after the one before; the last one for good, or for five days."""
    say(store, "a", "2026-01-01")
    say(store, "b", "2026-01-10")
    clock.move(days=1)
    say(store, "c", "2026-01-20", request.param)
    clock.move(days=1)
    return store, request.param and request.param[5:]


def test_where_a_later_value_holds_it_supersedes_what_comes_back(
    three: tuple[GraphStore, str | None],
) -> None:
    store, until = three
    store.retract("b", reason="a slip")

    assert [("01-01", "01-20"), *([(until, None)] if until else [])] == periods(store, "a")
    assert [("01-20", until)] == periods(store, "c")
    assert [
        ("contradicts", "store", "01-20", until),
        ("supersedes", "store", "01-20", until),
        ("transition", "store", "01-20", until),
    ] == links(store, "c", "a", "2026-01-22")
    assert "superseded" == store.as_of(valid="2026-01-22").inspect("a").node.standing
    assert store.verify().ok


def test_and_gives_it_back_in_its_turn(three: tuple[GraphStore, str | None], clock: Clock) -> None:
    store, _ = three
    store.retract("b", reason="a slip")
    clock.move(days=1)
    store.retract("c", reason="a slip too")

    assert [("01-01", None)] == periods(store, "a")
    assert [] == links(store, "c", "a", "2026-01-22")
    assert "stands" == store.inspect("a").node.standing
    assert store.verify().ok


def test_a_value_that_supersedes_it_already_takes_it_by_the_same_link(
    store: GraphStore, clock: Clock
) -> None:
    say(store, "a", "2026-01-01")
    say(store, "b", "2026-01-10")
    clock.move(days=1)
    say(store, "c", "2026-01-20", supersedes="a")
    before = links(store, "c", "a", "2026-01-22")
    clock.move(days=1)
    store.retract("b", reason="a slip")

    assert before == links(store, "c", "a", "2026-01-22")
    assert [("01-01", "01-20")] == periods(store, "a")
    clock.move(days=1)
    store.retract("c", reason="a slip too")
    assert [("01-01", None)] == periods(store, "a")


def test_links_with_reasons_of_others_stay_where_a_supersession_is_taken_back(store: GraphStore) -> None:
    say(store, "a", "2026-01-01")
    store.add_node("fact", {}, id="c", valid_from="2026-01-20")
    store.link("c", "contradicts", "a", reason="seen", valid_from="2026-01-20")
    store.supersede("a", by="c", valid_from="2026-01-20")
    store.retract("c", valid_from="2026-02-20", reason="over")

    assert [("contradicts", "user", "01-20", None)] == [
        told for told in links(store, "c", "a", "2026-01-22") if told[0] == "contradicts"
    ]


@pytest.mark.parametrize("first", ["b", "c"])
def test_two_that_are_taken_back_leave_what_there_was(store: GraphStore, clock: Clock, first: str) -> None:
    say(store, "a", "2026-01-01", "2026-01-31")
    say(store, "b", "2026-01-10", "2026-01-31")
    clock.move(days=1)
    say(store, "c", "2026-01-20", "2026-01-31")
    for id in (first, "c" if first == "b" else "b"):
        clock.move(days=1)
        store.retract(id, reason="a slip")

    assert [("01-01", "01-31")] == periods(store, "a")
    assert [] == [told for id in "bc" for told in links(store, id, "a", "2026-01-22")]
    assert store.verify().ok
