"""What a block of `reading()` and Cypher inside a transaction find is the same by the rows and by the index."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.core.read.sight import Sight
from tests.conftest import Clock
from tests.core.write.test_forgetting_on_rows import SEEDS, History

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")

KINDS = frozenset({"derived_from", "supersedes", "related_to", "contradicts", "resolved_by"})
QUERIES = (
    "MATCH (n:Node) RETURN n.id AS id, n.content AS content, n.standing AS standing ORDER BY id",
    "MATCH (a)-[r]->(b) RETURN a.id AS source, label(r) AS kind, b.id AS target, r.reason AS reason ORDER BY source, kind, target",
    "MATCH (e:Event) RETURN e.id AS id, e.status AS status, e.description AS text ORDER BY id",
    "FOR VALID_TIME ALL MATCH (n:Node) RETURN n.id AS id, n.valid_from AS begins ORDER BY id, begins",
)


def looked_at(sight: Sight, ids: list[str], links: list[str]) -> list[Any]:
    """What functions that look and write ask, in words that do not depend on numbers."""

    def named(link: int) -> tuple[Any, ...]:
        edge = sight._edge(link)
        return (
            edge.id,
            edge.kind,
            sight.id(edge.source),
            sight.id(edge.target),
            bool(sight.believed_link(link)),
        )

    def of(id: str) -> Any:
        ent = sight.entity(id)
        if ent < 0:
            return sight.ids_beside(id)[:3]
        sides = [[named(edge.link) for edge in sight.edges(ent, side)] for side in ("out", "into")]
        shown = sight.event_and_links(ent) if sight.is_event(ent) else sight.thing(ent)
        happened = sight.happened.seen(ent) if sight.is_event(ent) else None
        return (
            sight.kind(ent), sight.find(ent) >= 0, sight.is_forgotten(ent), sight.standing(ent), sides, shown, happened, sight.body(ent),
        )  # fmt: skip

    latest, standing = sight.latest(5)
    return [
        *map(of, [*ids, "no-such-id"]),
        [sight.knows_link(id) for id in [*links, "lnk_none"]],
        sight.links_made(),
        [named(edge.link) for edge in sight.edges_of(KINDS)],
        (list(map(sight.id, latest)), standing),
        [sight.id(ent) for ent in sight.of_kinds(("error", "deploy"), events=True)],
        [(sight.id(sight.index.v_ent[ver]), sight.index.v_num[ver]) for ver in sight.versions_ever()],
        [sight.change(op) for id in ids if sight.entity(id) >= 0 and (op := sight.closed_by(id)) >= 0],
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_of_reading_finds_in_the_rows_what_it_finds_in_the_index(seed, tmp_path):
    history = History(tmp_path / "memory.gs", seed)
    history.write(60)
    chance, found = random.Random(seed), []
    with graphstore.open(history.path, read_only=True) as store:
        coordinates = [(None, None), *((each.tx, each.tx) for each in chance.sample(store.changes(), 3))]
    for is_loaded in (False, True):
        with graphstore.open(history.path, clock=history.clock) as store:
            if is_loaded:
                store._core.read_index()
            for valid, tx in coordinates:
                with store.as_of(valid=valid, tx=tx).reading() as sight:
                    found.append(looked_at(sight, history.ids, history.links))
            assert is_loaded == (store._core.unread is None)

    for by_rows, by_index in zip(found[: len(coordinates)], found[len(coordinates) :], strict=True):
        assert by_rows == by_index


def queried(path: Path, is_loaded: bool) -> list[Any]:
    """What queries find in a block that fails, in one that does not, and around them."""
    found: list[Any] = []
    clock = Clock("2026-01-01")

    def ask(reader: Any, store: GraphStore) -> None:
        for cypher in QUERIES:
            found.append(reader.query(cypher).rows())
        found.append(store.query_tables("MATCH (n:Node) RETURN n.id AS id ORDER BY id").rows())

    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"n": 1}, id="a")
        store.add_node("fact", {"n": 2}, id="b", derived_from="a")
        store.record_event("error", "it failed", id="failure")
        early = store.as_of()
        if is_loaded:
            store._core.read_index()
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
            clock.move(days=1)
            ask(store, store)
            ask(early, store)
        assert is_loaded == (store._core.unread is None)
        assert store.verify().problems == ()
    return found


def test_queries_in_a_block_find_in_the_rows_what_they_find_in_the_index(tmp_path):
    assert queried(tmp_path / "rows", False) == queried(tmp_path / "index", True)
