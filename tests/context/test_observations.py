"""Observations as they are written: dates, priorities, details; and what is written otherwise, which is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.context.observations import parse
from graphstore.values.period import instant
from tests.conftest import day

TEXT = """\
## 2026-01-30
- [HIGH] the deploy of Tuesday broke the login
  - sessions were lost
    - of forty users
- [LOW] lunch is at noon

## 2026-02-01
- [MEDIUM] Ada prefers short answers
"""


def told(text):
    return [(one.priority, one.text, one.date) for one in parse(text).observations]


def test_dates_and_priorities_are_read():
    thirty, first = instant(day("2026-01-30")), instant(day("2026-02-01"))

    assert [
        ("HIGH", "the deploy of Tuesday broke the login", thirty),
        ("LOW", "lunch is at noon", thirty),
        ("MEDIUM", "Ada prefers short answers", first),
    ] == told(TEXT)
    assert () == parse(TEXT).warnings


def test_details_stay_below_their_item():
    assert ("  - sessions were lost", "    - of forty users") == parse(TEXT).observations[0].details
    assert "the deploy of Tuesday broke the login\n  - sessions were lost\n    - of forty users" == (
        parse(TEXT).observations[0].whole
    )


@pytest.mark.parametrize("form", ["- [high] a", "* [High] a", "- [HIGH]: a", "+ [HIGH]  a  "])
def test_items_are_written_in_several_ways(form):
    assert [("HIGH", "a", None)] == told(form)


def test_a_fence_around_it_all_is_no_line():
    assert parse(TEXT).observations == parse(f"```markdown\n{TEXT}```\n").observations
    assert () == parse(f"```markdown\n{TEXT}```\n").warnings


def test_marks_at_the_head_of_an_item_are_read():
    (one,) = parse(
        "## 2026-01-30\n- [HIGH] [SUPERSEDES abc123, def456] #auth @2026-01-28 tokens now"
    ).observations

    assert ("tokens now", ("auth",), ("abc123", "def456")) == (one.text, one.tags, one.supersedes)
    assert instant(day("2026-01-28")) == one.date


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        ("nothing of note", "nothing of note", "no item"),
        ("- no priority here", "no priority here", "no priority"),
        ("- [URGENT] act now", "[URGENT] act now", "'URGENT' is no priority. Valid: HIGH, MEDIUM, LOW"),
        ("- [HIGH]", "[HIGH]", "a priority of nothing"),
        ("## 2026-13-45", "## 2026-13-45", "2026-13-45"),
        ("# Observations", "# Observations", "no heading with a date"),
        ("- [HIGH] [2026-13-45] when", "[2026-13-45] when", "2026-13-45"),
    ],
)
def test_what_is_written_otherwise_is_kept_as_text_and_said(line, text, words):
    parsed = parse(f"## 2026-01-30\n- [LOW] a\n{line}\n- [LOW] b")

    assert ["a", text, "b"] == [one.text for one in parsed.observations]
    assert [3] == [warning.line for warning in parsed.warnings]
    assert words in str(parsed.warnings[0])


def test_under_a_date_that_is_none_nothing_has_the_date_before():
    assert [None] == [date for *_, date in told("## 2026-01-30\n## 2026-13-45\n- [LOW] b")][1:]


@given(st.text(alphabet=st.sampled_from("#-*[]HIGH \n\tab`2026-01:"), max_size=80))
def test_no_word_is_lost(text):
    parsed = parse(text)
    kept = "\n".join(one.whole for one in parsed.observations)

    for letter in "ab":
        fences = sum(line.count(letter) for line in text.splitlines() if line.strip().startswith("```"))
        assert text.count(letter) - fences <= kept.count(letter)


@pytest.mark.parametrize(
    "line",
    [
        "- [HIGH] [SUPERSEDES abc123, def456] tokens now",
        "- [HIGH] tokens now [SUPERSEDES abc123, def456]",
        "- [SUPERSEDES abc123, def456] [HIGH] tokens now",
        "- [HIGH] tokens [supersedes abc123] now [SUPERSEDES: def456]",
    ],
)
def test_what_an_item_replaces_may_stand_anywhere_in_it(line):
    (one,) = parse(line).observations

    assert ("tokens now", "HIGH", ("abc123", "def456")) == (one.text, one.priority, one.supersedes)
