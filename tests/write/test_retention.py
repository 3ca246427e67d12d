"""What a store keeps, and for how long: acted on at each opening, and by size after commits."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import graphstore
from graphstore import InvalidError
from tests.support.disk import files_with, no_room
from tests.support.ledger_rows import rows

pytestmark = pytest.mark.served


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def written_anew(path: Path) -> int:
    """How often contents were removed from the ledger of a store, each time with all of its free pages."""
    [(count,)] = rows(path, "SELECT sum(value) FROM property WHERE name IN ('removals', 'rewritten')")
    return int(count)


def test_without_it_nothing_is_ever_evicted(path, clock):
    with graphstore.open(path, clock=clock) as store:
        store.record_event("deploy", "v1", id="event-1", occurred_at="1990-01-01")
        assert {"days": None, "bytes": None} == store.retention
    with graphstore.open(path, clock=clock) as store:
        assert [] == store.evict_old()
        assert "v1" == store.event("event-1").description


def test_each_opening_evicts_what_is_older_than_so_many_days(path, clock):
    with graphstore.open(path, clock=clock, retention_days=30) as store:
        store.record_event("deploy", "CONTENT-1", id="event-1")
        clock.move(days=1)
        store.record_event("deploy", "CONTENT-2", id="event-2")
        store.add_node("fact", {}, id="fact-1")
        clock.move(days=29, minutes=1)
        assert "stands" == store.inspect("event-1").node.standing
    with graphstore.open(path, clock=clock) as store:
        assert "evicted" == store.inspect("event-1").node.standing
        assert [] == files_with(path, "CONTENT-1")
        assert {"days": 30, "bytes": None} == store.retention
        assert "older than 30 days" == store.changes()[-1].reason
        clock.move(days=1)
        assert ["event-2"] == store.evict_old()
        clock.move(days=9999)
    with graphstore.open(path, read_only=True, clock=clock) as reader:
        assert {"days": 30, "bytes": None} == reader.retention
    with graphstore.open(path, clock=clock) as store:
        assert "stands" == store.inspect("fact-1").node.standing


def test_one_limit_given_leaves_the_other_and_none_removes_both(path, clock):
    with graphstore.open(path, clock=clock, retention_days=30) as store:
        store.set_retention(days=30, bytes=10_000)
    with graphstore.open(path, clock=clock, retention_days=60) as store:
        assert {"days": 60, "bytes": 10_000} == store.retention
        before = store.changes()
        store.set_retention(days=60, bytes=10_000)
        assert before == store.changes()
        store.set_retention()
    with graphstore.open(path, clock=clock) as store:
        assert {"days": None, "bytes": None} == store.retention


def test_it_is_kept_through_eviction_without_audit_and_a_dump(path, clock):
    with graphstore.open(path, clock=clock, retention_days=30) as store:
        store.record_event("deploy", "v1", id="event-1")
        store.evict(ids=["event-1"], keep_audit=False)
        assert {"days": 30, "bytes": None} == store.retention
        store.export(path.with_name("dump"))
    with graphstore.restore(path.with_name("dump"), path.with_name("again.gs"), clock=clock) as store:
        assert {"days": 30, "bytes": None} == store.retention


@pytest.mark.parametrize("value", (0, -1, 1.5, "30", True))
def test_bad_values_are_refused_and_nothing_is_made(path, value):
    for limit in ("retention_days", "retention_bytes"):
        with pytest.raises(InvalidError, match=limit):
            graphstore.open(path, **{limit: value})
    assert not path.exists()
    with graphstore.open(":memory:") as store:
        for limit in ("days", "bytes"):
            with pytest.raises(InvalidError, match=limit):
                store.set_retention(**{limit: value})


def test_a_reader_keeps_nothing(path):
    graphstore.open(path).close()
    with pytest.raises(InvalidError, match="reader"):
        graphstore.open(path, read_only=True, retention_days=30)


def test_more_days_than_there_were_are_allowed(path, clock):
    with graphstore.open(path, clock=clock, retention_days=10**9) as store:
        assert [] == store.evict_old()


def test_a_setting_of_a_transaction_that_fails_is_not_kept(store):
    with pytest.raises(RuntimeError), store.transaction():
        store.set_retention(days=30)
        raise RuntimeError
    assert {"days": None, "bytes": None} == store.retention


@pytest.mark.parametrize("durability", ("commit", "interval"))
def test_a_size_is_kept_and_the_ledger_seldom_written_anew(path, clock, durability):
    with graphstore.open(path, clock=clock, durability=durability, retention_bytes=600_000) as store:
        for number in range(1000):
            store.record_event(
                "deploy", f"v{number} " + "x" * 500, id=f"event-{number}", occurred_at=clock.move(minutes=1)
            )
            assert store.stats()["journal_bytes"] <= 600_000
        standing = [event.id for event in store.events()]
        assert [f"event-{number}" for number in range(999, 999 - len(standing), -1)] == standing
        assert len(standing) > 100
        assert 1 <= written_anew(path) <= 25
        assert () == store.verify().problems
    with graphstore.open(path, clock=clock) as store:
        assert standing == [event.id for event in store.events()]


@pytest.mark.parametrize("durability", ("commit", "interval"))
def test_what_remains_of_evicted_events_is_summed_up_so_that_the_size_is_kept(path, clock, durability):
    with graphstore.open(path, clock=clock, durability=durability, retention_bytes=20_000) as store:
        store.add_node("fact", {"says": "stays"}, id="fact")
        for number in range(1000):
            store.record_event(
                "deploy" if number % 4 else "lunch",
                f"v{number}",
                id=f"event-{number}",
                occurred_at=clock.move(minutes=10),
            )
            assert store.stats()["journal_bytes"] <= 20_000
        standing = [event.id for event in store.events()]
        assert [f"event-{number}" for number in range(999, 999 - len(standing), -1)] == standing
        assert len(standing) > 10

        told = [change for change in store.changes() if "removed without a trace" in (change.reason or "")]
        days = [change.tx.date() for change in told]
        assert 7 == len(days) == len({*days})  # one record a day
        summed = Counter[str]()
        for change in told:
            assert "the journal passed 20000 bytes" in change.reason
            for many, type in re.findall(r"(\d+) (deploy|lunch)", change.reason):
                summed[type] += int(many)
        tombstones = [change for change in store.changes() if change.verb == "evict" and change.subject]
        assert 1000 - len(standing) - len(tombstones) == summed.total()
        assert summed["lunch"] == pytest.approx(summed.total() / 4, abs=1)
        assert () == store.verify().problems
    with graphstore.open(path, clock=clock) as store:
        assert standing == [event.id for event in store.events()]
        assert {"says": "stays"} == store.node("fact").content


def test_an_aim_that_cannot_be_reached_costs_nothing(path, clock):
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"says": "x" * 9000})
        for number in range(20):
            store.record_event("deploy", f"v{number}", id=f"event-{number}", occurred_at=clock.move(days=1))
        assert [] == store.evict(larger_than=5000)
        assert 20 == len(list(store.events()))
        assert "nothing was evicted" in store.notices[-1]
        cut = clock.now - timedelta(days=10)
        assert [f"event-{number}" for number in range(9)] == store.evict(before=cut, larger_than=5000)


def test_where_tombstones_alone_pass_the_size_it_does_not_evict_at_each_commit(path, clock):
    with graphstore.open(path, clock=clock, retention_bytes=20_000) as store:
        for number in range(1000):
            store.record_event(
                "deploy", f"v{number}", id=f"event-{number}", occurred_at=clock.move(minutes=1)
            )
    assert written_anew(path) < 100


def test_a_size_is_kept_after_a_bulk_load(path, clock):
    with graphstore.open(path, clock=clock, retention_bytes=100_000) as store:
        store.bulk_load(events=[{"type": "deploy", "description": f"v{n} " + "x" * 900} for n in range(200)])
        assert store.stats()["journal_bytes"] <= 100_000


def test_a_commit_stays_though_the_disk_refuses_the_eviction_after_it(path, clock):
    with graphstore.open(path, clock=clock) as store:
        store.record_event(
            "deploy", "v0", metadata={"log": "x" * 500_000}, id="event-1", occurred_at="2026-01-01"
        )
        store.record_event("deploy", "v1", id="event-0")
        # what a commit writes has room, the pages of the long metadata that are overwritten have none
        with no_room((path / "ledger.db-wal").stat().st_size + 250_000):
            store.set_retention(bytes=4000)
            store.record_event("deploy", "v2", id="event-2")
        assert "v2" == store.event("event-2").description
        assert any("Nothing of this transaction was kept" in notice for notice in store.notices)
    with graphstore.open(path, clock=clock) as store:
        assert "v2" == store.event("event-2").description
        store.record_event("deploy", "v3", id="event-3")
        assert [] == files_with(path, "x" * 5000)


def test_where_evicting_all_events_would_not_do_the_older_half_goes(path, clock):
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"says": "x" * 5000})
        for number in range(4):
            store.record_event("deploy", f"v{number}", id=f"event-{number}", occurred_at=clock.move(days=1))
        store.set_retention(bytes=4000)
        assert ["event-3", "event-2"] == [event.id for event in store.events()]


def test_the_days_are_exact(path, clock):
    with graphstore.open(path, clock=clock, retention_days=1) as store:
        cut = clock.now
        store.record_event("deploy", "v1", id="at-the-cut", occurred_at=cut)
        store.record_event("deploy", "v2", id="before", occurred_at=cut - timedelta(microseconds=1))
        clock.move(days=1)
        assert ["before"] == store.evict_old()


def test_an_eviction_without_audit_still_says_by_whom_and_why(path, clock):
    with graphstore.open(path, clock=clock, author="ann") as store:
        store.record_event("deploy", "v1", id="event-1")
        store.evict(ids=["event-1"], reason="private", keep_audit=False)
        assert ("ann", "1 removed without a trace: private") == (
            store.changes()[-1].author,
            store.changes()[-1].reason,
        )
