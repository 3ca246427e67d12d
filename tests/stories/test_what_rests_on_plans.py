"""What is booked for a launch that is still to come, and what an outage caused: how each stands once the plan changes, or the outage never was."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphstore import GraphStore
from tests.conftest import Clock

pytestmark = pytest.mark.served

Change = Callable[[Any], object]
LAUNCH, NOW = "2026-06-01", "2026-03-01"
BEFORE, LATER = "2026-03-15", "2026-06-15"


@pytest.fixture
def launch(store: GraphStore, clock: Clock) -> GraphStore:
    """A launch in June; in March a venue is booked for it, and catering for the venue."""
    clock.set(NOW)
    store.add_node("plan", {"says": "we launch in June"}, id="launch", valid_from=LAUNCH)
    store.add_node("booking", {"says": "the hall is ours in June"}, id="venue", derived_from="launch")
    store.add_node("booking", {"says": "lunch for a hundred"}, id="catering", derived_from="venue")
    clock.move(days=1)
    return store


def cancelled(store: Any) -> None:
    store.retract("launch", reason="cancelled")


def brought_forward(store: Any) -> None:
    store.add_node(
        "plan", {"says": "we launch in May"}, id="sooner", valid_from="2026-05-01", supersedes="launch"
    )


def corrected(store: Any) -> None:
    store.add_node("plan", {"says": "we launch on paper"}, id="paper", valid_from=LAUNCH, corrects="launch")


def moved_by_a_correction(store: Any) -> None:
    store.add_node(
        "plan", {"says": "we launch in May"}, id="sooner", valid_from="2026-05-01", corrects="launch"
    )


def replaced(store: Any) -> None:
    store.add_node("plan", {"says": "we open a shop"}, id="shop", valid_from=LAUNCH, supersedes="launch")


NEVER_BEGAN = (cancelled, brought_forward, corrected, moved_by_a_correction, replaced)


def standings(view: Any, *ids: str) -> list[str]:
    return [view.inspect(id).node.standing for id in ids]


@pytest.mark.parametrize("change", NEVER_BEGAN)
def test_what_was_booked_is_shaky_now_though_the_launch_had_not_begun(
    launch: GraphStore, change: Change
) -> None:
    assert ["stands", "stands"] == standings(launch, "venue", "catering")

    change(launch)

    assert ["shaky", "shaky"] == standings(launch, "venue", "catering")
    assert ["shaky", "shaky"] == standings(launch.as_of(valid=LATER), "venue", "catering")
    assert {"launch"} == {found.root.id for found in launch.shaky()}


@pytest.mark.parametrize("change", NEVER_BEGAN)
def test_undo_of_the_change_takes_it_away_again(launch: GraphStore, clock: Clock, change: Change) -> None:
    change(launch)
    clock.move(days=1)
    launch.undo(launch.changes()[-1].tx, reason="a slip")

    assert ["stands", "stands"] == standings(launch, "venue", "catering")
    assert ["shaky", "shaky"] == standings(launch.as_of(tx=launch.changes()[-2].tx), "venue", "catering")


@pytest.mark.parametrize("change", NEVER_BEGAN)
def test_who_confirms_the_booking_is_not_asked_again(
    launch: GraphStore, clock: Clock, change: Change
) -> None:
    change(launch)
    clock.move(days=1)
    launch.confirm("venue", reason="we need it all the same")

    assert ["stands", "stands"] == standings(launch, "venue", "catering")
    clock.move(days=1)
    launch.add_node("fact", {}, id="other", valid_from=NOW, derived_from="launch")
    assert ["stands", "shaky"] == standings(launch, "venue", "other")


@pytest.mark.parametrize("change", NEVER_BEGAN)
def test_the_order_of_recording_does_not_matter(store: GraphStore, clock: Clock, change: Change) -> None:
    clock.set(NOW)
    store.add_node("plan", {"says": "we launch in June"}, id="launch", valid_from=LAUNCH)
    change(store)
    clock.move(days=1)
    store.add_node("booking", {"says": "the hall is ours in June"}, id="venue", derived_from="launch")

    assert ["shaky"] == standings(store, "venue")


@pytest.mark.parametrize("change", NEVER_BEGAN)
def test_on_a_branch_it_is_shaky_there_alone_until_it_is_merged(
    launch: GraphStore, clock: Clock, change: Change
) -> None:
    line = launch.branch("what-if")
    clock.move(days=1)
    change(line)

    assert ["shaky", "shaky"] == standings(line, "venue", "catering")
    assert ["stands", "stands"] == standings(launch, "venue", "catering")
    clock.move(days=1)
    launch.merge("what-if")
    assert ["shaky", "shaky"] == standings(launch, "venue", "catering")
    assert launch.verify().ok


def test_support_for_a_plan_counts_the_other_way_round(store: GraphStore, clock: Clock) -> None:
    clock.set(NOW)
    store.add_node("forecast", {"says": "May will be warm"}, id="forecast", valid_from="2026-05-01")
    store.add_node("decision", {"says": "we order ice"}, id="ice")
    store.link("forecast", "supports", "ice")

    assert ["stands"] == standings(store, "ice")
    store.retract("forecast", reason="of another town")
    assert ["shaky"] == standings(store, "ice")


def test_a_launch_that_ends_or_is_replaced_later_shakes_from_then_on(
    launch: GraphStore, clock: Clock
) -> None:
    launch.end("launch", at="2026-08-01")

    assert ["stands", "stands", "shaky"] == [
        *standings(launch, "venue"),
        *standings(launch.as_of(valid=LATER), "venue"),
        *standings(launch.as_of(valid="2026-08-02"), "venue"),
    ]


def test_a_part_of_the_launch_taken_back_shakes_there_alone(launch: GraphStore) -> None:
    launch.retract("launch", valid_from="2026-07-01", valid_to="2026-08-01", reason="closed in July")

    assert ["stands", "shaky", "stands"] == [
        standings(launch.as_of(valid=day), "venue")[0] for day in (LATER, "2026-07-15", "2026-08-02")
    ]


def test_a_launch_that_is_on_again_shakes_nothing(launch: GraphStore, clock: Clock) -> None:
    brought_forward(launch)
    clock.move(days=1)
    launch.retract("sooner", reason="back to June")

    assert ["stands", "stands"] == standings(launch, "venue", "catering")


@pytest.fixture
def outage(store: GraphStore, clock: Clock) -> GraphStore:
    """An outage was over before the migration that it caused began."""
    store.add_node(
        "incident", {"says": "the disk was full"}, id="outage", valid_from="2026-01-02", valid_to="2026-01-03"
    )
    store.add_node("project", {"says": "we move to larger disks"}, id="migration", valid_from="2026-01-10")
    store.link("migration", "caused_by", "outage", reason="never again")
    clock.move(days=30)
    return store


def test_an_outage_that_never_was_shakes_the_migration_it_caused(outage: GraphStore) -> None:
    assert ["stands"] == standings(outage, "migration")

    outage.retract("outage", reason="a broken sensor")

    assert ["shaky"] == standings(outage, "migration")
    assert ["shaky"] == [node.standing for node in outage.effects("outage").nodes]
    (found,) = outage.shaky()
    assert ("outage", "a broken sensor") == (found.root.id, found.why)
    assert (0, 1) == (found.stand, found.of)


@pytest.mark.parametrize("change", [
    lambda s: s.end("outage", at="2026-01-02T12:00:00Z"),
    lambda s: s.revise("outage", {"says": "the disk was broken"}),
    lambda s: s.add_node("incident", {}, id="next", valid_from="2026-01-02T12:00:00Z", supersedes="outage"),
    lambda s: s.retract("outage", valid_from="2026-01-02T12:00:00Z", reason="shorter"),
])  # fmt: skip
def test_what_became_of_a_cause_but_that_it_never_was_shakes_no_effect(
    outage: GraphStore, change: Change
) -> None:
    change(outage)

    assert ["stands"] == standings(outage, "migration")


def test_an_event_still_to_come_is_a_foundation_too(store: GraphStore, clock: Clock) -> None:
    clock.set(NOW)
    store.record_event("deploy", "the release", id="release", occurred_at=LAUNCH)
    store.add_node("note", {"says": "the notes are written"}, id="notes", derived_from="release")
    store.record_event("observation", "the notes were read", id="read", occurred_at=NOW)
    store.link("read", "derived_from", "release")
    assert ["stands", "stands"] == standings(store, "notes", "read")
    clock.move(days=1)
    store.record_event("deploy", "another release", id="other", occurred_at="2026-05-01")
    store.supersede("release", by="other")
    assert ["shaky", "shaky"] == standings(store, "notes", "read")
    store.undo(store.changes()[-1].tx, reason="a slip")
    assert ["stands", "stands"] == standings(store, "notes", "read")
    store.retract("release", reason="cancelled")
    assert ["shaky", "shaky"] == standings(store, "notes", "read")


def test_what_replaces_its_foundation_is_shaken_only_by_what_never_was(
    store: GraphStore, clock: Clock
) -> None:
    store.add_node("fact", {"says": "a poll"}, id="poll", valid_from="2026-01-01")
    store.add_node("fact", {"says": "draft"}, id="draft", valid_from="2026-01-01", derived_from="poll")
    store.add_node(
        "fact",
        {"says": "final"},
        id="final",
        valid_from="2026-01-02",
        supersedes="draft",
        derived_from="draft",
    )
    clock.move(days=1)
    store.end("poll", at="2026-01-05")
    assert ["stands"] == standings(store, "final")
    store.retract("poll", reason="made up")
    assert ["shaky"] == standings(store, "final")
    store.confirm("final", reason="we know otherwise")
    store.retract("draft", reason="never written")
    assert ["shaky"] == standings(store, "final")


def test_what_corrects_its_foundation_is_not_shaken_by_that(store: GraphStore) -> None:
    store.add_node("fact", {"says": "300 came"}, id="count", valid_from="2026-01-01")
    store.add_node(
        "fact",
        {"says": "250 came"},
        id="recount",
        valid_from="2026-01-01",
        corrects="count",
        derived_from="count",
    )

    assert ["stands"] == standings(store, "recount")


def test_a_summary_is_made_of_things_as_they_were(store: GraphStore, clock: Clock) -> None:
    for id in ("one", "two", "three"):
        store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    store.end("one", at="2026-01-05")
    clock.move(days=1)
    summary = store.fold(["one", "two", "three"], into={"says": "three things"})
    assert all(link.history for link in store.links_from(summary.id))
    assert 0 == store.inspect(summary.id).confirmations
    clock.move(days=1)
    store.revise("two", {"says": "two and a half"})
    store.add_node("fact", {"says": "four"}, id="four", supersedes="three")
    assert ["stands"] == standings(store, summary.id)

    store.retract("three", reason="never so")
    assert ["shaky"] == standings(store, summary.id)
    grounds = store.grounds(summary.id)
    assert (2, 3) == (grounds.stand, grounds.of)
    assert [(None, True), (None, True), ("retracted", False)] == [
        (one.how, one.stands) for one in grounds.foundations
    ]


def test_grounds_say_what_became_of_each_foundation_when_and_why(store: GraphStore, clock: Clock) -> None:
    for id in ("phones", "budget", "team"):
        store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    store.add_node(
        "plan", {"says": "an app"}, id="app", derived_from=["phones", "budget"], valid_from="2026-01-01"
    )
    store.link("team", "supports", "app")
    told = clock.move(days=1)
    store.retract("budget", reason="it was last year's")
    found = store.grounds("app")

    assert (2, 3) == (found.stand, found.of)
    assert ["phones", "budget", "team"] == [one.id for one in found.foundations]
    budget = found.foundations[1]
    assert ("retracted", "it was last year's", told, False) == (
        budget.how,
        budget.why,
        budget.recorded_at,
        budget.rechecked,
    )
    assert found.shaky is not None and "budget" == found.shaky.root.id
    assert "2 of 3 foundations still stand" in str(found)
    assert "2 of 3 foundations still stand" in str(store.shaky()[0])
    assert found == store.inspect("app").grounds
    store.confirm("app", reason="money was found")
    after = store.grounds("app")
    assert (2, 3, None, True) == (after.stand, after.of, after.shaky, after.foundations[1].rechecked)
    assert 0 == store.grounds("phones").of and store.inspect("phones").grounds is None


def test_the_example_of_the_page_prints_what_it_says(store: GraphStore, clock: Clock) -> None:
    clock.set("2026-11-30")
    clock.move(hours=9)
    page = (Path(__file__).parents[2] / "docs" / "semantics" / "foundations.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {"store": store})

    assert f"# {said.getvalue()}" in code
