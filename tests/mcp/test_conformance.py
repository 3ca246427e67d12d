"""The official conformance suite of the protocol against a server of ours, and what it does not ask."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphstore

pytest.importorskip("mcp")

pytestmark = [pytest.mark.rest, pytest.mark.in_process("it starts a server of its own")]
SUITE = "@modelcontextprotocol/conformance@0.1.13"
BY_NAME = frozenset(
    {
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-with-logging",
        "tools-call-with-progress",
        "tools-call-sampling",
        "tools-call-elicitation",
        "json-schema-2020-12",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "server-sse-polling",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
    }
)
"""Scenarios that ask for a tool, a resource or a prompt of the suite's own, by its name."""
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "ana", "version": "1"},
    },
}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    place = folder / "memory.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"n": 1}, id="first")
    command = [sys.executable, "-m", "graphstore", "mcp", str(place), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("conformance")) as address:
        yield address


def test_what_asks_for_no_test_tool_by_name_passes(url, tmp_path):
    assert shutil.which("npm"), "npm is needed: apt-get install npm"
    installed = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), SUITE]
    subprocess.run(installed, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    run = ["npx", "--offline", "conformance", "server", "--url", url]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    found = dict(re.findall(r"^[^\w\n]+ ([\w-]+): \d+ passed, (\d+) failed", done.stdout, re.MULTILINE))
    failed = {name for name, count in found.items() if int(count)}

    assert len(found) > 20, done.stdout[-2000:] + done.stderr[-2000:]
    assert failed <= BY_NAME, failed - BY_NAME
    assert {
        "server-initialize",
        "ping",
        "logging-set-level",
        "completion-complete",
        "tools-list",
    } <= found.keys()


def post(url: str, body: bytes, session: str | None = None) -> tuple[int, dict[str, Any], Any]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers["Mcp-Session-Id"] = session
    asked = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=30) as reply:
            text = reply.read().decode()
            found = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
            return reply.status, json.loads(found[-1] if found else text or "{}"), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), error.headers


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'[{"jsonrpc":"2.0","id":9,"method":"ping"}]', -32600),
        (b'"no object"', -32600),
        (b"{", -32700),
        (b"", -32700),
    ],
)
def test_what_is_no_message_is_answered_over_http_too(url, body, code):
    status, answer, _ = post(url, body)
    assert (status, answer["error"]["code"], answer["id"]) == (400, code, None)


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2024-11-05", "2024-11-05"), ("2025-03-26", "2024-11-05"), ("2025-06-18", "2025-06-18")],
)
def test_the_version_that_demands_batches_is_not_agreed_on(url, asked, given):
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": asked}}
    _, answer, _ = post(url, json.dumps(hello).encode())
    assert answer["result"]["protocolVersion"] == given


def test_kinds_are_completed_and_a_slow_query_tells_that_it_goes_on(tmp_path):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import ResourceTemplateReference

    place = tmp_path / "memory.gs"
    with graphstore.open(place) as store:
        for number in range(2_000):
            store.add_node("fact", {"n": number})
        store.record_event("incident", "it is down")
    told: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def talk() -> tuple[Any, Any, Any]:
        how = StdioServerParameters(command=sys.executable, args=["-m", "graphstore", "mcp", str(place)])
        async with stdio_client(how) as streams, ClientSession(*streams) as session:
            await session.initialize()
            by_kind = ResourceTemplateReference(type="ref/resource", uri="graphstore://kind/{kind}")
            kinds = await session.complete(by_kind, {"name": "kind", "value": ""})
            read = await session.read_resource("graphstore://kind/incident")
            slow = "MATCH (a:Node), (b:Node), (c:Node) WHERE a.n + b.n + c.n = -1 RETURN count(*)"
            began = time.monotonic()
            found = await session.call_tool("cypher", {"query": slow}, progress_callback=progressed)
            return kinds.completion.values, read.contents[0].text, (found, time.monotonic() - began)

    kinds, read, (_, took) = asyncio.run(talk())
    assert kinds == ["fact", "incident"]
    assert "it is down" in read
    assert told == sorted(told)
    assert len(told) >= int(took) - 1 > 0, (told, took)
