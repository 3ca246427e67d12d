"""`graphstore mcp` beside others: what its agent asks is passed on to the store's server, and to the next one when that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.cli.agent_pipe import _options
from graphstore.core.folder import server_file
from graphstore.remote.http_client import Connection, Lines

pytest.importorskip("mcp")

pytestmark = pytest.mark.in_process("it starts servers of its own")
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
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: Any, tool: str, /, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "memory.gs"
    with graphstore.open(folder) as store:
        store.add_node("fact", {"text": "first"}, id="first")
    yield folder
    record = server_file.served(folder)
    if record is not None and record["pid"] != os.getpid():
        with suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGTERM)
        ended(folder)


def ended(folder: Path) -> None:
    until = time.monotonic() + 20
    while server_file.holder(folder) is not None and time.monotonic() < until:
        time.sleep(0.02)


def kill(folder: Path) -> None:
    record = server_file.served(folder)
    assert record is not None
    os.kill(record["pid"], signal.SIGKILL)
    ended(folder)


class Agent:
    """A client that writes lines and reads lines."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "graphstore", "mcp", str(folder), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def asked(self, message: dict[str, Any]) -> dict[str, Any]:
        self.send(message)
        return self.answer()


@contextmanager
def agent(folder: Path, *words: str) -> Iterator[Agent]:
    made = Agent(folder, *words)
    try:
        assert made.asked(HELLO)["result"]["serverInfo"]["name"] == "graphstore"
        made.send(READY)
        yield made
    finally:
        made.process.communicate(timeout=30)


class Conversation:
    """The same without a process between: what a server is sent, and answers."""

    def __init__(self, folder: Path, again: int) -> None:
        found = server_file.serving(folder)
        assert found is not None
        self._wire = Connection(*found).wire()
        head = f"POST /mcp/conversation?id=one&again={again} HTTP/1.1\r\n{self._wire.head}Transfer-Encoding: chunked\r\n\r\n"
        self._wire.send(head.encode())
        assert self._wire.begun()[0] == 200

    def tell(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """What is answered to some messages, and then the conversation is over."""
        data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        self._wire.send(b"%x\r\n%b\r\n" % (len(data), data))
        lines, found = Lines(), []

        def take(piece: bytes) -> None:
            found.extend(map(json.loads, lines.of(piece)))
            if len(found) == sum("id" in message for message in messages):
                self._wire.send(b"0\r\n\r\n")

        self._wire.chunks(take)
        return found


def serving(folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "graphstore", "serve", str(folder), "--port", "0", "--no-ticks"]
    made = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while server_file.serving(folder, wait=0) is None and time.monotonic() < until:
        time.sleep(0.02)
    return made


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer has, apart from when it was made."""
    found: dict[str, Any] = answer["result"]["structuredContent"]
    return {name: value for name, value in found.items() if name != "at"}


@pytest.mark.rest
def test_what_was_done_before_the_server_was_killed_is_answered_again_and_not_done_twice(place):
    told = [
        call(7, "remember", statement="the deploy is on friday"),
        call("7", "record_event", type="decision", description="we deploy on friday"),
    ]
    for message in told:
        with serving(place) as first:
            before = Conversation(place, 0).tell(HELLO, READY, message)
            first.kill()
        with serving(place) as second:
            after = Conversation(place, 3).tell(HELLO, READY, message)
            anew = Conversation(place, 0).tell(HELLO, READY, call(8, "schema"))
            second.terminate()
        assert said(before[-1]) == said(after[-1]), message
        assert not anew[-1]["result"].get("isError")
    with graphstore.open(place) as store:
        assert [node.text for node in store.nodes(kind="fact")].count("the deploy is on friday") == 1
        assert [event.count for event in store.events(type="decision")] == [1]
        assert store.node(store.nodes(kind="fact")[-1].id) is not None
        assert "ana" in {change.author for change in store.changes()}


@pytest.mark.rest
def test_it_goes_on_with_another_server_when_that_is_killed(place):
    with agent(place) as asked:
        for turn in range(3):
            found = asked.asked(call(turn + 1, "remember", statement=f"turn {turn} of it"))
            assert found["id"] == turn + 1
            assert not found["result"]["isError"], found
            kill(place)
        found = asked.asked(call("last", "search", query="turn"))
        assert all(f"turn {turn} of it" in found["result"]["content"][0]["text"] for turn in range(3))


@pytest.mark.rest
def test_where_no_server_can_be_had_who_waits_hears_why_and_it_is_tried_again(place):
    with agent(place) as asked:
        kill(place)
        with graphstore.open(place):
            found = asked.asked(call(1, "get", id="first"))
            assert found["id"] == 1
            assert "no other could be had" in found["error"]["message"]
        assert not asked.asked(call(2, "get", id="first"))["result"]["isError"]


@pytest.mark.rest
def test_it_offers_what_a_store_held_alone_offers(place):
    words = ("--tools", "memory,events", "--allow-erase")
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    found = []
    for more in ((), ("--no-share",)):
        with agent(place, *words, *more) as asked:
            found.append(asked.asked(listed)["result"])
        record = server_file.served(place)
        if record is not None:
            os.kill(record["pid"], signal.SIGTERM)
            ended(place)
    assert found[0] == found[1]
    assert "forget" in {tool["name"] for tool in found[0]["tools"]}


@pytest.mark.rest
def test_a_line_of_megabytes_passes_and_so_do_many_at_once(place):
    with agent(place) as asked:
        text = "x" * 3_000_000
        asked.send(*(call(number, "get", id="first") for number in range(100)), call("big", "get", id=text))
        found = {str(asked.answer()["id"]) for _ in range(101)}
        assert found == {*map(str, range(100)), "big"}


@pytest.mark.rest
def test_the_process_imports_neither_the_protocol_nor_the_engine(place):
    with agent(place):  # the server is there
        words = [sys.executable, "-X", "importtime", "-m", "graphstore", "mcp", str(place)]
        done = subprocess.run(words, input=b"", capture_output=True, timeout=60, check=True)
    names = {line.rpartition(b"|")[2].strip() for line in done.stderr.splitlines()}
    assert b"graphstore.remote.http_client" in names
    assert not names & {b"mcp", b"kuzu", b"pydantic", b"typer", b"graphstore.store.store"}


@pytest.mark.rest
def test_a_new_store_is_made(tmp_path):
    place = tmp_path / "below" / "new.gs"
    with agent(place) as asked:
        assert not asked.asked(call(1, "remember", statement="it is new"))["result"]["isError"]
    kill(place)
    with graphstore.open(place) as store:
        assert [node.text for node in store.nodes()] == ["it is new"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["a.gs"], {}),
        (["a.gs", "--tools=graph", "--profile", "memory"], {"tools": "graph", "profile": "memory"}),
        (["a.gs", "--allow-erase"], {"allow_erase": "yes"}),
        (["a.gs", "--tools"], None),
        (["a.gs", "--no-share"], None),
        (["a.gs", "--http", ":0"], None),
        (["a.gs", "b"], None),
    ],
)
def test_other_options_are_for_a_store_of_its_own(words, found):
    assert _options(words) == found


def test_lines_are_made_of_pieces():
    lines = Lines()
    assert lines.of(b"on") == []
    assert lines.of(b"e\ntwo\nthr") == [b"one", b"two"]
    assert lines.rest() == b"thr"
    assert lines.of(b"ee\n") == [b"three"]
    assert lines.rest() == b""
