"""The twelve LDBC ACID tests: atomicity (C, RB), and the anomalies that no isolation level below the strongest excludes all of.

Each is a number of transactions at once and a question of what was seen; its answer is the list of anomalies. Every test runs through each door,
and once with clients that use no transactions and no views: then the anomaly shows, so the test is able to fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import graphstore
from tests.support import acid
from tests.support.acid import RING
from tests.support.served import serve_in_process

pytestmark = [pytest.mark.rest, pytest.mark.in_process("starts a server of its own")]

CLIENTS = 4
MANY = 24
Job = tuple[Callable[..., Any], dict[str, Any]]

_mine: Any = None  # the store of a process that is a client


def _connect(url: str, token: str) -> None:
    global _mine
    _mine = graphstore.open(url, token=token)


def _do(role: Callable[..., Any], said: dict[str, Any]) -> Any:
    return role(_mine, **said)


class Door:
    """A way for several clients to the same store."""

    def __init__(self, store: Any, pool: Executor, *, there: bool = False) -> None:
        self.store, self._pool, self._there = store, pool, there

    def run(self, jobs: list[Job]) -> list[Any]:
        """Do all of these, several at once; their answers."""
        if self._there:
            asked = [self._pool.submit(_do, role, said) for role, said in jobs]
        else:
            asked = [self._pool.submit(role, self.store, **said) for role, said in jobs]
        return [one.result(timeout=120) for one in asked]


def threads(tmp_path: Path) -> Iterator[Door]:
    with graphstore.open(tmp_path / "memory.gs") as store, ThreadPoolExecutor(CLIENTS) as pool:
        yield Door(store, pool)


def http(tmp_path: Path) -> Iterator[Door]:
    with serve_in_process(tmp_path / "memory.gs", "--no-ticks") as (_, url):
        token = (tmp_path / "memory.gs/token").read_text().strip()
        with (
            ProcessPoolExecutor(CLIENTS, get_context("spawn"), _connect, (url, token)) as pool,
            graphstore.open(url, token=token) as store,
        ):
            yield Door(store, pool, there=True)


DOORS = [threads, http]  # a store that is kept in another place is one more door


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    yield from request.param(tmp_path)


# ---------------------------------------------------------------- the tests, each as the anomalies it found


def ring(store: Any) -> None:
    for id in RING:
        store.add_node("person", {"version": 0}, id=id)
    for one, other in zip(RING, [*RING[1:], RING[0]], strict=True):
        store.link(one, "relates_to", other)


def between(jobs: list[Job], others: list[Job]) -> list[Job]:
    """The one and the other in turn."""
    return [job for pair in zip(jobs, others, strict=True) for job in pair]


def atomicity_c(door: Door) -> list[str]:
    door.store.add_node("person", {"emails": ["a"]}, id="alice")
    news = [
        f"new-{number % (MANY // 2)}" for number in range(MANY)
    ]  # each is asked for twice, the second is refused
    jobs = [(tried, {"role": acid.befriend, "person": "alice", "new": new, "email": new}) for new in news]
    committed = door.run(jobs).count("done")
    persons = len(door.store.nodes(kind="person"))
    emails = len(door.store.node("alice").content["emails"])
    friends = len(door.store.links_from("alice"))
    return (
        []
        if persons == emails == friends + 1 == committed + 1
        else [f"{committed=} {persons=} {emails=} {friends=}"]
    )


def tried(store: Any, role: Callable[..., Any], **said: Any) -> str:
    """Whether a client's transaction was done or refused."""
    try:
        role(store, **said)
    except graphstore.ConflictError:
        return "refused"
    return "done"


def atomicity_rb(door: Door) -> list[str]:
    door.store.add_node("person", {"emails": ["a"]}, id="alice")
    news = [f"new-{number % (MANY // 2)}" for number in range(MANY)]
    told = door.run(
        [
            (tried, {"role": acid.befriend_unless_there, "person": "alice", "new": new, "email": new})
            for new in news
        ]
    )
    persons = len(door.store.nodes(kind="person"))
    emails = len(door.store.node("alice").content["emails"])
    return [] if "done" in told and persons == emails == MANY // 2 + 1 else [f"{persons=} {emails=}"]


def g0(door: Door) -> list[str]:
    for id in RING[:2]:
        door.store.add_node("person", {"history": []}, id=id)
    door.store.link(RING[0], "relates_to", RING[1], metadata={"history": []})
    door.run([(seen, {"role": acid.sign_all, "name": name}) for name in range(MANY)])
    links = door.store.links_from(RING[0], kinds=("relates_to",))
    told = [door.store.node(id).content["history"] for id in RING[:2]] + [
        link.metadata["history"] for link in links
    ]
    whole = len(told) == 3 and told[0] == told[1] == told[2] and sorted(told[0]) == list(range(MANY))
    return [] if whole else [f"signed in another order: {told}"]


def seen(store: Any, role: Callable[..., Any], **said: Any) -> Any:
    """The answer of a client, None where its own carelessness had it refused."""
    try:
        return role(store, **said)
    except (graphstore.GraphStoreError, ValueError):
        if isinstance(store, acid.Careless):
            return None
        raise


def g1a(door: Door) -> list[str]:
    door.store.add_node("person", {"version": 1}, id=RING[0])
    told = door.run(between([(acid.write_and_abort, {})] * MANY, [(acid.read_once, {})] * MANY))[1::2]
    return [f"read {version}, which was aborted" for version in told if version != 1]


def g1b(door: Door) -> list[str]:
    door.store.add_node("person", {"version": 99}, id=RING[0])
    writes = [(acid.write_even_then_odd, {"number": number}) for number in range(MANY)]
    told = door.run(between(writes, [(acid.read_once, {})] * MANY))[1::2]
    return [f"read {version}, which was only in between" for version in told if version % 2 == 0]


def g1c(door: Door) -> list[str]:
    for id in RING[:2]:
        door.store.add_node("person", {"version": 0}, id=id)
    jobs = [
        (acid.write_one_read_other, {"mine": RING[name % 2], "other": RING[1 - name % 2], "name": name})
        for name in range(1, MANY + 1)
    ]
    saw = dict(door.run(jobs))
    return [
        f"{name} and {other} saw each other" for name, other in saw.items() if other and saw[other] == name
    ]


def otv(door: Door) -> list[str]:
    """What was once seen does not vanish: no later read of the ring is older than an earlier one."""
    ring(door.store)
    writes = [(acid.raise_version, {"ids": RING})] * MANY
    told = door.run(between(writes, [(acid.read_in_turn, {"ids": RING})] * MANY))[1::2]
    return [f"{first} then {second}" for first, second in told if max(first) > min(second)]


def fr(door: Door) -> list[str]:
    """All or nothing of a transaction is seen, and the same again."""
    ring(door.store)
    writes = [(acid.raise_version, {"ids": RING})] * MANY
    told = door.run(between(writes, [(acid.read_twice, {"ids": RING})] * MANY))[1::2]
    return [f"{first} then {second}" for first, second in told if first != second or len(set(first)) > 1]


def fr_cypher(door: Door) -> list[str]:
    ring(door.store)
    writes = [(acid.raise_version, {"ids": RING})] * (MANY // 2)
    told = door.run(between(writes, [(acid.match_twice, {})] * (MANY // 2)))[1::2]
    return [f"{first} then {second}" for first, second in told if first != second or len(set(first)) > 1]


def imp(door: Door) -> list[str]:
    door.store.add_node("person", {"version": 1}, id=RING[0])
    writes = [(acid.raise_version, {"ids": RING[:1]})] * MANY
    told = door.run(between(writes, [(acid.read_twice, {"ids": RING[:1]})] * MANY))[1::2]
    return [f"{first} then {second}" for first, second in told if first != second]


def pmp(door: Door) -> list[str]:
    door.store.add_node("post", {}, id="post-1")
    for number in range(MANY):
        door.store.add_node("person", {}, id=f"fan-{number}")
    writes = [(acid.like, {"person": f"fan-{number}"}) for number in range(MANY)]
    told = door.run(between(writes, [(acid.count_twice, {})] * MANY))[1::2]
    return [f"{first} then {second}" for first, second in told if first != second]


def lu(door: Door) -> list[str]:
    door.store.add_node("person", {"friends": 0}, id=RING[0])
    for number in range(MANY):
        door.store.add_node("friend", {}, id=f"friend-{number}")
    door.run([(seen, {"role": acid.make_friend, "new": f"friend-{number}"}) for number in range(MANY)])
    links, count = len(door.store.links_from(RING[0])), door.store.node(RING[0]).content["friends"]
    return [] if links == count == MANY else [f"{links} links, and {count} friends were counted"]


def ws(door: Door) -> list[str]:
    pairs = [(f"one-{number}", f"two-{number}") for number in range(MANY // 2)]
    for one, two in pairs:
        door.store.add_node("account", {"balance": 70}, id=one)
        door.store.add_node("account", {"balance": 80}, id=two)
    jobs = [
        job
        for one, two in pairs
        for job in ((acid.withdraw, {"one": one, "other": two}), (acid.withdraw, {"one": two, "other": one}))
    ]
    door.run(jobs)
    sums = [sum(door.store.node(id).content["balance"] for id in pair) for pair in pairs]
    return [f"together {sum}" for sum in sums if sum <= 0]


TESTS = [atomicity_c, atomicity_rb, g0, g1a, g1b, g1c, otv, fr, fr_cypher, imp, pmp, lu, ws]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_the_anomaly_does_not_show(door, test):
    assert [] == test(door)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_the_anomaly_shows_to_careless_clients(tmp_path, test):
    end = time.monotonic() + 120
    number = 0
    while time.monotonic() < end:
        number += 1
        with graphstore.open(tmp_path / f"{number}.gs") as store, ThreadPoolExecutor(CLIENTS) as pool:
            if test(Door(acid.Careless(store), pool)):
                return
    pytest.fail(f"no anomaly in {number} tries")
