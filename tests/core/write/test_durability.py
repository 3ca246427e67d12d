"""What a failed fdatasync makes of the transactions that waited for it: each is told that it was kept, was not, or that this is unknown."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError

pytestmark = pytest.mark.in_process("the disk fails beneath it")

THREADS, EACH = 8, 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


class Disk:
    """The calls of the system, of which some fail: `fails` has for each name the numbers of its calls that do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **fails: object) -> None:
        self._lock, self.calls = threading.Lock(), dict.fromkeys(fails, 0)
        self.armed = False
        for name, numbers in fails.items():
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name), numbers))

    def _failing(self, name, real, numbers):
        def call(*args, **kwargs):
            if self.armed:
                with self._lock:
                    self.calls[name] += 1
                    fails = numbers == "all" or self.calls[name] in numbers
                if fails:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*args, **kwargs)

        return call


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


def trial(path: Path, seed: int, *fails: str) -> dict[str, list]:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patched, graphstore.open(path) as store:
        # a sync serves each thread once at most, so there are as many as each of them writes, at least
        disk = Disk(patched, fdatasync={chance.randrange(1, EACH + 1)}, **dict.fromkeys(fails, "all"))
        disk.armed = True
        told = written(store)
        if not fails:
            store.add_node("fact", {}, id="after")
            told["kept"].append("after")
        else:
            shown = {node.id for node in store.nodes()}
            assert shown == set(told["kept"])
            with pytest.raises(EngineError, match="open it again"):
                store.add_node("fact", {}, id="refused")
        disk.armed = False
    holds(path, told)
    return told


@pytest.mark.parametrize("seed", range(5))
def test_each_thread_is_told_what_became_of_its_transaction(path, seed):
    trial(path, seed)


@pytest.mark.parametrize("seed", range(3))
def test_what_cannot_be_cut_off_again_is_unknown_and_asked_for_by_its_tx(path, seed):
    told = trial(path, seed, "fsync")

    assert told["unknown"] and all(tx is not None for _, tx in told["unknown"])


@pytest.mark.rest
@pytest.mark.parametrize(
    "fails", [(), ("fsync",), ("ftruncate",)], ids=["once", "fsync too", "ftruncate too"]
)
def test_each_thread_is_told_what_became_of_its_transaction_in_hundreds_of_runs(tmp_path, fails):
    for seed in range(150):
        trial(tmp_path / f"{seed}.gs", 1000 + seed, *fails)


def test_a_failed_sync_is_never_tried_again_as_if_it_were_fine(path, monkeypatch):
    """What the kernel dropped is cut off: a second fdatasync would succeed without writing it."""
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        size = (path / "journal/00000001.jsonl").stat().st_size
        disk = Disk(monkeypatch, fdatasync={1})
        disk.armed = True
        with pytest.raises(EngineError, match="Nothing of this transaction was kept") as caught:
            store.add_node("fact", {}, id="lost")
        assert "not kept" == caught.value.outcome
        assert size == (path / "journal/00000001.jsonl").stat().st_size
        assert 1 == disk.calls["fdatasync"]


def test_one_whose_sync_was_done_is_kept_whatever_fails_before_it_hears_of_it(path, monkeypatch):
    """The first is synced and wakes only after the second has failed and was cut off."""
    synced, failed, real = threading.Event(), threading.Event(), os.fdatasync
    with graphstore.open(path) as store:
        journal = store._core.journal
        sync = journal.sync

        def late(ticket):
            if threading.current_thread().name == "first":
                journal._syncing.acquire()
                journal._syncing.release()
            found = sync(ticket)
            if threading.current_thread().name == "first":
                synced.set()
                assert failed.wait(10)
                assert sync(ticket)  # asked again after the failure it is told the same
            return found

        monkeypatch.setattr(journal, "sync", late)
        told = []
        first = threading.Thread(
            name="first", target=lambda: told.append(store.add_node("fact", {}, id="first").id)
        )
        first.start()
        assert synced.wait(10)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", lambda fd: (_ for _ in ()).throw(OSError(errno.EIO, "EIO")))
            with pytest.raises(EngineError):
                store.add_node("fact", {}, id="second")
        failed.set()
        first.join()
        assert os.fdatasync is real
        assert ["first"] == told == [node.id for node in store.nodes()]
    with graphstore.open(path) as store:
        assert ["first"] == [node.id for node in store.nodes()]


def test_a_group_is_kept_or_not_as_a_whole_whoever_syncs_meanwhile(path, monkeypatch):
    with graphstore.open(path) as store:
        ticket = None
        disk = Disk(monkeypatch, fdatasync="all")
        with pytest.raises(EngineError) as caught, store._together():
            store.add_node("fact", {}, id="one")
            ticket = store._core.journal.ticket()
            other = threading.Thread(target=store._core.journal.sync, args=(0,))
            other.start()
            other.join()
            assert store._core.journal.durable < ticket
            store.add_node("fact", {}, id="two")
            disk.armed = True
        disk.armed = False
        assert "not kept" == caught.value.outcome
        assert [] == store.nodes()
        store.add_node("fact", {}, id="after")
    with graphstore.open(path) as store:
        assert ["after"] == [node.id for node in store.nodes()]


@pytest.mark.parametrize("when", ["while it is open", "at the end"])
def test_in_the_interval_a_failed_sync_is_told(path, monkeypatch, when):
    disk = Disk(monkeypatch, fdatasync="all")
    store = graphstore.open(path, durability="interval")
    store.add_node("fact", {}, id="before")
    disk.armed = True
    if when == "while it is open":
        with pytest.raises(EngineError, match="unknown"):
            for number in range(100_000):
                store.add_node("fact", {}, id=f"fact-{number}")
    with pytest.raises(EngineError, match="unknown"):
        store.close()
    disk.armed = False
    with graphstore.open(path) as again:
        assert "before" == again.node("before").id


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
