"""What a text says as terms, and what a question asks for."""

from __future__ import annotations

import pytest

from graphstore.errors import InvalidError
from graphstore.values.words import Analyzer, ParsedQuestion, Term, fold, is_name

ENGLISH = Analyzer()
THREE = Analyzer(("english", "german", "russian"))


def words_of(question: ParsedQuestion) -> list[str]:
    return [term.word for term in question.terms]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("login", "Logins"),
        ("deploying", "deployed"),
        ("went", "go"),
        ("children", "child"),
        ("Café", "cafe"),
        ("résumés", "resume"),
        ("John's", "John"),
        ("don’t", "dont"),
        ("ﬁle", "file"),
        ("1,000", "1000"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert ENGLISH.terms(one) == ENGLISH.terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Häuser", "Haus"), ("Mueller", "Müller"), ("логины", "логина"), ("новый", "новая"), ("ёлка", "елка")],
)
def test_words_of_each_language_of_the_store_meet(one: str, other: str) -> None:
    assert set(THREE.terms(one)) & set(THREE.terms(other))


def test_terms_of_a_text_stay_in_order_and_repeat() -> None:
    assert ENGLISH.terms("Deploys follow deploys") == ["deploy", "follow", "deploy"]


@pytest.mark.parametrize(
    ("text", "whole", "part"),
    [
        ("ERR-404 again", "err-404", "404"),
        ("it is v1.2.3.", "v1.2.3", "1"),
        ("see src/auth.py", "src/auth.py", "auth"),
        ("Logins are PASETO v4 tokens", "paseto v4", "paseto"),
        ("getUserName fails", "getusername", "user"),
        ("deploy_day", "deploy_day", "day"),
        ("OAuth2", "oauth2", "oauth"),
        ("on 2024-03-05", "2024-03-05", "2024"),
        ("mail anna@example.com!", "anna@example.com", "anna"),
    ],
)
def test_a_name_is_a_term_whole_and_in_parts(text: str, whole: str, part: str) -> None:
    assert {whole, part} <= set(ENGLISH.terms(text))


def test_scripts_without_spaces_are_taken_by_pairs_and_each_character_begins_a_term() -> None:
    terms = ENGLISH.terms("東京都")

    assert terms == ["東京", "京都", "都"]
    assert words_of(ENGLISH.ask("東京都")) == ["東京", "京都"]
    assert ENGLISH.ask("都").terms == (Term("都", ("都",), prefix=True),)


def test_the_words_every_question_has_are_left_out() -> None:
    assert words_of(ENGLISH.ask("What is the deploy day?")) == ["deploy", "day"]
    assert words_of(THREE.ask("Wann wurden die Häuser gebaut?")) == ["Häuser", "gebaut"]
    assert words_of(THREE.ask("Когда мы развернули сервис?")) == ["развернули", "сервис"]


def test_they_are_asked_for_when_nothing_else_is_left() -> None:
    assert words_of(ENGLISH.ask("who is it")) == ["who", "is", "it"]


def test_a_name_that_looks_like_such_a_word_is_asked_for() -> None:
    assert words_of(ENGLISH.ask("Who sets the IT budget in May?")) == ["sets", "IT", "budget", "May"]


def test_what_a_question_names_weighs_more_than_its_parts() -> None:
    whole, *parts = ENGLISH.ask("what is ERR-404?").terms

    assert whole == Term("ERR-404", ("err-404",), 1, prefix=True)
    assert [part.word for part in parts] == ["ERR", "404"]
    assert all(part.weight < whole.weight for part in parts)
    assert ENGLISH.ask("what is ERR-404?").names == ("ERR-404",)


def test_phrases_exclusions_and_fields_are_read() -> None:
    asked = ENGLISH.ask('login -legacy "two reviewers" kind:decision tag:"big deal"')

    assert asked.phrases == ("two reviewers",)
    assert [term.word for term in asked.without] == ["legacy"]
    assert asked.fields == (("kind", "decision"), ("tag", "big deal"))
    assert words_of(asked) == ["login", "two", "reviewers"]


def test_a_minus_that_excludes_nothing_is_none() -> None:
    assert ENGLISH.ask("two-factor --force -5 a - b").without == ()


def test_a_colon_that_names_no_field_is_part_of_a_name() -> None:
    assert ENGLISH.ask("http://x.y step:3").fields == ()


def test_empty_asks_for_nothing() -> None:
    assert ENGLISH.ask(" ?! ").terms == ()
    assert ENGLISH.terms("") == []


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidError, match="unknown language 'englisch'"):
        Analyzer(("englisch",))


def test_folding_keeps_letters_that_are_others() -> None:
    assert fold("Ångström Straße Łódź") == "angstrom strasse lodz"
    assert fold("Мой Ёж") == "мой еж"


def test_a_plain_word_or_number_is_no_name() -> None:
    assert not any(map(is_name, ("login", "two-factor", "2024", "1,000", "東京", "O'Brien")))
