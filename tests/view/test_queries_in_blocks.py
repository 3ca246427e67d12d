"""Cypher inside a transaction finds what reads find there; the graph tables have what is committed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("opens stores of its own")


def test_queries_in_a_block_find_what_reads_find(tmp_path: Path) -> None:
    clock, committed = Clock("2026-01-01"), ["a", "b"]

    def ask(reader: Any, store: GraphStore) -> None:
        nodes = reader.query("MATCH (n:Node) RETURN n.id AS id, n.standing AS standing ORDER BY id").rows()
        assert [(each["id"], each["standing"]) for each in nodes] == sorted(
            (node.id, node.standing) for node in reader.nodes()
        )
        links = reader.query("MATCH (:Node)-[r]->() RETURN count(r) AS n").single()["n"]
        assert links == sum(len(reader.links_from(node["id"])) for node in nodes)
        asked = store.query_tables("MATCH (n:Node) RETURN n.id AS id ORDER BY id")
        assert committed == [row["id"] for row in asked.rows()]

    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="a")
        store.add_node("fact", {"n": 2}, id="b", derived_from="a")
        store.record_event("error", "it failed", id="failure")
        early = store.as_of()
        for fails in (True, False):
            with suppress(ZeroDivisionError), store.transaction():
                ask(store, store)
                store.revise("a", {"n": 3})
                ask(store, store)
                store.add_node("fact", {"n": 4}, id="c", supersedes="b")
                store.link("a", "related_to", "failure", reason="seen together")
                for each in (store, early, store.as_of(valid="2026-02-01")):
                    ask(each, store)
                if fails:
                    raise ZeroDivisionError
            committed = ["a", "b"] if fails else ["a", "b", "c"]
            clock.move(days=1)
            ask(store, store)
            ask(early, store)
        assert store.verify().problems == ()
