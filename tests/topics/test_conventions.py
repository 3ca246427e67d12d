"""What is written into plain messages: dates, tags, roles and supersessions, and what only looks like them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore import InvalidError
from graphstore.topics import conventions
from graphstore.topics.conventions import head_of, note_of, role_of
from graphstore.values.period import instant
from tests.conftest import day

JANUARY_30 = instant("2026-01-30")


# ---------------------------------------------------------------- the three conventions


def test_a_prefix_dates_a_message():
    note = note_of({"role": "assistant", "content": "[2026-01-30] Researching auth..."})

    assert ("Researching auth...", JANUARY_30) == (note.text, note.at)
    assert {"text": "Researching auth...", "role": "assistant"} == note.content


def test_a_role_dates_a_message():
    note = note_of({"role": "Agent_Architect@2026-01-30", "content": "JWT architecture..."})

    assert ("Agent_Architect", JANUARY_30) == (note.content["role"], note.at)


def test_tags_and_their_date_stand_before_the_words():
    note = note_of({"role": "assistant", "content": "#auth #decision @2026-01-30 Using JWT tokens"})

    assert (("auth", "decision"), JANUARY_30, "Using JWT tokens") == (note.tags, note.at, note.text)


def test_a_message_says_what_it_supersedes():
    note = note_of({"role": "assistant", "content": "[SUPERSEDES node_5] Auth changed from sessions to JWT"})

    assert (("node_5",), "Auth changed from sessions to JWT") == (note.supersedes, note.text)


def test_naming_an_obsolete_node_in_the_words_supersedes_nothing():
    assert () == note_of({"role": "user", "content": "Change recorded, node_5 marked obsolete"}).supersedes


@pytest.mark.parametrize(
    "text",
    [
        "[SUPERSEDES node_5] [2026-01-30] #auth words",
        "#auth [2026-01-30][supersedes: node_5] words",
        "[2026-01-30]: #auth, [Supersedes node_5]\nwords",
        "  [2026-01-30] [SUPERSEDES node_5 , node_5]#auth words",
    ],
)
def test_marks_stand_in_any_order(text):
    head = head_of(text)

    assert (("auth",), ("node_5",), JANUARY_30, "words") == (
        head.tags,
        head.supersedes,
        head.prefixed,
        head.text,
    )


def test_several_are_superseded_with_commas_or_in_several_brackets():
    assert ("node_2", "node_16", "Story 1.1") == head_of(
        "[SUPERSEDES node_2, node_16][SUPERSEDES Story 1.1] GraphQL"
    ).supersedes


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("[2026-01-30T12:00:00Z] words", "2026-01-30T12:00:00Z"),
        ("[2026-01-30 12:00+02:00] words", "2026-01-30T10:00:00Z"),
        ("[ 2026-01-30 ] words", "2026-01-30"),
    ],
)
def test_a_prefix_may_be_an_instant(text, at):
    head = head_of(text)

    assert (instant(at), "words") == (head.prefixed, head.text)


def test_tags_may_have_an_instant_beside_them():
    assert instant("2026-01-30T12:00:00Z") == head_of("#auth @2026-01-30T12:00:00Z words").dated


# ---------------------------------------------------------------- what is none


@pytest.mark.parametrize(
    "text",
    [
        "# Title\nwords",
        "## auth",
        "##auth",
        "#12 is fixed",
        "#fff on #c0ffee",
        "#FFFFFF80 is white",
        "#include <stdio.h>",
        "#!/bin/sh",
        "#",
        "see https://example.org/page#auth and `a #b`",
        "fixed in #12, as #auth says",
        "C# code",
        "user@2026.com wrote",
        "@ana 2026-01-30",
        "@2026-01-30.com",
        "[x] done",
        "[2026] words",
        "[2026-01-30](https://example.org) words",
        "[2026-01-30..2026-02-01] words",
        "[2026-01-30 release notes] words",
        "[supersedesnode_5] words",
        "words [2026-01-30] and [SUPERSEDES node_5]",
        "```\n[2026-01-30]\n```",
        "    indented",
        "",
    ],
)
def test_what_only_looks_like_a_mark_is_text(text):
    head = head_of(text)

    assert (text, (), (), None, None) == (head.text, head.tags, head.supersedes, head.dated, head.prefixed)


def test_the_head_ends_with_the_first_word_that_is_no_mark():
    assert (("auth",), "#12 #decision words") == (
        head_of("#auth #12 #decision words").tags,
        head_of("#auth #12 #decision words").text,
    )


def test_tags_are_of_any_language_and_may_have_inner_signs():
    assert ("авторизация", "node.js", "team/api", "due-date") == head_of(
        "#авторизация #node.js #team/api #due-date words"
    ).tags


@pytest.mark.parametrize("role", ["user@2026.com", "user@example.org", "@ana", "a@2026-01-30b", "assistant"])
def test_what_only_looks_like_a_dated_role_is_a_role(role):
    assert (role, None) == role_of(role)


@given(st.text(alphabet="#@[] 2026-013auth\n,SUPERSEDES:_TZ", max_size=40))
def test_any_text_is_read_or_refused_as_invalid(text):
    try:
        head = head_of(text)
    except InvalidError:
        return
    assert text.endswith(head.text)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[2026-13-45] words", "2026-13-45"),
        ("#auth @2026-13-45 words", "2026-13-45"),
        ("[2026-01-30 12:00] words", "has no time zone. Write '2026-01-30 12:00Z'"),
        ("[2026-01-30][2026-01-31] words", "second date of its kind"),
        ("[SUPERSEDES] words", "names nothing"),
        ("[SUPERSEDES , ] words", "names nothing"),
    ],
)
def test_a_mark_that_cannot_be_meant_is_refused(text, words):
    with pytest.raises(InvalidError, match=words.replace("[", r"\[")):
        head_of(text)


def test_a_role_with_a_date_that_is_none_is_refused():
    with pytest.raises(InvalidError, match="role 'System@2026-13-45'"):
        role_of("System@2026-13-45")


@pytest.mark.parametrize(
    "message",
    ["words", 5, None, {"role": "user"}, {"content": 5}, {"content": {"text": "a"}}, ("a", "b", "c")],
)
def test_what_is_no_message_is_refused(message):
    with pytest.raises(InvalidError, match="Give"):
        note_of(message)


def test_a_message_says_its_words_once():
    with pytest.raises(InvalidError, match="both content and text"):
        note_of({"content": "a", "text": "b"})


# ---------------------------------------------------------------- which date counts


@pytest.mark.parametrize(
    ("role", "text", "at"),
    [
        ("user@2026-01-01", "[2026-01-02] #auth @2026-01-03 words", "2026-01-03"),
        ("user@2026-01-01", "[2026-01-02] #auth words", "2026-01-02"),
        ("user@2026-01-01", "#auth words", "2026-01-01"),
        ("user", "words", "2026-01-09"),
    ],
)
def test_the_date_nearest_to_the_words_counts(role, text, at):
    assert instant(at) == note_of({"role": role, "content": text, "timestamp": "2026-01-09"}).at


def test_a_date_that_gives_way_is_told():
    (remark,) = note_of(("user@2026-01-01", "[2026-01-02] words")).remarks
    assert "the date of its role, 2026-01-01, gives way to that of its prefix, 2026-01-02." == remark
    assert () == note_of(("user@2026-01-02", "[2026-01-02] words")).remarks


def test_a_supersession_behind_the_head_is_told():
    (remark,) = note_of(("user", "Auth changed [SUPERSEDES node_5]")).remarks
    assert remark.startswith("'[SUPERSEDES node_5]' does not stand at the head")


# ---------------------------------------------------------------- messages


def test_parts_of_a_message_are_joined_and_those_without_words_kept():
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    note = note_of(
        {"role": "user", "content": [{"type": "text", "text": "[2026-01-30] look"}, picture, "again"]}
    )

    assert ("look\nagain", JANUARY_30) == (note.text, note.at)
    assert [picture] == note.content["parts"]


def test_a_message_that_only_calls_a_tool_has_no_words():
    note = note_of({"role": "assistant", "content": None, "tool_calls": [{"name": "search"}]})

    assert {"text": "", "role": "assistant", "tool_calls": [{"name": "search"}]} == note.content


def test_a_message_may_name_its_session_and_keeps_what_else_it_has():
    note = note_of({"role": "user", "content": "words", "session_id": "s5", "sprint": 3}, "s1")

    assert {"text": "words", "role": "user", "session": "s5", "sprint": 3} == note.content
    assert "s1" == note_of(("user", "words"), "s1").content["session"]


def test_what_a_message_says_of_itself_goes_with_what_its_words_say():
    note = note_of(
        {"role": "user", "content": "[SUPERSEDES a] #auth words", "id": "n", "kind": "task", "key": "Auth",
         "tags": ["auth", "login"], "supersedes": ["b"], "timestamp": day("2026-01-30")}
    )  # fmt: skip

    assert ("n", "task", "Auth", ("auth", "login"), ("a", "b"), JANUARY_30) == (
        note.id, note.kind, note.key, note.tags, note.supersedes, note.at,
    )  # fmt: skip


def test_the_examples_in_the_module_are_true():
    assert 0 == doctest.testmod(conventions).failed
