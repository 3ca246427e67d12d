"""The rules of HTTP that hold for any answer: methods, kinds, compression, what may be kept, pages of other origins, events for others."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator

import orjson
import pytest

from graphstore import GraphStore
from graphstore.server.http_rules import accepted
from graphstore.server.requests import Refused
from tests.conftest import Clock
from tests.support.browser import program
from tests.support.served import Wire, fact, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")

PAGE = "https://notes.example"
OTHER = "https://elsewhere.example"
ASK = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type",
}
EXACT = "application/vnd.graphstore.exact+json"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def url(disk_store: GraphStore) -> Iterator[str]:
    with serve_in_thread(disk_store, origins=[PAGE]) as served:
        yield served


@pytest.fixture
def stranger(url: str) -> Wire:
    return Wire(url, None)


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/add_node", "POST, OPTIONS"),
        ("PUT", "/node", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/health", "GET, HEAD, OPTIONS"),
        ("POST", "/metrics", "GET, HEAD, OPTIONS"),
        ("POST", "/openapi.json", "GET, HEAD, OPTIONS"),
        ("GET", "/batch", "POST, OPTIONS"),
        ("GET", "/transaction/x/commit", "POST, OPTIONS"),
    ],
)
def test_a_method_that_a_path_has_not_is_refused_with_those_it_has(wire, method, path, allow):
    status, told, headers = wire.ask(method, path)

    assert (405, allow) == (status, headers["allow"])
    methods = [one for one in allow.split(", ") if one not in ("HEAD", "OPTIONS")]
    assert f"ask by {' or '.join(methods)}." in told["message"]
    status, _, headers = wire.ask("OPTIONS", path)
    assert (204, allow) == (status, headers["allow"])
    assert "content-length" not in headers


def test_no_path_has_no_methods(wire):
    assert 404 == wire.ask("PUT", "/nodo")[0]
    assert 404 == wire.ask("OPTIONS", "/nodo")[0]


@pytest.mark.parametrize(
    "path", ["/health", "/docs", "/openapi.json", "/metrics", "/node?id=n1", "/changes", "/export"]
)
def test_head_is_get_without_the_body(disk_store, wire, path):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    status, _, got = wire.ask("GET", path)
    told = wire.ask("HEAD", path)

    assert (200, status, b"") == (told[0], status, told[1])
    assert got["content-type"] == told[2]["content-type"]
    assert "date" in told[2]


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/html, application/*;q=0.5", "application/json"),
        (f"application/json;q=0.1, {EXACT}", EXACT),
        ("application/json; charset=utf-8", "application/json"),
        ("application/json;q=0, */*", EXACT),
    ],
)
def test_the_kind_that_a_client_prefers_is_given(wire, accept, kind):
    _, _, headers = wire.ask("GET", "/nodes", **({} if accept is None else {"Accept": accept}))

    assert kind == headers["content-type"]


def test_a_kind_that_there_is_not_is_refused_and_those_there_are_named(disk_store, wire):
    for path in ("/nodes", "/changes"):
        status, told, _ = wire.ask("GET", path, Accept="text/html")
        assert 406 == status
        assert "application/json" in told["message"]
    assert 406 == wire.ask("POST", "/add_node", fact("n1"), Accept="text/html")[0]
    assert [] == disk_store.nodes()
    assert 406 == wire.ask("POST", "/stats", {}, Accept=ARROW)[0]


def test_what_is_accepted_may_be_worth_nothing():
    with pytest.raises(Refused, match="admits no kind"):
        accepted(b"text/*, application/json;q=0", (b"application/json",))


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_a_body_of_another_kind_is_refused(disk_store, wire, kind):
    for path in ("/add_node", "/batch", "/transaction"):
        status, told, headers = wire.ask("POST", path, orjson.dumps(fact("n1")), Content_Type=kind)
        assert (415, "application/json") == (status, headers["accept"])
        assert "Content-Type: application/json" in told["message"]
    assert [] == disk_store.nodes()


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
    ],
)
def test_a_body_that_is_json_is_read_also_as_curl_calls_it(disk_store, wire, kind):
    assert 200 == wire.ask("POST", "/add_node", orjson.dumps(fact("n1")), Content_Type=kind)[0]
    assert "n1" == disk_store.node("n1").id


# ---------------------------------------------------------------- compression


@pytest.mark.parametrize("many", [30, 2_000])
def test_a_large_answer_is_compressed_for_who_reads_that(disk_store, wire, many):
    with disk_store.transaction():
        for number in range(many):
            disk_store.add_node("fact", {"n": number}, id=f"n{number}")
    _, plain, bare = wire.ask("GET", "/nodes")
    assert "content-encoding" not in bare
    _, raw, headers = wire.ask("GET", "/nodes", Accept_Encoding="br, gzip;q=0.5")

    assert ("gzip", "accept-encoding") == (headers["content-encoding"], headers["vary"])
    assert plain == orjson.loads(gzip.decompress(raw))
    assert len(raw) * 3 < int(bare["content-length"])
    for words in ("identity", "gzip;q=0"):
        assert "content-encoding" not in wire.ask("GET", "/nodes", Accept_Encoding=words)[2]
    assert "content-encoding" not in wire.ask("GET", "/node?id=n1", Accept_Encoding="gzip")[2]
    assert b"graphstore" in gzip.decompress(wire.ask("GET", "/openapi.json", Accept_Encoding="gzip")[1])


# ---------------------------------------------------------------- what may be kept


@pytest.fixture
def clock() -> Clock:
    return Clock("2026-02-01")


def test_an_answer_at_a_past_coordinate_may_be_kept_and_is_known_again(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1", valid_from="2026-01-01")
    tx = disk_store.changes()[-1].tx.isoformat().replace("+00:00", "Z")
    disk_store.revise("n1", {"n": 2})
    path = f"/node?id=n1&valid=2026-01-15&tx={tx}"
    _, told, headers = wire.ask("GET", path)

    assert ({"n": 1}, "private, max-age=3600, immutable") == (told["content"], headers["cache-control"])
    disk_store.revise("n1", {"n": 3})
    for known in (headers["etag"], "*", f'"other", {headers["etag"]}', headers["etag"].removeprefix("W/")):
        status, none, again = wire.ask("GET", path, If_None_Match=known)
        assert (304, b"", headers["etag"]) == (status, none, again["etag"])
    assert 200 == wire.ask("GET", path, If_None_Match='"other"')[0]
    assert headers["etag"] != wire.ask("GET", path, Accept=EXACT)[2]["etag"]
    disk_store.erase("n1", reason="asked to")
    assert 304 != wire.ask("GET", path, If_None_Match=headers["etag"])[0]


def test_an_answer_that_may_change_is_not_to_be_kept(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1", valid_from="2020-01-01")
    disk_store.branch("plan")
    tx = disk_store.changes()[-1].tx.isoformat().replace("+00:00", "Z")
    for query in (
        "",
        f"&tx={tx}",
        "&valid=2026-01-15",
        "&valid=2026-01-15&tx=now",
        f"&valid=7d&tx={tx}",
        f"&valid=2026-01-15&tx={tx}&branch=plan",
        f"&valid=2026-02-01&tx={tx}",
        "&valid=2026-01-15&tx=2026-02-01",
        "&valid=2026-01-15&tx=2026-02",
        "&as_of=2026-01-15",
    ):
        status, _, headers = wire.ask("GET", f"/node?id=n1{query}")
        assert (200, "no-store") == (status, headers["cache-control"]), query
        assert "etag" not in headers


def test_a_snapshot_may_be_kept(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    disk_store.snapshot("before")
    disk_store.revise("n1", {"n": 2})

    assert "etag" in wire.ask("GET", "/node?id=n1&as_of=before")[2]


# ---------------------------------------------------------------- pages of other origins


def test_a_page_that_was_named_may_ask_first_and_read_what_it_is_answered(stranger, wire):
    status, _, headers = stranger.ask("OPTIONS", "/add_node", Origin=PAGE, **ASK)

    assert (204, PAGE) == (status, headers["access-control-allow-origin"])
    assert "POST" in headers["access-control-allow-methods"]
    assert "Authorization" in headers["access-control-allow-headers"]
    assert "origin" in headers["vary"]
    for path, expected in (("/nodes", 200), ("/nodo", 404), ("/docs", 200)):
        status, _, headers = wire.ask("GET", path, Origin=PAGE)
        assert (expected, PAGE) == (status, headers["access-control-allow-origin"])
        assert "ETag" in headers["access-control-expose-headers"]
    status, _, headers = stranger.ask("GET", "/nodes", Origin=PAGE)
    assert (401, PAGE) == (status, headers["access-control-allow-origin"])


def test_another_page_is_told_nothing(stranger, wire):
    for method in ("OPTIONS", "GET"):
        status, _, headers = wire.ask(method, "/nodes", Origin=OTHER, **ASK)
        assert 403 == status
        assert "access-control-allow-origin" not in headers
    assert "access-control-allow-origin" not in wire.ask("GET", "/nodes")[2]


# ---------------------------------------------------------------- events for others, and metrics


def test_events_for_others_have_their_own_kind_and_no_path(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    disk_store.add_node("fact", {"n": 1}, id="n2")
    _, raw, headers = wire.ask("GET", "/cloud_events/cloud_events")
    events = orjson.loads(raw)

    assert "application/cloudevents-batch+json" == headers["content-type"]
    first = disk_store.changes()[0].tx.isoformat().replace("+00:00", "Z")
    assert {f"urn:graphstore:{first}"} == {event["source"] for event in events}
    assert events == wire.get("/cloud_events/cloud_events", Accept="application/json")
    given = wire.get("/cloud_events/cloud_events?source=urn:desk", Accept="application/json")
    assert {"urn:desk"} == {event["source"] for event in given}


def test_each_metric_has_its_help(disk_store, wire):
    disk_store.add_node("fact", {"n": 1}, id="n1")
    wire.get("/nodes")
    lines = wire.get("/metrics").decode().splitlines()

    named = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    assert named == {
        line.split()[2] for line in lines if line.startswith("# HELP ") and len(line.split()) > 4
    }
    assert {line.split("{")[0].split()[0] for line in lines if line[0] != "#"} <= named | {
        f"{name}_{end}" for name in named for end in ("bucket", "sum", "count")
    }


@pytest.mark.rest
def test_promtool_finds_nothing_wrong_with_the_metrics(disk_store, wire):
    promtool = program("promtool", package="prometheus")
    wire.get("/nodes")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=wire.get("/metrics"), capture_output=True, timeout=60
    )

    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)
