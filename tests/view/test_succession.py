"""What became of a thing: each step in order, its end at the very instant, and only revisions of what a version had lost."""

from __future__ import annotations

import pytest

from graphstore import GraphStore, Node
from tests.conftest import Clock

pytestmark = pytest.mark.served


def test_an_end_counts_from_its_instant_on(store: GraphStore) -> None:
    store.add_node("fact", {}, id="one", valid_from="2026-01-01")
    store.end("one", at="2026-01-10")

    before = store.as_of(valid="2026-01-09T23:59:59.999999Z").what_superseded("one")
    assert ([], ["one"]) == ([*before.chain], [node.id for node in before.current])
    (step,) = store.as_of(valid="2026-01-10").what_superseded("one").chain
    assert ("ended", "2026-01-10") == (step.how, f"{step.since:%Y-%m-%d}")


def test_only_what_was_written_over_lost_time_revised_a_version(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-05", valid_to="2026-01-20")
    for number, (start, stop) in enumerate((("10", "20"), ("20", "25"), ("01", "05"), ("04", "06")), 2):
        clock.move(days=1)
        store.revise("one", {"n": number}, valid_from=f"2026-01-{start}", valid_to=f"2026-01-{stop}")

    found = store.as_of(valid="2026-01-12").what_superseded("one-v1")
    assert [("revised", 2), ("revised", 5)] == [
        (step.how, step.node and step.node.number) for step in found.chain
    ]


@pytest.mark.parametrize("first", ["d", "e"])
def test_the_steps_of_one_depth_are_in_the_order_of_their_links(
    store: GraphStore, clock: Clock, first: str
) -> None:
    for id in "abcde":
        store.add_node("fact", {}, id=id, valid_from="2026-01-01")
    clock.move(days=1)
    second = "d" if first == "e" else "e"
    for new, old, at in (("b", "a", "02"), ("c", "a", "03"), (first, "b" if first == "d" else "c", "05"),
                         (second, "b" if second == "d" else "c", "06")):  # fmt: skip
        store.link(new, "supersedes", old, valid_from=f"2026-01-{at}")

    chain = store.what_superseded("a").chain
    assert ["b", "c", first, second] == [step.node.id for step in chain if step.node]


def test_a_revision_that_was_undone_revised_nothing(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-05")
    clock.move(days=1)
    slip = store.revise("one", {"n": 2}).recorded_at
    clock.move(days=1)
    undo = store.undo(slip, reason="a slip")
    undone = store.what_superseded("one-v1")
    clock.move(days=1)
    store.undo(undo.tx, reason="it was right")

    assert ((), "one stands; nothing superseded it.") == (undone.chain, str(undone))
    assert ["revised"] == [step.how for step in store.what_superseded("one-v1").chain]
    assert undone.chain == store.as_of(tx=undo.tx).what_superseded("one-v1").chain


def test_a_version_whose_time_is_over_names_the_version_that_holds(store: GraphStore) -> None:
    store.add_node("fact", {"n": 1}, id="one", valid_from="2026-01-05")
    store.revise("one", {"n": 2}, valid_from="2026-02-01", valid_to="2026-02-10")

    found = store.as_of(valid="2026-02-15").what_superseded("one-v2")
    assert ("superseded", (), [1]) == (
        found.standing,
        found.chain,
        [node.number for node in found.current if isinstance(node, Node)],
    )
    assert "one held 2026-02-01 → 2026-02-10 as one-v2. Standing now: one as one-v1." == str(found)
