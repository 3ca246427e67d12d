"""Counts the work of a server, in the text format of Prometheus."""

from __future__ import annotations

import contextlib
import os
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import time
from typing import Any

from graphstore.graph.workers import resident
from graphstore.ledger.database import WAIT_BOUNDS, WritingCosts
from graphstore.server.group_commit import Groups

KIND = b"text/plain; version=0.0.4; charset=utf-8"
_BEGAN = time()
_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


_HELP = {
    "requests_total": "Requests answered, by call and status.",
    "request_seconds": "How long requests took.",
    "group_writes": "Writes that were committed together.",
    "group_seconds_total": "Time that commits took.",
    "groups_failed_total": "Commits that failed.",
    "writes_waiting": "Writes that wait for the writer.",
    "reads_under_way": "Reads under way, or waiting for a thread.",
    "requests_under_way": "Requests that are not answered yet.",
    "connections": "Open connections.",
    "connections_without_token": "Open connections that have shown no token yet.",
    "streams": "Open streams of changes.",
    "exports": "Dumps under way.",
    "write_lock_seconds": "How long transactions waited for the write lock of the store, among threads and processes.",
    "write_lock_refused_total": "Transactions that were refused because the write lock did not come in time.",
    "checkpoints_total": "Times at which this server saw that the WAL had been written into the ledger, by any process.",
    "wal_bytes": "Size of the WAL, the file ledger.db-wal.",
    "transaction_open": "Whether a transaction is open.",
    "readings_lost": "Answers whose contents could not be recorded.",
    "tables_thrown_away": "Graph tables that were thrown away because the engine failed in them.",
    "store_nodes": "Nodes of the store.",
    "store_events": "Events of the store.",
    "store_versions": "Versions of the store.",
    "store_links": "Links of the store.",
    "store_transactions": "Transactions of the store.",
    "store_journal_bytes": "Size of the journal.",
    "cache_bytes": "Memory that graphs and tables for queries keep.",
    "cache_allowed_bytes": "Memory that graphs and tables for queries may keep.",
    "workers_memory_bytes": "Memory of the processes that run queries.",
    "server_memory_bytes": "Memory of the server.",
    "ticks_total": "Tasks done at a tick, by name.",
    "tick_errors_total": "Tasks of a tick that failed, by name.",
}


class Metrics:
    """Counts requests by call and status, their durations, and other named events. Only the event loop's thread may use it."""

    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._took: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    def answered(self, call: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests[call, status] += 1
        self._took[call][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[call] += seconds

    def count(self, what: str, of: str = "") -> None:
        """Count one occurrence of a named event, such as a failed tick."""
        self._counts[what, of] += 1

    def text(
        self, groups: Groups, gauges: Mapping[str, float], writing: tuple[WritingCosts, int] | None
    ) -> bytes:
        """Return all counts, current gauges by name, and the costs of writing with the size of the WAL, if there is one."""
        lines = _head("requests_total", "counter")
        for (call, status), count in sorted(self._requests.items()):
            lines.append(f'graphstore_requests_total{{call="{call}",status="{status}"}} {count}')
        lines += _head("request_seconds", "histogram")
        for call, took in sorted(self._took.items()):
            labels = f'call="{call}"'
            lines += _histogram("graphstore_request_seconds", labels, _BOUNDS, took, self._seconds[call])
        lines += _head("group_writes", "histogram")
        sizes = [2**power for power in range(len(groups.sizes) - 1)]
        lines += _histogram("graphstore_group_writes", "", sizes, groups.sizes, groups.turns)
        lines += _one("group_seconds_total", "counter", groups.seconds)
        lines += _one("groups_failed_total", "counter", groups.failed)
        if writing is not None:
            lines += _ledger(*writing)
        typed: set[str] = set()
        for (what, of), count in sorted(self._counts.items()):
            name = f"graphstore_{what}_total"
            if name not in typed:
                typed.add(name)
                lines += _head(f"{what}_total", "counter")
            lines.append(f'{name}{{of="{of}"}} {count}' if of else f"{name} {count}")
        for name, value in sorted(gauges.items()):
            lines += _one(name, "gauge", value)
        return ("\n".join([*lines, *_process()]) + "\n").encode()


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP graphstore_{name} {_HELP[name]}", f"# TYPE graphstore_{name} {kind}"]


def _one(name: str, kind: str, value: float) -> list[str]:
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return [*_head(name, kind), f"graphstore_{name} {shown}"]


def _ledger(writing: WritingCosts, wal: int) -> Iterable[str]:
    yield from _head("write_lock_seconds", "histogram")
    yield from _histogram("graphstore_write_lock_seconds", "", WAIT_BOUNDS, writing.waits, writing.waited)
    yield from _one("write_lock_refused_total", "counter", writing.refused)
    yield from _one("checkpoints_total", "counter", writing.checkpoints)
    yield from _one("wal_bytes", "gauge", wal)


def _process() -> Iterable[str]:
    """Yield the resource use of the process, under the usual names of exporters, as far as the system reports it."""
    times = os.times()
    found: list[tuple[str, str, str, float]] = [
        (
            "cpu_seconds_total",
            "counter",
            "Processor time, of users and the system.",
            times.user + times.system,
        ),
        ("start_time_seconds", "gauge", "When the process began, in seconds since 1970.", _BEGAN),
        ("resident_memory_bytes", "gauge", "Memory that the process has.", resident(os.getpid())),
    ]
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError):  # /dev/fd is not mounted
            count = sum(1 for _ in Path("/dev/fd").iterdir())
            found.append(("open_fds", "gauge", "Files and connections that are open.", count))
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        found.append(("max_fds", "gauge", "How many may be open.", allowed))
    for name, kind, words, value in found:
        yield f"# HELP process_{name} {words}"
        yield f"# TYPE process_{name} {kind}"
        yield f"process_{name} {value:.6f}" if isinstance(value, float) else f"process_{name} {value}"


def _histogram(
    name: str, labels: str, bounds: Iterable[float], counts: list[int], total: float
) -> Iterable[str]:
    so_far, comma = 0, "," if labels else ""
    for bound, count in zip(bounds, counts, strict=False):
        so_far += count
        yield f'{name}_bucket{{{labels}{comma}le="{bound:g}"}} {so_far}'
    so_far += counts[-1]
    braces = f"{{{labels}}}" if labels else ""
    yield f'{name}_bucket{{{labels}{comma}le="+Inf"}} {so_far}'
    yield f"{name}_sum{braces} {total:g}"
    yield f"{name}_count{braces} {so_far}"


def gauges_of(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return the counts of a store's `stats()` as gauges."""
    names = ("nodes", "events", "versions", "links", "transactions", "journal_bytes")
    return {f"store_{name}": stats[name] for name in names}
