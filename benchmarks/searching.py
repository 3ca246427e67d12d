"""Measure searches by words: now, after a write each, and at past coordinates. The group `open` has the first search of a process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from benchmarks import data as history
from benchmarks import ours
from benchmarks.arena import Arena, Limit, Row
from benchmarks.promises import SEARCH
from benchmarks.recall import ranked
from benchmarks.shared import DAY, LATEST, START
from benchmarks.timing import StopWatch, once

MILLI = 1e-3
TEXT = "queue settled 17"


def searched(arena: Arena) -> Iterator[Row]:
    """Search for a word and a number each time."""
    store, small = arena.stores["ours"], arena.versions <= 100_000
    latest = ours.at(LATEST)
    found = ours.search(store, TEXT, latest)
    assert found == ranked(store.as_of(valid=latest, tx=latest), TEXT), found
    chance, calls = random.Random(history.SEED), 6 if arena.quick else 60
    asked = [f"{chance.choice(history.WORDS)} {chance.randrange(100)}" for _ in range(calls)]
    unseen = [START + (500 + number) * DAY for number in range(calls)]
    for work, instants, writes, limit in (
        ("now", [None] * calls, False, 2 if small else 3),
        ("now, after a write each", [None] * calls, True, 7 if small else None),
        ("the same past coordinate", [START + 400 * DAY] * calls, False, None),
        ("a coordinate never seen", unseen, False, 5 if small else 15),
    ):
        ours.search(store, TEXT, ours.at(instants[0]))
        took = []
        for when, text in zip(instants, asked, strict=True):
            if writes:
                arena.write("ours")
            watch = StopWatch()
            ours.search(store, text, ours.at(when))
            took.append(watch.seconds())
        limits = () if limit is None else (Limit(limit * MILLI),)
        row = arena.row(f"search, {work}", {}, limits, promise=SEARCH if limits else "")
        yield arena.spread(row, {"ours": took}, set())
    seconds, _ = once(partial(ours.recall, store, TEXT, latest, latest))
    yield arena.row("the first recall", {"ours": seconds})
