"""A restore and an export that are killed at any moment leave nothing at the name, or the whole."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import graphstore

pytestmark = [pytest.mark.rest, pytest.mark.in_process("kills the process")]

KILLS = 40
WORKER = """
import sys, graphstore
verb, source, target = sys.argv[1:]
if verb == "export":
    store = graphstore.open(source, read_only=True)
print("ready", flush=True)
if verb == "export":
    store.export(target)
else:
    graphstore.restore(source, target).close()
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "memory.gs"
    with graphstore.open(path, durability="interval") as store:
        for n in range(2_000):
            store.add_node("fact", {"n": n, "more": True, "text": "word " * 200})
        store.bulk_load(versions=[{"node_id": f"bulk-{n:05}", "content": {"n": n}} for n in range(6_000)])
    return path


@pytest.fixture(scope="module")
def dump(store) -> Path:
    with graphstore.open(store, read_only=True) as opened:
        opened.export(store.with_name("dump"))
    return store.with_name("dump")


def begin(verb: str, source: Path, target: Path) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, verb, str(source), str(target)], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None and "ready\n" == worker.stdout.readline()
    return worker


def killed(verb: str, source: Path, target: Path, chance: random.Random) -> int:
    """Kill so many processes at random moments of the work; how many left the whole."""
    worker = begin(verb, source, target.with_name("timed"))
    started = time.perf_counter()
    worker.wait()
    took = time.perf_counter() - started
    wholes = 0
    for _ in range(KILLS):
        worker = begin(verb, source, target)
        time.sleep(chance.uniform(0, took))
        worker.kill()
        worker.wait()
        if target.exists():
            took *= 0.8  # the others may be quicker than the timed one
            wholes += 1
            hold_whole(verb, source, target)
    return wholes


def hold_whole(verb: str, source: Path, target: Path) -> None:
    """What is at the name is the whole; it is moved away."""
    if verb == "export":
        assert target.read_bytes() == source.with_name("dump").read_bytes()
        target.unlink()
        return
    with graphstore.open(target) as again:
        assert 2_001 == again.stats()["transactions"]
        assert graphstore.verify(target).ok
        again.export(target.with_name("again"))
    assert target.with_name("again").read_bytes() == source.read_bytes()
    target.with_name("again").unlink()
    target.rename(target.with_name(f"whole-{time.monotonic_ns()}"))


@pytest.mark.parametrize("verb", ["restore", "export"])
def test_a_killed_one_leaves_nothing_at_the_name_or_the_whole(verb, store, dump, tmp_path):
    seed = random.randrange(10**6)
    print("seed", seed)
    source, target = (dump, tmp_path / "again.gs") if verb == "restore" else (store, tmp_path / "again")

    assert KILLS > killed(verb, source, target, random.Random(seed)), "no kill came in time"

    begin(verb, source, target).wait()
    hold_whole(verb, source, target)
    assert [] == list(tmp_path.glob(".*"))
