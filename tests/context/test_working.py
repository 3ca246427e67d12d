"""What an agent has at hand: scratchpads by user and thread, and scores of domains, each as of any time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import InvalidError, working
from graphstore.context.working import ExpertiseTracker
from tests.conftest import day

pytestmark = pytest.mark.served


def pad(view, *whose):
    found = working.get(view, *whose)
    return None if found is None else found.text


# ---------------------------------------------------------------- scratchpads


def test_a_thread_falls_back_to_its_user(store):
    working.set(store, "ada", None, "likes tea")
    working.set(store, "ada", "t1", "buys a kettle")

    assert "buys a kettle" == pad(store, "ada", "t1")
    assert "likes tea" == pad(store, "ada", "t2")
    assert "likes tea" == pad(store, "ada")
    assert pad(store, "bob", "t1") is None
    assert {"user": "ada"} == working.get(store, "ada", "t2").content
    assert {"user": "ada", "thread": "t1"} == working.get(store, "ada", "t1").content


def test_a_scratchpad_is_there_as_it_was(store, clock):
    working.set(store, "ada", "t1", "first")
    before = clock.now
    clock.move(days=1)
    working.set(store, "ada", "t1", "second")
    clock.move(days=1)
    ended = clock.now
    working.clear(store, "ada", "t1")
    clock.move(days=1)
    working.set(store, "ada", "t1", "third")

    assert "first" == pad(store.knowledge_at(before), "ada", "t1")
    assert "first" == pad(store.as_of(valid=before), "ada", "t1")
    assert "second" == pad(store.as_of(valid=ended - timedelta(hours=1)), "ada", "t1")
    assert pad(store.as_of(valid=ended + timedelta(hours=1)), "ada", "t1") is None
    assert "third" == pad(store, "ada", "t1")
    assert 1 == len(store.nodes("working_memory"))


def test_appending_to_a_thread_begins_with_what_is_seen_there(store):
    working.set(store, "ada", None, "likes tea")
    working.append(store, "ada", "t1", "hates milk")
    working.append(store, "bob", None, "new here")

    assert "likes tea\nhates milk" == pad(store, "ada", "t1")
    assert "likes tea" == pad(store, "ada")
    assert "new here" == pad(store, "bob")


def test_clearing_a_thread_shows_its_user_again(store):
    working.set(store, "ada", None, "likes tea")
    working.set(store, "ada", "t1", "buys a kettle")

    assert working.clear(store, "ada", "t1")
    assert "likes tea" == pad(store, "ada", "t1")
    assert not working.clear(store, "ada", "t1")
    assert not working.clear(store, "nobody")


def test_the_same_again_writes_nothing(store):
    first = working.set(store, "ada", None, "likes tea")
    written = store.stats()["transactions"]

    assert first == working.set(store, "ada", None, "likes tea")
    assert written == store.stats()["transactions"]


def test_names_that_look_alike_are_not_the_same(store):
    working.set(store, "ada/t1", None, "one")
    working.set(store, "ada", "t1", "two")
    working.set(store, "Ada", "t1", "three")

    assert ["one", "two", "three"] == [pad(store, "ada/t1"), pad(store, "ada", "t1"), pad(store, "Ada", "t1")]
    assert 3 == len({node.scope for node in store.nodes("working_memory")})


def test_what_was_erased_stays_so_and_a_new_one_may_be_set(store):
    node = working.set(store, "ada", None, "secret")
    store.erase(node.id, reason="asked to")

    assert pad(store, "ada") is None
    assert "fresh" == working.set(store, "ada", None, "fresh").text
    assert "fresh" == pad(store, "ada")


def test_set_and_clear_in_one_transaction_leave_nothing(store):
    with store.transaction():
        working.set(store, "ada", None, "a")
        working.clear(store, "ada")
    assert pad(store, "ada") is None


@pytest.mark.parametrize("wrong", [("", None, "a"), ("ada", None, " "), ("ada", 3, "a"), (None, None, "a")])
def test_wrong_input_is_refused(store, wrong):
    with pytest.raises(InvalidError):
        working.set(store, *wrong)
    assert 0 == store.stats()["nodes"]


# ---------------------------------------------------------------- expertise


@pytest.fixture
def tracker():
    return ExpertiseTracker()


def test_a_domain_nothing_is_known_of_is_in_the_middle(store, tracker):
    unknown = tracker.score(store, "cooking")

    assert (0.5, 0.0, "steady", 0, 0.0, None) == (
        unknown.score, unknown.trend, unknown.direction, unknown.outcomes, unknown.weight, unknown.latest,
    )  # fmt: skip
    assert [] == tracker.scores(store)


def test_the_score_is_the_formula(store, tracker, clock):
    tracker.record(store, "python", "success")
    now = clock.move(days=30)
    with store.transaction():
        tracker.record(store, "python", "failure", weight=3)
        tracker.record(store, "python", "partial")

    # the first outcome is a half-life old: (2 · 0.5 + 0.5 · 1 + 3 · 0 + 1 · 0.5) / (2 + 0.5 + 3 + 1)
    found = tracker.score(store, "python")
    assert pytest.approx(2.0 / 6.5) == found.score
    assert pytest.approx(4.5) == found.weight
    # a window ago there was the first one alone: (1 + 1) / (2 + 1)
    assert pytest.approx(2.0 / 6.5 - 2 / 3) == found.trend
    assert ("falling", 3, now) == (found.direction, found.outcomes, found.latest)
    assert "python: 0.31, falling (-0.36 in 30 days), 3 outcomes" == str(found)


def test_scores_are_those_of_any_time(store, tracker, clock):
    with store.transaction():
        for _ in range(5):
            tracker.record(store, "python", "success")
    good = clock.now
    clock.move(days=10)
    for _ in range(20):
        tracker.record(store, "python", "failure")

    assert pytest.approx(6 / 7) == tracker.score(store.as_of(valid=good), "python").score
    assert pytest.approx(6 / 7) == tracker.score(store.knowledge_at(good), "python").score
    assert tracker.score(store, "python").score < 0.3


def test_an_outcome_told_late_counts_from_when_it_happened(store, tracker, clock):
    clock.set("2026-03-01")
    tracker.record(store, "python", "success", occurred_at="2026-01-01")

    assert 1 == tracker.score(store.as_of(valid="2026-01-01"), "python").outcomes
    assert 0 == tracker.score(store.as_of(valid="2025-12-31"), "python").outcomes
    assert 0 == tracker.score(store.as_of(valid="2026-01-02", tx="2026-02-01"), "python").outcomes
    assert ["python"] == [one.domain for one in tracker.scores(store.as_of(valid="2026-01-02"))]


def test_what_was_retracted_no_longer_counts(store, tracker):
    wrong = tracker.record(store, "python", "failure").event
    tracker.record(store, "python", "success")
    store.retract(wrong.id, reason="it was another one's")

    assert pytest.approx(2 / 3) == tracker.score(store, "python").score


def test_domains_and_agents_are_apart(store, tracker):
    ExpertiseTracker(agent="ana").record(store, "sql", "success")
    ExpertiseTracker(agent="bob").record(store, "sql", "failure")
    tracker.record(store, "python", "success")

    assert pytest.approx(2 / 3) == ExpertiseTracker(agent="ana").score(store, "sql").score
    assert ["python", "sql"] == [one.domain for one in tracker.scores(store)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outcome": "sucess"}, "Did you mean 'success'"),
        ({"weight": 0}, "out of range"),
        ({"weight": float("nan")}, "out of range"),
        ({"weight": True}, "out of range|no number"),
        ({"domain": " "}, "blank"),
    ],
)
def test_wrong_outcomes_are_refused(store, tracker, change, words):
    with pytest.raises(InvalidError, match=words):
        tracker.record(store, **{"domain": "python", "outcome": "success", **change})
    assert 0 == store.stats()["events"]


def test_scores_lie_between_nothing_and_all(store, tracker, clock):
    with store.transaction():
        for _ in range(200):
            tracker.record(store, "a", "success", weight=100)
            tracker.record(store, "b", "failure", weight=100)

    assert 0.99 < tracker.score(store, "a").score < 1
    assert 0 < tracker.score(store, "b").score < 0.01
    assert day("2026-02-01") == tracker.score(store, "a").latest


def test_a_window_longer_than_time_itself_reaches_to_its_beginning(store):
    working.record_outcome(store, "go", "success")
    for length in (timedelta(days=10**6), timedelta.max):
        found = working.expertise(store, "go", window=length)
        assert found.trend == working.expertise(store, "go", window=timedelta(days=365)).trend
