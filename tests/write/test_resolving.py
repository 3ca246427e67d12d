"""Deciding a contradiction as a write: who may, and what comes back or stays away with the one that is retracted."""

from __future__ import annotations

import pytest

from graphstore import ConflictError, Contradiction, GraphStore
from tests.conftest import Clock

pytestmark = pytest.mark.served


@pytest.fixture
def disputed(store: GraphStore, clock: Clock) -> tuple[GraphStore, Contradiction]:
    """`wrong` replaced `old`, was itself replaced over ten days by `later`, and contradicts `right`."""
    with store.transaction(author="ann"):
        for id, at in (("old", "01"), ("wrong", "05"), ("right", "05")):
            store.add_node("fact", {"says": id}, id=id, valid_from=f"2026-01-{at}")
        store.supersede("old", by="wrong", valid_from="2026-01-05")
        store.add_node("fact", {"says": "later"}, id="later", valid_from="2026-01-10", valid_to="2026-01-20")
        store.link("later", "supersedes", "wrong", valid_from="2026-01-10", valid_to="2026-01-20")
    store.link("right", "contradicts", "wrong", valid_from="2026-01-05")
    clock.move(days=1)
    (found,) = [one for one in store.contradictions() if {one.source.id, one.target.id} == {"right", "wrong"}]
    return store, found


def test_what_the_retracted_one_replaced_comes_back(disputed: tuple[GraphStore, Contradiction]) -> None:
    store, found = disputed
    store.resolve(found, keep="right", reason="asked")
    assert ["stands", "stands"] == [
        store.as_of(valid=valid).inspect("old").node.standing for valid in ("2026-01-02", "2026-01-07")
    ]
    assert store.verify().ok


def test_the_retracted_one_does_not_come_back_with_what_replaced_it(
    disputed: tuple[GraphStore, Contradiction], clock: Clock
) -> None:
    store, found = disputed
    store.resolve(found, keep="right", reason="asked")
    clock.move(days=1)
    store.retract("later", reason="a slip")
    for valid in ("2026-01-07", "2026-01-15", "2026-01-25"):
        assert "retracted" == store.as_of(valid=valid).inspect("wrong").node.standing


def test_who_ranks_lower_may_not_decide_against_it(disputed: tuple[GraphStore, Contradiction]) -> None:
    store, found = disputed
    store.set_trust({"ann": 1})
    before = len(list(store.changes()))
    with pytest.raises(ConflictError, match="trust"):
        store.resolve(found, keep="right", reason="asked")
    assert before == len(list(store.changes()))


def test_a_correction_begins_with_the_one_that_is_kept_and_is_made_once(
    disputed: tuple[GraphStore, Contradiction],
) -> None:
    store, found = disputed
    store.resolve(found, keep="right", reason="asked")
    (link,) = [each for each in store.links_from("right") if each.kind == "corrects"]
    assert ("wrong", "2026-01-05", "store", "asked") == (
        link.target,
        f"{link.valid_from:%Y-%m-%d}",
        link.created_by,
        link.reason,
    )
