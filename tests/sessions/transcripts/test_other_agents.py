"""Session files of Codex, Copilot CLI, Gemini CLI and OpenCode: made here in the form these agents write, read to the last token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphstore import GraphStore, sessions
from graphstore.cli.command_line import app
from graphstore.sessions.transcripts import transcript as transcripts
from tests.conftest import Clock, day

pytestmark = pytest.mark.served
PATCH = (
    "*** Begin Patch\n*** Update File: src/loom.py\n@@\n-a\n+b\n*** Add File: docs/loom.md\n+x\n*** End Patch"
)


def at(second: int) -> str:
    return f"2026-01-05T10:00:{second:02}.000Z"


def lines(path: Path, *objects: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def codex(folder: Path) -> Path:
    def item(second: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": at(second), "type": "response_item", "payload": payload}

    def used(second: int, total: int) -> dict[str, Any]:
        last = {
            "input_tokens": 1000,
            "cached_input_tokens": 600,
            "output_tokens": 50,
            "reasoning_output_tokens": 10,
            "total_tokens": 1050,
        }
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
        return {
            "timestamp": at(second),
            "type": "event_msg",
            "payload": {"type": "token_count", "info": info},
        }

    return lines(
        folder / "rollout-2026-01-05T10-00-00-c0de.jsonl",
        {"timestamp": at(0), "type": "session_meta", "payload": {"id": "c0de", "timestamp": at(0), "cwd": "/w/shop", "cli_version": "0.65.0", "source": "cli"}},
        item(0, type="message", role="user", content=[{"type": "input_text", "text": "<environment_context>\n  <cwd>/w/shop</cwd>\n</environment_context>"}]),
        item(1, type="message", role="user", content=[{"type": "input_text", "text": "Fix the loom"}]),
        {"timestamp": at(1), "type": "event_msg", "payload": {"type": "user_message", "message": "Fix the loom"}},
        {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": "/w/shop", "model": "gpt-5-codex"}},
        item(2, type="reasoning", summary=[], encrypted_content="x"),
        item(3, type="function_call", name="shell", arguments=json.dumps({"command": ["bash", "-lc", "pytest"]}), call_id="c1"),
        item(4, type="function_call_output", call_id="c1", output=json.dumps({"output": "1 failed", "metadata": {"exit_code": 1}})),
        used(4, 1050),
        used(4, 1050),
        item(5, type="custom_tool_call", name="apply_patch", input=PATCH, call_id="c2"),
        item(6, type="custom_tool_call_output", call_id="c2", output=json.dumps({"output": "Success", "metadata": {"exit_code": 0}})),
        item(7, type="function_call", name="shell", arguments=json.dumps({"command": "pytest", "workdir": "/w/shop"}), call_id="c3"),
        item(8, type="function_call_output", call_id="c3", output="Exit code: 0\nOutput:\n2 passed"),
        item(9, type="message", role="assistant", content=[{"type": "output_text", "text": "The loom weaves again."}]),
        used(9, 2100),
    )  # fmt: skip


def copilot(folder: Path) -> Path:
    count = iter(range(99))

    def event(type: str, **data: Any) -> dict[str, Any]:
        number = next(count)
        return {
            "type": type,
            "data": data,
            "id": f"e{number}",
            "timestamp": at(number),
            "parentId": f"e{number - 1}" if number else None,
        }

    (folder / "c0").mkdir()
    return lines(
        folder / "c0" / "events.jsonl",
        event("session.start", sessionId="c0", version=1, producer="copilot-agent", startTime=at(0), context={"cwd": "/w/shop"}),
        event("session.model_change", newModel="claude-sonnet-4.5"),
        event("user.message", content="Fix the loom"),
        event("assistant.turn_start", turnId="0"),
        event("assistant.message", messageId="m1", content="", outputTokens=20, toolRequests=[{"toolCallId": "t1", "name": "edit", "arguments": {"path": "/w/shop/src/loom.py"}}]),
        event("tool.execution_start", toolCallId="t1", toolName="edit", arguments={"path": "/w/shop/src/loom.py"}),
        event("tool.execution_complete", toolCallId="t1", success=True, result={"content": "edited"}),
        event("tool.execution_start", toolCallId="t2", toolName="bash", arguments={"command": "pytest"}),
        event("tool.execution_complete", toolCallId="t2", success=False, error={"message": "1 failed"}),
        event("tool.execution_start", toolCallId="t3", toolName="bash", arguments={"command": "pytest"}),
        event("tool.execution_complete", toolCallId="t3", success=True, result={"content": "ok"}),
        event("assistant.message", messageId="m2", content="The loom weaves again.", outputTokens=80, toolRequests=[]),
        event("session.shutdown", modelMetrics={"claude-sonnet-4.5": {"usage": {"inputTokens": 2000, "outputTokens": 100, "cacheReadTokens": 1200, "cacheWriteTokens": 0}}}),
    )  # fmt: skip


def gemini_parts() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def call(
        id: str, name: str, args: dict[str, Any], response: dict[str, Any], status: str
    ) -> dict[str, Any]:
        return {
            "id": id,
            "name": name,
            "args": args,
            "status": status,
            "result": [{"functionResponse": {"id": id, "name": name, "response": response}}],
        }

    tokens = {"input": 1000, "output": 40, "cached": 600, "thoughts": 10, "tool": 0, "total": 1050}
    model = {"type": "gemini", "model": "gemini-2.5-pro", "tokens": tokens}
    edit = call("t1", "replace", {"file_path": "/w/shop/src/loom.py"}, {"output": "done"}, "success")
    fail = call("t2", "run_shell_command", {"command": "pytest"}, {"error": "1 failed"}, "error")
    again = call("t3", "run_shell_command", {"command": "pytest"}, {"output": "2 passed"}, "success")
    return {
        "sessionId": "9e",
        "projectHash": "79b6",
        "startTime": at(0),
        "lastUpdated": at(9),
        "directories": ["/w/shop"],
    }, [
        {"id": "u1", "timestamp": at(0), "type": "user", "content": [{"text": "Fix the lööm"}]},
        {"id": "g1", "timestamp": at(1), "content": "", "toolCalls": [edit, fail, again], **model},
        {"id": "i1", "timestamp": at(2), "type": "info", "content": "Update available"},
        {"id": "g2", "timestamp": at(3), "content": "The loom weaves again.", **model},
    ]


def gemini(folder: Path) -> Path:
    fields, messages = gemini_parts()
    file = folder / "session-2026-01-05T10-00-9e.json"
    file.write_text(
        json.dumps({**fields, "messages": messages, "summary": "The loom"}, indent=2, ensure_ascii=False),
        encoding="utf-8",
    )
    return file


def gemini_lines(folder: Path) -> Path:
    fields, messages = gemini_parts()
    return lines(
        folder / "session-2026-01-05T10-00-9e.jsonl", fields, *messages, {"$set": {"lastUpdated": at(9)}}
    )


def opencode(folder: Path) -> Path:
    def message(id: str, role: str, second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "info": {
                "id": id,
                "sessionID": "ses_1",
                "role": role,
                "time": {"created": 1767607200000 + second * 1000, "completed": 1767607209000},
                **more,
            },
            "parts": list(parts),
        }

    def tool(id: str, name: str, given: dict[str, Any], **state: Any) -> dict[str, Any]:
        return {"type": "tool", "callID": id, "tool": name, "state": {"input": given, **state}}

    took = {
        "providerID": "anthropic",
        "modelID": "claude-sonnet-4-5",
        "cost": 0.01,
        "tokens": {"input": 400, "output": 40, "reasoning": 10, "cache": {"read": 600, "write": 5}},
    }
    document = {
        "info": {"id": "ses_1", "projectID": "p", "directory": "/w/shop", "title": "The loom", "time": {"created": 1767607200000, "updated": 1767607209000}},
        "messages": [
            message("msg_1", "user", 0, {"type": "text", "text": "Fix the loom"}, {"type": "text", "text": "[file]", "synthetic": True}),
            message(
                "msg_2", "assistant", 1,
                tool("t1", "edit", {"filePath": "/w/shop/src/loom.py"}, status="completed", output="done"),
                tool("t2", "bash", {"command": "pytest"}, status="error", error="1 failed"),
                tool("t3", "bash", {"command": "pytest"}, status="completed", output="2 passed", metadata={"exit": 0}),
                finish="tool-calls", **took,
            ),
            message("msg_3", "assistant", 2, {"type": "step-start"}, {"type": "text", "text": "The loom weaves again."}, finish="stop", **took),
        ],
    }  # fmt: skip
    file = folder / "export.json"
    file.write_text(json.dumps(document))
    return file


#                 format, model as it is named, in, out, read from a cache, dollars, name
WRITTEN = {
    codex: ("codex", ("openai", "gpt-5-codex"), 800, 100, 1200, 0, None),
    copilot: ("copilot", ("github", "claude-sonnet-4.5"), 800, 100, 1200, 0, None),
    gemini: ("gemini", ("google", "gemini-2.5-pro"), 800, 100, 1200, 0, "The loom"),
    gemini_lines: ("gemini", ("google", "gemini-2.5-pro"), 800, 100, 1200, 0, None),
    opencode: ("opencode", ("anthropic", "claude-sonnet-4-5"), 800, 100, 1200, 0.02, "The loom"),
}


@pytest.mark.parametrize("write", WRITTEN, ids=[write.__name__ for write in WRITTEN])
def test_a_session_of_another_agent_is_a_piece_of_work(
    store: GraphStore, clock: Clock, tmp_path: Path, write: Any
) -> None:
    format, model, went_in, came_out, cached, cost, name = WRITTEN[write]
    clock.set("2026-03-01")
    file = write(tmp_path)

    [report] = sessions.ingest(store, tmp_path, computer="desk").sessions

    assert (report.error, report.new, report.warnings) == (None, 1, ())
    [listed], [work] = sessions.listed(store), sessions.work_on(store, "shop")
    assert (listed.format, listed.name, listed.file) == (format, name, str(file))
    assert (work.title, work.outcome, work.started_at.date()) == (
        "The loom weaves again.",
        "success",
        day("2026-01-05").date(),
    )
    assert work.files[0] == "src/loom.py"
    content = store.node(work.node).content
    [used] = content["observations"]["modelsUsed"]
    assert (used["provider"], used["model"]) == model
    assert (used["tokensInput"], used["tokensOutput"], used["cacheRead"], used["cost"]) == (
        went_in,
        came_out,
        cached,
        cost,
    )
    assert [(each["type"], each["resolved"]) for each in content["content"]["errorsSeen"]] == [
        ("test_failure", True)
    ]
    assert content["content"]["requests"][0].startswith("Fix the l")
    assert sessions.ingest(store, tmp_path).new == sessions.ingest(store, tmp_path).revised == 0


@pytest.mark.parametrize("write", WRITTEN, ids=[write.__name__ for write in WRITTEN])
def test_statistics_count_the_same(tmp_path: Path, write: Any) -> None:
    found = transcripts.statistics(transcripts.read(write(tmp_path)))

    assert (found.format, found.tokens.input, found.tokens.output, found.tokens.cache_read) == (
        WRITTEN[write][0],
        800,
        100,
        1200,
    )
    assert found.tool_errors == 1


def test_a_patch_touches_each_file_it_names(store: GraphStore, clock: Clock, tmp_path: Path) -> None:
    clock.set("2026-03-01")
    codex(tmp_path)
    sessions.ingest(store, tmp_path)

    assert sessions.work_on(store).work[0].files == ("src/loom.py", "docs/loom.md")


def test_a_compaction_of_codex_is_a_cut(tmp_path: Path) -> None:
    file = codex(tmp_path)
    with file.open("a") as more:
        more.write(
            json.dumps(
                {"timestamp": at(20), "type": "compacted", "payload": {"message": "The loom was fixed."}}
            )
            + "\n"
        )
    [cut] = transcripts.boundaries(transcripts.read(file))

    assert (cut.type, cut.metadata["summary"]) == ("compaction", "The loom was fixed.")


def test_a_file_of_no_known_format_is_named(tmp_path: Path) -> None:
    odd = lines(tmp_path / "odd.jsonl", {"speaker": "ana", "says": "hello"})

    done = CliRunner().invoke(app, ["import", "sessions", str(tmp_path / "s.gs"), str(odd)])
    said = " ".join(done.output.split())

    assert done.exit_code == 1

    assert "its format is not known" in said
    assert "codex, copilot, gemini, opencode" in said


NOT_READ = {
    "opencode.db": (b"SQLite format 3\0" + bytes(100), "opencode export"),
    "logs.json": (
        json.dumps([
            {"sessionId": "s", "messageId": 0, "type": "user", "message": "Fix the loom.", "timestamp": at(1)}
        ], indent=2).encode(),
        "the folder `chats`",
    ),
    "checkpoint-loom.json": (json.dumps([{"role": "user", "parts": [{"text": "Fix the loom."}]}]).encode(), "/chat save"),
    "checkpoint-new.json": (
        json.dumps({"history": [{"role": "user", "parts": [{"text": "Fix it."}]}], "authType": "key"}).encode(),
        "/chat save",
    ),
}  # fmt: skip
"""What agents keep that is not read, and what is said of it."""


@pytest.mark.parametrize("name", NOT_READ)
@pytest.mark.parametrize("whole", [False, True], ids=["file", "folder"])
def test_what_an_agent_keeps_that_is_not_read_is_named(tmp_path: Path, name: str, whole: bool) -> None:
    written, told = NOT_READ[name]
    file = tmp_path / "home" / "tmp" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(written)
    (file.parent / "settings.json").write_text('[{"theme": "dark"}]')
    given = tmp_path / "home" if whole else file

    done = CliRunner().invoke(app, ["import", "sessions", str(tmp_path / "s.gs"), str(given)])
    said = " ".join(done.output.split())

    assert done.exit_code == 1
    assert told in said and "is not read" in said and "settings.json" not in said


def test_beside_sessions_what_is_not_read_refuses_nothing(store: GraphStore, tmp_path: Path) -> None:
    gemini(tmp_path)
    (tmp_path / "logs.json").write_bytes(NOT_READ["logs.json"][0])

    done = sessions.ingest(store, tmp_path)

    assert [each.error for each in done.sessions] == [None] and done.new


ODD: list[Any] = [None, 7, [], ["x"], {}, {"x": 1}, "", "x", True]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("write", WRITTEN, ids=[write.__name__ for write in WRITTEN])
def test_nothing_raises_for_what_a_field_holds(tmp_path: Path, write: Any, odd: Any) -> None:
    file = write(tmp_path)
    documents = (
        [json.loads(file.read_text())]
        if file.suffix == ".json"
        else list(map(json.loads, file.read_text().splitlines()))
    )

    def spoiled(value: Any, depth: int) -> Any:
        """Each field at a depth replaced."""
        if isinstance(value, list):
            return [spoiled(each, depth) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            key: odd
            if depth == 0 and key not in ("payload", "data", "messages", "info", "projectHash")
            else spoiled(each, depth - 1)
            for key, each in value.items()
        }

    for depth in range(6):
        spoilt = [spoiled(document, depth) for document in documents]
        file.write_text("\n".join(map(json.dumps, spoilt)))
        found = transcripts.statistics(transcripts.read(file))
        assert found.tokens.total >= 0


# ---- the forms they had before, or keep besides -----------------------------------------------------


def opencode_storage(folder: Path) -> Path:
    """The same session as OpenCode keeps it: a file for the session, for each message and for each part."""
    document = json.loads(opencode(folder).read_text())
    (folder / "export.json").unlink()
    session = folder / "storage" / "session" / "p" / "ses_1.json"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps(document["info"]))
    for message in document["messages"]:
        info = message["info"]
        place = folder / "storage" / "message" / "ses_1" / f"{info['id']}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(info))
        for number, part in enumerate(message["parts"]):
            piece = folder / "storage" / "part" / info["id"] / f"prt_{number}.json"
            piece.parent.mkdir(parents=True, exist_ok=True)
            piece.write_text(json.dumps(part))
    return session


def copilot_timeline(folder: Path) -> Path:
    def done(id: str, name: str, given: dict[str, Any], type: str, log: str) -> dict[str, Any]:
        return {
            "id": id, "timestamp": at(3), "type": "tool_call_completed", "callId": id, "name": name, "toolTitle": name,
            "arguments": given, "result": {"type": type, "log": log},
        }  # fmt: skip

    file = folder / "session_c0_1.json"
    entries = [
        {"id": "1", "timestamp": at(0), "type": "user", "text": "Fix the loom"},
        done(
            "t1", "str_replace_editor", {"command": "create", "path": "/w/shop/src/loom.py"}, "success", "ok"
        ),
        done("t2", "bash", {"command": "pytest"}, "failure", "1 failed"),
        done("t3", "bash", {"command": "pytest"}, "success", "2 passed"),
        {"id": "9", "timestamp": at(9), "type": "copilot", "text": "The loom weaves again."},
    ]
    file.write_text(
        json.dumps({"sessionId": "c0", "startTime": at(0), "chatMessages": [], "timeline": entries}, indent=1)
    )
    return file


def codex_items(folder: Path) -> Path:
    file = folder / "rollout-2025-05-01-c0de.json"
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the loom"}]},
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}), "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": json.dumps({"output": "Done", "metadata": {"exit_code": 0}})},
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["pytest"]}), "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output": json.dumps({"output": "1 failed", "metadata": {"exit_code": 1}})},
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["pytest"]}), "call_id": "c3"},
        {"type": "function_call_output", "call_id": "c3", "output": json.dumps({"output": "2 passed", "metadata": {"exit_code": 0}})},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The loom weaves again."}]},
    ]  # fmt: skip
    file.write_text(
        json.dumps(
            {"session": {"timestamp": at(0), "id": "c0de", "instructions": ""}, "items": items}, indent=2
        )
    )
    return file


@pytest.mark.parametrize(
    "write", [opencode_storage, copilot_timeline, codex_items], ids=lambda each: each.__name__
)
def test_older_forms_and_the_files_of_opencode_are_read(
    store: GraphStore, clock: Clock, tmp_path: Path, write: Any
) -> None:
    clock.set("2026-03-01")
    file = write(tmp_path)

    [report] = sessions.ingest(store, tmp_path, computer="desk").sessions

    assert (report.error, report.new, report.warnings) == (None, 1, ())
    [listed], [work] = sessions.listed(store), sessions.work_on(store)
    assert (listed.file, work.title, work.outcome) == (str(file), "The loom weaves again.", "success")
    assert work.written and work.written[0].endswith("src/loom.py")
    content = store.node(work.node).content["content"]
    assert content["requests"] == ["Fix the loom"]
    assert [(each["type"], each["resolved"]) for each in content["errorsSeen"]] == [("test_failure", True)]
    assert sessions.ingest(store, tmp_path).new == 0


def test_a_file_of_opencode_that_cannot_be_read_is_reported(
    store: GraphStore, clock: Clock, tmp_path: Path
) -> None:
    clock.set("2026-03-01")
    opencode_storage(tmp_path)
    first, *_ = sorted((tmp_path / "storage" / "part").rglob("*.json"))
    first.write_text("{ torn")

    [report] = sessions.ingest(store, tmp_path, computer="desk").sessions

    assert (report.error, report.new, report.warnings) == (None, 1, ("damaged file",))


def test_a_message_of_gemini_that_is_written_again_counts_once_as_it_is_last(
    store: GraphStore, clock: Clock, tmp_path: Path
) -> None:
    clock.set("2026-03-01")
    fields, (asked, called, _, told) = gemini_parts()
    begun = {
        **called,
        "toolCalls": [{**called["toolCalls"][0], "status": "executing", "result": None}],
        "tokens": None,
    }
    file = lines(
        tmp_path / "session-2026-01-05T10-00-9e.jsonl",
        {**fields, "messages": []}, {"$set": {"messages": [asked]}}, begun, called, called, told,
        {"$set": {"summary": "The loom"}},
    )  # fmt: skip

    [report] = sessions.ingest(store, file, computer="desk").sessions

    assert (report.error, report.new, report.warnings) == (None, 1, ())
    [work] = sessions.work_on(store)
    content = store.node(work.node).content
    assert (work.session_name, work.title, work.tokens) == ("The loom", "The loom weaves again.", 900)
    assert [(each["type"], each["resolved"]) for each in content["content"]["errorsSeen"]] == [
        ("test_failure", True)
    ]


def test_a_way_back_in_gemini_leaves_what_came_after(tmp_path: Path) -> None:
    fields, (asked, called, _, told) = gemini_parts()
    again = {**asked, "id": "u2", "timestamp": at(6), "content": "Paint the loom"}
    file = lines(
        tmp_path / "s.jsonl", fields, asked, told, {**called, "id": "g7"}, {"$rewindTo": "g7"}, again
    )
    read = transcripts.read(file)

    assert [cut.type for cut in transcripts.boundaries(read)] == ["tree_jump"]
    assert ["u1", "g2", "g7", "u2"] == [entry.id for entry in read.entries if entry.is_content]
    assert "g2" == read.entry("u2").parent_id
