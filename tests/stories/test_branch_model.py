"""Random histories that fork: every verb and every read of `test_model`, on the trunk or on a branch, each beside an oracle of its own.

The oracle of a branch is a copy of the trunk's as it was; nothing that is told to one reaches the other. What they share is the line of instants.
"""

from __future__ import annotations

import contextlib
import shutil
from datetime import datetime
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from graphstore import GraphStoreError
from tests.change.oracle import START, Oracle
from tests.change.oracle import SYMMETRIC as SYMMETRIC_KINDS
from tests.stories.test_model import DAYS, FEWER, NODES, THINGS, Histories, asked, everything, number

pytestmark = pytest.mark.rest

SOME = settings(FEWER, max_examples=FEWER.max_examples * 2, stateful_step_count=40)


class Line:
    """What the machine knows of the trunk, or of a branch."""

    def __init__(self, name: str | None, oracle: Oracle, link_ids: list[str]) -> None:
        self.name = name
        self.oracle = oracle
        self.link_ids = link_ids
        self.remembered: list[tuple[datetime, datetime, Any]] = []
        self.since = oracle.last if name else START


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
        self.since = line.since
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
        trunk.handed = max(trunk.handed, trunk.last)  # a branch begins with what is known, not at the clock
        trunk.last = trunk.next_tx()
        self.lines.append(Line(name, trunk.fork(), list(self.lines[0].link_ids)))
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


# ---------------------------------------------------------------------- merging

Value = tuple[Any, ...] | None


def value(view: Any, id: str) -> Value:
    """What a view says of a node, whatever its number and its instants."""
    found = asked(view.node, id)
    if isinstance(found, type):
        return None
    return tuple(sorted(found.content.items())), found.tags, found.trigger


def sentences(view: Any) -> dict[tuple[Any, ...], Value]:
    """What a view says of each link, by its sentence."""
    found = {}
    for id in THINGS:
        links = asked(view.links_from, id)
        for link in () if isinstance(links, type) else links:
            ends = (
                sorted((link.source, link.target))
                if link.kind in SYMMETRIC_KINDS
                else (link.source, link.target)
            )
            found[(link.kind, *ends)] = (link.reason, link.strength, link.confidence, link.created_by)
    return found


def followed(was: Value, ours: Value, theirs: Value, side: str) -> tuple[Value, bool]:
    """Whose word holds at one instant, and whether it is disputed: the whole rule of a merge."""
    if theirs in (was, ours):
        return ours, False
    if ours == was:
        return theirs, False
    return (ours if side == "trunk" else theirs), True


def in_conflict(conflicts: Any, what: str, id: str, at: datetime) -> bool:
    """Whether a conflict on a thing or link was found at an instant."""
    return any(
        (found.what, found.id) == (what, id)
        and found.valid_from <= at
        and (found.valid_to is None or at < found.valid_to)
        for found in conflicts
    )


def sentence(link: Any) -> tuple[Any, ...]:
    """The sentence of a link of an oracle, as `sentences` names it."""
    ends = [link["source"], link["target"]]
    return (link["kind"], *(sorted(ends) if link["kind"] in SYMMETRIC_KINDS else ends))


class Merging(Forking):
    """Each branch is merged twice at the end of its history. Reads are held against the oracles before: then they are the oracle."""

    def teardown(self) -> None:
        if self.block is not None:
            self.block_ends(fails=True)
        try:
            if len(self.lines) == 1:
                self.fork()
            for line in reversed(self.lines):
                self.go_to(line)
                self.look(0, -1, 4)
            for turn in range(2):
                for number, line in enumerate(self.lines[1:]):
                    self.merge(line, ("trunk", "branch")[(turn + number) % 2])
                    self.go_on(line, turn)
            self.hold_after_reopening()
        finally:
            for reader in (self.follower, self.reader):
                if reader is not None:
                    reader.close()
            self.trunk.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def instants_to_ask(self, line: Line) -> list[datetime]:
        found = {at for each in (self.lines[0], line) for at in each.oracle.instants()[0]}
        return sorted(found | set(DAYS) | {self.at})

    def merge(self, line: Line, side: str) -> None:
        branch, base = self.trunk.on(line.name), self.trunk.on(line.name).info
        since = base.merged_at or base.forked_at
        ask = self.instants_to_ask(line)
        before = {at: self.trunk.as_of(valid=at) for at in ask}
        known = {at: everything(view) for at, view in before.items()}
        ours = {at: [{id: value(view, id) for id in NODES}, sentences(view)] for at, view in before.items()}
        theirs, was = (
            {
                at: [{id: value(view, id) for id in NODES}, sentences(view)]
                for at in ask
                for view in [branch.as_of(valid=at, **more)]
            }
            for more in ({}, {"tx": since})
        )
        done = self.trunk.merge(
            line.name, decide=lambda found: side if side in found.choices else found.choices[0]
        )

        assert done.merged
        for at, view in before.items():
            assert known[at] == everything(view), f"what was believed before the merge changed at {at}"
        collided = {
            id
            for found in done.conflicts
            if found.what in ("slot", "cycle", "identity")
            for id in (found.id, found.other)
        }
        disputed = {found.id for found in done.conflicts if found.what == "node"}
        expected_disputes = set()
        for at in ask:
            now = self.trunk.as_of(valid=at)
            for id in set(NODES) - collided:
                states = was[at][0][id], ours[at][0][id], theirs[at][0][id]
                expected, dispute = followed(*states, side)
                if not dispute and None in states[1:] and in_conflict(done.conflicts, "node", id, at):
                    expected = states[1 if side == "trunk" else 2]  # one side took back what the other states
                expected_disputes |= {id} if dispute else set()
                assert expected == value(now, id), (id, at, side, done.conflicts)
            here = sentences(now)
            for said in set(was[at][1]) | set(ours[at][1]) | set(theirs[at][1]) | set(here):
                if set(said) & (collided | disputed) or done.left_out:
                    continue
                states = was[at][1].get(said), ours[at][1].get(said), theirs[at][1].get(said)
                expected, dispute = followed(*states, side)
                names = {
                    link["id"]
                    for each in (self.oracle, line.oracle)
                    for link in each.links
                    if sentence(link) == said
                }
                if (
                    not dispute
                    and None in states[1:]
                    and any(in_conflict(done.conflicts, "link", name, at) for name in names)
                ):
                    expected = states[1 if side == "trunk" else 2]
                assert expected == here.get(said), (said, at, side, done.conflicts)
        assert expected_disputes <= disputed
        assert self.trunk.merge(line.name).tx is None
        assert () == self.trunk.verify().problems

    def go_on(self, line: Line, turn: int) -> None:
        """A little more is told on the branch, and on the trunk."""
        self.go_to(line)
        for place, id in enumerate(NODES):
            span = {"valid_from": DAYS[(place + 2 * turn) % 5], "valid_to": DAYS[5 + place % 3]}
            self.revise(id, "green", span) if place % 2 else self.retract(id, span, place % 3 == 0)
        for place, id in enumerate(NODES[1:4]):
            with contextlib.suppress(GraphStoreError):
                self.trunk.revise(id, {"colour": "blue"}, valid_from=DAYS[place + turn])
        for id in self.link_ids[turn : turn + 1]:
            with contextlib.suppress(GraphStoreError):
                self.trunk.unlink(id)

    def hold_after_reopening(self) -> None:
        views = [(line.name, at) for line in self.lines for at in DAYS[::3]]

        def answers() -> list[Any]:
            stores = {line.name: self.trunk.on(line.name) if line.name else self.trunk for line in self.lines}
            return [everything(stores[name].as_of(valid=at, tx=tx)) for name, at in views]

        tx = self.trunk.stats()["last_tx"]
        before = answers()
        self.trunk.close()
        self.trunk = self.store = super().open()
        assert before == answers()


def test_a_merge_follows_the_rule_at_every_instant_and_changes_no_earlier_answer() -> None:
    run_state_machine_as_test(Merging, settings=SOME)
