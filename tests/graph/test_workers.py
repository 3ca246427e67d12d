"""Cypher in processes of its own: what passes a limit is stopped and replaced, and what was there is there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, QueryError
from graphstore.graph.engine import stopped_by, time_limit
from graphstore.graph.workers import Allowance, Workers

pytestmark = [
    pytest.mark.rest,
    pytest.mark.driver,
    pytest.mark.in_process("says where the queries of its own store run"),
]

DRIVER: Any = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
COUNT = "MATCH (n:Node) RETURN count(*) AS x"
ENDLESS = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x"
NEVER = "RETURN levenshtein(repeat('a', 200000), repeat('b', 200000)) AS x"
DEEP = "RETURN " + "[" * 5000 + "1" + "]" * 5000
MUCH = "UNWIND [300000000] AS k RETURN size(range(1, k)) AS x"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[GraphStore]:
    with graphstore.open(tmp_path / "memory.gs", driver=DRIVER) as store:
        with store.transaction():
            for number in range(30):
                store.add_node("fact", {"n": number}, id=f"n{number:02}", valid_from="2026-01-01")
        yield store


@pytest.fixture
def apart(kept: GraphStore) -> Iterator[Workers]:
    with kept._queries_apart(Allowance(seconds=10, memory=300 << 20, answer=1 << 20, processes=2)) as workers:
        assert workers is not None
        yield workers


def test_answers_are_those_of_this_process(kept: GraphStore) -> None:
    texts = [
        "MATCH (n:Node) RETURN n ORDER BY n.id",
        "MATCH (n:Node) RETURN n.id, n.valid_from ORDER BY n.id",
    ]
    here = [kept.query(text) for text in texts]
    tables = kept.query_tables("MATCH (v:Version) RETURN v.ref, v.tx_from ORDER BY v.ref").rows()
    with kept._queries_apart():
        assert [each.rows() for each in here] == [kept.query(text).rows() for text in texts]
        assert tables == kept.query_tables("MATCH (v:Version) RETURN v.ref, v.tx_from ORDER BY v.ref").rows()
        assert 30 == kept.to_arrow().num_rows
        assert kept.verify().ok
        with kept.transaction():
            kept.add_node("fact", {}, id="pending")
            assert {"x": 31} == kept.query(COUNT).single()
            assert 31 == kept.to_arrow().num_rows
        branch = kept.branch("aside")
        branch.add_node("fact", {}, id="aside")
        assert [{"x": 31}, {"x": 32}] == [kept.query(COUNT).single(), branch.query(COUNT).single()]
    assert {"x": 31} == kept.query(COUNT).single()


@pytest.mark.parametrize(
    ("text", "limits", "says"),
    [(ENDLESS, True, "after 1 s"), (NEVER, True, "after 1 s"), (DEEP, False, "signal|memory|after"), (MUCH, True, "memory"),
     ("UNWIND range(1, 500) AS a RETURN repeat('x', 10000) AS x", True, "1,048,576 are allowed"),
     ("UNWIND range(1, 1100) AS a UNWIND range(1, 1000) AS b RETURN a", True, "1,000,000 are allowed")],
    ids=["endless", "never", "deep", "much", "bytes", "rows"],
)  # fmt: skip
@pytest.mark.parametrize("tables", [False, True])
def test_what_passes_a_limit_is_stopped_and_says_which(
    kept: GraphStore, apart: Workers, text: str, limits: bool, says: str, tables: bool
) -> None:
    ask = kept.query_tables if tables else kept.query
    assert {"x": 30} == ask(COUNT).single()
    more: dict[str, Any] = {} if limits else {"limits": None}

    with time_limit(1), pytest.raises(QueryError, match=says):
        ask(text, **more)

    assert {"x": 30} == ask(COUNT).single()
    assert not [note for note in kept.notices if "rebuilt" in note], (
        "the tables were opened again as they were"
    )


def test_tables_whose_process_ended_go_on_with_what_is_written_later(
    kept: GraphStore, apart: Workers
) -> None:
    assert {"x": 30} == kept.query_tables(COUNT).single()
    kept.add_node("fact", {}, id="later")
    with time_limit(1), pytest.raises(QueryError):
        kept.query_tables(NEVER)
    kept.add_node("fact", {}, id="latest")

    assert {"x": 32} == kept.query_tables(COUNT).single()
    assert kept.verify().ok


def test_another_process_answers_while_one_hangs(kept: GraphStore, apart: Workers) -> None:
    assert {"x": 30} == kept.query(COUNT).single()
    stopping = threading.Event()

    def hang() -> None:
        with stopped_by(stopping), pytest.raises(QueryError, match="nobody waits"):
            kept.query(NEVER)

    hanging = threading.Thread(target=hang)
    hanging.start()
    time.sleep(0.5)
    began = time.monotonic()
    assert {"x": 30} == kept.query(COUNT).single()
    assert hanging.is_alive()
    stopping.set()
    hanging.join(10)

    assert not hanging.is_alive()
    assert time.monotonic() - began < 9
    assert len(apart.pids) <= 2


def test_processes_are_no_more_than_allowed_however_many_views_are_asked(
    kept: GraphStore, apart: Workers
) -> None:
    for number in range(6):
        assert (
            number == kept.as_of(valid=f"20{10 + number}-01-01").query(f"RETURN {number} AS x").single()["x"]
        )
        kept.add_node("fact", {}, id=f"more{number}")
        assert {"x": 31 + number} == kept.query(COUNT).single()

    assert len(apart.pids) <= 2


def test_graphs_make_way_when_they_take_more_than_is_allowed(kept: GraphStore) -> None:
    views = [kept.as_of(valid="2025-06-01"), kept.as_of(valid="2026-06-01")]
    with kept._queries_apart(Allowance(cache=1)) as workers:
        assert workers is not None
        for _ in range(2):
            found = [view.query("MATCH (n:Node) RETURN count(n) AS n").rows() for view in views]
            assert [[{"n": 0}], [{"n": 30}]] == found
            assert 1 == sum(each.holds is not None for each in workers._all if each.alive)
    with kept._queries_apart(Allowance()) as workers:
        assert workers is not None
        for view in views:
            view.query("MATCH (n:Node) RETURN count(n) AS n")
        assert 2 == sum(each.holds is not None for each in workers._all if each.alive)
        assert 0 < workers.kept() < workers.memory()


def test_a_follower_answers_as_its_writer(kept: GraphStore) -> None:
    with graphstore.open(str(kept.path), read_only=True, driver=DRIVER) as reader, reader._queries_apart():
        assert {"x": 30} == reader.query(COUNT).single()
        assert {"x": 30} == reader.query_tables(COUNT).single()
        with time_limit(1), pytest.raises(QueryError):
            reader.query_tables(NEVER)
        kept.add_node("fact", {}, id="later")
        reader.refresh()
        assert [{"x": 31}, {"x": 31}] == [reader.query(COUNT).single(), reader.query_tables(COUNT).single()]


def test_processes_end_with_their_block_and_know_no_token(
    kept: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHSTORE_TOKEN", "secret")
    with kept._queries_apart() as workers:
        assert workers is not None
        kept.query(COUNT)
        kept.query_tables(COUNT)
        pids = workers.pids
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in pids]

    assert 2 == len(pids)
    assert not any(b"secret" in each for each in environments)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
