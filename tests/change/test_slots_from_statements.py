"""What holds in a slot is a function of the statements that are believed: random programs, compared with a recomputation from what is left of them.

The recomputation (`Statements`) is written from the rule alone. It keeps what was stated, and looks at each day anew.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("holds many stores of its own")

NOW = 5  # the day of the first transaction: values that begin later are plans
DAYS = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in range(12)]
NEVER = len(DAYS)
STEPS = 14
NAMES = {f"v{number}" for number in range(STEPS)}


class Value(NamedTuple):
    order: int
    key: str | None
    is_given: bool  # whether its end was given
    stated: set[int]
    ended: set[int]


class Statements:
    """What was stated, and is not taken back. Every step is one transaction; one that is undone was never made."""

    def __init__(self) -> None:
        self.steps: dict[datetime, tuple[str, tuple[Any, ...]]] = {}
        self.values: dict[str, Value] = {}
        self.links: list[tuple[str, str, str, set[int]]] = []  # kind, new, old, days

    def holding(self) -> dict[str, list[str | None]]:
        """What holds on each day, by slot."""
        self.values, self.links = {}, []
        for verb, args in self.steps.values():
            if verb == "add" or all(id in self.values for id in args if id in NAMES):
                getattr(self, verb)(*args)
        keys = sorted({value.key for value in self.values.values() if value.key})
        return {key: [self.winner(key, day) for day in range(NEVER)] for key in keys}

    def winner(self, key: str, day: int) -> str | None:
        here = {
            id: value
            for id, value in self.values.items()
            if value.key == key and day in value.stated | value.ended and not self.is_bound(id, day)
        }
        first = max((value.order for value in here.values() if value.is_given), default=-1)
        left = [id for id, value in here.items() if value.order >= first]
        best = max(left, key=lambda id: (min(here[id].stated), here[id].order), default=None)
        return best if best and day in here[best].stated else None

    def is_bound(self, id: str, day: int) -> bool:
        """Whether a supersession that a writer named, or a correction, keeps it from holding."""
        return any(day in days for _, _, old, days in self.links if old == id)

    def add(
        self, id: str, key: str | None, start: int, stop: int | None, named: dict[str, list[str]]
    ) -> None:
        end = NEVER if stop is None else stop
        self.values[id] = Value(len(self.values), key, stop is not None, set(range(start, end)), set())
        for kind, olds in named.items():
            for old in olds:
                if old in self.values:  # else that was undone
                    self.link(kind, id, old)

    def link(self, kind: str, new: str, old: str) -> None:
        mine, other = self.values[new], self.values[old]
        begun, until = min(mine.stated), NEVER
        if kind == "supersedes":
            first = min(other.stated, default=begun)
            begun = first if first > NOW else max(begun, first)
            end = max(mine.stated) + 1
            if first <= NOW and mine.is_given and begun < end <= max(other.stated, default=0):
                until = end
        days = set(range(begun, until))
        self.links.append((kind, new, old, days & mine.stated if kind == "corrects" else days))

    def retract(self, id: str, start: int, stop: int) -> None:
        gone = set(range(start, stop))
        self.values[id].stated.difference_update(gone)
        self.values[id].ended.difference_update(gone)
        for _, new, _, days in self.links:
            if new == id:
                days -= gone

    def end(self, id: str, at: int) -> None:
        value, gone = self.values[id], set(range(at, NEVER))
        value.ended.update(value.stated & gone)
        value.stated.difference_update(gone)

    def unlink(self, kind: str, new: str, old: str) -> None:
        self.links = [link for link in self.links if link[:3] != (kind, new, old)]


class Program:
    """Steps that a store takes, and what they state."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = DAYS[NOW] + timedelta(minutes=1)
        self.store: GraphStore = graphstore.open(":memory:", clock=lambda: self.now)
        self.said = Statements()
        self.count = 0

    def step(self) -> None:
        chance = self.chance
        self.now += timedelta(minutes=1)
        verb = chance.choice(["add"] * 5 + ["link", "retract", "retract", "part", "end", "unlink", "undo"])
        if verb == "add" or self.count < 2 or not self.said.steps:
            self._add()
        elif verb == "undo":
            tx = chance.choice([*self.said.steps])
            self.store.undo(tx, reason="a slip")
            del self.said.steps[tx]
        else:
            getattr(self, "_" + verb)(*chance.sample([*self.said.values], min(2, len(self.said.values))))

    def _note(self, verb: str, *args: Any) -> None:
        self.said.steps[self.store.changes()[-1].tx] = verb, args

    def _add(self) -> None:
        chance, id = self.chance, f"v{self.count}"
        start = chance.randrange(NEVER - 1)
        stop = chance.choice([None, None, chance.randrange(start + 1, NEVER)])
        key = chance.choice(["day", "day", "place"])
        named = {}
        if self.said.values and chance.random() < 0.3:
            named = {
                chance.choice(["supersedes", "supersedes", "corrects"]): [chance.choice([*self.said.values])]
            }
        bounds = {"valid_from": DAYS[start]} | ({} if stop is None else {"valid_to": DAYS[stop]})
        self.store.add_node("fact", {"is": id}, id=id, key=key, **bounds, **named)
        self.count += 1
        self._note("add", id, key, start, stop, named)

    def _link(self, new: str, old: str | None = None) -> None:
        if old is None or not self.said.values[new].stated or not self.said.values[old].stated:
            return
        kind = self.chance.choice(["supersedes", "corrects"])
        if any({new, old} == {*link[1:3]} for link in self.said.links) or self.store.link_history(
            new, "supersedes", old
        ):
            return  # it is, or would be, said again
        if not self.store.history(new) or not self.store.history(old) or self.said.values[new].ended:
            return
        self.store.link(
            new,
            kind,
            old,
            **({"valid_from": DAYS[min(self.said.values[new].stated)]} if kind == "corrects" else {}),
        )
        self._note("link", kind, new, old)

    def _retract(self, id: str, *_: str) -> None:
        self.store.retract(id, reason="never so")
        self._note("retract", id, 0, NEVER)

    def _part(self, id: str, *_: str) -> None:
        start, stop = sorted(self.chance.sample(range(NEVER), 2))
        held = {day for row in self.said.holding().values() for day, value in enumerate(row) if value == id}
        if not held - {*range(start, stop)}:
            return  # it would take all
        self.store.retract(id, valid_from=DAYS[start], valid_to=DAYS[stop], reason="not then")
        self._note("retract", id, start, stop)

    def _end(self, id: str, *_: str) -> None:
        at = self.chance.randrange(NEVER)
        self.store.end(id, at=DAYS[at])
        self._note("end", id, at)

    def _unlink(self, *_: str) -> None:
        self.said.holding()
        if self.said.links:
            kind, new, old, _ = self.chance.choice(self.said.links)
            self.store.unlink(source=new, kind=kind, target=old)
            self._note("unlink", kind, new, old)


def held(store: GraphStore) -> dict[str, list[str | None]]:
    """What a store says that holds on each day, by slot."""
    found: dict[str, list[str | None]] = {}
    for day, at in enumerate(DAYS):
        for node in store.as_of(valid=at).nodes():
            row = found.setdefault(str(node.key), [None] * NEVER)
            assert row[day] is None, f"{node.id} and {row[day]} both hold"
            row[day] = node.id
    return found


@pytest.mark.parametrize("seed", seeds(20, 100, 3_000))
def test_a_slot_holds_what_the_statements_that_are_left_determine(seed: int) -> None:
    program = Program(seed)
    with program.store as store:
        for _ in range(STEPS):
            try:
                program.step()
            except GraphStoreError:
                continue
            expected = {key: row for key, row in program.said.holding().items() if any(row)}
            assert expected == held(store), list(program.said.steps.values())
        assert store.verify().ok
