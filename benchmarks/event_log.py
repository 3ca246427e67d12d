"""What the event log costs: 5,000 events over ninety days, beside a file of JSON lines that is scanned and rewritten.

The answers are known by construction and compared before anything is timed.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import orjson

import graphstore
from benchmarks.arena import Arena, Row
from benchmarks.promises import EVENTS as PROMISED
from benchmarks.timing import apart, once, race
from graphstore import events

EVENTS, DAYS = 5_000, 90
END = datetime(2026, 6, 30, tzinfo=UTC)
MILLI, MEGA = 1e-3, 1e6
_WEIGHTS = {"error": 60, "regression": 15, "deploy": 10, "fix": 10, "baseline_shift": 5}


def typical(count: int = EVENTS) -> list[dict[str, Any]]:
    """Events as a browser and a CI tell them, oldest first; one in seven is about an earlier one."""
    chance = random.Random(7)
    kinds = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=count)
    found = []
    for number, kind in enumerate(kinds):
        found.append(
            {
                "id": f"evt_{number}",
                "type": kind,
                "timestamp": (END - timedelta(days=DAYS) * (1 - number / count)).isoformat(),
                "description": f"{kind}: Cannot read property 'field_{number:x}' of undefined at View{number % 97}.render",
                "source": f"view-{number % 97}.js:{number % 400}",
                "metadata": {"page": f"/page/{number % 31}", "build": f"{number // 50:06x}"},
                "related_to": f"evt_{chance.randrange(number)}" if number and number % 7 == 0 else None,
            }
        )
    return found


def tell(store: graphstore.GraphStore, told: list[dict[str, Any]]) -> None:
    with store.transaction():
        for event in told:
            store.record_event(
                event["type"],
                event["description"],
                id=event["id"],
                occurred_at=event["timestamp"],
                source=event["source"],
                origin="system",
                metadata=event["metadata"],
                related_to=event["related_to"],
            )


def scan(file: Path) -> int:
    """The history as the file gives it: every line read, those of the window kept, newest first, printed."""
    since = (END - timedelta(days=DAYS)).isoformat()
    with open(file, "rb") as source:
        found = [event for line in source if (event := orjson.loads(line))["timestamp"] >= since]
    found.sort(key=lambda event: event["timestamp"], reverse=True)
    orjson.dumps(found)
    return len(found)


def rewrite(file: Path, cut: str) -> int:
    """The file without what is older than `cut`."""
    with open(file, "rb") as source:
        kept = [line for line in source if orjson.loads(line)["timestamp"] >= cut]
    fresh = file.with_suffix(".new")
    with open(fresh, "wb") as sink:
        sink.writelines(kept)
        sink.flush()
        os.fsync(sink.fileno())
    fresh.replace(file)
    return len(kept)


def event_log(arena: Arena) -> Iterator[Row]:
    count = 500 if arena.quick else EVENTS
    told = typical(count)
    folder, file = arena.folder / "event_log", arena.folder / "events.jsonl"
    file.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in told))
    store = graphstore.open(folder, clock=lambda: END)
    tell(store, told)
    view = store.as_of()
    report = events.history_report(view, since=f"{DAYS}d")
    assert report["total_events"] == scan(file) == count, (report["total_events"], scan(file))
    size = f"{count // 1_000}k events"

    def row(work: str, took: dict[str, float], budget: float, floor_is: str, unit: str = "s") -> Row:
        made = arena.row(work, took, budget, floor_is, unit, promise=PROMISED)
        made.size = size
        return made

    lanes = {
        "ours": lambda: once(partial(events.history_report, view, since=f"{DAYS}d"))[0],
        "floor": lambda: once(partial(scan, file))[0],
    }
    yield row(
        "history report of 90 days, patterns known",
        race(lanes, arena.turns),
        50 * MILLI,
        "scan of JSON lines",
    )

    views = iter(store.as_of(valid=END - timedelta(seconds=number)) for number in itertools.count(1))
    first = [once(partial(events.patterns, next(views)))[0] for _ in range(arena.turns)]
    yield row("patterns, found anew", {"ours": median(first)}, 100 * MILLI, "")
    again = [once(partial(events.patterns, view))[0] for _ in range(arena.turns)]
    yield row("patterns, asked again", {"ours": median(again)}, 5 * MILLI, "")

    numbers, before = itertools.count(), store.stats()["journal_bytes"]
    one, bare = [], []
    for _ in range(arena.turns):
        one += apart(
            lambda: store.record_event("error", f"SyntaxError: token 'word_{next(numbers):x}'"), [()] * 10
        )
        bare += apart(
            arena.bare.append, [(b"x" * ((store.stats()["journal_bytes"] - before) // len(one)),)] * 10
        )
    took = {"ours": median(one), "floor": median(bare)}
    yield row(
        "append of one error, its fingerprint looked up", took, 1 * MILLI, "write + fdatasync of as much"
    )
    store.close()
    yield row(
        "eviction of a third", _eviction(arena, told, folder, file), 200 * MILLI, "rewriting the JSON lines"
    )

    small = graphstore.open(arena.folder / "small", clock=lambda: END)
    for event in typical(150 if arena.quick else 1_500):
        tell(small, [event])
    grown = {"ours": float(small.stats()["journal_bytes"])}
    small.close()
    yield row("journal of 1,500 such events, each a commit", grown, MEGA, "", unit="B")


def _eviction(arena: Arena, told: list[dict[str, Any]], folder: Path, file: Path) -> dict[str, float]:
    cut = END - timedelta(days=DAYS) * 2 / 3
    gone = sum(event["timestamp"] < cut.isoformat() for event in told)
    took: dict[str, list[float]] = {"ours": [], "floor": []}
    for turn in range(arena.rounds):
        copy, lines = folder.with_name(f"event_log_{turn}"), file.with_name(f"events_{turn}.jsonl")
        shutil.copytree(folder, copy)
        shutil.copy(file, lines)
        with graphstore.open(copy, clock=lambda: END) as store:
            took["ours"] += apart(lambda store=store: store.evict(before=cut), [()])
            assert store.inspect("evt_0").node.standing == "evicted"
            assert (
                sum(event.id.startswith("evt_") and event.id[4:].isdigit() for event in store.events())
                == len(told) - gone
            )
        took["floor"] += apart(rewrite, [(lines, cut.isoformat())])
        shutil.rmtree(copy)
    return {name: median(seconds) for name, seconds in took.items()}
