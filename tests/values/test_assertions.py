"""What a description speaks of, and what a sentence says, as tables."""

from __future__ import annotations

import pytest

from graphstore.values.assertions import about, assertions, different, disagreement
from graphstore.values.sentences import making, sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2026-01-30] #auth @2026-01-30 The cache isn't warm.", ["cache", "is", "not", "warm"]),
        ("День 30: «Порт сервиса — 80»", ["порт", "сервиса", "=", "80"]),
        ("Two reviewers look. Then it ships.", ["2", "reviewers", "look"]),
        ("JWT (current)", ["jwt"]),
        ("Is the cache warm?", []),
        ("The cache should be warm", []),
        ("Кэш будет включён", []),
        ("word " * 40, []),
        ("…", []),
    ],
)
def test_the_words_of_a_first_sentence(text, expected):
    assert expected == sentence(text)


@pytest.mark.parametrize(
    ("text", "subject", "value", "renewed"),
    [
        ("Auth is done with sessions", "auth", "sessions", False),
        ("Auth via sessions", "auth", "sessions", False),
        ("Auth was refactored from sessions to JWT last", "auth", "jwt last", True),
        ("We switched auth from sessions to JWT", "auth", "jwt", True),
        ("Using JWT tokens", "", "jwt tokens", False),
        ("Аутентификация реализована через сессии", "аутентификация", "сессии", False),
        ("Аутентификация переделана на JWT токены", "аутентификация", "jwt токены", True),
        ("Парсер теперь переписан с Perl на Go", "парсер", "go", True),
    ],
)
def test_how_a_thing_is_done(text, subject, value, renewed):
    found = making(sentence(text))
    assert (tuple(subject.split()), value, renewed) == (found.subject, found.value, found.renewed)


@pytest.mark.parametrize(
    "text",
    [
        "Auth is implemented",
        "Auth is implemented by the platform team",
        "Auth was rewritten in March",
        "Auth was rewritten in 2026",
        "Auth is not done via sessions",
        "The cat sleeps",
    ],
)
def test_what_says_not_how_a_thing_is_done(text):
    assert making(sentence(text)) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("JWT", "jwt", False),
        ("JWT", "JWT tokens", False),
        ("JWT tokens", "JWT", False),
        ("Friday", "Friday 18:00", True),
        ("warm", "not warm", True),
        ("5", "5.5", True),
        ("sessions", "tokens", True),
        ("", "", False),
    ],
)
def test_which_values_differ(one, other, expected):
    assert expected == different(one, other)
    assert expected == different(other, one)


@pytest.mark.parametrize(
    ("kind", "key", "content", "tags", "of"),
    [
        ("fact", "auth_v2", {"a": 1}, (), "slot auth"),
        ("task", "auth", {"a": 1}, ("t",), "slot auth"),
        ("fact", None, {"subject": "api", "port": 80}, (), "port of api"),
        ("fact", None, {"name": "api", "project": "x", "config": {"tls": True}}, (), "config.tls of api"),
        ("fact", None, {"subject": "api", "predicate": "port", "value": 80}, (), "port of api"),
        ("fact", None, {"name": "Ana", "city": "Ulm"}, (), "city of ana"),
        ("fact", None, {"subject": "postgres", "version": "15"}, (), "version of postgres"),
        ("fact", None, {"says": "Tokens live 5 minutes"}, ("Auth!", "done"), "topic auth"),
        ("fact", None, {"says": "JWT"}, ("auth",), "topic auth"),
        ("fact", None, {"method": "JWT"}, ("auth",), "method of auth"),
        ("fact", None, {"says": "Auth was redone with JWT"}, (), "how auth is done"),
    ],
)
def test_what_a_description_speaks_of(kind, key, content, tags, of):
    assert of == about(assertions(kind, key, content, None, tags)[0].of)


@pytest.mark.parametrize(
    ("kind", "content", "tags"),
    [
        ("fact", {"says": "Tokens live 5 minutes"}, ()),
        ("fact", {"says": "Tokens live 5 minutes"}, ("decision",)),
        ("plan", {"says": "Tokens live 5 minutes"}, ("auth",)),
        ("fact", {"port": 80}, ()),
        ("fact", {"subject": "api", "files": "a.py"}, ()),
        ("fact", {"subject": "api", "port": "unknown"}, ()),
        ("fact", {"subject": "api", "port": None, "hosts": [1, 2]}, ()),
        ("fact", {"subject": "api", "plan": "we move it to the other side of the river soon"}, ()),
        ("person", {"says": "Ana"}, ("team",)),
        ("log", {"user": "ana", "page": "home"}, ()),
        ("fact", {}, ()),
    ],
)
def test_of_what_nothing_is_asserted(kind, content, tags):
    found = assertions(kind, None, content, None, tags)
    assert all("<not>" in each.of for each in found)


def test_an_hour_is_sixty_minutes_and_the_later_has_to_say_that_it_changed():
    def said(text, tags=("t",)):
        return assertions("fact", None, {"says": text}, None, tags)

    assert disagreement(said("Tokens live 60 minutes"), said("Tokens live one hour")) is None
    assert disagreement(said("Tokens live 2 hours"), said("Tokens live 60 minutes")) is not None
    before, now = said("Auth via sessions", ()), said("Auth was redone with JWT", ())
    assert disagreement(now, before) is not None
    assert disagreement(before, now) is None
