"""How connections are set up and held: durable, private, and never in the way of the WAL."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

import graphstore
from graphstore import EngineError, GraphStoreError, LockedError
from graphstore.ledger.checking import transactions
from graphstore.ledger.database import WAIT_BOUNDS, Database
from tests.support.disk import edit
from tests.support.ledger_rows import rows
from tests.support.old_release import open_old

pytestmark = pytest.mark.in_process("looks at the files of the store")

SQLITE_TRANSACTION = 22  # of sqlite3.h; the module has no name for it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("durability", "level"), [("commit", 2), ("interval", 1)])
def test_the_writing_connection_is_durable_and_deletes_securely(path, durability, level):
    with graphstore.open(path, durability=durability) as store:
        store.add_node("fact", {}, id="fact-a")
        writer = store._core.journal.database.writer
        found = {
            name: writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                "journal_mode",
                "synchronous",
                "secure_delete",
                "trusted_schema",
                "foreign_keys",
                "fullfsync",
            )
        }
        assert writer.isolation_level is None

    assert {
        "journal_mode": "wal", "synchronous": level, "secure_delete": 1, "trusted_schema": 0, "foreign_keys": 0, "fullfsync": 1,
    } == found  # fmt: skip


def test_the_lines_of_a_transaction_share_its_tx_and_are_numbered(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        store.bulk_load(versions=[{"node_id": f"n{number}", "content": {}} for number in range(9_000)])
    last = rows(path, "SELECT max(tx) FROM chain")[0][0]
    parts = rows(path, f"SELECT part, more FROM chain WHERE tx = {last} ORDER BY number")

    assert len(parts) > 1
    assert [(part, int(part < len(parts) - 1)) for part in range(len(parts))] == parts
    connection = sqlite3.connect(path / "ledger.db")
    with pytest.raises(sqlite3.IntegrityError, match=r"chain\.tx, chain\.part"):
        connection.execute("INSERT INTO chain SELECT number + 1000, tx, part, more, first_body, bodies, digest, head FROM chain WHERE tx = ?", (last,))  # fmt: skip
    connection.close()


# ---------------------------------------------------------------- what a reader holds

FILLS = """
import sys, graphstore
with graphstore.open(sys.argv[1], durability="interval") as store:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(800):
        store.add_node("fact", {"pad": "x" * 20_000}, id=f"of-another-{number}")
    print("done", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.rest
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_read_by_halves_does_not_let_the_wal_grow(path, read_only):
    """Views that are kept, and answers of which only the beginning was taken, hold no snapshot of SQLite's."""
    with graphstore.open(path) as store:
        store.bulk_load(
            versions=[{"node_id": f"n{number}", "content": {"pad": "y" * 100}} for number in range(3_000)]
        )
    with graphstore.open(path, read_only=read_only) as store, python(FILLS, path) as other:
        assert other.stdout is not None and "open\n" == other.stdout.readline()
        ledger = store._place.read_ledger()
        begun = [transactions(ledger.database), ledger.verbatim(), iter(store.nodes())]
        view = store.as_of()
        assert view.nodes() and all(next(each, None) is not None for each in begun)
        other.stdin.write("\n")
        other.stdin.flush()
        assert "done\n" == other.stdout.readline()
        assert 3_000 == len(view.nodes())
        size = (path / "ledger.db-wal").stat().st_size
        del begun
        ledger.close()
        other.communicate("\n")

    assert size < 12_000_000, size  # written were more than 16 MB; SQLite begins again from 4 MB on


@pytest.mark.rest
def test_a_store_synced_in_intervals_closes_beside_a_long_reader_with_all_it_knows(path):
    with graphstore.open(path, durability="interval") as store:
        store.add_node("fact", {}, id="before")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        reader = python(READS_ON, path / "ledger.db")
        assert reader.stdout is not None and "reading\n" == reader.stdout.readline()
        store.add_node("fact", {}, id="after")
    reader.communicate("\n")
    with graphstore.open(path) as store:
        assert [] == store.notices
        assert ["after", "before"] == sorted(node.id for node in store.nodes())
        assert 2 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]


LOCKS = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode=EXCLUSIVE")
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1.0)
"""


@pytest.mark.rest
@pytest.mark.parametrize("read_only", [True, False])
def test_who_opens_waits_while_sqlite_mends_a_wal_after_a_kill(path, read_only):
    """It does that under locks of its own, which this process takes here."""
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="first")
    with python(LOCKS, path / "ledger.db") as locker:
        assert locker.stdout is not None and "locked\n" == locker.stdout.readline()
        with graphstore.open(path, read_only=read_only) as store:
            assert ["first"] == [node.id for node in store.nodes()]
            assert store.verify().ok


# ---------------------------------------------------------------- what is counted and logged


def test_waits_refusals_and_checkpoints_are_counted(path):
    with graphstore.open(path) as store, graphstore.open(path, timeout=0.15) as other:
        before = sum(store._writing()[0].waits)
        for number in range(3):
            store.add_node("fact", {"pad": "x" * 9_000}, id=f"fact-{number}")
        writing, wal = store._writing()
        assert before + 3 == sum(writing.waits) and 0 == writing.refused
        assert 0 < writing.waited < 3
        assert (path / "ledger.db-wal").stat().st_size == wal > 27_000

        holder = python(HOLDS, path)
        assert holder.stdout is not None and "held\n" == holder.stdout.readline()
        with pytest.raises(LockedError):
            other.add_node("fact", {})
        assert 1 == other._writing()[0].refused
        holder.communicate("\n")
        other.add_node("fact", {})
        assert (1, len(WAIT_BOUNDS) + 1) == (sum(other._writing()[0].waits), len(other._writing()[0].waits))

        assert 0 == store._writing()[0].checkpoints
        edit(path, "PRAGMA wal_checkpoint")
        assert (1, 1) == (store._writing()[0].checkpoints, store._writing()[0].checkpoints)
        store.bulk_load(
            versions=[{"node_id": f"n{number}", "content": {"pad": "x" * 900}} for number in range(6_000)]
        )  # more than the 1,000 pages after which SQLite makes one itself
        assert 2 == store._writing()[0].checkpoints


HOLDS = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store, store.transaction():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.rest
def test_a_transaction_that_holds_the_lock_for_more_than_a_second_is_named_in_the_log(path, caplog):
    with graphstore.open(path) as store, caplog.at_level(logging.INFO, "graphstore"):
        with store.transaction():
            store.add_node("fact", {"says": "a secret"}, id="secret-id")
            store.link("secret-id", "uses", store.add_node("fact", {}).id)
        assert [] == caplog.messages
        with store.transaction():
            store.add_node("fact", {"says": "a secret"}, id="secret-two")
            store.retract("secret-id", reason="a secret")
            time.sleep(1.1)
        [message] = caplog.messages
        tx = store.changes()[-1].tx.isoformat().replace("+00:00", "Z")
        assert (
            f"the transaction {tx} (2 × add_node, retract) held the write lock of {path / 'ledger.db'} for 1."
            in message
        )
        assert "secret" not in message
        with pytest.raises(ZeroDivisionError), store.transaction():
            time.sleep(1.1)
            raise ZeroDivisionError
        assert "a transaction that wrote nothing" in caplog.messages[-1]


@pytest.mark.rest
def test_a_long_transaction_prints_nothing_where_nobody_logs(path):
    script = """
    import sys, time, graphstore
    with graphstore.open(sys.argv[1]) as store, store.transaction():
        store.add_node("fact", {})
        time.sleep(1.1)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)], capture_output=True, check=True
    )

    assert (b"", b"") == (run.stdout, run.stderr)


# ---------------------------------------------------------------- free pages


def free_pages(path: Path) -> int:
    return rows(path, "PRAGMA freelist_count")[0][0]


@pytest.fixture
def loose(path) -> Path:
    """A store whose file has many free pages."""
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
    connection = sqlite3.connect(path / "ledger.db", isolation_level=None)
    connection.execute("CREATE TABLE loose (pad)")
    connection.execute("INSERT INTO loose SELECT zeroblob(1000000) FROM chain, (SELECT 1 UNION SELECT 2)")
    connection.execute("DROP TABLE loose")
    connection.close()
    assert free_pages(path) > 400
    return path


def test_compact_gives_free_pages_back(loose):
    before = (loose / "ledger.db").stat().st_size
    done = graphstore.compact(loose)

    assert 0 == free_pages(loose)
    assert (before, (loose / "ledger.db").stat().st_size, True) == done
    assert done.after < 400_000 < done.before
    with graphstore.open(loose) as store:
        assert {"n": 1} == store.node("fact-a").content
        assert store.verify().ok


def test_compact_on_the_command_line_beside_an_open_store(loose):
    with graphstore.open(loose) as store:
        run = subprocess.run(
            [sys.executable, "-m", "graphstore", "compact", str(loose)],
            capture_output=True,
            text=True,
            check=True,
        )
        told = " ".join(run.stdout.split())
        assert f"{loose} has " in told and "bytes in its ledger, and had " in told
        assert 0 == free_pages(loose)
        assert {"n": 1} == store.node("fact-a").content
        store.add_node("fact", {}, id="after")
        assert store.verify().ok


READS_ON = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM body").fetchone()
print("reading", flush=True)
sys.stdin.readline()
"""


def test_compact_beside_a_long_reader_says_that_it_is_not_whole(loose, monkeypatch):
    monkeypatch.setattr("graphstore.ledger.database._BUSY", 0.2)
    reader = python(READS_ON, loose / "ledger.db")
    assert reader.stdout is not None and "reading\n" == reader.stdout.readline()
    assert not graphstore.compact(loose).whole
    reader.communicate("\n")

    assert graphstore.compact(loose).whole
    assert (loose / "ledger.db").stat().st_size < 400_000


@pytest.mark.parametrize("path", [":memory:", "https://example.org/store"])
def test_compact_refuses_what_is_not_a_folder(path):
    with pytest.raises(graphstore.InvalidError):
        graphstore.compact(path)


def test_compact_of_a_store_of_release_0_1_tells_how_to_upgrade_it(path):
    with open_old(path) as store:
        store.add_node("fact", {}, id="fact-a")
    with pytest.raises(EngineError, match=r"release 0\.1.*Open it once for writing"):
        graphstore.compact(path)
    assert not (path / "ledger.db").exists()


def test_compact_makes_no_store(path):
    with pytest.raises(graphstore.NotFoundError):
        graphstore.compact(path)
    assert not path.exists()


def test_compact_of_another_database_changes_nothing(path):
    path.mkdir()
    sqlite3.connect(path / "ledger.db", isolation_level=None).execute(
        "CREATE TABLE mine (a)"
    ).connection.close()
    before = (path / "ledger.db").read_bytes()
    with pytest.raises((graphstore.InvalidError, EngineError)):
        graphstore.compact(path)
    assert (before, ["ledger.db"]) == (
        (path / "ledger.db").read_bytes(),
        [file.name for file in path.iterdir()],
    )


def test_a_snapshot_that_cannot_be_ended_is_an_error_of_the_store_and_the_next_read_begins_anew(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky")

    def refuse_commit(action: int, what: str | None, *_: str | None) -> int:
        is_commit = action == SQLITE_TRANSACTION and what == "COMMIT"
        return sqlite3.SQLITE_DENY if is_commit else sqlite3.SQLITE_OK

    with closing(Database(path / "ledger.db", read_only=True)) as database:
        with pytest.raises(GraphStoreError, match="is damaged"), database.snapshot():
            database.rows("SELECT count(*) FROM chain")
            database.access().connection.set_authorizer(refuse_commit)

        with database.snapshot():
            assert [(1,)] == database.rows("SELECT count(*) FROM chain")


@contextmanager
def refusing(store: graphstore.GraphStore, *denied: tuple[int, str]) -> Iterator[None]:
    """A block in which the connection that writes refuses some actions of SQLite."""
    writer = store._core.journal.database.writer
    writer.set_authorizer(
        lambda action, what, *_: sqlite3.SQLITE_DENY if (action, what) in denied else sqlite3.SQLITE_OK
    )
    yield
    with suppress(sqlite3.ProgrammingError):  # the store may have closed it
        writer.set_authorizer(None)


NOT_TAKEN_BACK = ((sqlite3.SQLITE_INSERT, "all_period"), (sqlite3.SQLITE_SAVEPOINT, "ROLLBACK"))


@pytest.mark.parametrize("denied", [NOT_TAKEN_BACK, (*NOT_TAKEN_BACK, (SQLITE_TRANSACTION, "ROLLBACK"))])
def test_a_write_that_cannot_be_taken_back_is_not_kept_and_the_next_one_is(path, denied):
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky")
        with refusing(store, *denied), pytest.raises(EngineError, match="of this transaction") as refused:
            store.add_node("fact", {"says": "wet"}, id="sea")
        store.add_node("fact", {"says": "green"}, id="grass")

        assert "not kept" == refused.value.outcome
        assert {"sky", "grass"} == {node.id for node in store.nodes()}
        assert not store.verify().problems


def test_a_group_of_which_a_part_cannot_be_taken_back_is_not_kept(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "blue"}, id="sky")
        with pytest.raises(EngineError, match="of this transaction") as refused, store.together():
            store.add_node("fact", {"says": "wet"}, id="sea")
            with refusing(store, *NOT_TAKEN_BACK), pytest.raises(EngineError, match="not authorized"):
                store.add_node("fact", {"says": "green"}, id="grass")
            with pytest.raises(EngineError, match="not authorized"):
                store.add_node("fact", {"says": "grey"}, id="rock")
        store.add_node("fact", {"says": "red"}, id="rose")

        assert "not kept" == refused.value.outcome
        assert {"sky", "rose"} == {node.id for node in store.nodes()}
        assert not store.verify().problems


@pytest.mark.parametrize("denied", [(sqlite3.SQLITE_READ, "chain"), (sqlite3.SQLITE_READ, "property")])
def test_a_turn_that_fails_as_it_begins_leaves_the_next_thread_its_turn(path, denied):
    with graphstore.open(path, timeout=5) as store:
        store.add_node("fact", {"says": "blue"}, id="sky")
        with refusing(store, denied), pytest.raises(EngineError) as refused:
            store.add_node("fact", {"says": "wet"}, id="sea")
        thread = threading.Thread(
            target=store.add_node, args=("fact", {"says": "green"}), kwargs={"id": "grass"}
        )
        thread.start()
        thread.join(20)

        assert "not kept" == refused.value.outcome
        assert {"sky", "grass"} == {node.id for node in store.nodes()}
