"""The stores that are compared, each with the same history, and a row of the table. No answer is timed that is not compared with the right one."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.data import Coordinate, Data, Draws, Oracle, description
from benchmarks.shared import CUT, DAY
from benchmarks.timing import BareFile, Spread, once, spread

CALLS = {"ours": 100, "sqlite": 100, "floor": 100, "duckdb": 2}
"""Calls a turn, 20 of each of the others. Lanes take turns, so that a busy machine slows all of them alike."""
AFTER_A_WRITE = {"ours": 20, "sqlite": 20, "floor": 20}
"""The same for reads that each follow a commit, 1 of each of the others."""
TURNS = 15
Budget = Callable[[dict[str, float]], float]


@dataclass
class Row:
    """What some work took in each store, in seconds or bytes: medians, and where single calls were timed how they scatter."""

    work: str
    size: str
    took: dict[str, float]
    budget: float | None
    floor_is: str
    unit: str = "s"
    spreads: dict[str, Spread] = field(default_factory=dict)
    tail: float | None = None
    """At most what 99 of 100 calls of ours are to take."""
    wrong: list[str] = field(default_factory=list)
    """Who gave a wrong answer: such a figure is left out, and named."""


@dataclass
class Arena:
    """One history in every store."""

    size: str
    data: Data
    folder: Path
    twins: dict[str, ModuleType]
    quick: bool
    stores: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, list[float]] = field(default_factory=dict)
    standings: dict[str, int] = field(default_factory=dict)
    bare: BareFile = field(init=False)
    draws: Draws = field(init=False)
    _writes: dict[str, itertools.count[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bare = BareFile(self.folder / "bare")
        self.draws = Draws(self.data, Oracle(self.data))

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    @property
    def turns(self) -> int:
        return 2 if self.quick else TURNS

    def load(self, times: int = 1) -> None:
        for name, twin in self.twins.items():
            loads = twin.prepare(self.data)
            for _ in range(times if name in ("ours", "kuzu") else 1):
                if name in self.stores:
                    twin.close(self.stores.pop(name))
                    shutil.rmtree(self.folder / name)
                self.stores[name], seconds = loaded(
                    twin, self.folder / name, loads, self.data.versions.num_rows
                )
                self.loaded.setdefault(name, []).append(seconds)

    def close(self) -> None:
        for name, store in self.stores.items():
            self.twins[name].close(store)
        self.stores.clear()

    def asking(self, *verbs: str) -> Iterable[tuple[str, ModuleType, Any]]:
        """Name, functions and store of those that can be asked all of this."""
        for name, store in self.stores.items():
            if all(hasattr(self.twins[name], verb) for verb in verbs):
                yield name, self.twins[name], store

    def timed(
        self,
        work: str,
        verb: str,
        asked: list[tuple[Coordinate, Any]],
        *,
        budget: float | None = None,
        tail: float | None = None,
        floor: Callable[[Any], Any] | None = None,
        floor_is: str = "",
        after_a_write: bool = False,
        most: int = 1_000,
    ) -> Row:
        """Each call by itself, in turns, each answer compared: after a write each, or with nothing going on. The tail is a factor of the median.

        `most`: calls a turn, for answers that are long.
        """
        calls, wrong = AFTER_A_WRITE if after_a_write else CALLS, set()
        times: dict[str, list[float]] = {}
        lanes: dict[str, Callable[[int], None]] = {}
        for name, twin, store in self.asking(verb, "add_node"):
            questions = itertools.cycle(
                [
                    ((id, twin.at(valid), twin.at(tx)), twin.right(verb, right))
                    for (id, valid, tx), right in asked
                ]
            )
            act, plain, took = partial(getattr(twin, verb), store), twin.plain, times.setdefault(name, [])

            def lane(count: int, name=name, act=act, plain=plain, took=took, questions=questions) -> None:  # type: ignore[no-untyped-def]
                for question, right in itertools.islice(questions, count):
                    if after_a_write:
                        self.write(name)
                    start = perf_counter()
                    answer = act(*question)
                    took.append(perf_counter() - start)
                    if plain(answer) != right:
                        wrong.add(f"{name}: {verb}{question} is {plain(answer)!r}, not {right!r}"[:400])
                    if name == "ours" and hasattr(answer, "standing"):
                        self.standings[answer.standing] = self.standings.get(answer.standing, 0) + 1

            lanes[name] = lane
        if floor:
            rights, took = itertools.cycle([right for _, right in asked]), times.setdefault("floor", [])
            lanes["floor"] = lambda count: took.extend(_apart(floor, itertools.islice(rights, count)))
        for lane in lanes.values():
            lane(2)
        for took in times.values():
            took.clear()
        for _ in range(self.turns):
            for name, lane in lanes.items():
                lane(min(most, calls.get(name, 1 if after_a_write else 20)))
        row = self.spread(self.row(work, {}, budget, floor_is), times, wrong)
        row.tail = tail * row.took["ours"] if tail and "ours" in row.took else None
        return row

    def spread(self, row: Row, times: dict[str, list[float]], wrong: set[str]) -> Row:
        """The row with the medians of many calls, and how they scatter; without those that answered wrongly."""
        bad = {one.partition(":")[0] for one in wrong}
        row.spreads = {name: spread(samples) for name, samples in times.items() if name not in bad}
        row.took = {name: one.median for name, one in row.spreads.items()}
        row.wrong = sorted({one.partition(":")[0]: one for one in wrong}.values())
        return row

    def write(self, name: str, store: Any = None) -> None:
        """One commit: something new, something changed that others rest on, an event; in turns where the store has all three."""
        twin, store = self.twins[name], store or self.stores[name]
        turn = next(self._writes.setdefault(name, itertools.count()))
        if turn % 3 == 1 and hasattr(twin, "revise"):
            changed = self.data.written[turn // 3 % len(self.data.written)]
            twin.revise(store, changed, description(turn), twin.at(CUT + turn % 100 * DAY // 100))
        elif turn % 3 == 2 and hasattr(twin, "append_event"):
            twin.append_event(store, 5_000_000 + turn)
        else:
            twin.add_node(store, f"w{turn}_{name}", description(turn))

    def row(
        self,
        work: str,
        took: dict[str, float],
        budget: float | Budget | None,
        floor_is: str,
        unit: str = "s",
        tail: float | None = None,
    ) -> Row:
        if "floor" not in took and floor_is.startswith("raw Kùzu") and "kuzu" in took:
            took["floor"] = took["kuzu"]
        limit = budget(took) if callable(budget) else budget
        return Row(work, self.size, took, limit, floor_is, unit, tail=tail)


def loaded(twin: ModuleType, folder: Path, loads: Any, versions: int) -> tuple[Any, float]:
    folder.mkdir(parents=True, exist_ok=True)
    store = twin.create(folder)
    seconds, count = once(partial(twin.bulk_load, store, loads))
    assert count == versions, f"{twin.__name__} has {count} versions, not {versions}"
    return store, seconds


def _apart(work: Callable[[Any], Any], given: Iterable[Any]) -> list[float]:
    times = []
    for one in given:
        start = perf_counter()
        work(one)
        times.append(perf_counter() - start)
    return times
