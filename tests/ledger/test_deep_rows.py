"""Deep pasts: what is read of an entity with thousands of rows costs about what it costs with ten, and is what the other rows say."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.errors import GraphStoreError
from graphstore.ledger.statements import read
from graphstore.values.period import instant
from tests.conftest import Clock, after
from tests.support.ledger_rows import connected, rows

pytestmark = pytest.mark.in_process("reads the rows of the ledger")

FEW, MANY = 10, 300
MOST = 6.0
"""How many times the steps of SQLite may be that a read takes of an entity with `MANY` rows: at no size more. The time of the whole read is at most double."""
HOWS = ("appended", "repeated", "random", "bounded")
COORDINATES = ("now", "past day", "any")
SINCE = after(-1)

Values = dict[str, Any]


def span(how: str, number: int, count: int, chance: random.Random) -> dict[str, datetime | None]:
    """The valid time of the version of a number, or of a link."""
    start = chance.randrange(count)
    return {
        "appended": {"valid_from": after(number)},
        "repeated": {"valid_from": after(0)},
        "random": {"valid_from": after(start)},
        "bounded": {"valid_from": after(start), "valid_to": after(start + 1 + chance.randrange(max(count // 10, 3)))},
    }[how]  # fmt: skip


def described(store: GraphStore, clock: Clock, id: str, how: str, count: int) -> None:
    """Describe a node so many times, over periods of one kind."""
    chance = random.Random(count)
    store.add_node("fact", {}, id=id, **span(how, 0, count, chance))
    for number in range(1, count):
        clock.set(after(number))
        store.revise(id, {"n": number}, **span(how, number, count, chance))


def linked(store: GraphStore, clock: Clock, id: str, how: str, count: int) -> None:
    """Link a node so many times with others, of which three links hold at a time: later ones end, or are withdrawn."""
    chance = random.Random(count)
    store.add_node("fact", {}, id=id, valid_from=SINCE)
    links: list[str] = []
    for number in range(count):
        clock.set(after(number))
        period = span(how, number, count, chance)
        if "valid_to" in period:
            period["valid_to"] = period["valid_from"] + timedelta(seconds=chance.uniform(1, 4))
        link = store.link(id, "reference", f"leaf{number % 20}", **period)
        links.append(link.id)
        if len(links) > 3:
            since = {} if how == "repeated" else {"valid_from": after(number)}
            with suppress(GraphStoreError):  # it has ended by then
                store.unlink(links.pop(0), **since)


def flagged(store: GraphStore, clock: Clock, id: str, how: str, count: int) -> None:
    """Make a node shaky so many times, over periods of one kind, and look at it again each time."""
    chance = random.Random(count)
    store.add_node("fact", {}, id=f"ground-{id}", valid_from=SINCE)
    store.add_node("fact", {}, id=id, valid_from=SINCE)
    store.link(id, "derived_from", f"ground-{id}", valid_from=SINCE)
    for number in range(count):
        clock.set(after(number))
        store.revise(f"ground-{id}", {"n": number}, **span(how, number, count, chance))
        if number < count - 1:
            store.confirm(id, reason="looked at")


MAKE = {"node": described, "links": linked, "flags": flagged}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A ledger with pasts of every kind, deep and shallow ones."""
    path = tmp_path_factory.mktemp("deep") / "memory.gs"
    clock = Clock()
    with graphstore.open(path, clock=clock, durability="interval") as store:
        with store.transaction():
            for number in range(20):
                store.add_node("fact", {}, id=f"leaf{number}", valid_from=SINCE)
        for count in (FEW, MANY):
            for what, make in MAKE.items():
                for how in HOWS:
                    # each in a time of its own, since tx only rises
                    make(store, _Later(clock), f"{what}-{how}-{count}", how, count)
        assert store.verify().problems == ()
    with connected(path) as connection:
        yield connection


class _Later(Clock):
    """Moves another clock on from where it stands, when it is set to an instant after the beginning."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._begun = clock, clock.now + timedelta(seconds=1)

    def set(self, now: str | datetime) -> datetime:
        assert isinstance(now, datetime)
        return self._clock.set(self._begun + (now - after(0)))


def steps(connection: sqlite3.Connection, statement: str, values: Values) -> int:
    """How many instructions SQLite runs for a statement."""
    count = 0

    def each() -> None:
        nonlocal count
        count += 1

    connection.execute(statement, values).fetchall()
    connection.set_progress_handler(each, 1)
    try:
        connection.execute(statement, values).fetchall()
    finally:
        connection.set_progress_handler(None, 1)
    return count


def coordinate(connection: sqlite3.Connection, id: str, when: str, chance: random.Random) -> Values:
    """A coordinate at which something is known of a thing."""
    [last] = connection.execute("SELECT max(tx) FROM chain").fetchone()
    begun, ended = connection.execute(
        "SELECT min(tx), max(tx) FROM operation WHERE subject IN (?, ?) OR subject IN (SELECT l.id FROM entity e, link l WHERE e.id = ? AND l.source = e.number)",
        (id, f"ground-{id}", id),
    ).fetchone()
    count = int(id.rpartition("-")[2])
    return {
        "id": id,
        "valid": last + 1 if when == "now" else instant(after(chance.randrange(count)).isoformat()),
        "tx": chance.randint(begun, ended) if when == "any" else last,
        "kinds": None,
        "turned": '{"contradicts": "contradicts"}',
    }


READS = [
    *(("node", "node", what) for what in ("node", "flags")),
    *((name, name, what) for name in ("links_from", "backlinks_to") for what in MAKE),
]


@pytest.mark.parametrize("when", COORDINATES)
@pytest.mark.parametrize("how", HOWS)
def test_a_read_of_a_deep_past_looks_at_few_rows(ledger: sqlite3.Connection, how: str, when: str) -> None:
    grown = {}
    for name, statement, what in READS:
        counted = []
        for size in (FEW, MANY):
            chance = random.Random(1)
            id = f"{what}-{how}-{size}"
            found = [steps(ledger, read(statement), coordinate(ledger, id, when, chance)) for _ in range(25)]
            counted.append(sorted(found))
        middle, most = (counted[1][place] / counted[0][place] for place in (12, 24))
        if middle > MOST or most > MOST:
            grown[name, what] = middle, most
    assert not grown
