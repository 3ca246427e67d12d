"""Strategies decide between statements and write nothing: what won, what lost, what is left, and why."""

from __future__ import annotations

import doctest
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore import InvalidError
from graphstore.topics import strategies
from graphstore.topics.strategies import (
    STRATEGIES,
    Decision,
    decide,
    explicit_override,
    latest_wins,
    strategy_for,
    version_of,
    versioned_topics,
)
from tests.conftest import day


class Spec(NamedTuple):
    id: str
    valid_from: object = day("2026-01-01")
    recorded_at: object = day("2026-01-01")
    key: str | None = None
    kind: str = "fact"


class Joined(NamedTuple):
    source: str
    kind: str
    target: str


def outcome(decision):
    return decision.won, decision.lost, decision.undecided


# ---------------------------------------------------------------- latest wins


def test_the_latest_in_the_world_wins_and_what_is_told_late_of_earlier_does_not():
    jwt = Spec("jwt", day("2026-01-30"), day("2026-01-30"))
    late = Spec("late", day("2026-01-10"), day("2026-03-01"))

    assert ("jwt", ("late",), ()) == outcome(latest_wins([late, jwt]))


def test_of_one_instant_what_was_told_last_wins_then_the_greater_id():
    early, last = Spec("z", recorded_at=day("2026-01-01")), Spec("a", recorded_at=day("2026-01-02"))
    assert ("a", ("z",), ()) == outcome(latest_wins([early, last]))
    assert "recorded last" in latest_wins([early, last]).why
    assert ("b", ("a",), ()) == outcome(latest_wins([Spec("a"), Spec("b")]))


# ---------------------------------------------------------------- explicit override


def test_what_says_that_it_replaces_wins():
    links = [
        Joined("16", "supersedes", "2"),
        Joined("31", "supersedes", "2"),
        Joined("31", "supersedes", "16"),
    ]
    rest, hybrid, graphql = Spec("2"), Spec("16", day("2026-03-01")), Spec("31")

    assert ("31", ("2", "16"), ()) == outcome(explicit_override([rest, hybrid, graphql], links))


def test_nothing_is_decided_where_nobody_says_so():
    assert (None, (), ("a", "b")) == outcome(explicit_override([Spec("a"), Spec("b")], []))
    assert (None, ("a",), ("b", "c")) == outcome(
        explicit_override([Spec("a"), Spec("b"), Spec("c")], [Joined("b", "supersedes", "a")])
    )


def test_other_links_and_links_to_other_things_override_nothing():
    links = [Joined("a", "supports", "b"), Joined("x", "supersedes", "b")]
    assert (None, (), ("a", "b")) == outcome(explicit_override([Spec("a"), Spec("b")], links))


# ---------------------------------------------------------------- versioned topics


def test_the_highest_version_wins_whatever_its_date():
    one, two = Spec("x", day("2026-02-01"), key="auth_v1"), Spec("y", day("2026-01-01"), key="auth_v10")

    assert ("y", ("x",), ()) == outcome(versioned_topics([one, two]))


def test_what_has_no_number_and_what_shares_the_highest_is_left():
    one, two, bare = Spec("1", key="auth_v1"), Spec("2", key="auth_v2"), Spec("b", key="auth")

    assert ("2", ("1",), ("b",)) == outcome(versioned_topics([one, two, bare]))
    assert (None, ("1",), ("2", "3")) == outcome(versioned_topics([one, two, Spec("3", key="auth_v2")]))
    assert (None, (), ("b",)) == outcome(versioned_topics([bare]))


def test_versions_are_read_from_keys():
    assert [("auth", 2), ("auth", None), (None, None), ("api_v2", 1)] == [
        version_of(key) for key in ("auth_v2", "auth", None, "api_v2_v1")
    ]


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", STRATEGIES)
def test_of_nothing_nothing_wins(name):
    assert (None, (), ()) == outcome(STRATEGIES[name]([], []))


SOME = st.lists(
    st.builds(
        Spec,
        st.sampled_from("abcdef"),
        st.sampled_from([day("2026-01-01"), day("2026-02-01")]),
        st.sampled_from([day("2026-01-01"), day("2026-02-01")]),
        st.sampled_from([None, "auth", "auth_v1", "auth_v2"]),
    ),
    unique_by=lambda each: each.id,
)
LINKS = st.lists(
    st.builds(
        Joined,
        st.sampled_from("abcdefg"),
        st.sampled_from(["supersedes", "supports"]),
        st.sampled_from("abcdefg"),
    )
)


@pytest.mark.parametrize("name", STRATEGIES)
@given(statements=SOME, links=LINKS)
def test_every_statement_has_one_fate_whatever_the_order(name, statements, links):
    decision = STRATEGIES[name](statements, links)
    fates = [*([decision.won] if decision.won else []), *decision.lost, *decision.undecided]

    assert sorted(each.id for each in statements) == sorted(fates)
    turned = STRATEGIES[name](statements[::-1], links[::-1])
    assert (decision.won, set(decision.lost), set(decision.undecided)) == (
        turned.won, set(turned.lost), set(turned.undecided),
    )  # fmt: skip


# ---------------------------------------------------------------- which one


def test_a_mapping_chooses_by_topic_then_by_kind():
    choice = {"auth": "versioned_topics", "decision": "explicit_override"}

    assert "versioned_topics" == strategy_for(choice, "auth", {"decision"})[0]
    assert "explicit_override" == strategy_for(choice, "api", {"decision"})[0]
    assert "latest_wins" == strategy_for(choice, "api", {"decision", "fact"})[0]
    assert "explicit_override" == strategy_for({"*": explicit_override}, "api")[0]


def test_an_unknown_strategy_is_refused_with_those_there_are():
    with pytest.raises(InvalidError, match="Did you mean 'latest_wins'"):
        strategy_for("latest_win", "auth")
    with pytest.raises(InvalidError, match="unknown strategy"):
        strategy_for({"other": "nonsense"}, "auth")


def test_a_strategy_of_ones_own_decides_on_what_it_was_given():
    mine = lambda statements, links: Decision(strategy="first", won=statements[0].id, why="it came first")  # noqa: E731
    assert "a" == decide(mine, "auth", [Spec("a"), Spec("b")]).won
    with pytest.raises(InvalidError, match="none of the statements"):
        decide(lambda statements, links: Decision(strategy="x", won="z", why=""), "auth", [Spec("a")])
    with pytest.raises(InvalidError, match="gave None"):
        decide(lambda statements, links: None, "auth", [Spec("a")])


def test_the_examples_in_the_module_are_true():
    assert 0 == doctest.testmod(strategies).failed
