"""Transactions: at which instants one may be."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import GraphStore
from graphstore.errors import InvalidError
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

TICK = timedelta(microseconds=1)


def write(store: GraphStore, at: object) -> None:
    with store.transaction(at=at):
        store.add_node("fact", {"at": str(at)})


def test_a_transaction_is_later_than_the_last_one_and_not_ahead_of_the_clock(
    store: GraphStore, clock: Clock
) -> None:
    write(store, "2026-01-15")
    last = store.changes()[-1].tx
    for before in (last, last - TICK):
        with pytest.raises(InvalidError, match=r"runs backwards: the last transaction was at 2026-01-15\."):
            write(store, before)
    write(store, last + TICK)
    with pytest.raises(InvalidError, match="lies ahead of the clock"):
        write(store, clock.now + TICK)
    write(store, clock.now)
    assert [last, last + TICK, clock.now] == [change.tx for change in store.changes()]


def test_a_transaction_is_later_than_each_view_handed_out(store: GraphStore) -> None:
    seen = day("2026-01-20")
    view = store.as_of(tx=seen)
    for before in (seen, seen - TICK):
        with pytest.raises(InvalidError, match="a view as of tx 2026-01-20 has been handed out"):
            write(store, before)
    write(store, seen + TICK)
    assert [] == view.nodes()


def test_without_an_instant_it_is_the_clock_or_just_after_what_was(store: GraphStore, clock: Clock) -> None:
    for expected in (clock.now, clock.now + TICK, clock.now + 2 * TICK):
        store.add_node("fact", {})
        assert expected == store.changes()[-1].tx
