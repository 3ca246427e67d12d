"""Agents at real doors: a process behind standard input and output, and streamable HTTP over a real socket."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import InvalidError

pytest.importorskip("mcp")
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from graphstore.mcp.transport import address, asgi
from tests.support.agent import agent

pytestmark = [pytest.mark.in_process("its tools ask the store in process"), pytest.mark.rest]

ROOT = Path(__file__).parents[2]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
TOKEN = "open sesame"
ENDLESS = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b)"


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "graphstore", "mcp", *map(str, words)]


def stdio(*words: object) -> Any:
    """A transport to a process that serves over standard input and output."""
    first, *rest = command(*words)
    return stdio_client(StdioServerParameters(command=first, args=rest, cwd=ROOT, env=dict(os.environ)))


def process(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


@contextmanager
def serving(*words: object) -> Iterator[int]:
    """A process that serves over HTTP, by its port; ended by SIGTERM, after which the store must be closed."""
    with process(*words, "--http", "127.0.0.1:0") as served:
        told = served.stderr.readline()
        assert told.startswith("agents are served at http://127.0.0.1:"), told + served.stderr.read()
        try:
            yield int(told.rpartition(":")[2].partition("/")[0])
        finally:
            served.send_signal(signal.SIGTERM)
            _, errors = served.communicate(timeout=20)
        assert 0 == served.returncode, errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """A server behind a token."""
    (folder / "token").write_text(TOKEN + "\n", encoding="utf-8")
    with serving(folder / "http.gs", "--token-file", folder / "token") as opened:
        yield opened


# ---------------------------------------------------------------- standard input and output


def test_a_process_serves_over_stdio_and_keeps_what_it_was_told(folder):
    path = folder / "stdio.gs"
    with agent(stdio(path), "claude-code") as one:
        assert {"search", "remember"} <= one.tools().keys()
        one.ask("remember", statement="sessions", id="old", valid_from="2026-01-01")
        one.ask(
            "remember",
            statement="tokens",
            id="new",
            valid_from="2026-02-01",
            supersedes=["old"],
            reason="scale",
        )
        assert ["new"] == [each["id"] for each in one.ask("what_superseded", id_or_text="old")["current"]]
        assert "no node or event 'nwe'" in one.refused("get", id="nwe")

    with graphstore.open(path, read_only=True) as store:
        assert ["claude-code"] * 2 == [each.author for each in store.changes() if each.verb == "add_node"]


def test_a_reader_follows_what_another_process_writes(folder):
    path = folder / "followed.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "first"}, id="first")
        with agent(stdio(path, "--read-only")) as reader:
            assert "remember" not in reader.tools()
            assert ["first"] == [hit["id"] for hit in reader.ask("search", query="first")["hits"]]
            store.add_node("fact", {"says": "second"}, id="second")
            assert "second" == reader.ask("get", id="second")["thing"]["id"]
            now = datetime.now(UTC).isoformat()  # later than all that was followed
            assert "at" in reader.ask("get", id="first", tx=now)


def test_a_branch_and_the_profile_of_memory_are_chosen_on_the_command_line(folder):
    path = folder / "branch.gs"
    with graphstore.open(path) as store:
        store.branch("idea")
    with agent(stdio(path, "--branch", "idea", "--profile", "memory")) as one:
        assert 9 == len(one.tools())
        one.ask("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": []}])

    with graphstore.open(path, read_only=True) as store:
        assert ([], ["Ada"]) == (store.nodes(), [node.id for node in store.on("idea").nodes()])


def test_ctrl_c_closes_the_store_though_a_client_waits(folder):
    path = folder / "stopped.gs"
    with process(path) as served:
        served.stdin.write(json.dumps(HELLO) + "\n")
        served.stdin.flush()
        assert '"serverInfo"' in served.stdout.readline()
        served.send_signal(signal.SIGINT)
        assert 130 == served.wait(timeout=15)
        assert ("", "interrupted; what was committed is kept.\n") == (
            served.stdout.read(),
            served.stderr.read(),
        )

    assert graphstore.verify(path).ok


def test_standard_output_is_the_protocols_alone(folder):
    path = folder / "pure.gs"
    calls = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    calls += [
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "schema", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "nothing", "arguments": {}}},
    ]
    with process(path) as served:
        served.stdin.write("".join(json.dumps(call) + "\n" for call in calls) + "this is no message\n")
        served.stdin.flush()
        answers = [json.loads(served.stdout.readline()) for _ in range(4)]
        served.stdin.close()
        assert "" == served.stdout.read().partition('{"jsonrpc"')[0]

    assert {1, 2, 3, None} == {answer["id"] for answer in answers}
    assert (0, True) == (served.returncode, graphstore.verify(path).ok)


UNREADABLE = [
    (b'{"jsonrpc":"2.0","id":5}', 5, -32600),
    (b'{"id":6,"method":"ping"}', 6, -32600),
    (b'{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":[1]}', "seven", -32600),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"\\ud800"}}', 8, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    (b'[{"jsonrpc":"2.0","id":9,"method":"ping"}]', None, -32600),
    (b'"no object"', None, -32600),
    (b"{", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b"[" * 100_000, None, -32700),
]


@pytest.fixture(scope="module")
def raw(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was greeted, to send lines to."""
    with subprocess.Popen(
        command(folder / "raw.gs", "--query-seconds", 120), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    ) as served:  # fmt: skip
        ask(served, json.dumps(HELLO).encode())
        yield served
        send(served, query(99, ENDLESS))
        time.sleep(0.3)
        served.stdin.close()  # while a query runs that would take two minutes
        assert (0, b"") == (served.wait(60), served.stderr.read())


def ask(served: subprocess.Popen[bytes], line: bytes, end: bytes = b"\n") -> dict[str, Any]:
    """What a process answers to a line."""
    send(served, line, end)
    found: dict[str, Any] = json.loads(served.stdout.readline())
    return found


def send(served: subprocess.Popen[bytes], line: bytes, end: bytes = b"\n") -> None:
    served.stdin.write(line + end)
    served.stdin.flush()


def query(id: int, text: str) -> bytes:
    asked = {"name": "cypher", "arguments": {"query": text}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": asked}).encode()


@pytest.mark.parametrize(("line", "id", "code"), UNREADABLE, ids=lambda value: str(value)[:40])
def test_what_is_no_message_is_refused_by_its_id(raw, line, id, code):
    answer = ask(raw, line)

    assert (id, code) == (answer["id"], answer["error"]["code"])
    assert answer["error"]["message"].endswith("Send one message a line.")


def test_lines_end_as_on_windows_or_begin_with_a_mark(raw):
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    assert [{}, {}] == [ask(raw, ping, b"\r\n")["result"], ask(raw, b"\xef\xbb\xbf" + ping)["result"]]


def test_a_query_that_is_cancelled_holds_nobody_up(raw):
    send(raw, query(20, ENDLESS))
    time.sleep(0.5)
    asked = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 20}}
    send(raw, json.dumps(asked).encode())
    began = time.monotonic()

    assert 21 == ask(raw, query(21, "RETURN 1 AS one"))["id"]
    assert time.monotonic() - began < 60, "the other query went on to its limit of 120 s"


@pytest.mark.parametrize("how", ["it is stopped", "the client reads no more"])
def test_a_query_that_runs_does_not_keep_the_door_open(folder, how):
    path = folder / "leaving.gs"
    with process(path, "--query-seconds", 120) as served:
        served.stdin.write(json.dumps(HELLO) + "\n")
        served.stdin.flush()
        served.stdout.readline()
        served.stdin.write(query(2, ENDLESS).decode() + "\n")
        served.stdin.flush()
        time.sleep(0.5)
        if how == "it is stopped":
            served.send_signal(signal.SIGTERM)
        else:
            served.stdout.close()
            served.stdin.write('{"jsonrpc":"2.0","id":3,"method":"ping"}\n')
            served.stdin.flush()
        assert 0 == served.wait(60)  # not for the query
        assert "Traceback" not in served.stderr.read()

    assert graphstore.verify(path).ok


def test_a_store_that_another_process_has_open_is_served_too(folder):
    path = folder / "open.gs"
    with graphstore.open(path) as store:
        with agent(stdio(path)) as one:
            one.ask("remember", statement="by an agent", id="agent")
            store.add_node("fact", {}, id="here")
            assert "here" == one.ask("get", id="here")["thing"]["id"]
        assert "agent" == store.node("agent").id


def test_without_the_sdk_it_says_what_to_install(tmp_path):
    without = "import sys\nsys.modules['mcp'] = None\nfrom graphstore.cli.command_line import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", without, "mcp", tmp_path / "x.gs"], capture_output=True, text=True, cwd=ROOT
    )

    assert (1, "error: agents need mcp. Install it: pip install 'graphstore[mcp]'\n") == (
        done.returncode,
        done.stderr,
    )
    assert not (tmp_path / "x.gs").exists()


# ---------------------------------------------------------------- HTTP


def post(port: int, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {TOKEN}",
        **headers,
    }
    connection.request("POST", "/mcp", json.dumps(HELLO), given)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_two_agents_are_served_over_http(port):
    import httpx2

    def at(token: str) -> Any:
        shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
        return streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=shown)

    with agent(at(TOKEN), "ana") as ana, agent(at(TOKEN), "bob", mode="legacy") as bob:
        ana.ask("remember", statement="tea is ready", id="tea")
        bob.ask("remember", statement="coffee is ready", id="coffee")
        assert ["ana", "bob"] == [ana.ask("why", id=thing)["said"][0]["who"] for thing in ("tea", "coffee")]


def test_the_address_gives_scope_user_and_kind(port):
    import httpx2

    shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
    address = f"http://127.0.0.1:{port}/mcp?scope=team%2Fa&user=ann&kind=decision"
    with agent(streamable_http_client(address, http_client=shown), "ana") as ana:
        ana.ask("remember", statement="ships on Friday", id="ship-friday")
        ana.ask("remember", statement="cake on Monday", id="cake-monday", scope="", kind="fact")
        assert ["ship-friday"] == [each["id"] for each in ana.ask("list")["things"]]
        found = ana.ask("get", id="ship-friday")
        assert ("decision", "ann") == (found["thing"]["kind"], found["content"]["user"])


def test_who_shows_no_token_or_another_is_refused(port):
    assert (200, 401, 401) == tuple(
        post(port, Authorization=shown)[0] for shown in (f"Bearer {TOKEN}", "", "Bearer open sesam")
    )


def test_another_host_or_origin_is_refused(port):
    assert (421, 403, 200) == (
        post(port, Host="evil.example")[0],
        post(port, Origin="http://evil.example")[0],
        post(port, Origin=f"http://localhost:{port}")[0],
    )


def test_others_reach_it_only_with_a_token(folder):
    environment = {name: value for name, value in os.environ.items() if name != "GRAPHSTORE_TOKEN"}
    done = subprocess.run(
        command(folder / "open.gs", "--http", "0.0.0.0:0"), capture_output=True, text=True, cwd=ROOT, timeout=30, env=environment,
    )  # fmt: skip

    assert (1, "") == (done.returncode, done.stdout)
    assert "0.0.0.0 can be reached from elsewhere, and no token is asked for." in done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:8765", ("127.0.0.1", 8765)),
        (":8765", ("127.0.0.1", 8765)),
        ("8765", ("127.0.0.1", 8765)),
        ("[::1]:80", ("::1", 80)),
        ("host.example:80", ("host.example", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(text, found):
    assert found == address(text)


@pytest.mark.parametrize("text", ["", "host", "host:", "host:port", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InvalidError, match="is no address"):
        address(text)


def test_it_is_an_application_that_another_can_mount(store):
    assert callable(asgi(store, token="x", profile="memory"))
