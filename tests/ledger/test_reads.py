"""A store that was just opened answers by the rows of its ledger. What needs the index loads it, and answers the same."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import EngineError, GraphStore, InvalidError, NotFoundError
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


def test_lookups_are_counted(path):
    with graphstore.open(path) as store:
        store.touch(["plan-v1", "none"])
        store.touch("none")
        assert {"plan": 1, "none": 2} == store._core.accesses.waiting
        assert 2 == store.flush_accesses()


def test_a_closed_store_is_printed(path):
    with graphstore.open(path) as store:
        store.node("none")
    assert f"<GraphStore {str(path)!r} closed>" == repr(store)


def test_times_and_names_of_snapshots_are_read(path):
    with graphstore.open(path) as store:
        store.snapshot("first")
        store.retract("none", reason="no longer")
    with graphstore.open(path) as store:
        assert "none" == store.as_of("first").node("none").id
        assert "none" == store.as_of(tx="first").node("none").id
        assert [] == store.as_of(valid="yesterday").nodes()
        with pytest.raises(NotFoundError, match="Nearest: 'first'"):
            store.as_of("frist")


def test_two_views_of_the_trunk_are_compared(path):
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
        assert ["none"] == [change.id for change in differences[0].changed]
        assert {("plan", "added", None), ("plan", "removed", "it never was")} <= {
            (row["id"], row["change"], row["reason"]) for table in tables for row in table.rows()
        }


def test_branches_are_listed_compared_and_merged(path):
    with graphstore.open(path) as store:
        store.branch("side").add_node("fact", {"n": 1}, id="aside")
    with graphstore.open(path) as store:
        assert [("side", 1)] == [(info.name, info.transactions) for info in store.branches()]
        assert ["aside"] == [node.id for node in store.compare("side").added]
        assert ("aside",) == store.merge("side").added
        store.add_node("fact", {"n": 2}, id="other")
        assert ("other",) == store.on("side").pull().added
        store.delete_branch("side")


def test_a_store_whose_kind_of_link_has_a_table_of_its_own_is_opened(path):
    with graphstore.open(path) as store:
        store.promote_kind("inspires")
        kinds = store.vocabulary.kinds
    with graphstore.open(path) as store:
        assert kinds == store.vocabulary.kinds


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
    thread.join()


def test_threads_ask_while_another_writes(path):
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
        assert [] == store.history("redis") or {} == store.history("redis")[0].content
    if not read_only:
        with graphstore.open(path) as store:
            assert store.verify().ok
        assert b'"redis"' not in b"".join(
            file.read_bytes() for file in path.iterdir() if file.name != "ledger.db" and file.is_file()
        )
