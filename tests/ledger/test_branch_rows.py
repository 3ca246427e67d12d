"""The rows of branches, after random histories: they are those that the chain gives, and what they say is shaky is explained at each coordinate."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStoreError
from graphstore.events.timeline import record_message
from graphstore.ledger.closings import closings
from tests.ledger.test_questions import DAYS, FORGETTING, VERBS, Leaning
from tests.support import standing_rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")


class Branching(Leaning):
    """A history of a trunk and of branches that began from it, or from one another."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(path, seed)
        self.trunk = self.store
        self.made = 0

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            names = [branch.name for branch in self.trunk.branches()]
            name = self.chance.choice([None, None, *names])
            if len(names) < 4 and self.chance.random() < 0.1:
                self.fork(name)
            self.store = self.trunk if name is None else self.trunk.on(name)
            if self.chance.random() < 0.3:
                self.try_some((*VERBS, "undo"))
            else:
                super().go_on(1)
            self.store = self.trunk
            if self.chance.random() < 0.06:
                self.try_some((*FORGETTING, "merge"))

    def fork(self, parent: str | None) -> None:
        """Begin a branch now, or from an earlier transaction."""
        self.made += 1
        line = self.trunk if parent is None else self.trunk.on(parent)
        at = self.chance.choice([None, self.chance.choice(line.changes()).tx])
        with suppress(GraphStoreError):
            line.branch(f"branch-{self.made}", tx=at)

    def merge(self) -> None:
        for branch in self.trunk.branches()[:1]:
            self.trunk.merge(branch.name, decide="branch", reason="it is so")


class Talking(Branching):
    """A history in which messages are recorded on all lines."""

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            super().go_on(1)
            self.store = self.chance.choice([self.trunk, *map(self.trunk.on, self.names())])
            self.try_some(("message",))
            self.store = self.trunk

    def names(self) -> list[str]:
        return [branch.name for branch in self.trunk.branches()]

    def message(self) -> None:
        texts = {name: self.chance.choice([None, "a", "b"]) for name in ("sender", "thread", "trace_id")}
        record_message(self.store, "TEXT", "red", occurred_at=self.chance.choice(DAYS), **texts)


@pytest.mark.parametrize("seed", seeds(2, 12, 60))
def test_the_rows_of_each_line_are_those_that_the_chain_gives(seed: int, tmp_path: Path) -> None:
    history = Talking(tmp_path / "memory.gs", seed)
    compared = 0
    with closing(history.trunk) as store:
        for _ in range(6):
            history.go_on(12)
            assert [] == store._place.check()[0]
            for name in (None, *history.names()):
                count, differing = standing_rows.compare(store, name)
                assert not differing, name
                compared += count if name else 0
        assert compared > 500


def test_what_the_trunk_forgets_is_among_what_a_branch_closed(tmp_path):
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {"n": 1}, id="of-trunk")
        branch = store.branch("side")
        branch.revise("of-trunk", {"n": 2})
        database = branch._core.rows.database
        [(before,)] = database.rows("SELECT max(number) FROM chain")
        store.erase("of-trunk", reason="private")
        [(after,)] = database.rows("SELECT max(number) FROM chain")

        closed = closings(database, before, after)

        expected = database.rows(
            "SELECT number FROM period WHERE tx_to = (SELECT max(tx) FROM operation WHERE verb = 'erase')"
        )
        assert closed.periods == [number for (number,) in expected] != []
        assert closed.forgets
