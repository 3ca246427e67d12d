"""The clients of the LDBC ACID tests: what one transaction of each does. They run in threads or in processes of their own.

After Waudby et al., "Towards Testing ACID Compliance in the LDBC Social Network Benchmark" (TPCTC 2020). A careless client does the same without
transactions and without views: the control that each test can fail.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import wraps
from typing import Any

from graphstore import GraphStore

PAUSE = 0.002  # seconds between two steps of a transaction, so that another may come in between
RING = ["person-1", "person-2", "person-3", "person-4"]


class Careless:
    """A store without transactions and without views: each verb is its own, a block that fails keeps what it wrote, each read is of now."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextlib.contextmanager
    def transaction(self, **_: Any) -> Iterator[Careless]:
        yield self

    def as_of(self, **_: Any) -> GraphStore:
        return self._store


class Abort(Exception):
    """Ends a block, so that nothing of it is kept."""


def aborting(work: Any) -> Any:
    """A client that may give its transaction up. Says whether it did."""

    @wraps(work)
    def client(*args: Any, **kwargs: Any) -> Any:
        try:
            work(*args, **kwargs)
        except Abort:
            return "aborted"
        return "committed"

    return client


def value(reader: Any, id: str, field: str = "version") -> Any:
    return reader.node(id).content[field]


def put(store: Any, id: str, **fields: Any) -> None:
    store.amend(id, fields)


def pause() -> None:
    time.sleep(PAUSE)


# ---------------------------------------------------------------- atomicity


def befriend(store: Any, person: str, new: str, email: str) -> None:
    """C: a new person, a link to it, and one more address, all or none."""
    with store.transaction():
        emails = value(store, person, "emails")
        put(store, person, emails=[*emails, email])
        pause()
        store.add_node("person", {"emails": []}, id=new)
        store.link(person, "relates_to", new)


@aborting
def befriend_unless_there(store: Any, person: str, new: str, email: str) -> None:
    """RB: the same, given up when the new person is there already."""
    with store.transaction():
        put(store, person, emails=[*value(store, person, "emails"), email])
        pause()
        if any(new == node.id for node in store.nodes(kind="person")):
            raise Abort
        store.add_node("person", {"emails": []}, id=new)


# ---------------------------------------------------------------- isolation


def sign_all(store: Any, name: int) -> None:
    """G0: add its name to two persons and to the link between them."""
    with store.transaction():
        (known,) = store.links_from("person-1", kinds=("relates_to",))
        put(store, "person-1", history=[*value(store, "person-1", "history"), name])
        pause()
        put(store, "person-2", history=[*value(store, "person-2", "history"), name])
        store.unlink(known.id)
        store.link(
            "person-1", "relates_to", "person-2", metadata={"history": [*known.metadata["history"], name]}
        )


@aborting
def write_and_abort(store: Any) -> None:
    """G1a: write an even version, and give it up."""
    with store.transaction():
        put(store, "person-1", version=2)
        pause()
        raise Abort


def write_even_then_odd(store: Any, number: int) -> None:
    """G1b: an even version in between, an odd one in the end."""
    with store.transaction():
        put(store, "person-1", version=2 * number)
        pause()
        put(store, "person-1", version=2 * number + 1)


def write_one_read_other(store: Any, mine: str, other: str, name: int) -> tuple[int, int]:
    """G1c: sign one person, and read who signed the other."""
    with store.transaction():
        put(store, mine, version=name)
        pause()
        return name, value(store, other)


def raise_version(store: Any, ids: list[str]) -> None:
    """IMP, OTV, FR: each of these persons has one version more."""
    with store.transaction():
        for id in ids:
            put(store, id, version=value(store, id) + 1)


def like(store: Any, person: str) -> None:
    """PMP: one more person likes the post."""
    with store.transaction():
        store.link(person, "relates_to", "post-1")


def read_once(store: Any) -> int:
    """G1a, G1b: the version there is."""
    return int(value(store, "person-1"))


def read_twice(store: Any, ids: list[str]) -> tuple[list[int], list[int]]:
    """IMP, OTV, FR: the versions of these persons, twice in one view."""
    view = store.as_of()
    return _each(view, ids), _each(view, ids)


def _each(view: Any, ids: list[str]) -> list[int]:
    found = []
    for id in ids:
        found.append(value(view, id))
        pause()
    return found


def read_in_turn(store: Any, ids: list[str]) -> tuple[list[int], list[int]]:
    """OTV: the versions of these persons in one view, and then in a later one."""
    return _each(store.as_of(), ids), _each(store.as_of(), ids)


def count_twice(store: Any) -> tuple[int, int]:
    """PMP: how many like the post, twice in one view."""
    view = store.as_of()
    first = len(view.backlinks_to("post-1", kinds=("relates_to",)))
    for _ in range(3):
        pause()
    return first, len(view.backlinks_to("post-1", kinds=("relates_to",)))


def match_twice(store: Any) -> tuple[list[int], list[int]]:
    """FR by Cypher: the versions round the ring, twice in one view."""
    view = store.as_of()
    text = "MATCH (n:Node) WHERE n.kind = 'person' RETURN n.version AS version ORDER BY n.id"
    first = [row["version"] for row in view.query(text)]
    pause()
    return first, [row["version"] for row in view.query(text)]


def make_friend(store: Any, new: str) -> None:
    """LU: a link more, and a count more."""
    with store.transaction():
        count = value(store, "person-1", "friends")
        pause()
        store.link("person-1", "relates_to", new)
        put(store, "person-1", friends=count + 1)


def withdraw(store: Any, one: str, other: str) -> bool:
    """WS: take 100 from one of two accounts, when both have as much together."""
    with store.transaction():
        together = value(store, one, "balance") + value(store, other, "balance")
        pause()
        if together < 100:
            return False
        put(store, one, balance=value(store, one, "balance") - 100)
        return True
