"""A store over HTTP: every call by its name, who is let in, what is too much, transactions, batches, changes as they come, what is asked twice."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson
import pyarrow
import pytest

from graphstore import GraphStore, Node
from graphstore.ledger.tokens import StoreTokens
from graphstore.remote import calls as contract
from graphstore.server.http_app import Patience, ServerLimits
from graphstore.server.requests import Gate, Refused, apart
from graphstore.values.period import instant
from tests.conftest import after, day
from tests.support.disk import edit
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")

EXACT = "application/vnd.graphstore.exact+json"
ARROW = "application/vnd.apache.arrow.stream"
HASTY = Patience(idle=0.3, gone=0.1, whole=2.0)
SMALL = ServerLimits(body=20_000, upload=0.3, query=0.5, read=5, write=1, streams=1, waiting_writes=3)


@pytest.fixture
def url(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store, patience=HASTY, limits=SMALL) as served:
        yield served


# ---------------------------------------------------------------- calls


def test_a_write_is_answered_with_what_the_method_gives(disk_store, wire):
    told = wire.post("/add_node", fact("auth", valid_from="2026-01-10"))

    assert orjson.loads(disk_store.node("auth").model_dump_json()) == told
    assert "2026-01-10T00:00:00Z" == told["valid_from"]
    assert told["valid_to"] is None


def test_a_read_by_get_is_the_read_by_post(disk_store, wire):
    for id in ("n1", "n2"):
        disk_store.add_node("fact", {"n": id}, id=id, tags=["seen"])
    disk_store.link("n1", "related_to", "n2", strength=4)

    assert wire.post("/links_from", {"id": "n1", "kinds": ["related_to"], "strength": 4}) == wire.get(
        "/links_from?id=n1&kinds=related_to&strength=4"
    )
    assert ["n1", "n2"] == [node["id"] for node in wire.get("/nodes?kind=fact&tag=seen")]


def test_a_read_says_the_coordinate_it_was_answered_at(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    clock.move(hours=1)
    _, _, now = wire.ask("GET", "/node?id=n1")
    _, _, then = wire.ask("GET", "/nodes?valid=2026-01-01&tx=2026-02-01")

    assert ("2026-02-01T01:00:00Z", "2026-02-01T00:00:00Z") == (
        now["graphstore-valid"],
        now["graphstore-tx"],  # the last that was told
    )
    assert ("2026-01-01T23:59:59.999999Z", "2026-02-01T00:00:00Z") == (
        then["graphstore-valid"],
        then["graphstore-tx"],
    )


def test_a_read_at_a_coordinate_sees_what_was_believed_then(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1", valid_from="2026-01-01")
    clock.move(days=1)
    disk_store.revise("n1", {"n": 2})

    assert {"n": 1} == wire.get("/node?id=n1&tx=2026-02-01T12:00:00Z")["content"]
    assert {"n": 2} == wire.get("/node?id=n1")["content"]


def test_reads_that_name_no_coordinate_do_not_move_the_next_instant(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    clock.move(hours=1)
    wire.get("/nodes")
    wire.get("/node?id=n1")

    assert after(3600) == disk_store.add_node("fact", {"n": 2}).tx_from


def test_what_a_read_said_it_knew_is_never_added_to(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    clock.move(hours=1)
    _, found, said = wire.ask("GET", "/nodes")
    wire.post("/add_node", fact("n2"))
    clock.move(hours=-2)
    wire.post("/add_node", fact("n3"))
    pinned = f"valid={said['graphstore-valid']}&tx={said['graphstore-tx']}"

    assert found == wire.get(f"/nodes?{pinned}")
    assert ["n1", "n2", "n3"] == [node["id"] for node in wire.get("/nodes?valid=2027-01-01")]


def test_a_read_knows_what_it_says_it_knows_while_others_write(disk_store, url):
    done = threading.Event()

    def write() -> None:
        other = Wire(url)
        for number in range(300):
            other.post("/add_node", fact(f"n{number}"))
        done.set()

    writing = threading.Thread(target=write)
    writing.start()
    reading = Wire(url)
    while not done.is_set():
        _, found, said = reading.ask("GET", "/nodes")
        known = instant(said["graphstore-tx"])
        assert all(instant(node["tx_from"]) <= known for node in found)
        pinned = f"valid={said['graphstore-valid']}&tx={said['graphstore-tx']}"
        assert found == reading.get(f"/nodes?{pinned}")
    writing.join()


def test_a_coordinate_that_is_asked_for_is_pinned(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 0})
    at = wire.post("/as_of", {"valid": "2026-01-01"})

    assert {"valid": "2026-01-01T23:59:59.999999Z", "tx": "2026-02-01T00:00:00Z"} == at
    assert clock.now + timedelta(microseconds=1) == disk_store.add_node("fact", {"n": 1}).tx_from


def test_a_snapshot_is_a_coordinate_by_its_name(disk_store, clock, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    disk_store.snapshot("before")
    clock.move(days=1)
    disk_store.revise("n1", {"n": 2})

    assert {"n": 1} == wire.get("/node?id=n1&as_of=before")["content"]


def test_a_branch_is_read_and_written_by_its_name(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    wire.post("/branch", {"name": "idea"})
    wire.post("/add_node?branch=idea", fact("n2"))

    assert ["n1", "n2"] == [node["id"] for node in wire.get("/nodes?branch=idea")]
    assert ["n1"] == [node.id for node in disk_store.nodes()]


def test_who_writes_is_said_beside_the_arguments(disk_store, wire):
    wire.post("/add_node?author=ada", fact("n1"))
    wire.post("/add_node", fact("n2"))
    wire.post("/evict?author=bob", {"ids": ["n2"]})

    assert ["ada", None, "bob"] == [change.author for change in disk_store.changes()]


def test_a_transaction_is_taken_back(disk_store, wire):
    wire.post("/add_node", fact("old", key="day"))
    wire.post("/add_node", fact("new", key="day"))
    (*_, change) = wire.post("/changes", {})
    undone = wire.post("/undo?author=ana", {"tx": change["tx"], "reason": "another project"})

    assert ("undo", change["tx"], "ana") == (undone["verb"], undone["subject"], undone["author"])
    assert ["old"] == [node["id"] for node in wire.get("/nodes?key=day")]
    assert "undo" == wire.post("/undo", {"tx": undone, "reason": "it was this one"})["verb"]
    assert ["new"] == [node["id"] for node in wire.get("/nodes?key=day")]
    status, refused, _ = wire.ask("POST", "/undo", {"tx": "2001-01-01", "reason": "x"})
    assert (404, "NotFoundError") == (status, refused["error"])


def test_fields_change_and_an_end_is_open_again_over_the_wire(disk_store, wire):
    wire.post("/add_node", fact("auth", valid_from="2026-01-10", valid_to="2026-02-10"))
    wire.post("/amend", {"id": "auth", "patch": {"by": "ana"}, "if_number": 1})
    content = {**disk_store.history("auth")[0].content, "n": 9}
    wire.post(
        "/revise", {"id": "auth", "content": content, "valid_to": "open", "minor": True, "if_number": 2}
    )

    assert "ana" == disk_store.node("auth").content["by"]
    assert disk_store.node("auth").valid_to is None
    status, refused, _ = wire.ask("POST", "/end", {"id": "auth", "if_number": 1})
    assert (409, "ConflictError") == (status, refused["error"])


def test_the_rows_of_a_link_are_told_over_the_wire(disk_store, wire):
    for id in ("n1", "n2"):
        wire.post("/add_node", fact(id))
    wire.post(
        "/link",
        {
            "source": "n1",
            "kind": "uses",
            "target": "n2",
            "valid_from": "2026-01-01",
            "valid_to": "2026-02-01",
        },
    )
    wire.post("/link", {"source": "n1", "kind": "uses", "target": "n2", "valid_from": "2026-03-01"})

    for told in (
        wire.get("/link_history?source=n1&kind=uses&target=n2"),
        wire.post("/link_history", {"source": "n1", "kind": "uses", "target": "n2"}),
    ):
        assert ["2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"] == [row["valid_from"] for row in told]


def test_a_room_has_its_calls_under_its_name(disk_store, wire):
    wire.post("/memory/remember", {"text": "the deploy day is friday", "layer": "conversation"})
    found = wire.post("/recall/recall", {"text": "deploy", "k": 3})

    assert ["the deploy day is friday"] == [hit["node"]["text"] for hit in found["hits"]]


def test_a_query_has_its_parameters_apart(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    asked = {"cypher": "MATCH (n:Node) WHERE n.id = $id RETURN n.id AS id", "params": {"id": "n1"}}

    assert [{"id": "n1"}] == wire.post("/query", asked)["rows"]
    _, table, _ = wire.ask("POST", "/query", asked, Accept=ARROW)
    assert [{"id": "n1"}] == pyarrow.ipc.open_stream(table).read_all().to_pylist()


def test_exact_answers_are_what_the_method_gives(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    call = contract.CALLS["inspect"]
    _, data, found = wire.ask("POST", "/inspect", {"id": "n1"}, Accept=EXACT)

    assert EXACT == found["content-type"]
    assert disk_store.inspect("n1") == contract.decode(call, data)


def test_bulk_load_takes_arrow_streams_one_after_the_other(disk_store, wire):
    nodes = pyarrow.table({"id": ["n1", "n2"], "kind": ["fact"] * 2})
    versions = pyarrow.table({"node_id": ["n1", "n2"], "content": ['{"n":1}', '{"n":2}']})
    links = pyarrow.table({"source": ["n1"], "kind": ["related_to"], "target": ["n2"]})
    sink = pyarrow.BufferOutputStream()
    for table in (nodes, versions, links):
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    body = sink.getvalue().to_pybytes()

    loaded = wire.post("/bulk_load?tables=nodes,versions,links", body, Content_Type=ARROW)
    assert (2, 1) == (loaded["nodes"], loaded["links"])
    assert ["n2"] == [link.target for link in disk_store.links_from("n1")]
    status, told, _ = wire.ask("POST", "/bulk_load?tables=nodes,verbs", body, Content_Type=ARROW)
    assert (422, "InvalidError") == (status, told["error"])


def test_the_dump_is_a_stream(disk_store, wire, tmp_path):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    disk_store.export(tmp_path / "dump.jsonl")

    assert (tmp_path / "dump.jsonl").read_bytes() == wire.get("/export")


# ---------------------------------------------------------------- errors

ERRORS = [
    ("node", {"id": "nothing"}, 404, "NotFoundError"),
    ("node", {}, 422, "InvalidError"),
    ("node", {"id": "n1", "colour": 1}, 422, "InvalidError"),
    ("add_node", {"kind": "fact", "content": {}, "id": "n1"}, 409, "ConflictError"),
    ("add_node", {"kind": "fact", "content": 3}, 422, "InvalidError"),
    ("query", {"cypher": "CREATE (n)"}, 400, "QueryError"),
    ("node?tx=2030-01-01", {"id": "n1"}, 422, "InvalidError"),
    ("node?colour=red", {"id": "n1"}, 422, "InvalidError"),
    ("node?branch=none", {"id": "n1"}, 404, "NotFoundError"),
    ("node?transaction=none", {"id": "n1"}, 409, "ConflictError"),
    ("transaction/none/commit", {}, 409, "ConflictError"),
    ("stats?valid=2026-01-01", {}, 422, "InvalidError"),
]


@pytest.mark.parametrize(("path", "body", "status", "error"), ERRORS, ids=lambda value: str(value)[:40])
def test_an_error_keeps_its_class_and_its_words(disk_store, wire, path, body, status, error):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    got, told, _ = wire.ask("POST", f"/{path}", body)

    assert (status, error) == (got, told["error"])
    assert {"error", "message"} == told.keys()
    assert told["message"]


def test_what_is_unknown_or_no_json_is_refused(wire):
    status, told, _ = wire.ask("POST", "/add_nod", {})
    assert (404, "NotFoundError") == (status, told["error"])
    assert "'/add_node'" in told["message"]
    assert 405 == wire.ask("GET", "/add_node?kind=fact")[0]
    assert 405 == wire.ask("DELETE", "/node?id=n1")[0]
    assert 422 == wire.ask("POST", "/node", b"{")[0]
    assert 422 == wire.ask("POST", "/node", b"[1]")[0]
    assert 422 == wire.ask("POST", "/node?branch=a&branch=b", {"id": "n1"})[0]


def test_what_nobody_foresaw_is_an_error_without_its_traceback(disk_store, wire, monkeypatch):
    def broken(self: Any, kind: str | None = None) -> None:
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr(type(disk_store), "nodes", broken)
    status, told, _ = wire.ask("GET", "/nodes")

    assert (500, "EngineError") == (status, told["error"])
    assert "Traceback" not in told["message"]


# ---------------------------------------------------------------- who is let in


def test_without_a_token_only_what_says_nothing_of_the_store_is_open(url):
    stranger = Wire(url, None)

    assert {"status", "name", "version"} == stranger.get("/health").keys()
    assert "add_node" in str(stranger.get("/openapi.json"))
    for path in ("/nodes", "/metrics", "/changes", "/export", "/nothing"):
        status, told, found = stranger.ask("GET", path)
        assert (401, "Unauthorized", "Bearer") == (status, told["error"], found["www-authenticate"]), path


@pytest.mark.parametrize("said", ["Bearer wrong", "Bearer ", "Basic abc", "bearer", TOKENS.write])
def test_a_token_that_is_not_known_opens_nothing(url, said):
    assert 401 == Wire(url).ask("GET", "/nodes", Authorization=said)[0]


def test_the_token_for_reading_reads_and_writes_nothing(disk_store, url, tmp_path):
    reader = Wire(url, TOKENS.read)

    assert [] == reader.get("/nodes")
    asked = [
        ("/add_node", fact("n1")),
        ("/batch", {"calls": []}),
        ("/transaction", {}),
        ("/memory/remember", {"text": "x", "layer": "soul"}),
    ]
    for path, body in asked:
        status, told, _ = reader.ask("POST", path, body)
        assert (403, "Forbidden") == (status, told["error"]), path
    assert 0 == disk_store.stats()["transactions"]


def test_the_token_for_metrics_opens_these_alone(disk_store, url):
    measuring = Wire(url, TOKENS.metrics)

    assert b"graphstore_store_nodes 0" in measuring.get("/metrics")
    for method, path in [("GET", "/nodes"), ("POST", "/add_node"), ("GET", "/export"), ("GET", "/changes"), ("POST", "/mcp"), ("GET", "/nothing")]:  # fmt: skip
        assert (403, "Forbidden") == (lambda told: (told[0], told[1]["error"]))(
            measuring.ask(method, path)
        ), path


def test_a_store_without_a_token_for_metrics_lets_nobody_in_by_none():
    assert None is StoreTokens("w" * 30, "r" * 30).scope(b"")


def test_a_call_that_names_a_file_wants_the_token_for_writing(url):
    call = next(call for call in contract.CALLS.values() if call.scope == "read" and call.files)
    args = dict.fromkeys(call.required, "/etc/hostname")
    status, told, _ = Wire(url, TOKENS.read).ask("POST", "/" + call.name.replace(".", "/"), args)

    assert (403, "Forbidden") == (status, told["error"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_name_for_this_machine_is_not_let_in(url, host):
    status, told, _ = Wire(url).ask("GET", "/health", Host=host)

    assert (403, "Forbidden") == (status, told["error"])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:7464", "[::1]:7464"])
def test_the_names_of_this_machine_are_let_in(url, host):
    assert "ok" == Wire(url).get("/health", Host=host)["status"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_from_elsewhere_is_not_let_in(url, origin):
    assert 403 == Wire(url).ask("GET", "/nodes", Origin=origin)[0]


def test_a_page_of_its_own_and_one_that_was_named_are_let_in(url):
    wire = Wire(url)
    gate = Gate(["Store.Example"], ["https://notes.example/"])

    assert [] == wire.get("/nodes", Origin=url)
    gate.check({b"host": b"store.example:80", b"origin": b"https://notes.example"})
    with pytest.raises(Refused, match="may not ask here"):
        gate.check({b"host": b"store.example:80", b"origin": b"https://other.example"})


def test_a_server_that_is_read_only_writes_nothing(disk_store):
    with serve_in_thread(disk_store, read_only=True) as url:
        for path in ("/add_node", "/batch", "/transaction"):
            assert 403 == Wire(url).ask("POST", path, fact("n1") if path == "/add_node" else {})[0]
        assert [] == Wire(url).get("/nodes")


# ---------------------------------------------------------------- limits


def test_a_request_that_is_too_large_is_refused_before_it_is_read(wire):
    status, told, _ = wire.ask("POST", "/add_node", fact("n1", text="x" * 30_000))

    assert (413, "TooLarge") == (status, told["error"])


def test_a_request_that_never_says_how_large_it_is_is_refused_when_it_is(url):
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    head = {"Authorization": f"Bearer {TOKENS.write}"}
    connection.request("POST", "/add_node", iter([b"x" * 9_000] * 4), head, encode_chunked=True)

    assert 413 == connection.getresponse().status


def test_a_request_that_does_not_come_whole_is_given_up(url):
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as slow:
        head = f"POST /node HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKENS.write}\r\nContent-Length: 100\r\n\r\n"
        slow.sendall(head.encode() + b'{"id":')
        assert b"504" in slow.recv(4096).split(b"\r\n")[0]


def test_a_query_that_takes_too_long_is_stopped(disk_store, wire):
    with disk_store.transaction():
        for number in range(60):
            disk_store.add_node("fact", {"n": number})
    slow = "MATCH (a:Node), (b:Node), (c:Node), (d:Node), (e:Node) RETURN sum(a.number + b.number + c.number + d.number + e.number) AS n"
    start = time.monotonic()
    status, told, _ = wire.ask("POST", "/query", {"cypher": slow})

    assert (400, "QueryError") == (status, told["error"])
    assert "stopped after 0.5 s" in told["message"]
    assert time.monotonic() - start < 5


def test_a_query_is_stopped_after_the_time_that_is_asked_for(wire):
    slow = {"cypher": "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b)"}

    told = [wire.ask("POST", f"/query?seconds={seconds}", slow)[1]["message"] for seconds in ("0.1", "60")]
    assert ["the query was stopped after 0.1 s.", "the query was stopped after 0.5 s."] == [
        message.partition(" Narrow")[0] for message in told
    ]
    assert {422} == {
        wire.ask("POST", f"/query?seconds={each}", slow)[0] for each in ("0", "-1", "nan", "soon")
    }


def test_a_slow_query_holds_up_neither_writes_nor_reads(disk_store, url):
    with disk_store.transaction():
        for number in range(60):
            disk_store.add_node("fact", {"n": number})
    slow = "MATCH (a:Node), (b:Node), (c:Node), (d:Node), (e:Node) RETURN sum(a.number + b.number + c.number + d.number + e.number) AS n"
    asking = threading.Thread(target=lambda: Wire(url).ask("POST", "/query", {"cypher": slow}))
    asking.start()
    time.sleep(0.1)
    wire, done = Wire(url), 0
    while asking.is_alive() and done < 20:
        wire.post("/add_node", fact(f"n{done}"))
        wire.get(f"/node?id=n{done}")
        done += 1
    asking.join(10)

    assert 20 == done


def test_what_waits_for_too_long_is_given_up_and_never_done(disk_store, url):
    token = Wire(url).post("/transaction")["transaction"]
    stop = threading.Event()
    keeping = threading.Thread(target=_keep_busy, args=(url, token, stop))
    keeping.start()
    status, told, found = Wire(url).ask("POST", "/add_node", fact("late"))
    stop.set()
    keeping.join(10)

    assert (504, "TooLate") == (status, told["error"])
    assert "retry-after" in found
    assert 404 == Wire(url).ask("GET", "/node?id=late")[0]


def _keep_busy(url: str, token: str, stop: threading.Event) -> None:
    wire = Wire(url)
    while not stop.wait(0.05):
        wire.ask("GET", f"/at?transaction={token}")
    wire.ask("POST", f"/transaction/{token}/abort")


# ---------------------------------------------------------------- asked again


def test_if_match_names_the_version_that_is_expected(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    disk_store.revise("n1", {"n": 2})
    revised = {"id": "n1", "content": {"n": 3}}

    status, refused, _ = wire.ask("POST", "/revise", revised, If_Match='"1"')
    assert (409, "ConflictError") == (status, refused["error"])
    assert "version 2 holds now: 'n: 2'" in refused["message"]
    assert 3 == wire.post("/revise", revised, If_Match='"2"')["number"]
    for path, body, match in (
        ("/revise", revised, '"x"'),
        ("/revise", {**revised, "if_number": 3}, '"4"'),
        ("/add_node", fact("auth"), '"1"'),
    ):
        assert 422 == wire.ask("POST", path, body, If_Match=match)[0]


def test_a_write_that_is_sent_again_is_done_once(disk_store, wire):
    asked = {"kind": "fact", "content": {"n": 1}}
    first = wire.post("/add_node", asked, Graphstore_Request="r1")
    again = wire.post("/add_node", asked, Graphstore_Request="r1")
    other = wire.post("/add_node", asked, Graphstore_Request="r2")

    assert first == again
    assert first["id"] != other["id"]
    assert 2 == disk_store.stats()["transactions"]


def test_one_that_is_sent_again_while_it_is_done_waits_for_the_same_answer(disk_store, url):
    holder = Wire(url)
    token = holder.post("/transaction")["transaction"]
    answers: list[Any] = []
    asked = {"kind": "fact", "content": {"n": 1}}
    sending = [
        threading.Thread(
            target=lambda: answers.append(Wire(url).post("/add_node", asked, Graphstore_Request="r1"))
        )
        for _ in range(2)
    ]
    for thread in sending:
        thread.start()
    time.sleep(0.1)
    holder.post(f"/transaction/{token}/abort")
    for thread in sending:
        thread.join(10)

    assert answers[0] == answers[1]
    assert 1 == disk_store.stats()["transactions"]


def test_a_commit_that_is_sent_again_says_that_it_was_committed(disk_store, wire):
    token = wire.post("/transaction")["transaction"]
    wire.post(f"/add_node?transaction={token}", fact("n1"))

    assert wire.post(f"/transaction/{token}/commit", Graphstore_Request="c1") is None
    assert wire.post(f"/transaction/{token}/commit", Graphstore_Request="c1") is None


def test_one_id_for_two_calls_is_two_requests(disk_store, wire):
    wire.post("/add_node", fact("n1"), Graphstore_Request="r1")
    wire.post("/confirm", {"id": "n1", "reason": "seen"}, Graphstore_Request="r1")

    assert 2 == disk_store.stats()["transactions"]


def test_what_failed_is_tried_anew(disk_store, wire):
    assert 404 == wire.ask("POST", "/end", {"id": "n1"}, Graphstore_Request="r1")[0]
    disk_store.add_node("fact", {"n": 1}, id="n1", valid_from="2026-01-01")

    assert 200 == wire.ask("POST", "/end", {"id": "n1"}, Graphstore_Request="r1")[0]


# ---------------------------------------------------------------- many at once


def test_a_batch_is_one_transaction_and_answers_each_call(disk_store, wire):
    calls = [
        ["add_node", fact("old", valid_from="2026-01-01")],
        ["add_node", fact("new")],
        ["supersede", {"old": "old", "by": "new"}],
        ["end", {"id": "new", "at": "2027-01-01"}],
    ]
    answers = wire.post("/batch", {"calls": calls, "author": "ada", "reason": "moved"})

    assert ["old", "new"] == [answer["id"] for answer in answers[:2]]
    assert ("supersedes", None) == (answers[2][0]["kind"], answers[3])
    assert 1 == disk_store.stats()["transactions"]
    assert {("ada", "moved")} == {(change.author, change.reason) for change in disk_store.changes()}


def test_a_service_tells_of_a_deploy_in_its_own_words(disk_store, wire):
    payload = {
        "deployment": {"id": 42, "sha": "1a2b3c4d5e", "ref": "main"},
        "deployment_status": {
            "state": "success",
            "environment": "production",
            "created_at": "2026-01-01T00:00:00Z",
        },
    }
    first, again = (wire.post("/webhooks/deploy", payload) for _ in range(2))
    payload["deployment_status"]["state"] = "failure"

    assert (True, False) == (first["is_new"], again["is_new"])
    assert None is wire.post("/webhooks/deploy", {**payload, "deployment": {"id": 43}})
    assert ["deploy"] == [event.type for event in disk_store.events()]


def test_a_batch_may_answer_ids_alone(disk_store, wire):
    calls = [["add_node", fact("n1")], ["record_event", {"type": "deploy", "description": "d", "id": "e1"}]]
    calls.append(["supersede", {"old": "n1", "by": "e1"}])
    calls.append(["confirm", {"id": "e1", "reason": "seen"}])
    answers = wire.post("/batch?answers=ids", {"calls": calls})

    link = disk_store.links_from("e1", "supersedes")[0].id
    assert ["n1", "e1", [link], None] == answers


def test_of_the_nodes_of_a_batch_whose_ids_are_answered_alone_none_is_made(disk_store, wire, monkeypatch):
    made, make = [], Node.made.__func__
    monkeypatch.setattr(Node, "made", classmethod(lambda cls, fields: made.append(cls) or make(cls, fields)))
    names = [f"n{number}" for number in range(5)]

    assert names == wire.post("/batch?answers=ids", {"calls": [["add_node", fact(id)] for id in names]})
    assert [] == made


@pytest.mark.parametrize(
    ("wrong", "status"),
    [(["end", {"id": "zz"}], 404), (["no_call", {}], 422), (["end", {}], 422), ("end", 422)],
)
def test_a_batch_with_a_wrong_call_leaves_nothing_and_says_which(disk_store, wire, wrong, status):
    got, told, _ = wire.ask("POST", "/batch", {"calls": [["add_node", fact("n1")], wrong]})

    assert status == got
    assert "call 1" in told["message"]
    assert [] == disk_store.nodes()


def test_a_transaction_over_the_wire_sees_itself_and_shows_when_it_is_committed(disk_store, wire, clock):
    begun = wire.post("/transaction", {"author": "ada", "reason": "why"})
    token = begun["transaction"]
    wire.post(f"/add_node?transaction={token}", fact("n1"))

    assert "2026-02-01T00:00:00Z" == begun["tx"]
    assert ["n1"] == [node["id"] for node in wire.get(f"/nodes?transaction={token}")]
    assert [] == wire.get("/nodes")
    wire.post(f"/batch?transaction={token}", {"calls": [["add_node", fact("n2")]]})
    wire.post(f"/transaction/{token}/commit")
    assert ["n1", "n2"] == [node["id"] for node in wire.get("/nodes")]
    assert {"ada"} == {change.author for change in disk_store.changes()}


@pytest.mark.rest
def test_the_death_of_its_client_aborts_a_transaction(disk_store, url):
    client = Wire(url)
    token = client.post("/transaction")["transaction"]
    client.post(f"/add_node?transaction={token}", fact("n1"))
    start = time.monotonic()
    client.close()
    Wire(url).post("/add_node", fact("n2"))

    assert time.monotonic() - start < HASTY.idle
    assert ["n2"] == [node.id for node in disk_store.nodes()]
    status, told, _ = Wire(url).ask("POST", f"/add_node?transaction={token}", fact("n3"))
    assert (409, True) == (status, "its client has gone" in told["message"])


def test_a_transaction_that_another_connection_took_up_goes_on(disk_store, url):
    first, second = Wire(url), Wire(url)
    token = first.post("/transaction")["transaction"]
    second.post(f"/add_node?transaction={token}", fact("n1"))
    first.close()
    time.sleep(2 * HASTY.gone)
    second.post(f"/transaction/{token}/commit")

    assert ["n1"] == [node.id for node in disk_store.nodes()]


# ---------------------------------------------------------------- changes as they come


class Stream:
    """What a server tells as it happens."""

    def __init__(self, url: str, path: str = "/changes", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        told = {"Authorization": f"Bearer {TOKENS.read}", "Accept": "text/event-stream"}
        self._connection.request(
            "GET", path, headers=told | {key.replace("_", "-"): value for key, value in headers.items()}
        )
        self.response = self._connection.getresponse()

    def next(self) -> tuple[str, list[str]]:
        """The id of the next transaction, and the subjects of what it did."""
        id = data = ""
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            id, data = (value, data) if name == "id" else (id, value) if name == "data" else (id, data)
        return id, [change["subject"] for change in orjson.loads(data)]

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def test_changes_come_by_the_transaction_and_go_on_where_they_were(disk_store, wire, url, clock):
    disk_store.add_node("fact", {"n": 0}, id="n0")
    stream = Stream(url)
    assert ("2026-02-01T00:00:00Z", ["n0"]) == stream.next()
    clock.move(seconds=1)
    wire.post("/batch", {"calls": [["add_node", fact("n1")], ["add_node", fact("n2")]]})
    last, subjects = stream.next()
    assert ["n1", "n2"] == subjects
    stream.close()
    clock.move(seconds=1)
    wire.post("/add_node", fact("n3"))
    wire.post("/add_node", fact("n4"))
    resumed = _when_there_is_room(lambda: Stream(url, Last_Event_ID=last))

    assert [["n3"], ["n4"]] == [resumed.next()[1] for _ in range(2)]
    resumed.close()


def _when_there_is_room(opening: Any) -> Stream:
    """The server sees that a stream was left a moment later than the one who left it."""
    for _ in range(100):
        stream: Stream = opening()
        if stream.response.status == 200:
            return stream
        assert 503 == stream.response.status
        stream.close()
        time.sleep(0.02)
    raise AssertionError("the stream that was left still counts")


@pytest.mark.parametrize("since", ["now", "2026-02-01"])
def test_changes_may_begin_later(disk_store, wire, url, clock, since):
    disk_store.add_node("fact", {"n": 0}, id="n0")
    clock.move(seconds=1)
    stream = Stream(url, f"/changes?since={since}")
    wire.post("/add_node", fact("n1"))

    assert ["n1"] == stream.next()[1]
    stream.close()


def test_a_long_past_comes_in_parts_and_whole_transactions(disk_store, url, monkeypatch):
    monkeypatch.setattr("graphstore.server.http_app._AT_ONCE", 3)
    for size in (1, 2, 5, 1, 1, 4):
        with disk_store.transaction():
            for _ in range(size):
                disk_store.add_node("fact", {})
    told = disk_store.changes()
    parts = [disk_store._changes(None, most) for most in (1, 2, 3, 4, 100)]
    stream = Stream(url)

    assert [told[:1], told[:3], told[:3], told[:8], told] == parts
    assert [1, 2, 5, 1, 1, 4] == [len(stream.next()[1]) for _ in range(6)]
    stream.close()


def test_there_are_only_so_many_streams(url):
    first = Stream(url)

    assert 429 == Stream(url).response.status
    first.close()


def test_changes_without_a_stream_are_those_of_the_store(disk_store, wire):
    disk_store.add_node("fact", {"n": 0}, id="n0")

    assert ["n0"] == [change["subject"] for change in wire.get("/changes")]
    assert [] == wire.get("/changes?since=2026-02-01")


def test_streams_end_when_the_server_stops(disk_store):
    with serve_in_thread(disk_store) as url:
        stream = Stream(url)

    assert b"" == stream.response.read()


# ---------------------------------------------------------------- what it says of itself


def test_metrics_show_the_write_lock_checkpoints_and_the_wal(disk_store, wire):
    def shown(name):
        return next(
            float(line.split()[1])
            for line in wire.get("/metrics").decode().splitlines()
            if line.startswith(f"graphstore_{name} ")
        )

    wire.post("/add_node", fact("n1"))
    before = shown("write_lock_seconds_count"), shown("checkpoints_total"), shown("wal_bytes")
    wire.post("/add_node", fact("n2"))
    edit(disk_store.path, "PRAGMA wal_checkpoint")

    assert (before[0] + 1, before[1] + 1) == (shown("write_lock_seconds_count"), shown("checkpoints_total"))
    assert shown("wal_bytes") == (disk_store.path / "ledger.db-wal").stat().st_size > before[2] > 0
    assert 0 < shown("write_lock_seconds_sum") and 0 == shown("write_lock_refused_total")
    assert shown('write_lock_seconds_bucket{le="+Inf"}') == shown("write_lock_seconds_count")


def test_metrics_count_requests_and_groups(disk_store, wire):
    wire.post("/add_node", fact("n1"))
    wire.ask("POST", "/node", {"id": "nothing"})
    text = wire.get("/metrics").decode()

    for line in (
        'graphstore_requests_total{call="add_node",status="200"} 1',
        'graphstore_requests_total{call="node",status="404"} 1',
        'graphstore_request_seconds_count{call="add_node"} 1',
        "graphstore_group_writes_count 1",
        "graphstore_writes_waiting 0",
        "graphstore_store_nodes 1",
        "graphstore_transaction_open 0",
    ):
        assert line in text.splitlines(), line


def test_what_stands_apart_in_a_query_is_read_once():
    assert apart(b"") == apart(b"")
    assert ("2026-01-01", "idea", (("kinds", "a"), ("kinds", "b"))) == (
        (found := apart(b"valid=2026-01-01&branch=idea&kinds=a&kinds=b")).valid,
        found.branch,
        found.others,
    )
    assert day("2026-01-01").isoformat() == apart(b"tx=2026-01-01T00%3A00%3A00%2B00%3A00").tx


@pytest.mark.rest
@pytest.mark.parametrize("name", ["query", "query_tables"])
def test_a_query_ends_when_its_client_has_gone(disk_store, name):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    text = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x"
    with serve_in_thread(disk_store) as url:
        wire = Wire(url)
        wire.post(f"/{name}", {"cypher": "RETURN 1 AS x"})  # the engine is there
        body = orjson.dumps({"cypher": text})
        place = urlsplit(url)
        head = (
            f"POST /{name} HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {TOKENS.read}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )

        def under_way() -> int:
            told = wire.get("/metrics").decode()
            return int(float(re.findall(r"^graphstore_reads_under_way (\S+)", told, re.MULTILINE)[0]))

        idle = under_way()
        with socket.create_connection((place.hostname, place.port)) as client:
            client.sendall(head.encode() + body)
            until = time.monotonic() + 10
            while under_way() == idle and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.5)
            assert idle + 1 == under_way()
        left = time.monotonic()
        while under_way() > idle and time.monotonic() < left + 20:
            time.sleep(0.05)
        assert time.monotonic() - left < 10  # it would run into its limit of 30 s
        assert 'status="499"' in wire.get("/metrics").decode()
        assert {"x": 2} == wire.post(f"/{name}", {"cypher": "RETURN 2 AS x"})["rows"][0]
