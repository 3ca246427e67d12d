"""What an append costs over PostgreSQL: one writer beside a bare `INSERT … RETURNING` of as many bytes, sixteen threads beside one, eight processes beside
eight that insert under one lock, how far behind a follower in another process is, and what the same store answers from a folder.

A primary and the synchronous standby that it waits for, both on loopback, from Debian's packages.
`python -m benchmarks.postgres URL RATE SECONDS` appends so many times a second, from sixteen threads, and prints what was acknowledged when.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import graphstore
from benchmarks import fresh
from benchmarks.arena import Arena, Limit, Row
from benchmarks.promises import POSTGRES
from benchmarks.timing import apart

BARE, GROUPED = 1.5, 5
"""An append is to take at most so many times the bare insert; sixteen threads are to append at least so many times as much as one."""
THREADS = 16
RATE, BEHIND = 1_000, 0.05
"""At so many appends a second a follower is to show what was acknowledged within so many seconds, in 99 of 100."""
PROCESSES = 8
_TABLE = "create table bare (seq bigserial primary key, bytes bytea not null)"
_SELECT = "select bytes from bare where seq = 7"
_INSERT = "insert into bare (bytes) values (%b) returning seq"
_SIZE = "select max(octet_length(head) + octet_length(bytes)) from graphstore.journal join graphstore.body using (store, seq)"


def postgres(arena: Arena) -> Iterator[Row]:
    """Rows of a store in PostgreSQL."""
    import psycopg

    from tests.support import postgres as servers

    if not servers.THERE:
        raise RuntimeError("needs PostgreSQL's programs: the package postgresql-15")
    with (
        servers.pair() as pair,
        psycopg.connect(pair.primary.conninfo, autocommit=True) as bare,
        graphstore.open(pair.url("team", pair.primary)) as store,
    ):
        bare.execute(_TABLE)
        for number in range(20):
            _add(store, "warm", number)
        [(size,)] = pair.primary.sql(_SIZE)
        data = bytes(int(str(size)))
        times: dict[str, list[float]] = {"ours": [], "floor": []}
        for turn in range(arena.turns):
            times["ours"] += apart(_add, [(store, f"t{turn}", number) for number in range(40)])
            times["floor"] += apart(lambda: bare.execute(_INSERT, (data,)).fetchone(), [()] * 40)
        took = {name: median(each) for name, each in times.items()}
        assert 20 + 40 * arena.turns == store.stats()["nodes"]
        limits = (Limit(BARE, "floor"),)
        yield arena.row("PostgreSQL: a durable add", took, limits, "`INSERT … RETURNING`", promise=POSTGRES)

        grouped = median(_at_once(store, turn, arena.quick) for turn in range(min(arena.rounds, 3)))
        work = f"PostgreSQL: a durable add, {THREADS} threads"
        yield arena.row(work, {"ours": grouped}, took["ours"] / GROUPED)

        yield from _reads(
            arena, pair.url("team", pair.primary), store, lambda: bare.execute(_SELECT).fetchone()
        )
        yield _processes(arena, pair.url("processes", pair.primary), pair.primary.conninfo)

        rate, behind = _followed(pair.url("followed", pair.primary), 0.5 if arena.quick else 5.0)
        work = f"PostgreSQL: seen by a follower once acknowledged, {rate:,.0f} appends a second"
        limits = (Limit(BEHIND), *([Limit(BEHIND, tail=True)] if rate >= 0.95 * RATE else []))
        yield arena.spread(arena.row(work, {}, limits), {"ours": behind}, set())


def _processes(arena: Arena, url: str, conninfo: str) -> Row:
    """Measure the seconds an add of all processes together. The floor inserts 500 bytes in transactions that take one lock."""
    graphstore.open(url).close()
    took = {}
    for name, place in (("ours", url), ("floor", conninfo)):
        seconds = 0.5 if arena.quick else 4.0
        counts = fresh.together(sys.modules[__name__], place, PROCESSES, seconds)
        took[name] = seconds / sum(counts)
        if name == "ours":
            with graphstore.open(url, read_only=True) as store:
                assert sum(counts) == store.stats()["nodes"], "an add that was acknowledged is not there"
    work = f"PostgreSQL: a durable add, {PROCESSES} processes"
    return arena.row(
        work, took, (Limit(1 / 0.8, "floor"),), "INSERT under one advisory lock", promise=POSTGRES
    )


def place(given: str) -> str:
    """Return where a process writes: the address of a store, or the connection string of the floor's table."""
    return given


def open(place: str) -> Any:
    import psycopg

    return graphstore.open(place) if "://" in place else psycopg.connect(place, autocommit=True)


def close(store: Any) -> None:
    store.close()


def add_node(store: Any, id: str, content: dict[str, Any]) -> None:
    if isinstance(store, graphstore.GraphStore):
        _add(store, id, content["n"])
        return
    with store.transaction():
        store.execute("select pg_advisory_xact_lock(1)")
        store.execute(_INSERT, (bytes(500),))


def _reads(arena: Arena, url: str, store: graphstore.GraphStore, bare: Callable[[], object]) -> Iterator[Row]:
    """Time reads of the store and of a folder with the same lines, in turns. The read of a node has a bare statement as a second floor."""
    ids = [node.id for node in store.nodes()]
    for id in ids[:200]:
        store.revise(id, {"says": f"{id} again"})
        store.link(id, "supports", ids[0] if id != ids[0] else ids[1])
    folder = arena.folder / "copied"
    graphstore.copy(url, folder)
    with graphstore.open(folder, read_only=True) as copied:
        for work, read in _READS.items():
            times: dict[str, list[float]] = {"ours": [], "floor": []}
            for turn in range(arena.turns):
                some = ids[(7 * turn) % 100 :][:100]
                for name, each in (("ours", store), ("floor", copied))[:: 1 if turn % 2 else -1]:
                    assert read(each, some[0]) == read(copied, some[0])
                    times[name] += apart(read, [(each, id) for id in some])
            took = {name: median(each) for name, each in times.items()}
            yield arena.row(f"PostgreSQL: {work}", took, None, "a folder")
            if work.startswith("a node now"):
                took = {"ours": took["ours"], "floor": median(apart(bare, [()] * 200))}
                limits, floor_is = (Limit(1.5, "floor"),), "`SELECT` of one row by its key"
                yield arena.row("PostgreSQL: a node now", took, limits, floor_is, promise=POSTGRES)


_READS: dict[str, Callable[[graphstore.GraphStore, str], object]] = {
    "a node now, with its content": lambda store, id: store.node(id).content,
    "the versions of a node": lambda store, id: store.versions(id),
    "one hop": lambda store, id: store.links_from(id),
}


def _add(store: graphstore.GraphStore, name: str, number: int) -> graphstore.Node:
    return store.add_node("fact", {"says": f"{name} {number} {'y' * 60}"}, id=f"{name}-{number}")


def _at_once(store: graphstore.GraphStore, turn: int, quick: bool) -> float:
    """Seconds an add, of all threads together."""
    counts = [0] * THREADS
    until = time.perf_counter() + (0.2 if quick else 2.0)

    def adding(mine: int) -> None:
        while time.perf_counter() < until:
            _add(store, f"g{turn}-{mine}", counts[mine])
            counts[mine] += 1

    start, before = time.perf_counter(), store.stats()["nodes"]
    _in_threads(adding)
    seconds = time.perf_counter() - start
    assert before + sum(counts) == store.stats()["nodes"], "an add that was acknowledged is not there"
    return seconds / sum(counts)


def _in_threads(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _followed(url: str, seconds: float) -> tuple[float, list[float]]:
    """How many appends a second another process makes, and how many seconds after each was acknowledged it is seen here."""
    graphstore.open(url).close()
    looks: list[tuple[float, float]] = []  # the tx that was known, and when
    stop = threading.Event()
    with graphstore.open(url, read_only=True) as follower:

        def looking() -> None:
            while not stop.wait(0.001):
                looks.append((follower.as_of().at.tx.timestamp(), time.monotonic()))

        thread = threading.Thread(target=looking)
        thread.start()
        command = [sys.executable, "-m", "benchmarks.postgres", url, str(RATE), str(seconds)]
        appended = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        while looks[-1][0] < appended[-1][0]:
            time.sleep(0.01)
        stop.set()
        thread.join()
        assert len(appended) == follower.stats()["nodes"]
    behind = [max(looks[bisect_left(looks, (tx,))][1] - acknowledged, 0.0) for tx, acknowledged in appended]
    times = [acknowledged for _, acknowledged in appended]
    return len(times) / (max(times) - min(times)), behind


def _append(url: str, rate: int, seconds: float) -> list[tuple[float, float]]:
    """The tx of each append, and when it was acknowledged."""
    acknowledged: list[tuple[float, float]] = []
    with graphstore.open(url) as store:
        start = time.monotonic()

        def appending(mine: int) -> None:
            for number in range(mine, int(rate * seconds), THREADS):
                time.sleep(max(start + number / rate - time.monotonic(), 0.0))
                tx = _add(store, "followed", number).tx_from
                acknowledged.append((tx.timestamp(), time.monotonic()))

        _in_threads(appending)
    return sorted(acknowledged)


if __name__ == "__main__":
    print(json.dumps(_append(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
