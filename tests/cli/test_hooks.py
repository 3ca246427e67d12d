"""Hooks of coding agents: what is written into whose settings, what goes again, and what the tools run, as processes of their own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

import graphstore
from graphstore.cli import hooks
from graphstore.errors import InvalidError
from graphstore.sessions import sessions
from tests.cli.test_command_line import answer, refused, run
from tests.support.session_files import claude, write

TOOLS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}
ENDS = {"claude-code": "SessionEnd", "codex": "Stop", "gemini": "SessionEnd"}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "continue": {"type": "boolean"}, "stopReason": {"type": "string"}, "suppressOutput": {"type": "boolean"}, "systemMessage": {"type": "string"},
        "hookSpecificOutput": {
            "type": "object", "additionalProperties": False, "required": ["hookEventName"],
            "properties": {"hookEventName": {"const": "SessionStart"}, "additionalContext": {"type": "string", "maxLength": 10_000}},
        },
    },
}  # fmt: skip
"""What the tools read of a hook at the start of a session, as their references have it in common."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own."""
    folder = tmp_path / "home of ana"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_STATE_HOME" if os.name != "nt" else "LOCALAPPDATA", str(folder / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def commands(file: Path) -> dict[str, str]:
    """The command of each event with a hook of graphstore."""
    found = json.loads(file.read_text(encoding="utf-8"))["hooks"]
    return {
        event: handler["command"]
        for event, groups in found.items()
        for group in groups
        for handler in group["hooks"]
        if "graphstore" in handler["command"]
    }


def hooked(command: str, payload: object, **more: str) -> subprocess.CompletedProcess[str]:
    """What a tool does: run the command by the shell, with the payload on standard input."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return subprocess.run(
        command, shell=True, input=text, capture_output=True, text=True, encoding="utf-8", timeout=60, env={**os.environ, **more}, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_install_shows_what_it_wrote_and_uninstall_gives_the_file_back(home: Path, tool: str) -> None:
    file = home / TOOLS[tool]
    file.parent.mkdir()
    before = b'\xef\xbb\xbf{\r\n   "model": "x",\r\n   "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo"}]}]},\r\n   "z": [1,2]\r\n}'
    file.write_bytes(before)
    file.chmod(0o640)

    shown = run("hook", tool, "install", "--user", "--store", home / "my memory.gs")
    written = file.read_bytes()
    again = answer("hook", tool, "install", "--store", home / "my memory.gs")

    assert {"SessionStart", ENDS[tool]} == commands_of(written).keys()
    assert all("my memory.gs" in command for command in commands_of(written).values())
    assert f"--- {file}" in shown and "+" in shown and "has the hooks." in shown
    assert (False, "", written) == (again["changed"], again["diff"], file.read_bytes())
    if os.name == "posix":
        assert 0o640 == file.stat().st_mode & 0o777

    other = answer("hook", tool, "install", "--store", home / "other.gs")
    assert other["changed"] and "my memory.gs" in other["diff"]
    assert 2 == len(
        [line for line in other["diff"].splitlines() if line.startswith("+") and "other.gs" in line]
    )

    assert "has no hooks of graphstore." in run("hook", tool, "uninstall")
    assert before == file.read_bytes()
    assert "already" in run("hook", tool, "uninstall")


def commands_of(raw: bytes) -> dict[str, str]:
    found = json.loads(raw.decode("utf-8-sig"))["hooks"]
    return {
        event: handler["command"]
        for event, groups in found.items()
        for group in groups
        for handler in group["hooks"]
        if "graphstore" in handler["command"]
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_a_project_has_settings_of_its_own_which_are_made_and_go(
    home: Path, tmp_path: Path, tool: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()

    done = answer("hook", tool, "install", "--project", project)

    assert (str(project / TOOLS[tool]), str(project / "memory.gs")) == (done["file"], done["store"])
    assert not (home / TOOLS[tool]).exists()
    run("hook", tool, "uninstall", "--project", project)
    assert not (project / TOOLS[tool]).exists()


@pytest.mark.skipif(os.name == "nt", reason="making links wants a right on Windows")
def test_a_link_to_the_settings_stays_one(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}")
    (home / ".claude").mkdir()
    (home / TOOLS["claude-code"]).symlink_to(real)

    run("hook", "claude-code", "install")

    assert (home / TOOLS["claude-code"]).is_symlink()
    assert commands(real)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("raw", [b'{"hooks": ', b"", b"\n", b'{"a": "\xff"}', b"[]", b'{"hooks": []}', b'{"hooks": {"SessionStart": {}}}'])  # fmt: skip
def test_settings_that_cannot_be_read_are_left_as_they_are(home: Path, tool: str, raw: bytes) -> None:
    file = home / TOOLS[tool]
    file.parent.mkdir()
    file.write_bytes(raw)

    why = refused("hook", tool, "install")

    assert str(file) in why and "Nothing was written" in why
    assert raw == file.read_bytes()


def test_codex_is_not_hooked_beside_a_configuration_that_it_cannot_read(home: Path) -> None:
    config = home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text("[features\n")
    assert f"{config} cannot be read" in refused("hook", "codex", "install")
    assert not (home / TOOLS["codex"]).exists()

    config.write_text("[features]\nhooks = false\n")
    done = answer("hook", "codex", "install")
    assert ["Codex runs a new hook once you trust it: type /hooks in Codex.", "Its config.toml switches hooks off: set hooks = true in [features]."] == done["notes"]  # fmt: skip


def test_one_of_project_and_user_is_named_and_a_tool_that_is_known(home: Path) -> None:
    assert "--project and --user" in refused("hook", "codex", "install", "--user", "--project", home)
    assert "is no folder" in refused("hook", "codex", "install", "--project", home / "none")
    assert "claude-code" in refused("hook", "cursor", "install", code=2)


@pytest.mark.rest
@pytest.mark.parametrize("tool", TOOLS)
def test_a_session_starts_with_the_briefing_and_is_imported_when_it_ends(home: Path, tool: str) -> None:
    store, transcript = home / "my memory.gs", home / "session.jsonl"
    run("hook", tool, "install", "--store", store)
    found = commands(home / TOOLS[tool])
    payload = {
        "session_id": "s",
        "transcript_path": str(transcript),
        "cwd": str(home),
        "hook_event_name": "SessionStart",
    }

    before = json.loads(hooked(found["SessionStart"], payload).stdout)
    assert "There is no memory at" in before["hookSpecificOutput"]["additionalContext"]

    write(transcript, claude("u1", None, 1), claude("u2", "u1", 2, "assistant"))
    began = time.monotonic()
    ended = hooked(found[ENDS[tool]], payload)
    assert (0, {}, "") == (ended.returncode, json.loads(ended.stdout), ended.stderr)
    assert time.monotonic() - began < 10
    while not imported(store) and time.monotonic() - began < 60:
        time.sleep(0.2)
    assert 1 == imported(store)

    with graphstore.open(store) as opened:
        opened.add_node("decision", {"says": "we use Redis"}, id="redis")
        opened.add_node("decision", {"says": "another project", "project": "/else/where"}, id="other")
    started = hooked(found["SessionStart"], payload)
    said = json.loads(started.stdout)
    Draft7Validator(OUTPUT).validate(said)
    text = said["hookSpecificOutput"]["additionalContext"]
    assert 0 == started.returncode
    assert "- redis [decision] we use Redis" in text and "another project" not in text
    assert "since your last visit" in hooked(found["SessionStart"], payload).stdout


def imported(store: Path) -> int:
    if not (store / "ledger.db").exists():
        return 0
    with graphstore.open(store, read_only=True) as opened:
        return len(sessions.listed(opened, every=True))


@pytest.mark.rest
@pytest.mark.parametrize("what", ["start", "end", "import"])
@pytest.mark.parametrize("payload", ["", "{", "[]", '{"cwd": 7, "transcript_path": "/none"}'])
def test_a_hook_never_fails(home: Path, what: str, payload: str) -> None:
    broken = home / "broken.gs"
    broken.mkdir()
    (broken / "ledger.db").write_bytes(b"no database" * 1_000)
    for words in ([str(broken)], [str(home / "none" / "x.gs")], [], ["a", "b", "c", "d"]):
        done = hooked(
            shlex.join([sys.executable, "-m", "graphstore", "hook", "codex", what, *words]), payload
        )

        assert 0 == done.returncode, done.stderr
        assert isinstance(json.loads(done.stdout), dict)
    assert "Traceback" not in done.stderr
    assert f"hook codex {what}: " in hooks.log_file().read_text(encoding="utf-8")


@pytest.mark.rest
def test_a_hook_ends_in_time_though_the_tool_keeps_its_input_open(home: Path) -> None:
    words = [sys.executable, "-m", "graphstore", "hook", "claude-code", "end", str(home / "s.gs")]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as one:
        assert 0 == one.wait(timeout=30)
        assert one.stdout is not None and one.stderr is not None
        assert "{}\n" == one.stdout.read()
        assert "it took more than 5 s" in one.stderr.read()


def test_a_command_is_quoted_for_its_shells() -> None:
    words = ["/opt/my venv/bin/graphstore", "hook", "codex", "start", "/home/ana's/$x.gs"]
    assert words == shlex.split(hooks.command_line(words, is_windows=False))

    on_windows = ["C:\\py\\graphstore.exe", "hook", "gemini", "end", "C:\\Users\\Ana B\\memory.gs"]
    assert 'C:/py/graphstore.exe hook gemini end "C:/Users/Ana B/memory.gs"' == hooks.command_line(
        on_windows, is_windows=True
    )
    for words in (
        ["C:\\a b\\graphstore.exe"],
        ["graphstore", "C:\\$x"],
        ["graphstore", 'a"b'],
        ["graphstore", "50%"],
    ):
        with pytest.raises(InvalidError, match="the shells of Windows read differently"):
            hooks.command_line(words, is_windows=True)
