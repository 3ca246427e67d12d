"""What a search by words costs as of any coordinate, and the first one of a process: `--only search`, at 100k and a million versions."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphstore
from benchmarks import data as history
from benchmarks import ours
from benchmarks.arena import Arena, Row
from benchmarks.recall import ranked
from benchmarks.shared import DAY, LATEST, START
from benchmarks.timing import StopWatch, spread

CALLS = 60
MILLI, MEGA = 1e-3, 1e6
TEXT = "queue settled 17"


def search(view: Any, text: str) -> list[str]:
    """The ids of the ten best by words alone."""
    with view.reading() as sight:
        return [sight.id(ent) for ent, _ in sight.found(text, 10).matches]


def at(store: graphstore.GraphStore, instant: int) -> Any:
    """The view of what was known at an instant."""
    return store.as_of(valid=ours.at(instant), tx=ours.at(instant))


def searched(arena: Arena) -> Iterator[Row]:
    """Closes the arena's stores, so that the words are saved."""
    arena.close()
    folder, small = arena.folder / "ours", arena.data.versions.num_rows <= 100_000
    told = [_first("search", folder) for _ in range(arena.rounds)]
    recalled = [_first("recall", folder) for _ in range(arena.rounds)]
    store = ours.open(folder)
    expected = ranked(at(store, LATEST), TEXT)
    for work, each in (("the first search of a process", told), ("the first recall of a process", recalled)):
        assert all(one["found"] == expected for one in each), (each, expected)
        first = sorted(one["seconds"] for one in each)[len(each) // 2]
        yield arena.row(work, {"ours": first}, 100 * MILLI if small else None, "")
    more = max(float(one["more"]) for one in told)
    yield arena.row("memory, more after it", {"ours": more}, 40 * MEGA if small else None, "", unit="B")
    chance = random.Random(history.SEED)
    asked = [f"{chance.choice(history.WORDS)} {chance.randrange(100)}" for _ in range(CALLS)]
    unseen = [START + (500 + number) * DAY for number in range(CALLS)]
    for work, instants, limit in (
        ("search now", [LATEST] * CALLS, 2 * MILLI),
        ("search at the same past coordinate", [START + 400 * DAY] * CALLS, 2 * MILLI),
        ("search at a coordinate never seen", unseen, 5 * MILLI),
    ):
        search(at(store, instants[0]), TEXT)
        took = []
        for when, text in zip(instants, asked, strict=True):
            view, watch = at(store, when), StopWatch()
            search(view, text)
            took.append(watch.seconds())
        each = spread(took)
        row = arena.row(work, {"ours": each.median}, limit if small else None, "")
        row.spreads["ours"] = each
        yield row
        high = sorted(took)[CALLS * 95 // 100 - 1]
        yield arena.row(f"{work}, 95 of 100 calls", {"ours": high}, 2 * limit if small else None, "")
    ours.close(store)


def _first(act: str, folder: Path) -> dict[str, Any]:
    place, instant = str(folder / "memory.gs"), ours.at(LATEST).isoformat()
    command = [sys.executable, "-m", "benchmarks.first_search", act, place, TEXT, instant]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
