"""Stop-watches, floors and the memory of a process.

Long work that waits for nothing is given the lesser of wall clock and processor time: on an idle machine that is the wall clock, on a busy one the processor
time, which other processes do not lengthen. Single calls and commits are given the wall clock: what a caller waits, slow ones included.
"""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """Of many calls, in seconds: half were at most so long, 99 of 100, all."""

    median: float
    p99: float
    most: float


def spread(samples: Sequence[float]) -> Spread:
    """The nearest-rank percentiles: each is a time that was measured."""
    ordered = sorted(samples)

    def rank(share: float) -> float:
        return ordered[max(ceil(share * len(ordered)), 1) - 1]

    return Spread(rank(0.5), rank(0.99), ordered[-1])


class StopWatch:
    """Started when made."""

    def __init__(self) -> None:
        self._wall, self._processor = perf_counter(), process_time()

    def seconds(self) -> float:
        """The lesser of wall clock and processor time."""
        return min(perf_counter() - self._wall, process_time() - self._processor)

    def wall(self) -> float:
        return perf_counter() - self._wall

    def share(self) -> float:
        """How much of a processor this process and those it has waited for have had."""
        spent = process_time() - self._processor + sum(os.times()[2:4])
        return spent / (perf_counter() - self._wall)


def once(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came back."""
    gc.collect()
    watch = StopWatch()
    result = work()
    return watch.seconds(), result


def together(work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> float:
    """Seconds a call, of many short calls timed as one: a stop-watch round each would cost as much as the call."""
    watch = StopWatch()
    for arguments in calls:
        work(*arguments)
    return watch.seconds() / len(calls)


def process(command: list[str]) -> float:
    """Seconds of another process."""
    before, start = os.times(), perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    after, wall = os.times(), perf_counter() - start
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return min(wall, spent)


def apart(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[float]:
    """Seconds of each call by the wall clock: for commits, whose times scatter."""
    times = []
    for arguments in calls:
        start = perf_counter()
        work(*arguments)
        times.append(perf_counter() - start)
    return times


def race(lanes: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each lane. Lanes take turns, so that a busy machine slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in lanes}
    for _ in range(rounds):
        for name, lane in lanes.items():
            times[name].append(lane())
    return {name: median(values) for name, values in times.items()}


class BareFile:
    """The floor of a commit: one append and one fdatasync, nothing else."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self, data: bytes) -> None:
        os.write(self._file, data)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def anonymous_bytes() -> int:
    """Return the memory that this process holds and that is not a mapped file, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise OSError("no RssAnon in /proc/self/status: this needs Linux 4.5 or newer")
