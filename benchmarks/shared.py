"""What the history and all stores share and needs no library: so a process whose memory is measured has the store's own libraries alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.data import Data

DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = (datetime(2023, 1, 1, tzinfo=UTC) - EPOCH).days * DAY
SPAN = 1_000 * DAY
LATEST = START + 1_021 * DAY
"""A coordinate that sees all of it: the last one that is drawn."""
CUT = START + 1_030 * DAY
"""The world changes here in the writes that are timed."""
OPEN = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z."""
MILLI = 1_000
"""All instants are whole milliseconds: one of the others knows no finer ones."""
CAUSES = 3


class Clock:
    """Strictly rising microseconds: the transaction time of the stores that have none of their own."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> int:
        self.last = max(time.time_ns() // 1_000, self.last + 1)
        return self.last


def steps(
    data: Data,
) -> Iterator[tuple[int, list[dict[str, Any]], list[dict[str, Any]], list[Any], list[Any]]]:
    """The history as it was told: of each transaction its instant, versions, links, nodes taken back and links taken back."""
    told: dict[int, tuple[list[Any], list[Any], list[Any], list[Any]]] = {}
    for place, table in enumerate((data.told, data.links)):
        for row in table.to_pylist():
            told.setdefault(row["tx_from"], ([], [], [], []))[place].append(row)
            if row["tx_to"] != OPEN:
                told.setdefault(row["tx_to"], ([], [], [], []))[2 + place].append(row)
    for tx in sorted(told):
        yield tx, *told[tx]
