"""Random programs against the oracle, for as long as one likes: `python -m lab oracle --operations 1000000 --seed 1`.

The machines are those of the tests (`test_model.py`, `test_branch_model.py`): each verb is told to the store and to the oracle, each answer of the
store is compared with the oracle's. Here they run in batches, each with a seed of its own, and what was told and compared is counted: from the index, the
graph tables of both drivers, views in Cypher, a follower, a store opened again, branches and merges, and through a server.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import secrets
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

import graphstore
from tests.stories.test_branch_model import Forking, Merging
from tests.stories.test_model import Histories, Tables
from tests.support.served import TOKENS, serve_in_thread

COUNTS: Counter[str] = Counter()


class Counting(Histories):
    """Counts the verbs told and the answers compared."""

    def both(self, theirs: Callable[[], Any], ours: Callable[[], Any]) -> Any:
        COUNTS["verbs told"] += 1
        return super().both(theirs, ours)

    def compare(self, got: dict[Any, Any], *where: Any) -> None:
        COUNTS["answers compared"] += len(got)
        super().compare(got, *where)


class OfTables(Counting, Tables):
    """The graph tables, and views in Cypher."""

    @precondition(lambda self: self.block is None)
    @rule()
    def tables_as_they_grew(self) -> None:
        COUNTS["questions in Cypher compared"] += 5
        self.tables_hold_the_history(rebuild=False)

    @precondition(lambda self: self.block is None)
    @rule(back=st.integers(0, 1000))
    def a_view_in_cypher(self, back: int) -> None:
        COUNTS["questions in Cypher compared"] += 5
        self.a_views_graph_is_what_it_reads(back, -1 - back, 4)


class Ladybug(OfTables):
    """The same on the other driver."""

    driver = "ladybug"


class Served(Counting):
    """Through a server, which is ended when the store is closed. A follower reads the folder itself."""

    def open(self, **how: Any) -> Any:
        store = super().open(**how)
        if how:
            return store
        ending = contextlib.ExitStack()
        ending.callback(store.close)
        url = ending.enter_context(serve_in_thread(store))
        there = graphstore.open(url, token=TOKENS.write)
        close = there.close

        def ended() -> None:
            close()
            ending.close()

        there.close = ended  # type: ignore[method-assign]
        return there


class Branches(Counting, Forking):
    """A trunk and its branches."""


class Merges(Counting, Merging):
    """Merges of branches."""


MACHINES: dict[str, type[Histories]] = {
    "index": Counting, "tables": OfTables, "ladybug": Ladybug, "http": Served, "branches": Branches, "merges": Merges,
}  # fmt: skip
TURNS = ("index", "tables", "index", "branches", "http", "index", "ladybug", "merges")


def batch(name: str, number: str, programs: int, steps: int, *, shrink: bool = False) -> None:
    """So many programs of a machine, drawn by a seed. Raises what the comparison raises, with the program; `shrink`: the shortest one that shows it."""
    chosen = settings(
        max_examples=programs, stateful_step_count=steps, deadline=None, database=None, print_blob=False,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    machine = type(MACHINES[name].__name__, (MACHINES[name],), {})  # the seed is kept on the class
    run_state_machine_as_test(seed(number)(machine), settings=chosen)


def elsewhere(number: str, told: argparse.Namespace) -> None:
    """A batch in a process of its own, for two drivers cannot be loaded into one. Raises AssertionError with what it found."""
    more = ["--programs", told.programs, "--steps", told.steps, *(["--shrink"] if told.shrink else [])]
    command = [sys.executable, "-m", "lab", "oracle", "--seed", number, *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    COUNTS.update(json.loads(done.stdout.rpartition("counted ")[2]))


def main(arguments: list[str]) -> int:
    """Batches until so many operations were compared, or the time is over. Returns 1 when anything was found."""
    said = argparse.ArgumentParser(prog="python -m lab oracle")
    said.add_argument(
        "--operations", type=float, default=float("inf"), help="verbs told and answers compared, together"
    )
    said.add_argument("--minutes", type=float, default=float("inf"))
    said.add_argument(
        "--seed", default=None, help="a run's seed, or the whole seed of one batch (index-17-3)"
    )
    said.add_argument("--only", nargs="*", choices=list(MACHINES), default=None)
    said.add_argument("--programs", type=int, default=20, help="of a batch")
    said.add_argument("--steps", type=int, default=80, help="of a program, at most")
    said.add_argument("--shrink", action="store_true", help="look for the shortest program that shows a find")
    told = said.parse_args(arguments)
    number = told.seed or str(secrets.randbelow(10**9))
    turns = told.only or [turn for turn in TURNS if turn != "ladybug" or importlib.util.find_spec("ladybug")]
    start, found, done = time.monotonic(), 0, 0
    while COUNTS.total() < told.operations and time.monotonic() - start < told.minutes * 60:
        one = number if number.count("-") == 2 else f"{turns[done % len(turns)]}-{number}-{done}"
        name = one.partition("-")[0]
        kept, before, began = COUNTS.copy(), COUNTS.total(), time.monotonic()
        try:
            if name == "ladybug" and one != number:
                elsewhere(one, told)
            else:
                batch(name, one, told.programs, told.steps, shrink=told.shrink)
        except Exception:
            found += 1
            COUNTS.clear()  # looking for the shortest program tells much the same again and again
            COUNTS.update(kept)
            print(f"FOUND by --seed {one}:\n{traceback.format_exc()[-20000:]}", flush=True)
        done += 1
        took = time.monotonic() - began
        print(f"{one}: {COUNTS.total() - before:,} in {took:.0f} s; in all {COUNTS.total():,}", flush=True)
        if one == number:
            break
    minutes = (time.monotonic() - start) / 60
    what = ", ".join(f"{count:,} {word}" for word, count in sorted(COUNTS.items()))
    print(
        f"{what}: {COUNTS.total():,} operations in {minutes:.1f} minutes, {found} batches found something. Seed {number}."
    )
    print(f"counted {json.dumps(COUNTS)}")
    return int(bool(found))
