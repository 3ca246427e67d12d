"""A process that writes: threads that ask one thing after another, and note what they ask and what became of it.

Each request has an id, which the store keeps as the reason of its transaction or as the id of what it adds. What was refused is asked again
under the same id, as its message says; what is unknown is looked up by its id first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import graphstore
from graphstore import GraphStoreError
from lab.notes import SECRET, Notes, outcome, whence

BRANCH = "aside"
TRIES = 6
Ask = tuple[dict[str, Any], Callable[[Any], Any]]


class Holder:
    """The store that the threads of a process share; opened again when it says so."""

    def __init__(self, where: str, notes: Notes) -> None:
        self.where, self._notes = where, notes
        self._store: Any = None
        self._users = 0
        self._change = threading.Condition()
        self.deadline = 0.0

    @contextlib.contextmanager
    def using(self) -> Iterator[Any]:
        """The store, which stays open meanwhile."""
        with self._change:
            if self._store is None:
                self._store = self._opened()
            store = self._store
            self._users += 1
        try:
            yield store
        finally:
            with self._change:
                self._users -= 1
                self._change.notify_all()

    def renew(self, store: Any) -> None:
        """Close this store once nobody uses it; the next user opens it again."""
        with self._change:
            while self._users and self._store is store:
                self._change.wait(0.5)
            if self._store is store:
                self._close()

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            try:
                store.close()
            except GraphStoreError as error:
                self._notes.add("close", why=str(error))

    def end(self) -> None:
        """Close the store."""
        with self._change:
            self._close()

    def _opened(self) -> Any:
        while True:
            try:
                return self._open()
            except GraphStoreError as error:
                self._notes.add("open", why=f"{type(error).__name__}: {error}")
                if isinstance(error, graphstore.DamageError):
                    raise
                if time.monotonic() > self.deadline:
                    raise
                time.sleep(0.05)

    def _open(self) -> Any:
        if not self.where.startswith("http"):
            return graphstore.open(self.where, author="lab", token="unused")
        return graphstore.open(self.where, token=os.environ["GRAPHSTORE_TOKEN"], author="lab", timeout=60)


class Client:
    """One thread: what it asks is chosen by its seed."""

    def __init__(self, holder: Holder, name: str, notes: Notes, seed: str) -> None:
        self.holder, self.name, self.notes = holder, name, notes
        self.chance = random.Random(seed)
        self.count = 0
        self.facts: list[str] = []  # acknowledged here, and not taken back
        self.secrets: list[str] = []
        self.tally = f"tally-{name}"

    def step(self) -> None:
        """Ask one thing until it is acknowledged, or its tries are over."""
        self.count += 1
        request = f"{self.name}-{self.count}"
        facts, work = self._chosen(request)
        for _ in range(TRIES):
            self.notes.add("intent", request=request, **facts)
            word, why = self._asked(work)
            if word == "unknown":
                self.notes.add(word, request=request, why=why)
                word = "acknowledged" if self._is_there(request, facts) else "absent"
            self.notes.add(word, request=request, why=why)
            if word == "acknowledged":
                self._learn(facts)
                return
            if time.monotonic() > self.holder.deadline:
                return
            time.sleep(0.02)

    def _asked(self, work: Callable[[Any], Any]) -> tuple[str, str]:
        store: Any = None
        try:
            with self.holder.using() as store:
                work(store)
            return "acknowledged", ""
        except GraphStoreError as error:
            word = outcome(error)
            told = f"{type(error).__name__}: {error}"
            if word == "unknown" or "open it again" in told or "is closed" in told:
                self.holder.renew(store)
            return ("acknowledged" if word == "kept" else word), told
        except Exception as error:
            self.notes.add("wrong", why=f"not an error of ours: {error!r}", trace=whence(error))
            self.holder.renew(store)
            return "unknown", repr(error)

    def _is_there(self, request: str, facts: dict[str, Any]) -> bool:
        """Ask by the request's id what became of it."""
        while True:
            store: Any = None
            try:
                with self.holder.using() as store:
                    return there(store, request, facts)
            except GraphStoreError as error:
                if time.monotonic() > self.holder.deadline:
                    raise TimeoutError(f"no answer about {request}: {error}") from error
                self.holder.renew(store)
                time.sleep(0.05)

    def _learn(self, facts: dict[str, Any]) -> None:
        if facts["verb"] == "add":
            self.facts.append(facts["nodes"][0])
        elif facts["verb"] == "secret":
            self.secrets.append(facts["nodes"][0])

    # ------------------------------------------------------------------ what is asked

    def _chosen(self, request: str) -> Ask:
        choices = (
            [self.add] * 5
            + [self.pair] * 3
            + [self.tell] * 4
            + [self.event] * 2
            + [self.secret] * 2
            + [self.load, self.aside]
        )
        if self.facts:
            choices += [self.take_back] * 2 + [self.replace] * 2
        if self.secrets:
            choices += [self.erase, self.erase, self.purge]
        return self.chance.choice(choices)(request)

    def _pad(self) -> str:
        return "x" * self.chance.choice((0, 10, 300, 3_000))

    def add(self, request: str) -> Ask:
        pad = self._pad()
        return {"verb": "add", "nodes": [request]}, lambda store: store.add_node(
            "fact", {"by": request, "pad": pad}, id=request, reason=request
        )

    def pair(self, request: str) -> Ask:
        one, two = f"{request}-a", f"{request}-b"

        def work(store: Any) -> None:
            with store.transaction(reason=request):
                store.add_node("fact", {"by": request}, id=one)
                store.add_node("fact", {"by": request}, id=two)
                store.link(two, "uses", one)

        return {"verb": "pair", "nodes": [one, two], "link": [two, one]}, work

    def tell(self, request: str) -> Ask:
        """One more version of the thread's own node: doing it twice shows."""

        def work(store: Any) -> None:
            if self.count and not _known(store, self.tally):
                store.add_node("tally", {"by": "first"}, id=self.tally)
            store.revise(self.tally, {"by": request}, reason=request)

        return {"verb": "tell", "tally": self.tally}, work

    def event(self, request: str) -> Ask:
        return {"verb": "event", "events": [request]}, lambda store: store.record_event(
            "tick", f"tick {request}", id=request, fingerprint=request
        )

    def load(self, request: str) -> Ask:
        names = [f"{request}-{number}" for number in range(25)]
        return {"verb": "load", "nodes": names}, lambda store: store.bulk_load(
            nodes=[{"id": name, "kind": "loaded"} for name in names],
            versions=[{"node_id": name, "content": {"by": request}} for name in names],
        )

    def aside(self, request: str) -> Ask:
        return {"verb": "aside", "aside": [request]}, lambda store: store.on(BRANCH).add_node(
            "fact", {"by": request}, id=request, reason=request
        )

    def take_back(self, request: str) -> Ask:
        target = self.facts.pop(0)
        return {"verb": "take_back", "target": target}, lambda store: store.retract(target, reason=request)

    def replace(self, request: str) -> Ask:
        target = self.facts.pop(0)
        return {"verb": "replace", "nodes": [request], "replaced": target}, lambda store: store.add_node(
            "fact", {"by": request}, id=request, supersedes=[target], reason=request
        )

    def secret(self, request: str) -> Ask:
        token = f"{self.chance.getrandbits(128):032x}"
        return {"verb": "secret", "nodes": [request], "token": token}, lambda store: store.add_node(
            SECRET, {"token": token, "pad": self._pad()}, id=request, reason=request
        )

    def erase(self, request: str) -> Ask:
        target = self.secrets.pop(0)
        return {"verb": "erase", "gone": target}, lambda store: store.erase(target, reason=request)

    def purge(self, request: str) -> Ask:
        target, audit = self.secrets.pop(0), self.chance.random() < 0.5
        return {"verb": "purge", "gone": target}, lambda store: store.evict(
            ids=[target], keep_audit=audit, reason=request
        )


def _known(store: Any, id: str) -> bool:
    try:
        return bool(store.inspect(id).node.id == id)
    except graphstore.NotFoundError:
        return False


def there(store: Any, request: str, facts: dict[str, Any]) -> bool:
    """Whether a request was done, asked by what it says of itself."""
    verb = facts["verb"]
    if verb in ("erase", "purge"):
        return not _known(store, facts["gone"]) or store.inspect(facts["gone"]).node.standing in (
            "erased",
            "evicted",
        )
    if verb == "take_back":
        return bool(store.inspect(facts["target"]).node.standing == "retracted")
    if verb == "tell":
        return _known(store, facts["tally"]) and any(
            row.content.get("by") == request for row in store.versions(facts["tally"])
        )
    if verb == "aside":
        return _known(store.on(BRANCH), request)
    if verb == "event":
        return any(event.id == request for event in store.events())
    return _known(store, facts["nodes"][0])


def main() -> None:
    """Write until the time is over, from so many threads."""
    said = argparse.ArgumentParser()
    said.add_argument("where")
    said.add_argument("--name", required=True)
    said.add_argument("--seed", required=True)
    said.add_argument("--seconds", type=float, required=True)
    said.add_argument("--threads", type=int, default=1)
    said.add_argument("--notes", type=Path, required=True)
    told = said.parse_args()
    own = Notes(told.notes / f"process-{told.name}.jsonl")
    own.add("started", pid=os.getpid())
    holder = Holder(told.where, own)
    end = time.monotonic() + told.seconds
    holder.deadline = end + 20
    failed: list[BaseException] = []

    def run(number: int) -> None:
        name = f"{told.name}t{number}"
        notes = Notes(told.notes / f"client-{name}.jsonl")
        client = Client(holder, name, notes, f"{told.seed}-{name}")
        try:
            while time.monotonic() < end:
                client.step()
        except (GraphStoreError, TimeoutError) as error:
            notes.add("gave up", why=f"{type(error).__name__}: {error}")
        except BaseException as error:
            notes.add("wrong", why=f"{error!r}", trace=whence(error))
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(told.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holder.end()
    own.add("ended")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
