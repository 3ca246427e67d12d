"""Slots: what a new value does to the one that holds, told in order, late, for a while, again, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import OPEN, GraphStore
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

MINTED = ["contradicts", "supersedes", "transition"]


def deploys(store: GraphStore, on: str, valid_from: str | None, **more: Any) -> str:
    """The day we deploy on, as a value of its slot. Gives its id."""
    return store.add_node(
        "fact", {"day": on}, id=f"on-{on}", key="deploy_day", valid_from=valid_from, **more
    ).id


def timeline(store: GraphStore, key: str = "deploy_day") -> list[tuple[str, str, str | None]]:
    """What holds in the slot: id, from, to."""
    rows = [
        (row.valid_from.strftime("%m-%d"), row.valid_to and row.valid_to.strftime("%m-%d"), row.id)
        for change in {change.subject: None for change in store.changes() if change.verb == "add_node"}
        for row in store.history(change)
        if row.key == key
    ]
    return [(id, start, stop) for start, stop, id in sorted(rows, key=lambda row: row[0])]


def said(store: GraphStore, new: str, old: str, at: str) -> list[str]:
    """The kinds of link by which `new` says it came after `old`, at a valid time."""
    view = store.as_of(valid=at)
    return sorted(link.kind for link in view.links_from(new) if link.target == old and link.kind in MINTED)


@pytest.fixture
def moved(store: GraphStore) -> GraphStore:
    """Deploys were on Mondays from January on, and are on Tuesdays from the 20th on."""
    deploys(store, "monday", "2026-01-01")
    deploys(store, "tuesday", "2026-01-20", reason="fewer pages")
    return store


# ---------------------------------------------------------------------- a new value


def test_a_value_that_another_of_its_transaction_displaced_comes_back_with_that(store: GraphStore) -> None:
    with store.transaction():
        deploys(store, "monday", "2026-01-05", valid_to=OPEN)
        deploys(store, "tuesday", "2026-01-01", valid_to=OPEN)
    assert [("on-tuesday", "01-01", None)] == timeline(store)

    store.retract("on-tuesday", reason="never said")

    assert ("on-monday", "01-05", None) in timeline(store)


def test_a_new_value_closes_the_one_that_holds(moved: GraphStore) -> None:
    assert [("on-monday", "01-01", "01-20"), ("on-tuesday", "01-20", None)] == timeline(moved)


def test_the_new_value_supersedes_follows_and_contradicts_the_old(moved: GraphStore) -> None:
    links = [link for link in moved.links_from("on-tuesday") if link.target == "on-monday"]

    assert MINTED == sorted(link.kind for link in links)
    assert {(day("2026-01-20"), None)} == {(link.valid_from, link.valid_to) for link in links}
    assert {("store", "explicit", "fewer pages")} == {
        (link.created_by, link.confidence, link.reason) for link in links
    }


def test_only_the_newer_is_linked_to_the_older(moved: GraphStore) -> None:
    assert [] == [link for link in moved.links_from("on-monday") if link.kind in ("supersedes", "transition")]


def test_the_old_value_is_superseded_and_says_by_what(moved: GraphStore) -> None:
    found = moved.what_superseded("on-monday")

    assert "superseded" == found.standing
    assert [("superseded", "supersedes", "on-tuesday")] == [
        (step.how, step.link.kind, step.node.id) for step in found.chain if step.link and step.node
    ]
    assert ["on-tuesday"] == [thing.id for thing in found.current]


def test_before_the_change_the_old_value_still_holds(moved: GraphStore) -> None:
    view = moved.as_of(valid="2026-01-10")

    assert ["on-monday"] == [node.id for node in view.nodes(key="deploy_day")]


def test_what_was_believed_before_is_still_there(store: GraphStore, clock: Clock) -> None:
    deploys(store, "monday", "2026-01-01")
    before = clock.now
    clock.move(days=1)
    deploys(store, "tuesday", "2026-01-20")

    assert None is store.as_of(valid="2026-01-25", tx=before).node("on-monday").valid_to


def test_a_minted_contradiction_is_no_open_one(moved: GraphStore) -> None:
    assert [] == moved.contradictions()


def test_a_planned_value_leaves_today_alone(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01")
    deploys(store, "friday", "2026-06-01")

    assert "on-monday" == store.nodes(key="deploy_day")[0].id
    assert "on-friday" == store.as_of(valid="2026-06-01").nodes(key="deploy_day")[0].id


def test_a_value_at_the_same_instant_leaves_the_prior_nothing(store: GraphStore, clock: Clock) -> None:
    deploys(store, "monday", "2026-01-01")
    clock.move(days=1)
    deploys(store, "tuesday", "2026-01-01")

    assert [("on-tuesday", "01-01", None)] == timeline(store)
    assert MINTED == said(store, "on-tuesday", "on-monday", "2026-01-01")
    assert "superseded" == store.inspect("on-monday").node.standing


def test_a_value_that_had_ended_before_is_not_linked(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01", valid_to="2026-01-10")
    deploys(store, "tuesday", "2026-01-20")

    assert [] == store.links_from("on-tuesday")
    assert "ended" == store.inspect("on-monday").node.standing


def test_a_new_value_is_never_refused_for_the_slot_being_held(store: GraphStore) -> None:
    """A split value would go on after one that came between; a third, which begins later, holds from its start on, and closes no ring of supersessions."""
    deploys(store, "monday", "2026-01-01")
    deploys(store, "tuesday", "2026-01-10", valid_to="2026-01-20")
    deploys(store, "friday", "2026-01-12")

    assert [
        ("on-monday", "01-01", "01-10"),
        ("on-tuesday", "01-10", "01-12"),
        ("on-friday", "01-12", None),
    ] == timeline(store)
    assert MINTED == said(store, "on-friday", "on-monday", "2026-01-25")
    assert "supersedes" not in said(store, "on-monday", "on-friday", "2026-01-25")


# ---------------------------------------------------------------------- told late, or for a while


def test_a_value_told_late_ends_where_the_next_begins(moved: GraphStore) -> None:
    deploys(moved, "sunday", "2026-01-10")

    assert [
        ("on-monday", "01-01", "01-10"),
        ("on-sunday", "01-10", "01-20"),
        ("on-tuesday", "01-20", None),
    ] == timeline(moved)


def test_a_value_told_late_is_linked_with_both_neighbours(moved: GraphStore) -> None:
    deploys(moved, "sunday", "2026-01-10")

    assert MINTED == said(moved, "on-sunday", "on-monday", "2026-01-15")
    assert MINTED == said(moved, "on-tuesday", "on-sunday", "2026-01-20")
    assert [] == said(moved, "on-tuesday", "on-sunday", "2026-01-19")


def test_the_link_to_the_value_told_late_has_no_reason_of_its_own(moved: GraphStore) -> None:
    deploys(moved, "sunday", "2026-01-10", reason="found in the wiki")

    (link,) = [one for one in moved.links_from("on-tuesday", "supersedes") if one.target == "on-sunday"]
    assert (None, "store") == (link.reason, link.created_by)


def test_a_value_told_before_all_others_ends_at_the_first(moved: GraphStore) -> None:
    deploys(moved, "sunday", "2025-12-01")

    assert ("on-sunday", "12-01", "01-01") in timeline(moved)
    assert MINTED == said(moved, "on-monday", "on-sunday", "2026-01-01")


def test_a_value_for_a_while_splits_the_prior(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01")
    deploys(store, "friday", "2026-01-10", valid_to="2026-01-20")

    assert [
        ("on-monday", "01-01", "01-10"),
        ("on-friday", "01-10", "01-20"),
        ("on-monday", "01-20", None),
    ] == timeline(store)


def test_the_links_to_a_split_prior_hold_for_that_while_only(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01")
    deploys(store, "friday", "2026-01-10", valid_to="2026-01-20")

    assert MINTED == said(store, "on-friday", "on-monday", "2026-01-19")
    assert [] == said(store, "on-friday", "on-monday", "2026-01-20")
    assert "stands" == store.as_of(valid="2026-01-25").inspect("on-monday").node.standing


def test_the_links_are_open_ended_where_nothing_of_the_prior_is_left(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01", valid_to="2026-01-15")
    deploys(store, "friday", "2026-01-10", valid_to="2026-01-20")

    assert MINTED == said(store, "on-friday", "on-monday", "2026-03-01")


def test_an_explicit_end_cuts_later_values_and_only_cuts_them(moved: GraphStore) -> None:
    deploys(moved, "friday", "2026-01-10", valid_to="2026-01-25")

    assert [
        ("on-monday", "01-01", "01-10"),
        ("on-friday", "01-10", "01-25"),
        ("on-tuesday", "01-25", None),
    ] == timeline(moved)
    assert [] == said(moved, "on-friday", "on-tuesday", "2026-01-22")
    assert [] == said(moved, "on-tuesday", "on-friday", "2026-01-26")


def test_a_later_value_inside_the_period_is_gone_without_a_successor(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-10", valid_to="2026-01-12")
    deploys(store, "friday", "2026-01-01", valid_to="2026-01-25")

    assert [("on-friday", "01-01", "01-25")] == timeline(store)
    assert "ended" == store.inspect("on-monday").node.standing


def test_an_empty_period_is_refused_in_a_slot_too(moved: GraphStore) -> None:
    with pytest.raises(InvalidError):
        deploys(moved, "friday", "2026-01-10", valid_to="2026-01-10")


def test_three_values_are_a_chain(moved: GraphStore) -> None:
    deploys(moved, "friday", "2026-01-25")

    assert ["on-tuesday", "on-friday"] == [
        step.node.id for step in moved.what_superseded("on-monday").chain if step.node
    ]
    assert ["on-friday"] == [thing.id for thing in moved.what_superseded("on-monday").current]
    assert ["on-monday"] == [link.target for link in moved.supersedes("on-tuesday")]


# ---------------------------------------------------------------------- which slot


def test_scopes_are_apart(moved: GraphStore) -> None:
    moved.add_node("fact", {"day": "friday"}, id="other", key="deploy_day", scope="team b")

    assert {"on-tuesday", "other"} == {node.id for node in moved.nodes(key="deploy_day")}
    assert [] == moved.links_from("other")


def test_one_key_holds_one_truth_whatever_its_kind(moved: GraphStore) -> None:
    moved.add_node("wish", {"day": "friday"}, id="other", key="deploy_day")

    assert {"other"} == {node.id for node in moved.nodes(key="deploy_day")}


def test_keys_are_one_whatever_their_writing(moved: GraphStore) -> None:
    moved.add_node("fact", {"day": "friday"}, id="on-friday", key=" Deploy-Day ")

    assert ["on-friday"] == [node.id for node in moved.nodes(key="deploy_day")]


def test_a_node_without_a_key_closes_nothing(moved: GraphStore) -> None:
    moved.add_node("fact", {"day": "friday"}, id="other")

    assert "stands" == moved.node("on-tuesday").standing


# ---------------------------------------------------------------------- named by the caller


def test_a_named_prior_gets_its_supersession_once_by_the_caller(moved: GraphStore) -> None:
    deploys(moved, "friday", "2026-01-25", supersedes="on-tuesday", reason="asked for")

    links = {link.kind: link.created_by for link in moved.links_from("on-friday")}
    assert {"supersedes": "user", "transition": "store", "contradicts": "store"} == links
    assert 3 == len(moved.links_from("on-friday"))


def test_a_named_next_value_gives_way(moved: GraphStore) -> None:
    """It is none that the new one ends at."""
    deploys(moved, "friday", "2026-01-10", supersedes=["on-tuesday"])

    assert [("on-monday", "01-01", "01-10"), ("on-friday", "01-10", None)] == timeline(moved)
    assert ["supersedes"] == said(moved, "on-friday", "on-tuesday", "2026-01-25")
    assert "superseded" == moved.inspect("on-tuesday").node.standing


def test_something_outside_the_slot_can_be_superseded_too(moved: GraphStore) -> None:
    moved.add_node("note", {"x": 1}, id="a-note", valid_from="2026-01-01")
    deploys(moved, "friday", "2026-01-25", supersedes="a-note")

    assert {"a-note", "on-tuesday"} == {link.target for link in moved.supersedes("on-friday")}


def test_an_unknown_named_one_writes_nothing(moved: GraphStore) -> None:
    before = moved.stats()
    with pytest.raises(NotFoundError):
        deploys(moved, "friday", "2026-01-25", supersedes="nobody")

    assert before == moved.stats()


# ---------------------------------------------------------------------- the same again


def test_the_same_value_again_is_the_same_node_confirmed(moved: GraphStore) -> None:
    again = moved.add_node("fact", {"day": "Tuesday!"}, key="deploy_day")

    assert "on-tuesday" == again.id
    assert 1 == moved.inspect("on-tuesday").confirmations
    assert [("on-monday", "01-01", "01-20"), ("on-tuesday", "01-20", None)] == timeline(moved)


def test_an_id_asks_for_a_node_of_its_own(moved: GraphStore) -> None:
    again = moved.add_node("fact", {"day": "tuesday"}, id="its-own", key="deploy_day")

    assert "its-own" == again.id
    assert 0 == moved.inspect("on-tuesday").confirmations


def test_the_same_in_the_past_confirms_what_held_there(moved: GraphStore) -> None:
    again = moved.add_node("fact", {"day": "monday"}, key="deploy_day", valid_from="2026-01-05")

    assert "on-monday" == again.id
    assert 0 == moved.inspect("on-tuesday").confirmations


def test_the_same_for_longer_than_it_holds_is_a_new_value(store: GraphStore) -> None:
    deploys(store, "monday", "2026-01-01", valid_to="2026-01-10")
    again = store.add_node("fact", {"day": "monday"}, key="deploy_day", valid_from="2026-01-05")

    assert "on-monday" != again.id
    assert [("on-monday", "01-01", "01-05"), (again.id, "01-05", None)] == timeline(store)


def test_an_earlier_value_said_anew_comes_back_as_a_new_node(moved: GraphStore) -> None:
    again = moved.add_node("fact", {"day": "monday"}, key="deploy_day", valid_from="2026-01-25")

    assert "on-monday" != again.id
    assert ["on-tuesday", again.id] == [
        step.node.id for step in moved.what_superseded("on-monday").chain if step.node
    ]


LONG = "the payment service retries each failed call to the bank up to 3 times before it gives up and tells a human"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (LONG.upper() + "!", True),
        (LONG.replace("a human", "one human"), True),
        (LONG.replace("3", "4"), False),
        (LONG.replace("retries", "never retries"), False),
        ("the payment service gives up", False),
    ],
)
def test_the_same_is_nearly_all_words_and_the_same_numbers_and_negations(
    store: GraphStore, text: str, same: bool
) -> None:
    first = store.add_node("fact", {}, key="retries", text=LONG)
    second = store.add_node("fact", {}, key="retries", text=text, valid_from="2026-02-05")

    assert same is (first.id == second.id)


def test_the_same_text_with_the_same_content_is_said_again(store: GraphStore) -> None:
    first = store.add_node("fact", {"v": 1}, key="k", text="on tuesdays")
    second = store.add_node("fact", {"v": 1.0}, key="k", text="On Tuesdays")

    assert first.id == second.id


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"v": 2}, "on tuesdays"),
        ({"w": 1}, "on tuesdays"),
        ({"v": 1, "w": None}, "on tuesdays"),
        ({"v": True}, "on tuesdays"),
        ({"v": 1}, "on thursdays"),
    ],
)
def test_another_content_is_another_value_whatever_the_text(store: GraphStore, content, text) -> None:
    first = store.add_node("fact", {"v": 1}, key="k", text="on tuesdays")
    second = store.add_node("fact", content, key="k", text=text)

    assert first.id != second.id
    assert content == store.node(second.id).content


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": "red", "b": "blue"}, {"a": "blue", "b": "red"}),
        ({"says": "Ana reports to Bob"}, {"says": "Bob reports to Ana"}),
        ({"approved_by": "ana"}, {"rejected_by": "ana"}),
    ],
)
def test_who_does_what_to_whom_is_not_said_again(store: GraphStore, before, after) -> None:
    first, second = (store.add_node("fact", content, key="k") for content in (before, after))

    assert first.id != second.id


def test_the_same_from_another_source_is_an_event_that_supports_it(store: GraphStore) -> None:
    node = store.add_node("fact", {"day": "monday"}, key="deploy_day", source="user:ann")
    store.add_node("fact", {"day": "monday"}, key="deploy_day", source="wiki")

    (link,) = store.backlinks_to(node.id, "supports")
    event = store.event(link.source)
    assert ("confirmation", "wiki", "store") == (event.type, event.source, link.created_by)


def test_the_source_compared_is_that_of_the_description_said_again(store: GraphStore) -> None:
    store.add_node(
        "fact", {"day": "monday"}, id="on-monday", key="deploy_day", valid_from="2026-01-01", source="ann"
    )
    store.revise("on-monday", {"day": "friday"}, valid_from="2026-01-20", source="bob")
    store.add_node(
        "fact",
        {"day": "monday"},
        key="deploy_day",
        valid_from="2026-01-05",
        valid_to="2026-01-10",
        source="ann",
    )

    assert [] == store.backlinks_to("on-monday", "supports")


def test_what_it_supersedes_is_linked_though_it_is_no_new_node(moved: GraphStore) -> None:
    moved.add_node("note", {"x": 1}, id="a-note", valid_from="2026-01-01")
    moved.add_node("fact", {"day": "tuesday"}, key="deploy_day", supersedes=["a-note", "on-tuesday"])

    assert {"a-note", "on-monday"} == {link.target for link in moved.supersedes("on-tuesday")}
    assert "superseded" == moved.inspect("a-note").node.standing


@pytest.mark.parametrize(("ends", "superseded_until"), [("2026-03-01", None), ("2026-04-01", "03-01")])
def test_a_value_is_superseded_for_good_unless_it_holds_again(
    store: GraphStore, ends: str, superseded_until: str | None
) -> None:
    store.add_node(
        "fact", {"day": "monday"}, id="on-monday", key="day", valid_from="2026-01-01", valid_to=ends
    )
    store.add_node(
        "fact", {"day": "friday"}, id="on-friday", key="day", valid_from="2026-02-01", valid_to="2026-03-01"
    )

    (link,) = store.as_of(valid="2026-02-02").supersedes("on-friday")
    assert superseded_until == (link.valid_to and f"{link.valid_to:%m-%d}")


@pytest.mark.parametrize(
    ("content", "text", "again", "same"),
    [
        ({"day": "monday"}, None, None, True),
        ({"day": "monday"}, "on monday", None, True),
        ({"day": "monday"}, None, "on monday", True),
        ({"day": "monday"}, "on monday", "on friday", False),
        ({}, "on monday", "on monday", True),
        ({}, "on monday", "on friday", False),
        ({}, "on monday", None, False),
        ({}, None, "on monday", False),
        ({}, None, None, True),
    ],
)
def test_one_text_may_be_absent_beside_contents(
    store: GraphStore, content: dict[str, Any], text: str | None, again: str | None, same: bool
) -> None:
    first = store.add_node("fact", content, key="day", text=text, valid_from="2026-01-01")
    second = store.add_node("fact", content, key="day", text=again, valid_from="2026-01-02")
    assert same == (first.id == second.id)


# ---------------------------------------------------------------------- trust


@pytest.fixture
def trusting(store: GraphStore) -> GraphStore:
    store.set_trust({"user": 3, "agent": 2})
    store.add_node("fact", {"day": "monday"}, id="on-monday", key="deploy_day", source="user:ann")
    return store


@pytest.mark.parametrize("source", ["agent:7", "agent", "web", None, "users"])
def test_a_source_that_ranks_lower_may_not_close_a_value(trusting: GraphStore, source: str | None) -> None:
    before, index = trusting.stats(), trusting.changes()

    with pytest.raises(ConflictError, match="trust"):
        trusting.add_node("fact", {"day": "friday"}, id="on-friday", key="deploy_day", source=source)
    assert before == trusting.stats()
    assert index == trusting.changes()
    assert trusting.verify().ok
    with pytest.raises(NotFoundError):
        trusting.inspect("on-friday")


@pytest.mark.parametrize("source", ["user", "user:bob:phone"])
def test_a_source_that_ranks_as_high_may(trusting: GraphStore, source: str) -> None:
    trusting.add_node("fact", {"day": "friday"}, id="on-friday", key="deploy_day", source=source)

    assert ["on-friday"] == [node.id for node in trusting.nodes(key="deploy_day")]


def test_a_lower_source_may_say_the_same(trusting: GraphStore) -> None:
    assert "on-monday" == trusting.add_node("fact", {"day": "monday"}, key="deploy_day", source="web").id


def test_a_lower_source_may_say_what_held_before(trusting: GraphStore) -> None:
    trusting.add_node(
        "fact", {"day": "friday"}, id="on-friday", key="deploy_day", source="web", valid_from="2025-01-01"
    )

    assert ["on-friday"] == [node.id for node in trusting.as_of(valid="2025-02-01").nodes(key="deploy_day")]


def test_a_lower_source_may_not_cut_a_later_value_either(trusting: GraphStore) -> None:
    with pytest.raises(ConflictError, match="trust"):
        trusting.add_node(
            "fact",
            {"day": "friday"},
            key="deploy_day",
            source="web",
            valid_from="2025-01-01",
            valid_to="2027-01-01",
        )


def test_without_ranks_every_source_may(store: GraphStore) -> None:
    store.add_node("fact", {"day": "monday"}, key="deploy_day", source="user")
    store.add_node("fact", {"day": "friday"}, id="on-friday", key="deploy_day", source="web")

    assert ["on-friday"] == [node.id for node in store.nodes(key="deploy_day")]


def test_trust_is_kept_in_the_store(disk_store: GraphStore, clock: Clock) -> None:
    disk_store.set_trust({"user": 3})
    disk_store.close()

    with graphstore.open(str(disk_store.path), clock=clock) as again:
        assert {"user": 3} == again.trust


@pytest.mark.parametrize("ranks", [{"user": "high"}, {"user": True}, {"user": 1.5}])
def test_a_rank_is_a_whole_number(store: GraphStore, ranks: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="rank"):
        store.set_trust(ranks)


# ---------------------------------------------------------------------- taken back


def test_taking_back_the_value_that_holds_leaves_the_slot_as_it_was(moved: GraphStore) -> None:
    moved.retract("on-tuesday", reason="a rumour")

    assert ["on-monday"] == [node.id for node in moved.nodes(key="deploy_day")]
    assert [("on-monday", "01-01", None)] == timeline(moved)
    assert [] == moved.links_from("on-tuesday")


def test_unlinking_the_supersession_while_the_new_one_stands_is_refused(moved: GraphStore) -> None:
    (link,) = moved.supersedes("on-tuesday")

    with pytest.raises(ConflictError, match="on-tuesday"):
        moved.unlink(link.id)
    assert [link] == moved.supersedes("on-tuesday")


def test_a_value_between_takes_the_place_of_the_one_taken_back(moved: GraphStore) -> None:
    deploys(moved, "friday", "2026-01-25")
    moved.retract("on-tuesday", reason="a rumour")

    assert [("on-monday", "01-01", "01-25"), ("on-friday", "01-25", None)] == timeline(moved)
    assert ["on-friday"] == [thing.id for thing in moved.what_superseded("on-monday").current]


def test_what_a_writer_says_takes_the_place_of_what_the_store_minted(moved: GraphStore) -> None:
    (minted,) = moved.supersedes("on-tuesday")
    moved.supersede("on-monday", by="on-tuesday", reason="decided in March")

    (said,) = moved.supersedes("on-tuesday")
    assert (minted.id, "user", "decided in March") == (said.id, said.created_by, said.reason)


def test_revising_into_a_held_slot_is_refused(moved: GraphStore) -> None:
    with pytest.raises(ConflictError, match="on-tuesday"):
        moved.revise("on-monday", {"day": "monday"}, valid_from="2026-01-10", valid_to="2026-02-10")


def test_an_erased_value_leaves_its_slot_free(moved: GraphStore) -> None:
    moved.erase("on-tuesday", reason="asked to")
    deploys(moved, "friday", "2026-01-25")

    assert ["on-friday"] == [node.id for node in moved.nodes(key="deploy_day")]
    assert [] == moved.links_from("on-friday")


# ---------------------------------------------------------------------- in one transaction, in bulk, on disk


def test_two_values_of_one_transaction_at_one_instant_leave_the_second(disk_store: GraphStore) -> None:
    with disk_store.transaction():
        for on in ("monday", "friday"):
            disk_store.add_node("fact", {"day": on}, id=f"on-{on}", key="deploy_day")

    assert ["on-friday"] == [node.id for node in disk_store.nodes(key="deploy_day")]
    assert "superseded" == disk_store.inspect("on-monday").node.standing
    assert disk_store.verify().ok


def test_the_same_twice_in_one_transaction_is_one_node(disk_store: GraphStore, clock: Clock) -> None:
    with disk_store.transaction():
        first = disk_store.add_node("fact", {"day": "monday"}, key="deploy_day")
        second = disk_store.add_node("fact", {"day": "monday"}, key="deploy_day")
    assert first.id == second.id
    assert disk_store.verify().ok
    disk_store.close()
    for copy in Path(str(disk_store.path)).glob("index*"):
        copy.unlink()

    with graphstore.open(str(disk_store.path), clock=clock) as again:
        assert 1 == again.inspect(first.id).confirmations


def test_a_verb_that_raises_leaves_the_slot_as_it_was(moved: GraphStore) -> None:
    with moved.transaction():
        with pytest.raises(ConflictError):  # known already
            moved.add_node("fact", {"day": "friday"}, id="on-monday", key="deploy_day")
        deploys(moved, "sunday", "2026-01-25")

    assert [
        ("on-monday", "01-01", "01-20"),
        ("on-tuesday", "01-20", "01-25"),
        ("on-sunday", "01-25", None),
    ] == timeline(moved)
    assert moved.verify().ok


def test_a_block_that_fails_leaves_no_confirmation(store: GraphStore) -> None:
    store.add_node("fact", {}, id="fact-a", key="k")
    with pytest.raises(RuntimeError), store.transaction():
        store.confirm("fact-a", reason="yes")
        raise RuntimeError

    assert 0 == store.inspect("fact-a").confirmations
    assert store.verify().ok


ROWS = [
    {"node_id": "on-monday", "content": {"day": "monday"}, "valid_from": day("2026-01-01")},
    {"node_id": "on-tuesday", "content": {"day": "tuesday"}, "valid_from": day("2026-01-20")},
    {"node_id": "on-sunday", "content": {"day": "sunday"}, "valid_from": day("2026-01-10")},
]


def test_rows_loaded_in_bulk_fill_their_slot(moved: GraphStore, clock: Clock) -> None:
    deploys(moved, "sunday", "2026-01-10")
    with graphstore.open(":memory:", clock=clock) as loaded:
        loaded.bulk_load(
            nodes=[{"id": row["node_id"], "kind": "fact", "key": "deploy_day"} for row in ROWS], versions=ROWS
        )

        assert timeline(moved) == timeline(loaded)
        assert MINTED == said(loaded, "on-tuesday", "on-sunday", "2026-01-20")
        assert loaded.verify().ok


def test_rows_of_a_source_that_ranks_lower_are_refused(trusting: GraphStore) -> None:
    before = trusting.stats()
    rows = [{"node_id": "on-friday", "content": {"day": "friday"}, "source": "web"}]

    with pytest.raises(ConflictError, match="trust"):
        trusting.bulk_load(nodes=[{"id": "on-friday", "kind": "fact", "key": "deploy_day"}], versions=rows)
    assert before == trusting.stats()


@pytest.mark.parametrize("lost", ["nothing", "index"])
def test_a_slot_is_the_same_after_opening_again(disk_store: GraphStore, clock: Clock, lost: str) -> None:
    deploys(disk_store, "monday", "2026-01-01")
    deploys(disk_store, "friday", "2026-01-10", valid_to="2026-01-20")
    before, links = timeline(disk_store), disk_store.as_of(valid="2026-01-15").links_from("on-friday")
    disk_store.close()
    for copy in Path(str(disk_store.path)).glob("index*") if lost == "index" else ():
        copy.unlink()

    with graphstore.open(str(disk_store.path), clock=clock) as again:
        assert before == timeline(again)
        assert links == again.as_of(valid="2026-01-15").links_from("on-friday")
        deploys(again, "sunday", "2026-01-15")
        assert ("on-sunday", "01-15", None) in timeline(again)
        assert again.verify().ok


def test_a_reader_beside_the_writer_sees_the_slot(disk_store: GraphStore, clock: Clock) -> None:
    deploys(disk_store, "monday", "2026-01-01")
    with graphstore.open(str(disk_store.path), clock=clock, read_only=True) as reader:
        deploys(disk_store, "friday", "2026-01-20")
        disk_store.confirm("on-friday", reason="seen")
        reader.refresh()

        assert ["on-friday"] == [node.id for node in reader.nodes(key="deploy_day")]
        assert 1 == reader.inspect("on-friday").confirmations


def test_a_dump_brings_the_slot_back(moved: GraphStore, tmp_path: Path) -> None:
    moved.export(tmp_path / "dump.jsonl")

    with graphstore.restore(tmp_path / "dump.jsonl", tmp_path / "again.gs") as again:
        assert timeline(moved) == timeline(again)


def test_a_value_of_which_a_longer_one_left_nothing_ended_before_it_began_too(store: GraphStore) -> None:
    deploys(store, "friday", "2026-01-04")
    store.end("on-friday", at="2026-01-05")
    deploys(store, "monday", "2026-01-01", valid_to="2026-01-08")

    for at in ("2025-12-01", "2026-01-02", "2026-01-04"):
        found = store.as_of(valid=at).what_superseded("on-friday")
        assert ("ended", ["ended"]) == (found.standing, [step.how for step in found.chain])
