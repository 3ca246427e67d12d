"""Which tests are slow: `tests/durations.txt` lists each function of tests whose cases take longer than 50 ms on average, as `make durations` measured it.

`make test` leaves them to `make test-rest`, except the stories that README tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "durations.txt"
LIMIT = 0.05
"""Seconds."""


def function_of(node_id: str) -> str:
    """Return the id of a test without its parameters."""
    return node_id.partition("[")[0]


def slow_functions() -> frozenset[str]:
    """Read the functions that the file lists."""
    return frozenset(line.split()[0] for line in FILE.read_text(encoding="utf-8").splitlines())


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the listed tests as `slow`, but for those marked as `story`."""
    listed = slow_functions()
    for item in items:
        if function_of(item.nodeid) in listed and item.get_closest_marker("story") is None:
            item.add_marker("slow")


class Stopwatch:
    """Measures the tests of a run, and writes the file at its end. The first test of a file pays for the fixtures of all: its setup does not count."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._begun: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        if file in self._begun:
            self.seconds[report.nodeid] += report.duration
        self._begun.add(file)

    def pytest_sessionfinish(self) -> None:
        cases: dict[str, list[float]] = defaultdict(list)
        for node_id, seconds in self.seconds.items():
            cases[function_of(node_id)].append(seconds)
        means = {name: sum(each) / len(each) for name, each in cases.items()}
        lines = [f"{name} {mean:.2f}\n" for name, mean in sorted(means.items()) if mean > LIMIT]
        FILE.write_text("".join(lines), encoding="utf-8")
