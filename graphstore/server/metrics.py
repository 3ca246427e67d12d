"""What a server has done, counted, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from graphstore.server.group_commit import Groups

KIND = b"text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Requests by call and status, how long they took, and what else is counted by name. Of the event loop's thread alone."""

    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._took: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    def answered(self, call: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        self._requests[call, status] += 1
        self._took[call][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[call] += seconds

    def count(self, what: str, of: str = "") -> None:
        """One more of something, such as a tick that failed."""
        self._counts[what, of] += 1

    def text(self, groups: Groups, gauges: Mapping[str, float]) -> bytes:
        """All of it, with the gauges of the moment by name."""
        lines = ["# TYPE graphstore_requests_total counter"]
        for (call, status), count in sorted(self._requests.items()):
            lines.append(f'graphstore_requests_total{{call="{call}",status="{status}"}} {count}')
        lines.append("# TYPE graphstore_request_seconds histogram")
        for call, took in sorted(self._took.items()):
            labels = f'call="{call}"'
            lines += _histogram("graphstore_request_seconds", labels, _BOUNDS, took, self._seconds[call])
        lines.append("# TYPE graphstore_group_writes histogram")
        sizes = [2**power for power in range(len(groups.sizes) - 1)]
        lines += _histogram("graphstore_group_writes", "", sizes, groups.sizes, groups.turns)
        lines += _one("graphstore_group_seconds_total", "counter", groups.seconds)
        lines += _one("graphstore_groups_failed_total", "counter", groups.failed)
        typed: set[str] = set()
        for (what, of), count in sorted(self._counts.items()):
            name = f"graphstore_{what}_total"
            if name not in typed:
                typed.add(name)
                lines.append(f"# TYPE {name} counter")
            lines.append(f'{name}{{of="{of}"}} {count}' if of else f"{name} {count}")
        for name, value in sorted(gauges.items()):
            lines += _one(f"graphstore_{name}", "gauge", value)
        return ("\n".join(lines) + "\n").encode()


def _one(name: str, kind: str, value: float) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"]


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
    """The counts of a store's `stats()` as gauges."""
    names = ("nodes", "events", "versions", "links", "transactions", "journal_bytes")
    return {f"store_{name}": stats[name] for name in names}
