"""How much of a question is said, with which words, and where in the text."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from graphstore.memory.recall import mentions, recall
from graphstore.values.words import Analyzer
from graphstore.view.coverage import SNIPPET, coverage_of_text, said

pytestmark = pytest.mark.served


def test_the_share_of_the_weight_that_a_text_says() -> None:
    analyzer = Analyzer()
    terms = analyzer.ask("where do logins store tokens").terms
    weights = [2.0 if term.word == "logins" else 1.0 for term in terms]
    assert coverage_of_text(analyzer, terms, weights, "Login by password") == 2 / sum(weights)
    assert coverage_of_text(analyzer, terms, weights, "tea") == 0
    assert coverage_of_text(analyzer, (), (), "tea") == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Logins are PASETO v4 tokens; a LOGIN ends after a day", ("Logins", "LOGIN")),
        ("tea", ()),
        ("", ()),
    ],
)
def test_the_words_are_given_as_they_stand_in_the_text(text: str, words: tuple[str, ...]) -> None:
    analyzer = Analyzer()
    assert said(analyzer, analyzer.ask("login").terms, text).words == words


@pytest.mark.parametrize("before", [0, 5, 500])
@pytest.mark.parametrize("after", [0, 5, 500])
def test_a_snippet_is_the_part_of_a_text_around_its_words(before: int, after: int) -> None:
    analyzer = Analyzer()
    text = f"{'tea ' * before}the login of Ana{' milk' * after}"
    snippet = said(analyzer, analyzer.ask("login").terms, text).snippet
    assert "login" in snippet and len(snippet) <= SNIPPET + 2
    assert snippet.startswith("…") == (before == 500) and snippet.endswith("…") == (after == 500)


def test_a_hit_says_how_surely_it_answers(store: GraphStore) -> None:
    store.add_node("fact", {"says": "Logins are PASETO v4 tokens"}, id="login", valid_from="2026-01-01")
    store.add_node("fact", {"says": "Deploys of checkout need two reviewers"}, id="deploy")
    (hit,) = recall(store, "how does the login work?")
    assert (hit.node.id, hit.matched, hit.standing) == ("login", ("Logins",), "stands")
    assert hit.snippet == "Logins are PASETO v4 tokens"
    assert (hit.since, hit.until) == (store.node("login").valid_from, None)
    (sure,) = recall(store, "login tokens")
    assert (sure.strength, sure.coverage) == ("strong", 1.0)
    assert not recall(store, "who is the president of France").hits


def test_what_is_near_a_question_is_weak(store: GraphStore) -> None:
    for number in range(30):
        store.add_node("fact", {"says": f"note {number} about tea"}, id=f"n{number}")
    store.add_node("fact", {"says": "the weather station is on the roof"}, id="station")
    (first, *_) = recall(store, "which weather satellite passes Iceland").hits
    assert first.strength == "weak" and first.coverage < 0.5


def test_what_does_not_stand_is_counted_where_nothing_that_stands_answers(store: GraphStore) -> None:
    store.add_node("fact", {"says": "tokens live for a day"}, id="old", valid_from="2025-01-01")
    store.end("old", at="2025-06-01")
    store.add_node("fact", {"says": "tokens are opaque"}, id="wrong", valid_from="2025-01-01")
    store.retract("wrong", reason="a slip")
    found = recall(store, "tokens")
    assert (found.hits, found.elsewhere) == ((), {"ended": 1, "retracted": 1})
    assert "1 ended" in found.note and "1 retracted" in found.note
    assert {"old", "wrong"} == {hit.node.id for hit in mentions(store, "tokens")}
    store.add_node("fact", {"says": "tokens are PASETO"}, id="new")
    assert recall(store, "tokens").elsewhere == {}


def test_what_says_too_little_is_not_shown_and_counted(store: GraphStore) -> None:
    for number in range(40):
        store.add_node("fact", {"says": f"the service number {number}"}, id=f"n{number}")
    found = recall(store, "which service uses quantum encryption satellites beyond Neptune", 50)
    assert (len(found.hits), found.left_out) == (0, 40)
