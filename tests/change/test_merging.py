"""A merge revives nothing that one side took back: where the other side states that time since, or confirmed it, that is a conflict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, NotFoundError
from tests.change.programs import DAYS, Hours

pytestmark = pytest.mark.in_process("holds stores of its own")

Act = Callable[[Any], object]
NEW = {"says": "new"}


def told() -> tuple[GraphStore, Hours]:
    """A plan with a bound of its own, something superseded, and a slot whose value will be replaced."""
    hours = Hours()
    store = graphstore.open(":memory:", clock=hours)
    for id, more in (
        ("plan", {"valid_to": DAYS[4]}),
        ("old", {}),
        ("mondays", {"key": "day"}),
    ):
        store.add_node("fact", {"says": id}, id=id, valid_from=DAYS[0], **more)
        hours.move()
    store.add_node("fact", {"says": "next"}, id="next", valid_from=DAYS[3], supersedes=["old"])
    hours.move()
    store.add_node("fact", {"says": "fridays"}, id="fridays", key="day", valid_from=DAYS[5])
    hours.move()
    store.link("plan", "part_of", "old", valid_from=DAYS[0], valid_to=DAYS[4])
    hours.move()
    return store, hours


TAKEN_BACK: dict[str, tuple[str, Act]] = {
    "retracted": ("plan", lambda s: s.retract("plan", reason="never so")),
    "retracted later": ("plan", lambda s: s.retract("plan", valid_from=DAYS[2], reason="not any more")),
    "ended": ("plan", lambda s: s.end("plan", at=DAYS[2], reason="over")),
    "superseded": ("plan", lambda s: s.add_node("fact", NEW, id="other", valid_from=DAYS[2], supersedes=["plan"])),
    "corrected": ("plan", lambda s: s.add_node("fact", NEW, id="other", valid_from=DAYS[2], corrects=["plan"])),
}  # fmt: skip
STATED: dict[str, Act] = {
    "revised": lambda s: s.revise("plan", NEW),
    "amended": lambda s: s.amend("plan", {"more": 1}),
    "extended": lambda s: s.revise("plan", {"says": "plan"}, valid_from=DAYS[0], valid_to=graphstore.OPEN),
    "described for later": lambda s: s.revise("plan", NEW, valid_from=DAYS[6], valid_to=graphstore.OPEN),
}


def merged(trunk: Act, branch: Act, **more: Any) -> tuple[GraphStore, Any, Any]:
    store, hours = told()
    line = store.branch("line")
    hours.move()
    branch(line)
    hours.move()
    trunk(store)
    hours.move()
    return store, line, store.merge("line", **more)


def says(view: Any, id: str, at: Any) -> Any:
    try:
        return view.as_of(valid=at).node(id).content
    except NotFoundError:
        return view.as_of(valid=at).inspect(id).node.standing


@pytest.mark.parametrize("on_trunk", [True, False])
@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("taken", TAKEN_BACK)
def test_what_one_side_took_back_and_the_other_states_is_a_conflict(
    taken: str, stated: str, on_trunk: bool
) -> None:
    takes, states = TAKEN_BACK[taken][1], STATED[stated]
    trunk, branch = (takes, states) if on_trunk else (states, takes)
    asked = [at + timedelta(hours=1) for at in DAYS]
    store, line, done = merged(trunk, branch)
    with store:
        assert not done.merged
        assert {"plan"} == {found.id for found in done.conflicts}
        word = "retracted" if taken in ("retracted", "retracted later", "corrected") else taken
        # beyond the plan's own end it has ended, whatever the verb that spoke of that time
        standings = {
            found.ours_standing if on_trunk else found.theirs_standing for found in done.conflicts
        } - {None}
        assert standings and standings <= {word, "ended"}
        assert "that it is" in str(done.conflicts[-1])
        by_side = {
            side: {at: says(view, "plan", at) for at in asked}
            for side, view in (("trunk", store), ("branch", line))
        }
        apart = [
            at for at in asked
            if any(found.valid_from <= at and (found.valid_to is None or at < found.valid_to) for found in done.conflicts)
        ]  # fmt: skip
        assert apart
    for side in ("trunk", "branch"):
        store, _, done = merged(trunk, branch, decide=side)
        with store:
            assert done.merged
            for at in apart:
                expected, found = by_side[side][at], says(store, "plan", at)
                if at < DAYS[4] or isinstance(expected, dict):
                    assert expected == found, (side, at)
                assert isinstance(expected, dict) is isinstance(found, dict), (side, at)
            assert store.verify().ok, store.verify().problems


@pytest.mark.parametrize("on_trunk", [True, False])
def test_what_one_side_says_never_was_and_the_other_confirmed_is_a_conflict(on_trunk: bool) -> None:
    takes, confirms = TAKEN_BACK["retracted"][1], lambda s: s.confirm("plan", reason="looked at it")
    trunk, branch = (takes, confirms) if on_trunk else (confirms, takes)
    store, _, done = merged(trunk, branch)
    with store:
        assert ["plan"] == [found.id for found in done.conflicts]
    for side in ("trunk", "branch"):
        store, _, done = merged(trunk, branch, decide=side)
        with store:
            expected = "retracted" if (side == "trunk") is on_trunk else {"says": "plan"}
            assert done.merged and expected == says(store, "plan", DAYS[1])
            assert store.verify().ok


def test_what_ended_on_one_side_and_was_confirmed_on_the_other_is_none() -> None:
    store, _, done = merged(TAKEN_BACK["ended"][1], lambda s: s.confirm("plan", reason="looked at it"))
    with store:
        assert done.merged and "ended" == says(store, "plan", DAYS[3])


@pytest.mark.parametrize("on_trunk", [True, False])
def test_taken_back_for_different_reasons_is_a_conflict(on_trunk: bool) -> None:
    one, other = TAKEN_BACK["retracted"][1], TAKEN_BACK["superseded"][1]
    trunk, branch = (one, other) if on_trunk else (other, one)
    store, _, done = merged(trunk, branch)
    with store:
        assert ["plan"] == [found.id for found in done.conflicts]
        (found,) = done.conflicts
        assert {"retracted", "superseded"} == {found.ours_standing, found.theirs_standing}
        assert (None, None) == (found.ours, found.theirs)
    store, _, done = merged(one, one)
    with store:
        assert done.conflicts == ()


@pytest.mark.parametrize("on_trunk", [True, False])
def test_what_was_withdrawn_does_not_come_back_with_a_successor_that_the_other_side_retracted(
    on_trunk: bool,
) -> None:
    def takes(s: Any) -> object:
        return s.retract("old", reason="never")

    def gives(s: Any) -> object:
        return s.retract("next", reason="no")

    trunk, branch = (takes, gives) if on_trunk else (gives, takes)
    store, _, done = merged(trunk, branch)
    with store:
        assert {"old"} == {found.id for found in done.conflicts if found.what == "node"}
    store, _, done = merged(trunk, branch, decide="trunk" if on_trunk else "branch")
    with store:
        assert "retracted" == says(store, "old", DAYS[5]) == says(store, "old", DAYS[1])


@pytest.mark.parametrize("on_trunk", [True, False])
def test_a_value_that_was_withdrawn_does_not_come_back_to_its_slot(on_trunk: bool) -> None:
    def takes(s: Any) -> object:
        return s.retract("mondays", reason="never")

    def gives(s: Any) -> object:
        return s.retract("fridays", reason="cancelled")

    trunk, branch = (takes, gives) if on_trunk else (gives, takes)
    store, _, done = merged(trunk, branch)
    with store:
        assert "mondays" in {found.id for found in done.conflicts}
    store, _, done = merged(trunk, branch, decide="trunk" if on_trunk else "branch")
    with store:
        assert "retracted" == says(store, "mondays", DAYS[7]) == says(store, "mondays", DAYS[1])


@pytest.mark.parametrize("on_trunk", [True, False])
def test_an_unlinked_link_that_the_other_side_says_longer_is_a_conflict(on_trunk: bool) -> None:
    def takes(s: Any) -> object:
        return s.unlink(source="plan", kind="part_of", target="old")

    def says_it(s: Any) -> object:
        return s.link("plan", "part_of", "old", valid_from=DAYS[0], valid_to=DAYS[8])

    trunk, branch = (takes, says_it) if on_trunk else (says_it, takes)
    store, _, done = merged(trunk, branch)
    with store:
        assert ["link"] == [found.what for found in done.conflicts]
    for side in ("trunk", "branch"):
        store, _, done = merged(trunk, branch, decide=side)
        with store:
            left = store.as_of(valid=DAYS[6]).links_from("plan", "part_of")
            assert done.merged and bool(left) is ((side == "trunk") is not on_trunk)


def test_an_undo_on_the_trunk_is_not_overwritten() -> None:
    hours = Hours()
    with graphstore.open(":memory:", clock=hours) as store:
        slip = store.add_node("fact", {}, id="slip", valid_from=DAYS[0], valid_to=DAYS[4])
        hours.move()
        line = store.branch("line")
        line.revise("slip", NEW, valid_from=DAYS[5], valid_to=graphstore.OPEN)
        hours.move()
        store.undo(slip.tx_from, reason="a slip")
        hours.move()
        done = store.merge("line")
        assert ["slip"] == [found.id for found in done.conflicts]


def test_what_was_erased_on_the_trunk_does_not_come_back() -> None:
    store, hours = told()
    with store:
        line = store.branch("line")
        line.revise("plan", NEW)
        hours.move()
        store.erase("plan", reason="a secret")
        hours.move()
        store.merge("line")
        assert "erased" == store.inspect("plan").node.standing


@pytest.mark.parametrize("on_trunk", [True, False])
def test_an_event_that_one_side_retracted_and_the_other_confirmed_is_a_conflict(on_trunk: bool) -> None:
    def takes(s: Any) -> object:
        return s.retract("outage", reason="a false alarm")

    def confirms(s: Any) -> object:
        return s.confirm("outage", reason="it is in the log")

    hours = Hours()
    with graphstore.open(":memory:", clock=hours) as store:
        store.record_event("outage", "it was down", id="outage", occurred_at=DAYS[0])
        hours.move()
        line = store.branch("line")
        (confirms if on_trunk else takes)(line)
        hours.move()
        (takes if on_trunk else confirms)(store)
        hours.move()
        (found,) = store.merge("line").conflicts
        assert ("event", "outage") == (found.what, found.id)
        store.merge("line", decide="trunk")
        assert ("retracted" if on_trunk else "stands") == store.inspect("outage").node.standing
