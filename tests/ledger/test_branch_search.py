"""Full-text search of a branch by the rows of a ledger: who has followed all that was written finds what a store just opened finds, at every coordinate."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from graphstore.ledger import word_rows
from graphstore.memory.embedders import lend
from tests.ledger.test_branch_rows import Branching
from tests.ledger.test_questions import FORGETTING
from tests.ledger.test_row_search import Talking, by_rows, compare, small_segments
from tests.support.embedding import signs
from tests.support.ledger_rows import rows
from tests.support.seeds import seeds

__all__ = ["small_segments"]

pytestmark = pytest.mark.in_process("reads the file of the store")


class Lines(Branching, Talking):
    """A history of a trunk and of branches whose texts differ, on which messages are sent and things are looked up."""

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            Branching.go_on(self, 1)
            self.store = self.chance.choice([self.trunk, *map(self.trunk.on, self.names())])
            self.try_some(("message", "message", "bulk", "look_up", "annotate"))
            if self.chance.random() < 0.03:
                self.try_some(("speak",))
            self.store = self.trunk

    def names(self) -> list[str]:
        return [branch.name for branch in self.trunk.branches()]

    def speak(self) -> None:
        self.store.set_languages(self.chance.choice([["english"], ["english", "german"]]))


@pytest.mark.parametrize("seed", seeds(1, 5, 200))
def test_a_search_of_a_branch_that_has_followed_finds_what_one_made_anew_finds(
    seed, tmp_path: Path, small_segments
):
    history, found = Lines(tmp_path / "memory.gs", seed), 0
    with closing(history.trunk) as store, closing(by_rows(history.path)) as kept:
        if seed % 2:
            lend(store, signs)
            lend(kept, signs)
        for round in range(5):
            history.go_on(10)
            if round > 2:
                history.try_some((*FORGETTING, "forget_without_a_trace"))
            with closing(by_rows(history.path)) as opened:
                if seed % 2:
                    lend(opened, signs)
                for name in history.names():
                    history.store = store.on(name)
                    for other in (kept.on(name), opened.on(name)):
                        found += compare(history.store, other, history)
                    history.store = store
        assert found > 100
        assert store.verify().problems == ()
        before = {table: rows(history.path, f"SELECT * FROM {table}") for table in word_rows.WORD_TABLES}
        store.rebuild()
        assert before == {table: rows(history.path, f"SELECT * FROM {table}") for table in before}
