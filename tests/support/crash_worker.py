"""A process that writes until it is killed: it announces each piece of work, does it, and acknowledges it.

    python crash_worker.py STORE RUN AIM

Every line it prints is JSON. `begin` comes before a verb, `done` after it has returned; `open`, `query`, `rebuild` and `close` come before
those. The parent kills at a moment of its choice and holds what it finds against what was acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from typing import Any

import graphstore

BRANCH = "aside"
ACCOUNTS = [f"account-{number}" for number in range(5)]


def say(word: str, **facts: Any) -> None:
    os.write(1, json.dumps({"word": word, **facts}).encode() + b"\n")


class Writer:
    """Random verbs, each with something that must hold of all of it or of nothing of it."""

    def __init__(self, store: graphstore.GraphStore, run: int) -> None:
        self.store = store
        self.run = run
        self.random = random.Random(run)
        self.count = 0
        self.mine: list[str] = []

    def step(self) -> None:
        self.count += 1
        verb = self.random.choice(
            (
                self.add,
                self.add,
                self.transfer,
                self.transfer,
                self.head,
                self.load,
                self.take_back,
                self.aside,
                self.aside,
            )
        )
        work = verb(f"{verb.__name__}-{self.run}-{self.count}")
        facts = next(work)
        say("begin", **facts)
        next(work, None)
        say("done", **facts)

    def add(self, id: str) -> Any:
        yield {"verb": "add", "nodes": [id]}
        self.store.add_node("fact", {"n": self.count, "pad": "x" * self.random.randrange(2000)}, id=id)
        self.mine.append(id)

    def transfer(self, id: str) -> Any:
        """Move money: the accounts sum to nothing at every instant, and the event names those it moved."""
        giver, taker = self.random.sample(ACCOUNTS, 2)
        amount = self.random.randrange(1, 100)
        yield {"verb": "transfer", "events": [id], "moved": {giver: -amount, taker: amount}}
        with self.store.transaction(reason=id):
            for name, by in ((giver, -amount), (taker, amount)):
                balance = self.store.node(name).content["balance"]
                self.store.revise(
                    name, {"balance": balance + by}, valid_from=self.random.choice((None, "2025-06-01"))
                )
            self.store.record_event("transfer", f"{giver} to {taker}", id=id, metadata={"amount": amount})
            self.store.link(id, "uses", giver)
            self.store.link(id, "uses", taker)

    def head(self, id: str) -> Any:
        """One more in a chain: exactly one head stands."""
        yield {"verb": "head", "nodes": [id]}
        heads = [node.id for node in self.store.nodes(kind="head")]
        self.store.add_node("head", {"n": self.count}, id=id, supersedes=heads)

    def load(self, id: str) -> Any:
        """Many lines of the journal, one transaction."""
        names = [f"{id}-{number}" for number in range(40)]
        yield {"verb": "load", "nodes": names}
        self.store.bulk_load(
            nodes=[{"id": name, "kind": "loaded"} for name in names],
            versions=[{"node_id": name, "content": {"name": name}} for name in names],
        )

    def aside(self, id: str) -> Any:
        """Told on a branch: one more in a chain of its own."""
        yield {"verb": "aside", "aside": [id]}
        branch = self.store.on(BRANCH)
        heads = [node.id for node in branch.nodes(kind="head")]
        branch.add_node("head", {"n": self.count}, id=id, supersedes=heads)

    def take_back(self, id: str) -> Any:
        if not self.mine:
            yield {"verb": "nothing"}
            return
        target = self.mine.pop(0)
        yield {"verb": "take_back", "retracted": target}
        self.store.retract(target, reason=id)


def begin(store: graphstore.GraphStore) -> None:
    """The accounts, once."""
    if store.stats()["nodes"] == 0:
        with store.transaction():
            for name in ACCOUNTS:
                store.add_node("account", {"balance": 0}, id=name, valid_from="2025-01-01")
    if not store.branches():
        store.branch(BRANCH)


def count_in_tables(store: graphstore.GraphStore) -> None:
    say("query")
    count = store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
    if count != store.stats()["nodes"]:
        say("wrong", tables=count, index=store.stats()["nodes"])


def until_killed(path: str, run: int, aim: str) -> None:
    say("open")
    store = graphstore.open(path)
    begin(store)
    writer = Writer(store, run)
    say("ready")
    while True:
        for _ in range(3 if aim != "write" else 50):
            writer.step()
        if aim == "query":
            count_in_tables(store)
        elif aim == "rebuild":
            say("rebuild")
            store.rebuild()
        elif aim in ("close", "open"):
            say("close")
            store.close()
            say("open")
            store = writer.store = graphstore.open(path)


def until_enough_interrupts(path: str, run: int) -> None:
    """Control-C at random moments: the process lives on, and what it then reads must be what the disk holds."""
    chance = random.Random(run)
    store = graphstore.open(path)
    begin(store)
    writer = Writer(store, run)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    hits = 0
    while hits < 150:
        try:
            # once more after a second: Python drops an interrupt that falls into a callback of a weak reference
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 0.004), 1.0)
            while True:
                writer.step()
                if writer.count % 10 == 0:
                    count_in_tables(store)
        except KeyboardInterrupt:
            hits += 1
        except graphstore.GraphStoreError as error:
            # A store that says it cannot go on is opened again.
            signal.setitimer(signal.ITIMER_REAL, 0)
            say("reopened", why=str(error))
            store.close()
            store = writer.store = graphstore.open(path)
    signal.setitimer(signal.ITIMER_REAL, 0)
    writer.step()  # what an interrupt kept from the disk is shown once a later write has brought it there
    tx = store.stats()["last_tx"]
    held = {
        node.id: [row.model_dump(mode="json") for row in store.versions(node.id)]
        for node in store.as_of().nodes()
    }
    found = store.verify()
    assert found.ok, found.problems
    store.close()
    with graphstore.open(path) as again:
        seen = {
            node.id: [row.model_dump(mode="json") for row in again.versions(node.id)]
            for node in again.as_of().nodes()
        }
        found = again.verify()
        say(
            "finished",
            same=held == seen and tx == again.stats()["last_tx"],
            ok=found.ok,
            problems=[str(p) for p in found.problems],
        )


if __name__ == "__main__":
    say("started")
    sys.stdin.readline()
    if sys.argv[3] == "interrupt":
        until_enough_interrupts(sys.argv[1], int(sys.argv[2]))
    else:
        until_killed(sys.argv[1], int(sys.argv[2]), sys.argv[3])
