"""What a token with scopes writes is theirs, and is answered and refused as in a store in which nothing else was ever recorded."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore.errors import InvalidError, NotFoundError
from graphstore.ledger import tokens as access_tokens
from graphstore.remote import calls as contract
from graphstore.server import resent, scoped_writes
from graphstore.values.period import instant
from tests.server.test_scoped_stores import _RANDOM, MARK, _alike, _asked, _heads, _optional, _plain, _served
from tests.support.agent import agent
from tests.support.served import serve_in_process
from tests.support.wire import WRITE, Wire

pytestmark = pytest.mark.in_process("has servers of its own")
_DRAWN = re.compile(rb'["\'][0-9a-f]{16}["\']|evt_[0-9]+_[0-9a-f]{8}')
Pair = tuple[Wire, Wire, Any, Any]


@contextlib.contextmanager
def _pair(folders: pytest.TempPathFactory) -> Iterator[Pair]:
    both, alone = (_served(folders.mktemp(name), others=name == "both") for name in ("both", "alone"))
    with both, alone:
        wires = [
            Wire(each.url, access_tokens.add(each.store.path, "w", scopes=("team/a",), rights="write"))
            for each in (both, alone)
        ]
        yield wires[0], wires[1], both, alone
        assert both.store.verify().ok and alone.store.verify().ok


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A token of team a that may write: where there is more, and where there is not; and the two stores."""
    with _pair(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def lasting_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A pair for many calls, one after another: what one wrote is there for the next, in both stores alike."""
    with _pair(tmp_path_factory) as made:
        yield made


def same(pair: Pair, name: str, args: dict[str, Any], path: str = "") -> tuple[int, Any]:
    """The answer of both, which is the same."""
    both, alone, _, _ = pair
    status, body, _ = _plain(both, name, args)
    without, other, _ = _plain(alone, name, args)
    assert (status, _plainly(body)) == (without, _plainly(other)), (name, args)
    return status, orjson.loads(body)


def _plainly(body: bytes) -> bytes:
    return _DRAWN.sub(b"", _RANDOM.sub(b"", body))


WRITTEN: list[tuple[str, dict[str, Any], int]] = [
    ("add_node", {"kind": "fact", "content": {"n": 1}, "text": "a pan"}, 200),
    ("add_node", {"kind": "fact", "content": {"n": 2}, "id": "team/a/pan", "scope": "team/a/pots", "key": "pan"}, 200),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "id": "team/a/pan"}, 409),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "id": "pan"}, 422),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "id": f"{MARK}-1"}, 422),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "scope": "team/b"}, 422),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "scope": ""}, 422),
    ("add_node", {"kind": "fact", "content": {"n": 3}, "scope": "team/ab"}, 422),
    ("add_node", {"kind": "fact", "content": {"n": 4}, "id": "team/a/lid", "key": "budget", "supersedes": ["a1"], "reason": "moved"}, 200),
    ("add_node", {"kind": "fact", "content": {}, "supersedes": [f"{MARK}-1"]}, 404),
    ("add_node", {"kind": "fact", "content": {}, "key": f"{MARK}_key"}, 200),
    ("revise", {"id": "team/a/pan", "content": {"n": 5}, "reason": "counted"}, 200),
    ("revise", {"id": f"{MARK}-1", "content": {}}, 404),
    ("amend", {"id": "team/a/pan", "patch": {"n": 6}}, 200),
    ("link", {"source": "team/a/pan", "kind": "related_to", "target": "team/a/lid", "reason": "fits"}, 200),
    ("link", {"source": "team/a/pan", "kind": "related_to", "target": f"{MARK}-1"}, 404),
    ("link", {"source": "team/a/pan", "kind": f"{MARK}_kind", "target": "team/a/lid"}, 422),
    ("confirm", {"id": "team/a/pan", "reason": "seen"}, 200),
    ("end", {"id": "team/a/pan", "reason": "broken"}, 200),
    ("retract", {"id": "team/a/lid", "reason": "a slip"}, 200),
    ("record_event", {"type": "incident", "description": f"{MARK} is down"}, 200),
    ("record_event", {"type": "incident", "description": f"{MARK} is down"}, 200),
    ("record_event", {"type": "incident", "description": "x", "metadata": {"scope": "team/b"}}, 422),
    ("timeline.record_message", {"type": "text", "text": "hello", "sender": "ana", "thread": "t"}, 200),
    ("unlink", {"source": "team/a/pan", "kind": "related_to", "target": "team/a/lid"}, 200),
    ("snapshot", {"name": "mine"}, 403),
    ("erase", {"id": "a1", "reason": "no"}, 403),
    ("evict", {"before": "2027-01-01"}, 403),
    ("branch", {"name": "mine"}, 403),
    ("bulk_load", {"events": []}, 403),
]  # fmt: skip


def test_everyday_writes_are_answered_as_where_nothing_else_is(pair: Pair) -> None:
    for name, args, expected in WRITTEN:
        status, body = same(pair, name, args)
        assert status == expected, (name, args, body)
    both, _, served, other = pair
    owner = served.store
    assert owner.node(f"{MARK}-1").number == 1
    assert {"name": MARK} == owner.node(f"{MARK}-1").content
    assert owner.versions("team/a/pan") == other.store.versions("team/a/pan")
    seen = {node["id"] for node in both.get("/nodes")}
    assert MARK not in orjson.dumps(sorted(seen)).decode()


@pytest.mark.parametrize(
    "name", sorted(name for name, call in contract.CALLS.items() if call.scope == "write")
)
def test_no_call_that_writes_tells_of_what_is_outside(lasting_pair: Pair, name: str) -> None:
    both, alone, served, _ = lasting_pair
    before = {node.id: node for node in served.store.nodes() if MARK in node.id}
    for args in _asked(name):
        status, body, heads = _plain(both, name, args)
        without, answer, theirs = _plain(alone, name, args)
        given = b"".join(word.encode() for word in map(str, args.values()) if MARK in word)
        assert (status, _plainly(body)) == (without, _plainly(answer)), args
        assert given or MARK.encode() not in body, (args, body)
        assert _heads(heads) == _heads(theirs), args
    after = {node.id: node for node in served.store.nodes() if MARK in node.id}
    assert after == before


@pytest.mark.parametrize("name", sorted(scoped_writes.CALLS))
def test_no_optional_argument_of_a_write_tells_of_what_is_outside(lasting_pair: Pair, name: str) -> None:
    for args in _optional(name):
        if args.get("warn") is not True:  # which of many equal things it names depends on their drawn ids
            _alike(lasting_pair[:2], name, args, _plainly)


@pytest.mark.rest
@pytest.mark.parametrize("name", sorted(scoped_writes.CALLS))
def test_no_value_of_an_optional_argument_of_a_write_tells_of_it(lasting_pair: Pair, name: str) -> None:
    for args in _optional(name, every=True):
        if args.get("warn") is not True:  # which of many equal things it names depends on their drawn ids
            _alike(lasting_pair[:2], name, args, _plainly)


def test_a_write_is_warned_of_nothing_outside(pair: Pair) -> None:
    team, _, both, _ = pair
    for n, scope in enumerate(("", "team/b", "team/ab", "team")):
        for count in (100, 200):
            both.store.add_node(
                "fact", {"says": f"The cache holds {count} entries"}, id=f"{MARK}-{n}-{count}", scope=scope
            )

    def written(name: str, args: dict[str, Any], expected: int = 200) -> Any:
        status, body, _ = _plain(team, name, args)
        assert expected == status
        assert expected != 200 or MARK.encode() not in body
        return orjson.loads(body)

    args = {"kind": "fact", "content": {"says": "The cache holds 200 entries"}, "warn": True}
    node = written("add_node", {**args, "id": "team/a/first"})
    assert ([], []) == (node["similar"], node["maybe_contrary"])
    node = written(
        "add_node", {**args, "content": {"says": "The cache holds 300 entries"}, "id": "team/a/second"}
    )
    assert ["team/a/first"] == [each["id"] for each in node["maybe_contrary"]]
    first, second = written("warnings_of", {"ids": ["team/a/first", "team/a/second"]})
    assert (["team/a/second"], ["team/a/first"]) == tuple(
        [each["id"] for each in warned["maybe_contrary"]] for warned in (first, second)
    )
    written("warnings_of", {"ids": ["team/a/first", f"{MARK}-0-100"]}, 404)


def test_the_header_of_a_write_tells_the_last_of_these_scopes_alone(pair: Pair) -> None:
    both, _, served, _ = pair
    made = both.ask("POST", "/add_node", {"kind": "fact", "content": {"n": 1}, "id": "team/a/one"})
    own = made[1]["tx_from"]
    assert made[2]["graphstore-written"] == own
    theirs = Wire(served.url, WRITE).ask(
        "POST", "/add_node", {"kind": "fact", "content": {}, "scope": "team/b"}
    )
    assert instant(theirs[2]["graphstore-written"]) > instant(own)
    _, _, nothing = both.ask("POST", "/batch", {"calls": []})
    assert nothing.get("graphstore-written") == own
    begun = both.post("/transaction")
    _, _, ended = both.ask("POST", f"/transaction/{begun['transaction']}/commit")
    assert ended.get("graphstore-written") == own
    later = both.ask("POST", "/revise", {"id": "team/a/one", "content": {"n": 2}})
    assert later[2]["graphstore-written"] == later[1]["tx_from"] != own


def test_a_transaction_and_a_batch_are_whole_or_nothing(pair: Pair) -> None:
    both, _, served, _ = pair
    with graphstore.open(served.url, token=both._token, author="agent:a") as store:
        with store.transaction(reason="a set"):
            first = store.add_node("fact", {"n": 1}, scope="team/a")
            second = store.add_node("fact", {"n": 2}, supersedes=["a1"])
            assert store.node(first.id) == first
            store.link(first.id, "related_to", second.id)
            with pytest.raises(NotFoundError):
                store.link(first.id, "related_to", f"{MARK}-1")
        assert served.store.node(first.id) == store.node(first.id) == first
        assert first.tx_from == second.tx_from
        assert served.store.node(first.id).author == "agent:a"
        with pytest.raises(ZeroDivisionError), store.transaction():
            lost = store.add_node("fact", {"n": 3})
            1 / 0  # noqa: B018
        for each in (served.store, store):
            with pytest.raises(NotFoundError):
                each.node(lost.id)
        found = both.post(
            "/batch", {"calls": [["add_node", {"kind": "fact", "content": {"n": n}}] for n in range(3)]}
        )
        assert {"team/a"} == {node["scope"] for node in found}
        status, body, _ = both.ask(
            "POST",
            "/batch",
            {
                "calls": [
                    ["add_node", {"kind": "fact", "content": {}}],
                    ["erase", {"id": "a1", "reason": "x"}],
                ]
            },
        )
        assert status == 403, body
        count = len(store.nodes())
        with pytest.raises(InvalidError, match="team/a"):
            store.add_node("fact", {}, scope="elsewhere")
        assert len(store.nodes()) == count


def test_a_token_with_scopes_chooses_no_instant_and_hears_of_none(pair: Pair) -> None:
    both, _, served, _ = pair
    Wire(served.url, WRITE).post("/add_node", {"kind": "fact", "content": {}, "scope": "team/b"})
    status, body, _ = both.ask("POST", "/transaction", {"at": "2026-02-01T00:00:01Z"})
    assert (status, "2026" in str(body)) == (403, False)


def test_an_event_of_another_scope_is_another_event(pair: Pair) -> None:
    both, _, served, _ = pair
    owner = served.store
    theirs = owner.record_event("error", "disk is full on 12", metadata={"scope": "team/b"})
    mine = both.post("/record_event", {"type": "error", "description": "disk is full on 12"})
    assert mine["event"]["id"] != theirs.event.id
    again = both.post("/record_event", {"type": "error", "description": "disk is full on 12"})
    assert again["event"]["id"] == mine["event"]["id"]
    assert owner.event(theirs.event.id).count == 1
    assert owner.event(mine["event"]["id"]).count == 2


def test_who_may_read_alone_may_not_write_and_a_revoked_token_nothing(pair: Pair) -> None:
    both, _, served, _ = pair
    reader = Wire(served.url, access_tokens.add(served.store.path, "r", scopes=("team/a",)))
    assert 403 == reader.ask("POST", "/add_node", {"kind": "fact", "content": {}})[0]
    access_tokens.revoke(served.store.path, "w")
    assert 401 == both.ask("POST", "/add_node", {"kind": "fact", "content": {}})[0]
    with pytest.raises(InvalidError, match="write"):
        access_tokens.add(served.store.path, "x", scopes=("a",), rights="admin")


def test_writes_of_others_are_seen_before_ones_own_are_tried(pair: Pair) -> None:
    both, _, served, _ = pair
    owner = Wire(served.url, WRITE)
    for number in range(20):
        owner.post(
            "/add_node",
            {"kind": "fact", "content": {"n": number}, "id": f"team/a/{number}", "scope": "team/a"},
        )
        assert (
            number
            == both.post("/revise", {"id": f"team/a/{number}", "content": {"n": number}, "minor": True})[
                "content"
            ]["n"]
        )
        assert (
            409 == both.ask("POST", "/add_node", {"kind": "fact", "content": {}, "id": f"team/a/{number}"})[0]
        )


def test_a_stream_ends_when_its_token_is_revoked(pair: Pair) -> None:
    both, _, served, _ = pair
    line = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=30)
    line.request(
        "GET",
        "/changes?since=now",
        headers={"Authorization": f"Bearer {both._token}", "Accept": "text/event-stream"},
    )
    stream = line.getresponse()
    assert stream.status == 200
    access_tokens.revoke(served.store.path, "w")
    stream.read()  # to its end
    line.close()


def test_what_a_killed_server_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    over = subprocess.Popen([sys.executable, "-c", ""])
    over.wait()
    left = tmp_path / f"graphstore-copy-{over.pid}-x"
    left.mkdir()
    (left / "secret").write_text("budget")
    mine = resent.copy_folder()
    assert [mine] == list(tmp_path.iterdir())
    assert mine.stat().st_mode & 0o77 == 0


@pytest.mark.rest
def test_an_agent_behind_such_a_token_remembers_in_its_scope(tmp_path: Path) -> None:
    httpx2 = pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client

    place, says = tmp_path / "memory.gs", f"the {MARK} is in the cellar"
    with graphstore.open(place) as store:
        store.add_node("fact", {"statement": says}, id=f"{MARK}-1", scope="team/b")
    token = access_tokens.add(place, "w", scopes=("team/a",), rights="write")
    with serve_in_process(place) as (_, url):
        shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        with agent(streamable_http_client(f"{url}/mcp", http_client=shown)) as ana:
            made = ana.ask("remember", statement=says)
            assert "new" in str(made)
            ana.ask(
                "remember",
                statement="the pump is there too",
                derived_from=[made["id"]] if "id" in made else None,
            )
            assert f"{MARK}-1" not in str(ana.ask("search", query=f"{MARK} cellar"))
        owner = graphstore.open(place)
        mine = [node for node in owner.nodes(kind="fact") if node.scope == "team/a"]
        assert {says, "the pump is there too"} == {node.text for node in mine}
        assert owner.node(f"{MARK}-1").number == 1
        owner.close()


def test_a_token_joins_what_it_sees(pair):
    def node(id: str, scope: str = "team/a") -> dict[str, Any]:
        return {
            "kind": "person",
            "content": {"name": id},
            "id": id,
            "scope": scope,
            "valid_from": "2024-01-01",
        }

    assert 200 == same(pair, "add_node", node("team/a/bob"))[0]
    assert 200 == same(pair, "add_node", node("team/a/rob"))[0]
    assert 200 == same(pair, "add_node", node("team/a/deep", "team/a/pots"))[0]
    link = {"source": "team/a/bob", "kind": "related_to", "target": "team/a/deep"}
    assert 200 == same(pair, "link", link)[0]
    status, refused = same(pair, "join", {"id": "team/a/bob", "into": "team/a/deep"})
    assert (422, True) == (status, "only nodes of one scope are joined" in str(refused))
    assert 404 == same(pair, "join", {"id": "team/a/bob", "into": f"{MARK}-1"})[0]
    assert 200 == same(pair, "join", {"id": "team/a/bob", "into": "team/a/rob", "reason": "one"})[0]
    assert "team/a/rob" == same(pair, "node", {"id": "team/a/bob"})[1]["id"]
    assert 200 == same(pair, "amend", {"id": "team/a/bob", "patch": {"age": 4}})[0]
    assert 4 == same(pair, "node", {"id": "team/a/rob"})[1]["content"]["age"]
    assert ["team/a/rob"] == [
        hit["node"]["id"] for hit in same(pair, "recall.recall", {"text": "bob", "hops": 0})[1]["hits"]
    ][:1]
    assert "team/a/bob" == same(pair, "split", {"id": "team/a/bob", "reason": "two"})[1]["id"]
    assert "team/a/bob" == same(pair, "node", {"id": "team/a/bob"})[1]["id"]
