"""Decay: what a thing weighs by its age and its worth, and what that does to a ranking and never to an answer."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import InvalidError
from graphstore.memory.recall import recall
from graphstore.values.decay import Decay, weight
from tests.conftest import day
from tests.support.seeds import examples

pytestmark = pytest.mark.served

SLACK = 1e-12

shares = st.floats(0, 1)
counts = st.integers(0, 10**6)
ages = st.floats(0, 10**6)
decays = st.builds(
    Decay,
    half_life=st.floats(0.01, 10**5),
    floor=shares,
    per_access=st.floats(0, 10),
    per_link=st.floats(0, 10),
    for_importance=st.floats(1, 100),
    doubted=st.floats(0.01, 1),
    shaken=shares,
)
arguments = st.tuples(ages, counts, counts, shares, shares)


# ---------------------------------------------------------------- the formula


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"age": 0}, 1.0),
        ({"age": -5}, 1.0),
        ({"age": 90}, 0.1 + 0.9 / 2),
        ({"age": 180}, 0.1 + 0.9 / 4),
        ({"age": 10**9}, 0.1),
        ({"age": 90, "floor": 0}, 0.5),
        ({"age": 30, "half_life": 30, "floor": 0}, 0.5),
        ({"age": 125 * 0.9, "accesses": 1, "floor": 0}, 0.5),
        ({"age": 90 * 1.5, "accesses": 3, "floor": 0}, 0.5),
        ({"age": 90 * 1.2, "links": 3, "floor": 0}, 0.5),
        ({"age": 180, "importance": 1, "floor": 0}, 0.5),
        ({"age": 45, "importance": 0, "floor": 0}, 0.5),
        ({"age": 90 / 4, "confidence": 0, "floor": 0}, 0.5),
    ],
)
def test_weight_of_a_thing(given, expected):
    assert pytest.approx(expected) == weight(**given)


@given(decay=decays, of=arguments)
def test_weight_is_from_the_floor_to_one(decay, of):
    assert decay.floor <= decay.weight(*of) <= 1


@given(decay=decays, of=arguments)
def test_fresh_thing_weighs_one_whatever_is_known_of_it(decay, of):
    assert 1 == decay.weight(0, *of[1:])


@given(decay=decays, of=arguments, other=arguments, which=st.integers(0, 4))
def test_weight_is_less_the_older_and_more_by_everything_else(decay, of, other, which):
    less, more = sorted((of[which], other[which]), reverse=which == 0)
    one, two = ((*of[:which], value, *of[which + 1 :]) for value in (less, more))

    assert decay.weight(*one) <= decay.weight(*two) + SLACK


@given(
    of=arguments,
    name=st.sampled_from(["half_life", "floor", "per_access", "per_link", "doubted"]),
    values=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)),
)
def test_weight_is_more_with_each_parameter(of, name, values):
    less, more = sorted(values)

    assert Decay(**{name: less}).weight(*of) <= Decay(**{name: more}).weight(*of) + SLACK


@pytest.mark.parametrize(
    "wrong",
    [{"half_life": 0}, {"half_life": -1}, {"half_life": math.inf}, {"half_life": math.nan}, {"half_life": "90"}, {"floor": -0.1}, {"floor": 1.1},
     {"floor": True}, {"per_access": -1}, {"per_link": -1}, {"for_importance": 0.5}, {"doubted": 0}, {"shaken": 2}],
)  # fmt: skip
def test_parameter_out_of_range_is_refused(wrong):
    with pytest.raises(InvalidError, match="out of range"):
        Decay(**wrong)


# ---------------------------------------------------------------- what recall does with it


def ranked(view, text="deploys", **options) -> list[str]:
    return [hit.node.id for hit in recall(view, text, **options)]


def weights(view, text="deploys", decay=None) -> dict[str, float]:
    return {hit.node.id: hit.weight for hit in recall(view, text, 50, decay=decay or Decay())}


@pytest.fixture
def rules(store, clock):
    """Two that match equally, the stale one first by its id."""
    store.add_node("rule", {}, id="a-stale", text="deploys on friday", valid_from="2025-02-01")
    store.add_node("rule", {}, id="b-fresh", text="deploys on monday", valid_from="2026-02-01")
    return store


def test_fresh_statement_ranks_above_an_equally_matching_stale_one(rules):
    assert ["a-stale", "b-fresh"] == ranked(rules)
    assert ["b-fresh", "a-stale"] == ranked(rules, decay=Decay())


def test_fresh_statement_is_found_among_more_stale_ones_than_are_asked_for(rules):
    for number in range(30):
        rules.add_node("rule", {}, id=f"a{number:02}", text="deploys on sunday", valid_from="2025-01-01")

    assert ["b-fresh"] == ranked(rules, k=1, decay=Decay())


def test_without_decay_the_answer_is_what_it_was(rules):
    assert recall(rules, "deploys") == recall(rules, "deploys", decay=None)
    assert [1.0, 1.0] == [hit.weight for hit in recall(rules, "deploys")]


def test_decay_hides_nothing(rules):
    assert set(ranked(rules)) == set(ranked(rules, decay=Decay(floor=0, half_life=0.001)))
    assert "a-stale" == rules.node("a-stale").id
    assert ["a-stale"] == ranked(rules.as_of(valid="2025-06-01"), decay=Decay())


def test_scores_are_multiplied_by_the_weight(rules):
    plain = {hit.node.id: hit.text_score for hit in recall(rules, "deploys")}
    for hit in recall(rules, "deploys", decay=Decay()):
        assert pytest.approx(plain[hit.node.id] * hit.weight) == hit.text_score


def test_what_links_lead_to_is_weighed_too(store):
    store.add_node("fact", {}, id="seed", text="unicorn")
    for id, since in (("a-stale", "2025-02-01"), ("b-fresh", "2026-02-01")):
        store.add_node("fact", {}, id=id, text="plain", valid_from=since)
        store.link("seed", "uses", id)

    assert ["seed", "b-fresh", "a-stale"] == ranked(store, "unicorn", decay=Decay())


def test_age_is_of_the_coordinate(rules):
    assert pytest.approx({"a-stale": weight(365), "b-fresh": 1.0}) == weights(rules)
    assert pytest.approx({"a-stale": weight(10)}) == weights(rules.as_of(valid=day("2025-02-11")))
    later = weights(rules.as_of(valid=day("2027-02-01")))
    assert pytest.approx({"a-stale": weight(730), "b-fresh": weight(365)}) == later


def test_confirmed_thing_is_fresh_again_from_then_on(rules, clock):
    before = rules.as_of()
    clock.move(days=1)
    rules.confirm("a-stale", reason="looked")

    assert 1.0 == weights(rules)["a-stale"]
    assert pytest.approx(weight(365)) == weights(before)["a-stale"]
    assert pytest.approx(weight(364)) == weights(rules.as_of(valid=day("2026-01-31")))["a-stale"]


def test_event_that_came_again_is_fresh(store, clock):
    for at in ("2025-02-01", "2026-02-01"):
        store.record_event("error", "deploys fail", occurred_at=at)
    store.record_event("error", "deploys hang", id="once", occurred_at="2025-02-01")

    found = weights(store)
    assert pytest.approx(weight(365)) == found.pop("once")
    assert pytest.approx([1.0]) == list(found.values())


def test_links_that_hold_there_lengthen_a_life(rules):
    rules.link("a-stale", "uses", "b-fresh", valid_from="2026-01-01")
    rules.link("a-stale", "same_topic", "b-fresh")

    assert pytest.approx(weight(365, links=1)) == weights(rules)["a-stale"]
    assert pytest.approx(weight(333)) == weights(rules.as_of(valid=day("2025-12-31")))["a-stale"]


@pytest.mark.parametrize(("strength", "importance"), [(None, 0.5), (1, 0.0), (3, 0.5), (5, 1.0)])
def test_strongest_link_says_how_important_where_the_content_does_not(rules, strength, importance):
    rules.link("a-stale", "uses", "b-fresh", strength=strength, valid_from="2026-01-01")

    assert pytest.approx(weight(365, links=1, importance=importance)) == weights(rules)["a-stale"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"importance": 1}, {"importance": 1}),
        ({"importance": 0.0}, {"importance": 0}),
        ({"confidence": 0.5}, {"confidence": 0.5}),
        ({"importance": 0.25, "confidence": 0.75}, {"importance": 0.25, "confidence": 0.75}),
        ({"importance": "high", "confidence": True}, {}),
        ({"importance": 7, "confidence": -1}, {}),
    ],
)
def test_content_says_how_important_and_how_sure(store, content, said):
    store.add_node("rule", content, id="one", text="deploys", valid_from="2025-02-01")

    assert pytest.approx(weight(365, **said)) == weights(store)["one"]


def test_metadata_of_an_event_says_how_important(store):
    store.record_event(
        "error", "deploys fail", id="one", occurred_at="2025-02-01", metadata={"importance": 1}
    )

    assert pytest.approx(weight(365, importance=1)) == weights(store)["one"]


def test_shaky_thing_is_less_sure(rules, clock):
    rules.link("a-stale", "derived_from", "b-fresh", valid_from="2026-02-01")
    clock.move(days=1)
    rules.retract("b-fresh", reason="wrong")

    assert "shaky" == rules.node("a-stale").standing
    assert pytest.approx(weight(366, links=1, confidence=0.5)) == weights(rules)["a-stale"]
    assert (
        pytest.approx(weight(366, links=1, confidence=1)) == weights(rules, decay=Decay(shaken=1))["a-stale"]
    )


def test_with_a_floor_of_nothing_the_oldest_are_found_still(rules):
    assert ["a-stale", "b-fresh"] == ranked(
        rules.as_of(valid="2999-01-01"), decay=Decay(floor=0, half_life=0.001)
    )


said = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 900), st.sampled_from([None, 0.0, 1.0])), max_size=25
)


@settings(max_examples=examples(60), deadline=None)
@given(said=said, k=st.integers(1, 30))
def test_weighed_ranking_is_that_of_all_scores_multiplied(said, k):
    with graphstore.open(":memory:", clock=lambda: day("2026-02-01")) as store:
        for number, (often, age, importance) in enumerate(said):
            content = {} if importance is None else {"importance": importance}
            store.add_node(
                "rule", content, id=f"n{number:02}", text="deploys " * often,
                valid_from=day("2026-02-01") - timedelta(days=age),
            )  # fmt: skip
        plain = {hit.node.id: hit for hit in recall(store, "deploys", 99, hops=0)}
        every = recall(store, "deploys", 99, hops=0, decay=Decay())
        weighed = {hit.node.id: plain[hit.node.id].text_score * hit.weight for hit in every}

        assert sorted(weighed, key=lambda id: (-weighed[id], id))[:k] == ranked(
            store, k=k, hops=0, decay=Decay()
        )
