"""The graphs of views and of periods read by the rows of the ledger are those read by the index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import DamageError, GraphStore, QueryError, Result
from tests.ledger.test_questions import DAYS, FORGETTING, BranchingHistory, History, Leaning

pytestmark = pytest.mark.in_process("asks the ledger of the store")

ALL = (
    "MATCH (n:Node) RETURN n",
    "MATCH (n:Absent) RETURN n",
    "MATCH (n:Event) RETURN n",
    "MATCH (a)-[r]->(b) RETURN label(a), a.id, label(r), r, label(b), b.id",
    "MATCH (a:Node)-[r:DERIVED_FROM]->(b:Node) RETURN a.id, r, b.id",
)

OVER_PERIODS = (
    "MATCH (n:Node) RETURN n",
    "MATCH (a:Node)-[r]->(b:Node) RETURN a.row, label(r), r, b.row",
)
OVER_INSTANTS = (
    "MATCH (n:Node) RETURN n.id, n.says, n.tx_from ORDER BY n.id",
    "MATCH (a:Node)-[r:DERIVED_FROM|CAUSED_BY]->(b:Node) RETURN a.id, r.id, r.valid_from, b.id ORDER BY r.id",
)


def graph(view: Any) -> list[Any]:
    """All that the graph of a view has, in its order, with the types of the columns."""
    return [answer(view.query, text) for text in ALL]


def graph_of_periods(view: Any, since: datetime, until: datetime) -> list[Any]:
    """The same of the graph of all periods, and of those of a span."""
    spans = [("ALL", {}), ("FROM $since TO $until", {"since": since, "until": until})]
    return [
        answer(view.query, f"FOR VALID_TIME {words} {text}", **given)
        for words, given in spans
        for text in OVER_PERIODS
    ]


def answers_over(store: GraphStore, since: datetime, until: datetime) -> list[Any]:
    """The answers of a graph of many instants of one axis, and of the other."""
    last = store.changes()[-1].tx
    spans: list[dict[str, Any]] = [
        {"valid": (since, until, "1 day")},
        {"tx": (last - (until - since), last, "11 hours")},
    ]
    return [answer(store.over(**span).query, text) for span in spans for text in OVER_INSTANTS]


def answer(query: Callable[..., Result], text: str, **given: Any) -> Any:
    """An answer with the types of its columns, or its error."""
    try:
        found = query(text, **given)
    except QueryError as error:
        return str(error)
    return found.columns, found.to_arrow().schema, found.rows()


def compare(history: History, times: int) -> int:
    """Assert that the graphs at some coordinates are the same by the rows and by the index. Returns how many things they have."""
    things = 0
    for _ in range(times):
        at = history.coordinate()
        since, until = sorted(history.chance.sample(DAYS, 2))
        view = history.store.as_of(**at)
        by_index = graph(view)
        periods_by_index = graph_of_periods(view, since, until)
        over_by_index = answers_over(history.store, since, until)
        table_by_index = view.to_arrow()
        with graphstore.open(history.path, read_only=True, clock=history.store._clock) as reader:
            view = reader.as_of(**at)
            assert table_by_index.equals(view.to_arrow())
            by_rows = graph(view)
            assert periods_by_index == graph_of_periods(view, since, until), at
            # where some coordinate has no node with a field, the table of its history says its type, which loads the index
            assert over_by_index == answers_over(reader, since, until), at
        assert by_index == by_rows, at
        things += sum(len(rows) for _, _, rows in by_rows)
    return things


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


def test_of_a_damaged_content_a_query_tells_what_the_index_tells(path):
    with closing(sqlite3.connect(path / "ledger.db")) as connection:
        connection.execute("UPDATE body SET data = CAST(upper(CAST(data AS TEXT)) AS BLOB)")
        connection.commit()
    with graphstore.open(path, read_only=True) as reader:
        with pytest.raises(DamageError) as told:
            ids(reader)
        with pytest.raises(DamageError, match=re.escape(str(told.value))):
            ids(reader)


def test_processes_answer_by_the_rows(path):
    with graphstore.open(path) as store, store._queries_apart():
        view = store.as_of()
        assert ["sky", "plan"] == ids(view)
        assert [{"n": 1}] == view.query("MATCH (:Node)-[r:DERIVED_FROM]->(:Node) RETURN count(r) AS n").rows()
        store.erase("sky", reason="not ours")
        assert ["plan"] == ids(view)


@pytest.mark.parametrize("make", [History, BranchingHistory, Leaning])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.rest) for seed in range(1, 6))])
def test_rows_and_index_give_the_same_graph(make: type[History], seed: int, tmp_path: Path):
    history = make(tmp_path / "memory.gs", seed)
    with closing(history.store):
        things = 0
        for round in range(4):
            history.go_on(12)
            if round > 1:
                history.try_some(FORGETTING)
            things += compare(history, 2)
        assert things > 60
