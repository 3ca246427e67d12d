"""Processes that write to one folder at the same time and are killed: nothing acknowledged is lost, nothing is half there, nobody starves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

import graphstore
from tests.support.seeds import seeds

ROOT = Path(__file__).parents[2]
WRITERS = 4
pytestmark = [pytest.mark.rest, pytest.mark.in_process("several processes on one folder")]

# Says what it was acknowledged, one id a line. A pair is one transaction.
WRITES = """
import os, sys, time, graphstore
path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
store = graphstore.open(path, author=name)
os.write(1, b"ready\\n")
sys.stdin.readline()
end, number = time.monotonic() + seconds, 0
while time.monotonic() < end:
    number += 1
    id = f"{name}-{number:06}"
    if number % 5 == 0:
        with store.transaction():
            store.add_node("pair", {"by": name}, id=f"{id}-left")
            store.add_node("pair", {"by": name}, id=f"{id}-right")
            store.link(f"{id}-left", "uses", f"{id}-right")
    elif number % 50 == 1:
        store.bulk_load(versions=[{"node_id": f"{id}-{n}", "content": {"n": n}} for n in range(30)])
    else:
        store.add_node("fact", {"by": name}, id=id)
    os.write(1, id.encode() + b"\\n")
store.close()
"""


class Process:
    """A writing process, and what it was acknowledged."""

    def __init__(self, path: Path, name: str, seconds: float, folder: Path) -> None:
        self.name, self.output = name, folder / f"{name}.out"
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(WRITES), str(path), name, str(seconds)],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.PIPE,
                cwd=ROOT,
            )

    def wait_until_ready(self) -> None:
        end = time.monotonic() + 60
        while b"ready\n" not in self.output.read_bytes():
            assert time.monotonic() < end and self.process.poll() is None, self.process.communicate()
            time.sleep(0.005)

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def end(self) -> None:
        _, errors = self.process.communicate(timeout=120)
        assert 0 == self.process.returncode, errors.decode()

    @property
    def acknowledged(self) -> list[str]:
        return [line.decode() for line in self.output.read_bytes().split(b"\n")[1:-1]]


def compare(path: Path, acknowledged: list[str]) -> None:
    """Compare a store with what its writers were acknowledged."""
    with graphstore.open(path) as store:
        known = {node.id for node in store.nodes()}
        for id in acknowledged:
            assert {id} & known or {f"{id}-left", f"{id}-right"} <= known or f"{id}-0" in known, id
        parts = Counter(id.rpartition("-")[0] for id in known if id.endswith(("-left", "-right")))
        assert set(parts.values()) <= {2}
        assert all(
            [f"{id}-right"] == [link.target for link in store.links_from(f"{id}-left")] for id in parts
        )
        loads = Counter(id.rpartition("-")[0] for id in known if id.count("-") == 2 and id[-1].isdigit())
        assert set(loads.values()) <= {30}
        assert len(parts) + len(loads) + len([id for id in known if id.count("-") == 1]) <= (
            len(acknowledged) + 100
        )
        instants = [change.tx for change in store.changes()]
        assert sorted(instants) == instants
        found = store.verify()
        assert found.ok, found.problems
    assert graphstore.verify(path).ok


def test_no_writer_starves(tmp_path):
    path = tmp_path / "memory.gs"
    graphstore.open(path).close()
    writers = [Process(path, f"w{number}", 4, tmp_path) for number in range(WRITERS)]
    for writer in writers:
        writer.wait_until_ready()
    for writer in writers:
        writer.go()
    for writer in writers:
        writer.end()
    shares = [len(writer.acknowledged) for writer in writers]
    assert min(shares) >= sum(shares) / WRITERS / 3, shares
    compare(path, [id for writer in writers for id in writer.acknowledged])


OPENS = """
import sys, time, graphstore
folder, name, rounds, start = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
time.sleep(max(0.0, start - time.time()))
for number in range(rounds):
    store = graphstore.open(f"{folder}/{number}.gs", author=name)
    store.add_node("fact", {}, id=name)
    store.close()
"""


def test_processes_make_the_same_new_stores_at_once(tmp_path):
    rounds = 40
    start = time.time() + 4
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, str(tmp_path), f"w{number}", str(rounds), str(start)],
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        for number in range(WRITERS)
    ]
    told = [process.communicate(timeout=120)[1] for process in processes]
    assert [b""] * WRITERS == told
    for number in range(rounds):
        with graphstore.open(tmp_path / f"{number}.gs", create=False) as store:
            assert {f"w{writer}" for writer in range(WRITERS)} == {node.id for node in store.nodes()}


@pytest.mark.parametrize("seed", seeds(0, 1, 20))
def test_writers_that_are_killed_lose_nothing_that_was_acknowledged(tmp_path, seed):
    chance, path = random.Random(seed), tmp_path / "memory.gs"
    alive = [Process(path, f"w{number}", 60, tmp_path) for number in range(WRITERS)]
    everyone, started = list(alive), len(alive)
    for writer in alive:
        writer.wait_until_ready()
        writer.go()
    for _ in range(10):
        time.sleep(chance.uniform(0.02, 0.5))
        victim = alive.pop(chance.randrange(len(alive)))
        victim.kill()
        fresh = Process(path, f"w{started}", 60, tmp_path)
        started += 1
        fresh.wait_until_ready()
        fresh.go()
        alive.append(fresh)
        everyone.append(fresh)
    before = [len(writer.acknowledged) for writer in alive]
    time.sleep(1.5)
    assert all(now > then for now, then in zip([len(w.acknowledged) for w in alive], before, strict=True))
    for writer in alive:
        writer.kill()
    acknowledged = [id for writer in everyone for id in writer.acknowledged]
    assert len(acknowledged) > 100
    compare(path, acknowledged)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="stops a process by a signal")
def test_others_wait_for_a_halted_writer_and_are_refused_by_name_after_their_time(tmp_path):
    """The lock is held by whoever was halted in the middle of a transaction; it is let go when that process dies."""
    path = tmp_path / "memory.gs"
    script = """
    import sys, graphstore
    store = graphstore.open(sys.argv[1])
    with store.transaction():
        store.add_node("fact", {}, id="never-committed")
        print("inside", flush=True)
        sys.stdin.readline()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert holder.stdout is not None
    assert b"inside\n" == holder.stdout.readline()
    with graphstore.open(path, timeout=0.5) as store:
        assert [] == store.nodes()
        with pytest.raises(graphstore.LockedError, match=str(holder.pid)) as refused:
            store.add_node("fact", {}, id="refused")
        assert "not kept" == refused.value.outcome
        holder.kill()
        holder.communicate()
        store.add_node("fact", {}, id="kept")
        assert ["kept"] == [node.id for node in store.nodes()]
        assert store.verify().ok
