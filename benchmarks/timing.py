"""Stop-watches, floors and the memory of a process."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any


def once(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came back."""
    gc.collect()
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def together(
    work: Callable[..., Any], calls: list[tuple[Any, ...]], clock: Callable[[], float] = perf_counter
) -> float:
    """Seconds a call, of many short calls timed as one: a stop-watch round each would cost as much as the call."""
    start = clock()
    for arguments in calls:
        work(*arguments)
    return (clock() - start) / len(calls)


def computing(work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> float:
    """`together` in processor time: for reads that wait for nothing, so that other processes on the machine do not count."""
    return together(work, calls, process_time)


def apart(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[float]:
    """Seconds of each call: for commits, whose times scatter."""
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


def resident_bytes() -> int:
    """Memory this process holds now, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status: this needs Linux")
