"""Transactions: at which instants one may be, and what the journal holds of one."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStore, View
from graphstore.errors import ConflictError, InvalidError
from graphstore.values.period import instant, moment
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


def test_no_transaction_comes_into_a_view_that_another_thread_was_handed() -> None:
    store = graphstore.open(":memory:")  # whose clock goes on between any two looks at it
    told: list[tuple[View, int]] = []
    done = threading.Event()
    counted = partial(store._core.rows.database.rows, "SELECT count(DISTINCT tx) FROM operation")

    def read() -> None:
        while not done.is_set():
            view = store.as_of()
            told.append((view, counted()[0][0]))

    readers = [threading.Thread(target=read) for _ in range(3)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for reader in readers:
            reader.start()
        for _ in range(300):
            store.add_node("fact", {})
    finally:
        done.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(usual)
    assert len(told) > 300
    instants = [instant(change.tx) for change in store.changes()]
    known = [bisect_right(instants, instant(view.at.tx)) for view, _ in told]
    assert not [told[at] for at, count in enumerate(known) if count > told[at][1]]


def test_a_view_is_earlier_than_a_transaction_that_begins_while_it_is_made() -> None:
    clock_was_read, view_has_begun, wrote, handed = (threading.Event() for _ in range(4))
    ticks = count(instant(day("2026-02-01")))

    def clock() -> datetime:
        now = moment(next(ticks))
        if threading.current_thread() is writer and not clock_was_read.is_set():
            clock_was_read.set()
            assert view_has_begun.wait(10)
        return now

    class Zone(tzinfo):
        def utcoffset(self, _: datetime | None) -> timedelta:
            view_has_begun.set()
            assert wrote.wait(10)
            return timedelta()

    def write() -> None:
        with store.transaction():
            store.add_node("fact", {}, id="new", valid_from="2026-01-01")
            wrote.set()
            assert handed.wait(10)

    writer = threading.Thread(target=write)
    with graphstore.open(":memory:", clock=clock) as store:
        writer.start()
        assert clock_was_read.wait(10)
        view = store.as_of(valid=datetime(2026, 1, 20, tzinfo=Zone()))
        handed.set()
        writer.join()
        assert view.at.tx < store.changes()[-1].tx
        assert not view.nodes() and store.nodes()


def test_without_an_instant_it_is_the_clock_or_just_after_what_was(store: GraphStore, clock: Clock) -> None:
    for expected in (clock.now, clock.now + TICK, clock.now + 2 * TICK):
        store.add_node("fact", {})
        assert expected == store.changes()[-1].tx


# ---------------------------------------------------------------------- what is in the line of a transaction


def base(s: GraphStore) -> None:
    for id in "abc":
        s.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    s.add_node("fact", {"day": "mon"}, id="mon", key="day", valid_from="2026-01-01")
    s.link("a", "supports", "b", id="link-1", valid_from="2026-01-01", strength=2)
    s.add_node("fact", {}, id="on-a", derived_from="a", valid_from="2026-01-01")


def first_said(s: GraphStore) -> None:
    s.add_node("fact", {"n": 1}, id="new", valid_from="2026-01-05")
    s.revise("new", {"n": 2}, valid_from="2026-01-07", valid_to="2026-01-09")
    s.revise("new", {"n": 3}, valid_from="2026-01-04", valid_to="2026-01-08")


def link_said_twice(s: GraphStore) -> None:
    s.link("c", "supports", "a", id="link-2", confidence="inferred", valid_from="2026-01-01")
    s.unlink("link-2", valid_from="2026-01-05", valid_to="2026-01-10")
    s.link(
        "c", "supports", "a", valid_from="2026-01-03", valid_to="2026-01-08", reason="said again", strength=3
    )
    s.unlink("link-1", valid_from="2026-01-10")
    s.link("a", "supports", "b", valid_from="2026-01-12", strength=4)


def taken_in_turns(s: GraphStore) -> None:
    s.add_node("fact", {}, id="d", supersedes="a", valid_from="2026-01-10")
    s.add_node("fact", {}, id="e", supersedes="d", valid_from="2026-01-15")
    s.retract("d", reason="a slip")
    s.add_node("fact", {}, id="f", corrects="b", valid_from="2026-01-01")


def slot_in_turns(s: GraphStore) -> None:
    for id, at in (("tue", "10"), ("wed", "15"), ("thu", "12")):
        s.add_node("fact", {"day": id}, id=id, key="day", valid_from=f"2026-01-{at}", reason=id)
    s.retract("wed", reason="a slip")


def added_and_retracted(s: GraphStore) -> None:
    s.add_node("fact", {}, id="never", valid_from="2026-01-01")
    s.link("never", "supports", "a", id="link-3")
    s.retract("never", reason="a slip")
    s.revise("a", {"says": "x"})
    s.revise("a", {"says": "a"})
    s.confirm("b", reason="seen")


def events_and_kinds(s: GraphStore) -> None:
    s.record_event("error", "it broke", id="broke", occurred_at="2026-01-03", related_to=["a"])
    s.record_event("error", "it broke", occurred_at="2026-01-04")
    s.define_kind("rests_on", rests=("retracted",))
    s.link("c", "rests_on", "a", valid_from="2026-01-05")
    s.retract("a", valid_from="2026-01-08", valid_to="2026-01-09", reason="a gap")


def revised_and_ended(s: GraphStore) -> None:
    s.revise("b", {"says": "y"}, valid_from="2026-01-10", valid_to="2026-01-20")
    s.amend("b", {"more": 1}, valid_from="2026-01-15")
    s.end("b", at="2026-01-25")
    s.retract("b", valid_from="2026-01-12", valid_to="2026-01-13", reason="a gap")


PROGRAMS = [first_said, link_said_twice, taken_in_turns, slot_in_turns, added_and_retracted, events_and_kinds, revised_and_ended]  # fmt: skip


def everything(store: GraphStore) -> list[object]:
    """What each view says of each thing: standings, versions, links, what is shaky."""
    found: list[object] = [list(store.changes()), store.stats()["transactions"]]
    ids = sorted({node.id for change in store.changes() for node in store.as_of(tx=change.tx).nodes()})
    for tx in sorted({change.tx for change in store.changes()}):
        for valid in ("2026-01-04", "2026-01-08", "2026-01-12", "2026-01-28"):
            view = store.as_of(valid=valid, tx=tx)
            found += [view.nodes(), sorted(shaky.node.id for shaky in view.shaky()), view.events()]
            known = {node.id for node in view.nodes()}
            found += [view.links_from(id) for id in ids if id in known]
    for id in ids:
        found += [store.inspect(id).node, store.versions(id), store.history(id)]
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_transaction_opened_and_closed_reads_the_same_from_the_journal(
    tmp_path: Path, clock: Clock, program: Callable[[GraphStore], None]
) -> None:
    reason = "all at once" if program in PROGRAMS[::2] else None
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=clock, author="ann") as store:
        base(store)
        clock.move(days=1)
        with store.transaction(reason=reason, author="bob"):
            program(store)
        told = store.changes()[-1].tx
        clock.move(days=1)
        store.revise("c", {"says": "z"})
        after = everything(store)
    with graphstore.open(path, clock=clock) as again:
        assert after == everything(again)
        assert again.verify().ok
    with graphstore.open(path, clock=clock) as again:
        if program not in (events_and_kinds, added_and_retracted):
            clock.move(days=1)
            again.undo(told, reason="a slip")
            assert ["a", "b", "c", "mon", "on-a"] == sorted(node.id for node in again.nodes())


def without_ids(value: object) -> object:
    """The same without the ids of links, which are random."""
    if isinstance(value, list):
        return sorted(map(without_ids, value), key=repr)
    return re.sub("lnk_[0-9a-f]+", "lnk", repr(value))


def refused_late(s: GraphStore) -> None:
    """A verb that is refused after it has changed the index."""
    with pytest.raises(ConflictError, match="number"):
        s.revise("one", {"n": 1}, valid_from="2026-01-16", reason="too late")


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_failed_leaves_nothing(clock: Clock, program: Callable[[GraphStore], None]) -> None:
    told = []
    for fails in (False, True):
        clock.set("2026-02-01")
        with graphstore.open(":memory:", clock=clock) as store:
            base(store)
            for id, at in (("one", "01"), ("two", "15")):
                store.add_node("fact", {"n": id}, id=id, key="number", valid_from=f"2026-01-{at}")
            for again in (True, False) if fails else (False,):
                clock.set("2026-02-02")
                with contextlib.suppress(RuntimeError), store.transaction():
                    if fails:
                        refused_late(store)
                    program(store)
                    if fails:
                        refused_late(store)
                        everything(store)
                    if again:
                        raise RuntimeError
            clock.set("2026-02-03")
            if fails:
                refused_late(store)
            for id in ("a", "b", "c"):
                store.revise(id, {"last": id}, valid_from="2026-01-01")
            told.append([without_ids(value) for value in everything(store)])
            assert store.verify().ok
    assert told[0] == told[1]


@pytest.mark.in_process("looks at the working set")
def test_a_transaction_leaves_nothing_for_the_collector(store: GraphStore) -> None:
    store.add_node("fact", {"says": "on Tuesdays"}, id="old", key="day", valid_from="2026-01-01")
    gc.disable()  # what it has read and changed goes by itself: a collection takes as long as a verb
    try:
        with store.transaction():
            store.revise("old", {"says": "on Wednesdays"}, valid_from="2026-01-05")
            store.add_node(
                "fact",
                {"says": "on Fridays"},
                id="new",
                key="day",
                valid_from="2026-02-01",
                derived_from="old",
            )
            store.record_event("error", "a report", related_to=["new"])
            store.retract("new", reason="a slip")
            left = weakref.ref(store._core.working)
        assert left() is None
    finally:
        gc.enable()


def test_a_supersession_that_was_refused_is_not_asked_what_it_took(store: GraphStore) -> None:
    for id in ("one", "other"):
        store.add_node("fact", {"says": id}, id=id, valid_from="2026-01-01")
    with store.transaction():
        store.revise("one", {"says": "once"})
        with pytest.raises(InvalidError):
            store.supersede("other", "one", by="one")  # the first link is taken back with the second
        store.revise("one", {"says": "twice"})
    assert ["one", "twice"] == [version.content["says"] for version in store.versions("one")]
    assert store.node("other").valid_to is None
