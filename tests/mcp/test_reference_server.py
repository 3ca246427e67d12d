"""The profile of memory beside the reference memory server itself, as it is published: random calls to both, and the same graph in both."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

import graphstore

mcp = pytest.importorskip("mcp")
from tests.support.agent import Agent  # noqa: E402

pytestmark = [pytest.mark.rest, pytest.mark.in_process("starts two processes")]
SERVER = "@modelcontextprotocol/server-memory@2026.8.31"
NAMES = ["Alice", "Bob", "Acme Corp", "x", "X", "ü ber", "a/b", "evt_1", "n-v2", "1", 'the "quoted"']
TYPES = ["person", "company", "", "thing of x", "Fact!"]
TEXTS = ["likes tea", "LIKES TEA", "works at Acme", "", "ä\nb", "x" * 50, "1"]
KINDS = ["knows", "works_at", "Works At", "is-a", "supersedes", "causes", "KNOWS", "contradicts", "", "親"]
QUERIES = ["a", "tea", "ACME", "x", "ü", "", "person", "knows", "zz", '"']


def call(chance: random.Random, names: set[str]) -> tuple[str, dict[str, Any]]:
    """A random call. A relation is only of entities that are there: of others the release makes one that leads nowhere."""

    def one() -> str:
        return chance.choice(NAMES)

    def relation(among: list[str]) -> dict[str, str]:
        return {
            "from": chance.choice(among),
            "to": chance.choice(among),
            "relationType": chance.choice(KINDS),
        }

    match chance.choice(["entity", "entity", "relate", "relate", "add", "add", "gone", "less", "apart", "read", "find", "find", "open"]):  # fmt: skip
        case "entity":
            new = [{"name": each, "entityType": chance.choice(TYPES), "observations": chance.sample(TEXTS, 2)}
                   for each in chance.sample(NAMES, 2)]  # fmt: skip
            return "create_entities", {"entities": new}
        case "relate":
            there = sorted(names)
            return "create_relations", {"relations": [relation(there) for _ in range(2)] if there else []}
        case "add":
            return "add_observations", {
                "observations": [{"entityName": one(), "contents": chance.sample(TEXTS, 2)}]
            }
        case "gone":
            return "delete_entities", {"entityNames": [one()]}
        case "less":
            return "delete_observations", {
                "deletions": [{"entityName": one(), "observations": [chance.choice(TEXTS)]}]
            }
        case "apart":
            return "delete_relations", {"relations": [relation(NAMES)]}
        case "find":
            return "search_nodes", {"query": chance.choice(QUERIES)}
        case "open":
            return "open_nodes", {"names": [one(), one()]}
        case _:
            return "read_graph", {}


def alike(found: Any) -> Any:
    """An answer but for the order of its lists of objects."""
    if isinstance(found, dict):
        return {name: alike(value) for name, value in found.items() if name != "skipped"}
    if isinstance(found, list) and found and isinstance(found[0], dict):
        return sorted(map(alike, found), key=repr)
    return found


def test_random_calls_leave_the_same_graph_in_both(tmp_path):
    assert shutil.which("npm"), "npm is needed: apt-get install npm"
    installed = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), SERVER]
    subprocess.run(installed, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    main = tmp_path / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
    theirs = mcp.StdioServerParameters(
        command="node",
        args=[str(main)],
        env={**os.environ, "MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")},
    )
    ours = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "graphstore", "mcp", str(tmp_path / "memory.gs"), "--profile", "memory"],
        env={**os.environ, "PYTHONPATH": str(Path(graphstore.__file__).parents[1])},
    )
    chance, one, two = random.Random(23), mcp.Client(theirs), mcp.Client(ours)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(one),
        portal.wrap_async_context_manager(two),
    ):
        reference, profile = Agent(portal, one), Agent(portal, two)
        assert reference.tools().keys() == profile.tools().keys()
        names: set[str] = set()
        for turn in range(300):
            tool, arguments = call(chance, names)
            expected, given = reference.call(tool, **arguments), profile.call(tool, **arguments)
            assert expected.is_error == given.is_error, (turn, tool, arguments)
            if not given.is_error and not tool.startswith("delete"):  # ours says what was not there
                assert alike(expected.structured_content) == alike(given.structured_content), (turn, tool, arguments)  # fmt: skip
            whole = reference.ask("read_graph")
            assert alike(whole) == alike(profile.ask("read_graph")), (turn, tool, arguments)
            names = {each["name"] for each in whole["entities"]}
