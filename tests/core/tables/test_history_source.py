"""The rows of a ledger and the index have the same history, whole and between two states; the tables that follow the rows hold what the index has."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.core.index.columns import Mark
from graphstore.core.tables.history_from_index import IndexHistory
from graphstore.core.tables.history_from_rows import RowHistory
from graphstore.core.tables.history_source import HistorySource, Reached
from graphstore.core.tables.readback import Readback
from graphstore.ledger.branch_ledger import BranchLedger
from graphstore.ledger.ledger import Ledger
from tests.ledger.test_branch_rows import Branching
from tests.ledger.test_questions import FORGETTING, THINGS, BranchingHistory

pytestmark = pytest.mark.in_process("looks into the graph tables")

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.rest) for seed in range(1, 12))]


def whole(history: HistorySource, mark: Mark) -> dict[str, list[Any]]:
    """Everything up to a mark."""
    things = history.things(0, mark.entities)
    found: dict[str, list[Any]] = {
        "things": [(thing.number, thing.id, bool(thing.is_event)) for thing in things],
        "nodes": [*history.nodes([thing.number for thing in things if not thing.is_event])],
        "events": [*history.events([thing.number for thing in things if thing.is_event])],
        "versions": [*history.versions(0, mark.rows)],
        "occurrences": [*history.occurrences(0, mark.seen)],
        "operations": [*history.operations(0, mark.ops)],
        "links": [*history.links(0, mark.link_rows)],
        "promoted": [*history.promoted()],
    }
    return {name: [plain(row) for row in rows] for name, rows in found.items()}


def changed(history: HistorySource, since: Mark, upto: Mark) -> list[list[Any]]:
    """What changed between two marks of what was there before."""
    return [
        sorted(map(plain, rows))
        for rows in (
            history.closed_versions(since, upto),
            history.changed_events(since, upto),
            history.closed_links(since, upto),
        )
    ]


def plain(row: Any) -> Any:
    """A row without what only its source knows."""
    if not hasattr(row, "_asdict"):
        return row
    own = ("body", "checksum", "place_body", "place_checksum")
    return [None if value == b"" else value for name, value in row._asdict().items() if name not in own]


def sizes(mark: Mark) -> Mark:
    """What both sources count."""
    return mark._replace(versions=0, closings=0, links=0, claims=0, link_closings=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_have_the_history_that_the_index_has(seed: int, tmp_path: Path) -> None:
    history = BranchingHistory(tmp_path / "memory.gs", seed)
    with closing(history.store) as store:
        core = store._core
        states: list[tuple[Reached, Reached]] = []
        assert isinstance(core.journal, Ledger)
        for round in range(10):
            history.go_on(6)
            history.try_some(("merge", "write_on_branch"))
            if round > 6:
                history.try_some(FORGETTING)
            by_index, by_rows = IndexHistory(core.index, core.journal), RowHistory(core.journal)
            if round == 8:
                store.evict(ids=[history.known(THINGS)], keep_audit=False)
                states, by_index = [], IndexHistory(core.index, core.journal)
            now = by_index.reached(), by_rows.reached()
            assert sizes(now[0].mark) == sizes(now[1].mark)
            assert now[0][1:-1] == (tuple(now[1].end), *now[1][2:-1])
            assert whole(by_index, now[0].mark) == whole(by_rows, now[1].mark)
            for of_index, of_rows in states:
                assert by_rows.goes_on(of_rows, now[1]) == (of_rows.forgetting == now[1].forgetting)
                assert changed(by_index, of_index.mark, now[0].mark) == changed(
                    by_rows, of_rows.mark, now[1].mark
                )
            states.append(now)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_of_a_branch_have_the_history_that_its_index_has(seed: int, tmp_path: Path) -> None:
    history = Branching(tmp_path / "memory.gs", seed)
    states: dict[str, list[tuple[Reached, Reached]]] = {}
    compared = 0
    with closing(history.trunk) as store:
        for _ in range(5):
            history.go_on(12)
            for name in [info.name for info in store.branches()]:
                branch = store.on(name)
                branch._core.read_index()
                rows = branch._core.rows
                assert isinstance(rows, BranchLedger)
                by_index, by_rows = IndexHistory(branch._core.index, branch._core.journal), RowHistory(rows)
                now = by_index.reached(), by_rows.reached()
                assert sizes(now[0].mark) == sizes(now[1].mark)
                assert whole(by_index, now[0].mark) == whole(by_rows, now[1].mark)
                for of_index, of_rows in states.get(name, ()):
                    if by_rows.goes_on(of_rows, now[1]):
                        expected = changed(by_index, of_index.mark, now[0].mark)
                        assert expected == changed(by_rows, of_rows.mark, now[1].mark)
                        compared += sum(map(len, expected))
                states.setdefault(name, []).append(now)
        assert compared


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_that_follow_the_rows_hold_what_the_index_has(seed: int, tmp_path: Path) -> None:
    history = BranchingHistory(tmp_path / "memory.gs", seed)
    with closing(history.store) as store:
        for round in range(6):
            history.go_on(6)
            if round > 3:
                history.try_some(FORGETTING)
            store.query_tables("RETURN 1")
            core, tables = store._core, store._core.graphs.projection
            held = Readback(IndexHistory(core.index, core.journal), core.graphs.tables(), tables.by_table)
            assert [] == [*held.all(core.index.mark(), sorted(tables._tables))]
        assert 0 == core.graphs.thrown_away


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
            assert store._core.unread is not None
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
