"""What an agent is answered with whichever release of the SDK is installed: in its own bytes, without a client of the SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphstore

pytest.importorskip("mcp")

pytestmark = [pytest.mark.rest, pytest.mark.in_process("starts a process")]
ROOT = Path(__file__).parents[2]


class Wire:
    """A process that serves over standard input and output, asked line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._id = process, 0

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer to a request."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        assert self._process.stdout is not None
        while (answer := json.loads(self._process.stdout.readline())).get("id") != self._id:
            assert "method" in answer, answer
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return found


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    path = tmp_path_factory.mktemp("releases") / "s.gs"
    graphstore.open(path).close()
    with subprocess.Popen(
        [sys.executable, "-m", "graphstore", "mcp", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    ) as process:  # fmt: skip
        wire = Wire(process)
        hello = wire.ask(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "ana", "version": "1"},
        )["result"]
        assert ("graphstore", {}) == (hello["serverInfo"]["name"], hello["capabilities"]["completions"])
        assert "This is a memory with two times." in hello["instructions"]
        wire.send({"method": "notifications/initialized"})
        yield wire


def test_tools_are_listed_flat(wire):
    tools = {each["name"]: each for each in wire.ask("tools/list")["result"]["tools"]}

    assert {"type": "object", "properties": {"id": {"type": "string"}, "valid": {"type": "string"}, "tx": {"type": "string"}, "cursor": {"type": "string"}}, "required": ["id"]} == tools["get"]["inputSchema"]  # fmt: skip
    assert {"readOnlyHint": True} == tools["get"]["annotations"]
    assert "forget" not in tools


def test_a_statement_is_kept_found_and_refused_under_the_name_of_the_client(wire):
    kept = wire.call("remember", statement="the office is in Berlin", id="office", tags="places")
    got = wire.call("get", id="office")["structuredContent"]
    refused = wire.call("get", id="ofice")

    assert "new: office" in kept["content"][0]["text"]
    assert ("ana", ["places"]) == (got["thing"]["who"], got["thing"]["tags"])
    assert refused["isError"]
    assert 'call get(id="office")' in refused["content"][0]["text"]
    assert "number" in wire.call("search", query="office", limit=True)["content"][0]["text"]
    assert "has no argument 'idd'" in wire.call("get", idd="x")["content"][0]["text"]


def test_cypher_is_answered(wire):
    wire.call("remember", statement="the kitchen is upstairs", id="kitchen")
    found = wire.call("cypher", query="MATCH (n:Node {id: 'kitchen'}) RETURN n.id")

    assert [["kitchen"]] == found["structuredContent"]["rows"]


def test_resources_prompts_and_completions_are_answered(wire):
    wire.call("remember", statement="the garden is green", id="garden")
    [node] = wire.ask("resources/read", uri="graphstore://node/garden")["result"]["contents"]
    audit = wire.ask("prompts/get", name="audit", arguments={"since": "2d"})["result"]
    unknown = wire.ask("resources/read", uri="graphstore://node/gardn")["error"]
    completed = wire.ask(
        "completion/complete",
        ref={"type": "ref/resource", "uri": "graphstore://node/{id}"},
        argument={"name": "id", "value": "gard"},
    )["result"]["completion"]

    assert "garden" == json.loads(node["text"])["thing"]["id"]
    assert audit["messages"][0]["content"]["text"].startswith("Look this memory through")
    assert -32602 == unknown["code"]
    assert "no node or event 'gardn'" in unknown["message"]
    assert ["garden"] == completed["values"]
    assert ["schema", "brief"] == [each["name"] for each in wire.ask("resources/list")["result"]["resources"]]
    assert 2 == len(wire.ask("resources/templates/list")["result"]["resourceTemplates"])
    assert ["audit", "brief"] == [each["name"] for each in wire.ask("prompts/list")["result"]["prompts"]]


def test_a_client_that_asks_for_the_log_gets_it(wire):
    assert {} == wire.ask("logging/setLevel", level="warning")["result"]
    assert wire.call("get", id="nothing of the kind")["isError"]
