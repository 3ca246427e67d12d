"""A verb on a branch decides the same and records the same whether the index of the branch is loaded or it reads what it needs from the rows."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import Branch, EngineError, GraphStoreError, InvalidError
from graphstore.read import working_set
from graphstore.topics import topics
from graphstore.values import random_bits
from graphstore.values.period import instant
from tests.conftest import START, Clock
from tests.ledger.test_verbs_on_rows import Player, Stop, decide, drawn
from tests.support.disk import no_room
from tests.support.ledger_rows import heads
from tests.support.seeds import seeds

STEPS = 40
MOST = 4  # branches


class BranchPlayer(Player):
    """Tells a trunk and branches, some of which began from others, a random history; on the trunk it forgets at times."""

    def __init__(self, path: Path, seed: int, reads: int = 0) -> None:
        super().__init__(path, seed, reads)
        self.trunk = self.store
        self.names: list[str] = []

    def play(self) -> None:
        """Tell all of it, and compare with the chain."""
        chance = random.Random(self.seed)
        for at in range(STEPS):
            seed = f"{self.seed} {at}"
            self.clock.move(seconds=chance.choice((0, 1, 3600)))
            random_bits._drawn[:] = drawn(seed)
            if at % 5 == 4 and len(self.names) < MOST:
                self.fork(chance)
            elif chance.random() < (0.4 if self.reads else 0.1):
                self.open(chance)
            self.take_line(chance.choice((None, *self.names, *self.names)))
            random_bits._drawn[:] = drawn(seed)
            if chance.random() < 0.6:
                self.tell(seed)
            else:
                self.block(seed, chance.randrange(1, 7))
            self.look()
        for name in (None, *self.names):
            self.take_line(name)
            for number in range(20):
                self.ask(f"{self.seed} {name} {number}")
        assert self.trunk.verify().problems == ()
        self.trunk.close()
        random_bits._drawn.clear()

    def open(self, chance: random.Random) -> None:
        """Close the store and open it again."""
        self.trunk.close()
        author = chance.choice((None, "agent:bot"))
        self.trunk = graphstore.open(self.path, clock=self.clock, author=author)

    def take_line(self, name: str | None) -> None:
        """Go on with the trunk, or with a branch."""
        self.store = self.trunk if name is None else self.trunk.on(name)
        self.forgets = name is None

    def fork(self, chance: random.Random) -> None:
        """Make a branch from the trunk or from a branch, now or as of an earlier transaction."""
        self.take_line(chance.choice((None, *self.names)))
        last = [change.tx for change in self.store.changes()[-12:]]
        name = f"line-{len(self.names)}"
        with contextlib.suppress(GraphStoreError):
            self.store.branch(name, tx=chance.choice((None, *last)))
            self.names.append(name)


@pytest.mark.parametrize("seed", seeds(6, 24, 1_000))
def test_the_rows_that_verbs_on_branches_leave_are_those_of_the_chain(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(working_set, "FEW_ROWS", seed % 3 * 4)  # as if things had many periods
    BranchPlayer(tmp_path / "memory.gs", seed, reads=seed % 2).play()  # which verifies


# ---------------------------------------------------------------------- what loads no index

VERBS: dict[str, Callable[[Branch], Any]] = {
    "add_node": lambda side: side.add_node("fact", {"n": 1}, id="new", key="slot", derived_from="sky"),
    "add_node to a slot": lambda side: side.add_node("fact", {"n": 1}, key="colour"),
    "revise": lambda side: side.revise("sky", {"n": 2}),
    "revise a version": lambda side: side.revise("sky", {"n": 2}, if_number=2),
    "amend": lambda side: side.amend("sky", {"m": 2}, valid_from="2026-01-20"),
    "end": lambda side: side.end("sea"),
    "retract": lambda side: side.retract("sea", reason="no"),
    "fold": lambda side: side.fold(["sky", "sea"], into={"n": 3}),
    "confirm": lambda side: side.confirm("sky", reason="yes", source="user:ana"),
    "undo": lambda side: side.undo(side.changes()[-1].tx, reason="a slip"),
    "undo what the trunk did": lambda side: side.undo(side.changes()[2].tx, reason="a slip"),
    "undo all": lambda side: side.undo(since=side.changes()[-1].tx, reason="a slip"),
    "undo nothing": lambda side: side.undo("2025-01-01", reason="a slip"),
    "undo by the second": lambda side: side.undo(
        side.changes()[-1].tx.replace(microsecond=0), reason="a slip"
    ),
    "supersede": lambda side: side.supersede("sky", by="sea"),
    "link": lambda side: side.link("sky", "related_to", "sea", id="lnk-new"),
    "unlink": lambda side: side.unlink("lnk-1"),
    "unlink a sentence": lambda side: side.unlink(source="sea", kind="derived_from", target="sky"),
    "resolve": lambda side: decide(side, "sky", "sea", "sky"),
    "define_kind": lambda side: side.define_kind("fits", symmetric=True, rests=["retracted"]),
    "promote_kind": lambda side: side.promote_kind("suits"),
    "define_point": lambda side: side.define_point("odd"),
    "record_event": lambda side: side.record_event("error", "it failed", related_to=["sky"]),
    "record_event again": lambda side: side.record_event("error", "it broke", fingerprint="f"),
    "bulk_load": lambda side: side.bulk_load(
        nodes=[{"id": "new"}],
        versions=[{"node_id": "new", "content": {"n": 1}}, {"node_id": "sky", "content": {"n": 2}}],
        events=[{"type": "error", "description": "it broke", "fingerprint": "f"}],
        links=[{"source": "new", "kind": "derived_from", "target": "sky"}],
    ),
    "set_trust": lambda side: side.set_trust({"user": 2}),
    "set_languages": lambda side: side.set_languages(["german"]),
    "snapshot": lambda side: side.snapshot("then"),
    "flush_accesses": lambda side: (side.touch("sky"), side.flush_accesses()),
    "in_transaction": lambda side: side.in_transaction(lambda here: here.revise("sky", {"n": 5}).number),
    "what fails": lambda side: side.revise("nothing", {}),
    "a block": lambda side: in_a_block(side),
    "a block that fails": lambda side: in_a_block(side, Stop()),
    "what is tried": lambda side: tried(side),
    "a group": lambda side: together(side),
    "memorize": lambda side: topics.memorize(side, [{"role": "user", "content": "text"}] * 2),
}


def in_a_block(side: Branch, error: Exception | None = None) -> list[Any]:
    """Write and read in one transaction, in which a verb fails."""
    found: list[Any] = []
    with contextlib.suppress(Stop), side.transaction(reason="together"):
        side.revise("sky", {"n": 7})
        found.append(side.node("sky").number)
        with contextlib.suppress(GraphStoreError):
            side.add_node("fact", {"n": 8}, id="mine", supersedes=["sky", "nothing"])
        side.add_node("fact", {"n": 9}, id="mine", supersedes="sky")
        found += [node.id for node in side.nodes()]
        found += [side.inspect("sky").node.standing, side.shaky(), len(side.operations("sky"))]
        side.retract("mine", reason="no")
        found += [node.id for node in side.nodes()]
        if error is not None:
            raise error
    return found


def tried(side: Branch) -> list[Any]:
    """Do what is taken back at the end."""
    at = side.changes()[-1].tx + timedelta(days=1)
    with side._tried(instant(at), None, None) as born:
        side.add_node("fact", {"n": 1}, id="tried")
        return [one.id for one in born()]


def together(side: Branch) -> list[Any]:
    """Write two transactions that become durable together."""
    with side.together():
        side.revise("sky", {"n": 7})
        side.add_node("fact", {"n": 8}, id="mine", derived_from="sky")
        return [side.node("sky").number, [node.id for node in side.nodes()]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a branch of a branch, of which each has written."""
    path = tmp_path_factory.mktemp("told") / "memory.gs"
    with graphstore.open(path, clock=Clock()) as store:
        store.define_kind("suits")
        store.add_node("fact", {"n": 1}, id="sky", key="colour", valid_from="2026-01-01")
        store.add_node("fact", {"n": 1}, id="sea", derived_from="sky", valid_from="2026-01-01")
        store.record_event("error", "it broke", fingerprint="f", id="event")
        side = store.branch("side").branch("deep")
        store.on("side").revise("sky", {"n": 0})
        side.revise("sky", {"n": 3}, minor=True)
        side.link("sky", "suits", "sea", id="lnk-1")
        side.record_event("error", "it broke", fingerprint="f")
        store.revise("sky", {"n": 4})
        store.erase("event", reason="it told too much")
    return path


@pytest.mark.parametrize("name", VERBS)
def test_the_rows_that_a_verb_on_a_branch_leaves_are_those_of_the_chain(name, told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    random_bits._drawn[:] = drawn(name)
    with graphstore.open(path, clock=Clock(START + timedelta(days=9))) as store:
        with contextlib.suppress(GraphStoreError):
            VERBS[name](store.on("deep"))
        assert store.verify().problems == ()
    random_bits._drawn.clear()


# ---------------------------------------------------------------------- what fails, and what others do


def test_nothing_is_left_of_a_write_on_a_branch_that_the_disk_refused(told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    with graphstore.open(path) as store:
        side = store.on("deep")
        store.confirm("sky", reason="the files are open")
        before = heads(path), side.changes(), side.nodes()
        with no_room(), pytest.raises(EngineError):
            side.revise("sky", {"n": 9})
        with no_room(), pytest.raises(EngineError), side.transaction():
            side.define_kind("fits")
            side.add_node("fact", {"n": 9}, supersedes="sky")
            assert [node.content["n"] for node in side.nodes()] == [1, 9]
        with no_room(), pytest.raises(EngineError):
            side.bulk_load(versions=[{"node_id": "sky", "content": {"n": 8}}])
        assert (heads(path), side.changes(), side.nodes()) == before
        assert "fits" not in side.vocabulary.kinds
        side.revise("sky", {"n": 9})
        assert store.verify().problems == ()


def test_a_branch_goes_on_with_what_another_process_wrote_on_it(told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    with graphstore.open(path) as one, graphstore.open(path) as two:
        for number in range(8):
            here, there = (one, two) if number % 2 else (two, one)
            node = here.on("deep").amend("sky", {"m": number})
            assert node == there.on("deep").node("sky")
            there.on("deep").define_kind(f"kind_{number}")
            here.on("deep").link("sky", f"kind_{number}", "sea")
            there.on("side").add_node("fact", {"n": number}, id=f"new-{number}")
            assert not here.on("deep").knows(f"new-{number}")
            here.revise("sky", {"n": number})
        for each in (one, two):
            deep = each.on("deep")
            assert {"n": 3, "m": 7} == deep.node("sky").content
            assert 9 == len(deep.links_from("sky"))
        assert one.verify().problems == ()


@pytest.mark.parametrize("is_purged", [False, True])
def test_a_verb_on_a_branch_that_another_process_deleted_is_refused(is_purged, told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    with graphstore.open(path) as one, graphstore.open(path) as two:
        deep = one.on("deep")
        assert deep.node("sky").number
        two.delete_branch("deep")
        if is_purged:
            two.evict(ids=["sea"], keep_audit=False)
        with pytest.raises(InvalidError, match="branch 'deep' was deleted"):
            deep.revise("sky", {"n": 9})
        one.on("side").revise("sky", {"n": 9})
        assert one.verify().problems == ()


@pytest.mark.parametrize("branch", [None, "deep"])
def test_kinds_of_a_group_that_is_not_kept_are_forgotten(branch, told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    with graphstore.open(path) as store:
        line = store if branch is None else store.on(branch)
        store.confirm("sky", reason="the files are open")
        with no_room(), pytest.raises(EngineError), line.together():
            line.define_kind("fits")
            line.link("sky", "fits", "sea")
        assert {"suits"} <= line.vocabulary.kinds.keys()
        assert "fits" not in line.vocabulary.kinds
        line.define_kind("fits", symmetric=True)
        line.link("sky", "fits", "sea")
        assert line.vocabulary.kinds["fits"].symmetric
        assert store.verify().problems == ()


@pytest.mark.parametrize("branch", [None, "deep"])
def test_a_verb_made_of_verbs_is_taken_back(branch, told, tmp_path):
    path = tmp_path / "memory.gs"
    shutil.copytree(told, path)
    with graphstore.open(path) as store:
        line = store if branch is None else store.on(branch)
        before = line.node("sky").content, line.node("sea").content
        with line.transaction():
            line.add_node("fact", {"n": 1}, id="first")
            with contextlib.suppress(Stop), line.verb():
                line.revise("sky", {"n": 9})
                line.add_node("fact", {"n": 1}, id="second", supersedes="sea")
                line.revise("sky", {"n": 10})
                raise Stop
            assert (line.node("sky").content, line.node("sea").content) == before
        assert line.knows("first")
        assert not line.knows("second")
        assert store.verify().problems == ()
