"""What the engine holds is read back and compared with the journal: by `verify` all of it, in use what was written last and some of the rest."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStore
from graphstore.graph import engine as engines
from graphstore.graph import projection, readback
from tests.conftest import Clock
from tests.graph.test_projection import step

pytestmark = [pytest.mark.in_process("looks into the graph tables"), pytest.mark.driver]

DRIVER = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
open_store = partial(graphstore.open, driver=DRIVER)
COUNT = "MATCH (n:Node) RETURN count(*) AS n"
OTHER = {
    "STRING": "'flipped'",
    "STRING[]": "['flipped']",
    "INT64": "99",
    "TIMESTAMP": "timestamp('2001-01-01 00:00:00')",
    "BOOL": "{value} IS NULL OR NOT {value}",
}
KEYS = {"Node": "id", "Event": "id", "Version": "row", "Occurrence": "row", "Op": "id"}


@pytest.fixture
def store(tmp_path: Path):
    """Every table has rows, and every column a value."""
    with open_store(tmp_path / "memory.gs", clock=Clock("2026-01-01"), author="maria") as store:
        store.add_node(
            "fact",
            {"a": 1},
            id="old",
            key="auth",
            scope="team",
            text="said",
            tags=["x", "y"],
            source="mail",
            reason="why",
        )
        store.add_node("fact", {"a": 2}, id="new", supersedes=["old"], reason="moved on")
        store.link("new", "caused_by", "old", reason="seen", strength=3, metadata={"by": "hand"})
        store.link("new", "blocks", "old", reason="so")
        event = {"source": "ci", "agent": "bot", "fingerprint": "f", "metadata": {"a": 1}}
        store.record_event("error", "failed", id="e1", occurred_at="2025-12-01T10:00Z", **event)
        again = store.record_event("error", "failed", occurred_at="2025-12-01T10:01Z", **event)
        assert not again.is_new
        store.query_tables(COUNT)
        yield store


def flipped(store: GraphStore, match: str, name: str, column: str, kind: str) -> list[str]:
    """What verify says when one value of one row is another; then it is what it was."""
    engine = store._core.graphs.tables()
    value = f"{name}.{column}"
    ((before,),) = engine.run(f"{match} RETURN {value}")
    engine.run(f"{match} SET {value} = {OTHER[kind].format(value=value)}")
    told = [problem.message for problem in store.verify().problems]
    if before is None or before == []:
        engine.run(f"{match} SET {value} = NULL")
    else:
        engine.run(f"{match} SET {value} = $before", before=before)
    return told


@pytest.mark.parametrize("label", KEYS)
def test_verify_names_every_value_that_differs(store, label):
    engine = store._core.graphs.tables()
    key = KEYS[label]
    ((row,),) = engine.run(f"MATCH (n:{label}) RETURN n.{key} ORDER BY n.{key} LIMIT 1")
    match = f"MATCH (n:{label} {{{key}: '{row}'}})"
    columns = {name: kind for name, kind in engine._properties(label).items() if name != key}
    for column, kind in columns.items():
        (told,) = flipped(store, match, "n", column, kind)
        assert f"table {label}, {key} {row!r}: {column} is " in told
    store.rebuild()
    assert store.verify().ok


@pytest.mark.parametrize("table", ["SUPERSEDES", "CAUSED_BY", "LINK"])
def test_verify_names_every_value_of_a_link_that_differs(store, table):
    engine = store._core.graphs.tables()
    ((row,),) = engine.run(f"MATCH (a:Node)-[l:{table}]->(b:Node) RETURN l.row LIMIT 1")
    match = f"MATCH (a:Node)-[l:{table}]->(b:Node)"
    columns = {name: kind for name, kind in engine._properties(table).items() if name != "row"}
    for column, kind in columns.items():
        (told,) = flipped(store, match, "l", column, kind)
        assert f"table {table}, row {row!r}: {column} is " in told
    engine.run(f"{match} SET l.row = '77'")
    assert f"table {table} lacks 1 rows, the first with row {row!r}." in [
        p.message for p in store.verify().problems
    ]


def test_verify_names_rows_that_are_too_many(store):
    engine = store._core.graphs.tables()
    engine.run("CREATE (:Version {row: '900', node_id: 'old'})")
    engine.run("MATCH (n:Node {id: 'new'}), (v:Version {row: '0'}) CREATE (n)-[:HAS_VERSION]->(v)")

    told = [problem.message for problem in store.verify().problems]
    assert [
        "table Version has 4 rows, the ledger 3.",
        "table Version should not have 1 rows, the first with row '0'.",
    ] == told


def test_verify_goes_through_all_in_parts(store, monkeypatch):
    monkeypatch.setattr(readback, "CHUNK", 2)
    assert store.verify().ok
    store._core.graphs.tables().run("MATCH (v:Version {row: '2'}) SET v.text = 'flipped'")
    (problem,) = store.verify().problems
    assert "table Version, row '2': text is 'flipped'" in problem.message


def test_verify_reads_the_tables_of_branches_too(store):
    branch = store.branch("side")
    branch.query_tables(COUNT)
    branch._core.graphs.tables().run("MATCH (v:Version {row: '0'}) SET v.text = 'flipped'")

    (problem,) = store.verify().problems
    assert problem.message.startswith("branch 'side': table Version, row '0': text is 'flipped'")


def test_tables_of_a_branch_made_anew_hold_what_the_trunk_closed_before_it_began(store):
    """They are made anew when the trunk forgets."""
    store.add_node("fact", {"n": 1}, id="closed-early")
    store.revise("closed-early", {"n": 2})
    store.add_node("fact", {}, id="other")
    store.unlink(store.link("closed-early", "uses", "other").id)
    store.add_node("fact", {}, id="erased")
    branch = store.branch("side")
    branch.query_tables(COUNT)
    store.erase("erased", reason="asked for")

    assert store.verify().ok
    assert branch.query_tables(COUNT).rows() == store.query_tables(COUNT).rows()


# ------------------------------------------------------------------ in use


def rebuilt(store: GraphStore) -> bool:
    return any("thrown away and made anew" in notice for notice in store.notices)


@pytest.mark.parametrize(
    "flip",
    [
        "MATCH (v:Version {row: '0'}) SET v.content = 'flipped'",
        "MATCH (n:Node {id: 'old'}) SET n.kind = 'flipped'",
        "MATCH (e:Event {id: 'e1'}) SET e.description = 'flipped'",
        "MATCH (o:Op {id: '0'}) SET o.reason = 'flipped'",
        "MATCH (a:Node)-[l:CAUSED_BY]->(b:Node) SET l.strength = 5",
    ],
)
def test_a_row_that_changed_by_itself_is_found_while_the_tables_are_used(store, monkeypatch, flip):
    store._core.graphs.tables().run(flip)
    monkeypatch.setattr(projection, "READ_BACK_EVERY", 0.0)
    store._core.graphs.projection._due = 0.0
    for _ in range(200):
        store.query_tables(COUNT)
        if rebuilt(store):
            break
    assert rebuilt(store)
    assert 1 == store._core.graphs.thrown_away
    assert store.verify().ok


def harmed(monkeypatch, times: int) -> None:
    """An engine that writes one version otherwise than it was told, so many times."""
    real = engines.Engine.load
    left = [times]

    def load(self, cypher, /, rows):
        real(self, cypher, rows)
        if "Version" in cypher and "content" in rows.column_names and left[0]:
            left[0] -= 1
            self.run(
                "MATCH (v:Version) WITH v ORDER BY cast(v.row AS INT64) DESC LIMIT 1 SET v.content = 'flipped'"
            )

    monkeypatch.setattr(engines.Engine, "load", load)


def test_what_was_written_is_read_back(store, monkeypatch):
    store._core.graphs.projection._due = 0.0
    harmed(monkeypatch, 1)
    store.add_node("fact", {"a": 3}, id="last")

    rows = store.query_tables("MATCH (v:Version {node_id: 'last'}) RETURN v.content AS content").rows()
    assert [{"content": '{"a":3}'}] == rows
    assert rebuilt(store)


def test_tables_that_stay_wrong_answer_nothing(store, monkeypatch):
    store._core.graphs.projection._due = 0.0
    harmed(monkeypatch, 100)
    store.add_node("fact", {"a": 3}, id="last")

    with pytest.raises(
        EngineError, match="hold something else than was written, also when they are made anew"
    ):
        store.query_tables(COUNT)
    assert {"a": 3} == store.node("last").content


def test_what_was_written_is_read_back_before_the_tables_are_closed_well(tmp_path, monkeypatch):
    harmed(monkeypatch, 1)
    with open_store(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"a": 1}, id="one")
        store.query_tables(COUNT)
    assert rebuilt(store)
    with open_store(tmp_path / "memory.gs") as store:
        rows = store.query_tables("MATCH (v:Version) RETURN v.content AS content").rows()
    assert [{"content": '{"a":1}'}] == rows


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.rest) for seed in (1, 2))])
def test_what_is_right_is_never_thrown_away(tmp_path, monkeypatch, seed):
    """A random life in which everything is read back each time."""
    monkeypatch.setattr(projection, "READ_BACK_EVERY", 0.0)
    clock, chance = Clock("2026-01-01"), random.Random(seed)
    with open_store(tmp_path / "memory.gs", clock=clock) as store:
        for number in range(60):
            clock.move(minutes=chance.randint(0, 90))
            try:
                step(store, clock, chance)
            except graphstore.GraphStoreError:
                continue
            if number % 3 == 0:
                store.query_tables(COUNT)
        assert not rebuilt(store), store.notices
        assert 0 == store._core.graphs.thrown_away
        assert store.verify().ok
