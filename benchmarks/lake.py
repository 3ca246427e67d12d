"""Delta tables that follow a store while it is loaded in bulk: after how long each load is in the tables, and whether that grows."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import graphstore
from benchmarks.arena import Arena, Limit, Row

VERSIONS = 20_000
LOADS = 20
LATE = 5.0
"""A load is to be in the tables after at most so many seconds, the last as the first."""


def lake(arena: Arena) -> Iterator[Row]:
    """A row of the tables that follow a folder."""
    folder = arena.folder / "followed"
    ended: list[float] = []
    told: list[float] = []  # when the tables had each of the loads
    with graphstore.open(folder) as store:
        _load(store, 0)
        words = ["lake", "follow", str(folder), str(arena.folder / "lake"), "--every", "0.05", "--json"]
        follower = subprocess.Popen(
            [sys.executable, "-m", "graphstore", *words], stdout=subprocess.PIPE, text=True
        )
        try:
            assert follower.stdout is not None
            output = follower.stdout
            rows = json.loads(output.readline())["rows"]
            loads = 3 if arena.quick else LOADS

            def listen() -> None:
                taken = 0
                while len(told) < loads:
                    taken += json.loads(output.readline())["rows"]
                    told.extend([time.perf_counter()] * (taken // rows - len(told)))

            thread = threading.Thread(target=listen)
            thread.start()
            start = time.perf_counter()
            for number in range(1, loads + 1):
                _load(store, number)
                ended.append(time.perf_counter())
            thread.join(600)
        finally:
            follower.terminate()
            follower.wait(20)
    late = [after - before for before, after in zip(ended, told, strict=True)]
    loads_took = [b - a for a, b in zip([start, *ended], ended, strict=False)]
    work = f"`lake follow`: a bulk load is in the tables, {loads * rows / (ended[-1] - start):,.0f} rows a second"
    row = arena.row(work, {}, (Limit(LATE), Limit(LATE, tail=True)), "the load")
    yield arena.spread(row, {"ours": late, "floor": loads_took}, set())


def _load(store: graphstore.GraphStore, number: int) -> None:
    ids = [f"{number}-{one}" for one in range(VERSIONS)]
    store.bulk_load(
        nodes=[{"id": id, "kind": "fact"} for id in ids],
        versions=[{"node_id": id, "content": {"says": f"{id} {'y' * 60}"}} for id in ids],
    )
