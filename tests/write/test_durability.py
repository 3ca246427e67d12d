"""What a failed commit makes of its transactions: each is told that it was kept, was not, or that this is unknown."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError
from tests.support.disk import no_room
from tests.support.ledger_rows import recorded

pytestmark = pytest.mark.in_process("the disk fails beneath it")

THREADS, EACH = 8, 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def written(store: graphstore.GraphStore) -> dict[str, list]:
    """What many threads were told of what they wrote: ids by what became of them, with the tx to ask by where that is unknown."""
    told: dict[str, list] = {"kept": [], "not kept": [], "unknown": []}

    def write(thread: int) -> None:
        for number in range(EACH):
            name = f"fact-{thread}-{number}"
            try:
                store.add_node("fact", {"n": number}, id=name)
            except EngineError as error:
                told[error.outcome].append((name, error.tx))
            else:
                told["kept"].append(name)
                assert {"n": number} == store.node(name).content

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(write, range(THREADS)))
    return told


def holds(path: Path, told: dict[str, list]) -> None:
    """Opened again: what was kept is there once, what was not is absent, the rest is there when changes() has its tx."""
    with graphstore.open(path) as store:
        there = [change.subject for change in store.changes() if change.verb == "add_node"]
        instants = {change.tx for change in store.changes()}
        assert sorted(there) == sorted(set(there))
        assert set(told["kept"]) <= set(there)
        assert set() == {name for name, _ in told["not kept"]} & set(there)
        for name, tx in told["unknown"]:
            assert (name in there) == (tx in instants)
        assert set(there) <= {*told["kept"], *(name for name, _ in told["unknown"])}
        assert {node.id for node in store.nodes()} == set(there)
        assert store.verify().ok
        store.add_node("fact", {}, id="goes-on")


def trial(path: Path, seed: int) -> dict[str, list]:
    """Many threads write while no file of this process may grow, off and on."""
    chance = random.Random(seed)
    done = threading.Event()

    def refuse() -> None:
        while not done.wait(chance.random() * 0.01):
            with no_room():
                time.sleep(chance.random() * 0.01)

    with graphstore.open(path) as store:
        disk = threading.Thread(target=refuse)
        disk.start()
        try:
            told = written(store)
        finally:
            done.set()
            disk.join()
        assert {node.id for node in store.nodes()} == set(told["kept"])
        store.add_node("fact", {}, id="after")
        told["kept"].append("after")
    holds(path, told)
    return told


@pytest.mark.parametrize("seed", range(5))
def test_each_thread_is_told_what_became_of_its_transaction(path, seed):
    told = trial(path, seed)

    assert told["kept"] and not told["unknown"]


@pytest.mark.rest
def test_each_thread_is_told_what_became_of_its_transaction_in_many_runs(tmp_path):
    refused = 0
    for seed in range(50):
        refused += len(trial(tmp_path / f"{seed}.gs", 1000 + seed)["not kept"])
    assert refused


def test_what_a_refused_commit_wrote_is_nowhere(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        before = recorded(path)
        with no_room(), pytest.raises(EngineError, match="Nothing of this transaction was kept") as caught:
            store.add_node("fact", {}, id="lost")
        assert "not kept" == caught.value.outcome
        assert before == recorded(path)
        assert ["before"] == [node.id for node in store.nodes()]


def test_a_group_is_kept_or_not_as_a_whole(path):
    with graphstore.open(path) as store:
        with pytest.raises(EngineError) as caught, no_room(), store.together():
            store.add_node("fact", {}, id="one")
            store.add_node("fact", {}, id="two")
        assert "not kept" == caught.value.outcome
        assert [] == store.nodes()
        store.add_node("fact", {}, id="after")
    with graphstore.open(path) as store:
        assert ["after"] == [node.id for node in store.nodes()]


WRITER = """
import sys, threading, graphstore
from graphstore import EngineError
store = graphstore.open(sys.argv[1])
store.add_node("fact", {}, id="ready")
lock = threading.Lock()
def write(thread):
    for number in range(20):
        name = f"fact-{thread}-{number}"
        try:
            store.add_node("fact", {}, id=name)
            told = "kept -"
        except EngineError as error:
            told = f"{error.outcome.replace(' ', '_')} {error.tx.isoformat() if error.tx else '-'}"
        with lock:
            print(name, told, flush=True)
threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
try:
    store.close()
except EngineError as error:
    print("close", error.outcome, "-", file=sys.stderr)
"""


@pytest.mark.rest
@pytest.mark.parametrize(
    "inject",
    [
        "fdatasync:error=EIO:when={n}",
        "fdatasync:error=ENOSPC:when={n}+7",
        "fdatasync,fsync:error=EIO:when={n}+",
    ],
    ids=["once", "again and again", "for good"],
)
def test_where_the_system_itself_fails_each_is_told_the_truth(tmp_path, inject):
    from shutil import which

    if which("strace") is None:
        pytest.skip("no strace here")
    for number in range(12, 48, 4):  # the first ones are of the opening
        path = tmp_path / f"{number}.gs"
        run = subprocess.run(
            ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync,fsync", "-e", f"inject={inject.format(n=number)}",
             sys.executable, "-c", WRITER, str(path)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert 0 == run.returncode, run.stderr
        told: dict[str, list] = {"kept": ["ready"], "not kept": [], "unknown": []}
        for line in run.stdout.splitlines():
            name, outcome, tx = line.split()
            if outcome == "kept":
                told["kept"].append(name)
            else:
                told[outcome.replace("_", " ")].append(
                    (
                        name,
                        None if tx == "-" else datetime.fromisoformat(tx),
                    )
                )
        holds(path, told)


IN_INTERVALS = """
import sys, time, graphstore
from graphstore import EngineError
store = graphstore.open(sys.argv[1], durability="interval")
store.add_node("fact", {}, id="before")
time.sleep(0.5)
for attempt in ("write", "close"):
    try:
        store.close() if attempt == "close" else store.add_node("fact", {}, id="after")
        print(attempt, "kept")
    except EngineError as error:
        print(attempt, error.outcome)
"""


def test_in_the_interval_a_failed_sync_is_told(path):
    from shutil import which

    if which("strace") is None:
        pytest.skip("no strace here")
    graphstore.open(path).close()
    run = subprocess.run(
        ["strace", "-f", "-qq", "-o", os.devnull, "-P", str(path / "ledger.db"), "-P", str(path / "ledger.db-wal"),
         "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO:when=2+", sys.executable, "-c", IN_INTERVALS, str(path)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert 0 == run.returncode, run.stderr
    assert ["write not kept", "close unknown"] == run.stdout.splitlines()
    with graphstore.open(path) as again:
        assert "before" == again.node("before").id
