"""What a server does about those who mean it no good, or know no better."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator

import pytest

from graphstore import GraphStore
from graphstore.remote import calls as contract
from graphstore.server.http_app import Patience, ServerLimits, path_of
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = [pytest.mark.in_process("has a server of its own"), pytest.mark.rest]

SMALL = ServerLimits(body=20_000, upload=0.3, query=0.5, head=8_000, connections=4)


@pytest.fixture
def url(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store, patience=Patience(idle=20, gone=5), limits=SMALL) as served:
        yield served


def call(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    found = b""
    while True:
        try:
            more = connection.recv(1 << 16)
        except ConnectionError:
            return found
        if not more:
            return found
        found += more


# ---------------------------------------------------------------- what comes before a token is asked for


def test_a_head_without_an_end_is_refused(url):
    with call(url) as endless:
        endless.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(20):
            time.sleep(0.002)
            try:
                endless.sendall(b"X: " + b"x" * 1_000 + b"\r\n")
            except ConnectionError:
                break
        found = answered(endless)

    assert found.startswith(b"HTTP/1.1 431 ") or not found


@pytest.mark.parametrize("said", [b"", b"GET /health HTTP/1.1\r\nHo"])
def test_a_head_that_does_not_come_is_not_waited_for(url, said):
    with call(url) as slow:
        slow.sendall(said)
        assert answered(slow).startswith(b"HTTP/1.1 408 " if said else b"")


def test_the_second_head_of_a_connection_is_not_waited_for_either(url):
    with call(url) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
        assert [b"200", b"408"] == [part[:3] for part in answered(slow).split(b"HTTP/1.1 ")[1:]]


def test_a_connection_that_asks_nothing_more_is_kept(url):
    with call(url) as patient:
        for _ in range(2):
            patient.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert patient.recv(4096).startswith(b"HTTP/1.1 200 ")
            time.sleep(3 * SMALL.upload)


def test_there_are_only_so_many_connections(url):
    held = [Wire(url) for _ in range(SMALL.connections)]
    for each in held:
        each.get("/health")
    with call(url) as more:
        assert b"" == answered(more)
    held[0].close()
    while True:
        try:
            assert "ok" == Wire(url).get("/health")["status"]
            break
        except ConnectionError:
            time.sleep(0.01)


@pytest.mark.parametrize("path", ["/add_node", "/no/such/call"])
def test_the_body_of_a_stranger_is_not_read_to_its_end(url, path):
    said = f"Authorization: Bearer {TOKENS.write}\r\n" if path != "/add_node" else ""
    with call(url) as stranger:
        stranger.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{said}Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        found = answered(stranger)

    assert found.split()[1] in (b"401", b"404")
    assert b"connection: close" in found


# ---------------------------------------------------------------- who holds up others


def test_what_is_read_within_a_transaction_has_its_time_too(url, wire):
    token = wire.post("/transaction")["transaction"]
    status, told, _ = wire.ask(
        "POST", f"/query?transaction={token}", {"cypher": "RETURN size(range(1, 3000000))"}
    )
    assert (400, True) == (status, "stopped" in told["message"])
    calls = [["query", {"cypher": "RETURN size(range(1, 3000000))"}]]
    assert 400 == wire.ask("POST", f"/batch?transaction={token}", {"calls": calls})[0]
    wire.post(f"/transaction/{token}/commit")


def test_who_hangs_up_while_waiting_for_a_transaction_holds_up_nobody(disk_store, url, wire):
    first = wire.post("/transaction")["transaction"]
    with call(url) as waiting:
        waiting.sendall(
            f"POST /transaction HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS.write}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        time.sleep(0.1)
    time.sleep(0.1)
    wire.post(f"/transaction/{first}/commit")
    start = time.monotonic()
    wire.post("/add_node", fact("n1"))

    assert time.monotonic() - start < 2
    assert ["n1"] == [node.id for node in disk_store.nodes()]


# ---------------------------------------------------------------- what would be ignored, or makes no sense


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/add_node?tx=2020-01-01", fact("n1")),
        ("POST", "/add_node?valid=2020-01-01", fact("n1")),
        ("POST", "/add_node?as_of=then", fact("n1")),
        ("POST", "/add_node?author=", fact("n1")),
        ("POST", "/batch?tx=2020-01-01", {"calls": []}),
        ("POST", "/batch?answer=ids", {"calls": []}),
        ("POST", "/batch", {"calls": "add_node"}),
        ("POST", "/batch", {"calls": 5}),
        ("POST", "/batch", {}),
        ("POST", "/batch", {"calls": [[["add_node"], {}]]}),
        ("POST", "/transaction?reason=x", {}),
        ("POST", "/transaction?transaction=x", {}),
        ("POST", "/transaction/x/commit?tx=2020-01-01", {}),
        ("GET", "/nodes?as_of=then&tx=2026-02-01", None),
        ("GET", "/stats?as_of=then", None),
        ("GET", "/info", None),
        ("GET", "/node?id=%ff", None),
    ],
)
def test_what_would_be_ignored_is_refused(disk_store, wire, method, path, body):
    disk_store.snapshot("then")
    status, told, _ = wire.ask(method, path, body)

    assert (422, "InvalidError") == (status, told["error"])
    assert [] == disk_store.nodes()


def test_text_beyond_ascii_may_stand_in_an_address(disk_store, wire):
    disk_store.add_node("fact", {}, id="größe")

    assert "größe" == wire.get("/node?id=gr%C3%B6%C3%9Fe")["id"]


# ---------------------------------------------------------------- where there is no network


def test_the_page_of_calls_needs_nothing_from_elsewhere(url):
    status, page, headers = Wire(url, None).ask("GET", "/docs")
    text = page.decode()

    assert (200, "text/html; charset=utf-8") == (status, headers["content-type"])
    assert "default-src 'none'" in headers["content-security-policy"]
    assert [] == re.findall(r"https?://|<script|<link|<img|@import|url\(", text)
    for call in contract.CALLS.values():
        assert f"<code>{path_of(call)}</code> <span class={call.scope}>" in text
