"""Random histories that fork: every verb and every read of `test_model`, on the trunk or on a branch, each beside an oracle of its own.

The oracle of a branch is a copy of the trunk's as it was; nothing that is told to one reaches the other. What they share is the line of instants.
"""

from __future__ import annotations

import contextlib
import copy
from datetime import datetime
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from oracle import START, Oracle
from test_model import FEWER, Histories, everything, number

from graphstore.cutting import cut_to, twin
from graphstore.folder import differing
from graphstore.index import Index
from graphstore.journal import Journal
from graphstore.period import instant

SOME = settings(FEWER, max_examples=FEWER.max_examples * 2, stateful_step_count=40)


def forked(oracle: Oracle) -> Oracle:
    """The same beliefs once more."""
    fresh = Oracle(oracle.clock)
    fresh._load(copy.deepcopy(oracle._save()))
    fresh.numbers = dict(oracle.numbers)
    fresh.last, fresh.handed, fresh.made = oracle.last, oracle.handed, oracle.made
    return fresh


class Line:
    """What the machine knows of the trunk, or of a branch."""

    def __init__(self, name: str | None, oracle: Oracle, link_ids: list[str]) -> None:
        self.name = name
        self.oracle = oracle
        self.link_ids = link_ids
        self.remembered: list[tuple[datetime, datetime, Any]] = []


class Forking(Histories):
    """Verbs and reads go to one line at a time; which one changes."""

    def __init__(self) -> None:
        self.reader: Any = None
        self.here = Line(None, Oracle(self.clock), [])
        super().__init__()
        self.trunk = self.store
        self.here = Line(None, self.oracle, self.link_ids)
        self.lines = [self.here]
        self.made = 0

    def share_instants(self) -> None:
        for line in self.lines:
            line.oracle.last = max(each.oracle.last for each in self.lines)
            line.oracle.handed = max(each.oracle.handed for each in self.lines)

    def go_to(self, line: Line) -> None:
        self.here.remembered = self.remembered
        self.share_instants()
        self.here = line
        self.oracle, self.link_ids, self.remembered = line.oracle, line.link_ids, line.remembered
        self.store = self.trunk if line.name is None else self.trunk.on(line.name)
        for reader in (self.follower, self.reader):
            if reader is not None:
                reader.close()
        self.follower = self.reader = None

    @precondition(lambda self: self.block is None and len(self.lines) < 4)
    @rule()
    def fork(self) -> None:
        self.go_to(self.lines[0])
        trunk = self.oracle
        self.made += 1
        name = f"branch {self.made}"
        self.trunk.branch(name)
        trunk.handed = max(trunk.handed, trunk.now)
        trunk.last = trunk.next_tx()
        self.lines.append(Line(name, forked(trunk), list(self.lines[0].link_ids)))
        self.go_to(self.lines[-1])

    @precondition(lambda self: self.block is None and len(self.lines) > 1)
    @rule(which=number)
    def elsewhere(self, which: int) -> None:
        self.go_to(self.lines[which % len(self.lines)])

    @precondition(lambda self: self.block is None and len(self.lines) > 2)
    @rule(which=number)
    def delete(self, which: int) -> None:
        line = self.lines[1 + which % (len(self.lines) - 1)]
        self.go_to(self.lines[0])
        self.trunk.delete_branch(line.name)
        self.oracle.last = self.oracle.next_tx()
        self.lines.remove(line)
        self.share_instants()

    @precondition(lambda self: self.block is None)
    @rule(v=number, t=number, jitter=st.integers(0, 8))
    def fork_in_the_past(self, v: int, t: int, jitter: int) -> None:
        """A branch that begins in the past believes what the trunk believed then, at every coordinate up to there and from there on."""
        self.go_to(self.lines[0])
        valid, tx = self.coordinate(v, t, jitter)
        expected = everything(self.store.as_of(valid=valid, tx=tx))
        self.oracle.handed = max(self.oracle.handed, tx)
        branch = self.trunk.branch("past", tx=tx)
        self.oracle.last = self.oracle.next_tx()
        assert expected == everything(branch.as_of(valid=valid, tx=tx))
        assert expected == everything(branch.as_of(valid=valid))
        self.oracle.handed = max(self.oracle.handed, self.oracle.now)
        self.trunk.delete_branch("past")
        self.oracle.last = self.oracle.next_tx()

    @precondition(lambda self: self.block is None)
    @rule(t=number)
    def an_index_cut_back_is_the_one_read_up_to_there(self, t: int) -> None:
        _, txs = self.lines[0].oracle.instants()
        upto = instant(txs[t % len(txs)]) if txs else 0
        with contextlib.closing(Journal(self.trunk._place.journal, writer=False)) as journal:
            fresh, _ = self.trunk._place.replay(journal)
            read = Index()
            for line in (line for place in journal.whole() for line in journal.again(place)):
                if "branch" not in line.head and instant(line.head["tx"]) <= upto:
                    read.apply(*line)
        cut = twin(fresh)
        cut_to(cut, upto)
        cut.strands, cut.last_tx = read.strands, read.last_tx
        assert [] == differing(cut, read)
        assert said(read.taken) == said(cut.taken)

    @precondition(lambda self: self.block is None and len(self.lines) > 1)
    @rule()
    def the_index_of_a_branch_is_the_one_laid_anew(self) -> None:
        assert () == self.trunk.verify().problems

    @precondition(lambda self: self.block is None)
    @rule(lose_index=st.booleans())
    def closed_and_opened(self, lose_index: bool) -> None:
        self.go_to(self.lines[0])
        super().closed_and_opened(lose_index)
        self.trunk = self.store
        for line in self.lines:
            line.remembered[:] = [known for known in line.remembered if known[1] <= self.oracle.last]
            line.oracle.handed = START

    def open(self, **how: Any) -> Any:
        store = super().open(**how)
        if how.get("read_only") and self.here.name is not None:
            self.reader = store
            return store.on(self.here.name)
        return store

    def teardown(self) -> None:
        if self.block is not None:
            self.block_ends(fails=True)
        try:
            for line in self.lines[1:]:
                self.go_to(line)
                for number in range(5):
                    self.look(7 * number, -1 - 3 * number, 4)
                for which in range(len(self.remembered)):
                    self.ask_again(which)
        finally:
            self.go_to(self.lines[0])
            super().teardown()


def said(taken: dict[int, Any]) -> dict[int, Any]:
    return {link: sorted(pieces) for link, pieces in taken.items() if pieces}


def test_the_store_and_its_branches_answer_what_their_oracles_answer() -> None:
    run_state_machine_as_test(Forking, settings=SOME)
