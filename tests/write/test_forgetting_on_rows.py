"""What is forgotten, and what is removed with it, is the same whether the index is loaded or the rows of the ledger decide, on the trunk and on branches."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStoreError, NotFoundError
from graphstore.values import random_bits
from tests.conftest import Clock
from tests.ledger.test_verbs_on_rows import drawn, forgetting, step
from tests.support.ledger_rows import copy_ledger, rows
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("compares the rows of a file with the index")

BODIES = "SELECT number, data, checksum FROM body ORDER BY number"


class History:
    """A random history of a trunk and branches."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.clock, self.chance = path, Clock(), random.Random(seed)
        self.ids, self.links = ["n-1", "n-2"], ["lnk_one"]

    def write(self, steps: int) -> None:
        """Write it into a new store."""
        chance = self.chance
        with graphstore.open(self.path, clock=self.clock, durability="interval") as store:
            for number in range(steps):
                self.clock.move(seconds=chance.choice((1, 3600)))
                names = [branch.name for branch in store.branches()]
                where = store if not names or chance.random() < 0.5 else store.on(chance.choice(names))
                with suppress(GraphStoreError):
                    match chance.choice(
                        ["verb"] * 12 + ["block"] * 3 + ["branch"] * 2 + ["merge", "delete", "forget"]
                    ):
                        case "verb":
                            self.note(step(chance, self.ids, self.links)(where))
                        case "block":
                            with where.transaction(reason=chance.choice((None, "together"))):
                                for _ in range(chance.randint(2, 5)):
                                    with suppress(GraphStoreError):
                                        self.note(step(chance, self.ids, self.links)(where))
                        case "branch":
                            where.branch(f"branch-{number}")
                        case "merge":
                            store.merge(chance.choice([*names, "none"]), decide=lambda conflict: "theirs")
                        case "delete":
                            store.delete_branch(chance.choice([*names, "none"]))
                        case "forget":
                            forgetting(chance, self.ids)(store)

    def note(self, answer: Any) -> None:
        """Note the ids of what a verb answered."""
        for each in answer if isinstance(answer, list) else [answer]:
            named = each.event if isinstance(each, graphstore.Recorded) else each
            if isinstance(named, graphstore.Link):
                self.links.append(named.id)
            elif isinstance(named, (graphstore.Node, graphstore.Event)):
                self.ids.append(named.id)


def forgotten(path: Path, seed: int, ids: list[str], clock: Clock) -> list[str]:
    """Forget some things, and return what was answered."""
    chance, answers = random.Random(seed), list[str]()
    random_bits._drawn[:] = drawn(f"{seed}")  # each opening may forget something
    with graphstore.open(path, clock=clock) as store:
        for number in range(4):
            random_bits._drawn[:] = drawn(f"{seed} {number}")
            try:
                found = forgetting(chance, ids)(store)
                answers.append(repr(found) if isinstance(found, list) else "done")
            except NotFoundError as error:  # what is nearest may be in any order
                answers.append(repr(error).partition(" Nearest")[0])
            except GraphStoreError as error:
                answers.append(repr(error))
        random_bits._drawn.clear()
        assert not store._core.journal.hides_contents()
        answers += store.notices
    assert graphstore.verify(path).problems == ()
    return answers


def shown(path: Path, ids: list[str]) -> list[Any]:
    """What a reader of a store is shown of some ids, and its dump."""
    found: list[Any] = []
    with graphstore.open(path, read_only=True) as store:
        for ask in (store.inspect, store.history, store.operations, store.links_from, store.causes):
            for id in ids:
                try:
                    found.append(ask(id))
                except GraphStoreError as error:
                    found.append(repr(error))
        found += [store.changes(), [*store.events()], [*store.scan(content=True)], store.snapshots()]
        found.append(store.query("MATCH (n) RETURN n.id AS id, n.content AS content ORDER BY id").rows())
        store.export(path.parent / f"{path.name}.dump")
    return [*found, (path.parent / f"{path.name}.dump").read_bytes()]


@pytest.mark.parametrize("seed", seeds(4, 16, 500))
def test_a_reader_is_not_shown_what_a_killed_process_has_left(seed, tmp_path):
    history = History(tmp_path / "memory.gs", seed)
    history.write(50)
    before = rows(history.path, BODIES)
    history.clock.move(days=1)
    forgotten(history.path, seed, history.ids, history.clock)
    copy_ledger(history.path, tmp_path / "killed")
    with closing(sqlite3.connect(tmp_path / "killed" / "ledger.db", isolation_level=None)) as connection:
        for number, data, checksum in before:
            put = "UPDATE body SET data = ?, checksum = ? WHERE number = ? AND data IS NULL"
            connection.execute(put, (data, checksum, number))
        connection.execute("INSERT OR REPLACE INTO property VALUES ('hiding', 1)")

    assert shown(history.path, history.ids) == shown(tmp_path / "killed", history.ids)
