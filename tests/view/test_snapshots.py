"""Snapshots: a coordinate by name, for ever."""

from __future__ import annotations

from datetime import date

import pytest

import graphstore
from graphstore import ConflictError, InvalidError, NotFoundError, Snapshot
from tests.conftest import day

pytestmark = pytest.mark.served


@pytest.fixture
def release(store, clock):
    """A limit that was raised, and described better, after the release was named."""
    store.add_node("fact", {"limit": 100}, id="limit", valid_from="2026-01-01")
    clock.set("2026-02-10")
    made = store.snapshot("release 1")
    clock.set("2026-02-20")
    store.revise("limit", {"limit": 300}, valid_from="2026-02-05")
    return made


def test_snapshot_is_the_present_coordinate_with_a_name(store, release):
    assert Snapshot(name="release 1", valid=day("2026-02-10"), tx=day("2026-02-10"), author=None) == release
    assert "release 1: valid 2026-02-10, as known at 2026-02-10" == str(release)


def test_view_of_a_snapshot_shows_what_was_known_then(store, release):
    assert {"limit": 100} == store.as_of("release 1").node("limit").content
    assert {"limit": 300} == store.node("limit").content
    assert store.as_of(valid=release.valid, tx=release.tx) == store.as_of("release 1")


def test_name_is_never_moved(store, release):
    before = store.changes()

    with pytest.raises(ConflictError, match="never moved"):
        store.snapshot("release 1")
    with pytest.raises(ConflictError, match="never moved"):
        store.snapshot(" release 1 ")
    assert (before, [release]) == (store.changes(), store.snapshots())


def test_snapshots_are_listed_in_the_order_they_were_made(store, clock):
    with store.transaction(author="ana"):
        store.snapshot("b")
    clock.move(days=1)
    store.snapshot("a")

    assert [("b", "ana"), ("a", None)] == [(one.name, one.author) for one in store.snapshots()]


def test_unknown_name_is_refused_with_the_nearest(store, release):
    with pytest.raises(NotFoundError, match=r"no snapshot 'relaese 1'\. Nearest: 'release 1'"):
        store.as_of("relaese 1")


@pytest.mark.parametrize("name", ["2026-01-30", "2026-01", "2026-13-45", "20260130", "2026-W05", "2026-01-30T10:00Z", "7",
                                  "2026-01-30 release"])  # fmt: skip
def test_name_that_looks_like_a_time_is_refused(store, name):
    with pytest.raises(InvalidError, match="looks like a time"):
        store.snapshot(name)
    assert [] == store.snapshots()


def test_a_date_in_place_of_a_name_is_a_valid_time(store, clock):
    store.add_node("fact", {"n": 1}, id="plan", valid_from="2027-01-15")

    for given in ("2027-01-15", date(2027, 1, 15), "15 January 2027", "2027-01"):
        view = store.as_of(given)
        assert ["plan"] == [node.id for node in view.nodes()]
        assert view.at.tx == store.as_of().at.tx
    with pytest.raises(InvalidError, match="valid '2026-13-45' is no ISO 8601 time"):
        store.as_of("2026-13-45")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\ud800", None, 7])
def test_name_must_be_a_line_of_text(store, name):
    with pytest.raises(InvalidError):
        store.snapshot(name)


@pytest.mark.parametrize(
    "name", ["v1", "release-2026-01-30", "2026 in short", "Müller & Söhne", "7 days", "snapshot:x"]
)
def test_any_other_line_is_a_name(store, name):
    store.snapshot(name)

    assert name == store.snapshots()[0].name
    assert store.as_of(name).at.tx == store.snapshots()[0].tx


def test_name_and_axes_at_once_are_refused(store, release):
    with pytest.raises(InvalidError, match="whole coordinate"):
        store.as_of("release 1", valid="2026-01-01")


def test_snapshot_in_a_transaction_has_all_of_it(store, clock):
    with store.transaction():
        store.add_node("fact", {}, id="before")
        store.snapshot("half")
        assert "before" == store.as_of("half").node("before").id
        store.add_node("fact", {}, id="after")

    assert ["before", "after"] == [node.id for node in store.as_of("half").nodes()]


def test_snapshot_of_a_block_that_fails_is_not_kept(store):
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.snapshot("half")
        raise ZeroDivisionError

    assert [] == store.snapshots()


def test_snapshot_is_known_after_reopening_to_followers_and_in_a_restored_dump(disk_store, clock, tmp_path):
    with graphstore.open(disk_store.path, read_only=True) as follower:
        disk_store.add_node("fact", {}, id="one")
        made = disk_store.snapshot("first")
        assert [made] == follower.snapshots()
        assert ["one"] == [node.id for node in follower.as_of("first").nodes()]
        with pytest.raises(InvalidError, match="read only"):
            follower.snapshot("mine")
    disk_store.export(tmp_path / "dump")
    disk_store.close()

    with graphstore.open(disk_store.path, clock=clock) as again:
        assert [made] == again.snapshots()
        assert again.verify().ok
    with graphstore.restore(tmp_path / "dump", tmp_path / "copy.gs", clock=clock) as copy:
        assert [made] == copy.snapshots()
        copy.export(tmp_path / "again")
    assert (tmp_path / "dump").read_bytes() == (tmp_path / "again").read_bytes()


def test_what_was_forgotten_is_not_in_a_snapshot_and_the_snapshot_stays(store, release):
    store.add_node("fact", {}, id="release 1")
    store.erase("limit", reason="asked to")
    store.evict(ids=["release 1"], keep_audit=False)

    assert [] == store.as_of("release 1").nodes()
    assert [release] == store.snapshots()


def test_changes_tell_which_snapshot_was_made_and_forgetting_a_thing_of_that_name_keeps_it(store):
    store.add_node("fact", {}, id="before")
    store.snapshot("before")
    assert [("snapshot", "before")] == [(each.verb, each.subject) for each in store.changes()][1:]

    store.evict(ids=["before"], keep_audit=False)

    assert ["before"] == [each.name for each in store.snapshots()]
    assert ("snapshot", "before") in [(each.verb, each.subject) for each in store.changes()]
    assert store.verify().ok
