"""Compares a store with the oracle of the rules under change on random worlds: `python -m lab worlds --answers 5000000`.

A world is a random program of plans, slots, links, corrections, confirmations and retractions. In some worlds transactions are taken back, several steps are one
transaction, or a branch begins and is merged. The store and the oracle take the same steps at the same instants; then each must say alike how each thing stands, at
each valid instant at which anything can change and at each transaction, on the trunk and on the branch.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import graphstore
from graphstore import GraphStore, GraphStoreError, NotFoundError
from graphstore.store.store import Store
from tests.change.oracle import Oracle, Refused, Undecided
from tests.change.programs import (
    DAYS,
    THINGS,
    TOLD,
    Hours,
    Step,
    draw,
    grouped,
    instants,
    tell,
    tell_store,
)

_SHOWN = 5
_ELSE = "other-"
"""How the names of things begin of which the trunk tells while a branch tells of the others."""
BEGINNINGS = (TOLD, DAYS[0] - timedelta(days=20), DAYS[2])
"""When a world begins to be told: after all of its times, before them, so that all is planned, or among them."""
SHAPES = ("plain", "undo", "merge", "groups")
Difference = tuple[datetime, datetime, str, str | None, str | None]


class Line(NamedTuple):
    """The trunk or a branch: a store and an oracle that are told the same."""

    store: Store
    oracle: Oracle


class World:
    """What is told to a store and to the oracle. `refused`: what one of the two refused and the other one did not."""

    def __init__(self, store: GraphStore, clock: Hours, seed: int) -> None:
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.trunk = Line(store, Oracle(clock))
        self.lines = [self.trunk]
        self.refused: list[Difference] = []

    def tell(self, line: Line, steps: int, names: str = "", most: int = 1) -> None:
        """Tell a random program of some steps, in transactions of at most so many."""
        hours = Hours()
        hours.now = self.clock.now
        draft = line.oracle.fork()
        draft.clock = hours
        program = draw(self.chance, steps, draft, hours, with_names=names)
        for group in grouped(program, [self.chance.randint(1, most) for _ in program]):
            self.clock.move()
            self._tell_at_once(line, group)

    def _tell_at_once(self, line: Line, group: list[Step]) -> None:
        with line.store.transaction(), line.oracle.transaction():
            for step in group:
                try:
                    tell(line.oracle, step)
                except (Refused, Undecided):  # beside the others of its transaction
                    continue
                tell_store(line.store, step)

    def undo(self) -> None:
        """Take one of the last transactions back."""
        told = [change.tx for change in self.store.changes()]
        if not told:
            return
        tx = self.chance.choice(told[-4:])
        self.clock.move()
        try:
            self.trunk.oracle.undo(tx)
            expected = "done"
        except Refused:
            expected = "refused"
        except Undecided:
            return
        try:
            self.store.undo(tx, reason="a slip")
            found = "done"
        except GraphStoreError:
            found = "refused"
        if expected != found:
            self.refused.append((tx, tx, "undo", expected, found))

    def branch_and_merge(self, steps: int) -> None:
        """Tell a branch of some things and the trunk of others, and merge where the oracle knows what that gives."""
        trunk, since = self.trunk.oracle, self.trunk.oracle.last
        branch = Line(self.store.branch("plan"), trunk.fork())
        self.lines.append(branch)
        self.tell(branch, steps)
        self.tell(self.trunk, steps, names=self.chance.choice(["", _ELSE]))
        self.clock.move()
        try:
            trunk.fork().merge(branch.oracle, since)
        except (Refused, Undecided):
            return
        trunk.merge(branch.oracle, since)
        if not self.store.merge("plan").merged:
            self.refused.append((trunk.last, trunk.last, "merge", "done", "conflicts"))


def differences(seed: int, steps: int, counts: Counter[str]) -> Iterator[Difference]:
    """Yield where the store and the oracle differ on the world of a seed: tx, valid time, thing, and the standing that each says."""
    shape, part = SHAPES[seed // len(BEGINNINGS) % len(SHAPES)], steps // 3
    counts["worlds"] += 1
    counts[f"with {shape}"] += 1
    clock = Hours()
    clock.now = BEGINNINGS[seed % len(BEGINNINGS)]
    with graphstore.open(":memory:", clock=clock) as store:
        world = World(store, clock, seed)
        for _ in range(3):
            if shape == "merge" and len(world.lines) == 1:
                world.tell(world.trunk, part)
                world.branch_and_merge(part)
            else:
                world.tell(world.trunk, part, most=3 if shape == "groups" else 1)
            if shape == "undo":
                world.undo()
        yield from world.refused
        for line in world.lines:
            yield from _differences(line, counts)


def _differences(line: Line, counts: Counter[str]) -> Iterator[Difference]:
    ids = [*THINGS, *(_ELSE + id for id in THINGS if _ELSE + id in line.oracle.nodes)]
    for tx in dict.fromkeys(change.tx for change in line.store.changes()):
        for valid in instants():
            expected, view = line.oracle.words(valid, tx), line.store.as_of(valid=valid, tx=tx)
            for id in ids:
                found = standing(view, id)
                counts["answers"] += 1
                counts[f"are {found}"] += 1
                if found != expected.get(id):
                    yield tx, valid, id, expected.get(id), found


def standing(view: graphstore.View, id: str) -> str | None:
    """Return how a thing stands, None where it is not known."""
    try:
        return view.inspect(id).node.standing
    except NotFoundError:
        return None


def main(arguments: list[str]) -> int:
    """Compare until there are enough answers. Returns 1 when any differ."""
    said = argparse.ArgumentParser(prog="python -m lab worlds", description=__doc__)
    said.add_argument("--answers", type=int, default=100_000)
    said.add_argument("--first", type=int, default=0, help="the first seed")
    said.add_argument("--steps", type=int, default=24, help="of a world")
    told = said.parse_args(arguments)
    counts: Counter[str] = Counter()
    seed, differing = told.first, 0
    while counts["answers"] < told.answers:
        found = list(differences(seed, told.steps, counts))
        differing += len(found)
        for tx, valid, id, expected, got in found[:_SHOWN]:
            print(
                f"FOUND by --first {seed}: {id} at valid {valid}, tx {tx}: {expected} by the rules, {got} by the store",
                flush=True,
            )
        seed += 1
    print(f"{differing} answers differ. " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return int(bool(differing))
