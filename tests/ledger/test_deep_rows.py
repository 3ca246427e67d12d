"""Deep pasts: what is read of an entity with thousands of rows costs about what it costs with ten, and is what the other rows say."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
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


def lived(store: GraphStore, clock: Clock, chance: random.Random, count: int) -> None:
    """Do so many verbs at random with a few things, over periods of all kinds."""
    ids = ["one", "two", "three"]
    for id in ids:
        store.add_node("fact", {"n": 0}, id=id, valid_from=after(chance.randrange(50)))
    store.record_event("error", "boom", id="boom", occurred_at=after(3))
    for number in range(count):
        clock.move(seconds=chance.choice((0, 1, 3)))
        with suppress(GraphStoreError):
            if chance.random() < 0.1:
                with store.transaction():
                    for _ in range(3):
                        _do(store, chance, ids, number)
            else:
                _do(store, chance, ids, number)


def _do(store: GraphStore, chance: random.Random, ids: list[str], number: int) -> None:
    one, other = (
        chance.sample([*ids, "boom"], 2)
        if chance.random() < 0.3
        else chance.choice((("one", "two"), ("two", "one")))
    )
    start = after(chance.randrange(100))
    period = {"valid_from": start}
    if chance.random() < 0.6:
        period["valid_to"] = start + timedelta(seconds=chance.randrange(1, 40))
    verb = chance.randrange(16)
    if verb < 4:
        store.revise(chance.choice(ids), {"n": number}, **period)
    elif verb < 6:
        store.retract(chance.choice(ids), reason="wrong", **period)
    elif verb < 11:
        kind = chance.choice(("derived_from", "derived_from", "reference", "contradicts", "supports", "uses"))
        store.link(one, kind, other, **(period if chance.random() < 0.7 else {}))
    elif verb == 11:
        for link in chance.sample(
            found := store.links_from(one) + store.backlinks_to(one), min(1, len(found))
        ):
            store.unlink(link.id, **(period if chance.random() < 0.5 else {}))
    elif verb == 12:
        store.confirm(chance.choice(ids), reason="looked at")
    elif verb == 13:
        store.undo(store.changes()[-1].tx, reason="a slip")
    elif verb == 14:
        new = store.add_node("fact", {"n": number}, id=f"new{number}", valid_from=start)
        store.supersede(one, by=new.id, valid_from=start)
        if chance.random() < 0.7:
            store.retract(new.id, reason="not so")
    else:
        store.end(chance.choice(ids), at=start)


ASKED = ("node", "links_from", "backlinks_to", "links_around", "things", "standings_of", "described")


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_of_a_deep_past_is_what_all_its_rows_say(tmp_path: Path, seed: int) -> None:
    """The rows of a copy in which nothing is deep answer the same, at every coordinate."""
    chance, clock, path = random.Random(seed), Clock(), tmp_path / "memory.gs"
    with graphstore.open(path, clock=clock, durability="interval") as store:
        lived(store, clock, chance, 900)
        store.erase("two", reason="private") if seed == 1 else None
        assert () == store.verify().problems
        with store.branch("draft") as branch:
            branch.revise("one", {"n": -1})
        assert [(1, 1)] == rows(path, "SELECT max(deep & 1), max(deep & 6 > 0) FROM entity")
    with connected(path) as connection, closing(sqlite3.connect(":memory:")) as plain:
        connection.backup(plain)
        plain.execute("UPDATE all_entity SET deep = 0")
        plain.execute("DELETE FROM deep_row")
        kinds = None, None, '["reference", "uses"]', '["supersedes"]'
        instants = [tx for (tx,) in connection.execute("SELECT tx FROM chain")]
        numbers = [number for (number,) in connection.execute("SELECT number FROM entity")]
        answers = 0
        for _ in range(500):
            values = {
                "id": chance.choice(("one", "two", "three", "boom")),
                "ids": '["one", "two", "three", "boom"]',
                "numbers": str(numbers),
                "number": chance.randrange(1, 40),
                "valid": instant(after(chance.randrange(-5, 160)).isoformat()) + chance.choice((-1, 0, 1)),
                "tx": chance.choice(instants) + chance.choice((-1, 0, 0, 1)),
                "kinds": chance.choice(kinds),
                "turned": chance.choice(
                    (
                        "{}",
                        '{"contradicts": "contradicts"}',
                        '{"derived_from": "source_of", "uses": "used_by"}',
                    )
                ),
                "undone": "[]",
            }
            for name in ASKED:
                found, expected = (
                    each.execute(read(name), values).fetchall() for each in (connection, plain)
                )
                assert sorted(found, key=repr) == sorted(expected, key=repr), (name, values)
                answers += len(found)
        assert answers > 3_000


def test_rows_that_a_transaction_shows_to_itself_are_followed(tmp_path: Path) -> None:
    clock = Clock()
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        described(store, clock, "deep", "bounded", 80)
        with suppress(ZeroDivisionError), store.transaction():
            store.revise("deep", {"n": "here"}, valid_from=after(10), valid_to=after(20))
            assert {"n": "here"} == store.as_of(valid=after(15)).node("deep").content
            raise ZeroDivisionError
        assert {"n": "here"} != store.as_of(valid=after(15)).node("deep").content
        assert () == store.verify().problems
        before = [
            rows(tmp_path / "memory.gs", f"SELECT * FROM {table}") for table in ("deep_row", "deep_group")
        ]
        store.rebuild()
        assert before == [
            rows(tmp_path / "memory.gs", f"SELECT * FROM {table}") for table in ("deep_row", "deep_group")
        ]
        assert all(before)


def test_a_branch_of_a_deep_past_reads_its_own_rows(tmp_path: Path) -> None:
    clock = Clock()
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        described(store, clock, "deep", "appended", 80)
        branch = store.branch("draft")
        clock.move(seconds=5)
        branch.revise("deep", {"n": "there"}, valid_from=after(30), valid_to=after(40))
        store.revise("deep", {"n": "here"}, valid_from=after(35), valid_to=after(50))
        found = [
            [view.as_of(valid=after(at)).node("deep").content["n"] for at in (29, 33, 37, 45)]
            for view in (store, branch)
        ]
        assert [[29, 33, "here", "here"], [29, "there", "there", 45]] == found


def test_a_node_that_one_transaction_records_with_many_periods_is_deep_at_once(tmp_path: Path) -> None:
    clock = Clock(after(1_000))
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.bulk_load(
            versions=[
                {"node_id": "deep", "content": {"n": n}, "valid_from": after(n), "valid_to": after(n + 1)}
                for n in range(100)
            ]
        )
        assert [(1, 100)] == rows(
            tmp_path / "memory.gs",
            "SELECT deep, (SELECT count(*) FROM deep_row WHERE sort = 'period') FROM entity",
        )
        assert {"n": 40} == store.as_of(valid=after(40.5)).node("deep").content
        assert () == store.verify().problems
