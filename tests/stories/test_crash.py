"""A writing process is killed at any moment: what it acknowledged is there, the rest is wholly absent, the store opens by itself."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue

import pytest

import graphstore
from tests.support.crash_worker import ACCOUNTS, BRANCH
from tests.support.seeds import seeds

pytestmark = pytest.mark.rest

KILLS_PER_STORE = 10
AIMS = ("write", "query", "write", "rebuild", "close", "write", "open", "query", "write", "close")


class Victim:
    """A worker that has started and waits to be let loose."""

    def __init__(self, store: Path, run: int, aim: str) -> None:
        self.aim = aim
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).parents[1] / "support/crash_worker.py"),
                str(store),
                str(run),
                aim,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: Queue[dict] = Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self.lines.put(json.loads(line))

    def kill_somewhere(self, chance: random.Random) -> list[dict]:
        """Let it run, kill it at a random moment or shortly after the word it is aimed at; everything it said."""
        said = []
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        wanted = "ready" if self.aim == "write" else self.aim
        skip = chance.randrange(4) if self.aim != "write" else 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                said.append(self.lines.get(timeout=0.05))
            except Empty:
                if self.process.poll() is not None:
                    break
                continue
            if said[-1]["word"] == wanted:
                if skip == 0:
                    break
                skip -= 1
        time.sleep(
            chance.uniform(0, 0.25) if self.aim == "write" else chance.choice((0, 0.001, 0.003, 0.01, 0.03))
        )
        self.process.send_signal(signal.SIGKILL)
        code = self.process.wait()
        self.reader.join()
        while not self.lines.empty():
            said.append(self.lines.get())
        assert code == -signal.SIGKILL, self.process.stderr.read().decode()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return said


class Ledger:
    """What was acknowledged, and the one piece of work that was under way."""

    def __init__(self) -> None:
        self.done: list[dict] = []
        self.under_way: dict | None = None

    def read(self, said: list[dict]) -> None:
        assert [] == [line for line in said if line["word"] == "wrong"]
        self.under_way = None
        for line in said:
            if line["word"] == "begin":
                self.under_way = line
            elif line["word"] == "done":
                self.done.append(line)
                self.under_way = None

    def settle(self, store: graphstore.GraphStore) -> None:
        """Decide whether the work under way is in: all of it or nothing."""
        if self.under_way is None or self.under_way["verb"] == "nothing":
            return
        marks = [
            is_known(store, id)
            for id in (*self.under_way.get("nodes", ()), *self.under_way.get("events", ()))
        ]
        marks += [is_known(store.on(BRANCH), id) for id in self.under_way.get("aside", ())]
        if "retracted" in self.under_way:
            marks = [store.inspect(self.under_way["retracted"]).node.standing == "retracted"]
        assert len(set(marks)) == 1, f"half a transaction: {self.under_way}"
        if marks[0]:
            self.done.append(self.under_way)
        self.under_way = None


def is_known(store: graphstore.GraphStore, id: str) -> bool:
    try:
        return store.inspect(id).node.id == id
    except graphstore.NotFoundError:
        return False


def hold_against(store: graphstore.GraphStore, ledger: Ledger) -> None:
    """Everything acknowledged is there, nothing else is, and no transaction is half there."""
    ledger.settle(store)
    nodes = {id for line in ledger.done for id in line.get("nodes", ())}
    events = {id for line in ledger.done for id in line.get("events", ())}
    retracted = {line["retracted"] for line in ledger.done if "retracted" in line}
    aside = [id for line in ledger.done for id in line.get("aside", ())]
    standing = {node.id: node for node in store.nodes()}

    loaded = {id for id in nodes if id.startswith(("add", "load"))}
    assert loaded - retracted == {id for id, node in standing.items() if node.kind in ("fact", "loaded")}
    assert all(store.inspect(id).node.standing == "retracted" for id in retracted)
    heads = [line["nodes"][0] for line in ledger.done if line["verb"] == "head"]
    assert heads[-1:] == [id for id, node in standing.items() if node.kind == "head"]
    assert all(store.inspect(id).node.standing == "superseded" for id in heads[:-1])
    assert not any(is_known(store, id) for id in aside)
    if aside:
        branch = store.on(BRANCH)
        assert aside[-1:] == [node.id for node in branch.nodes() if node.id.startswith("aside")]
        assert all(is_known(branch, id) for id in aside)
    assert events == {event.id for event in store.events()}
    assert all(2 == len(store.links_from(id, kinds=["uses"])) for id in events)
    if set(ACCOUNTS) <= standing.keys():
        moved = [line["moved"] for line in ledger.done if "moved" in line]
        want = {name: sum(by.get(name, 0) for by in moved) for name in ACCOUNTS}
        assert want == {name: standing[name].content["balance"] for name in ACCOUNTS}
    else:
        assert not ledger.done and not standing.keys() & set(ACCOUNTS)

    assert {"rows": [], "ok": True} == {"rows": list(store.verify().problems), "ok": store.verify().ok}
    tables = store.query_tables("MATCH (n:Node) RETURN n.id AS id").rows()
    assert nodes | (standing.keys() & set(ACCOUNTS)) == {row["id"] for row in tables}
    tables = store.query_tables("MATCH (e:Event) RETURN e.id AS id").rows()
    assert events == {row["id"] for row in tables}


@pytest.mark.parametrize("seed", seeds(0, 2, 20))
def test_a_killed_writer_keeps_what_it_acknowledged_and_nothing_half(tmp_path, seed):
    chance = random.Random(seed)
    path = tmp_path / "memory.gs"
    ledger = Ledger()
    runs = [(seed * 100 + number, aim) for number, aim in enumerate(AIMS[:KILLS_PER_STORE])]
    waiting = Victim(path, *runs[0])
    for number in range(len(runs)):
        victim = waiting
        if number + 1 < len(runs):
            waiting = Victim(path, *runs[number + 1])
        ledger.read(victim.kill_somewhere(chance))

        with graphstore.open(path) as store:
            hold_against(store, ledger)
    assert len(ledger.done) > 20


@pytest.mark.parametrize("seed", seeds(0, 1, 10))
def test_control_c_leaves_the_store_as_the_disk_has_it(tmp_path, seed):
    """An interrupt may fall between the write of a line and its fsync, or while the index takes it in."""
    worker = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parents[1] / "support/crash_worker.py"),
            str(tmp_path / "memory.gs"),
            str(seed),
            "interrupt",
        ],
        input=b"go\n",
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert worker.returncode == 0, worker.stderr.decode()
    last = json.loads(worker.stdout.splitlines()[-1])
    assert {"word": "finished", "same": True, "ok": True, "problems": []} == last
