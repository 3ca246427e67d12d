"""What a client is told of a write that the disk refused: not kept, or unknown with the tx to ask by; a repeated request id is answered alike."""

from __future__ import annotations

from datetime import datetime

import pytest

import graphstore
from graphstore import EngineError
from graphstore.remote import remote
from tests.support.disk import no_commit, no_room
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own, and the disk fails beneath it")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.gs"


def add(wire: Wire, id: str, request: str) -> tuple[int, dict]:
    status, value, _ = wire.ask("POST", "/add_node", fact(id), Graphstore_Request=request)
    return status, value


def test_what_was_not_kept_may_be_sent_again_under_its_id(path):
    with graphstore.open(path) as store, serve_in_thread(store) as url:
        wire = Wire(url)
        with no_room():
            status, told = add(wire, "one", "first")
        assert (503, "EngineError", "not kept") == (status, told["error"], told["outcome"]), told
        assert 200 == add(wire, "one", "first")[0]
        assert 200 == add(wire, "one", "first")[0]
        wire.close()
    with graphstore.open(path) as store:
        assert ["one"] == [change.subject for change in store.changes()]


def test_what_is_unknown_is_answered_alike_and_asked_for_by_its_tx(path):
    with graphstore.open(path) as store, serve_in_thread(store) as url:
        wire = Wire(url)
        assert 200 == add(wire, "before", "first")[0]
        there = remote.connect(url, TOKENS.write)
        with no_commit(store):
            status, told = add(wire, "one", "second")
        assert (503, "unknown") == (status, told["outcome"]), told
        assert told["tx"] in told["message"]
        assert told == add(wire, "one", "second")[1]
        assert ["before"] == [node["id"] for node in wire.post("/nodes")]
        with pytest.raises(EngineError, match="open it again") as caught:
            there.add_node("fact", {}, id="two")
        assert ("not kept", None) == (caught.value.outcome, caught.value.tx)
        type(there).close(there)
        wire.close()
    with graphstore.open(path) as store:
        known = {change.tx: change.subject for change in store.changes()}
        assert ("one" in known.values()) == (datetime.fromisoformat(told["tx"]) in known)
        assert "two" not in known.values()
