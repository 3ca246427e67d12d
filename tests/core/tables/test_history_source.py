"""The rows of a ledger and the index have the same history, whole and between two states; the tables that follow the rows hold what the index has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.core.index.columns import Mark
from graphstore.core.tables.history_source import HistorySource

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
