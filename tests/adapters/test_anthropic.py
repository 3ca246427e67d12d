"""The memory tool on a store answers as the SDK's own does on files, and keeps every state."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

pytest.importorskip("anthropic.lib.tools", reason="the package anthropic is not installed")

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from graphstore.adapters.anthropic import AsyncMemoryTool, MemoryTool

pytestmark = pytest.mark.served

NOTES = "/memories/notes.md"


def told(tool, command, **named):
    """What the model is told."""
    try:
        return tool.call({"command": command, **named})
    except ToolError as error:
        return str(error)


def but_sizes_of_folders(said):
    """The file system says how large a folder's own entry is."""
    first = re.sub(r"(?<=hidden items:\n)\S+", "", said)
    return re.sub(r"^\S+(?=\t.*/$)", "", first, flags=re.MULTILINE)


def test_it_answers_as_the_tool_on_files_that_the_sdk_ships(store, tmp_path):
    """Random commands to both. Each folder keeps one file: an empty folder is none here."""
    chance = random.Random(11)
    ours, theirs = MemoryTool(store), BetaLocalFilesystemMemoryTool(str(tmp_path))
    for folder in ("a", "a/b", "c"):
        for tool in (ours, theirs):
            told(tool, "create", path=f"/memories/{folder}/stays", file_text="é" * 700)
    paths = [
        "/memories/x.md", "/memories/a/x-v2", "/memories/a/b/y", "/memories/a/.hidden", "/memories/c/z ü", "/memories/a",
        "/memories", "/memories/none", "/etc/passwd", "/memories/../up", "/memories/a/../w", "/memories/a/stays",
    ]  # fmt: skip
    texts = ["", "one\n", "one\ntwo\nthree\n", "two two", "a\r\nb\u2028c\n\n", "x" * 2000 + "\nlast"]
    for turn in range(250):
        path, text = chance.choice(paths), chance.choice(texts)
        command, named = chance.choice(
            [
                ("view", {"path": path}),
                ("view", {"path": path, "view_range": [chance.randrange(4), chance.choice([-1, 2, 3])]}),
                ("create", {"path": path, "file_text": text}),
                (
                    "str_replace",
                    {"path": path, "old_str": chance.choice(["two", "one\n", "o"]), "new_str": "2\n3"},
                ),
                ("insert", {"path": path, "insert_line": chance.randrange(-1, 4), "insert_text": "in\n"}),
                ("delete", {"path": path}),
                ("rename", {"old_path": path, "new_path": chance.choice(paths)}),
            ]
        )
        where = named.get("old_path", path)
        if command in ("delete", "rename") and where in ("/memories/a", "/memories/a/stays"):
            continue
        if "/memories/../up" in named.values() and command == "rename":
            continue
        said = [but_sizes_of_folders(told(tool, command, **named)) for tool in (ours, theirs)]
        assert said[0] == said[1], (turn, command, named)


def test_every_edit_is_a_version_and_what_is_deleted_can_be_viewed(store, clock):
    tool = MemoryTool(store)
    told(tool, "create", path=NOTES, file_text="auth: sessions\n")
    before = clock.now
    clock.move(days=1)
    told(tool, "str_replace", path=NOTES, old_str="sessions", new_str="JWT")
    clock.move(days=1)
    told(tool, "delete", path=NOTES)

    assert [version.content["text"] for version in store.history(NOTES)] == [
        "auth: sessions\n",
        "auth: JWT\n",
    ]
    assert "does not exist" in told(tool, "view", path=NOTES)
    past = tool.as_of(valid=before)
    assert "1\tauth: sessions" in told(past, "view", path=NOTES)
    assert "viewed only" in told(past, "delete", path=NOTES)
    assert told(tool, "create", path=NOTES, file_text="again") == f"File created successfully at: {NOTES}"


def test_a_renamed_file_supersedes_the_old_one_and_may_go_back(store, clock):
    tool = MemoryTool(store)
    told(tool, "create", path="/memories/old/a", file_text="A")
    told(tool, "create", path="/memories/old/b", file_text="B")
    for old, new in (("old", "new"), ("new", "old"), ("old", "new")):
        clock.move(days=1)
        assert "Successfully" in told(
            tool, "rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}"
        )

    assert [node.id for node in store.nodes("memory_file")] == ["/memories/new/a", "/memories/new/b"]
    assert "inside itself" in told(tool, "rename", old_path="/memories/new", new_path="/memories/new/er")
    first = store.as_of(valid="2026-02-02")
    assert [step.node.id for step in first.what_superseded("/memories/old/a").chain] == ["/memories/new/a"]


def test_scopes_keep_apart_and_a_failed_command_writes_nothing(store):
    ana, ben = MemoryTool(store, scope="ana"), MemoryTool(store, scope="ben")
    told(ana, "create", path=NOTES, file_text="ana's")
    told(ben, "create", path=NOTES, file_text="ben's")
    known = store.stats()["transactions"]

    assert "ana's" in told(ana, "view", path=NOTES) and "ben's" in told(ben, "view", path=NOTES)
    assert "is a file" in told(ana, "create", path=f"{NOTES}/below", file_text="x")
    assert "surrogates not allowed" in told(ana, "create", path="/memories/bad", file_text="\ud800")
    assert known == store.stats()["transactions"]
    assert ana.clear_all_memory() == "All memory cleared"
    assert "ben's" in told(ben, "view", path=NOTES)


def test_the_async_tool_says_the_same(store):
    tool = AsyncMemoryTool(store)

    async def story():
        await tool.call({"command": "create", "path": NOTES, "file_text": "tea"})
        shown = await tool.call({"command": "view", "path": NOTES})
        await tool.clear_all_memory()
        return shown, await tool.call({"command": "view", "path": "/memories"})

    shown, after = asyncio.run(story())

    assert shown.endswith("     1\ttea") and after.endswith("0B\t/memories")
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
