"""The verbs and the reads, told as small stories: what a caller does, and what the store answers then and later."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import re
from datetime import UTC, datetime, timedelta

import pytest

import graphstore
from graphstore import ConflictError, EngineError, InvalidError, NotFoundError
from tests.conftest import Clock, day
from tests.support.ledger_rows import copy_ledger, rows

pytestmark = pytest.mark.served


def ids(things) -> list[str]:
    return [thing.id for thing in things]


def periods(versions) -> list[tuple[int, str, str | None]]:
    """(number, from, to) of each row, as dates."""
    return [
        (row.number, row.valid_from.date().isoformat(), row.valid_to and row.valid_to.date().isoformat())
        for row in versions
    ]


def joined(versions) -> list[tuple[int, str, str | None]]:
    """The same, with touching rows of one version as one."""
    found: list[tuple[int, str, str | None]] = []
    for number, start, stop in periods(versions):
        if found and found[-1][0] == number and found[-1][2] == start:
            start = found.pop()[1]
        found.append((number, start, stop))
    return found


@pytest.fixture
def clock():
    return Clock("2026-01-01")


@pytest.fixture
def store(clock):
    with graphstore.open(":memory:", clock=clock, author="maria") as store:
        yield store


@pytest.fixture
def auth(store, clock):
    """Sessions from New Year on; on the 30th JWT took their place."""
    store.add_node("decision", {"how": "sessions"}, id="sessions", text="Auth via sessions", tags=["auth"])
    clock.set("2026-01-30")
    store.add_node(
        "decision",
        {"how": "jwt"},
        id="jwt-tokens",
        text="Auth via JWT",
        tags=["auth"],
        supersedes=["sessions"],
        reason="sessions do not scale",
    )
    return "sessions", "jwt-tokens"


@pytest.fixture
def price(store, clock):
    """A price known for the whole of 2025, recorded at New Year 2026."""
    store.add_node("price", {"amount": 10}, id="price-1", valid_from="2025-01-01", valid_to="2026-01-01")
    clock.set("2026-01-02")
    return "price-1"


# ---------------------------------------------------------------- add_node


def test_a_new_node_holds_from_the_moment_it_was_told(store):
    node = store.add_node("fact", {"a": 1})

    assert re.fullmatch(r"[0-9a-f]{16}", node.id)
    assert ("fact", 1, {"a": 1}, "stands", "initial") == (
        node.kind,
        node.number,
        node.content,
        node.standing,
        node.trigger,
    )
    assert (day("2026-01-01"), None) == (node.valid_from, node.valid_to)
    assert (day("2026-01-01"), None) == (node.tx_from, node.tx_to)
    assert node == store.node(node.id)


def test_all_that_is_said_of_a_node_comes_back(store):
    node = store.add_node(
        "decision",
        {"summary": "Friday", "n": [1, {"deep": None}]},
        id="deploy-1",
        key="Deploy Day",
        text="We deploy on Fridays",
        tags=["deploy", "ops"],
        scope="team-a",
        source="retro",
        trigger="meeting",
    )

    assert (
        "deploy-1",
        "deploy_day",
        "We deploy on Fridays",
        ("deploy", "ops"),
        "team-a",
        "retro",
        "meeting",
    ) == (
        node.id,
        node.key,
        node.text,
        node.tags,
        node.scope,
        node.source,
        node.trigger,
    )
    assert "deploy-1-v1" == node.ref
    assert node == store.node("deploy-1")


def test_a_backdated_node_is_known_from_today_but_true_from_then(store):
    store.add_node("fact", {}, id="older-fact", valid_from="2020-05-01")

    assert "older-fact" == store.as_of(valid="2020-06-01").node("older-fact").id
    with pytest.raises(NotFoundError):
        store.as_of(valid="2020-04-30").node("older-fact")
    with pytest.raises(NotFoundError):
        store.knowledge_at("2020-06-01").node("older-fact")


def test_a_planned_node_is_not_yet(store):
    store.add_node("fact", {}, id="oauth-plan", valid_from="2027-01-01")

    with pytest.raises(NotFoundError, match=r"not_yet|not yet"):
        store.node("oauth-plan")
    assert [] == ids(store.nodes())
    assert "not_yet" == store.inspect("oauth-plan").node.standing
    assert ["oauth-plan"] == ids(store.as_of(valid="2027-01-01").nodes())


def test_a_period_is_half_open(store, price):
    assert 10 == store.as_of(valid="2025-01-01").node(price).content["amount"]
    assert 10 == store.as_of(valid="2025-12-31T23:59:59.999999Z").node(price).content["amount"]
    with pytest.raises(NotFoundError):
        store.as_of(valid="2026-01-01").node(price)


def test_a_slot_holds_one_standing_node(store):
    store.add_node("setting", {"v": 1}, id="theme-1", key="Theme")
    store.add_node("setting", {"v": 2}, key="theme", scope="other")
    store.add_node("wish", {"v": 2}, key="theme")
    successor = store.add_node("setting", {"v": 2}, key="theme", supersedes=["theme-1"])
    assert [successor.id] == ids(store.nodes(kind="setting", key="theme", scope=""))


def test_a_slot_is_free_again_where_its_holder_ended(store, clock):
    store.add_node(
        "setting", {"v": 1}, id="theme-1", key="theme", valid_from="2025-01-01", valid_to="2025-06-01"
    )

    later = store.add_node("setting", {"v": 2}, key="theme", valid_from="2025-06-01")
    assert [later.id] == ids(store.nodes(key="theme"))


def test_a_correction_takes_back_what_it_corrects(store):
    store.add_node("fact", {"n": 1}, id="report")
    store.add_node("fact", {"n": 2}, id="erratum", corrects=["report"], reason="a typing error")

    found = store.what_superseded("report")
    assert [("corrected", "erratum", "a typing error")] == [(s.how, s.node.id, s.why) for s in found.chain]
    assert "retracted" == store.inspect("report").node.standing
    assert ["erratum"] == ids(found.current) == ids(store.nodes())


# ---------------------------------------------------------------- revise


def test_a_better_description_replaces_all_of_the_old_one_but_not_the_belief_of_then(store, clock, price):
    node = store.revise(price, {"amount": 12}, reason="misread")

    assert (2, {"amount": 12}, "user_feedback") == (node.number, node.content, node.trigger)
    assert [(2, "2025-01-01", "2026-01-01")] == periods(store.history(price))
    assert {"amount": 10} == store.as_of(valid="2025-03-01", tx="2026-01-01").node(price).content
    assert {"amount": 12} == store.as_of(valid="2025-03-01").node(price).content


def test_a_revision_inside_a_period_leaves_both_ends_sticking_out(store, price):
    store.revise(price, {"amount": 8}, valid_from="2025-06-01", valid_to="2025-09-01")

    assert [
        (1, "2025-01-01", "2025-06-01"),
        (2, "2025-06-01", "2025-09-01"),
        (1, "2025-09-01", "2026-01-01"),
    ] == periods(store.history(price))
    first, _, last = store.history(price)
    assert (
        (first.ref, first.content, first.trigger)
        == (last.ref, last.content, last.trigger)
        == ("price-1-v1", {"amount": 10}, "initial")
    )


def test_versions_also_shows_what_was_once_believed(store, price):
    store.revise(price, {"amount": 8}, valid_from="2025-06-01")

    taken_back, *rest = store.versions(price)
    assert (1, day("2025-01-01"), day("2026-01-01"), day("2026-01-01"), day("2026-01-02")) == (
        taken_back.number,
        taken_back.valid_from,
        taken_back.valid_to,
        taken_back.tx_from,
        taken_back.tx_to,
    )
    assert [(1, None), (2, None)] == [(row.number, row.tx_to) for row in rest]


def test_a_revision_from_a_day_ends_where_the_validity_ends(store, price):
    store.revise(price, {"amount": 8}, valid_from="2025-06-01")

    assert [(1, "2025-01-01", "2025-06-01"), (2, "2025-06-01", "2026-01-01")] == periods(store.history(price))


def test_a_revision_until_a_day_starts_where_the_validity_starts(store, price):
    store.revise(price, {"amount": 8}, valid_to="2025-06-01")

    assert [(2, "2025-01-01", "2025-06-01"), (1, "2025-06-01", "2026-01-01")] == periods(store.history(price))


def test_a_revision_past_the_end_is_open(store, price):
    store.revise(price, {"amount": 20}, valid_from="2026-01-01")

    assert [(1, "2025-01-01", "2026-01-01"), (2, "2026-01-01", None)] == periods(store.history(price))


def test_a_revision_with_a_period_covers_gaps_too(store, price):
    store.retract(price, valid_from="2025-03-01", valid_to="2025-05-01", reason="unknown then")
    store.revise(price, {"amount": 9}, valid_from="2025-02-01", valid_to="2025-06-01")

    assert [
        (1, "2025-01-01", "2025-02-01"),
        (2, "2025-02-01", "2025-06-01"),
        (1, "2025-06-01", "2026-01-01"),
    ] == periods(store.history(price))


def test_a_revision_without_a_period_keeps_the_gaps(store, price):
    store.retract(price, valid_from="2025-03-01", valid_to="2025-05-01", reason="unknown then")
    store.revise(price, {"amount": 9})

    assert [(2, "2025-01-01", "2025-03-01"), (2, "2025-05-01", "2026-01-01")] == periods(store.history(price))


def test_a_revision_needs_something_to_describe(store, price):
    store.retract(price, reason="never happened")

    with pytest.raises(ConflictError):
        store.revise(price, {"amount": 9})
    with pytest.raises(ConflictError):
        store.revise(price, {"amount": 9}, valid_to="2025-06-01")


def test_newer_period_covers_older(store, price):
    store.revise(price, {"amount": 8}, valid_from="2025-06-01", valid_to="2025-09-01")
    store.revise(price, {"amount": 7}, valid_from="2025-05-01", valid_to="2025-10-01")

    assert [1, 3, 1] == [row.number for row in store.history(price)]


def test_periods_touch_without_overlap(store, price):
    store.revise(price, {"amount": 8}, valid_from="2025-06-01", valid_to="2025-07-01")
    store.revise(price, {"amount": 7}, valid_from="2025-07-01", valid_to="2025-08-01")

    assert [1, 2, 3, 1] == [row.number for row in store.history(price)]


# ---------------------------------------------------------------- supersede


def test_superseded_fact_stays_true_before_the_change(store, auth):
    sessions, _ = auth

    assert day("2026-01-30") == store.as_of(valid="2026-01-10").node(sessions).valid_to
    assert ["jwt-tokens"] == ids(store.nodes())
    assert ["sessions"] == ids(store.as_of(valid="2026-01-29").nodes())


def test_a_superseded_node_says_who_took_its_place(store, auth):
    with pytest.raises(NotFoundError, match="superseded") as refused:
        store.node("sessions")
    assert "jwt-tokens" in str(refused.value)


def test_before_it_was_told_nobody_knew_of_the_end(store, auth):
    then = store.as_of(valid="2026-02-15", tx="2026-01-29")

    assert ("stands", None) == (then.node("sessions").standing, then.node("sessions").valid_to)
    assert () == then.what_superseded("sessions").chain


def test_supersede_links_new_to_each_old(store):
    for name in ("rest-api", "soap-api", "graphql-api"):
        store.add_node("fact", {}, id=name, valid_from="2025-01-01")
    links = store.supersede(
        "rest-api", "soap-api", by="graphql-api", valid_from="2025-07-01", reason="one way"
    )

    assert [("graphql-api", "supersedes", "rest-api"), ("graphql-api", "supersedes", "soap-api")] == [
        (link.source, link.kind, link.target) for link in links
    ]
    assert ("one way", day("2025-07-01"), None) == (links[0].reason, links[0].valid_from, links[0].valid_to)
    assert day("2025-07-01") == store.as_of(valid="2025-02-01").node("rest-api").valid_to
    assert ["graphql-api"] == ids(store.nodes())


def test_a_supersession_learned_late_changes_the_past_only_as_known_now(store, clock):
    store.add_node("fact", {}, id="old-fact", valid_from="2025-01-01")
    clock.set("2026-03-01")
    store.add_node("fact", {}, id="new-fact", valid_from="2025-06-01", supersedes=["old-fact"])

    assert ["new-fact"] == ids(store.as_of(valid="2025-07-01").nodes())
    assert ["old-fact"] == ids(store.as_of(valid="2025-07-01", tx="2026-02-01").nodes())


def test_a_successor_that_starts_earlier_leaves_nothing_of_the_old(store):
    store.add_node("fact", {}, id="old-fact", valid_from="2025-06-01")
    store.add_node("fact", {}, id="new-fact", valid_from="2025-01-01", supersedes=["old-fact"])

    assert [] == store.history("old-fact")
    assert "superseded" == store.inspect("old-fact").node.standing
    assert ["new-fact"] == ids(store.as_of(valid="2025-08-01").nodes())


def test_what_has_ended_is_linked_and_never_lengthened(store, price):
    store.add_node("price", {"amount": 30}, id="price-2", valid_from="2026-01-02", supersedes=[price])

    assert [(1, "2025-01-01", "2026-01-01")] == periods(store.history(price))
    assert ["price-2"] == [step.node.id for step in store.what_superseded(price).chain]


def test_a_supersedes_link_is_the_same_verb(store):
    store.add_node("fact", {}, id="old-fact", valid_from="2025-01-01")
    store.add_node("fact", {}, id="new-fact", valid_from="2025-06-01")
    store.link("new-fact", "supersedes", "old-fact")

    assert [(1, "2025-01-01", "2025-06-01")] == periods(store.history("old-fact"))


def test_superseded_by_is_the_same_sentence_from_the_other_end(store):
    store.add_node("fact", {}, id="old-fact", valid_from="2025-01-01")
    store.add_node("fact", {}, id="new-fact", valid_from="2025-06-01")
    link = store.link("old-fact", "superseded_by", "new-fact")

    assert ("new-fact", "supersedes", "old-fact") == (link.source, link.kind, link.target)


def test_unlinking_a_supersession_gives_the_validity_back(store, clock, auth):
    (link,) = store.supersedes("jwt-tokens")
    clock.set("2026-02-10")
    store.unlink(link.id, reason="we kept both")

    assert {"sessions", "jwt-tokens"} == set(ids(store.nodes()))
    assert [(1, "2026-01-01", None)] == joined(store.history("sessions"))
    assert ["jwt-tokens"] == ids(store.as_of(valid="2026-02-10", tx="2026-02-09").nodes())


def test_validity_passes_to_another_successor_when_the_first_is_unlinked(store, clock):
    store.add_node("fact", {}, id="old-fact")
    clock.set("2026-01-15")
    store.add_node("fact", {}, id="second", supersedes=["old-fact"])
    clock.set("2026-01-30")
    store.add_node("fact", {}, id="third-one", supersedes=["old-fact"])
    clock.set("2026-02-01")
    (link,) = store.supersedes("second")
    store.unlink(link.id)

    assert [(1, "2026-01-01", "2026-01-30")] == joined(store.history("old-fact"))


def test_retracting_a_successor_gives_back_what_it_took(store, clock, auth):
    before = store.as_of()
    clock.set("2026-02-10")
    store.retract("jwt-tokens", reason="it was never built")

    assert ["sessions"] == ids(store.nodes()) == ids(store.what_superseded("sessions").current)
    assert () == store.what_superseded("sessions").chain
    assert ["jwt-tokens"] == ids(before.nodes())


# ---------------------------------------------------------------- end, retract


def test_what_ended_was_true_until_then(store, clock):
    store.add_node("fact", {}, id="beta-flag")
    clock.set("2026-02-01")
    store.end("beta-flag", at="2026-01-20", reason="launched")

    assert "ended" == store.inspect("beta-flag").node.standing
    assert ["beta-flag"] == ids(store.as_of(valid="2026-01-19").nodes())
    assert [] == ids(store.as_of(valid="2026-01-20").nodes())
    assert ["beta-flag"] == ids(store.as_of(valid="2026-01-25", tx="2026-01-25").nodes())
    with pytest.raises(NotFoundError, match="ended"):
        store.node("beta-flag")


def test_end_is_now_unless_told(store, clock):
    store.add_node("fact", {}, id="beta-flag")
    clock.set("2026-02-01")
    store.end("beta-flag")

    assert [(1, "2026-01-01", "2026-02-01")] == periods(store.history("beta-flag"))


def test_end_needs_something_to_end(store, price):
    with pytest.raises(NotFoundError):
        store.end(price)
    with pytest.raises(InvalidError, match="retract"):
        store.end(price, at="2025-01-01")


def test_what_was_retracted_was_never_true_as_known_now(store, clock):
    store.add_node("fact", {}, id="a-rumour")
    clock.set("2026-02-01")
    store.retract("a-rumour", reason="made up")

    assert "retracted" == store.inspect("a-rumour").node.standing
    assert [] == ids(store.as_of(valid="2026-01-10").nodes())
    assert ["a-rumour"] == ids(store.as_of(valid="2026-01-10", tx="2026-01-31").nodes())
    with pytest.raises(NotFoundError, match="retracted"):
        store.node("a-rumour")


def test_a_part_can_be_retracted(store, price):
    store.retract(price, valid_from="2025-03-01", valid_to="2025-05-01", reason="unknown then")

    assert [(1, "2025-01-01", "2025-03-01"), (1, "2025-05-01", "2026-01-01")] == periods(store.history(price))
    with pytest.raises(NotFoundError):
        store.retract(price, valid_from="2025-03-01", valid_to="2025-05-01", reason="again")


def test_a_retraction_without_successor_is_the_answer(store, clock):
    store.add_node("fact", {}, id="a-rumour", text="They will sell")
    clock.set("2026-02-01")
    store.retract("a-rumour", reason="made up")

    found = store.what_superseded("a-rumour")
    (step,) = found.chain
    assert ("retracted", None, "made up", day("2026-02-01")) == (
        step.how,
        step.node,
        step.why,
        step.recorded_at,
    )
    assert ("retracted", ()) == (found.standing, found.current)
    assert str(found).startswith("a-rumour (They will sell) was retracted")
    assert "Nothing stands in its place." in str(found)


# ---------------------------------------------------------------- link, unlink


def test_a_link_reads_as_a_sentence(store):
    store.add_node("fact", {}, id="outage-1", valid_from="2025-06-02")
    store.add_node("fact", {}, id="deploy-1", valid_from="2025-06-01")
    link = store.link(
        "outage-1",
        "caused_by",
        "deploy-1",
        reason="the trace shows it",
        strength=4,
        created_by="agent",
        metadata={"trace": "t1"},
    )

    assert re.fullmatch(r"lnk_[0-9a-f]{16}", link.id)
    assert "outage-1 caused_by deploy-1 (the trace shows it)" == str(link)
    assert (4, "explicit", "agent", {"trace": "t1"}, "stands", "stands") == (
        link.strength,
        link.confidence,
        link.created_by,
        link.metadata,
        link.source_standing,
        link.target_standing,
    )
    assert [link] == store.links_from("outage-1") == store.backlinks_to("deploy-1")
    assert [] == store.backlinks_to("outage-1") == store.links_from("deploy-1")


def test_an_inverse_name_is_stored_turned_round(store):
    store.add_node("fact", {}, id="outage-1", valid_from="2025-06-02")
    store.add_node("fact", {}, id="deploy-1", valid_from="2025-06-01")
    link = store.link("deploy-1", "causes", "outage-1")

    assert ("outage-1", "caused_by", "deploy-1") == (link.source, link.kind, link.target)


def test_possibly_is_inferred(store):
    store.add_node("fact", {}, id="deploy-1")
    store.add_node("fact", {}, id="outage-1")
    link = store.link("outage-1", "possibly_caused_by", "deploy-1")

    assert ("caused_by", "inferred") == (link.kind, link.confidence)


def test_the_same_link_twice_is_one(store):
    store.add_node("fact", {}, id="fact-a")
    store.add_node("fact", {}, id="fact-b")
    first = store.link("fact-a", "related_to", "fact-b", strength=3)
    before = store.stats()["transactions"]

    assert first.id == store.link("fact-b", "relates_to", "fact-a", strength=3).id
    assert before == store.stats()["transactions"]
    with pytest.raises(ConflictError):
        store.link("fact-a", "related_to", "fact-b", strength=5)


def test_what_was_inferred_becomes_explicit(store, clock):
    store.add_node("fact", {}, id="deploy-1")
    store.add_node("fact", {}, id="outage-1")
    guess = store.link("outage-1", "caused_by", "deploy-1", confidence="inferred")
    clock.set("2026-01-05")
    known = store.link("outage-1", "caused_by", "deploy-1")

    assert (guess.id, "explicit") == (known.id, known.confidence)
    assert ["explicit"] == [link.confidence for link in store.links_from("outage-1")]
    assert ["inferred"] == [
        link.confidence for link in store.knowledge_at("2026-01-04").links_from("outage-1")
    ]


def test_a_link_shows_by_its_own_periods_and_marks_its_ends(store, clock):
    store.add_node("fact", {}, id="fact-a")
    store.add_node("fact", {}, id="fact-b")
    store.link("fact-a", "supports", "fact-b")
    clock.set("2026-01-10")
    store.end("fact-b")
    store.retract("fact-a", reason="wrong")

    (link,) = store.links_from("fact-a")
    assert ("retracted", "ended") == (link.source_standing, link.target_standing)
    (link,) = store.as_of(valid="2026-01-05").backlinks_to("fact-b")
    assert "shaky" == link.target_standing  # what supports it was retracted


def test_a_link_with_a_period_holds_only_there(store):
    store.add_node("person", {}, id="anna-1")
    store.add_node("team", {}, id="team-1")
    store.link("anna-1", "works_on", "team-1", valid_from="2025-01-01", valid_to="2025-07-01")

    assert 1 == len(store.as_of(valid="2025-06-30").links_from("anna-1"))
    assert [] == store.as_of(valid="2025-07-01").links_from("anna-1")


def test_unlinking_a_part_splits_the_link(store, clock):
    store.add_node("person", {}, id="anna-1")
    store.add_node("team", {}, id="team-1")
    link = store.link("anna-1", "works_on", "team-1", valid_from="2025-01-01")
    clock.set("2026-01-05")
    store.unlink(link.id, valid_from="2025-03-01", valid_to="2025-05-01", reason="on leave")

    assert [] == store.as_of(valid="2025-04-01").links_from("anna-1")
    assert [link.id] == ids(store.as_of(valid="2025-02-01").links_from("anna-1"))
    assert [link.id] == ids(store.as_of(valid="2025-06-01").links_from("anna-1"))
    assert [link.id] == ids(store.as_of(valid="2025-04-01", tx="2026-01-04").links_from("anna-1"))


def test_links_are_chosen_by_any_name_of_their_kind(store):
    store.add_node("fact", {}, id="fact-a")
    store.add_node("fact", {}, id="fact-b")
    store.link("fact-b", "caused_by", "fact-a")
    store.link("fact-b", "uses", "fact-a")

    assert ["uses"] == [link.kind for link in store.links_from("fact-b", kinds=["uses"])]
    assert ["caused_by"] == [link.kind for link in store.backlinks_to("fact-a", kinds=["caused_by"])]
    with pytest.raises(InvalidError, match="caused_by"):
        store.links_from("fact-a", kinds=["cause"])


def test_a_kind_of_ones_own(store):
    store.define_kind("reviews", inverse="reviewed_by")
    store.add_node("fact", {}, id="fact-a")
    store.add_node("fact", {}, id="fact-b")
    link = store.link("fact-a", "reviewed_by", "fact-b")

    assert ("fact-b", "reviews", "fact-a") == (link.source, link.kind, link.target)
    assert [link] == store.links_from("fact-b", kinds=["reviews"])


def test_a_kind_defined_before_a_replay_does_not_close_the_past(disk_store, clock):
    store = disk_store
    store.define_kind("reviews")
    with store.transaction(at="1883-11-18T12:00:00Z"):
        for id in ("fact-a", "fact-b"):
            store.add_node("fact", {}, id=id)
    store.define_kind("cites", causal=True)
    with store.transaction(at="1883-11-18T12:00:01Z"):
        store.link("fact-a", "reviews", "fact-b")
        store.link("fact-a", "cites", "fact-b")
        store.define_kind("mentions")

    changes = store.changes()
    assert [one.tx for one in changes] == sorted(one.tx for one in changes)
    assert ["define_kind", "add_node", "add_node", "define_kind", "link", "link", "define_kind"] == [
        one.verb for one in changes
    ]
    assert timedelta(microseconds=1) == changes[3].tx - changes[2].tx
    assert 1 == changes[0].tx.year
    assert 7 == len(store.query_tables("MATCH (o:Op) RETURN o.tx AS tx, o.verb AS verb").rows())
    assert store.verify().ok
    store.close()
    with graphstore.open(store.path, clock=clock) as again:
        assert changes == again.changes()
        assert {"reviews", "cites", "mentions"} <= set(again.vocabulary.kinds)


def test_a_kind_is_defined_after_every_view_that_was_handed_out(store, clock):
    store.add_node("fact", {}, id="fact-a")
    clock.move(days=1)
    view = store.as_of()
    store.define_kind("reviews")

    assert store.changes()[-1].tx > view.at.tx
    clock.set("2025-01-01")
    store.define_kind("cites")
    assert store.changes()[-1].tx > store.changes()[-2].tx


def test_a_kind_is_defined_on_a_branch_after_all_that_was_told(store):
    made = store.branch("plan").info.made_at
    store.on("plan").define_kind("reviews")

    assert store.on("plan").info.last_tx > made
    assert store.verify().ok


# ---------------------------------------------------------------- events


def test_an_event_happened_when_it_happened(store):
    recorded = store.record_event(
        "deploy", "v2 goes live", occurred_at="2025-12-31T10:00:00Z", metadata={"sha": "abc"}
    )
    event = recorded.event

    assert recorded.is_new
    assert re.fullmatch(r"evt_\d+_[0-9a-f]{8}", event.id)
    assert ("deploy", "v2 goes live", day("2025-12-31T10:00:00Z"), {"sha": "abc"}, "stands") == (
        event.type,
        event.description,
        event.occurred_at,
        event.metadata,
        event.standing,
    )
    assert event == store.event(event.id)
    assert [event.id] == ids(store.events())
    assert [] == store.as_of(valid="2025-12-31T09:59:59Z").events()
    assert [] == store.as_of(tx="2025-12-31T12:00:00Z").events()


def test_a_fix_resolves_its_error_and_anything_else_is_related(store):
    error = store.record_event("error", "500 on /pay", id="the-error").event
    store.record_event("fix", "null check", id="the-fix", related_to="the-error")
    store.record_event("note", "seen before", id="the-note", related_to="the-error")

    assert [("the-error", "resolved_by", "the-fix")] == [
        (link.source, link.kind, link.target) for link in store.links_from(error.id, kinds=["resolved_by"])
    ]
    (said,) = store.links_from("the-note", kinds=["related_to"])
    (heard,) = store.backlinks_to("the-note", kinds=["related_to"])
    assert ("the-error", said.id) == (said.target, heard.id)


def test_an_event_is_kept_though_what_it_relates_to_is_unknown(store):
    recorded = store.record_event("note", "x", id="the-note", related_to="no-such-thing")

    assert recorded.is_new
    (warning,) = recorded.warnings
    assert "no-such-thing" in warning
    assert [] == store.links_from("the-note")


def test_the_same_event_again_is_the_same_event(store):
    first = store.record_event("deploy", "v1", id="the-deploy", occurred_at="2025-12-01")
    again = store.record_event("deploy", "v1", id="the-deploy", occurred_at="2025-12-01")

    assert (first.event, True, False) == (again.event, first.is_new, again.is_new)
    assert 1 == store.stats()["transactions"]


def test_events_are_found_by_type_time_and_text(store):
    for number, kind in enumerate(("deploy", "error", "deploy")):
        store.record_event(
            kind, f"Number {number}", id=f"event-{number}", occurred_at=f"2025-12-0{number + 1}"
        )

    assert {"event-0", "event-2"} == set(ids(store.events(type="deploy")))
    assert {"event-1", "event-2"} == set(ids(store.events(since="2025-12-02")))
    assert "event-0" in ids(store.events(until="2025-12-02"))
    assert ["event-1"] == ids(store.events(pattern="nUMBER 1"))


def test_a_node_and_an_event_are_asked_for_by_their_own_names(store):
    store.record_event("deploy", "v2", id="the-deploy")
    store.add_node("fact", {}, id="the-fact")

    with pytest.raises((NotFoundError, InvalidError), match=r"event\("):
        store.node("the-deploy")
    with pytest.raises((NotFoundError, InvalidError), match=r"node\("):
        store.event("the-fact")


def test_an_event_is_retracted_whole_and_never_revised(store, clock):
    store.record_event("deploy", "v2", id="the-deploy")
    with pytest.raises(graphstore.GraphStoreError):
        store.revise("the-deploy", {})
    with pytest.raises(graphstore.GraphStoreError):
        store.end("the-deploy")
    clock.set("2026-01-05")
    store.retract("the-deploy", reason="it was a drill")

    assert [] == store.events()
    assert ["the-deploy"] == ids(store.as_of(tx="2026-01-04").events())


def test_a_superseded_event_still_happened(store, clock):
    store.record_event("deploy", "v1", id="deploy-one")
    clock.set("2026-01-05")
    store.record_event("deploy", "v2", id="deploy-two")
    store.supersede("deploy-one", by="deploy-two")

    assert [("deploy-one", "superseded"), ("deploy-two", "stands")] == sorted(
        (event.id, event.standing) for event in store.events()
    )


# ---------------------------------------------------------------- transactions


def test_verbs_of_one_transaction_share_one_instant(store):
    with store.transaction(reason="import"):
        a = store.add_node("fact", {}, id="fact-a")
        b = store.add_node("fact", {}, id="fact-b")
        link = store.link("fact-a", "uses", "fact-b")

    assert a.tx_from == b.tx_from == link.tx_from
    assert 1 == store.stats()["transactions"]


def test_reads_inside_see_their_own_writes(store):
    with store.transaction():
        store.add_node("fact", {"n": 1}, id="fact-a")
        assert {"n": 1} == store.node("fact-a").content
        store.revise("fact-a", {"n": 2})
        assert {"n": 2} == store.node("fact-a").content


def test_a_block_left_by_an_error_leaves_nothing(store):
    with pytest.raises(RuntimeError), store.transaction():
        store.add_node("fact", {}, id="fact-a")
        store.record_event("note", "x", id="the-note")
        raise RuntimeError

    assert [] == store.nodes() == store.events()
    assert 0 == store.stats()["transactions"]
    store.add_node("fact", {}, id="fact-a")


def test_a_verb_that_raises_leaves_nothing_and_the_block_goes_on(store):
    store.add_node("fact", {}, id="fact-a")
    with store.transaction():
        with pytest.raises(NotFoundError):
            store.add_node("fact", {}, id="fact-b", supersedes=["fact-a", "no-such-node"])
        store.add_node("fact", {}, id="fact-c")

    assert {"fact-a", "fact-c"} == set(ids(store.nodes()))
    assert () == store.what_superseded("fact-a").chain


def test_what_is_born_and_closed_in_one_transaction_is_never_stored(store, price):
    with store.transaction():
        store.revise(price, {"amount": 11})
        store.revise(price, {"amount": 12})

    assert [(2, {"amount": 12})] == [(row.number, row.content) for row in store.history(price)]
    assert 2 == len(store.versions(price))


def test_an_older_source_is_replayed_at_its_own_instants(store, clock):
    clock.set("2026-06-01")
    with store.transaction(at="2026-02-01"):
        store.add_node("fact", {"n": 1}, id="fact-a")
    with store.transaction(at="2026-03-01"):
        store.revise("fact-a", {"n": 2})

    assert {"n": 1} == store.knowledge_at("2026-02-15").node("fact-a").content
    assert {"n": 2} == store.knowledge_at("2026-03-15").node("fact-a").content


def test_changes_say_who_did_what_and_why(store, clock, auth):
    with store.transaction(author="tom", reason="clean-up"):
        store.end("jwt-tokens", at="2026-02-10")
    everything = store.changes()

    assert {"maria", "tom"} == {change.author for change in everything}
    assert ("jwt-tokens", "tom", "clean-up") == (
        everything[-1].subject,
        everything[-1].author,
        everything[-1].reason,
    )
    assert everything[-1].verb == "end"
    since = everything[-1].tx - timedelta(microseconds=1)
    assert [everything[-1]] == store.changes(since=since)
    assert [] == store.changes(since=everything[-1].tx)


# ---------------------------------------------------------------- coordinates


def test_operations_say_what_was_done_to_one_thing(store, clock):
    with store.transaction(author="ana"):
        store.add_node("fact", {"says": "tea"}, id="tea", valid_from="2026-01-01", reason="thirst")
        store.add_node("fact", {"says": "other"}, id="other")
    then = store.as_of()
    clock.move(days=1)
    with store.transaction(author="bo"):
        link = store.supersede("tea", by="other", reason="sleep")[0]
    clock.move(days=1)
    store.unlink(link.id, reason="no sleep after all")

    assert [("add_node", "tea", "ana", "thirst"), ("supersede", "tea", "bo", "sleep")] == [
        (done.verb, done.subject, done.author, done.reason) for done in store.operations("tea")[:2]
    ]
    assert ["add_node"] == [done.verb for done in then.operations("tea")]
    assert ["supersede", "unlink"] == [done.verb for done in store.operations(link.id)]
    assert set(store.operations("tea")) <= set(store.changes())
    with pytest.raises(NotFoundError):
        store.operations("coffee")


def test_operations_on_a_thing_have_what_was_done_to_it_by_the_way(store, clock):
    store.add_node("fact", {"says": "Tuesday"}, key="day", id="tue", valid_from="2026-01-01")
    clock.move(days=1)
    store.add_node("fact", {"says": "Friday"}, key="day", id="fri", reason="calls")

    assert [("add_node", "tue"), ("add_node", "fri")] == [
        (done.verb, done.subject) for done in store.operations("tue")
    ]


def test_a_view_never_changes(store, clock):
    store.add_node("fact", {"n": 1}, id="fact-a")
    view = store.as_of()
    store.revise("fact-a", {"n": 2})
    store.add_node("fact", {}, id="fact-b")

    assert {"n": 1} == view.node("fact-a").content
    assert ["fact-a"] == ids(view.nodes())
    assert (day("2026-01-01"), day("2026-01-01")) == (view.at.valid, view.at.tx)


def test_knowledge_at_is_what_was_believed_then_about_then(store, clock, auth):
    clock.set("2026-03-01")
    store.revise("sessions", {"how": "cookies"}, valid_from="2026-01-01", valid_to="2026-01-30")

    assert {"how": "sessions"} == store.knowledge_at("2026-01-15").node("sessions").content
    assert {"how": "cookies"} == store.as_of(valid="2026-01-15").node("sessions").content
    assert ["jwt-tokens"] == ids(store.knowledge_at("2026-02-15").nodes())


def test_a_view_knows_nothing_that_was_learned_later(store, clock):
    node = store.add_node("fact", {}, id="fact-a")
    view = store.as_of()
    clock.set("2026-02-01")
    store.retract("fact-a", reason="wrong")

    assert node == view.node("fact-a")
    assert [None] == [row.tx_to for row in view.versions("fact-a")]
    with pytest.raises(NotFoundError):
        store.as_of(tx="2025-12-31").history("fact-a")


def test_dates_text_and_datetimes_are_one_coordinate(store, clock, auth):
    as_text = store.as_of(valid="2026-01-10", tx="2026-01-29")
    as_dates = store.as_of(
        valid=day("2026-01-10").date(), tx=datetime(2026, 1, 30, tzinfo=UTC) - timedelta(microseconds=1)
    )

    assert as_text.at == as_dates.at


# ---------------------------------------------------------------- reads


def test_nodes_are_chosen_by_kind_key_scope_and_tag(store):
    store.add_node("decision", {}, id="node-a", key="auth", tags=["x"])
    store.add_node("decision", {}, id="node-b", scope="team", tags=["x", "y"])
    store.add_node("fact", {}, id="node-c", tags=["y"])

    assert {"node-a", "node-b"} == set(ids(store.nodes(kind="decision")))
    assert ["node-a"] == ids(store.nodes(key="Auth"))
    assert ["node-b"] == ids(store.nodes(scope="team"))
    assert {"node-b", "node-c"} == set(ids(store.nodes(tag="y")))
    assert ["node-b"] == ids(store.nodes(kind="decision", tag="y"))
    assert [] == store.nodes(kind="nothing-of-the-kind")


def test_nodes_are_chosen_by_what_their_content_says(store, clock):
    store.add_node("note", {"session": "s1", "n": 1}, id="one")
    store.add_node("note", {"session": "s2", "n": 1}, id="two")
    store.add_node("fact", {"session": "s1", "of": {"a": [1]}}, id="three")
    before = store.as_of()
    clock.move(days=1)
    store.revise("one", {"session": "s3", "n": 1})

    assert ["three"] == ids(store.nodes(content={"session": "s1"}))
    assert {"one", "three"} == set(ids(before.nodes(content={"session": "s1"})))
    assert ["two"] == ids(store.nodes("note", content={"session": "s2", "n": 1}))
    assert ["three"] == ids(store.nodes(content={"of": {"a": [1]}}))
    assert [] == store.nodes(content={"session": None})
    assert 3 == len(store.nodes(content={}))
    with pytest.raises(InvalidError, match="content"):
        store.nodes(content="session")


def test_a_beginning_is_no_id_and_names_the_whole_one(store, auth):
    with pytest.raises(NotFoundError, match="Nearest: 'sessions'"):
        store.as_of(valid="2026-01-10").node("sessio")


def test_an_unknown_id_names_the_nearest(store, auth):
    with pytest.raises(NotFoundError, match="jwt-tokens"):
        store.node("jwt-token-s")


def test_a_diff_names_paths(store):
    store.add_node("fact", {"summary": "a", "lessons": {"model": ["x", "y"]}, "gone": 1}, id="fact-a")
    store.revise("fact-a", {"summary": "b", "lessons": {"model": ["z", "y"]}})
    store.revise("fact-a", {"summary": "b", "lessons": {"model": ["z", "y", "w"]}, "new": True})

    assert {
        ("summary", "changed", "a", "b"),
        ("lessons.model[0]", "changed", "x", "z"),
        ("lessons.model[2]", "added", None, "w"),
        ("gone", "removed", 1, None),
        ("new", "added", None, True),
    } == {(c.path, c.type, c.old, c.new) for c in store.diff("fact-a", 1, 3)}
    assert [] == store.diff("fact-a", 2, 2)
    with pytest.raises(NotFoundError):
        store.diff("fact-a", 1, 4)


def test_compare_along_the_worlds_time(store, auth):
    change = store.as_of(valid="2026-01-10").compare(store.as_of(valid="2026-02-10"))

    assert (["jwt-tokens"], ["sessions"], ()) == (ids(change.added), ids(change.removed), change.changed)


def test_compare_along_the_stores_time(store, clock, price):
    store.revise(price, {"amount": 11}, reason="misread")
    store.add_node("price", {"amount": 5}, id="price-2", valid_from="2025-01-01")
    before = store.as_of(valid="2025-03-01", tx="2026-01-01")
    change = before.compare(store.as_of(valid="2025-03-01"))

    assert ["price-2"] == ids(change.added)
    (revised,) = change.changed
    assert (price, 1, 2) == (revised.id, revised.before.number, revised.after.number)
    assert [("amount", 10, 11)] == [(f.path, f.old, f.new) for f in revised.fields]
    assert not before.compare(before)


def test_inspect_shows_all_that_touches_a_thing(store, auth):
    found = store.inspect("sessions")

    assert ("superseded", {"how": "sessions"}) == (found.node.standing, found.node.content)
    assert ["supersedes"] == [link.kind for link in found.backlinks]
    assert () == found.links
    assert [(1, "2026-01-01", "2026-01-30")] == periods(found.history)


# ---------------------------------------------------------------- what superseded X


def test_what_superseded_says_who_why_since_when_and_when_it_was_learned(store, clock):
    store.add_node("fact", {}, id="old-fact", text="Auth via sessions")
    clock.set("2026-02-02")
    store.add_node("fact", {}, id="new-fact", text="Auth via JWT", valid_from="2026-01-30")
    store.supersede("old-fact", by="new-fact", reason="scale")

    found = store.what_superseded("old-fact")
    (step,) = found.chain
    assert ("superseded", "new-fact", "maria", "scale", day("2026-01-30")) == (
        step.how,
        step.node.id,
        step.who,
        step.why,
        step.since,
    )
    assert "2026-02-02" == step.recorded_at.date().isoformat()
    assert ("supersedes", "old-fact") == (step.link.kind, step.link.target)
    assert ("old-fact", "superseded", ["new-fact"]) == (found.subject.id, found.standing, ids(found.current))
    text = str(found)
    assert text.startswith(
        "old-fact (Auth via sessions) was superseded by new-fact (Auth via JWT) since 2026-01-30"
    )
    assert "because: scale" in text
    assert text.endswith("Standing now: new-fact (Auth via JWT).")


def test_nothing_superseded_what_stands(store, auth):
    found = store.what_superseded("jwt-tokens")

    assert ((), ["jwt-tokens"], "stands") == (found.chain, ids(found.current), found.standing)
    assert "jwt-tokens (Auth via JWT) stands; nothing superseded it." == str(found)


def test_a_chain_is_walked_to_what_stands(store, clock):
    store.add_node("fact", {}, id="auth-v1")
    for month, (new, old) in enumerate(
        (("auth-v2", "auth-v1"), ("auth-v3", "auth-v2"), ("auth-v4", "auth-v3")), 2
    ):
        clock.set(f"2026-0{month}-01")
        store.add_node("fact", {}, id=new, supersedes=[old])

    found = store.what_superseded("auth-v1")
    assert ["auth-v2", "auth-v3", "auth-v4"] == [step.node.id for step in found.chain]
    assert ["auth-v4"] == ids(found.current)
    assert ["auth-v2"] == [
        step.node.id for step in store.knowledge_at("2026-02-15").what_superseded("auth-v1").chain
    ]


def test_two_successors_are_a_fork_and_both_are_kept(store, clock):
    store.add_node("fact", {}, id="monolith")
    clock.set("2026-01-15")
    store.add_node("fact", {}, id="billing", supersedes=["monolith"])
    clock.set("2026-01-30")
    store.add_node("fact", {}, id="accounts", supersedes=["monolith"])

    found = store.what_superseded("monolith")
    assert ["billing", "accounts"] == [step.node.id for step in found.chain]
    assert {"billing", "accounts"} == set(ids(found.current))
    assert {"billing"} == set(ids(store.as_of(valid="2026-01-20").what_superseded("monolith").current))


def test_two_roads_to_one_successor_are_one_step(store, clock):
    store.add_node("fact", {}, id="fact-1")
    clock.set("2026-01-02")
    store.add_node("fact", {}, id="fact-2", supersedes=["fact-1"])
    store.add_node("fact", {}, id="fact-3", supersedes=["fact-1"])
    clock.set("2026-01-03")
    store.add_node("fact", {}, id="fact-4", supersedes=["fact-2", "fact-3"])

    found = store.what_superseded("fact-1")
    assert ["fact-2", "fact-3", "fact-4"] == [step.node.id for step in found.chain]
    assert ["fact-4"] == ids(found.current)


def test_a_correction_that_was_retracted_leaves_no_step(store, clock, auth):
    clock.set("2026-02-10")
    store.add_node("fact", {}, id="passkeys", corrects=["jwt-tokens"])
    store.retract("passkeys", reason="never built")

    found = store.what_superseded("sessions")
    assert [("superseded", "jwt-tokens")] == [(step.how, step.node and step.node.id) for step in found.chain]
    assert ["jwt-tokens"] == [node.id for node in found.current]


def test_newer_versions_are_steps_when_asked_by_reference(store, clock):
    store.add_node("price", {"amount": 10}, id="price-7")
    clock.set("2026-01-05")
    store.revise("price-7", {"amount": 12}, reason="misread")

    (step,) = store.what_superseded("price-7-v1").chain
    assert ("revised", 2, "misread", "maria", day("2026-01-05")) == (
        step.how,
        step.node.number,
        step.why,
        step.who,
        step.recorded_at,
    )
    assert () == store.what_superseded("price-7-v2").chain


def test_a_thing_only_revised_names_the_version_that_replaced_its_last_one(store, clock):
    store.add_node("price", {"amount": 10}, id="price-7")
    for day_of_month, amount in ((5, 12), (6, 13)):
        clock.set(f"2026-01-0{day_of_month}")
        store.revise("price-7", {"amount": amount}, reason=f"{amount} it is")
    clock.set("2026-02-01")

    (step,) = store.what_superseded("price-7").chain
    assert ("revised", None, "price-7-v3", "13 it is", False) == (
        step.how,
        step.link,
        step.node.ref,
        step.why,
        step.planned,
    )
    assert "price-7 was revised as price-7-v3" in str(store.what_superseded("price-7"))
    assert "price-7-v2" == store.knowledge_at("2026-01-05").what_superseded("price-7").chain[0].node.ref
    store.revise("price-7", {"amount": 20}, valid_from="2026-06-01")
    (step,) = store.what_superseded("price-7").chain
    assert (True, "price-7-v4", day("2026-06-01")) == (step.planned, step.node.ref, step.since)
    assert "price-7 stands; planned: revised as price-7-v4 from 2026-06-01" in str(
        store.what_superseded("price-7")
    )


def test_a_decided_successor_that_begins_later_is_planned(store, clock):
    store.add_node("fact", {"says": "hall A"}, id="hall-a")
    clock.set("2026-02-01")
    store.add_node(
        "fact", {"says": "hall B"}, id="hall-b", valid_from="2026-06-01", supersedes=["hall-a"], reason="let"
    )
    store.add_node("fact", {"says": "hall C"}, id="hall-c", valid_from="2026-08-01")
    store.supersede("hall-b", by="hall-c", valid_from="2026-08-01")

    found = store.what_superseded("hall-a")
    assert [("hall-b", True, "let"), ("hall-c", True, None)] == [
        (step.node.id, step.planned, step.why) for step in found.chain
    ]
    assert ("stands", ["hall-a"]) == (found.standing, ids(found.current))
    text = str(found)
    assert "hall-a stands; planned: superseded by hall-b from 2026-06-01, recorded" in text
    assert "because: let; planned: hall-b superseded by hall-c from 2026-08-01" in text
    later = store.as_of(valid="2026-07-01").what_superseded("hall-a")
    assert [False, True] == [step.planned for step in later.chain]
    assert ["hall-b"] == ids(later.current)
    assert "Standing now: hall-b; planned: hall-b superseded by hall-c" in str(later)


def test_a_plan_replaced_before_it_began_names_its_successor(store, clock):
    store.add_node("plan", {"says": "hall A"}, id="hall-a", valid_from="2026-06-01")
    store.add_node("plan", {"says": "hall B"}, id="hall-b", valid_from="2026-06-01", supersedes=["hall-a"])

    found = store.what_superseded("hall-a")
    (step,) = found.chain
    assert ("hall-b", True, "superseded", ()) == (step.node.id, step.planned, found.standing, found.current)
    assert "hall-a was replaced before it began; planned: superseded by hall-b" in str(found)
    with pytest.raises(NotFoundError, match="superseded, superseded by 'hall-b'"):
        store.node("hall-a")
    assert ["hall-b"] == [
        step.node.id for step in store.as_of(valid="2026-07-01").what_superseded("hall-a").chain
    ]


def test_a_successor_for_a_time_is_a_step_when_that_is_over(store, clock):
    store.add_node("fact", {}, id="usual")
    store.add_node("fact", {}, id="summer", valid_from="2026-06-01", valid_to="2026-09-01")
    store.link("summer", "supersedes", "usual", valid_to="2026-09-01")
    clock.set("2026-10-01")
    store.revise("usual", {}, valid_from="2026-09-01", text="as before")

    found = store.what_superseded("usual")
    assert [("summer", False)] == [(step.node.id, step.planned) for step in found.chain if step.node]
    assert ["usual"] == ids(found.current)


def test_what_ended_with_no_successor_says_so(store, clock):
    store.add_node("fact", {}, id="beta-flag")
    clock.set("2026-02-01")
    store.end("beta-flag", at="2026-01-20", reason="launched")

    found = store.what_superseded("beta-flag")
    (step,) = found.chain
    assert ("ended", None, "maria", "launched", day("2026-01-20"), day("2026-02-01")) == (
        step.how,
        step.node,
        step.who,
        step.why,
        step.since,
        step.recorded_at,
    )
    assert ("ended", ()) == (found.standing, found.current)


def test_an_end_further_along_names_what_ended(store, clock):
    for id in ("first", "left", "right"):
        store.add_node("fact", {}, id=id, valid_from="2026-01-01" if id == "first" else "2026-01-10")
    store.supersede("first", by="left")
    store.supersede("first", by="right")
    clock.set("2026-02-01")
    store.retract("right", reason="never so")
    store.end("left", at="2026-01-20", reason="over")

    found = store.what_superseded("first")
    assert [("superseded", "first"), ("ended", "left")] == [
        (step.how, of) for step, of in zip(found.chain, found.of_steps, strict=True)
    ]
    assert "left was ended since 2026-01-20" in str(found)
    assert ("ended", "left") == (
        store.what_superseded("left").chain[0].how,
        store.what_superseded("left").of_steps[0],
    )
    assert str(store.what_superseded("left")).startswith("left was ended since 2026-01-20")


def test_supersedes_is_the_other_way_round(store, auth):
    assert ["sessions"] == [link.target for link in store.supersedes("jwt-tokens")]
    assert [] == store.supersedes("sessions")


def test_an_evolving_project(store, clock):
    """Ten sessions of one project: what stands after each of them."""
    store.add_node("task", {}, id="node-1", text="Build WB Repricer")
    store.add_node("evidence", {}, id="node-2", text="Using REST API")
    clock.set("2026-01-15")
    store.add_node("evidence", {}, id="node-15", text="Adding WebSocket for realtime")
    store.add_node("evidence", {}, id="node-16", text="REST + WebSocket hybrid", supersedes=["node-2"])
    clock.set("2026-01-30")
    store.add_node("evidence", {}, id="node-30", text="Switching to GraphQL")
    store.add_node(
        "evidence", {}, id="node-31", text="GraphQL replaces REST", supersedes=["node-2", "node-16"]
    )

    def standing(t: str) -> set[str]:
        return set(ids(store.knowledge_at(t).nodes()))

    assert {"node-1", "node-2"} == standing("2026-01-10")
    assert {"node-1", "node-15", "node-16"} == standing("2026-01-20")
    # node 31 stands too: it supersedes, and nothing supersedes it.
    clock.set("2026-02-01")
    assert {"node-1", "node-15", "node-30", "node-31"} == standing("2026-02-01")
    found = store.what_superseded("node-2")
    assert ["node-16", "node-31"] == [step.node.id for step in found.chain]
    assert ["node-31"] == ids(found.current)
    assert ["node-16"] == ids(store.knowledge_at("2026-01-20").what_superseded("node-2").current)


# ---------------------------------------------------------------- causes, effects, contradictions


@pytest.fixture
def outage(store):
    """deploy → leak → restart → outage, each caused by the one before, an hour apart."""
    names = ["deploy-1", "leak-1", "restart-1", "outage-1"]
    for hour, name in enumerate(names):
        store.record_event("note", name, id=name, occurred_at=f"2025-12-01T0{hour}:00:00Z")
    for effect, cause in zip(names[1:], names, strict=False):
        store.link(effect, "caused_by", cause)
    return names


def test_causes_lead_back_and_effects_lead_on(store, outage):
    back, on = store.causes("outage-1"), store.effects("deploy-1")

    assert ("outage-1", ["restart-1", "leak-1", "deploy-1"], False) == (
        back.root.id,
        ids(back.nodes),
        back.truncated,
    )
    assert ("deploy-1", ["leak-1", "restart-1", "outage-1"], False) == (
        on.root.id,
        ids(on.nodes),
        on.truncated,
    )
    assert 3 == len(back.links) == len(on.links)


def test_a_chain_says_when_the_depth_cut_it(store, outage):
    cut = store.causes("outage-1", depth=2)

    assert (["restart-1", "leak-1"], True) == (ids(cut.nodes), cut.truncated)
    assert not store.causes("outage-1", depth=3).truncated
    with pytest.raises(InvalidError):
        store.causes("outage-1", depth=0)


def test_a_circle_of_causes_is_walked_once(store):
    for name in ("fact-a", "fact-b", "fact-c"):
        store.add_node("fact", {}, id=name, valid_from="2025-01-01")
    for effect, cause in (("fact-a", "fact-b"), ("fact-b", "fact-c"), ("fact-c", "fact-a")):
        store.link(effect, "caused_by", cause)

    chain = store.causes("fact-a", depth=50)
    assert (["fact-b", "fact-c"], False) == (ids(chain.nodes), chain.truncated)


def test_a_cause_may_not_start_after_its_effect(store):
    store.record_event("note", "effect", id="effect-1", occurred_at="2025-01-01")
    store.record_event("note", "cause", id="cause-1", occurred_at="2025-01-02")

    with pytest.raises((InvalidError, ConflictError), match="cause-1"):
        store.link("effect-1", "caused_by", "cause-1", valid_from="2025-01-01")


def test_a_later_state_of_a_long_lived_thing_may_have_a_later_cause(store):
    store.add_node("service", {}, id="service-1", valid_from="2020-01-01")
    store.record_event("deploy", "v9", id="deploy-9", occurred_at="2025-06-01")
    store.link("service-1", "caused_by", "deploy-9", valid_from="2025-06-01")

    assert ["deploy-9"] == ids(store.causes("service-1").nodes)


def test_contradictions_are_surfaced_until_one_of_them_falls(store, clock):
    store.add_node("fact", {"v": 1}, id="claim-a")
    store.add_node("fact", {"v": 2}, id="claim-b")
    store.link("claim-a", "contradicts", "claim-b", reason="cannot both be")

    (open_one,) = store.contradictions()
    assert ({"claim-a", "claim-b"}, False) == ({open_one.source.id, open_one.target.id}, open_one.settled)
    clock.set("2026-02-01")
    store.retract("claim-b", reason="measured again")
    assert [] == store.contradictions()
    assert [True] == [c.settled for c in store.contradictions(settled=True)]
    assert 1 == len(store.as_of(tx="2026-01-31").contradictions())


# ---------------------------------------------------------------- Cypher and other shapes


def test_an_analyst_writes_no_temporal_predicate(store, auth):
    assert [{"id": "jwt-tokens", "how": "jwt"}] == store.query(
        "MATCH (n:Node) RETURN n.id AS id, n.how AS how"
    ).rows()
    assert [{"id": "sessions"}] == store.as_of(valid="2026-01-10").query(
        "MATCH (n:Node) RETURN n.id AS id"
    ).rows()
    assert [{"new": "jwt-tokens", "old": "sessions", "s": "superseded"}] == store.query(
        "MATCH (a:Node)-[:SUPERSEDES]->(b) RETURN a.id AS new, b.id AS old, b.standing AS s"
    ).rows()
    assert [] == store.query("MATCH (a)-[:CONTINUATION]->(b) RETURN a.id AS id").rows()


def test_an_analyst_sees_the_whole_history_in_the_tables(store, price):
    store.revise(price, {"amount": 12})

    assert [{"n": 1}, {"n": 2}] == store.query_tables(
        "MATCH (v:Version) WHERE v.node_id = $id RETURN v.number AS n ORDER BY n", id=price
    ).rows()


def test_a_view_as_a_networkx_graph(store, auth):
    graph = store.to_networkx()

    assert "jwt-tokens" in graph.nodes
    assert {"how": "jwt"} == graph.nodes["jwt-tokens"]["content"]
    assert [("jwt-tokens", "sessions", "supersedes")] == [
        (a, b, link["kind"]) for a, b, link in graph.edges(data=True)
    ]


def test_a_view_as_an_arrow_table(store, auth):
    table = store.as_of(valid="2026-01-10").to_arrow()

    assert ["sessions"] == table.column("id").to_pylist()
    assert [{"how": "sessions"}] == [json.loads(text) for text in table.column("content").to_pylist()]


# ---------------------------------------------------------------- stores as files


def test_a_store_is_read_again(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        clock.set("2026-01-02")
        store.revise("fact-a", {"n": 2}, valid_from="2026-01-02")
        before = store.versions("fact-a")
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        assert before == store.versions("fact-a")
        assert store.verify().ok


def test_create_is_a_choice(tmp_path):
    with pytest.raises(NotFoundError):
        graphstore.open(tmp_path / "nothing.gs", create=False)
    assert not (tmp_path / "nothing.gs").exists()


def test_export_restore_export_is_byte_equal(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock, author="maria") as store:
        store.add_node("fact", {"ü": "☃", "n": 1.5}, id="old-fact", tags=["x"])
        clock.set("2026-01-05")
        store.add_node("fact", {}, id="new-fact", supersedes=["old-fact"], reason="it changed")
        store.record_event("deploy", "v1", id="the-deploy", related_to="new-fact")
        store.define_kind("reviews", inverse="reviewed_by")
        link = store.link("new-fact", "reviews", "the-deploy")
        store.unlink(link.id)
        store.retract("old-fact", valid_to="2026-01-02", reason="x")
        store.export(tmp_path / "dump-1")
        want = {id: store.versions(id) for id in ("old-fact", "new-fact")}
    with graphstore.restore(tmp_path / "dump-1", tmp_path / "again.gs", clock=clock) as store:
        assert want == {id: store.versions(id) for id in want}
        assert store.verify().ok
        store.export(tmp_path / "dump-2")

    assert contents(tmp_path / "dump-1") == contents(tmp_path / "dump-2")


def contents(path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {
        str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()
    }


def test_a_store_in_memory_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with graphstore.open(":memory:") as store:
        store.add_node("fact", {}, id="fact-a")
        assert [{"id": "fact-a"}] == store.query("MATCH (n:Node) RETURN n.id AS id").rows()
        assert store.verify().ok

    assert [] == list(tmp_path.iterdir())


def test_durability_by_interval_loses_nothing_on_close(tmp_path):
    with graphstore.open(tmp_path / "memory.gs", durability="interval") as store:
        for number in range(50):
            store.add_node("fact", {"n": number}, id=f"fact-{number}")
    with graphstore.open(tmp_path / "memory.gs") as store:
        assert 50 == len(store.nodes())
        assert store.verify().ok


def test_durability_is_one_of_two(tmp_path):
    with pytest.raises(InvalidError, match="interval"):
        graphstore.open(tmp_path / "memory.gs", durability="never")


# ---------------------------------------------------------------- transaction time rises


def test_tx_rises_while_the_clock_stands_still(store):
    instants = [store.add_node("fact", {}).tx_from for _ in range(20)]

    assert sorted(set(instants)) == instants


def test_tx_rises_across_a_clock_set_back(store, clock):
    first = store.add_node("fact", {}).tx_from
    clock.set("2020-01-01")
    second = store.add_node("fact", {}).tx_from

    assert first < second < first + timedelta(seconds=1)


def test_tx_rises_across_a_restart_with_the_clock_set_back(tmp_path, clock):
    clock.set("2026-06-01")
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        first = store.add_node("fact", {}).tx_from
    clock.set("2020-01-01")
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        second = store.add_node("fact", {})

        assert first < second.tx_from
        assert second == store.node(second.id)


def test_the_next_tx_is_later_than_every_view_handed_out(store, clock):
    clock.set("2026-05-01")
    view = store.as_of()
    clock.set("2026-04-01")
    node = store.add_node("fact", {})

    assert view.at.tx < node.tx_from
    assert [] == view.nodes()


def test_a_large_transaction_is_many_lines_that_count_as_one(tmp_path):
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.bulk_load(
            versions=[{"node_id": f"n{number}", "content": {"n": number}} for number in range(3_500)],
            links=[
                {"source": f"n{number}", "kind": "uses", "target": f"n{3499 - number}", "reason": "why"}
                for number in range(1_700)
            ],
        )
        assert 1 == store.stats()["transactions"]
        assert store.verify().ok
    [(lines,)] = rows(tmp_path / "memory.gs", "SELECT count(*) FROM chain")
    assert lines > 5
    with graphstore.open(tmp_path / "memory.gs") as store:
        assert 3_500 == len(store.nodes())
        assert "why" == store.links_from("n0")[0].reason
        assert {"why", None} == {change.reason for change in store.changes()}


def test_a_verb_interrupted_inside_a_block_spoils_the_block(store, monkeypatch):
    from graphstore.write.transaction import Transaction

    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    with pytest.raises(EngineError, match="interrupted"), store.transaction():
        store.add_node("fact", {}, id="kept-not")
        with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
            patched.setattr(Transaction, "describe", interrupted)
            store.add_node("fact", {}, id="half-done")
    assert [] == store.nodes()
    assert "after" == store.add_node("fact", {}, id="after").id


# ---------------------------------------------------------------- found by attack


@pytest.fixture
def disk(tmp_path):
    with graphstore.open(tmp_path / "memory.gs", clock=Clock("2026-06-01")) as opened:
        yield opened
        assert opened.verify().ok
    with graphstore.open(tmp_path / "memory.gs") as again:
        assert again.verify().ok


def test_a_large_block_of_ends_is_read_back(disk, tmp_path):
    with disk.transaction():
        for number in range(1_100):
            disk.add_node("k", {}, id=f"n{number:05}", valid_from="2000-01-01")
        disk.add_node("k", {}, id="mmmmmm", valid_from="2000-01-01")
        for number in range(1_100):
            disk.end(f"n{number:05}", at="2010-01-01")
    assert ["mmmmmm"] == [node.id for node in disk.nodes()]


def test_a_long_chain_of_supersessions_in_one_block_is_read_back(disk):
    with disk.transaction():
        for number in range(1_300):
            before = [f"n{number - 1:05}"] if number else []
            disk.add_node("k", {"n": number}, id=f"n{number:05}", supersedes=before)
    assert ["n01299"] == [node.id for node in disk.nodes()]
    assert 1_299 == len(disk.what_superseded("n00000").chain)


def test_a_number_whose_description_a_supersession_took_is_not_used_again(disk):
    with disk.transaction():
        disk.add_node("k", {"v": "old"}, id="aaaaaa", valid_from="2000-01-01")
        disk.add_node("k", {}, id="bbbbbb", valid_from="2010-01-01", supersedes=["aaaaaa"])
        disk.revise("aaaaaa", {"v": "new"})
        inside = [version.content for version in disk.history("aaaaaa")]
    assert [{"v": "new"}] == inside == [version.content for version in disk.history("aaaaaa")]


def test_a_load_inside_a_block_is_refused_and_harms_nothing(disk):
    disk.add_node("k", {"z": 0}, id="zzzzzz")
    with disk.transaction(reason="outer"):
        disk.add_node("k", {"a": 1}, id="aaaaaa")
        with pytest.raises(InvalidError, match="transaction is open"):
            disk.bulk_load(versions=[{"node_id": "bbbbbb", "content": {"b": 1}}])
    assert ["zzzzzz", "aaaaaa"] == [node.id for node in disk.nodes()]


def test_a_load_of_versions_with_both_periods_gives_the_same_beliefs(disk):
    with disk.transaction(at="2020-01-01"):
        disk.add_node("k", {"v": 1}, id="aaaaaa", valid_from="2000-01-01")
    with disk.transaction(at="2021-01-01"):
        disk.end("aaaaaa", at="2010-01-01")
    columns = ("content", "valid_from", "valid_to", "tx_from", "tx_to")
    rows = [
        {"node_id": row.id, **{name: getattr(row, name) for name in columns}}
        for row in disk.versions("aaaaaa")
    ]
    with graphstore.open(":memory:", clock=Clock("2026-06-01")) as other:
        other.bulk_load(versions=rows)
        for tx in ("2020-06-01", "2021-06-01"):
            for valid in ("2005-01-01", "2015-01-01"):
                expected = [node.id for node in disk.as_of(valid=valid, tx=tx).nodes()]
                assert expected == [node.id for node in other.as_of(valid=valid, tx=tx).nodes()]


def test_a_load_takes_back_the_link_it_names(disk):
    disk.bulk_load(
        versions=[{"node_id": name, "content": {}, "tx_from": "2010-01-01"} for name in ("aaaaaa", "bbbbbb")],
        links=[
            {"source": "aaaaaa", "kind": "uses", "target": "bbbbbb", "valid_from": "2000-01-01", "valid_to": "2001-01-01",
             "tx_from": "2011-01-01", "tx_to": "2014-01-01"},
            {"source": "aaaaaa", "kind": "uses", "target": "bbbbbb", "valid_from": "2005-01-01", "valid_to": "2006-01-01",
             "tx_from": "2012-01-01", "tx_to": "2013-01-01"},
        ],
    )  # fmt: skip
    assert 1 == len(disk.as_of(valid="2000-06-01", tx="2013-06-01").links_from("aaaaaa"))
    assert [] == disk.as_of(valid="2005-06-01", tx="2013-06-01").links_from("aaaaaa")
    assert [] == disk.as_of(valid="2000-06-01", tx="2014-06-01").links_from("aaaaaa")


def test_superseding_again_takes_what_was_described_anew(disk):
    disk.add_node("k", {"v": 1}, id="aaaaaa", valid_from="2000-01-01")
    disk.add_node("k", {}, id="bbbbbb", valid_from="2010-01-01")
    first = disk.supersede("aaaaaa", by="bbbbbb")[0]
    disk.revise("aaaaaa", {"v": 2}, valid_from="2015-01-01")
    assert first.id == disk.supersede("aaaaaa", by="bbbbbb")[0].id
    assert ["bbbbbb"] == [node.id for node in disk.nodes()]


def test_what_kept_no_row_stays_as_a_view_saw_it(disk):
    disk.add_node("k", {}, id="nnnnnn")
    with disk.transaction():
        disk.add_node("k", {}, id="aaaaaa")
        disk.link("aaaaaa", "related_to", "nnnnnn")
        disk.retract("aaaaaa", reason="x")
    view = disk.as_of()
    before = view.inspect("aaaaaa"), view.what_superseded("aaaaaa")
    disk.revise("aaaaaa", {"v": 2}, valid_from="2000-01-01")
    assert before == (view.inspect("aaaaaa"), view.what_superseded("aaaaaa"))


def test_ended_and_partly_retracted_in_one_block_is_ended_after_its_end(disk):
    disk.add_node("k", {}, id="aaaaaa", valid_from="2000-01-01")
    with disk.transaction():
        disk.end("aaaaaa", at="2010-01-01")
        disk.retract("aaaaaa", valid_from="2000-01-01", valid_to="2001-01-01", reason="x")
    assert "ended" == disk.as_of(valid="2015-01-01").inspect("aaaaaa").node.standing


@pytest.fixture
def crossed_out(disk):
    """In one block Monday was superseded from the 10th on, retracted from the 5th on, and the slot filled once more."""
    monday = disk.add_node("day", {"on": "monday"}, key="deploy", valid_from="2026-01-01").id
    with disk.transaction():
        disk.add_node("day", {"on": "tuesday"}, key="deploy", valid_from="2026-01-10")
        disk.retract(monday, valid_from="2026-01-05", reason="nobody deployed")
        disk.add_node("day", {"on": "friday"}, key="deploy", valid_from="2026-01-10")
    return monday


def around_the_cut(store, id) -> list[str]:
    """How it stands before it was retracted, while it is, and from its successor on."""
    days = ("2026-01-02", "2026-01-07", "2026-01-12")
    return [store.as_of(valid=on).inspect(id).node.standing for on in days]


def test_a_retraction_takes_nothing_that_was_superseded_before_in_its_block(disk, crossed_out):
    assert ["stands", "retracted", "superseded"] == around_the_cut(disk, crossed_out)
    with pytest.raises(NotFoundError, match="superseded, superseded by"):
        disk.as_of(valid="2026-01-12").node(crossed_out)


def test_what_each_verb_of_a_block_took_is_in_the_ledger_alone(disk, crossed_out, tmp_path):
    copy_ledger(disk.path, tmp_path / "copy.gs")

    with graphstore.open(tmp_path / "copy.gs", clock=Clock("2026-06-02")) as copy:
        assert ["stands", "retracted", "superseded"] == around_the_cut(copy, crossed_out)
        assert copy.verify().ok


def test_described_for_longer_and_retracted_in_one_block_is_retracted_as_if_told_one_by_one(disk):
    disk.add_node("k", {}, id="aaaaaa", valid_from="2000-01-01", valid_to="2005-01-01")
    with disk.transaction():
        disk.revise("aaaaaa", {"v": 2}, valid_from="2003-01-01", valid_to="2008-01-01")
        disk.retract("aaaaaa", valid_from="2003-01-01", valid_to="2008-01-01", reason="x")
    standings = [
        disk.as_of(valid=on).inspect("aaaaaa").node.standing
        for on in ("2002-01-01", "2004-01-01", "2007-01-01")
    ]
    assert ["stands", "retracted", "retracted"] == standings


def test_the_step_of_a_retraction_names_who_retracted(disk):
    disk.add_node("k", {}, id="aaaaaa", valid_from="2000-01-01")
    with disk.transaction(author="bob"):
        disk.end("aaaaaa", at="2010-01-01", reason="closed")
    with disk.transaction(author="eve"):
        disk.retract("aaaaaa", reason="never so")
    step = disk.what_superseded("aaaaaa").chain[0]
    assert ("retracted", "eve", "never so") == (step.how, step.who, step.why)


def test_an_open_block_shows_in_arrow_even_without_a_body(disk):
    disk.add_node("k", {}, id="aaaaaa", valid_from="2000-01-01")
    with disk.transaction():
        disk.end("aaaaaa")
        assert 0 == disk.to_arrow().num_rows == len(disk.nodes())
        with pytest.raises(InvalidError, match="verify"):
            disk.verify()


def test_a_follower_verifies_what_it_has_followed(disk):
    disk.add_node("k", {}, id="aaaaaa")
    with graphstore.open(disk.path, read_only=True) as follower:
        disk.add_node("k", {}, id="bbbbbb")
        assert follower.verify().ok


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.record_event("t", "d", id=["x"]),
        lambda s: s.add_node("k", {}, supersedes=[["x"]]),
        lambda s: s.record_event("t", "d", related_to=[["x"]]),
        lambda s: s.bulk_load(versions=[{"node_id": ["x"]}]),
        lambda s: s.bulk_load(nodes=[{"id": ["x"]}]),
        lambda s: s.links_from("aaaaaa", 5),
        lambda s: graphstore.open(None),
        lambda s: graphstore.open("x" * 300),
    ],
)
def test_what_has_the_wrong_shape_is_refused_with_a_word(disk, call):
    disk.add_node("k", {}, id="aaaaaa")
    with pytest.raises(InvalidError):
        call(disk)
    assert ["aaaaaa"] == [node.id for node in disk.nodes()]


def test_a_reference_is_a_version_unless_it_is_an_id_itself(disk):
    disk.add_node("k", {}, id="zzzzzz")
    disk.add_node("k", {}, id="zzzzzz-v2-notes")
    with pytest.raises(NotFoundError, match="no version 2 of 'zzzzzz'"):
        disk.node("zzzzzz-v2")
    assert "zzzzzz" == disk.node("zzzzzz-v1").id
    disk.add_node("k", {}, id="zzzzzz-v1")
    assert "zzzzzz-v1" == disk.node("zzzzzz-v1").id


def test_what_a_store_answers_can_be_copied_and_pickled(store):
    old, new = (
        store.add_node("fact", {"auth": each}, valid_from="2026-01-01") for each in ("sessions", "JWT")
    )
    (link,) = store.supersede(old.id, by=new.id)

    for told in (old, link, store.what_superseded(old.id), store.record_event("deploy", "v1").event):
        assert told == copy.deepcopy(told) == pickle.loads(pickle.dumps(told)) == told.model_copy()
    changed = new.model_copy(update={"text": "tokens"})
    assert ("tokens", None) == (changed.text, new.text)
    assert new == new.model_copy()
