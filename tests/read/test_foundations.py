"""What rests on what: when something falls, what stands on it is shaky until somebody looks at it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, View
from graphstore.errors import InvalidError, NotFoundError
from tests.conftest import Clock

pytestmark = pytest.mark.served


@pytest.fixture
def rumour(store: GraphStore, clock: Clock) -> GraphStore:
    """A conclusion drawn from a rumour, and a plan that is part of the conclusion. Told on the first of February; it is the second."""
    for id in ("rumour", "conclusion", "plan", "bystander"):
        store.add_node("fact", {"what": id}, id=id, valid_from="2026-01-01")
    store.link("conclusion", "derived_from", "rumour", valid_from="2026-01-01", id="lnk-rumour")
    store.link("plan", "derived_from", "conclusion", valid_from="2026-01-01", id="lnk-plan")
    clock.move(days=1)
    return store


def shaky(view: GraphStore | View) -> list[str]:
    return [found.node.id for found in view.shaky()]


def standings(view: GraphStore | View, *ids: str) -> list[str]:
    return [view.inspect(id).node.standing for id in ids]


# ---------------------------------------------------------------------- what shakes


def test_nothing_is_shaky_while_everything_stands(rumour: GraphStore) -> None:
    assert [] == rumour.shaky()
    assert ["stands"] * 4 == standings(rumour, "rumour", "conclusion", "plan", "bystander")


def test_a_retraction_shakes_what_rests_on_it_and_what_rests_on_that(rumour: GraphStore) -> None:
    rumour.retract("rumour", reason="made up")

    assert ["retracted", "shaky", "shaky", "stands"] == standings(
        rumour, "rumour", "conclusion", "plan", "bystander"
    )


@pytest.mark.parametrize(
    ("fall", "standing"),
    [
        (lambda s: s.retract("rumour", reason="made up"), "retracted"),
        (lambda s: s.add_node("fact", {"what": "news"}, supersedes="rumour"), "superseded"),
        (lambda s: s.supersede("rumour", by="bystander", valid_from="2026-01-15"), "superseded"),
        (lambda s: s.evict(ids=["rumour"]), "evicted"),
        (lambda s: s.erase("rumour", reason="private"), "erased"),
    ],
)
def test_each_way_to_fall_shakes(
    rumour: GraphStore, clock: Clock, fall: Callable[[GraphStore], object], standing: str
) -> None:
    fall(rumour)
    clock.move(days=1)

    assert [standing, "shaky", "shaky"] == standings(rumour, "rumour", "conclusion", "plan")
    assert {"rumour"} == {found.root.id for found in rumour.shaky()}


def test_what_was_evicted_and_then_erased_has_fallen_all_along(rumour: GraphStore, clock: Clock) -> None:
    before = rumour.as_of()
    clock.move(days=1)
    rumour.evict(ids=["rumour"])
    clock.move(days=1)
    between = rumour.as_of()
    clock.move(days=1)
    rumour.erase("rumour", reason="private")

    assert [[], ["conclusion", "plan"], ["conclusion", "plan"]] == [
        sorted(shaky(view)) for view in (before, between, rumour)
    ]


def test_an_evicted_event_happened_all_the_same_and_shakes_nothing(store: GraphStore, clock: Clock) -> None:
    store.record_event("message", "hello", id="said", occurred_at="2026-01-01")
    store.add_node("observation", {}, id="noticed", valid_from="2026-01-02", derived_from="said")
    clock.move(days=1)
    store.evict(ids=["said"])
    clock.move(days=1)
    evicted = store.as_of()
    clock.move(days=1)
    store.erase("said", reason="private")

    assert ([], ["noticed"]) == (shaky(evicted), shaky(store))


def test_an_evicted_event_that_was_retracted_or_superseded_shakes_on(store: GraphStore, clock: Clock) -> None:
    for number, name in enumerate(("kept", "taken-back", "superseded")):
        store.record_event("error", f"boom {number}", id=name, occurred_at="2026-01-01")
        store.add_node("fact", {}, id=f"on-{name}", valid_from="2026-01-02", derived_from=name)
    store.record_event("error", "it was this", id="instead", occurred_at="2026-01-01")
    clock.move(days=1)
    store.retract("taken-back", reason="a test")
    store.supersede("superseded", by="instead")
    before = sorted(shaky(store))
    clock.move(days=1)
    store.evict(ids=["kept", "taken-back", "superseded"])

    assert all("had fallen before it was evicted" in str(found) for found in store.shaky())
    assert ["on-superseded", "on-taken-back"] == before == sorted(shaky(store))
    for link in store.supersedes("instead"):
        store.unlink(link.id)
    assert "on-kept" not in shaky(store)


def test_the_value_of_a_slot_that_is_replaced_shakes_too(rumour: GraphStore, clock: Clock) -> None:
    rumour.add_node("fact", {"what": "keyed"}, id="keyed-one", key="k", valid_from="2026-01-01")
    rumour.link("bystander", "derived_from", "keyed-one", valid_from="2026-01-01")
    clock.move(days=1)
    rumour.add_node("fact", {"what": "other"}, id="the-other", key="k", valid_from="2026-01-20")

    assert ["bystander"] == shaky(rumour)
    assert [] == shaky(rumour.as_of(valid="2026-01-19"))


@pytest.mark.parametrize(
    ("source", "kind", "target", "shakes"),
    [
        ("bystander", "derived_from", "rumour", True),
        ("bystander", "caused_by", "rumour", True),
        ("bystander", "part_of", "rumour", False),
        ("rumour", "supports", "bystander", True),
        ("rumour", "causes", "bystander", True),
        ("rumour", "has_part", "bystander", False),
        ("rumour", "derived_from", "bystander", False),
        ("bystander", "supports", "rumour", False),
        ("bystander", "uses", "rumour", False),
        ("bystander", "related_to", "rumour", False),
        ("bystander", "possibly_caused_by", "rumour", True),
    ],
)
def test_what_rests_on_what_is_said_by_four_kinds(
    rumour: GraphStore, source: str, kind: str, target: str, shakes: bool
) -> None:
    rumour.link(source, kind, target, valid_from="2026-01-01")
    rumour.retract("rumour", reason="made up")

    assert shakes is ("bystander" in shaky(rumour))


@pytest.mark.parametrize("over", ["ended", "not_yet"])
def test_what_ended_shakes_and_what_has_not_begun_does_not(rumour: GraphStore, over: str) -> None:
    at = "2025-12-31" if over == "not_yet" else "2026-01-25"
    rumour.add_node("fact", {}, id="for-ever", valid_from="2020-01-01")
    rumour.link("for-ever", "derived_from", "rumour", valid_from="2020-01-01")
    rumour.end("rumour", at="2026-01-20")

    assert [over] == standings(rumour.as_of(valid=at), "rumour")
    assert ([] if over == "not_yet" else ["conclusion", "for-ever", "plan"]) == shaky(rumour.as_of(valid=at))


def test_what_ended_has_fallen_itself_and_what_is_behind_it_still_counts(rumour: GraphStore) -> None:
    rumour.end("conclusion", at="2026-01-20")
    rumour.retract("rumour", reason="made up")

    assert ["plan"] == shaky(rumour)
    assert "rumour" == rumour.shaky()[0].root.id
    assert "conclusion" == rumour.as_of(tx=rumour.changes()[-2].tx).shaky()[0].root.id
    assert ["conclusion", "plan"] == sorted(shaky(rumour.as_of(valid="2026-01-10")))


def test_one_of_two_grounds_is_enough(rumour: GraphStore) -> None:
    rumour.link("conclusion", "derived_from", "bystander", valid_from="2026-01-01")
    rumour.retract("bystander", reason="wrong")

    assert ["conclusion", "plan"] == sorted(shaky(rumour))


def test_a_ring_of_parts_is_shaken_once_each(rumour: GraphStore) -> None:
    rumour.link("conclusion", "derived_from", "plan", valid_from="2026-01-01")
    rumour.link("bystander", "derived_from", "plan", valid_from="2026-01-01")
    rumour.retract("rumour", reason="made up")

    assert ["conclusion", "plan", "bystander"] == shaky(rumour)


def test_an_event_can_fall_and_be_shaky(rumour: GraphStore, clock: Clock) -> None:
    seen = rumour.record_event("note", "somebody saw it", id="evt-seen", occurred_at="2026-01-05").event
    rumour.record_event("note", "and told me", id="evt-told", occurred_at="2026-01-06")
    rumour.link("evt-told", "derived_from", "evt-seen", valid_from="2026-01-06")
    rumour.link("bystander", "derived_from", "evt-told", valid_from="2026-01-06")
    clock.move(days=1)
    rumour.retract(seen.id, reason="not so")

    assert ["evt-told", "bystander"] == shaky(rumour)
    assert "shaky" == rumour.event("evt-told").standing


def test_a_superseded_event_shakes_from_when_its_link_was_told(rumour: GraphStore, clock: Clock) -> None:
    for id in ("evt-one", "evt-two"):
        rumour.record_event("note", id, id=id, occurred_at="2026-01-05")
    rumour.link("bystander", "derived_from", "evt-one", valid_from="2026-01-05")
    told = clock.move(days=1)
    rumour.supersede("evt-one", by="evt-two")

    (found,) = rumour.shaky()
    assert ("bystander", "evt-one", told) == (found.node.id, found.root.id, found.recorded_at)


# ---------------------------------------------------------------------- until somebody looks


@pytest.mark.parametrize(
    "look",
    [
        lambda s: s.confirm("conclusion", reason="asked around"),
        lambda s: s.confirm("conclusion", reason="asked around", source="ann"),
    ],
)
def test_a_look_steadies_it_and_what_rests_on_it(
    rumour: GraphStore, clock: Clock, look: Callable[[GraphStore], object]
) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    look(rumour)

    assert [] == shaky(rumour)


def test_saying_the_value_of_a_slot_again_steadies_it(rumour: GraphStore, clock: Clock) -> None:
    rumour.add_node("fact", {"day": "monday"}, id="on-monday", key="day", valid_from="2026-01-01")
    rumour.link("on-monday", "derived_from", "rumour", valid_from="2026-01-01")
    clock.move(days=1)
    rumour.retract("rumour", reason="made up")
    assert "on-monday" in shaky(rumour)

    clock.move(days=1)
    rumour.add_node("fact", {"day": "Monday"}, key="day")
    assert "on-monday" not in shaky(rumour)


def test_a_look_at_the_end_of_a_chain_steadies_only_that(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.confirm("plan", reason="good anyway")

    assert ["conclusion"] == shaky(rumour)


def test_a_look_before_the_fall_does_not_count(rumour: GraphStore, clock: Clock) -> None:
    rumour.confirm("conclusion", reason="asked around")
    clock.move(days=1)
    rumour.retract("rumour", reason="made up")

    assert ["conclusion", "plan"] == shaky(rumour)


def test_a_look_in_the_transaction_of_the_fall_counts(rumour: GraphStore) -> None:
    with rumour.transaction():
        rumour.confirm("plan", reason="before it fell")
        rumour.retract("rumour", reason="made up")
        rumour.confirm("conclusion", reason="holds without it")

    assert [] == shaky(rumour)


def test_a_look_before_the_fall_in_its_transaction_does_not_count(rumour: GraphStore) -> None:
    with rumour.transaction():
        rumour.confirm("conclusion", reason="before it fell")
        rumour.retract("rumour", reason="made up")

    assert ["conclusion", "plan"] == shaky(rumour)


def test_what_is_told_after_the_fall_is_shaky_from_birth(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.add_node("fact", {}, id="history", valid_from="2026-01-01")
    rumour.link("history", "derived_from", "rumour", valid_from="2026-01-01")

    assert "history" in shaky(rumour)


def test_a_later_fall_shakes_again(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.confirm("conclusion", reason="ok")
    rumour.link("conclusion", "derived_from", "bystander", valid_from="2026-01-01")
    clock.move(days=1)
    rumour.retract("bystander", reason="wrong")

    assert ["bystander", "bystander"] == [found.root.id for found in rumour.shaky()]


def test_a_split_is_no_new_word(rumour: GraphStore, clock: Clock) -> None:
    """A description cut in two after the fall was told when it was, not when it was cut."""
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.retract("conclusion", valid_from="2026-01-10", valid_to="2026-01-12", reason="not then")

    assert ["conclusion", "plan"] == shaky(rumour)


def test_a_description_counts_where_it_holds(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.revise("conclusion", {"what": "still so"}, valid_from="2026-01-20")

    assert ["plan"] == shaky(rumour)
    assert "conclusion" == rumour.shaky()[0].root.id
    assert ["conclusion", "plan"] == shaky(rumour.as_of(valid="2026-01-19"))


def test_a_supersession_of_what_had_ended_was_told_when_it_was(rumour: GraphStore, clock: Clock) -> None:
    rumour.end("rumour", at="2026-01-10")
    clock.move(days=1)
    rumour.confirm("conclusion", reason="ok")
    told = clock.move(days=1)
    rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")

    assert {told} == {found.recorded_at for found in rumour.shaky()}
    assert ["conclusion", "plan"] == shaky(rumour)


def test_a_supersession_told_again_of_what_was_described_anew_is_a_new_fall(
    rumour: GraphStore, clock: Clock
) -> None:
    rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")
    clock.move(days=1)
    rumour.revise("rumour", {"what": "it was true"}, valid_from="2026-01-15")
    rumour.confirm("conclusion", reason="ok")
    told = clock.move(days=1)
    rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")

    assert {told} == {found.recorded_at for found in rumour.shaky()}


def test_a_supersession_cut_short_is_as_old_as_it_was(rumour: GraphStore, clock: Clock) -> None:
    (link,) = rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")
    clock.move(days=1)
    rumour.confirm("conclusion", reason="ok")
    clock.move(days=1)
    rumour.unlink(link.id, valid_from="2026-03-01")

    assert [] == shaky(rumour)


def test_a_fall_undone_shakes_no_more(rumour: GraphStore, clock: Clock) -> None:
    (link,) = rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")
    assert ["conclusion", "plan"] == shaky(rumour)
    clock.move(days=1)
    rumour.unlink(link.id)

    assert [] == shaky(rumour)


# ---------------------------------------------------------------------- at every coordinate


def test_before_the_fall_was_told_nothing_was_shaky(rumour: GraphStore, clock: Clock) -> None:
    before = clock.now
    clock.move(days=1)
    rumour.retract("rumour", reason="made up")

    assert [] == shaky(rumour.as_of(valid="2026-01-20", tx=before))
    assert ["conclusion", "plan"] == shaky(rumour.as_of(valid="2026-01-20"))


def test_before_it_was_confirmed_it_was_shaky(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    before = clock.now
    clock.move(days=1)
    rumour.confirm("conclusion", reason="ok")

    assert ["conclusion", "plan"] == shaky(rumour.as_of(valid="2026-01-20", tx=before))


def test_where_the_old_one_still_held_nothing_is_shaky(rumour: GraphStore) -> None:
    rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")

    assert [] == shaky(rumour.as_of(valid="2026-01-14"))
    assert ["conclusion", "plan"] == shaky(rumour.as_of(valid="2026-01-15"))


def test_a_ground_given_up_before_the_fall_shakes_nothing_after(rumour: GraphStore) -> None:
    rumour.unlink("lnk-rumour", valid_from="2026-01-10", reason="found a better ground")
    rumour.retract("rumour", reason="made up")

    assert [] == shaky(rumour)
    assert ["conclusion", "plan"] == shaky(rumour.as_of(valid="2026-01-09"))


def test_a_ground_told_late_counts_from_then_on(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    before = clock.now
    clock.move(days=1)
    rumour.link("bystander", "derived_from", "rumour", valid_from="2026-01-01")

    assert "bystander" not in shaky(rumour.as_of(valid="2026-01-20", tx=before))
    assert "bystander" in shaky(rumour)


def test_erasing_changes_nothing_of_what_was_shaky_before(rumour: GraphStore, clock: Clock) -> None:
    before = clock.now
    told = clock.move(days=1)
    rumour.supersede("rumour", by="bystander", valid_from="2026-01-15")
    clock.move(days=1)
    rumour.erase("rumour", reason="private")

    assert [] == shaky(rumour.as_of(valid="2026-01-20", tx=before))
    assert {told} == {found.recorded_at for found in rumour.as_of(valid="2026-01-20", tx=told).shaky()}
    assert {clock.now} == {found.recorded_at for found in rumour.shaky()}


def test_something_erased_on_the_way_passes_on_what_it_did_before(rumour: GraphStore, clock: Clock) -> None:
    told = clock.move(days=1)
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.erase("conclusion", reason="private")

    assert ["plan"] == shaky(rumour.as_of(valid="2026-01-20", tx=told))
    assert ["conclusion"] == [found.root.id for found in rumour.shaky()]


# ---------------------------------------------------------------------- what is told of it


def test_each_says_why_since_when_and_by_what_way(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")

    conclusion, plan = rumour.shaky()
    assert ["lnk-rumour"] == [link.id for link in conclusion.links]
    assert ["lnk-plan", "lnk-rumour"] == [link.id for link in plan.links]
    assert ("rumour", "retracted", "made up", clock.now) == (
        plan.root.id,
        plan.root.standing,
        plan.why,
        plan.recorded_at,
    )
    assert "plan is shaky: rumour was retracted" in str(plan)


def test_the_latest_fall_comes_first(rumour: GraphStore, clock: Clock) -> None:
    rumour.retract("rumour", reason="made up")
    rumour.add_node("fact", {}, id="for-bystander", valid_from="2026-01-01")
    rumour.link("bystander", "derived_from", "for-bystander", valid_from="2026-01-01")
    clock.move(days=1)
    rumour.retract("for-bystander", reason="wrong")

    assert ["bystander", "conclusion", "plan"] == shaky(rumour)


def test_each_is_listed_once_under_the_latest_fall(rumour: GraphStore, clock: Clock) -> None:
    rumour.link("conclusion", "derived_from", "bystander", valid_from="2026-01-01")
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    rumour.retract("bystander", reason="wrong")

    assert [("conclusion", "bystander"), ("plan", "bystander")] == [
        (found.node.id, found.root.id) for found in rumour.shaky()
    ]


def test_the_way_told_is_the_shortest(rumour: GraphStore) -> None:
    rumour.link("plan", "derived_from", "rumour", valid_from="2026-01-02", id="lnk-short")
    rumour.retract("rumour", reason="made up")

    (plan,) = [found for found in rumour.shaky() if found.node.id == "plan"]
    assert ["lnk-short"] == [link.id for link in plan.links]


@pytest.mark.parametrize(
    ("limit", "ids"), [(1, ["conclusion"]), (9, ["conclusion", "plan"]), (None, ["conclusion", "plan"])]
)
def test_so_many_are_listed_as_asked(rumour: GraphStore, limit: int | None, ids: list[str]) -> None:
    rumour.retract("rumour", reason="made up")

    assert ids == [found.node.id for found in rumour.shaky(limit)]


def test_a_limit_is_a_whole_number(rumour: GraphStore) -> None:
    with pytest.raises(InvalidError, match="limit"):
        rumour.shaky(0)


def test_every_read_marks_it(rumour: GraphStore) -> None:
    rumour.retract("rumour", reason="made up")

    assert "shaky" == rumour.node("conclusion").standing
    assert {"shaky"} == {node.standing for node in rumour.nodes() if node.id in ("conclusion", "plan")}
    (link,) = rumour.links_from("plan")
    assert ("shaky", "shaky") == (link.source_standing, link.target_standing)
    assert "shaky" == rumour.what_superseded("plan").standing
    assert ["plan"] == [thing.id for thing in rumour.what_superseded("plan").current]


def test_cypher_sees_it(rumour: GraphStore) -> None:
    rumour.retract("rumour", reason="made up")
    rows = (
        rumour.as_of().query("MATCH (n:Node) WHERE n.standing = 'shaky' RETURN n.id AS id ORDER BY id").rows()
    )

    assert [{"id": "conclusion"}, {"id": "plan"}] == rows


def test_cypher_sees_shaky_events(rumour: GraphStore) -> None:
    rumour.record_event("note", "told me", id="evt-told", occurred_at="2026-01-06")
    rumour.link("evt-told", "derived_from", "rumour", valid_from="2026-01-06")
    rumour.retract("rumour", reason="made up")
    rows = rumour.as_of().query("MATCH (e:Event) RETURN e.standing AS standing").rows()

    assert [{"standing": rumour.event("evt-told").standing}] == rows


# ---------------------------------------------------------------------- confirming


def test_confirmations_are_counted_as_known(rumour: GraphStore, clock: Clock) -> None:
    before = clock.now
    for _ in range(2):
        clock.move(days=1)
        rumour.confirm("plan", reason="yes")

    assert (0, 2) == (
        rumour.as_of(tx=before).inspect("plan").confirmations,
        rumour.inspect("plan").confirmations,
    )


def test_a_confirmation_from_another_source_supports_it(rumour: GraphStore, clock: Clock) -> None:
    rumour.confirm("plan", reason="read it too", source="ann")

    (link,) = rumour.backlinks_to("plan", "supports")
    event = rumour.event(link.source)
    assert ("confirmation", "ann", "ann says so too", clock.now) == (
        event.type,
        event.source,
        event.description,
        link.valid_from,
    )


def test_the_same_source_again_is_an_occurrence_of_that_event(rumour: GraphStore, clock: Clock) -> None:
    for _ in range(3):
        clock.move(days=1)
        rumour.confirm("plan", reason="read it too", source="ann")

    (link,) = rumour.backlinks_to("plan", "supports")
    assert 3 == rumour.event(link.source).count
    assert 3 == rumour.inspect("plan").confirmations


def test_its_own_source_is_counted_only(rumour: GraphStore) -> None:
    rumour.add_node("fact", {}, id="by-ann", source="ann")
    rumour.confirm("by-ann", reason="still", source="ann")

    assert [] == rumour.backlinks_to("by-ann")
    assert 1 == rumour.inspect("by-ann").confirmations


def test_a_confirmation_taken_back_or_evicted_shakes_nothing(rumour: GraphStore, clock: Clock) -> None:
    rumour.confirm("bystander", reason="read it too", source="ann")
    (link,) = rumour.backlinks_to("bystander", "supports")
    clock.move(days=1)
    rumour.retract(link.source, reason="ann was wrong")
    assert [] == shaky(rumour)

    rumour.evict(ids=[link.source])
    assert [] == shaky(rumour)


def test_erasing_a_thing_takes_the_reasons_of_its_confirmations_along(rumour: GraphStore) -> None:
    rumour.confirm("bystander", reason="ann saw it too", source="ann")
    rumour.erase("bystander", reason="asked to")

    assert "ann saw it too" not in str(rumour.changes()) + str(rumour.events())


def test_nothing_believed_is_nothing_to_confirm(rumour: GraphStore) -> None:
    rumour.retract("plan", reason="no")
    before = rumour.stats()

    for id in ("plan", "nobody"):
        with pytest.raises(NotFoundError):
            rumour.confirm(id, reason="yes")
    with pytest.raises(InvalidError):
        rumour.confirm("rumour", reason="")
    assert before == rumour.stats()


# ---------------------------------------------------------------------- transactions, files


def test_a_block_that_fails_shakes_nothing(rumour: GraphStore) -> None:
    with pytest.raises(RuntimeError), rumour.transaction():
        rumour.add_node("fact", {}, id="new-ground")
        rumour.add_node("fact", {}, id="new-thing")
        rumour.link("new-thing", "derived_from", "new-ground")
        rumour.retract("rumour", reason="made up")
        assert ["conclusion", "plan"] == shaky(rumour)
        raise RuntimeError

    assert [] == shaky(rumour)
    assert rumour.verify().ok


@pytest.mark.parametrize("lost", ["nothing", "index"])
def test_it_is_as_shaky_after_opening_again(disk_store: GraphStore, clock: Clock, lost: str) -> None:
    for id in ("ground", "thing", "other"):
        disk_store.add_node("fact", {}, id=id)
        if id != "ground":
            disk_store.link(id, "derived_from", "ground")
    clock.move(days=1)
    with disk_store.transaction():
        disk_store.retract("ground", reason="made up")
        disk_store.add_node("fact", {}, id="latest")
        disk_store.confirm("latest", reason="at once")
    clock.move(days=1)
    disk_store.confirm("other", reason="ok")
    before = disk_store.shaky()
    assert ["thing"] == [found.node.id for found in before]
    disk_store.close()
    for copy in disk_store.path.glob("index*") if lost == "index" else ():
        copy.unlink()

    with graphstore.open(disk_store.path, clock=clock) as again:
        assert before == again.shaky()
        assert 1 == again.inspect("latest").confirmations
        assert again.verify().ok
    with graphstore.open(disk_store.path, clock=clock, read_only=True) as reader:
        assert before == reader.shaky()


def test_a_reader_follows_falls_and_confirmations(disk_store: GraphStore, clock: Clock) -> None:
    for id in ("ground", "thing"):
        disk_store.add_node("fact", {}, id=id)
    disk_store.link("thing", "derived_from", "ground")
    clock.move(days=1)
    with graphstore.open(disk_store.path, clock=clock, read_only=True) as reader:
        disk_store.retract("ground", reason="made up")
        reader.refresh()
        assert ["thing"] == shaky(reader)
        clock.move(days=1)
        disk_store.confirm("thing", reason="ok")
        reader.refresh()
        assert [] == shaky(reader)


def test_eviction_without_a_trace_leaves_nothing_to_rest_on(rumour: GraphStore) -> None:
    rumour.confirm("rumour", reason="yes")
    rumour.evict(ids=["rumour"], keep_audit=False)

    assert [] == shaky(rumour)
    assert rumour.verify().ok


def test_a_thousand_things_on_one_are_as_shaky_as_one(store: GraphStore, clock: Clock) -> None:
    rows = [{"node_id": f"thing-{n}", "content": {}} for n in range(1000)]
    links = [{"source": f"thing-{n}", "kind": "derived_from", "target": "ground"} for n in range(1000)]
    store.bulk_load(versions=[{"node_id": "ground", "content": {}}, *rows], links=links)
    clock.move(days=1)
    store.retract("ground", reason="made up")

    assert 1000 == len(store.shaky())
    assert [f"thing-{n}" for n in range(5)] == [found.node.id for found in store.shaky(limit=5)]


# ---------------------------------------------------------------------- what was said when


def test_a_link_said_after_a_revision_knows_of_it_from_its_first_instant(
    store: GraphStore, clock: Clock
) -> None:
    store.add_node("fact", {"n": 1}, id="base", valid_from="2026-01-01")
    store.add_node("fact", {}, id="conclusion", valid_from="2026-01-01")
    store.link("conclusion", "derived_from", "base", valid_from="2026-01-01", valid_to="2026-01-20")
    clock.move(days=1)
    store.revise("base", {"n": 2})
    clock.move(days=1)
    store.link("conclusion", "derived_from", "base", valid_from="2026-01-20", valid_to="2026-01-25")

    for valid, standing in (
        ("2026-01-01", "shaky"),
        ("2026-01-19T23:59:59.999999Z", "shaky"),
        ("2026-01-20", "stands"),
        ("2026-01-24T23:59:59.999999Z", "stands"),
    ):
        assert [standing] == standings(store.as_of(valid=valid), "conclusion")


def test_a_revision_shakes_though_something_else_was_undone(rumour: GraphStore, clock: Clock) -> None:
    rumour.revise("bystander", {"what": "else"})
    rumour.undo(rumour.changes()[-1].tx, reason="a slip")
    assert [] == rumour.shaky()
    clock.move(days=1)
    rumour.revise("rumour", {"what": "otherwise"})
    assert ["conclusion"] == [id for id in shaky(rumour) if id == "conclusion"]
    clock.move(days=1)
    rumour.undo(rumour.changes()[-1].tx, reason="a slip")
    assert [] == rumour.shaky()


def test_what_happened_is_not_shaken_by_the_end_of_what_it_came_from(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {}, id="base", valid_from="2026-01-01")
    store.add_node("fact", {}, id="between", valid_from="2026-01-01", derived_from="base")
    store.record_event("deploy", "out", id="event", occurred_at="2026-01-02")
    store.add_node("fact", {}, id="above", valid_from="2026-01-03")
    for source, target in (("event", "between"), ("above", "event")):
        store.link(source, "derived_from", target, valid_from="2026-01-03")
    clock.move(days=1)
    store.end("base", at="2026-01-10")

    assert ["shaky", "stands"] == standings(store, "between", "event")
    store.retract("base", reason="never")
    assert ["shaky", "shaky"] == standings(store, "between", "event")


def test_an_older_fall_shakes_what_a_later_one_passes_by(store: GraphStore, clock: Clock) -> None:
    for id in ("ground", "old", "middle", "new"):
        store.add_node("fact", {"n": 0}, id=id, valid_from="2026-01-01")
    store.link("middle", "derived_from", "ground", valid_from="2026-01-01")
    store.link("middle", "derived_from", "old", valid_from="2026-01-01")
    store.link("new", "derived_from", "middle", valid_from="2026-01-01")
    clock.move(days=1)
    store.retract("ground", reason="wrong")
    clock.move(days=1)
    store.supersede("old", by="new")
    assert store.node("new").standing == "shaky"
    assert [(one.node.id, one.root.id) for one in store.shaky()] == [("middle", "old"), ("new", "ground")]


def test_an_older_fall_shakes_an_event_behind_what_ended_later(store: GraphStore, clock: Clock) -> None:
    for id in ("ground", "other", "middle"):
        store.add_node("fact", {"n": 0}, id=id, valid_from="2026-01-01")
    store.record_event("error", "boom", id="event", occurred_at="2026-01-01")
    for source, target in (("middle", "ground"), ("middle", "other"), ("event", "middle")):
        store.link(source, "derived_from", target, valid_from="2026-01-01")
    clock.move(days=1)
    store.retract("ground", reason="wrong")
    clock.move(days=1)
    store.end("other", at="2026-01-02")
    assert store.event("event").standing == "shaky"
    assert [(one.node.id, one.root.id) for one in store.shaky()] == [("middle", "other"), ("event", "ground")]


@pytest.mark.parametrize("change", [{"minor": True}, {"tags": ["rumours"]}])
def test_a_minor_change_and_other_tags_are_no_look(
    rumour: GraphStore, clock: Clock, change: dict[str, Any]
) -> None:
    rumour.retract("rumour", reason="made up")
    clock.move(days=1)
    content = {"what": "still so"} if "minor" in change else rumour.node("conclusion").content
    rumour.revise("conclusion", content, **change)

    assert ["conclusion", "plan"] == shaky(rumour)
