"""The stores that are compared, each with the same history, and a row of the table. Answers are compared before the stop-watch starts."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.data import Data
from benchmarks.timing import BareFile, once, together

CALLS = {"ours": 300, "kuzu": 10, "sqlite": 300, "duckdb": 5}
"""Calls a turn: a few milliseconds each, so that a busy machine spoils whole turns and the median drops them."""
TURNS = 15
Budget = Callable[[dict[str, float]], float]


@dataclass
class Row:
    work: str
    size: str
    took: dict[str, float]
    budget: float | None
    floor_is: str
    unit: str = "s"


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
    bare: BareFile = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bare = BareFile(self.folder / "bare")

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5

    @property
    def turns(self) -> int:
        return 5 if self.quick else TURNS

    def load(self, times: int = 1) -> None:
        for name, twin in self.twins.items():
            loads = twin.prepare(self.data)
            for _ in range(times):
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

    def lanes(self, verb: str, asked: list[tuple[Any, ...]]) -> dict[str, Callable[[], float]]:
        """One lane a store: the next so many questions, with instants as that store takes them."""
        lanes = {}
        for name, store in self.stores.items():
            twin = self.twins[name]
            calls = itertools.cycle([(id, twin.at(valid), twin.at(tx)) for id, valid, tx in asked])
            work = partial(getattr(twin, verb), store)
            lanes[name] = lambda name=name, work=work, calls=calls: together(
                work, list(itertools.islice(calls, CALLS[name]))
            )
        return lanes

    def agree(self, verb: str, asked: list[tuple[Any, ...]], expected: list[Any] | None = None) -> None:
        """Every store gives the same answers: those that are expected, or those of SQLite."""
        reference = "sqlite" if "sqlite" in self.stores else "ours"
        if expected is None:
            expected = [self.answer(reference, verb, *question) for question in asked]
        for name in self.stores:
            for question, right in zip(asked, expected, strict=True):
                got = self.answer(name, verb, *question)
                if name == "kuzu" and verb in ("what_superseded", "causes"):
                    right = [step[0] for step in right]  # the least statement gives the ids alone
                assert got == right, f"{verb}{question}: {name} says {got!r}, not {right!r}"

    def answer(self, name: str, verb: str, id: str, valid: int, tx: int) -> Any:
        twin = self.twins[name]
        got = twin.plain(getattr(twin, verb)(self.stores[name], id, twin.at(valid), twin.at(tx)))
        return json.loads(json.dumps(got)) if isinstance(got, list) else got

    def row(
        self, work: str, took: dict[str, float], budget: float | Budget | None, floor_is: str, unit: str = "s"
    ) -> Row:
        if "floor" not in took and floor_is.startswith("raw Kùzu") and "kuzu" in took:
            took["floor"] = took["kuzu"]
        limit = budget(took) if callable(budget) else budget
        return Row(work, self.size, took, limit, floor_is, unit)


def loaded(twin: ModuleType, folder: Path, loads: Any, versions: int) -> tuple[Any, float]:
    folder.mkdir(parents=True, exist_ok=True)
    store = twin.create(folder)
    seconds, count = once(partial(twin.bulk_load, store, loads))
    assert count == versions, f"{twin.__name__} has {count} versions, not {versions}"
    return store, seconds
