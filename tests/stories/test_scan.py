"""What a view gives as light rows: the same as its reads, and as the plain oracle has it, at whatever coordinate."""

from __future__ import annotations

import random
import threading
from datetime import timedelta

import pytest

import graphstore
from graphstore import InvalidError
from graphstore.values.period import instant, moment
from tests.change.oracle import END, Oracle, Refused, Undecided
from tests.conftest import day
from tests.support.world import fill

pytestmark = pytest.mark.in_process("reads the numbers of the store's own process")


def coordinates(store, count):
    """Random coordinates, near what the store was told and when."""
    draw = random.Random(14)
    known = sorted({change.tx for change in store.changes()})
    for _ in range(count):
        at = draw.choice(known) + timedelta(microseconds=draw.choice((-1, 0, 1)))
        around = at + timedelta(days=draw.randint(-400, 400), hours=draw.randint(0, 23))
        yield around, min(at, known[-1])


def as_row(node):
    """What a row says of a node."""
    return (
        node.id, node.kind, node.key, node.scope, node.number, False, *map(microseconds, (node.valid_from, node.valid_to, node.tx_from, node.tx_to)),
        node.content, node.text, node.tags,
    )  # fmt: skip


def microseconds(at):
    return None if at is None else instant(at)


@pytest.fixture
def world(clock):
    with graphstore.open(":memory:", clock=clock) as store:
        fill(store, clock)
        yield store


def test_rows_are_the_nodes_that_stand_at_random_coordinates(world):
    for valid, tx in coordinates(world, 60):
        view = world.as_of(valid=valid, tx=tx)

        rows = [(*row[:10], *row[11:]) for row in view.scan(content=True)]

        assert [as_row(node) for node in view.nodes()] == rows


def test_rows_of_events_are_the_events_that_have_happened_at_random_coordinates(world):
    for valid, tx in coordinates(world, 60):
        view = world.as_of(valid=valid, tx=tx)

        rows = view.scan(events=True, content=True)

        assert {event.id: (event.type, event.description) for event in view.events()} == {
            row.id: (row.kind, row.content["description"]) for row in rows
        }
        assert all(row.is_event and row.known_since <= instant(tx) for row in rows)


@pytest.mark.parametrize("by", ["kind", "scope", "tag", "key"])
def test_a_filter_gives_what_the_same_filter_of_nodes_gives(world, by):
    for valid, tx in coordinates(world, 20):
        view = world.as_of(valid=valid, tx=tx)
        values = {
            value
            for node in view.nodes()
            for value in (node.tags if by == "tag" else (getattr(node, by),))
            if value is not None
        }
        for value in values:
            assert [node.id for node in view.nodes(**{by: value})] == [
                row.id for row in view.scan(**{by: value})
            ]


def told(row, events):
    """What the oracle says of a node or event, as far as rows say it too."""
    if events:
        return row["id"], row["type"], row["tx_from"], None if row["tx_to"] == END else row["tx_to"]
    ends = (None if row[end] == END else row[end] for end in ("valid_to", "tx_to"))
    return row["id"], row["kind"], row["number"], row["content"], row["valid_from"], row["tx_from"], *ends


def shown(row):
    at = (None if each is None else moment(each) for each in (row.valid_to, row.tx_to))
    if row.is_event:
        return row.id, row.kind, moment(row.tx_from), None if row.tx_to is None else moment(row.tx_to)
    return row.id, row.kind, row.number, row.content, moment(row.valid_from), moment(row.tx_from), *at


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_oracle_at_random_coordinates(store, clock, seed):
    oracle, draw = Oracle(clock), random.Random(seed)
    start = day("2026-01-01")
    clock.set(start)
    for number in range(60):
        clock.move(hours=draw.randint(1, 30))
        id, other = (f"n{draw.randint(0, 9)}" for _ in range(2))
        begin = start + timedelta(days=draw.randint(-20, 60))
        end = draw.choice((None, begin + timedelta(days=draw.randint(1, 30))))
        verb, said, how = draw.choice((
            ("add_node", (id, "fact", {"n": number}), {"valid_from": begin, "valid_to": end}),
            ("revise", (id, {"n": number}), {"valid_from": begin, "valid_to": end}),
            ("retract", (id,), {"valid_from": begin, "valid_to": end}),
            ("end", (id,), {"at": begin}),
            ("supersede", (id,), {"by": other, "reason": "newer", "valid_from": begin}),
            ("record_event", (f"e{number}", "error", "boom"), {"occurred_at": begin}),
        ))  # fmt: skip
        try:
            getattr(oracle, verb)(*said, **how)
        except (Refused, Undecided):
            continue
        if verb in ("add_node", "record_event"):
            getattr(store, verb)(*said[1:], id=said[0], **how)
        else:
            getattr(store, verb)(*said, **({**how, "reason": "no"} if verb == "retract" else how))

    for _ in range(60):
        tx = start + timedelta(hours=draw.randint(0, 60 * 15))
        tx = min(tx, clock.now)
        valid = start + timedelta(days=draw.randint(-30, 90))
        view = store.as_of(valid=valid, tx=tx)

        for events, rows in ((False, oracle.nodes_at(valid, tx)), (True, oracle.events_at(valid, tx))):
            found = view.scan(events=events, content=True)
            assert [told(row, events) for row in rows] == sorted(map(shown, found), key=lambda row: row[0])


def test_only_an_exact_id_is_known_and_from_when_it_was_recorded(store, clock):
    before = store.as_of()
    clock.move(days=1)
    store.add_node("fact", {"n": 1}, id="n_long_name")
    store.retract("n_long_name", reason="wrong")

    assert store.knows("n_long_name")
    assert not store.knows("n_long") and not before.knows("n_long_name")


def test_what_a_transaction_writes_is_scanned_inside_it(store):
    with store.transaction():
        store.add_node("fact", {"n": 1}, id="one", tags=["t"])
        assert ["one"] == [row.id for row in store.scan("fact", tag="t")]


def test_what_is_read_stays_one_state_and_no_writer_waits_for_it(store):
    with store.reading() as sight:
        writer = threading.Thread(target=store.add_node, args=("fact", {"n": 1}), kwargs={"id": "late"})
        writer.start()
        writer.join()
        assert sight.entity("late") < 0
    assert store.knows("late")


def test_a_closed_store_is_not_read_and_its_lock_is_free_again(clock):
    with graphstore.open(":memory:", clock=clock) as store:
        view = store.as_of()
    for read in (view.scan, lambda: view.reading().__enter__()):
        with pytest.raises(InvalidError, match="closed"):
            read()
    assert view._core.lock.acquire(blocking=False)
    view._core.lock.release()
