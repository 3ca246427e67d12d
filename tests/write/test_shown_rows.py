"""A transaction finds in its own reads what it has done, and nobody else does, whatever becomes of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import EngineError, GraphStore, NotFoundError
from graphstore.memory.recall import recall
from graphstore.values import random_bits
from tests.conftest import Clock
from tests.support.ledger_rows import heads

pytestmark = pytest.mark.in_process("looks whether the store has its index")

ROOT = Path(__file__).parents[2]
STEPS = 30
LINES = pytest.mark.parametrize("branch", [None, "side"])


def opened(path: Path) -> GraphStore:
    return graphstore.open(path, clock=Clock())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    with opened(path) as store:
        for n in range(9):
            store.add_node("fact", {"n": n}, id=f"n{n}", derived_from=[f"n{n - 1}"] if n else ())
        store.branch("side")
    return path


def line(store: GraphStore, branch: str | None) -> Any:
    """Return the trunk, or a branch of it."""
    return store if branch is None else store.on(branch)


def test_reads_in_a_block_load_nothing(path):
    with opened(path) as store:
        with store.transaction():
            store.revise("n0", {"n": "new"}, text="about bears")
            assert ["n1"] == [shaky.node.id for shaky in store.shaky(limit=1)]
            assert "shaky" == store.node("n1").standing
            store.confirm("n1", reason="looked")
            assert "stands" == store.node("n1").standing
            store.supersede("n3", by="n5")
            assert "superseded" == store.inspect("n3").node.standing
            assert "n5" == store.what_superseded("n3").current[0].id
            assert "n0" == recall(store, "bears").hits[0].node.id
            store.retract("n8", reason="wrong")
            with pytest.raises(NotFoundError, match="retracted"):
                store.node("n8")
            held = store.as_of(tx=store.changes()[0].tx)
            assert ["n0"] == [node.id for node in held.nodes()]
            assert 8 > len(store.nodes())
        assert store.verify().ok


def test_others_see_nothing_of_what_a_block_shows_itself(path):
    seen: list[Any] = []

    def look(store: GraphStore) -> None:
        seen.append((store.node("n0").content, store.knows("new"), len(store.events())))

    with opened(path) as store:
        with store.transaction():
            store.revise("n0", {"n": "new"})
            store.add_node("fact", {}, id="new")
            assert store.inspect("new").node.id == "new"
            thread = threading.Thread(target=look, args=(store,))
            thread.start()
            thread.join()
            with graphstore.open(path, read_only=True) as other:
                look(other)
        assert seen == [({"n": 0}, False, 0)] * 2


def told(path: Path, branch: str | None, *, fails: bool) -> tuple[list[Any], list[Any]]:
    """Tell a line a block with a read after each verb, of which each second one fails at first. Return the answers and the chain."""
    answers = []
    random_bits._drawn[:] = [f"{n:016x}" for n in range(200)]
    with opened(path) as trunk:
        store = line(trunk, branch)
        writer = store._core.journal.database.writer
        with store.transaction():
            for n in range(STEPS):
                store.add_node("fact", {"n": n, "pad": "x" * 9_000}, id=f"new{n}", derived_from=["n3"])
                store.revise("n2", {"n": -n})
                if fails and n % 2:
                    [(pages,)] = writer.execute("PRAGMA page_count").fetchall()
                    writer.execute(f"PRAGMA max_page_count={pages + n % 3 // 2}")
                    with pytest.raises(EngineError) as refused:
                        store.shaky()
                    assert refused.value.outcome == "not kept"
                    writer.execute("PRAGMA max_page_count=1073741823")
                answers.append([shaky.node.id for shaky in store.shaky()])
        assert store.verify().ok
        store.revise("n1", {"n": "last"})
        assert store.verify().ok
    random_bits._drawn.clear()
    return answers, heads(path)


@LINES
def test_a_read_that_the_disk_refuses_leaves_the_block_as_it_was(path, branch):
    copy = path.with_name("copy.gs")
    shutil.copytree(path, copy)
    assert told(path, branch, fails=False) == told(copy, branch, fails=True)


@LINES
@pytest.mark.skipif(sys.platform == "win32", reason="needs a timer of POSIX")
def test_a_read_that_is_interrupted_leaves_the_block_as_it_was(path, branch):
    interrupted = 0

    reading: set[int] = set()

    def interrupt(*_: object) -> None:
        if reading:  # an alarm that comes late interrupts nothing
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with opened(path) as trunk:
            store = line(trunk, branch)
            with store.transaction():
                for n in range(60):
                    store.revise("n0", {"n": n})
                    store.add_node("fact", {"n": n}, id=f"new{n}", derived_from=["n3"])
                    reading.add(n)
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.0001 + n * 0.00005)
                        store.nodes()
                        store.shaky()
                        reading.clear()
                    except KeyboardInterrupt:
                        interrupted += 1
                    finally:
                        reading.clear()
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    assert 9 + n + 1 == len(store.nodes())
            assert store.verify().ok
            store.revise("n0", {"n": "last"})
            assert 60 + 8 == len(store.shaky())
            assert store.verify().ok
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


KILLED = """
import os, signal, sys, graphstore
store = graphstore.open(sys.argv[1])
with store.transaction():
    store.revise("n0", {"n": "new"})
    store.add_node("fact", {"pad": "x" * 9_000_000}, id="new")
    assert store.shaky()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal of POSIX")
def test_nothing_is_left_of_what_a_killed_process_showed_itself(path):
    before = heads(path)
    subprocess.run([sys.executable, "-c", KILLED, path], cwd=ROOT, check=False)
    assert heads(path) == before
    with opened(path) as store:
        assert not store.knows("new")
        assert store.verify().ok
