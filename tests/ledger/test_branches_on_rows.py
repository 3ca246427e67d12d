"""Branches are made, merged, pulled to and deleted the same whether the index is loaded or not, and the rows tell the same of them."""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import Branch, GraphStoreError, MergeConflict
from graphstore.ledger.branch_rows import NUMBERED, TRUNK, LineNumbers, all_branches
from graphstore.ledger.statements import schema_statements
from graphstore.values import random_bits
from graphstore.write import changes_since
from tests.conftest import START
from tests.ledger.test_verbs_on_rows import Player, drawn, forgetting, plain, question, step
from tests.support.ledger_rows import connected
from tests.support.seeds import seeds

STEPS = 70
NAMES = ("left", "right", "third")


def decision(chance: random.Random, ids: list[str]) -> Any:
    """Return what decides the conflicts of a merge."""
    sides = ("trunk", "branch")

    def either(found: MergeConflict) -> str | None:
        return found.choices[len(found.id) % len(found.choices)]

    return chance.choice(
        (None, "trunk", "branch", "branch", either, {chance.choice(ids): chance.choice(sides)})
    )


def believed_twice(path: Path) -> list[Any]:
    """The things and links of any line of which two periods are believed at once."""
    with connected(path) as connection:
        return [
            (line.number, table, *row)
            for line in (TRUNK, *all_branches(connection))
            for table, of in (("period", "entity"), ("link_period", "link"))
            for row in line.reader(connection).execute(
                f"SELECT a.number, b.number FROM {table} a CROSS JOIN {table} b ON b.{of} = a.{of} AND b.number > a.number "
                "WHERE a.closed_by IS NULL AND b.closed_by IS NULL AND a.valid_from < b.valid_to AND b.valid_from < a.valid_to"
            )
        ]


class Brancher(Player):
    """Tells a store a random history on a trunk and branches. It is opened again at times."""

    def play(self) -> None:
        """Tell all of it."""
        for at in range(STEPS):
            chance = random.Random(f"{self.seed} {at}")
            if chance.random() < 0.2:
                self.open_again(chance)
            self.clock.move(seconds=chance.choice((0, 1, 3600)))
            random_bits._drawn[:] = drawn(f"{self.seed} {at}")
            names = [info.name for info in self.store.branches()]
            if not at:
                self.note(lambda: self.store.set_trust({"user": 2, "agent": 1}))
            lines: list[Any] = [self.store, *map(self.store.on, names)]
            line = chance.choice(lines)
            if at and chance.random() < 0.35:
                self.note_merge(partial(self.change(chance, names), line))
            else:
                self.note(partial(self.told(chance), line))
            self.look()
            self.answers += [repr([info.model_dump() for info in self.store.branches()])]
        lines = [self.store, *(self.store.on(info.name) for info in self.store.branches())]
        for one, line in enumerate(lines):
            for two, other in enumerate(lines):
                self.compare(line, other, random.Random(f"{self.seed} {one} {two}"))
        for line in lines:
            self.read(line)
        assert [] == believed_twice(self.path)
        assert self.store.verify().problems == ()
        self.store.close()
        random_bits._drawn.clear()

    def open_again(self, chance: random.Random) -> None:
        self.store.close()
        self.store = graphstore.open(self.path, clock=self.clock)

    def told(self, chance: random.Random) -> Any:
        if self.forgets and chance.random() < 0.08:
            forget = forgetting(chance, self.ids)
            return lambda line: forget(self.store)
        steps = [step(chance, self.ids, self.links) for _ in range(chance.choice((1, 1, 4)))]

        def run(line: Any) -> Any:
            with line.transaction():
                return [each for one in steps for each in self.tried(partial(one, line))]

        return run if len(steps) > 1 else steps[0]

    def tried(self, run: Any) -> list[Any]:
        try:
            found = run()
        except GraphStoreError as error:
            return [f"{type(error).__name__}: {error}"]
        return found if isinstance(found, list) else [found]

    def change(self, chance: random.Random, names: list[str]) -> Any:
        """Return something that is done to branches."""
        name = chance.choice([*names, *names, *NAMES])
        decide, reason = decision(chance, self.ids), chance.choice((None, "so"))
        if len(names) < 2 or chance.random() < 0.15:
            earlier = chance.random() < 0.3
            return lambda line: (
                line.branch(
                    chance.choice(NAMES),
                    tx=line.changes()[-1 - chance.randrange(3)].tx if earlier else None,
                    reason=reason,
                ).name
            )
        return chance.choice(
            (
                *[lambda line: self.store.merge(name, decide=decide, reason=reason)] * 5,
                *[lambda line: line.pull(decide=decide, reason=reason) if isinstance(line, Branch) else None]
                * 3,
                lambda line: self.store.delete_branch(name, reason=reason),
                lambda line: self.store.compare(name),
            )
        )

    def note_merge(self, run: Any) -> None:
        """Note what a change of branches answered."""
        try:
            self.answers.append(repr(plain(run())))
        except GraphStoreError as error:
            self.answers.append(f"{type(error).__name__}: {error}")
        except IndexError:  # there was no earlier transaction
            self.answers.append("none")

    def read(self, line: Any) -> None:
        """Note what a line answers."""
        for at in range(30):
            read = question(random.Random(f"{self.seed} {at}"), self.ids, self.links)
            try:
                self.answers.append(f"{at} {plain(read(line))!r}")
            except GraphStoreError as error:
                self.answers.append(f"{at} {type(error).__name__}: {error}")

    def compare(self, line: Any, other: Any, chance: random.Random) -> None:
        """Note how two lines differ now, and at other coordinates."""
        for one, two in ((line, other), (line.as_of(valid=START - timedelta(days=chance.randrange(30))), other.as_of()),
                         (line.as_of(), other.as_of(tx=chance.choice(other.changes()).tx))):  # fmt: skip
            self.answers += [repr(plain(one.compare(two))), repr(list(one.changes_to(two)))]


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 12, 500))
def test_the_rows_that_branches_leave_are_those_of_the_chain(
    seed: int, forgets: bool, tmp_path: Path
) -> None:
    Brancher(tmp_path / "memory.gs", seed, forgets=forgets).play()  # which verifies


def test_what_is_asked_of_a_branch_that_merges_is_found_by_key() -> None:
    nested = LineNumbers(
        2, LineNumbers(1, TRUNK, 50, dict.fromkeys(NUMBERED, 7)), 60, dict.fromkeys(NUMBERED, 9)
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        for text in schema_statements():
            connection.execute(text)
        for line in (TRUNK, nested):
            for text in changes_since.STATEMENTS:
                text = line.statement(text)
                numbered = [int(number) for number in re.findall(r"\?(\d)", text)]
                values = ["[]"] * (max(numbered) if numbered else text.count("?"))
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
                scans = [step for step in plan if step.startswith("SCAN") and "VIRTUAL" not in step]
                assert all(step.startswith("SCAN CONSTANT") for step in scans), plan
