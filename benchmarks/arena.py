"""The stores that are compared, each with the same history, and a row of the table. No answer is timed that is not compared with the right one."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, NamedTuple
from zlib import crc32

from benchmarks import fresh
from benchmarks.data import SHAPES, Coordinate, Data, Draws, Oracle, description, shape
from benchmarks.shared import CUT, DAY
from benchmarks.timing import BareFile, Spread, once, spread

CALLS = {"ours": 100, "sqlite": 100, "floor": 100, "duckdb": 2}
"""Calls a turn, 20 of each of the others. Lanes take turns, so that a busy machine slows all of them alike."""
AFTER_A_WRITE = {"ours": 20, "sqlite": 20, "floor": 20}
"""The same for reads that each follow a commit, 1 of each of the others."""
TURNS = 15
SIZES = {"k": 1_000, "m": 1_000_000}
SMALL = 50_000
"""A run of fewer versions shows that the rows work. It repeats and loads less, and its figures mean nothing."""


def count_of(size: str) -> int:
    """Return the versions of a size such as 100k."""
    return int(size[:-1]) * SIZES[size[-1]] if size[-1] in SIZES else int(size)


class Limit(NamedTuple):
    """The most that a figure of ours may be."""

    most: float  # how many times the figure of another lane; where there is none, seconds or bytes
    over: str = ""  # that lane
    tail: bool = False  # compare the 99th percentiles, not the medians
    above: bool = False  # `most` is seconds or bytes more than that lane's figure


@dataclass
class Row:
    """What some work took in each store, in seconds or bytes: medians, and where single calls were timed how they scatter."""

    work: str
    size: str
    took: dict[str, float]
    limits: tuple[Limit, ...] = ()
    floor_is: str = ""
    unit: str = "s"
    promise: str = ""
    """The line of `promises.ORDER` that this row belongs to."""
    spreads: dict[str, Spread] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """Who gave a wrong answer: such a figure is left out, and named."""

    def measured(self, limit: Limit) -> float | None:
        """Return our figure in the terms of a limit: a factor, seconds or bytes. Return None if a lane that it needs did not run."""
        ours, other = (
            self.spreads[name].p99 if limit.tail and name in self.spreads else self.took.get(name)
            for name in ("ours", limit.over)
        )
        if ours is None or (limit.over and not other):
            return None
        if limit.above:
            return max(ours - (other or 0.0), 0.0)
        return ours / other if other else ours


@dataclass
class Arena:
    """One history in every store."""

    size: str
    data: Data
    folder: Path
    twins: dict[str, ModuleType]
    stores: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, list[float]] = field(default_factory=dict)
    closed: dict[str, float] = field(default_factory=dict)
    standings: dict[str, int] = field(default_factory=dict)
    bare: BareFile = field(init=False)
    draws: Draws = field(init=False)
    _writes: dict[str, itertools.count[int]] = field(default_factory=dict)
    _shapes: dict[str, Arena] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bare = BareFile(self.folder / "bare")
        self.draws = Draws(self.data, Oracle(self.data))

    @property
    def quick(self) -> bool:
        return self.versions < SMALL

    @property
    def versions(self) -> int:
        """Return the size of the run. An arena of another shape has the size of its run too."""
        return count_of(self.size)

    def scaled(self, count: int) -> int:
        """Scale a count that is meant for a run of 100k versions or more down to this run."""
        return max(count * min(self.versions, 100_000) // 100_000, 100)

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    @property
    def turns(self) -> int:
        return 2 if self.quick else TURNS

    @property
    def asked(self) -> int:
        """Return how many coordinates are drawn for a row."""
        return 60 if self.quick else 1_500

    def load(self, times: int = 1) -> None:
        """Load the history into every store. Ours uses single verbs if the data lists them. It is closed once, which counts, and opened again."""
        for name, twin in self.twins.items():
            if name == "ours" and self.data.verbs:
                self.data = twin.record(self.folder / name, self.data)
                self.draws = Draws(self.data, Oracle(self.data))
                self.stores[name] = twin.open(self.folder / name)
                continue
            loads = twin.prepare(self.data)
            for _ in range(times if name in ("ours", "kuzu") else 1):
                if name in self.stores:
                    twin.close(self.stores.pop(name))
                    shutil.rmtree(self.folder / name)
                store, seconds = loaded(twin, self.folder / name, loads, self.data.versions.num_rows)
                if name == "ours":
                    self.closed[name], _ = once(partial(twin.close, store))
                    seconds, store = seconds + self.closed[name], twin.open(self.folder / name)
                self.stores[name] = store
                self.loaded.setdefault(name, []).append(seconds)

    def shape(self, name: str) -> Arena:
        """Return an arena of ours and SQLite with the data of a shape, loaded once. `history` is this arena."""
        if name == "history":
            return self
        if name not in self._shapes:
            twins = {each: twin for each, twin in self.twins.items() if each in ("ours", "sqlite")}
            count = self.scaled(SHAPES[name])
            self._shapes[name] = Arena(self.size, shape(name, count), self.folder / name, twins)
            self._shapes[name].load()
        return self._shapes[name]

    def close(self) -> None:
        for name, store in self.stores.items():
            self.twins[name].close(store)
        self.stores.clear()
        while self._shapes:
            self._shapes.popitem()[1].close()

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
        limits: tuple[Limit, ...] = (),
        promise: str = "",
        floor: Callable[[Any], Any] | None = None,
        floor_is: str = "",
        after_a_write: bool = False,
        most: int = 1_000,
    ) -> Row:
        """Time single calls of each store, in turns, and compare each answer. The questions were asked before, or each call follows a write.

        `most` limits the calls of a turn, for long answers.
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
        for name, lane in lanes.items():
            lane(len(asked) if name in ("ours", "sqlite") and not after_a_write else 2)
        for took in times.values():
            took.clear()
        for _ in range(self.turns):
            for name, lane in lanes.items():
                lane(min(most, calls.get(name, 1 if after_a_write else 20)))
        return self.spread(self.row(work, {}, limits, floor_is, promise=promise), times, wrong)

    def first_touch(
        self,
        verb: str,
        asked: dict[str, list[tuple[Coordinate, Any]]],
        limits: tuple[Limit, ...],
        promise: str,
    ) -> Iterator[Row]:
        """Time the first read of each thing in a process that just opened the store. Yield a row for each kind of coordinate; no thing is in two of them."""
        turns, works = 1 if self.quick else 2, list(asked)
        times: dict[str, dict[str, list[float]]] = {work: {} for work in works}
        wrong: dict[str, set[str]] = {work: set() for work in works}
        for turn in range(turns):
            chosen = []
            for place, work in enumerate(works, turn * len(works)):
                distinct = {coordinate[0]: (work, coordinate, right) for coordinate, right in asked[work]}
                mine = [
                    one for id, one in distinct.items() if crc32(id.encode()) % (turns * len(works)) == place
                ]
                chosen += mine or list(distinct.values())
            for name in ("ours", "sqlite"):
                if name not in self.stores:
                    continue
                given = {"asked": [coordinate for _, coordinate, _ in chosen], "warm": asked[works[0]][-1][0]}
                done = fresh.run("first", self.twins[name], self.folder / name, verb=verb, **given)
                for (work, coordinate, right), took, answer in zip(
                    chosen, done["times"], done["answers"], strict=True
                ):
                    times[work].setdefault(name, []).append(took)
                    if answer != fresh.as_json(right):
                        wrong[work].add(f"{name}: {verb}{coordinate} is {answer!r}, not {right!r}"[:400])
        for work in works:
            yield self.spread(self.row(work, {}, limits, promise=promise), times[work], wrong[work])

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
        limits: float | tuple[Limit, ...] | None = None,
        floor_is: str = "",
        unit: str = "s",
        promise: str = "",
    ) -> Row:
        """Make a row. A number as `limits` is a single limit in the unit of the row."""
        if "floor" not in took and floor_is.startswith("raw Kùzu") and "kuzu" in took:
            took["floor"] = took["kuzu"]
        if not isinstance(limits, tuple):
            limits = () if limits is None else (Limit(limits),)
        return Row(work, self.size, took, limits, floor_is, unit, promise)


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
