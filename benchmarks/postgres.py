"""What an append costs over PostgreSQL: one writer beside a bare `INSERT … RETURNING` of as many bytes, and sixteen threads beside one.

A primary and the synchronous standby that it waits for, both on loopback, from Debian's packages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.timing import apart

BARE, GROUPED = 1.5, 5
"""An append is to take at most so many times the bare insert; sixteen threads are to append at least so many times as much as one."""
THREADS = 16
_TABLE = "create table bare (seq bigserial primary key, bytes bytea not null)"
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
        yield Row("PostgreSQL: a durable add", arena.size, took, BARE * took["floor"], "`INSERT … RETURNING`")

        grouped = median(_at_once(store, turn, arena.quick) for turn in range(min(arena.rounds, 3)))
        work = f"PostgreSQL: a durable add, {THREADS} threads"
        yield Row(work, arena.size, {"ours": grouped}, took["ours"] / GROUPED, "")


def _add(store: graphstore.GraphStore, name: str, number: int) -> None:
    store.add_node("fact", {"says": f"{name} {number} {'y' * 60}"}, id=f"{name}-{number}")


def _at_once(store: graphstore.GraphStore, turn: int, quick: bool) -> float:
    """Seconds an add, of all threads together."""
    counts = [0] * THREADS
    until = time.perf_counter() + (0.2 if quick else 2.0)

    def adding(mine: int) -> None:
        while time.perf_counter() < until:
            _add(store, f"g{turn}-{mine}", counts[mine])
            counts[mine] += 1

    start, before = time.perf_counter(), store.stats()["nodes"]
    threads: list[Any] = [threading.Thread(target=adding, args=(mine,)) for mine in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    assert before + sum(counts) == store.stats()["nodes"], "an add that was acknowledged is not there"
    return seconds / sum(counts)
