"""What a server did and could not answer any more is answered by the next one, and not done twice."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

import graphstore
from graphstore.server.requests import request_of
from graphstore.server.resent import kept_of
from tests.support.served import TOKENS, serve_in_thread

pytestmark = pytest.mark.in_process("it is about a server and the next one over the same folder")

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add_node", {"kind": "fact", "content": {"a": 1}, "reason": "new"}),
    ("add_node", {"kind": "fact", "content": {"b": 1}, "id": "chosen", "valid_from": "2026-01-01", "supersedes": ["old"]}),
    ("revise", {"id": "old", "content": {"name": "old", "more": 2}}),
    ("amend", {"id": "old", "patch": {"more": 3}}),
    ("end", {"id": "old", "at": "2026-02-01"}),
    ("retract", {"id": "old", "reason": "a slip"}),
    ("link", {"source": "old", "kind": "relates_to", "target": "other"}),
    ("record_event", {"type": "error", "description": "it fell"}),
    ("record_event", {"type": "deploy", "description": "v2", "occurred_at": "2026-01-05"}),
    ("snapshot", {"name": "before"}),
    ("memory.remember", {"text": "the pump is in the cellar", "layer": "soul"}),
    ("supersede", {"old": "old", "by": "newest", "reason": "moved"}),
    ("bulk_load", {"events": [{"type": "error", "description": f"e{n}"} for n in range(5)]}),
    ("timeline.record_message", {"type": "text", "text": "hello", "sender": "ana", "thread": "t"}),
]  # fmt: skip


def _ask(url: str, path: str, body: Any, request: str, *, again: bool = False) -> tuple[int, Any]:
    place = urlsplit(url)
    line = http.client.HTTPConnection(place.hostname or "", place.port)
    headers = {"Authorization": f"Bearer {TOKENS.write}", "Graphstore-Request": request}
    if again:
        headers["Graphstore-Again"] = "yes"
    line.request("POST", path, orjson.dumps(body), headers | {"Content-Type": "application/json"})
    found = line.getresponse()
    answer = orjson.loads(found.read())
    line.close()
    return found.status, answer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "memory.gs"
    with graphstore.open(folder) as store:
        for name in ("old", "other", "newest"):
            store.add_node("fact", {"name": name}, id=name, valid_from="2025-06-01")
    return folder


@pytest.mark.parametrize(("name", "body"), CALLS)
def test_the_answer_that_was_lost_is_given_by_the_next_server(
    place: Path, name: str, body: dict[str, Any]
) -> None:
    path = "/" + name.replace(".", "/")
    with graphstore.open(place, author="ana") as store, serve_in_thread(store) as url:
        first = _ask(url, path, body, "one")
        assert first[0] == 200, first
    with graphstore.open(place, author="ana") as store:
        before = store.stats()["transactions"]
        with serve_in_thread(store) as url:
            assert _ask(url, path, body, "one", again=True) == first
            assert _ask(url, path, body, "one", again=True) == first
        assert store.stats()["transactions"] == before
        assert store.verify().ok


def test_a_batch_is_one_too(place: Path) -> None:
    calls = [["add_node", {"kind": "fact", "content": {"n": n}}] for n in range(3)]
    calls.append(["link", {"source": "old", "kind": "relates_to", "target": "other"}])
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        first = _ask(url, "/batch", {"calls": calls, "author": "bo"}, "one")
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        assert _ask(url, "/batch", {"calls": calls, "author": "bo"}, "one", again=True) == first
        assert len(store.nodes(kind="fact")) == 6


def test_a_commit_whose_answer_was_lost_is_not_done_twice_and_one_that_never_was_is_said_to_be_gone(
    place: Path,
) -> None:
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        token = _ask(url, "/transaction", {}, "begin")[1]["transaction"]
        _ask(url, f"/add_node?transaction={token}", {"kind": "fact", "content": {"a": 1}, "id": "in"}, "add")
        assert _ask(url, f"/transaction/{token}/commit", {}, "commit")[0] == 200
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        assert _ask(url, f"/transaction/{token}/commit", {}, "commit", again=True) == (200, None)
        status, answer = _ask(url, "/transaction/never/commit", {}, "another", again=True)
        assert (status, answer["outcome"]) == (503, "not kept"), answer
        assert store.node("in") is not None


def test_what_was_not_done_is_done_when_it_is_sent_again(place: Path) -> None:
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        status, answer = _ask(url, "/add_node", {"kind": "fact", "content": {"a": 1}}, "new", again=True)
        assert status == 200
        assert store.node(answer["id"]) is not None


def test_a_text_that_looks_like_a_request_is_none(place: Path) -> None:
    wanted = request_of("/add_node", {b"graphstore-request": b"one"})
    assert wanted is not None
    with graphstore.open(place) as store:
        store.add_node("fact", {"request": wanted.id, "text": f'"request":"{wanted.id}"'})
        store.add_node("fact", {"head": {"request": wanted.id}})
        assert kept_of(store, wanted.id) == []


def test_a_call_of_many_transactions_that_was_broken_off_says_so(place: Path) -> None:
    rows = [{"type": "error", "description": f"e{n}"} for n in range(3)]
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        _ask(url, "/bulk_load", {"events": rows}, "one")
    wanted = request_of("/bulk_load", {b"graphstore-request": b"one"})
    assert wanted is not None
    with graphstore.open(place) as store, serve_in_thread(store) as url:
        assert len(kept_of(store, wanted.id)) == 1
        status, answer = _ask(url, "/bulk_load", {"events": rows[:2]}, "one", again=True)
        assert (answer["outcome"], status) == ("kept", 503), answer
