"""What cannot both be right: recorded by links, found among nodes about the same, and decided by somebody."""

from __future__ import annotations

import random
import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError
from graphstore.values.sameness import jaccard
from graphstore.values.similar_pairs import alike

pytestmark = pytest.mark.served


def pairs(found):
    """The pairs, the newer (or the source) first."""
    return [(each.source.id, each.target.id) for each in found]


@pytest.fixture
def days(store, clock):
    """Two facts on the day of deploys that cannot both be right, the second recorded and true a day later."""
    clock.set("2026-01-01")
    store.add_node("fact", {}, id="friday", text="deploys run on Friday")
    clock.set("2026-01-02")
    store.add_node("fact", {}, id="tuesday", text="deploys run on Tuesday")
    clock.set("2026-02-01")
    return store


@pytest.fixture
def disputed(days):
    """The same two, and a link that says so."""
    days.link("friday", "contradicts", "tuesday", reason="one pipeline", strength=4, metadata={"by": "ops"})
    return days


# ---------------------------------------------------------------- which sets overlap


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=24),
    st.sampled_from([None, 0, 1, 2, 4, 100]),
)
def test_pairs_found_are_those_of_looking_at_each_two(sets, rare):
    expected = [
        (one, two) for one, two in combinations(range(len(sets)), 2) if jaccard(sets[one], sets[two]) >= 0.2
    ]
    assert expected == list(alike(sets, rare))


def test_pairs_are_found_among_sets_of_very_different_sizes():
    vocabulary = [str(n) for n in range(200)]
    dice = random.Random(5)
    sets = [frozenset(dice.sample(vocabulary, dice.choice((1, 3, 10, 40, 120)))) for _ in range(150)]

    expected = [
        (one, two) for one, two in combinations(range(150), 2) if jaccard(sets[one], sets[two]) >= 0.2
    ]
    assert [expected, expected] == [list(alike(sets, rare)) for rare in (None, 30)]


def test_words_that_all_share_do_not_make_ten_thousand_slow():
    dice = random.Random(7)
    common = "the service of a is in on to and with".split()
    rare = [f"word{n}" for n in range(8000)]
    sets = [frozenset(dice.sample(common, 2) + dice.sample(rare, 8)) for _ in range(10_000)]

    began = time.process_time()
    found = list(alike(sets))
    assert (
        3 > time.process_time() - began
    )  # a fraction of it on a machine at rest; looking at each two takes half a minute
    assert all(jaccard(sets[one], sets[two]) >= 0.2 for one, two in found)


def test_a_few_pairs_of_very_many_are_there_at_once():
    sets = [frozenset(("port", "of", "the", "service", "is", str(n))) for n in range(5000)]

    began = time.process_time()
    assert [(0, 1), (0, 2), (0, 3)] == [pair for pair, _ in zip(alike(sets), range(3), strict=False)]
    assert 1 > time.process_time() - began


# ---------------------------------------------------------------- candidates


def test_nodes_that_talk_of_the_same_and_differ_are_candidates(days):
    (found,) = days.contradictions()

    assert ("tuesday", "friday") == (found.source.id, found.target.id)
    assert (None, False, None, 3 / 5) == (found.link, found.settled, found.decision, found.overlap)
    assert [] == days.contradictions(candidates=False)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("fact", "Deploys run, on Friday!", []),  # the same
        ("fact", "the cat sleeps", []),
        ("rule", "deploys run on Tuesday", []),
        ("fact", "deploys run 2 hours", [("other", "friday")]),
        ("fact", "deploys never run on Friday", [("other", "friday")]),
        ("fact", "deploys a b c d e f", []),  # 1 of 10
        ("fact", "deploys run b c d e", [("other", "friday")]),  # 2 of 8
    ],
)
def test_a_candidate_is_of_the_same_kind_and_shares_a_fifth_of_the_words(store, clock, kind, text, expected):
    store.add_node("fact", {}, id="friday", text="deploys run on Friday")
    clock.move(days=1)
    store.add_node(kind, {}, id="other", text=text)

    assert expected == pairs(store.contradictions())


def test_nearly_the_same_words_with_other_numbers_are_a_candidate(store):
    words = (
        "the payment service of the shop keeps its sessions in a cache on the first host of the cluster for"
    )
    store.add_node("fact", {}, id="five", text=f"{words} 5 minutes")
    store.add_node("fact", {}, id="six", text=f"{words} 6 minutes")
    store.add_node("fact", {}, id="same", text=f"{words} about 5 minutes")

    assert {("six", "five"), ("same", "six")} == set(pairs(store.contradictions()))


def test_one_scope_never_contradicts_another(store):
    store.add_node("fact", {}, id="here", text="deploys run on Friday", scope="here")
    store.add_node("fact", {}, id="there", text="deploys run on Tuesday", scope="there")

    assert [] == store.contradictions()


def test_without_a_text_the_values_are_compared(store):
    store.add_node("fact", {"name": "api server", "port": 80}, id="node-a")
    store.add_node("fact", {"name": "api server", "port": 81}, id="node-b")

    assert [("node-b", "node-a")] == pairs(store.contradictions())


@pytest.mark.parametrize("kind", ["supersedes", "corrects", "derived_from", "supports"])
def test_what_a_lifecycle_link_joins_is_no_candidate(days, kind):
    days.link("friday", kind, "tuesday")
    assert [] == days.contradictions()


def test_another_link_between_the_two_leaves_them_candidates(days):
    days.link("friday", "related_to", "tuesday")
    assert [("tuesday", "friday")] == pairs(days.contradictions())


def test_a_pair_with_a_contradicts_link_is_there_once(disputed):
    (found,) = disputed.contradictions()

    assert ("friday", "tuesday", "one pipeline", None) == (
        found.source.id,
        found.target.id,
        found.link.reason,
        found.overlap,
    )


def test_who_disagreed_with_whom_is_read_at_any_coordinate(days, clock):
    days.end("friday", at="2026-01-20")
    assert [] == days.contradictions()
    assert [("tuesday", "friday")] == pairs(days.as_of(valid="2026-01-10").contradictions())
    assert [] == days.as_of(valid="2026-01-01").contradictions()
    assert [("tuesday", "friday")] == pairs(days.knowledge_at("2026-01-31").contradictions())
    clock.set("2026-02-02")
    days.revise("tuesday", {}, text="the cat sleeps")
    assert [] == days.as_of(valid="2026-01-10").contradictions()
    assert [("tuesday", "friday")] == pairs(
        days.as_of(valid="2026-01-10", tx="2026-02-01T12:00Z").contradictions()
    )


def test_explicit_ones_come_first_and_the_newer_before_the_older(days, clock):
    days.add_node("fact", {}, id="monday", text="deploys run on Monday")
    for name in ("north", "south"):
        days.add_node("claim", {}, id=name, text=name)
    days.link("north", "contradicts", "south")
    clock.move(days=1)
    days.link("north", "contradicts", "friday")

    wanted = [
        ("north", "friday"),
        ("north", "south"),
        ("monday", "tuesday"),
        ("monday", "friday"),
        ("tuesday", "friday"),
    ]
    assert wanted == pairs(days.contradictions())
    assert wanted[:3] == pairs(days.contradictions(limit=3))
    assert wanted[:2] == pairs(days.contradictions(candidates=False))
    with pytest.raises(InvalidError, match="limit 0"):
        days.contradictions(limit=0)


def test_kinds_are_mixed_by_age(store, clock):
    for number, kind in enumerate(("rule", "fact", "rule", "fact", "rule")):
        store.add_node(kind, {}, id=f"node-{number}", text=f"deploys run on day {number}")
        clock.move(days=1)

    assert [("node-4", "node-2"), ("node-4", "node-0"), ("node-3", "node-1"), ("node-2", "node-0")] == pairs(
        store.contradictions()
    )


# ---------------------------------------------------------------- deciding


def test_keeping_one_retracts_the_other_and_links_the_correction(disputed, clock):
    before = disputed.as_of()
    (found,) = disputed.contradictions()
    clock.set("2026-02-02")
    done = disputed.resolve(found, keep="tuesday", reason="asked the team")

    assert (True, "tuesday", found.link.id) == (done.settled, done.decision, done.link.id)
    assert ("retracted", "stands") == (done.source.standing, done.target.standing)
    assert {"by": "ops", "decision": "tuesday"} == done.link.metadata
    assert ("one pipeline", 4, "user") == (done.link.reason, done.link.strength, done.link.created_by)
    assert [("retracted", "asked the team"), ("corrected", "asked the team")] == [
        (step.how, step.why) for step in disputed.what_superseded("friday").chain
    ]
    assert ["tuesday"] == [thing.id for thing in disputed.what_superseded("friday").current]
    assert [] == disputed.contradictions()
    assert [done] == disputed.contradictions(settled=True)
    assert [found] == before.contradictions()


def test_it_is_one_transaction_with_its_reason(days):
    before = days.stats()["transactions"]
    (found,) = days.contradictions()
    done = days.resolve(found, keep="friday", reason="measured")

    assert 1 == days.stats()["transactions"] - before
    changes = [(change.verb, change.subject, change.reason) for change in days.changes() if change.reason]
    assert {("resolve", done.link.id, "measured"), ("retract", "tuesday", "measured")} <= set(changes)
    assert "tuesday" not in [node.id for node in days.nodes()]


def test_keeping_both_lets_them_stand_side_by_side(days):
    (found,) = days.contradictions()
    done = days.resolve(found, keep="both", reason="two pipelines")

    assert (True, "both", {"decision": "both"}) == (done.settled, done.decision, done.link.metadata)
    assert ["friday", "tuesday"] == [node.id for node in days.nodes()]
    assert [] == days.contradictions()
    assert [("tuesday", "friday")] == pairs(days.contradictions(settled=True))


def test_a_decision_on_a_candidate_holds_for_all_the_time_both_held(days):
    (found,) = days.contradictions()
    days.resolve(found, keep="both", reason="two pipelines")

    assert [] == days.as_of(valid="2026-01-02").contradictions()
    assert [("tuesday", "friday")] == pairs(days.as_of(valid="2026-01-02", tx="2026-01-31").contradictions())


def test_a_decision_on_a_candidate_leaves_what_was_said_at_another_time(days):
    days.link(
        "tuesday",
        "contradicts",
        "friday",
        valid_from="2026-01-05",
        valid_to="2026-01-08",
        reason="for a while",
    )
    days.link("tuesday", "contradicts", "friday", valid_from="2026-03-01", reason="later again")
    (found,) = days.contradictions()
    done = days.resolve(found, keep="both", reason="two pipelines")

    assert ("2026-01-08", "2026-03-01") == (str(done.link.valid_from.date()), str(done.link.valid_to.date()))
    assert ["for a while"] == [each.link.reason for each in days.as_of(valid="2026-01-06").contradictions()]


def test_described_anew_after_a_decision_they_stay_decided(days, clock):
    days.resolve(*days.contradictions(), keep="both", reason="two pipelines")
    clock.move(days=1)
    days.revise("tuesday", {}, text="deploys run on Monday")

    assert [] == days.contradictions()


def test_events_can_be_decided_between_too(store):
    for name in ("up", "down"):
        store.record_event("note", name, id=f"event-{name}")
    store.link("event-up", "contradicts", "event-down")
    done = store.resolve(*store.contradictions(), keep="event-up", reason="seen")

    assert ("stands", "retracted") == (done.source.standing, done.target.standing)


def test_one_that_corrects_the_other_already_is_not_linked_again(disputed):
    disputed.link("tuesday", "corrects", "friday", reason="before", valid_from="2026-01-01")
    disputed.resolve(*disputed.contradictions(), keep="tuesday", reason="asked")

    assert ["before"] == [link.reason for link in disputed.links_from("tuesday", "corrects")]


def test_only_one_of_the_two_can_be_kept(days):
    (found,) = days.contradictions()
    for keep in ("neither", "monday", "friday-v1", ""):
        with pytest.raises(InvalidError, match="'tuesday', 'friday' or 'both'"):
            days.resolve(found, keep=keep, reason="so")
    with pytest.raises(InvalidError, match="reason"):
        days.resolve(found, keep="both", reason=" ")
    with pytest.raises(InvalidError, match="no contradiction"):
        days.resolve("friday", keep="both", reason="so")
    assert [found] == days.contradictions()


def test_what_is_decided_is_not_decided_again(disputed):
    (found,) = disputed.contradictions()
    disputed.resolve(found, keep="both", reason="two pipelines")
    for again in (found, *disputed.contradictions(settled=True)):
        with pytest.raises(ConflictError, match="decided already: 'both'"):
            disputed.resolve(again, keep="friday", reason="after all")


def test_a_contradiction_of_what_no_longer_stands_is_over(days):
    (found,) = days.contradictions()
    days.retract("friday", reason="wrong")
    with pytest.raises(ConflictError, match="'friday' is retracted"):
        days.resolve(found, keep="tuesday", reason="so")


def test_a_contradiction_that_was_taken_back_is_over(disputed):
    (found,) = disputed.contradictions()
    disputed.unlink(found.link.id)
    with pytest.raises(ConflictError, match="no longer says so"):
        disputed.resolve(found, keep="tuesday", reason="so")


def test_a_candidate_described_anew_since_has_to_be_read_again(days):
    (found,) = days.contradictions()
    days.revise("friday", {}, text="deploys run on Thursday")
    with pytest.raises(ConflictError, match="friday-v2"):
        days.resolve(found, keep="tuesday", reason="so")
    days.resolve(*days.contradictions(), keep="tuesday", reason="so")


def test_a_contradiction_of_another_store_is_refused(days, clock):
    (found,) = days.contradictions()
    with graphstore.open(":memory:", clock=clock) as other, pytest.raises(NotFoundError):
        other.resolve(found, keep="both", reason="so")


def test_a_decision_is_kept_on_disk(disk_store, clock):
    for text in ("deploys run on Friday", "deploys run on Tuesday"):
        disk_store.add_node("fact", {}, text=text)
    done = disk_store.resolve(*disk_store.contradictions(), keep="both", reason="two pipelines")
    disk_store.close()
    with graphstore.open(disk_store.path, clock=clock) as again:
        assert [done] == again.contradictions(settled=True)
        assert again.verify().ok
