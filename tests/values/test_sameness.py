"""What a statement is, which two say the same, and how much two share: as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.values.sameness import jaccard, overlap, same, statement, tokens, words


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        ({"a": 1}, "deploys on Friday", "deploys on Friday"),
        ({"a": 1}, "  ", "1"),
        ({"b": "two", "a": "one"}, None, "one\ntwo"),
        ({"a": {"z": [1, 2.0, 2.5], "b": None}, "c": True}, None, "null\n1\n2\n2.5\ntrue"),
        ({}, None, ""),
    ],
)
def test_a_statement_is_the_text_or_the_values(content, text, expected):
    assert expected == statement(content, text)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Deploys, on FRIDAY!", ["deploys", "on", "friday"]),
        ("Don’t - the users' e-mail", ["dont", "the", "users", "e", "mail"]),
        ("costs 1,000.50 or -5, at 12:30; 99.9% of v2.1.", ["costs", "1000.50", "or", "-5", "at", "12:30", "99.9%", "of", "v2.1"]),
        ("2026-01-30", ["2026", "01", "30"]),
        ("x > 5 €", ["x", ">", "5", "€"]),
        ("Straße ﬁn Ａ１", ["strasse", "fin", "a1"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("我喜欢红", ["我", "喜", "欢", "红"]),
        ("deploy_day/src", ["deploy", "day", "src"]),
        ("…!?", []),
    ],
)  # fmt: skip
def test_words_are_in_lower_case_without_punctuation(said, expected):
    assert expected == words(said)


LONG = "the payment service of the shop keeps its sessions in a cache on the first host of the cluster"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Deploys on Friday", "deploys on friday."),
        ("we DON'T deploy", "we dont deploy"),
        ("limit is 1,000", "Limit is 1000"),
        ("CAFÉ", "cafe\u0301"),
        ("", "  "),
        ("!?", "!?"),
        (LONG, f"{LONG} indeed"),
        (f"{LONG} is not 5", f"{LONG} is not  5!"),
    ],
)
def test_these_say_the_same(a, b):
    assert same(a, b)
    assert same(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("deploys on Friday", "deploys on Tuesday"),
        (f"{LONG} 5", f"{LONG} 6"),
        (f"{LONG} 1.5", f"{LONG} 15"),
        (f"{LONG} -5", f"{LONG} 5"),
        (f"{LONG} 5%", f"{LONG} 5"),
        (f"{LONG} v1", f"{LONG} v2"),
        (f"{LONG} from 5 to 10", f"{LONG} from 10 to 5"),
        (f"{LONG} > 5", f"{LONG} < 5"),
        (f"{LONG} for $5", f"{LONG} for €5"),
        (LONG, LONG.replace("keeps", "never keeps")),
        (LONG.replace("keeps", "does keep"), LONG.replace("keeps", "doesn't keep")),
        (f"{LONG}\ntrue", f"{LONG}\nfalse"),
        (f"{LONG} сервис хранит", f"{LONG} сервис не хранит"),
        ("👍", "👎"),
        ("!", "?"),
        ("", "something"),
    ],
)
def test_these_do_not_say_the_same(a, b):
    assert not same(a, b)
    assert not same(b, a)


def test_sameness_begins_at_an_overlap_of_17_in_20():
    shared = [f"{chr(97 + n)}x" for n in range(17)]

    assert same(" ".join([*shared, "one", "two"]), " ".join([*shared, "three"]))  # 17 of 20
    assert not same(" ".join([*shared, "one", "two"]), " ".join([*shared, "three", "four"]))  # 17 of 21


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("a b", "b a", 1.0), ("a b", "c", 0.0), ("a b c", "b c d", 0.5), ("", "", 0.0), ("", "a", 0.0), ("a a a", "a", 1.0)],
)  # fmt: skip
def test_overlap_is_the_shared_part_of_all_words(a, b, expected):
    assert expected == overlap(a, b)
    assert expected == jaccard(tokens(b), tokens(a))


@given(st.text(), st.text())
def test_any_text_is_the_same_as_itself_and_sameness_goes_both_ways(a, b):
    assert same(a, a)
    assert same(a, b) == same(b, a)
    assert 0.0 <= overlap(a, b) <= 1.0
