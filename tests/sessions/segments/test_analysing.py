"""The analyser without a model: what it says of a segment, and by which rule."""

from __future__ import annotations

import time
from pathlib import Path

import orjson
import pytest

from graphstore import InvalidError, analysing, transcripts
from graphstore.sessions.segments.analysing import Work, builtin
from graphstore.sessions.segments.nodes import SessionNode
from graphstore.sessions.segments.rules import Findings, decisions_in, sentences
from graphstore.sessions.transcripts.steps import own_words, steps
from tests.conftest import shared_data
from tests.support.session_example import SessionFile

FOLDERS = ("pi-v3-tree", "pi-brain-fixtures", "pi-v1", "claude-code")
PROJECT = "/home/ada/looms"


@pytest.fixture
def session(tmp_path: Path) -> SessionFile:
    """An empty session of pi in /home/ada/looms."""
    return SessionFile(tmp_path / "s1.jsonl", PROJECT)


def works(path: Path, project: str | None = None) -> list[Work]:
    """The segments of a file that hold anything."""
    read = transcripts.read(path)
    where = project or read.header.cwd or ""
    return [Work(read, each, "desk", where) for each in transcripts.segments(read) if each.entry_count]


def analysed(session: SessionFile) -> SessionNode:
    [work] = works(session.write())
    return builtin(work)


def claude(path: Path, *lines: dict) -> Path:
    """A session of Claude Code: each line a child of the one before."""
    entries = []
    for number, line in enumerate(lines):
        common = {
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "timestamp": f"2026-01-24T10:{number:02}:00.000Z",
            "sessionId": "c1",
            "cwd": PROJECT,
        }
        entries.append({**common, **line})
    path.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
    return path


def said(text: str, **more: object) -> dict:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def answer(*blocks: dict, **more: object) -> dict:
    usage = more.pop("usage", {"input_tokens": 1, "output_tokens": 1})
    message = {"role": "assistant", "model": "claude-x", "content": list(blocks), "usage": usage, **more}
    return {"type": "assistant", "message": message}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def use(id: str, name: str, **given: object) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, words: str = "done", failed: bool = False) -> dict:
    block = {"type": "tool_result", "tool_use_id": id, "content": words, "is_error": failed}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


# ---------------------------------------------------------------- the whole


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_segment_of_real_sessions_becomes_a_node(folder):
    found = [work for path in sorted(shared_data(folder).glob("*.jsonl")) for work in works(path)]

    assert found
    for work in found:
        node = builtin(work)
        assert "builtin-3" == node.metadata.analyzer_version
        assert work.segment.entry_count == node.source.segment.entry_count
        assert SessionNode.from_content(node.json_object()).json_object() == node.json_object()
        assert 0 < len(node.content.summary) <= 300


def test_what_the_segments_took_is_what_the_sessions_took():
    for path in sorted(shared_data("pi-v3-tree").glob("*.jsonl")):
        read = transcripts.read(path)
        own = [work for work in works(path) if not work.segment.copied]

        nodes = [builtin(work) for work in own]

        told = transcripts.statistics(read)
        assert pytest.approx(told.cost or 0, abs=1e-6) == sum(node.metadata.cost for node in nodes)
        assert told.tokens.input + told.tokens.output == sum(node.metadata.tokens_used for node in nodes)


def test_the_same_segment_gives_the_same_node(session):
    session.user("Fix the loom in looms/cards.py").call("edit", path="looms/cards.py").assistant("Done.")
    [work] = works(session.write())

    assert builtin(work).json_object() == builtin(work).json_object()


def test_a_segment_says_where_it_is_from(session):
    node = analysed(session.user("Weave").assistant("Done."))

    assert {
        "sessionFile": str(session.path),
        "segment": {"startEntryId": "e1", "endEntryId": "e2", "entryCount": 2},
        "computer": "desk",
        "sessionId": "s1",
        "format": "pi",
    } == {name: value for name, value in node.source.json_object().items() if name != "digest"}
    assert ("2026-01-24T10:00:00Z", 1) == (node.metadata.timestamp, node.metadata.duration_minutes)


def test_a_segment_that_no_clock_saw_is_refused(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}\n'
    )

    with pytest.raises(InvalidError, match="no entry of the segment at a and no header says when it was"):
        [builtin(work) for work in works(path)]


def test_an_analyser_of_ones_own_is_any_callable_with_a_version(session):
    class Short:
        version = "short-1"

        def __call__(self, work: Work) -> dict:
            return {"summary": work.request(), "text": work.text(40)}

    own: analysing.Analyser = Short()
    [work] = works(session.user("Weave a long cloth, please").assistant("It is woven now.").write())

    assert "Weave a long cloth, please" == own(work)["summary"]
    assert "user: Weave a long cloth, please\n\nassistant: It is woven now." == work.text()
    assert 40 >= len(own(work)["text"])


# ---------------------------------------------------------------- the summary

SUMMARIES = [
    ("Weave the cloth.", "Weave the cloth."),
    ("One. Two! Three? Four.", "One. Two! Three?"),
    ("Look at this:\n\n- first\n- second\n- third\n", "Look at this: first second"),
    ("a line\nthat goes on", "a line that goes on"),
    ("Fix it.\n```py\nx = 1. Not this.\n```\nThen run it.", "Fix it. Then run it."),
    ("<system-reminder>never mind. no.</system-reminder>Weave.", "Weave."),
    ("1. Do this\n2. Do that", "Do this Do that"),
    ("word " * 200, None),
    ("…\n---\nReal.", "Real."),
    ("直してください。そして走らせて。", "直してください。 そして走らせて。"),
]


@pytest.mark.parametrize(("request_", "summary"), SUMMARIES)
def test_the_summary_is_the_first_sentences_of_the_first_request(session, request_, summary):
    found = analysed(session.user(request_).assistant("Done.")).content.summary

    if summary is None:
        assert len(found) <= 300 and found.endswith("word…")
    else:
        assert summary == found


OWN_WORDS = [
    (
        "<command-name>/clear</command-name>\n<command-message>clear</command-message><command-args></command-args>",
        "",
    ),
    ("<command-name>/fix</command-name><command-args>the loom</command-args>", "the loom"),
    ("<local-command-stdout>Bye!</local-command-stdout>", ""),
    (
        "Caveat: The messages below were generated by the user while running local commands. DO NOT respond.",
        "",
    ),
    ("<system-reminder>\nbe good\n</system-reminder>\nWeave [Image #1] it", "Weave  it"),
    ("[Request interrupted by user for tool use]", ""),
    ("<file name='a'>never closed", "<file name='a'>never closed"),
    ("keep <b>html</b> and [links](x)", "keep <b>html</b> and [links](x)"),
]


@pytest.mark.parametrize(("written", "own"), OWN_WORDS)
def test_wrappers_and_reminders_are_not_the_users_words(written, own):
    assert own == own_words(written)


def test_a_command_of_the_agent_is_no_request(session):
    assert "Weave." == analysed(session.user("/model").user("Weave.").assistant("Done.")).content.summary


def test_without_a_request_the_summary_is_from_elsewhere_and_to_be_reviewed(session):
    node = analysed(session.assistant("I wove the cloth. It is blue."))

    assert "I wove the cloth. It is blue." == node.content.summary
    assert "Summary taken from elsewhere" in [each.decision for each in node.daemon_meta.decisions]


# ---------------------------------------------------------------- the outcome


def finished(session):
    session.user("Fix looms/cards.py").call("edit", path="looms/cards.py").assistant("Fixed.")


def aborted(session):
    session.user("Fix looms/cards.py").assistant(stop="aborted", errorMessage="Request was aborted.")


def went_on_after_an_abort(session):
    aborted(session)
    session.user("go on").assistant("Fixed.")


def model_failed(session):
    session.user("Fix it").assistant(stop="error", errorMessage="overloaded")


def left_errors(session):
    session.user("Fix it").call("bash", "Command exited with code 1", failed=True, command="make").assistant(
        "Hm."
    )


def mended_errors(session):
    left_errors(session)
    session.call("bash", command="make").assistant("Now it works.")


def pleased(session):
    left_errors(session)
    session.user("Great, thanks!").assistant("You are welcome.")


def displeased(session):
    finished(session)
    session.user("it is still broken")


def dropped(session):
    finished(session)
    session.user("never mind, scrap it").assistant("As you wish.")


def unanswered(session):
    session.user("Is anybody there?")


def last_call_failed(session):
    session.user("Look").call("read", "ENOENT: no such file", failed=True, path="a.py")


def last_call_failed_after_writing(session):
    session.user("Do it").call("write", path="a.py").call(
        "bash", "make: Error 2", failed=True, command="make"
    )


OUTCOMES = [
    (finished, "success"),
    (aborted, "abandoned"),
    (went_on_after_an_abort, "success"),
    (model_failed, "failed"),
    (left_errors, "partial"),
    (mended_errors, "success"),
    (pleased, "success"),
    (displeased, "partial"),
    (dropped, "abandoned"),
    (unanswered, "abandoned"),
    (last_call_failed, "failed"),
    (last_call_failed_after_writing, "partial"),
]


@pytest.mark.parametrize(("story", "outcome"), OUTCOMES, ids=[story.__name__ for story, _ in OUTCOMES])
def test_the_outcome_has_a_ground(session, story, outcome):
    story(session)

    node = analysed(session)

    assert outcome == node.content.outcome
    assert "Outcome set to partial" not in [each.decision for each in node.daemon_meta.decisions]


def test_an_outcome_without_ground_is_to_be_reviewed(session):
    node = analysed(session.user("Look at a.py").call("read", path="a.py"))

    assert "partial" == node.content.outcome
    assert [("Outcome set to partial", True)] == [
        (each.decision, each.needs_review) for each in node.daemon_meta.decisions
    ]


def test_an_interrupted_request_of_claude_code_is_abandoned(tmp_path):
    lines = (said("Weave"), answer(text("Shall I?")), said("[Request interrupted by user]"))
    [work] = works(claude(tmp_path / "c.jsonl", *lines))

    assert ("abandoned", "Weave") == (builtin(work).content.outcome, builtin(work).content.summary)


def test_a_refused_call_is_no_error(tmp_path):
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    lines = (
        said("Weave"),
        answer(use("t1", "Edit", file_path=f"{PROJECT}/a.py")),
        result("t1", refusal, True),
    )
    [work] = works(claude(tmp_path / "c.jsonl", *lines))

    content = builtin(work).content

    assert ("abandoned", [], []) == (content.outcome, content.errors_seen, content.files_touched)


def test_a_sub_agent_beside_the_session_works_and_does_not_speak(tmp_path):
    beside = {"isSidechain": True}
    lines = (
        said("Weave the cloth"),
        answer(use("t1", "Task", prompt="look")),
        {**said("You are a sub-agent. Look."), **beside},
        {
            **answer(use("t2", "Read", file_path="a.md"), usage={"input_tokens": 50, "output_tokens": 5}),
            **beside,
        },
        {**result("t2"), **beside},
        {**said("[Request interrupted by user]"), **beside},
        result("t1"),
        answer(text("Woven."), stop_reason="end_turn", usage={"input_tokens": 3, "output_tokens": 5}),
    )
    [work] = works(claude(tmp_path / "c.jsonl", *lines))[:1]

    node = builtin(work)

    assert ("Weave the cloth", "success") == (node.content.summary, node.content.outcome)
    assert (["a.md"], ["Task", "Read"]) == (node.content.files_touched, node.content.tools_used)
    assert 54 == node.observations.models_used[0].tokens_input
    assert "sub-agent" not in work.text()


# ---------------------------------------------------------------- files, tools, errors


def test_files_are_relative_to_the_project_in_the_order_they_were_touched(session):
    session.user("Work").call("read", path=f"{PROJECT}/b.py").call("edit", path="./a.py")
    session.call("write", path="/etc/hosts").call("read", path="b.py").call("read", path="../other/c.py")

    assert ["b.py", "a.py", "/etc/hosts", "/home/ada/other/c.py"] == analysed(session).content.files_touched


def test_a_file_that_could_not_be_read_was_not_touched(session):
    session.user("Look").call("read", "ENOENT: no such file", failed=True, path="a.py").assistant("Gone.")

    assert [] == analysed(session).content.files_touched


def test_every_tool_that_takes_a_file_counts(tmp_path):
    tools = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}  # fmt: skip
    calls = [
        answer(use(f"t{number}", tool, **{name: f"{PROJECT}/{tool}.x"}))
        for number, (tool, name) in enumerate(tools.items())
    ]
    results = [result(f"t{number}") for number in range(len(tools))]
    lines = [line for pair in zip(calls, results, strict=True) for line in pair]
    [work] = works(claude(tmp_path / "c.jsonl", said("Work"), *lines))

    content = builtin(work).content

    assert [f"{tool}.x" for tool in tools] == content.files_touched
    assert list(tools) == content.tools_used


def test_files_named_by_summaries_come_last(session):
    session.add(
        "compaction", summary="s", details={"readFiles": ["r.md"], "modifiedFiles": [f"{PROJECT}/m.py"]}
    )
    session.user("Go on").call("edit", path="a.py")

    assert ["a.py", "r.md", "m.py"] == analysed(session).content.files_touched


ERRORS = [
    ("ENOENT: no such file or directory, open 'a.py'", "not_found", "ENOENT: no such file or directory, open 'a.py'"),
    ("out\nTraceback (most recent call last):\n  File\nKeyError: 'x'\n\nCommand exited with code 1", "exception", "KeyError: 'x'"),
    ("src/a.ts(1,2): error TS2305: does not exist on type", "type_error", "src/a.ts(1,2): error TS2305: does not exist on type"),
    ("(no output)\n\nCommand exited with code 1", "exit_code", "Command exited with code 1: make"),
    ("Debugger attached.\nld: no such thing\nWaiting for the debugger to disconnect...\n\nCommand exited with code 2", "exit_code", "ld: no such thing"),
    ("cc a.c\nundefined symbol\n\nCommand exited with code 2", "exit_code", "undefined symbol"),
    ("\x1b[31mPermission denied\x1b[0m", "permission", "Permission denied"),
    ("<tool_use_error>File has not been read yet.</tool_use_error>", "edit_mismatch", "File has not been read yet."),
    ("3 failed, 9 passed", "test_failure", "3 failed, 9 passed"),
    ("x" * 600 + " TypeError " + "\nlast line", "tool_error", None),
    ("", "tool_error", "no message"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "type", "message"), ERRORS, ids=[str(n) for n in range(len(ERRORS))])
def test_an_error_has_a_type_and_the_line_that_says_it(session, output, type, message):
    [error] = analysed(
        session.user("Run").call("bash", output, failed=True, command="make")
    ).content.errors_seen

    assert type == error.type
    assert message is None or message == error.message
    assert len(error.message) <= 200


def test_a_bad_exit_is_an_error_whatever_the_result_says(session):
    session.user("Run").call("bash", "boom\n\nCommand exited with code 2", command="make")

    assert ["boom"] == [error.message for error in analysed(session).content.errors_seen]


def test_an_error_is_resolved_when_the_same_call_succeeds_later(session):
    session.user("Run").call("bash", "Command exited with code 1", failed=True, command="make  test")
    session.call("edit", "Could not find the exact text", failed=True, path="a.py")
    session.call("bash", command="make test").call("edit", path="b.py")

    assert [("exit_code", True), ("edit_mismatch", False)] == [
        (error.type, error.resolved) for error in analysed(session).content.errors_seen
    ]


def test_one_kind_of_error_is_told_once_as_it_last_was(session):
    session.user("Run")
    for command in ("a", "b"):
        session.call("bash", "no rule\n\nCommand exited with code 1", failed=True, command=command)
    session.call("bash", command="a")

    assert [False] == [error.resolved for error in analysed(session).content.errors_seen]


SEARCHES = (
    "grep -n x a.py", "cat a | grep 'x|y'", 'cd b && rg "a\\|b; c"', "git grep x", "diff a b", "command -v node",
)  # fmt: skip


@pytest.mark.parametrize("command", SEARCHES)
def test_a_search_that_finds_nothing_is_no_error(session, command):
    session.user("Look for x").call("bash", "Command exited with code 1", failed=True, command=command)

    found = analysed(session.assistant("There is none.")).content

    assert ([], "success") == (found.errors_seen, found.outcome)


@pytest.mark.parametrize(
    ("command", "output"), [("grep x a.py", "grep: a.py: Is a directory"), ("grep x a && make", "")]
)
def test_a_search_that_fails_is_an_error(session, command, output):
    output += "\n\nCommand exited with code 1"
    session.user("Look for x").call("bash", output, failed=True, command=command)

    assert 1 == len(analysed(session).content.errors_seen)


def test_what_was_not_there_where_somebody_looked_hinders_nothing(session):
    missing = "ls: x: No such file or directory\n\nCommand exited with code 1"
    session.user("Write it").call("bash", missing, failed=True, command="ls x").call("write", path="x/a.py")

    found = analysed(session.assistant("Done.")).content

    assert ("success", ["not_found"]) == (found.outcome, [error.type for error in found.errors_seen])


def test_a_command_that_the_user_aborted_is_no_error(session):
    session.user("Run").call("bash", "so far\n\nCommand aborted", failed=True, command="make")

    found = analysed(session).content

    assert ([], "abandoned") == (found.errors_seen, found.outcome)


def test_silence_is_told_once_and_asks_for_no_review(session):
    node = analysed(session.add("model_change", provider="x", modelId="y"))

    assert ("Nothing was said.", []) == (node.content.summary, node.semantic.tags)
    assert [("Nothing to analyse", None)] == [
        (each.decision, each.needs_review) for each in node.daemon_meta.decisions
    ]


def test_courtesy_curses_hashes_and_paths_are_no_tags(session):
    session.user("Great! Thanks, please commit b5bd68f, dude. Fucking packages/coding/a.md is fine").call(
        "read", path="a.md"
    )

    assert ["commit"] == analysed(session).semantic.tags


def test_a_failed_answer_is_an_error_until_the_model_answers(session):
    session.user("Hi").assistant(stop="error", errorMessage="overloaded_error").assistant("Hello.")

    assert [("model_error", "overloaded_error", True)] == [
        (error.type, error.message, error.resolved) for error in analysed(session).content.errors_seen
    ]


def test_a_command_the_user_ran_can_fail(session):
    ran = {"role": "bashExecution", "command": "make", "output": "Error: no rule", "exitCode": 2}
    node = analysed(session.user("Hi").add("message", message=ran).assistant("I see."))

    assert (["Error: no rule"], []) == (
        [error.message for error in node.content.errors_seen],
        node.content.tools_used,
    )


def test_what_a_tool_refused_is_a_tool_error_and_what_failed_to_run_is_none(session):
    session.user("Run").call("bash", "Command exited with code 1", failed=True, command="make")
    session.call("edit", "Could not find the exact text", failed=True, path="a.py").call("edit", path="a.py")

    assert [
        {
            "tool": "edit",
            "errorType": "edit_mismatch",
            "context": "a.py",
            "model": "glm-4.7",
            "wasRetried": True,
        }
    ] == [each.json_object() for each in analysed(session).observations.tool_use_errors]


# ---------------------------------------------------------------- what it took


def test_tokens_and_cost_are_summed_by_model(session):
    node = analysed(session.user("Hi").assistant("One.").assistant("Two."))

    assert [
        {
            "provider": "zai",
            "model": "glm-4.7",
            "tokensInput": 200,
            "tokensOutput": 20,
            "cacheRead": 10,
            "cacheWrite": 2,
            "cost": 0.02,
        }
    ] == [each.json_object() for each in node.observations.models_used]
    assert (220, 0.02) == (node.metadata.tokens_used, node.metadata.cost)


@pytest.mark.parametrize("id", [{"id": "msg_1"}, {}], ids=["by its id", "by what it took in"])
def test_a_message_that_stands_in_several_lines_counts_once(tmp_path, id):
    first = {"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1}
    lines = (
        said("Weave"),
        answer(text("I look."), usage=first, **id),
        answer(use("t1", "Read", file_path="a.py"), usage={**first, "output_tokens": 30}, **id),
        result("t1"),
        answer(
            text("Done."), usage={"input_tokens": 4, "output_tokens": 2}, **({"id": "msg_2"} if id else {})
        ),
    )
    [work] = works(claude(tmp_path / "c.jsonl", *lines))

    [model] = builtin(work).observations.models_used

    assert (14, 32, 7, 0) == (model.tokens_input, model.tokens_output, model.cache_read, model.cost)


def test_what_is_no_number_took_nothing(session):
    session.user("Hi").assistant("One.")
    session.entries[-1]["message"]["usage"] = {"input": "many", "output": -3, "cost": {"total": None}}

    assert (0, 0) == (analysed(session).metadata.tokens_used, analysed(session).metadata.cost)


# ---------------------------------------------------------------- what kind of work

TYPES = [
    ("Add a button to the page", [("edit", "src/a.ts")], "coding"),
    ("Fix the crash in a.ts", [("edit", "src/a.ts")], "debugging"),
    ("Untangle the two modules", [("edit", "src/a.ts")], "refactoring"),
    ("Do what is needed there", [("edit", "src/a.ts")], "coding"),
    ("Fill in what is left", [("write", "README.md")], "documentation"),
    ("Note what comes next", [("write", "docs/plan.md")], "planning"),
    ("Hand over to the next one", [("write", "NOTES.md")], "handoff"),
    ("Set it right", [("edit", "tsconfig.json"), ("edit", ".gitignore")], "configuration"),
    ("More of them", [("write", "tests/test_a.py")], "qa"),
    ("Collect it", [("write", "out/a.csv")], "data"),
    ("What does this do?", [("read", "src/a.ts")], "research"),
    ("Plan the next month", [("read", "src/a.ts")], "planning"),
    ("Let us brainstorm", [], "brainstorm"),
    ("Good morning", [], "other"),
]


@pytest.mark.parametrize(
    ("request_", "calls", "type"), TYPES, ids=[f"{type}: {said}" for said, _, type in TYPES]
)
def test_the_type_follows_from_what_was_written_and_asked(session, request_, calls, type):
    session.user(request_)
    for tool, path in calls:
        session.call(tool, path=path)

    assert type == analysed(session.assistant("Done.")).classification.type


@pytest.mark.parametrize(
    ("command", "type"),
    [("npm run test", "qa"), ("sudo systemctl restart nginx", "sysadmin"), ("ls", "research")],
)
def test_commands_alone_say_what_kind_of_work_it_was(session, command, type):
    assert type == analysed(session.user("Go").call("bash", command=command)).classification.type


@pytest.mark.parametrize(("first", "type"), [("run", "debugging"), ("write", "coding")])
def test_writing_source_after_it_failed_to_run_is_debugging(session, first, type):
    session.user("Go on")
    for what in ("run", "write") if first == "run" else ("write", "run"):
        if what == "write":
            session.call("edit", path="a.py")
        else:
            session.call("bash", "KeyError: 1", failed=True, command="make")

    assert type == analysed(session).classification.type


def test_what_was_written_most_is_what_the_work_was(session):
    session.user("Go on").call("edit", path="a.md").call("edit", path="b.md").call("edit", path="a.py")

    assert "documentation" == analysed(session).classification.type


def test_talk_alone_is_what_was_asked_for(session):
    assert "debugging" == analysed(session.user("Fix the loom").assistant("How?")).classification.type


def test_a_type_without_ground_is_to_be_reviewed(session):
    node = analysed(session.user("Good morning").assistant("Good morning."))

    assert ["Type set to other"] == [each.decision for each in node.daemon_meta.decisions]


def test_language_and_frameworks_are_those_of_the_files(session):
    session.user("Go").call("read", path="a.py").call("edit", path="src/App.svelte").call(
        "edit", path="vite.config.ts"
    )

    found = analysed(session).classification

    assert ("typescript", ["svelte", "vite"]) == (found.language, found.frameworks)


def test_a_manifest_tells_the_language_where_no_source_does(session):
    assert "rust" == analysed(session.user("Go").call("edit", path="Cargo.toml")).classification.language


@pytest.mark.parametrize(
    ("request_", "clear"),
    [
        ("Fix the loom in cards.py", True),
        ("hello there my old friend", False),
        ("fix it", False),
        ("", False),
    ],
)
def test_a_goal_is_clear_when_it_says_what_to_do_in_some_words(session, request_, clear):
    assert clear is analysed(session.user(request_).assistant("Hm.")).classification.had_clear_goal


# ---------------------------------------------------------------- by what it is found


def test_tags_are_language_frameworks_foreign_tools_and_words_said_often(session):
    session.user("The shuttle drops threads").call("edit", path="a.py").call("mcp__web__fetch", url="u")
    session.user("the shuttle again, shuttle and threads")

    assert ["python", "mcp__web__fetch", "shuttle", "threads", "drops"] == analysed(session).semantic.tags


def test_topics_and_concepts_follow_from_words(session):
    found = analysed(session.user("Cache the login tokens in sqlite").assistant("Done.")).semantic

    assert {"authentication", "database"} <= set(found.topics)
    assert ["caching"] == found.concepts


DECISIONS = """## Goal
- not this

## Key Decisions
- **Keep cards in files**: anyone can read them
- Use Python instead of a database, it is there
1. Weave at night — it is quiet
- (none)

## Next Steps
- nor this
"""


def test_bullets_below_key_decisions_are_decisions():
    assert [
        {"what": "Keep cards in files", "why": "anyone can read them", "alternativesConsidered": []},
        {
            "what": "Use Python instead of a database, it is there",
            "why": "",
            "alternativesConsidered": ["a database"],
        },
        {"what": "Weave at night", "why": "it is quiet", "alternativesConsidered": []},
    ] == decisions_in(DECISIONS)


def test_decisions_of_a_compaction_are_the_nodes(session):
    session.add("compaction", summary=DECISIONS).user("Go on").assistant("Done.")

    assert 3 == len(analysed(session).content.key_decisions)


# ---------------------------------------------------------------- whatever comes

STRANGE = [
    {},
    {"type": "message"},
    {"type": "message", "message": None},
    {"type": "message", "message": {"role": "user", "content": None}},
    {"type": "message", "message": {"role": "user", "content": [1, None, {"type": "text"}, {"type": "text", "text": 7}]}},
    {"type": "message", "message": {"role": "assistant", "content": [{"type": "toolCall"}], "usage": [], "model": 3}},
    {"type": "message", "message": {"role": "assistant", "content": {}, "usage": {"input": 1e400, "cost": True}}},
    {"type": "message", "message": {"role": "toolResult", "content": 3, "toolCallId": [], "isError": "yes"}},
    {"type": "message", "message": {"role": "bashExecution", "exitCode": "x"}},
    {"type": "compaction", "summary": 7, "details": {"readFiles": "a", "modifiedFiles": [None]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "input": 3}], "stop_reason": 1}},
]  # fmt: skip


@pytest.mark.parametrize("body", STRANGE, ids=[str(n) for n in range(len(STRANGE))])
def test_a_strange_entry_says_little_and_breaks_nothing(body):
    found = Findings(PROJECT)
    for step in steps(body):
        found.add_step(step)

    assert found.summary() and found.outcome() and found.semantic() and found.classification()


def test_a_text_without_words_has_no_sentences():
    assert "" == sentences("--- \n ***\n")


LONG = {
    "blank lines": "\n" * 250_000,
    "wrappers that never end": "<file>" * 40_000,
    "a wrapper in each": "<file>x</file>" * 18_000,
    "one word": "a" * 250_000,
    "one word of slashes": "a/" * 125_000,
    "headings": "## Key Decisions\n" * 15_000,
    "list marks": "- " * 125_000,
    "interruptions": "[Request interrupted by user" * 9_000,
    "fences": "```\n" * 60_000,
    "capitals": "AError" * 40_000,
}


@pytest.mark.parametrize("words", LONG.values(), ids=LONG.keys())
def test_a_quarter_megabyte_of_anything_is_read_in_a_moment(session, words):
    session.user(words).call("bash", words, failed=True, command=words).add("compaction", summary=words)
    [work] = works(session.assistant(words).write())[:1]
    began = time.process_time()

    builtin(work)
    builtin(works(session.path)[-1])

    assert time.process_time() - began < 2


def test_many_errors_and_successes_are_read_in_a_moment():
    found = Findings(PROJECT)
    began = time.process_time()
    for number in range(40_000):
        call = {
            "type": "toolCall",
            "id": f"c{number}",
            "name": "bash",
            "arguments": {"command": f"make {number}"},
        }
        failed = {
            "role": "toolResult",
            "toolCallId": f"c{number}",
            "isError": number % 2 == 0,
            "content": "boom",
        }
        for message in ({"role": "assistant", "content": [call]}, failed):
            for step in steps({"type": "message", "message": message}):
                found.add_step(step)

    assert 1 == len(found.errors_seen())
    assert time.process_time() - began < 10


def test_a_cost_that_is_not_said_is_told(tmp_path):
    node = builtin(
        works(
            claude(
                tmp_path / "c.jsonl",
                said("Read a.md, please"),
                answer(use("t", "Read", file_path="a.md")),
                result("t"),
                answer(text("Done.")),
            )
        )[0]
    )

    assert [("Cost taken as 0", None)] == [
        (each.decision, each.needs_review) for each in node.daemon_meta.decisions
    ]
