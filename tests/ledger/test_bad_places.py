"""Places that cannot be opened: each is refused with what to do, and no file is made or changed."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import graphstore
from graphstore import GraphStoreError
from graphstore.ledger import mounts

pytestmark = pytest.mark.in_process("looks at the files of the store")

OPENINGS = [{}, {"read_only": True}, {"create": False}, {"durability": "interval"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder below one: when it was changed, and its bytes. No connection of this process may be open."""
    return {
        str(each.relative_to(folder)): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else b"")
        for each in folder.rglob("*")
        if each.is_file()
        or not any(each.glob("ledger.db"))  # SQLite looks for its WAL beside a ledger by making one
    }


def made(path: Path) -> Path:
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
    return path


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path / "ledger.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def a_newer_ledger(path: Path) -> None:
    changed(made(path), "PRAGMA user_version=99")


def a_newer_ledger_alone(path: Path) -> None:
    a_newer_ledger(path)
    for file in path.iterdir():
        if file.name != "ledger.db":
            file.unlink()


def a_text(path: Path) -> None:
    path.mkdir()
    (path / "ledger.db").write_bytes(b"this is not a database" * 100)


def an_empty_file(path: Path) -> None:
    path.mkdir()
    (path / "ledger.db").write_bytes(b"")


def another_database(path: Path) -> None:
    path.mkdir()
    changed(path, "CREATE TABLE mine (a)", "INSERT INTO mine VALUES (1)")


def another_database_with_a_wal(path: Path) -> None:
    path.mkdir()
    changed(path, "PRAGMA journal_mode=WAL", "CREATE TABLE mine (a)")


def a_folder_of_something_else(path: Path) -> None:
    (path / "photos").mkdir(parents=True)
    (path / "photos" / "one.jpg").write_bytes(b"a picture")


def a_file(path: Path) -> None:
    path.write_bytes(b"a text of mine")


BAD = {
    a_newer_ledger: r"ledger\.db has schema 99; this graphstore reads up to \d+\. Install a newer graphstore",
    a_newer_ledger_alone: r"ledger\.db has schema 99.*Install a newer graphstore",
    a_text: r"ledger\.db line 1: it is not a ledger, or damaged.*Restore a dump or a backup",
    an_empty_file: r"ledger\.db .*not the ledger of a store.*Give the folder of a store",
    another_database: r"ledger\.db is an SQLite database, but not the ledger of a store.*Give the folder of a store",
    another_database_with_a_wal: r"ledger\.db is an SQLite database, but not the ledger of a store.*Give the folder",
    a_folder_of_something_else: r"memory\.gs is a folder with other things in it and no store\. Give a new name",
    a_file: r"memory\.gs is a file, not a store\. A store is a folder",
}


@pytest.mark.parametrize("options", OPENINGS, ids=str)
@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_what_is_not_a_store_of_this_release_is_refused_and_not_touched(path, make, options):
    make(path)
    before = state(path.parent)

    for _ in range(2):
        with pytest.raises(GraphStoreError, match=BAD[make]):
            graphstore.open(path, **options)
    assert before == state(path.parent)


@pytest.fixture
def on_a_network(path, monkeypatch) -> None:
    """The folder of the test is on a network file system, as far as the system tells."""
    mounts_file = path.parent.with_name(f"{path.parent.name}-mountinfo")
    point = str(path.parent.resolve()).replace(" ", r"\040")
    mounts_file.write_text(
        f"22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:40 / {point} rw - nfs4 server:/team rw\n"
    )
    monkeypatch.setattr(mounts, "_MOUNTINFO", str(mounts_file))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name their mounts otherwise")
@pytest.mark.parametrize("there", [True, False], ids=["a store", "nothing yet"])
def test_a_network_file_system_is_refused_and_not_touched(path, there, request):
    if there:
        made(path)
    before = state(path.parent)
    request.getfixturevalue("on_a_network")

    for options in OPENINGS if there else ({}, {"durability": "interval"}):
        with pytest.raises(
            GraphStoreError, match=r"network file system \(nfs4.*Choose a folder on a local disk"
        ):
            graphstore.open(path, **options)
    assert before == state(path.parent)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name their mounts otherwise")
def test_a_dump_is_not_restored_onto_a_network_file_system(path, request, tmp_path_factory):
    dump = tmp_path_factory.mktemp("local") / "dump"
    with graphstore.open(made(path)) as store:
        store.export(dump)
    before = state(path.parent)
    request.getfixturevalue("on_a_network")

    with pytest.raises(GraphStoreError, match="network file system"):
        graphstore.restore(dump, path.with_name("new.gs"))
    assert before == state(path.parent)


@pytest.mark.parametrize("there", [True, False], ids=["a store", "nothing yet"])
def test_an_sqlite_that_is_too_old_is_refused_and_nothing_is_touched(path, there, monkeypatch):
    if there:
        made(path)
    before = state(path.parent)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.37.2")

    for options in OPENINGS if there else ({}, {"durability": "interval"}):
        with pytest.raises(
            GraphStoreError,
            match=r"has SQLite 3\.37\.2; a store needs 3\.38\.0 or newer\. Install a newer Python",
        ):
            graphstore.open(path, **options)
    assert before == state(path.parent)


def test_what_a_killed_creation_leaves_is_taken_away_by_the_next(path):
    path.mkdir()
    with closing(sqlite3.connect(path / "ledger.db.part", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE chain (half INTEGER)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO chain VALUES (1)")
        assert (path / "ledger.db.part-journal").exists()
        for name in ("journal", "wal", "shm"):
            (path / f"ledger.db.part-{name}").touch()
        (path / "ledger.db.part-journal").rename(path / "kept")
    (path / "kept").rename(path / "ledger.db.part-journal")
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        assert store.verify().ok
    assert not list(path.glob("*.part*"))
