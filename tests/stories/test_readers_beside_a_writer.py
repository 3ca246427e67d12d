"""Threads that read at fixed coordinates while another writes all it can: each answer is the one that is given when nobody writes."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, View

pytestmark = [pytest.mark.rest, pytest.mark.in_process("many threads at one store")]

SECONDS = float(os.environ.get("GRAPHSTORE_STRESS_SECONDS", "10"))
SEED = int(os.environ.get("GRAPHSTORE_STRESS_SEED", "17"))
READERS = 3
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
BY_ID = (
    "node", "links_from", "backlinks_to", "history", "versions", "what_superseded", "inspect", "causes", "effects", "knows", "supersedes",
)  # fmt: skip
OF_ALL: dict[str, Callable[[View], Any]] = {
    "nodes": lambda view: [node for node in view.nodes() if not node.id.startswith("gone")],
    "shaky": lambda view: view.shaky(),
    "scan": lambda view: [row for row in view.scan(content=True) if not row.id.startswith("gone")],
    "to_arrow": lambda view: [row for row in view.to_arrow().to_pylist() if not row["id"].startswith("gone")],
    "query": lambda view: view.query("MATCH (n:Node)-[r:SUPPORTS]->(m) RETURN n.id, r.id, m.id ORDER BY n.id, r.id").rows(),
}  # fmt: skip


def test_every_answer_is_the_one_given_when_nobody_writes(tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "team.gs") as store:
        telling = Telling(store)
        for _ in range(200):
            telling.one()
        views = [store.as_of()]
        told: list[dict[tuple[int, str, str], str]] = [{} for _ in range(READERS)]
        wrong: list[BaseException] = []
        end = time.monotonic() + SECONDS

        def read(number: int) -> None:
            chance, seen = random.Random(SEED + number), told[number]
            try:
                while time.monotonic() < end:
                    at = chance.randrange(len(views))
                    key = (at, *asked(chance, telling.ids))
                    answer = answered(views[at], *key[1:])
                    assert answer == seen.setdefault(key, answer)
                    with suppress(GraphStoreError):
                        store.node(chance.choice(telling.ids))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
        for thread in threads:
            thread.start()
        while time.monotonic() < end and not wrong:
            telling.one()
            if telling.chance.random() < 0.05:
                views.append(
                    store.as_of(
                        valid=BEGIN + timedelta(days=telling.chance.random() * 500), tx=store.as_of().at.tx
                    )
                )
        for thread in threads:
            thread.join()

        assert not wrong, repr(wrong[0])
        for seen in told:
            for (at, name, id), answer in seen.items():
                assert answer == answered(views[at], name, id), (at, name, id)
        assert store.verify().ok


def asked(chance: random.Random, ids: list[str]) -> tuple[str, str]:
    """A read, and the id it is asked for."""
    if chance.random() < 0.02:
        return chance.choice(list(OF_ALL)), ""
    return chance.choice(BY_ID), chance.choice(ids)


def answered(view: View, name: str, id: str) -> str:
    """What a read says at a coordinate, an error too."""
    try:
        return repr(getattr(view, name)(id) if id else OF_ALL[name](view))
    except GraphStoreError as error:
        return f"{type(error).__name__}: {error}"


class Telling:
    """Random verbs on one store, some of which fail or are taken back."""

    def __init__(self, store: GraphStore) -> None:
        self.store, self.chance = store, random.Random(SEED)
        self.ids = [f"n{number:02}" for number in range(40)]
        self.count = 0
        for id in self.ids:
            store.add_node("fact", {"says": id}, id=id, valid_from=BEGIN)

    def one(self) -> None:
        """One transaction, or none."""
        chance = self.chance
        self.count += 1
        act = chance.choices(
            (self.verb, self.failed, self.taken_back, self.undone, self.erased, self.merged),
            (80, 8, 4, 4, 3, 1),
        )
        with suppress(GraphStoreError, ZeroDivisionError):
            act[0]()

    def verb(self) -> None:
        store, chance, (one, other) = self.store, self.chance, self.chance.sample(self.ids, 2)
        day = BEGIN + timedelta(days=chance.randrange(500))
        match chance.randrange(8):
            case 0:
                store.revise(one, {"says": f"{self.count}"}, valid_from=day)
            case 1:
                store.link(
                    one,
                    chance.choice(("derived_from", "supports", "relates_to", "uses")),
                    other,
                    valid_from=day,
                )
            case 2:
                store.supersede(one, by=other, valid_from=day)
            case 3:
                store.retract(one, valid_from=day, valid_to=day + timedelta(days=9), reason="wrong")
            case 4:
                store.end(one, at=day)
            case 5:
                links = store.links_from(one)
                if links:
                    store.unlink(chance.choice(links).id, reason="wrong")
            case 6:
                store.confirm(one, reason="seen")
            case _:
                with store.transaction():
                    for id in (one, other):
                        store.revise(
                            id,
                            {"says": f"{self.count} of {id}"},
                            valid_from=day,
                            valid_to=day + timedelta(days=30),
                        )

    def failed(self) -> None:
        with self.store.transaction():
            self.store.add_node("fact", {"says": "kept"}, id=f"kept{self.count}")
            with suppress(GraphStoreError):
                self.store.link(f"kept{self.count}", "supersedes", f"kept{self.count}")

    def taken_back(self) -> None:
        with self.store.transaction():
            for _ in range(5):
                with suppress(GraphStoreError):
                    self.verb()
            self.store.add_node("fact", {"says": "taken back"}, id="taken-back")
            raise ZeroDivisionError

    def undone(self) -> None:
        self.store.undo(self.store.changes()[-1], reason="wrong")

    def erased(self) -> None:
        id = f"gone{self.count}"
        self.store.add_node("fact", {"says": "secret"}, id=id)
        self.store.erase(id, reason="asked")

    def merged(self) -> None:
        branch = self.store.branch(f"b{self.count}")
        branch.revise(self.chance.choice(self.ids), {"says": f"on a branch {self.count}"})
        self.store.merge(branch.name)
