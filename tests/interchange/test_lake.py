"""The whole history as Delta tables: what they say is what the store says, each row is there once whenever the follower is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import graphstore
from graphstore import ConflictError, GraphStore, InvalidError, NotFoundError
from graphstore.errors import EngineError
from graphstore.interchange import lake, sql
from graphstore.store import change_feed
from tests.cli.test_command_line import answer, refused
from tests.conftest import Clock, day
from tests.support import lake_worker
from tests.support.world import fill_further

pytestmark = pytest.mark.in_process("reads the rows of a store of its own")
DAYS = ("2026-01-20", "2026-02-01", "2026-02-04", "2026-05-01")
TABLES = {
    "nodes": "id",
    "versions": "ref, valid_from, tx_from",
    "events": "id, tx_from",
    "occurrences": "event_id, occurred_at",
    "links": "id, valid_from, tx_from",
    "operations": "tx, id",
}


@pytest.fixture
def folder(tmp_path) -> Path:
    """A store with something of everything, in it an event that was taken back for a while."""
    path = tmp_path / "store.gs"
    clock = Clock()
    with graphstore.open(path, clock=clock) as store:
        fill_further(store, clock)
    return path


@pytest.fixture
def store(folder) -> Iterator[GraphStore]:
    with graphstore.open(folder, clock=Clock("2026-06-01")) as opened:
        yield opened


def rows(uri: Path | str, text: str) -> list[tuple]:
    return lake.ask(str(uri), text).tuples()


def same(store: GraphStore, uri: Path | str, known: Iterable[str] = DAYS[1::2]) -> None:
    """The tables hold each row that the store's hold, once, and say the same at every coordinate. An event has a row for each period it was believed in."""
    for name, order in TABLES.items():
        if name != "events":
            asked = f"SELECT * FROM {name} ORDER BY {order}"
            assert sql.ask(store, asked).tuples() == rows(uri, asked), name
    for valid in DAYS:
        for tx in known:
            view = store.as_of(valid=day(valid), tx=day(tx))
            at = f"('{valid}', '{tx}')"
            nodes = rows(uri, f"SELECT id, ref, content FROM node_as_of{at}")
            assert [(node.id, node.ref, node.content) for node in sorted(view.nodes(), key=lambda each: each.id)] == [
                (id, ref, orjson.loads(content)) for id, ref, content in sorted(nodes)
            ]  # fmt: skip
            events = rows(uri, f"SELECT id FROM event_as_of{at}")
            assert sorted(event.id for event in view.events()) == sorted(id for (id,) in events)
            asked = f"SELECT id, source, kind, target, reason FROM link_as_of{at} ORDER BY id"
            assert sql.ask(store, asked).tuples() == rows(uri, asked)


def test_the_tables_say_what_the_store_says(store, tmp_path):
    assert lake.export_delta(store, tmp_path / "lake") > 0

    same(store, tmp_path / "lake", DAYS)
    assert sql.ask(store, "SELECT * FROM succession_as_of('sessions', now(), now())").tuples() == rows(
        tmp_path / "lake", "SELECT * FROM succession_as_of('sessions', now(), now())"
    )


def test_an_event_that_was_taken_back_for_a_while_did_not_happen_then(store, tmp_path):
    lake.export_delta(store, tmp_path / "lake")
    taken_back = next(
        each.tx for each in store.changes() if each.verb == "retract" and each.subject == "fell"
    )

    asked = "SELECT count(*) FROM event_as_of('2026-03-01', '{}') WHERE id = 'fell'"
    assert [(0,)] == rows(tmp_path / "lake", asked.format(taken_back))
    assert [(1,)] == rows(tmp_path / "lake", asked.format("2030-01-01"))


def test_what_is_recorded_later_is_appended_and_nothing_else(store, tmp_path):
    lake.export_delta(store, tmp_path / "lake", tx="2026-02-01")
    assert rows(tmp_path / "lake", "SELECT max(tx_from) < '2026-02-02' FROM versions") == [(True,)]
    first = {file: file.stat().st_mtime_ns for file in (tmp_path / "lake").rglob("*.parquet")}
    assert first

    assert lake.export_delta(store, tmp_path / "lake") > 0
    assert 0 == lake.export_delta(store, tmp_path / "lake")
    same(store, tmp_path / "lake")
    assert (
        first.items()
        <= {file: file.stat().st_mtime_ns for file in (tmp_path / "lake").rglob("*.parquet")}.items()
    )


def test_tables_of_an_earlier_release_get_the_column_that_they_lack(store, tmp_path, monkeypatch):
    uri, now = str(tmp_path / "lake"), lake.schema
    with monkeypatch.context() as earlier:
        earlier.setattr(
            lake, "schema", lambda name: pa.schema([each for each in now(name) if each.name != "history"])
        )
        lake.export_delta(store, uri)

    asked = "SELECT history, count(*) FROM links GROUP BY history ORDER BY history"
    [(unknown, before)] = rows(uri, asked)
    store.add_node("note", {"text": "old"}, id="an-old-note")
    store.link("an-old-note", "derived_from", store.nodes()[0].id, history=True)
    lake.export_delta(store, uri)

    assert unknown is None
    assert [(True, 1), (None, before)] == rows(uri, asked)


def test_a_table_that_has_nothing_of_a_long_history_is_written_once(tmp_path, monkeypatch):
    for module in (change_feed, lake):
        monkeypatch.setattr(module, "PART", 3)
    with graphstore.open(":memory:") as store:
        for number in range(20):
            store.add_node("fact", {"n": number}, id="n") if not number else store.revise("n", {"n": number})
        lake.export_delta(store, tmp_path / "lake")

        tables = lake.Lake(str(tmp_path / "lake"))
        assert 1 == tables.there("events").version() < tables.there("versions").version()
        assert 0 == lake.export_delta(store, tmp_path / "lake")
        assert 1 == tables.there("events").version()
    assert [(0, 20)] == rows(
        tmp_path / "lake", "SELECT (SELECT count(*) FROM events), count(*) FROM versions"
    )


def test_the_files_lie_by_the_month_of_their_tx(store, tmp_path):
    lake.export_delta(store, tmp_path / "lake")

    months = {folder.name for folder in (tmp_path / "lake" / "versions").glob("month=*")}
    assert {"month=2026-02"} <= months
    assert [] == rows(
        tmp_path / "lake",
        "SELECT * FROM versions_log WHERE month <> strftime(coalesce(tx_to, tx_from), '%Y-%m')",
    )


@pytest.mark.rest
def test_a_follower_killed_after_any_commit_loses_nothing_and_doubles_nothing(folder, store, tmp_path):
    store.close()
    killed = 0
    for step in (1, 1, 1, 2, 1, 3, 1, 2, 1, 5, 1, 1, 2, 100):
        done = subprocess.run([sys.executable, lake_worker.__file__, folder, tmp_path / "lake", str(step)])
        assert done.returncode in (0, -signal.SIGKILL)
        killed += done.returncode != 0
        if done.returncode == 0:
            break

    assert killed > 8
    with graphstore.open(folder) as again:
        same(again, tmp_path / "lake")


def test_of_two_followers_one_is_refused(store, tmp_path):
    lake.export_delta(store, tmp_path / "lake")
    store.add_node("fact", {"late": True}, id="late")
    feed = change_feed.ChangeFeed(store)
    behind = lake.Lake(str(tmp_path / "lake"))
    goal = feed.goal()["versions"]
    copy = behind._copy("versions", feed.identity(), goal)
    lake.export_delta(store, tmp_path / "lake")

    [(part, after)] = feed.parts("versions", copy.since, goal)
    with pytest.raises(ConflictError, match="written by somebody else"):
        behind._append(copy._replace(looked=after), "versions", part)
    assert [(1,)] == rows(tmp_path / "lake", "SELECT count(*) FROM versions WHERE node_id = 'late'")


@pytest.mark.rest
def test_small_files_become_large_ones(store, tmp_path, monkeypatch):
    monkeypatch.setattr(lake, "COMPACT_EVERY", 8)
    copy = lake.Lake(str(tmp_path / "lake"))
    for number in range(20):
        store.add_node("fact", {"n": number})
        copy.write_new(change_feed.ChangeFeed(store))

    assert len(copy.there("nodes").file_uris()) < 10
    same(store, tmp_path / "lake")


def test_files_are_made_one_with_those_that_are_not_large_beside_them():
    assert 100 == lake._small([1] * 100)
    assert 100 == lake._small([100, *[1] * 100])
    assert 500 == lake._small([100, 100, 100, 100, *[1] * 100])
    assert 0 == lake._small([100, 1])


@pytest.mark.rest
def test_what_others_append_between_two_looks_is_not_appended_again(store, tmp_path):
    first, feed = lake.Lake(str(tmp_path / "lake")), change_feed.ChangeFeed(store)
    first.write_new(feed)
    store.add_node("fact", {"by": "another"}, id="another")
    lake.export_delta(store, tmp_path / "lake")
    store.add_node("fact", {"by": "the first"}, id="own")

    assert first.write_new(feed).rows > 0
    assert first.write_new(feed)[:2] == (0, 0)
    same(store, tmp_path / "lake")


@pytest.mark.rest
def test_a_follower_that_goes_on_deletes_what_is_erased(store, tmp_path):
    copy, feed = lake.Lake(str(tmp_path / "lake")), change_feed.ChangeFeed(store)
    for number in range(12):
        store.add_node("fact", {"secret": f"kiwi-{number}"}, id=f"gone-{number}")
        copy.write_new(feed)
        store.erase(f"gone-{number}", reason="asked for")
        copy.write_new(feed)
        store.add_node("fact", {"open": number}, id=f"stays-{number}")
        copy.write_new(feed)

    assert [(24,)] == rows(
        tmp_path / "lake", "SELECT count(*) FROM nodes WHERE id LIKE 'gone-%' OR id LIKE 'stays-%'"
    )
    assert [(0, 24)] == rows(
        tmp_path / "lake",
        "SELECT count(*) FILTER (content LIKE '%kiwi%'), count(*) FROM versions WHERE node_id LIKE 'gone-%' OR node_id LIKE 'stays-%'",
    )
    same(store, tmp_path / "lake")


def test_what_is_erased_is_in_no_file(tmp_path):
    with graphstore.open(tmp_path / "store.gs") as store:
        store.add_node("fact", {"secret": "kiwi-7731"}, id="gone", reason="because kiwi-7731")
        store.add_node("fact", {"open": "pear-1"}, id="stays")
        store.link("stays", "uses", "gone", reason="for kiwi-7731")
        store.record_event("error", "kiwi-7731 fell", id="fell")
        lake.export_delta(store, tmp_path / "lake")
        store.erase("gone", reason="asked for")
        store.erase("fell", reason="asked for")
        lake.export_delta(store, tmp_path / "lake")

        for name, order in TABLES.items():
            if name != "events":
                asked = f"SELECT * FROM {name} ORDER BY {order}"
                assert sql.ask(store, asked).tuples() == rows(tmp_path / "lake", asked), name
    kept = [
        file for file in (tmp_path / "lake").rglob("*") if file.is_file() and b"kiwi" in file.read_bytes()
    ]
    assert [] == kept
    import duckdb

    for file in (tmp_path / "lake").rglob("*.parquet"):  # compressed: read as values too
        read = duckdb.sql(f"SELECT * FROM read_parquet('{file}')").to_arrow_table()
        assert "kiwi" not in str(read.to_pylist())


def test_tables_of_another_store_and_other_folders_are_refused(store, tmp_path):
    lake.export_delta(store, tmp_path / "lake")
    with graphstore.open(":memory:") as other:
        other.add_node("fact", {}, id="other")
        with pytest.raises(ConflictError, match="is a table of another store"):
            lake.export_delta(other, tmp_path / "lake")
    with pytest.raises(InvalidError, match="is no store that is open here"):
        lake.export_delta(store.as_of(), tmp_path / "lake")
    with pytest.raises(NotFoundError, match="no table nodes at"):
        lake.ask(str(tmp_path / "nothing"), "SELECT 1")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(EngineError, match="cannot be written"):
        lake.export_delta(store, tmp_path / "file")
    assert "mine" == (tmp_path / "file").read_text()


def test_a_store_restored_to_an_earlier_state_is_refused(store, tmp_path):
    store.export(tmp_path / "dump")
    store.add_node("fact", {}, id="later")
    lake.export_delta(store, tmp_path / "lake")
    with graphstore.restore(tmp_path / "dump", tmp_path / "earlier.gs") as earlier:
        earlier.add_node("fact", {}, id="elsewhere")
        with pytest.raises(ConflictError, match="a transaction that the store has not"):
            lake.export_delta(earlier, tmp_path / "lake")


def test_tables_removed_while_they_are_followed_end_it_and_an_empty_place_has_all(store, tmp_path):
    def removed(_: lake.Taken) -> None:
        shutil.rmtree(tmp_path / "lake")
        store.add_node("fact", {}, id="later")

    with pytest.raises(
        EngineError, match="Start again with the tables as they were left, or give an empty place"
    ):
        lake.follow(store, str(tmp_path / "lake"), removed, every=0)

    lake.export_delta(store, tmp_path / "new")
    assert [(1,)] == rows(tmp_path / "new", "SELECT count(*) FROM nodes WHERE id = 'later'")


def test_a_branch_has_tables_of_its_own(store, tmp_path):
    branch = store.branch("idea")
    branch.revise("n", {"n": "on the branch"})
    store.add_node("fact", {"n": 1}, id="only on the trunk")
    lake.export_delta(branch, tmp_path / "branch")
    same(branch, tmp_path / "branch")

    branch.add_node("fact", {"n": 2}, id="other")
    branch.link("other", "related_to", "n")
    branch.retract("other", reason="wrong")
    lake.export_delta(branch, tmp_path / "branch")
    same(branch, tmp_path / "branch")
    with pytest.raises(ConflictError, match="another store"):
        lake.export_delta(store, tmp_path / "branch")


def test_without_the_library_it_says_what_to_install(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(InvalidError, match=r"pip install 'graphstore\[lake\]'"):
        lake.export_delta(store, tmp_path / "lake")


# ----------------------------------------------------------------------------------- the command line


@pytest.mark.rest
def test_the_command_follows_and_keeps_up(folder, store, tmp_path):
    words = ["lake", "follow", str(folder), str(tmp_path / "lake"), "--every", "0.05", "--json"]
    follower = subprocess.Popen(
        [sys.executable, "-m", "graphstore", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert follower.stdout is not None
        json.loads(follower.stdout.readline())
        for number in range(200):
            store.add_node("fact", {"n": number}, id=f"told-{number}")
        wrote = time.monotonic()
        while True:
            try:
                [(count,)] = rows(tmp_path / "lake", "SELECT count(*) FROM nodes WHERE id LIKE 'told-%'")
            except EngineError:  # a file that was made a part of a larger one
                count = 0
            if count == 200:
                break
            assert time.monotonic() < wrote + 20, f"{count} of 200"
        same(store, tmp_path / "lake")
    finally:
        os.kill(follower.pid, signal.SIGTERM)
        assert 0 == follower.wait(20)


def test_the_commands_write_and_ask(folder, tmp_path):
    done = answer("export", folder, tmp_path / "lake", "--format", "delta")
    found = answer("lake", "sql", tmp_path / "lake", "SELECT count(*) AS nodes FROM nodes")
    with graphstore.open(folder, read_only=True) as store:
        assert [{"nodes": sql.ask(store, "SELECT count(*) FROM nodes").tuples()[0][0]}] == found

    assert done["rows_and_closings"] > 0
    assert 0 == answer("export", folder, tmp_path / "lake", "--format", "delta")["rows_and_closings"]
    said = refused("lake", "sql", tmp_path / "lake", "SELECT 1", "--storage", "region", code=2)
    assert "'region' is no setting" in said
