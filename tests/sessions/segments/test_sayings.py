"""What a text of a session says of the work: tables of texts as people and agents write them."""

from __future__ import annotations

import pytest

from graphstore.sessions.segments.sayings import TITLE_MOST, commit_messages, is_trivial, reported, subject

TRIVIAL = [
    "ok",
    "OK, continue.",
    "Let's keep going!",
    "yes please",
    "Let's continue! What's the next step?",
    "Warmup",
    "go ahead :)",
    "<task-notification>done</task-notification>",
    "Base directory for this skill: /x/y\n\n# A skill",
    "2026-01-01T10:00:00 INFO start\n2026-01-01T10:00:01 WARN slow\n2026-01-01T10:00:02 ERROR gone\n2026-01-01T10:00:03 INFO end",
    'Traceback (most recent call last):\n  File "a.py", line 1\n  File "b.py", line 2\nValueError: no',
    "",
]
TELLING = [
    "Fix the loom",
    "ok, but weave it in blue",
    "continue with the second card of the loom",
    "It fails with\nValueError: no\nwhen I start it. Please look at the parser first.",
    "no, use tabs",
]


@pytest.mark.parametrize("request_", TRIVIAL)
def test_consent_notices_and_logs_name_no_work(request_: str) -> None:
    assert is_trivial(request_)


@pytest.mark.parametrize("request_", TELLING)
def test_what_asks_for_something_names_work(request_: str) -> None:
    assert not is_trivial(request_)


REPORTS = [
    ("Done! Created the loom.", "Created the loom."),
    ("Perfect. I moved the cards to `looms/`. Would you like more?", "I moved the cards to looms/."),
    (
        "All tests pass now. The parser reads both forms. And more.",
        "All tests pass now. The parser reads both forms.",
    ),
    ("The loom has:\n\n- a frame\n- two **cards**\n", "The loom has: a frame; two cards"),
    (
        "## Changes\n\n- the frame is blue now\n- the cards are red now",
        "Changes: the frame is blue now; the cards are red now",
    ),
    ("Let me look at the file.", ""),
    ("Now I'll run the tests.", ""),
    ("You're right.", ""),
    ("No response requested.", ""),
    ("Should I go on with the next one?", ""),
    ("```py\nx = 1\n```", ""),
    ("| a | b |\n|---|---|\n| 1 | 2 |\n\nThe table is kept in order.", "The table is kept in order."),
]


@pytest.mark.parametrize(("answer", "report"), REPORTS)
def test_a_report_is_what_was_done_and_no_announcement(answer: str, report: str) -> None:
    assert report == reported(answer)


def test_a_long_report_ends_at_a_word() -> None:
    found = reported("The loom " + "weaves " * 200 + "well.")

    assert len(found) <= TITLE_MOST + 1
    assert found.endswith("weaves…")


COMMITS = [
    ("git commit -m 'Weave blue'", ["Weave blue"]),
    ('git add . && git commit -am "Weave \\"blue\\"" && git push', ['Weave "blue"']),
    ('git -C loom commit --message="Weave"', ["Weave"]),
    ("git commit -m \"$(cat <<'EOF'\nWeave blue\n\n- and red\nEOF\n)\"", ["Weave blue"]),
    ("git commit -F - <<EOF\nWeave red\n\nbody\nEOF", ["Weave red"]),
    ("git commit -m one && git commit -m two", ["one", "two"]),
    ("git commit --amend --no-edit", []),
    ("git log --oneline", []),
    ("echo commit", []),
]


@pytest.mark.parametrize(("command", "subjects"), COMMITS)
def test_a_commit_is_named_by_the_first_line_of_its_message(command: str, subjects: list[str]) -> None:
    assert subjects == [subject(message) for message in commit_messages(command)]


def test_what_says_little_is_told_with_the_list_below_it():
    assert "All research complete. Results: the till takes cards; the door stays blue" == reported(
        "All research complete. Here's the summary:\n\n---\n\n## Results\n\n- the till takes cards\n- the door stays blue"
    )
    assert (
        "Before: one file of 288 lines; After: plan.md, a clean reference; notes.md, the story"
        == reported(
            "Done. Here's what changed:\n\n**Before**: one file of 288 lines\n\n**After**:\n- plan.md, a clean reference\n- notes.md, the story"
        )
    )
