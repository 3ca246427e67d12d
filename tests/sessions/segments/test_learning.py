"""How work came out, and what was decided and learned in it: by what summaries, answers and corrections say."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphstore.sessions.segments import rules, sayings
from graphstore.sessions.segments.analysing import Work, builtin
from graphstore.sessions.segments.nodes import SessionNode
from graphstore.sessions.transcripts import transcript as transcripts
from tests.sessions.test_worked import Writer

SUMMARY = """This session is being continued from a previous conversation.

1. Primary Request and Intent:
   Weave a blue cloth.

2. Key Technical Concepts:
   - Warp and weft
   - **Shuttle** timing

4. Errors and fixes:
   - **The warp tore**:
     - Fix: a thicker thread
     - the user asked for cotton
   - **No dye**: bought some

5. Problem Solving:
   The colour ran; cold water keeps it.

6. All user messages:
   - Weave

7. Pending Tasks:
   - Sew the hem
"""


def nodes(file: Path) -> list[SessionNode]:
    read = transcripts.read(file)
    return [
        SessionNode.from_content(builtin(Work(read, each, "desk", "/w/shop")))
        for each in transcripts.segments(read)
    ]


def test_a_compaction_tells_lessons_concepts_and_what_is_pending(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "s" * 8).user("Weave")
    writer._entry("user", {"role": "user", "content": SUMMARY}, isCompactSummary=True)
    node = nodes(writer.says("Going on with the hem.").write())[-1]

    assert [(each.summary, each.details) for each in node.lessons.task] == [
        ("The warp tore", "a thicker thread the user asked for cotton"),
        ("No dye", "bought some"),
    ]
    assert [each.summary for each in node.lessons.project] == ["The colour ran; cold water keeps it."]
    assert {"warp and weft", "shuttle timing"} <= set(node.semantic.concepts or ())
    assert node.json_object()["content"]["pendingTasks"] == ["Sew the hem"]


def test_preferences_of_a_summary_of_pi_are_lessons_of_the_user() -> None:
    text = "## Goal\nWeave\n\n## Constraints & Preferences\n- cotton alone\n- (none)\n\n## Next Steps\n1. Sew\n2. Iron\n"

    assert [(level, each.what) for level, each in sayings.lessons_in(text)] == [("user", "cotton alone")]
    assert sayings.pending_in(text) == ["Sew", "Iron"]


CHOICES = [
    ("Use cotton over silk: it washes well", ("Use cotton over silk", "it washes well", "silk")),
    ("- **Use cotton over silk**: it washes well", ("Use cotton over silk", "it washes well", "silk")),
    (
        "2. **Chose a loom instead of needles:** it is quick",
        ("Chose a loom instead of needles", "it is quick", "needles"),
    ),
    (
        "We went with blue rather than red because the sea is blue",
        ("We went with blue rather than red", "the sea is blue", "red"),
    ),
    ("The cloth goes over the table: it is long", None),
    ("Use the loom.", None),
]


@pytest.mark.parametrize(("line", "choice"), CHOICES)
def test_use_this_over_that_is_a_decision(line: str, choice: tuple[str, str, str] | None) -> None:
    assert [tuple(each) for each in sayings.choices(f"Some words.\n{line}\n")] == (
        [] if choice is None else [choice]
    )


def test_a_decision_of_an_answer_names_what_was_not_taken(tmp_path: Path) -> None:
    [node] = nodes(
        Writer(tmp_path, "s" * 8)
        .user("Weave")
        .says("I looked at both.\n\n- **Use cotton over silk**: it washes well")
        .write()
    )

    [decision] = node.content.key_decisions
    assert (decision.what, decision.why, decision.alternatives_considered) == (
        "Use cotton over silk",
        "it washes well",
        ["silk"],
    )


CORRECTIONS = {
    "No, use tabs here. And go on.": "No, use tabs here.",
    "don't add comments": "don't add comments",
    "Actually, it should be blue": "Actually, it should be blue",
    "please use cotton instead of silk": "please use cotton instead of silk",
    "no problem, thanks": "",
    "Now sew the hem": "",
    "ok": "",
}


@pytest.mark.parametrize("request_", CORRECTIONS)
def test_a_correction_is_a_lesson_of_the_user_and_inferred(tmp_path: Path, request_: str) -> None:
    [node] = nodes(
        Writer(tmp_path, "s" * 8)
        .user("Weave it")
        .says("It is woven.")
        .user(request_)
        .says("It is so now.")
        .write()
    )

    assert [(each.summary, each.confidence) for each in node.lessons.user] == (
        [(CORRECTIONS[request_], "low")] if CORRECTIONS[request_] else []
    )


def test_the_first_request_corrects_nothing(tmp_path: Path) -> None:
    [node] = nodes(
        Writer(tmp_path, "s" * 8).user("don't add comments to the loom").says("There are none.").write()
    )

    assert node.lessons.user == []


# ---- outcomes -------------------------------------------------------------------------------------


def interrupted(writer: Writer) -> Writer:
    writer.user("Weave it").calls("Edit", file_path="/w/shop/a.py").says("The cloth is woven now.")
    return writer.user("[Request interrupted by user]")


def later(writer: Writer) -> Writer:
    writer.on = "2026-01-05T12:00"
    return writer


def test_an_interruption_that_the_session_went_on_from_is_no_end(tmp_path: Path) -> None:
    writer = later(interrupted(Writer(tmp_path, "s" * 8)))

    assert [
        each.content.outcome for each in nodes(writer.user("And hem it").says("It has a hem now.").write())
    ] == ["success", "success"]


def test_an_interruption_that_the_session_went_back_behind_is_abandoned(tmp_path: Path) -> None:
    writer = later(interrupted(Writer(tmp_path, "s" * 8)))
    writer.last = None

    assert [
        each.content.outcome for each in nodes(writer.user("Knit it").says("It is knitted now.").write())
    ] == ["abandoned", "success"]


def test_an_interruption_at_the_end_is_abandoned(tmp_path: Path) -> None:
    assert ["abandoned"] == [
        each.content.outcome for each in nodes(interrupted(Writer(tmp_path, "s" * 8)).write())
    ]


def failing(writer: Writer, command: str, text: str) -> Writer:
    writer.calls("Bash", command=command)
    [part] = writer.lines[-1]["message"]["content"]
    part.update(content=text, is_error=True)
    return writer


def test_one_mistyped_command_makes_nothing_partial(tmp_path: Path) -> None:
    writer = failing(
        Writer(tmp_path, "s" * 8).user("Weave it"),
        "gti status",
        "Exit code 127\nbash: gti: command not found",
    )
    [node] = nodes(writer.calls("Bash", command="git status").says("The cloth is woven now.").write())

    assert (node.content.outcome, [each.resolved for each in node.content.errors_seen]) == (
        "success",
        [False],
    )


def test_a_failing_test_that_stays_is_partial(tmp_path: Path) -> None:
    writer = failing(Writer(tmp_path, "s" * 8).user("Weave it"), "pytest", "Exit code 1\n1 failed, 2 passed")
    [node] = nodes(writer.calls("Bash", command="git status").says("The cloth is woven now.").write())

    assert node.content.outcome == "partial"


def test_a_report_after_a_commit_is_success(tmp_path: Path) -> None:
    writer = failing(Writer(tmp_path, "s" * 8).user("Weave it"), "pytest", "Exit code 1\n1 failed, 2 passed")
    [node] = nodes(
        writer.calls("Bash", command="git commit -m 'Weave it'").says("The cloth is woven now.").write()
    )

    assert node.content.outcome == "success"


# ---- errors ---------------------------------------------------------------------------------------

ESLINT = "Exit code 1\n\n/w/shop/a.ts\n  3:14  error  Forbidden non-null assertion: access denied to null  no-non-null\n\n✖ 1 problem (1 error, 0 warnings)"


def test_what_a_linter_says_is_no_error_of_permission() -> None:
    type, message = rules._error(ESLINT)

    assert (type, message.startswith("3:14 error Forbidden")) == ("lint", True)
    assert rules._error("Exit code 1\ncp: a: Permission denied") == ("permission", "cp: a: Permission denied")


@pytest.mark.parametrize(
    "said",
    [
        "[Request interrupted by user for tool use]",
        "Interrupted by user",
        "<error>Command was aborted before completion</error>",
    ],
)
def test_an_interruption_is_no_error(tmp_path: Path, said: str) -> None:
    [node] = nodes(
        failing(Writer(tmp_path, "s" * 8).user("Weave it"), "make", said).says("It was stopped.").write()
    )

    assert node.content.errors_seen == []


def test_decisions_are_those_below_a_heading_that_says_so_in_answers_and_commits() -> None:
    said = "Done.\n\n**Decisions made:**\n- Cards only: cash is slow\n\n## Next\n- paint the door\n\nDecisions log is confusing:\n- not one"
    message = "Add the till\n\nKey decisions:\n- Storage: R2 (signed URLs)\n\nCo-Authored-By: a"

    assert [("Cards only", "cash is slow")] == [
        (each["what"], each["why"]) for each in rules.decisions_in(said)
    ]
    assert [("Storage: R2", "signed URLs")] == [
        (each["what"], each["why"]) for each in rules.decisions_in(message)
    ]
