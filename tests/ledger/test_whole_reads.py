"""Reads that look at much of a store answer from the rows of its ledger what they answer from the index."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from graphstore.context import glimpses, memory_status
from graphstore.events import report, timeline
from graphstore.imports import otlp
from graphstore.imports.gasoline import export_gasoline
from graphstore.imports.pi_brain import export_pi_brain
from graphstore.memory import lifecycle
from graphstore.memory.memory import Memory
from graphstore.store.links import Proposal
from tests.conftest import START, Clock
from tests.ledger.test_late_index import answer, is_unread, printed
from tests.ledger.test_verbs_on_rows import day, step

pytestmark = pytest.mark.in_process("looks whether the store has its index")

STEPS = 90
NOW = START + timedelta(days=99)


def happen(chance: random.Random, ids: list[str]) -> Callable[[GraphStore], Any]:
    """One thing that happens, is resolved, or is forgotten."""
    one, two = chance.choice(ids), chance.choice(ids)
    at = (START - timedelta(days=chance.randrange(20), hours=chance.choice((0, 0, 5)))).isoformat()
    number = chance.randrange(3)
    metadata = chance.choice((None, {"scope": "x"}, {"n": number}))
    return chance.choice(
        (
            lambda s: s.record_event("error", f"failed {number}", occurred_at=at, metadata=metadata),
            lambda s: s.record_event("error", f"failed {number}", occurred_at=at, source="ci"),
            lambda s: s.record_event("regression", f"slow {number}", occurred_at=at),
            lambda s: s.record_event("deploy", f"release {number}", occurred_at=at),
            lambda s: s.record_event(
                "message", "hello", sender="bo", thread="t", authorized=bool(number), occurred_at=at
            ),
            lambda s: s.record_event(
                "span", "work", trace_id=f"{number:032x}", span_id=f"{number:016x}", occurred_at=at
            ),
            lambda s: s.record_event("step", f"did {at}", trace_id=f"{number:032x}", occurred_at=at),
            lambda s: s.record_event("fix", "mended", occurred_at=at, related_to=[one]),
            lambda s: s.link(one, "resolved_by", two, valid_from=at),
            lambda s: s.link(one, "caused_by", two, confidence="inferred", reason="near"),
            lambda s: s.link(one, "supersedes", two),
            lambda s: s.evict(ids=[one], reason="old"),
            lambda s: s.erase(one, reason="a secret"),
            lambda s: s.evict(ids=[one], keep_audit=False, reason="old"),
        )
    )


def play(path: Path, seed: int) -> tuple[list[str], list[Any]]:
    """Tell a store a random history. Return the ids of what it recorded, and the instants of some transactions."""
    chance, clock = random.Random(f"whole {seed}"), Clock()
    ids, links = ["n-1", "n-2"], ["lnk_one"]
    with graphstore.open(path, clock=clock, author="ana") as store:
        for _ in range(STEPS):
            clock.move(seconds=chance.choice((0, 1, 3600, 40_000)))
            tell = happen if chance.random() < 0.5 else step
            more = (links,) if tell is step else ()
            with suppress(GraphStoreError):
                found = tell(chance, ids, *more)(store)
                named = found.event if isinstance(found, graphstore.Recorded) else found
                if isinstance(named, graphstore.Link):
                    links.append(named.id)
                elif isinstance(named, (graphstore.Node, graphstore.Event)):
                    ids.append(named.id)
        if seed % 3 == 0:
            side = store.branch("side")
            side.add_node("fact", {"n": 1}, id="aside")
            side.record_event("error", "failed 1", id="err-aside")
            with suppress(GraphStoreError):
                store.merge("side")
        changes = [each.tx for each in store.changes()]
    return [*dict.fromkeys(ids)], [*changes[:: len(changes) // 3 + 1], changes[-1]]


def table(found: Any) -> Any:
    """The rows of a table with the types of its columns."""
    return found.to_arrow().schema.to_string(), found.rows()


def written(export: Callable[[Any, Path], Any], here: Any) -> Any:
    """What an export writes."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "export"
        count = export(here, target)
        files = [target] if target.is_file() else sorted(each for each in target.rglob("*") if each.is_file())
        return count, [(str(each.relative_to(folder)), each.read_bytes()) for each in files]


def graph_of(found: Any) -> Any:
    """The nodes and edges of a networkx graph, in order."""
    return list(found.nodes(data=True)), list(found.edges(keys=True, data=True))


READS: dict[str, Callable[[Any, str], Any]] = {
    "patterns": lambda here, id: report.patterns(
        here, since="200d", recurrences=1, deploys=1, days=1, occurrences=2
    ),
    "patterns of errors": lambda here, id: report.patterns(here, since="150d", type="error", recurrences=1),
    "occurrences": lambda here, id: report.occurrences(here, id),
    "a report": lambda here, id: report.history_report(here, since="60d"),
    "a report of all": lambda here, id: report.history_report(here, since="60d", every=True),
    "a report of one": lambda here, id: report.history_report(here, since="60d", related_to=id),
    "a report of a type": lambda here, id: report.history_report(
        here, type=["error", "fix"], since=(START - timedelta(days=9), START - timedelta(days=3))
    ),
    "a report of words": lambda here, id: report.history_report(here, since="60d", pattern="FAILED 1"),
    "a report of what is open": lambda here, id: report.history_report(here, since="90d", status="active"),
    "clocks": lambda here, id: glimpses.clocks(here, 7),
    "the next change": lambda here, id: glimpses.next_change(here, "valid", START - timedelta(days=9)),
    "the last change": lambda here, id: glimpses.next_change(here, "tx", START + timedelta(hours=30), True),
    "the latest": lambda here, id: glimpses.latest(here, 7),
    "named": lambda here, id: glimpses.named(here, [id, "nothing"]),
    "a glimpse": lambda here, id: glimpses.glimpse(here, id),
    "a log": lambda here, id: written(export_gasoline, here),
    "files of sessions": lambda here, id: written(export_pi_brain, here),
    "traces": lambda here, id: timeline.traces(here),
    "a trace": lambda here, id: timeline.trace(here, f"{len(id) % 3:032x}"),
    "the id of a trace": lambda here, id: timeline.whole_trace_id(here, "000000000"),
    "spans": lambda here, id: otlp.traces_data(here).SerializeToString(deterministic=True),
    "networkx": lambda here, id: graph_of(here.to_networkx()),
    "contradictions": lambda here, id: here.contradictions(),
    "a graph": lambda here, id: glimpses.graph(here, [id, "n-1", "nothing"]),
}


@pytest.mark.parametrize("seed", range(8))
def test_rows_answer_what_the_index_answers(seed, tmp_path):
    path = tmp_path / "memory.gs"
    ids, instants = play(path, seed)
    chance = random.Random(seed)
    asked: list[tuple[str, Any, str]] = []
    for name in READS:
        for tx in (None, *instants):
            valid = day(chance) or NOW
            asked.append((name, {"valid": valid, "tx": tx}, chance.choice(ids)))
    loaded = list[str]()
    with graphstore.open(path, read_only=True) as index:
        index._core.read_index()
        rows = graphstore.open(path, read_only=True)
        for name, where, id in asked:
            read = partial(READS[name], id=id)
            found, expected = answer(read, rows.as_of(**where)), answer(read, index.as_of(**where))
            assert (name, where, id, expected) == (name, where, id, found)
            assert printed(expected) == printed(found)
            if not is_unread(rows):
                loaded.append(name)
                rows.close()
                rows = graphstore.open(path, read_only=True)
        rows.close()
    assert [] == loaded


def dumped(store: GraphStore) -> bytes:
    """The bytes of a dump."""
    target = store.path.with_name(f"dump-{time.monotonic_ns()}")
    store.export(target)
    return target.read_bytes()


def swept(store: GraphStore, seen: list[Any]) -> Any:
    """What a sweep gives, and what its extractor was asked about."""

    def extract(view: Any, ids: list[str]) -> list[Proposal]:
        seen.append(ids)
        return [Proposal(ids[0], "related_to", other, "near", "a rule") for other in ids[1:3]]

    found = store.sweep(extract, since=START + timedelta(hours=9)), store.sweep(extract)
    return [(each.asked, each.counts, each.contradictions, each.shaky) for each in found], seen


OF_A_STORE: dict[str, Callable[[GraphStore], Any]] = {
    "what is due": lambda store: lifecycle.due(store, NOW + timedelta(days=400)),
    "the memory": memory_status.status,
    "a dump": dumped,
    "a sweep": lambda store: swept(store, []),
    "counts over time": lambda store: table(
        store.over(valid=(START - timedelta(days=30), START, "2 days")).count(by="kind")
    ),
    "nodes over time": lambda store: table(
        store.over(tx=(START + timedelta(hours=9), START + timedelta(hours=60), "9 hours")).nodes("fact")
    ),
    "differences over time": lambda store: table(
        store.over(valid=(START - timedelta(days=30), START, "9 days")).compare()
    ),
}


@pytest.mark.parametrize("seed", [1, 2, 4])
@pytest.mark.parametrize("name", OF_A_STORE)
def test_a_store_answers_from_its_rows_what_it_answers_from_the_index(name, seed, tmp_path):
    path, other = tmp_path / "memory.gs", tmp_path / "index.gs"
    play(path, seed)
    clock = Clock()
    clock.move(days=99)
    with graphstore.open(path, clock=clock) as store:
        memory = Memory(store)
        for number in range(5):
            memory.remember(f"text {number}", layer="soul")
        store.evict(ids=[store.nodes("chunk")[0].id], reason="old")
    shutil.copytree(path, other)
    with graphstore.open(path, clock=clock) as rows, graphstore.open(other, clock=clock) as index:
        found = answer(OF_A_STORE[name], rows)
        assert is_unread(rows)
        index._core.read_index()
        assert answer(OF_A_STORE[name], index) == found
