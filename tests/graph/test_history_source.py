"""The tables of the whole history follow the rows of the ledger, whichever process writes and forgets."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore

pytestmark = pytest.mark.in_process("looks into the graph tables")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="one")
        store.record_event("deploy", "of a build", id="build")
        store.link("one", "reference", "build")
    return path


COUNT = "MATCH (n) WHERE label(n) = 'Node' OR label(n) = 'Event' RETURN count(*) AS n"


def things(store: GraphStore) -> int:
    count: int = store.query_tables(COUNT).single()["n"]
    return count


def test_tables_are_made_followed_and_closed_without_the_index(path: Path) -> None:
    for expected in (2, 5):
        with graphstore.open(path) as store:
            assert expected == things(store)
            store.add_node("fact", {"n": 2})
            with graphstore.open(path) as other:
                other.retract("build", reason=f"wrong {expected}") if expected == 2 else None
                other.add_node("fact", {"n": 3})
            assert expected + 2 == things(store)
            store.add_node("fact", {"n": 4}, id=f"last-{expected}")
            store.retract(f"last-{expected}", reason="not counted")
            assert [] == store.notices
        with graphstore.open(path) as store:
            assert store._core.graphs.verify() == []


def test_what_another_process_forgot_is_in_no_table(path: Path) -> None:
    texts = "MATCH (v:Version) RETURN v.content AS content"
    with graphstore.open(path) as store:
        assert {"content": '{"n":1}'} == store.query_tables(texts).single()
        with graphstore.open(path) as other:
            other.erase("one", reason="private")
        assert '{"n":1}' != store.query_tables(texts).single()["content"]
