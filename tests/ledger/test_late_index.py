"""A store that was just opened answers by the rows of its ledger. What needs the index loads it, and answers the same."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import EngineError, GraphStore, GraphStoreError, InvalidError, NotFoundError
from graphstore.ledger.database import Database

pytestmark = pytest.mark.in_process("looks whether the store has its index")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        store.define_kind("inspires", inverse="inspired_by")
        store.record_event("outage", "the cache was full", id="outage")
        store.add_node("decision", {"cache": "redis"}, id="redis", key="cache", derived_from="outage")
        store.revise("redis", {"cache": "redis", "size": 2})
        store.add_node("decision", {"cache": "none"}, id="none", key="cache", reason="it was full again")
        store.link("none", "caused_by", "outage")
        store.link("outage", "inspires", "none")
        store.add_node("plan", {"day": "monday"}, id="plan", derived_from="redis")
        store.add_node("plan", {"day": "friday"}, id="next", derived_from="plan")
        store.retract("outage", reason="it was a test")
    return path


def is_unread(store: GraphStore) -> bool:
    return store._core.unread is not None


READS: dict[str, Callable[[Any], Any]] = {
    "node": lambda here: here.node("none"),
    "superseded": lambda here: here.node("redis"),
    "unknown": lambda here: here.node("rediss"),
    "no text": lambda here: here.node(7),
    "event": lambda here: here.node("outage"),
    "version": lambda here: here.node("redis-v1"),
    "shaky": lambda here: here.node("plan"),
    "all shaky": lambda here: here.shaky(),
    "the first shaky": lambda here: here.shaky(limit=1),
    "no limit of shaky": lambda here: here.shaky(limit=0),
    "a past event": lambda here: here.event("outage"),
    "an inspection": lambda here: here.inspect("redis"),
    "an inspected event": lambda here: here.inspect("outage"),
    "an inspected link": lambda here: here.inspect(here.links_from("none")[0].id),
    "a link's fate": lambda here: here.what_superseded(here.links_from("none")[0].id),
    "operations": lambda here: here.operations("redis"),
    "a diff": lambda here: here.diff("redis", 1, 2),
    "events": lambda here: here.events(),
    "a sentence": lambda here: here.link_history("none", "caused_by", "outage"),
    "whole id": lambda here: here.whole_id("lnk_"),
    "nodes": lambda here: here.nodes(),
    "light rows": lambda here: here.scan(content=True),
    "contradictions": lambda here: here.contradictions(settled=True),
    "of a kind": lambda here: here.nodes("decision"),
    "of a slot": lambda here: here.nodes(key="cache"),
    "history": lambda here: here.history("redis"),
    "versions": lambda here: here.versions("redis"),
    "links": lambda here: here.links_from("none"),
    "links of a kind": lambda here: here.links_from("none", "caused_by"),
    "links turned round": lambda here: here.links_from("none", iter(["inspired_by"])),
    "an unknown kind": lambda here: here.links_from("none", "knows"),
    "backlinks": lambda here: here.backlinks_to("outage"),
    "what superseded": lambda here: here.what_superseded("redis"),
    "what superseded a version": lambda here: here.what_superseded("redis-v1"),
    "causes": lambda here: here.causes("none"),
    "effects": lambda here: here.effects("outage", 1),
    "a walk": lambda here: here.walk(iter(["none", "plan"]), hops=3),
    "paths": lambda here: here.paths("plan", "none", direction="both"),
    "no depth": lambda here: here.effects("outage", 0),
    "a table": lambda here: here.to_arrow(),
    "a query": lambda here: here.query("MATCH (n) RETURN label(n), n.id, n.standing ORDER BY n.id"),
    "a query of links": lambda here: here.query(
        "MATCH (a)-[r]->(b) RETURN a.id, label(r), b.id ORDER BY r.id"
    ),
    "a query of periods": lambda here: here.query(
        "FOR VALID_TIME ALL MATCH (n:Node) RETURN n.id, n.valid_to ORDER BY n.row"
    ),
    "a query that writes": lambda here: here.query("CREATE (n:Node {id: 'x'})"),
    "a query of no property": lambda here: here.query("MATCH (n:Node) RETURN n.nothing"),
}


def answer(read: Callable[[Any], Any], here: Any) -> Any:
    try:
        return read(here)
    except GraphStoreError as error:
        return type(error), str(error)


def printed(value: Any) -> Any:
    """An answer as it is printed: with its fields in order."""
    if isinstance(value, list):
        return [printed(each) for each in value]
    return value.model_dump_json() if hasattr(value, "model_dump_json") else repr(value)


@pytest.mark.parametrize("name", READS)
def test_rows_answer_what_the_index_answers(path, name):
    with graphstore.open(path, read_only=True) as store:
        view = store.as_of()
        pinned, of_store = answer(READS[name], view), answer(READS[name], store)
        assert is_unread(store)
        store._core.read_index()
        assert answer(READS[name], view) == pinned
        assert printed(answer(READS[name], view)) == printed(pinned)
    if name not in ("superseded", "event", "a past event"):  # whose sentences name now
        assert of_store == pinned


READS_OF_A_STORE: dict[str, Callable[[GraphStore], Any]] = {
    "changes": lambda store: store.changes(),
    "changes since": lambda store: store.changes(since=store.snapshots()[0].tx),
    "changes until": lambda store: store.changes(until="first"),
    "no changes": lambda store: store.changes(since="first", until="first"),
    "changes of no span": lambda store: store.changes(since="second", until="first"),
    "some changes": lambda store: store._changes(None, 2),
    "some changes since": lambda store: store._changes("first", 1),
    "last changes": lambda store: store._last_changes(4),
    "counts": lambda store: store.stats(),
    "snapshots": lambda store: store.snapshots(),
    "touch what is not known": lambda store: store.touch(["plan", "rediss"]),
    "print": repr,
    "tables": lambda store: store.query_tables("MATCH (n:Node) RETURN n.id, n.kind ORDER BY n.id"),
}


@pytest.mark.parametrize("name", READS_OF_A_STORE)
def test_rows_answer_of_a_whole_store_what_the_index_answers(name, path):
    read = READS_OF_A_STORE[name]
    with graphstore.open(path, author="ana") as store:
        store.snapshot("first")
        with store.transaction(reason="both at once"):
            store.add_node("fact", {"n": 1}, id="secret", reason="it was told")
            store.confirm("none", reason="still so")
        side = store.branch("side", reason="to try it")
        side.add_node("fact", {"n": 2}, id="aside")
        store.merge("side")
        side.revise("aside", {"n": 3})
        store.promote_kind("inspires")
        store.snapshot("second")
        store.erase("secret", reason="not ours")
    with graphstore.open(path) as store:
        by_rows = answer(read, store)
        assert is_unread(store)
        store._core.read_index()
        assert by_rows == answer(read, store)
        assert printed(by_rows) == printed(answer(read, store))


def test_lookups_are_counted_without_the_index(path):
    with graphstore.open(path) as store:
        store.touch(["plan-v1", "none"])
        store.touch("none")
        assert is_unread(store)
        assert {"plan": 1, "none": 2} == store._core.accesses.waiting
        assert 2 == store.flush_accesses()


def test_a_closed_store_is_printed_without_the_index(path):
    with graphstore.open(path) as store:
        assert is_unread(store)
    assert f"<GraphStore {str(path)!r} closed>" == repr(store)


def test_times_and_names_of_snapshots_are_read_without_the_index(path):
    with graphstore.open(path) as store:
        store.snapshot("first")
        store.retract("none", reason="no longer")
    with graphstore.open(path) as store:
        assert "none" == store.as_of("first").node("none").id
        assert "none" == store.as_of(tx="first").node("none").id
        assert [] == store.as_of(valid="yesterday").nodes()
        with pytest.raises(NotFoundError, match="Nearest: 'first'"):
            store.as_of("frist")
        assert is_unread(store)


def test_two_views_of_the_trunk_are_compared_without_the_index(path):
    with graphstore.open(path, author="ana") as store:
        store.snapshot("first")
        store.retract("plan", reason="it never was")
        store.revise("none", {"cache": "none"}, tags=["settled"], reason="it is settled")
        store.record_event("fix", "the cache is off", id="fix", related_to="none")
        store.branch("side").add_node("fact", {"n": 1}, id="aside")
    with graphstore.open(path) as store:
        first, now = store.as_of("first"), store.as_of()
        pairs = [(first, now), (now, first), (first, store), (store, first), (store, store)]
        differences = [one.compare(other) for one, other in pairs]
        tables = [one.changes_to(other) for one, other in pairs]
        with graphstore.open(path, read_only=True) as another:
            for reader in (another, another.as_of(), "no view"):
                with pytest.raises(InvalidError, match="compare wants another view of the same store"):
                    now.compare(reader)
        assert is_unread(store)
        store._core.read_index()
        assert printed([one.compare(other) for one, other in pairs]) == printed(differences)
        assert [one.changes_to(other) for one, other in pairs] == tables
        assert ["none"] == [change.id for change in differences[0].changed]
        assert {("plan", "added", None), ("plan", "removed", "it never was")} <= {
            (row["id"], row["change"], row["reason"]) for table in tables for row in table.rows()
        }


def test_branches_are_listed_compared_and_merged_without_the_index(path):
    with graphstore.open(path) as store:
        store.branch("side").add_node("fact", {"n": 1}, id="aside")
    with graphstore.open(path) as store:
        assert [("side", 1)] == [(info.name, info.transactions) for info in store.branches()]
        assert ["aside"] == [node.id for node in store.compare("side").added]
        assert ("aside",) == store.merge("side").added
        store.add_node("fact", {"n": 2}, id="other")
        assert ("other",) == store.on("side").pull().added
        store.delete_branch("side")
        assert is_unread(store)


def test_what_needs_the_index_loads_it(path):
    for use in (lambda store: store.verify(),):
        with graphstore.open(path) as store:
            assert is_unread(store)
            use(store)
            assert not is_unread(store)
            assert "none" == store.node("none").id


def test_verbs_load_nothing(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="new", key="slot", derived_from="none")
        store.revise("new", {"n": 2})
        store.record_event("error", "it failed", related_to=["new"])
        with store.transaction():
            store.link("new", "related_to", "none")
            store.retract("new", reason="wrong")
        store.snapshot("then")
        assert is_unread(store)
        assert "retracted" == store.inspect("new").node.standing
        with store.transaction():
            store.add_node("fact", {"n": 3}, id="newer")
            assert "newer" == store.node("newer").id
        assert is_unread(store)


def test_a_store_whose_kind_of_link_has_a_table_of_its_own_is_opened(path):
    with graphstore.open(path) as store:
        store.promote_kind("inspires")
        kinds = store.vocabulary.kinds
    with graphstore.open(path) as store:
        assert kinds == store.vocabulary.kinds
        assert is_unread(store)


def test_closing_and_opening_loads_nothing(path):
    with graphstore.open(path) as store:
        assert is_unread(store)
    assert is_unread(store)


def test_what_others_commit_is_there_at_once_and_a_view_stays(path):
    with graphstore.open(path, read_only=True) as reader, graphstore.open(path) as writer:
        view = reader.as_of()
        writer.define_kind("praises", inverse="praised_by")
        writer.add_node("fact", {"n": 1}, id="new")
        link = writer.link("new", "praises", "none")
        assert {"n": 1} == reader.node("new").content
        assert [link] == reader.links_from("new", "praises") == reader.backlinks_to("none", ["praises"])
        assert writer.as_of().at.tx == reader.as_of().at.tx
        assert writer.changes() == reader.changes()
        assert writer.stats() == reader.stats()
        writer.retract("new", reason="not so")
        assert writer.stats() == reader.stats()
        with pytest.raises(NotFoundError):
            view.node("new")
        assert is_unread(reader)


def test_each_answer_is_of_one_state(path):
    with graphstore.open(path) as writer:
        for number in range(5):
            writer.add_node("step", {"n": number}, id=f"step-{number}", valid_from="2026-01-01")
    done = threading.Event()

    def write() -> None:
        with graphstore.open(path) as writer:
            for number in range(5, 60):
                writer.add_node("step", {"n": number}, id=f"step-{number}", supersedes=f"step-{number - 1}")
        done.set()

    thread = threading.Thread(target=write)
    with graphstore.open(path, read_only=True) as reader:
        thread.start()
        while not done.is_set():
            found = reader.what_superseded("step-4")
            steps = [step.node.id for step in found.chain if step.node is not None]
            assert [f"step-{number}" for number in range(5, 5 + len(steps))] == steps
            assert (steps[-1:] or ["step-4"]) == [node.id for node in found.current]
        assert is_unread(reader)
    thread.join()


def test_threads_ask_while_another_loads_the_index_and_writes(path):
    for _ in range(15):
        with graphstore.open(path) as store:
            over, failed = threading.Event(), list[BaseException]()

            def ask(store: GraphStore = store, over: threading.Event = over, failed: Any = failed) -> None:
                try:
                    while not over.is_set():
                        store.node("none")
                        store.inspect("redis")
                        store.as_of().links_from("none")
                except BaseException as error:
                    failed.append(error)

            threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(5):
                store.add_node("fact", {"n": 1})
            over.set()
            for thread in threads:
                thread.join(20)
            assert not any(thread.is_alive() for thread in threads)
            assert not failed


def test_a_newer_release_that_upgrades_the_ledger_stops_a_reader(path):
    with graphstore.open(path, read_only=True) as reader:
        view = reader.as_of()
        assert "none" == view.node("none").id
        with closing(Database(path / "ledger.db")) as database, database.transaction() as connection:
            connection.execute("PRAGMA user_version=99")
        for here in (reader, view):
            with pytest.raises(EngineError, match="has schema 99"):
                here.node("none")


ERASES = """
import os, sys, graphstore
from graphstore.ledger.ledger import Ledger
Ledger.remove_forgotten = lambda *_: os._exit(9)  # a kill after the transaction of an erasure
with graphstore.open(sys.argv[1]) as store:
    store.erase("redis", reason="a secret")
"""


@pytest.mark.parametrize("read_only", [False, True])
def test_what_a_killed_erasure_left_is_never_answered(path, read_only):
    killed = subprocess.run([sys.executable, "-c", ERASES, str(path)], cwd=ROOT, capture_output=True)
    assert 9 == killed.returncode, killed.stderr
    assert b"redis" in (path / "ledger.db").read_bytes() + (path / "ledger.db-wal").read_bytes()
    with graphstore.open(path, read_only=read_only) as store:
        assert is_unread(store)
        assert [] == store.history("redis") or {} == store.history("redis")[0].content
    if not read_only:
        with graphstore.open(path) as store:
            assert is_unread(store)
            assert store.verify().ok
        assert b'"redis"' not in b"".join(
            file.read_bytes() for file in path.iterdir() if file.name != "ledger.db" and file.is_file()
        )
