"""The memory of a server under mixed load: it and its processes for Cypher grow to a size, and no further."""

from __future__ import annotations

import contextlib
import os
import random
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.errors import GraphStoreError, NotFoundError
from graphstore.memory.memory import Memory
from graphstore.remote.remote import connect
from tests.support.served import Wire, serve_in_process

pytestmark = [pytest.mark.rest, pytest.mark.in_process("serves a folder of its own")]

NODES = 6_000
CACHE = 300  # MB: the tables and one or two graphs
SECONDS = float(os.environ.get("MEMORY_SECONDS", "30"))


def filled(folder: Path) -> None:
    with graphstore.open(folder) as store:
        nodes = [{"id": f"n{number:05}", "kind": "fact"} for number in range(NODES)]
        versions = [
            {"node_id": node["id"], "content": {"statement": f"word{at % 97} thing{at % 1009}", "n": at},
             "valid_from": f"{2000 + at % 20}-01-01"}
            for at, node in enumerate(nodes)
        ]  # fmt: skip
        links = [
            {"source": f"n{at:05}", "kind": "part_of", "target": f"n{(at * 7 + 1) % NODES:05}"}
            for at in range(0, NODES, 5)
        ]
        store.bulk_load(nodes=nodes, versions=versions, links=links)


def sizes(pid: int) -> list[int]:
    """Return the MB of anonymous memory of the server and of each of its processes.

    Each connection maps the ledger, so the resident set counts the same pages of the file many times: once for each thread that has read.
    """
    found = []
    for each in [pid, *children(pid)]:
        with contextlib.suppress(OSError, IndexError):
            _, resident, of_files, *_ = map(int, Path(f"/proc/{each}/statm").read_text().split())
            found.append((resident - of_files) * os.sysconf("SC_PAGE_SIZE") >> 20)
    return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


class Load:
    """Clients that ask without a pause, each one thing."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.counts: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.took: dict[str, list[float]] = {}
        self.end = threading.Event()
        self.txs: list[Any] = []

    def past(self, store: Any, dice: random.Random) -> Any:
        """A view at now, or at a past coordinate."""
        if dice.random() < 0.3 or not self.txs:
            return store
        return store.as_of(valid=f"{2001 + dice.randrange(24)}-06-01", tx=dice.choice(self.txs))

    def write(self, store: Any, dice: random.Random) -> None:
        at = dice.randrange(NODES)
        if dice.random() < 0.5:
            store.add_node("fact", {"statement": f"word{at % 97} new", "n": at})
        else:
            store.revise(
                f"n{at:05}", {"statement": f"word{at % 97} again", "n": dice.random()}, reason="load"
            )

    def read(self, store: Any, dice: random.Random) -> None:
        with contextlib.suppress(NotFoundError):
            self.past(store, dice).node(f"n{dice.randrange(NODES):05}")

    def search(self, store: Any, dice: random.Random) -> None:
        words = f"word{dice.randrange(97)} thing{dice.randrange(1009)}"
        when = None if dice.random() < 0.5 or not self.txs else dice.choice(self.txs)
        Memory(store).recall(words, tx=when, k=5)

    def query(self, store: Any, dice: random.Random) -> None:
        self.past(store, dice).query("MATCH (n:Node)-[r:PART_OF]->(m:Node) RETURN count(r) AS c")

    def tables(self, store: Any, dice: random.Random) -> None:
        store.query_tables("MATCH (n:Node) RETURN count(n) AS c")

    def changes(self, store: Any, dice: random.Random) -> None:
        found = store.changes(dice.choice(self.txs) if self.txs else None)
        self.txs = [*self.txs[-200:], *[each.tx for each in found[-3:]]]

    def export(self, store: Any, dice: random.Random) -> None:
        status, _, _ = Wire(self.url, self.token).ask("GET", "/export", None)
        self.failed["export"] += status >= 400
        self.end.wait(2)

    def client(self, what: Callable[[Any, random.Random], None], seed: int) -> None:
        dice, name = random.Random(seed), what.__name__
        with connect(self.url, self.token) as store:
            while not self.end.is_set():
                began = time.perf_counter()
                try:
                    what(store, dice)
                except GraphStoreError as error:
                    self.failed[f"{name}: {str(error)[:80]}"] += 1
                self.took.setdefault(name, []).append(time.perf_counter() - began)
                self.counts[name] += 1

    def __enter__(self) -> Load:
        asked = [self.write, self.write, self.read, self.read, self.search, self.search,
                 self.query, self.query, self.tables, self.changes, self.export]  # fmt: skip
        self.threads = [
            threading.Thread(target=self.client, args=(what, seed)) for seed, what in enumerate(asked)
        ]
        for each in self.threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        for each in self.threads:
            each.join()


def test_memory_under_mixed_load_is_flat(tmp_path: Path) -> None:
    folder = tmp_path / "busy.gs"
    filled(folder)
    with serve_in_process(folder, "--cache", str(CACHE)) as (process, url):
        token = (folder / "token").read_text().strip()
        found = [sizes(process.pid)]
        with Load(url, token) as load:
            start = time.monotonic()
            while time.monotonic() - start < SECONDS:
                time.sleep(1)
                found.append(sizes(process.pid))
        with connect(url, token) as store:
            assert store.query("MATCH (n:Node) RETURN count(n) AS n").rows()[0]["n"] >= NODES
        told = Wire(url, token).get("/metrics").decode()
    kept = {name: float(value) for name, value in re.findall(r"^graphstore_(cache\w+) (\S+)$", told, re.M)}
    print(f"\nMB each 5 s, the server first: {found[::5]}")
    print({name: f"{statistics.median(took) * 1000:.1f} ms" for name, took in load.took.items()})
    print(dict(load.counts), dict(load.failed), {name: int(value) >> 20 for name, value in kept.items()})

    assert load.counts.keys() == {"write", "read", "search", "query", "tables", "changes", "export"}
    assert kept["cache_allowed_bytes"] == CACHE << 20
    assert kept["cache_bytes"] <= CACHE << 20
    warm = len(found) * 2 // 3
    for of in (sum, lambda sizes: sizes[0]):
        assert max(map(of, found[warm:])) <= max(map(of, found[:warm])) + 96, of
