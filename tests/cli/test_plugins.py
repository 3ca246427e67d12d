"""The plugin folders have the layout that the tools expect, and name commands that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.cli import hooks

PLUGINS = Path(__file__).parents[2] / "plugins"
FOLDERS = {"claude-code": ".claude-plugin/plugin.json", "gemini": "gemini-extension.json"}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("tool", FOLDERS)
def test_a_manifest_names_the_plugin_and_this_release(tool: str) -> None:
    manifest = read(PLUGINS / tool / FOLDERS[tool])

    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", manifest["name"])
    assert graphstore.__version__ == manifest["version"]
    assert manifest["description"]


@pytest.mark.parametrize("tool", FOLDERS)
def test_the_hooks_are_those_that_install_writes(tool: str) -> None:
    found = read(PLUGINS / tool / "hooks" / "hooks.json")["hooks"]

    assert {"SessionStart", hooks.TOOLS[tool].end} == set(found)
    for event, what in (("SessionStart", "start"), (hooks.TOOLS[tool].end, "end")):
        [group] = found[event]
        [handler] = group["hooks"]
        assert f'graphstore hook {tool} {what} "$HOME/memory.gs"' == handler["command"]
        assert ("command", 15 * hooks.TOOLS[tool].second) == (handler["type"], handler["timeout"])
        written = hooks.settings_with_hooks("", tool, "$HOME/memory.gs")
        [[own]] = [each["hooks"] for each in json.loads(written)["hooks"][event]]
        assert own.keys() == handler.keys()


@pytest.mark.parametrize(
    ("tool", "file"), [("claude-code", ".mcp.json"), ("gemini", "gemini-extension.json")]
)
def test_the_server_of_agents_is_an_entry(tool: str, file: str) -> None:
    [server] = read(PLUGINS / tool / file)["mcpServers"].values()

    assert {"command": "graphstore", "args": ["mcp", "${HOME}/memory.gs", "--record-reads"]} == server


def test_the_marketplace_lists_the_folder() -> None:
    market = read(PLUGINS / ".claude-plugin" / "marketplace.json")
    [plugin] = market["plugins"]

    assert plugin["name"] == read(PLUGINS / plugin["source"] / FOLDERS["claude-code"])["name"]
    assert market["name"] and market["owner"]["name"]


@pytest.mark.rest
@pytest.mark.parametrize(("program", "words"), [
    ("claude", ["plugin", "validate", str(PLUGINS / "claude-code")]), ("claude", ["plugin", "validate", str(PLUGINS)]),
    ("gemini", ["extensions", "validate", str(PLUGINS / "gemini")]),
])  # fmt: skip
def test_the_tools_own_validators_agree(
    program: str, words: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.run([found, *words], capture_output=True, text=True, timeout=120, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
