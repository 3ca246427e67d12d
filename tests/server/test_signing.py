"""A token of a name signs with that name: nobody gets the rank of another by naming him."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.ledger import tokens
from tests.support.served import TOKENS, serve_in_thread
from tests.support.wire import Wire

pytestmark = pytest.mark.in_process("has a server of its own")


@pytest.fixture
def wires(tmp_path: Path) -> Iterator[tuple[GraphStore, Wire, Wire]]:
    """A store of Alice, and the tokens of a crawler and of Alice."""
    folder = tmp_path / "memory.gs"
    with graphstore.open(folder, author="alice") as store:
        store.set_trust({"alice": 5, "crawler": 1})
        store.add_node("fact", {"says": "hers"}, id="hers")
        shown = [tokens.add(folder, name, rights="admin") for name in ("crawler", "alice")]
        with serve_in_thread(store, tokens=replace(TOKENS, folder=folder)) as url:
            yield store, Wire(url, shown[0]), Wire(url, shown[1])


def test_a_token_signs_with_its_own_name(wires: tuple[GraphStore, Wire, Wire]) -> None:
    store, crawler, alice = wires
    asked = {"id": "hers", "reason": "mine"}

    assert 409 == crawler.ask("POST", "/retract", asked)[0]
    assert 409 == crawler.ask("POST", "/retract?author=alice", asked)[0]
    assert 409 == crawler.ask("POST", "/erase", {**asked, "author": "alice"})[0]
    assert 409 == crawler.ask("POST", "/set_trust?author=alice", {"ranks": {"crawler": 9}})[0]
    status, _, _ = crawler.ask(
        "POST", "/add_node", {"kind": "fact", "content": {}, "id": "seen", "source": "alice"}
    )
    assert (200, "crawler") == (status, store.node("seen").author)
    assert 200 == alice.ask("POST", "/retract", asked)[0]
