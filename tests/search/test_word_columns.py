"""Words that are not sealed yet, held against a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore.search.word_columns import FreshWords, together
from tests.search.test_search import agree, ids

FEW = 100
pytestmark = pytest.mark.in_process("asks the parts of the store that search")

TERMS = ("a", "ab", "abc", "b", "é", "東京", "err-404", "err-4041")
texts = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), max_size=12)


def postings(layer, term: str) -> dict[int, int]:
    posting = layer.posting(term)
    return {} if posting is None else dict(zip(*(column.tolist() for column in posting), strict=True))


def said(texts: list[list[str]], term: str, first: int) -> dict[int, int]:
    return {ver: text.count(term) for ver, text in enumerate(texts, first) if term in text}


@settings(max_examples=60, deadline=None)
@given(texts=texts, first=st.integers(0, 9))
def test_fresh_words_hold_what_a_dictionary_does(texts, first):
    fresh = FreshWords(first)
    for text in texts:
        fresh.add(text)

    every = {term for text in texts for term in text}
    for term in TERMS:
        assert said(texts, term, first) == postings(fresh, term)
        assert {each for each in every if each.startswith(term)} == set(fresh.beginning(term))


def test_forms_of_a_word_count_as_the_one_said_most_often():
    fresh = FreshWords(0)
    fresh.add(["a", "b", "b"])
    fresh.add(["b"])

    both = together([fresh.posting("a"), fresh.posting("b")])

    assert ({0: 2, 1: 1}, None) == (
        dict(zip(both.versions.tolist(), both.times.tolist(), strict=True)),
        together([]),
    )


# ---------------------------------------------------------------- of a store


@pytest.fixture
def path(tmp_path, clock):
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=clock) as store:
        store.bulk_load(
            nodes=[{"id": f"n{number}", "kind": "fact"} for number in range(FEW)],
            versions=[
                {"node_id": f"n{number}", "content": {"says": f"login {number}"}} for number in range(FEW)
            ],
        )
        store.add_node("fact", {"says": "unicorn login"}, id="secret")
    return path


def test_branch_begins_with_the_words_of_the_trunk(path, clock):
    with graphstore.open(path, clock=clock) as store:
        branch = store.branch("idea")
        store.add_node("fact", {"says": "pegasus"}, id="here")
        branch.add_node("fact", {"says": "dragon"}, id="there")

        assert (set(), {"there"}) == (ids(branch, "pegasus"), ids(branch, "dragon"))
        assert ({"here"}, set()) == (ids(store, "pegasus"), ids(store, "dragon"))
        agree(branch)
