"""The text of a description: the one that was given, or else the content's own statement."""

from __future__ import annotations

import pytest

from graphstore.values.text import STATEMENT, described, given_text, own_statement, text_of_body


def test_the_first_text_among_the_fields_is_the_statement() -> None:
    content = {name: f"the {name}" for name in reversed(STATEMENT)}
    for name in STATEMENT:
        assert f"the {name}" == own_statement(content)
        del content[name]

    assert None is own_statement(content)


@pytest.mark.parametrize("nothing", ["", "  \n", None, 7, ["words"], {"text": "words"}, True])
def test_what_says_nothing_is_passed_over(nothing: object) -> None:
    assert "Ana" == own_statement({"says": nothing, "name": "Ana"})
    assert None is own_statement({"says": nothing})


def test_a_text_that_was_given_stays_whatever_it_says() -> None:
    content = {"says": "one"}

    assert ("one", "other", "") == tuple(
        text_of_body({"content": content, **given}) for given in ({}, {"text": "other"}, {"text": ""})
    )
    assert (None, None, "other") == tuple(given_text(content, text) for text in (None, "one", "other"))
    assert None is text_of_body({"content": {"port": 80}})


def test_a_description_is_its_text_its_statement_or_its_fields() -> None:
    assert "other" == described({"says": "one", "port": 80}, "other")
    assert "one" == described({"says": "one", "port": 80}, None)
    assert "port: 80, host: x" == described({"port": 80, "host": "x"}, None)
