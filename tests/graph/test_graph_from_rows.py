"""The graphs of views are read by the rows of the ledger, which other processes may write and forget."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import DamageError

pytestmark = pytest.mark.in_process("asks the ledger of the store")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a few things, of which one rests on another."""
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky", valid_from="2026-01-01")
        store.add_node("plan", {"day": "monday"}, id="plan", derived_from="sky", valid_from="2026-01-01")
        store.record_event("outage", "it was down", id="outage", occurred_at="2026-01-02", related_to="sky")
        store.snapshot("first")
    return path


def ids(reader: Any, label: str = "Node") -> list[str]:
    return [row["n.id"] for row in reader.query(f"MATCH (n:{label}) RETURN n.id")]


def test_one_graph_serves_all_coordinates_at_which_nothing_differs(path):
    with graphstore.open(path, read_only=True) as reader:
        for valid in (None, "2026-01-03", "2026-05-01"):
            assert ["sky", "plan"] == ids(reader.as_of(valid=valid))
        kept = reader._core.graphs._views
        assert 1 == len(kept)
        assert [] == ids(reader.as_of(valid="2025-01-01"))
        assert [] == ids(reader.as_of(tx="2025-01-01"))
        assert ["sky", "plan"] == ids(reader)
        assert 3 == len(kept)


def test_one_graph_serves_many_instants(path):
    with graphstore.open(path, read_only=True) as reader:
        over = reader.over(valid=("2025-12-31", "2026-01-04", "1 day"))
        found = over.query("MATCH (n:Node) RETURN n.id AS id, n.says AS says ORDER BY id").rows()
        assert [("plan", None), ("sky", "blue")] * 3 == [(row["id"], row["says"]) for row in found]
        assert 1 == len(reader._core.graphs._views)


def test_what_another_process_writes_is_in_the_next_graph_and_a_view_keeps_its_own(path):
    with graphstore.open(path, read_only=True) as reader, graphstore.open(path) as writer:
        view = reader.as_of()
        assert ["sky", "plan"] == ids(view)
        writer.add_node("fact", {"says": "grey"}, id="cloud")
        assert ["sky", "plan", "cloud"] == ids(reader)
        assert ["sky", "plan"] == ids(view)


@pytest.mark.parametrize("forget", ["evict", "erase"])
def test_what_another_process_forgets_is_in_no_graph_of_the_past(path, forget):
    with graphstore.open(path, read_only=True) as reader, graphstore.open(path) as writer:
        view = reader.as_of("first")
        assert ["sky", "plan"] == ids(view)
        if forget == "evict":
            writer.evict(ids=["sky", "outage"], reason="too large")
        else:
            writer.erase("sky", reason="not ours")
            writer.erase("outage", reason="not ours")
        assert ["plan"] == ids(view)
        assert ["sky", "outage"] == ids(view, "Absent")
        assert [] == ids(view, "Event")
        assert 1 == len(reader._core.graphs._views)


def test_a_query_refuses_a_damaged_content(path):
    with closing(sqlite3.connect(path / "ledger.db")) as connection:
        connection.execute("UPDATE body SET data = CAST(upper(CAST(data AS TEXT)) AS BLOB)")
        connection.commit()
    with graphstore.open(path, read_only=True) as reader:
        for _ in range(2):
            with pytest.raises(DamageError, match="its bytes do not match their checksum"):
                ids(reader)


def test_processes_answer_by_the_rows(path):
    with graphstore.open(path) as store, store._queries_apart():
        view = store.as_of()
        assert ["sky", "plan"] == ids(view)
        assert [{"n": 1}] == view.query("MATCH (:Node)-[r:DERIVED_FROM]->(:Node) RETURN count(r) AS n").rows()
        store.erase("sky", reason="not ours")
        assert ["plan"] == ids(view)
