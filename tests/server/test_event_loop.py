"""The event loop of a server: nothing in it takes longer than 20 ms, whatever is asked; who shows no token, or does not read, is let go."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import orjson
import pytest

import graphstore
from graphstore import GraphStore
from graphstore.errors import InvalidError
from graphstore.server import requests
from graphstore.server.dispatch import ServerLimits
from graphstore.server.group_commit import Patience
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = [pytest.mark.rest, pytest.mark.in_process("it is a server itself")]

MOST = 0.020
QUICK = ServerLimits(stranger=0.5, strangers=3, streams=2, exports=1, stalled=0.5)


def filled() -> GraphStore:
    """Many names, a hub of many links, and one thing with many versions."""
    store = graphstore.open(":memory:")
    nodes = [{"id": f"n{number:06}", "kind": "fact"} for number in range(60_000)]
    versions = [{"node_id": node["id"], "content": {"n": 1}, "valid_from": "2026-01-01"} for node in nodes]
    links = [
        {"source": f"n{number:06}", "kind": "relates_to", "target": "n000000"} for number in range(1, 5_000)
    ]
    store.bulk_load(nodes=nodes, versions=versions, links=links)
    with store.transaction():
        for day in range(1, 400):
            store.revise("n000001", {"n": day}, valid_from=f"{1600 + day}-01-01", reason="again")
    return store


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[GraphStore, str, list[tuple[float, str]]]]:
    """A server whose steps are timed by the processor time of the loop's own thread."""
    took: list[tuple[float, str]] = []
    plain = asyncio.Handle._run

    def timed(self):
        start = time.thread_time()
        plain(self)
        took.append((time.thread_time() - start, repr(self)[:300]))

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        with filled() as store, serve_in_thread(store, loop="asyncio") as url:
            Wire(url, TOKENS.write).get("/openapi.json")
            yield store, url, took
    finally:
        asyncio.Handle._run = plain  # type: ignore[method-assign]


LONG = "x" * 60_000
REQUESTS = {
    "an unknown id": ("GET", "/node?id=n06", None),
    "a long unknown id": ("GET", f"/node?id={LONG}", None),
    "an id of a megabyte": ("POST", "/node", {"id": "x" * 1_000_000}),
    "a long path": ("GET", "/" + LONG, None),
    "a query of many parameters": ("GET", "/node?" + "a&" * 30_000, None),
    "a query of long values": ("GET", "/nodes?kind=" + "%41" * 20_000, None),
    "a hub": ("GET", "/backlinks_to?id=n000000", None),
    "the end of a hub": ("GET", "/links_from?id=n000002", None),
    "a long history": ("GET", "/versions?id=n000001", None),
    "everything": ("GET", "/nodes", None),
    "what superseded": ("GET", "/what_superseded?id=n000001", None),
    "the pages": ("GET", "/docs", None),
    "the document": ("GET", "/openapi.json", None),
    "the metrics": ("GET", "/metrics", None),
    "a dump": ("GET", "/export", None),
    "a body of five megabytes": (
        "POST", "/batch", lambda: {"calls": [["touch", {"ids": [f"n{number:06}"]}] for number in range(100_000)] + [["nothing", {}]]},
    ),
    "a long list": ("POST", "/node", {"id": list(range(400_000))}),
    "a deep list": ("POST", "/node", b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no JSON": ("POST", "/node", b"{" * 2_000_000),
}  # fmt: skip


@pytest.mark.parametrize("what", REQUESTS)
def test_nothing_takes_longer_than_twenty_milliseconds_in_the_loop(busy, what):
    _, url, took = busy
    method, path, body = REQUESTS[what]
    took.clear()
    Wire(url, TOKENS.write).ask(method, path, body() if callable(body) else body)

    longest = max(took)
    assert longest[0] < MOST, longest


def test_others_are_answered_while_a_large_body_is_read():
    calls = [["add_node", {"kind": "fact", "content": {"n": number, "x": 0.5}}] for number in range(60_000)]
    body = orjson.dumps({"calls": calls})
    found = []
    reader = threading.Thread(target=lambda: found.append(requests.arguments(body)))
    reader.start()
    turns = 0
    while reader.is_alive():
        time.sleep(0)
        turns += 1
    assert found == [{"calls": calls}]
    assert turns > 5, "one thread had the interpreter for itself"


def test_a_large_body_is_read_as_a_small_one():
    for text in (
        '{"a": 1}',
        '{"a": [1.5, -2e3, true, null, "é\\u00e9"]}',
        '{"n": 123456789012345678901}',
    ):
        padded = (text + " " * requests._WHOLE).encode()
        assert requests.arguments(text.encode()) == requests.arguments(padded)
    for text in (
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": 1,}',
        '{"a": 1, "a": 2}',
        '{"a": "\n"}',
        "[" * 100_000,
        "\ufeff{}",
    ):
        for padded in (text, text + " " * requests._WHOLE):
            with pytest.raises((InvalidError, requests.Refused)):
                requests.arguments(padded.encode())


# ---------------------------------------------------------------- strangers, and who does not read


@pytest.fixture
def url(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store, limits=QUICK, patience=Patience(idle=0.5)) as served:
        yield served


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes it within half a minute."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True


@pytest.mark.parametrize(
    "said", [b"", b"GET /health HTTP/1.1\r\nHost: local", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
def test_who_shows_no_token_is_let_go_in_seconds(url, said):
    with connected(url) as stranger:
        stranger.sendall(said)
        start = time.monotonic()
        assert is_closed(stranger)
        assert time.monotonic() - start < 20


def test_who_has_shown_a_token_stays(url):
    wire = Wire(url, TOKENS.read)
    wire.get("/nodes")
    time.sleep(1.5)  # three times as long as a stranger may be silent
    connection = wire._connection.sock
    wire.get("/nodes")

    assert connection is not None
    assert connection is wire._connection.sock


def test_an_address_has_few_connections_without_a_token(url):
    known = Wire(url, TOKENS.read)
    known.get("/nodes")
    strangers = [connected(url) for _ in range(6)]
    late = Wire(url, TOKENS.read)
    late.get("/nodes")  # there is room for who shows a token
    for stranger in strangers[:2]:
        assert is_closed(stranger)
    known.get("/nodes")
    for stranger in strangers:
        stranger.close()


def test_streams_and_exports_are_counted_by_token(url, disk_store):
    head = (
        "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n"
    )
    streams = [connected(url) for _ in range(2)]
    for stream in streams:
        stream.sendall(head.format("/changes", TOKENS.read).encode())
        assert b"200" in stream.recv(100)
    status, told, headers = Wire(url, TOKENS.read).ask("GET", "/changes", Accept="text/event-stream")
    assert (429, "Busy", "30") == (status, told["error"], headers["retry-after"])
    with connected(url) as other:
        other.sendall(head.format("/changes", TOKENS.write).encode())
        assert b"200" in other.recv(100)
    for stream in streams:
        stream.close()


def test_who_does_not_read_its_export_is_cut_off_and_leaves_nothing(url, disk_store, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    disk_store.add_node("fact", {"says": "x" * 30_000_000}, id="large")
    with connected(url) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(
            f"GET /export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS.read}\r\n\r\n".encode()
        )
        assert b"200" in slow.recv(20)
        assert 429 == Wire(url, TOKENS.read).ask("GET", "/export")[0]
        until(lambda: not list(tmp_path.glob("graphstore-*")))
    assert 200 == Wire(url, TOKENS.read).ask("GET", "/export")[0]


# ---------------------------------------------------------------- who holds a transaction


def test_one_that_holds_a_transaction_and_does_nothing_holds_the_others_for_its_time_alone(url):
    holder = Wire(url, TOKENS.write)
    held = holder.post("/transaction")["transaction"]
    start = time.monotonic()
    Wire(url, TOKENS.write).post("/add_node", fact("n1"))

    assert time.monotonic() - start < 20
    status, told, _ = Wire(url, TOKENS.write).ask("POST", f"/add_node?transaction={held}", fact("n2"))
    assert (409, True) == (status, "nothing came for 0.5 s" in told["message"])


def test_who_waits_for_a_transaction_is_served_in_the_order_they_came(url):
    first = Wire(url, TOKENS.write)
    held = first.post("/transaction")["transaction"]
    order: list[int] = []

    def wait(number: int) -> None:
        wire = Wire(url, TOKENS.write)
        token = wire.post("/transaction")["transaction"]
        order.append(number)
        wire.post(f"/transaction/{token}/commit")

    waiting = []
    for number in range(4):
        waiting.append(threading.Thread(target=wait, args=(number,)))
        waiting[-1].start()
        until(
            lambda number=number: (
                b"graphstore_writes_waiting %d" % (number + 1) in Wire(url, TOKENS.write).get("/metrics")
            )
        )
    first.post(f"/transaction/{held}/commit")
    for each in waiting:
        each.join(30)
    assert [0, 1, 2, 3] == order


def test_a_transaction_that_only_reads_holds_up_nobody(url, disk_store):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    wire = Wire(url, TOKENS.read)
    begun = wire.post("/transaction", {"read_only": True})
    token = begun["transaction"]
    assert {"n": 1} == wire.get(f"/node?id=n1&transaction={token}")["content"]
    Wire(url, TOKENS.write).post("/revise", {"id": "n1", "content": {"n": 2}})  # waits for nobody
    assert {"n": 1} == wire.get(f"/node?id=n1&transaction={token}")["content"]
    assert {"n": 2} == wire.get("/node?id=n1")["content"]
    status, told, _ = Wire(url, TOKENS.write).ask("POST", f"/add_node?transaction={token}", fact("n2"))
    assert (409, True) == (status, "only reads" in told["message"])
    wire.post(f"/transaction/{token}/commit")


def until(holds, seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never did"
        time.sleep(0.02)
