"""Words in columns, held against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore.core.search.word_columns import FreshWords, WordColumns, together
from tests.core.search.test_search import agree, ids

FEW = 100
pytestmark = pytest.mark.in_process("asks the parts of the store that search")

TERMS = ("a", "ab", "abc", "b", "é", "東京", "err-404", "err-4041")
texts = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), max_size=12)


def postings(layer, term: str) -> dict[int, int]:
    posting = layer.posting(term)
    return {} if posting is None else dict(zip(*(column.tolist() for column in posting), strict=True))


def said(texts: list[list[str]], term: str, first: int = 0) -> dict[int, int]:
    return {ver: text.count(term) for ver, text in enumerate(texts, first) if term in text}


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(texts, max_size=3), gone=st.sets(st.integers(0, 40)))
def test_columns_hold_what_a_dictionary_does(parts, gone):
    columns, whole = WordColumns.none(), []
    for part in parts:
        fresh = FreshWords(len(whole))
        for text in part:
            fresh.add(text)
        for term in TERMS:
            assert said(part, term, len(whole)) == postings(fresh, term)
        columns, whole = fresh.merged(columns), [*whole, *part]
    left = [[] if ver in gone else text for ver, text in enumerate(whole)]
    keeps = [ver not in gone for ver in range(len(whole))]

    for there, plain in (
        (columns, whole),
        (columns.where(np.array(keeps, dtype=bool)), left),
        (columns.where(np.ones(len(whole) // 2, dtype=bool)), whole[: len(whole) // 2]),
    ):
        every = {term for text in plain for term in text}
        assert sorted(map(str.encode, every)) == there.all_names()
        assert [len(text) for text in plain] == there.lengths.tolist()
        for term in TERMS:
            assert said(plain, term) == postings(there, term)
            assert {each for each in every if each.startswith(term)} == set(there.beginning(term))


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
