"""What a transaction that failed leaves of deep histories and hubs: nothing, also not in what speeds up their search."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest

from graphstore import GraphStore
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

FIRST = day("2025-01-01")


def at(number: float) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def deep(store: GraphStore, id: str, count: int, step: int) -> None:
    """A node of many periods, some days apart, each with its number."""
    store.add_node("fact", {"n": 0}, id=id, valid_from=at(0), valid_to=at(1))
    for number in range(1, count):
        store.revise(id, {"n": number}, valid_from=at(step * number), valid_to=at(step * number + 1))


def numbers(store: GraphStore, id: str, tx: object, days: int) -> list[int | None]:
    shown = []
    for number in range(days):
        view = store.as_of(valid=at(number + 0.5), tx=tx)
        shown.append(next((node.content["n"] for node in view.nodes() if node.id == id), None))
    return shown


@pytest.mark.parametrize("again", ["gone", "new"])
def test_a_deep_history_that_was_never_committed_is_forgotten(
    store: GraphStore, clock: Clock, again: str
) -> None:
    with contextlib.suppress(RuntimeError), store.transaction():
        deep(store, "gone", 70, 2)
        store.retract("gone", reason="a slip")
        numbers(store, "gone", None, 10)
        raise RuntimeError
    deep(store, again, 70, 3)
    seen = clock.move(days=1)
    store.as_of(tx=seen)
    clock.move(days=1)
    store.retract(again, reason="a slip")
    expected = [number // 3 if number % 3 == 0 else None for number in range(210)]
    assert expected == numbers(store, again, seen, 210)
    assert store.verify().ok


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_links_of_a_hub_are_as_before(store: GraphStore, clock: Clock, rounds: int) -> None:
    for id in ("hub", *(f"n{number}" for number in range(80))):
        store.add_node("fact", {}, id=id, valid_from=at(0))
    for number in range(40):
        store.link(
            "hub",
            "related_to",
            f"n{number}",
            id=f"link-{number}",
            valid_from=at(number),
            valid_to=at(number + 5),
        )

    def told() -> list[list[str]]:
        views = [store.as_of(valid=at(days)) for days in (0, 3, 20, 44, 90)]
        return [sorted(link.id for link in view.links_from("hub")) for view in views]

    before = told()
    for _ in range(rounds):
        with contextlib.suppress(RuntimeError), store.transaction():
            for number in range(40):
                store.link("hub", "related_to", f"n{number + 40}", valid_from=at(90), valid_to=at(91))
                store.unlink(f"link-{number}", valid_from=at(number + 2))
            assert 40 == len(told()[-1])
            raise RuntimeError
        assert before == told()
    clock.move(days=1)
    for number in range(40):
        store.link(
            "hub", "related_to", f"n{79 - number}", id=f"new-{number}", valid_from=at(20), valid_to=at(21)
        )
    assert sorted([*before[2], *(f"new-{number}" for number in range(40))]) == told()[2]
    assert [before[at] for at in (0, 1, 3, 4)] == [told()[at] for at in (0, 1, 3, 4)]
