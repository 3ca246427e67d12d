"""A store's folder with its ledger: what other processes see, what is refused, and what no file of the folder keeps."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

import graphstore
from graphstore import DamageError, EngineError, InvalidError
from graphstore.ledger.chain import digest_of, dumps
from graphstore.ledger.database import SCHEMA
from graphstore.memory.recall import recall

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.in_process("looks at the files of the store"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs signals, limits and modes of POSIX"),
]
AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may become another user"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.gs"


def run(script: str, *arguments: object, code: int = 0) -> str:
    """Run a script in a process of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert code == done.returncode, done.stdout + done.stderr
    return done.stdout


def begun(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script in a process of its own, which has printed its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline(), "the process ended"
    return process


def ended(process: subprocess.Popen[str], text: str = "\n") -> str:
    """Let a process go on, and return what it printed until its end."""
    told, _ = process.communicate(text, timeout=60)
    assert 0 == process.returncode, told
    return told


def edited(path: Path, statement: str, *values: object) -> list[tuple]:
    """Run a statement on the ledger of a store that this process has not open."""
    connection = sqlite3.connect(path / "ledger.db", isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def ids(store: graphstore.GraphStore) -> list[str]:
    return sorted(node.id for node in store.nodes())


def filled(path: Path) -> Path:
    with graphstore.open(path, author="maria") as store:
        for number in range(12):
            store.add_node(
                "fact", {"n": number, "text": f"the text of fact {number}"}, id=f"fact-{number:02}"
            )
        store.revise("fact-03", {"n": 33})
        store.link("fact-01", "uses", "fact-02")
    return path


# ---------------------------------------------------------------- several stores on one folder

ADDS = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    store.add_node("fact", {"n": 1}, id=sys.argv[2])
"""


def test_two_stores_of_one_process_see_and_keep_what_each_writes(path):
    with graphstore.open(path) as one, graphstore.open(path) as two:
        one.add_node("fact", {"n": 1}, id="of-one")
        assert {"n": 1} == two.node("of-one").content
        two.revise("of-one", {"n": 2})
        view = two.as_of()
        one.revise("of-one", {"n": 3})
        assert ({"n": 3}, {"n": 2}) == (two.node("of-one").content, view.node("of-one").content)
        for number in range(20):
            (one, two)[number % 2].add_node("fact", {}, id=f"turn-{number:02}")
        assert ids(one) == ids(two)
        assert one.verify().ok
    with graphstore.open(path) as store:
        assert 21 == len(store.nodes())
        assert store.verify().ok


def test_another_process_sees_what_was_committed_and_its_view_stays(path):
    with graphstore.open(path) as store:
        store.add_node("fact", {"n": 1}, id="fact-a")
        view = store.as_of()
        run(ADDS, path, "of-another")
        assert ["fact-a", "of-another"] == ids(store)
        assert ["fact-a"] == sorted(node.id for node in view.nodes())
        assert store.node("of-another").tx_from > store.node("fact-a").tx_from
        assert store.verify().ok


def test_a_reader_of_this_process_follows_without_being_asked(path):
    with graphstore.open(path) as store, graphstore.open(path, read_only=True) as reader:
        store.add_node("fact", {}, id="fact-a")
        assert ["fact-a"] == ids(reader)
        with pytest.raises(InvalidError, match="read_only"):
            reader.add_node("fact", {})


@pytest.mark.parametrize("years", [-30, -1])
def test_tx_rises_though_the_clock_is_set_back(path, years):
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
        last = store.node("before").tx_from
    early = datetime.now(UTC) + timedelta(days=365 * years)
    with graphstore.open(path, clock=lambda: early) as store:
        store.add_node("fact", {}, id="after")
        store.add_node("fact", {}, id="later")
        assert last < store.node("after").tx_from < store.node("later").tx_from
        assert any("behind the last transaction" in notice for notice in store.notices)
        assert store.verify().ok


# ---------------------------------------------------------------- fork

FORKS = """
import os, sys, graphstore
store = graphstore.open(sys.argv[1])
store.add_node("fact", {}, id="before-the-fork")
list(store.nodes())
child = os.fork()
if child == 0:
    try:
        store.add_node("fact", {}, id="through-the-parents-store")
        os.write(1, b"written\\n")
    except graphstore.GraphStoreError as error:
        os.write(1, f"refused: {error}\\n".encode())
    with graphstore.open(sys.argv[1]) as own:
        for number in range(30):
            own.add_node("fact", {}, id=f"of-the-child-{number:02}")
    os._exit(0)
for number in range(30):
    store.add_node("fact", {}, id=f"of-the-parent-{number:02}")
_, status = os.waitpid(child, 0)
assert status == 0, status
print(len(store.nodes()))
assert store.verify().ok
store.close()
"""


def test_a_forked_child_opens_the_folder_itself_and_nothing_is_lost(path):
    told = run(FORKS, path).splitlines()
    assert told[0].startswith("refused: this store was opened before a fork")
    assert "61" == told[-1]
    with graphstore.open(path) as store:
        assert 61 == len(store.nodes())
        assert store.verify().ok


FORKS_IN_USE = """
import os, sys, graphstore
store = graphstore.open(sys.argv[1])
with store.transaction():
    store.add_node("fact", {}, id="in-the-block")
    child = os.fork()
    if child == 0:
        for again in (lambda: graphstore.open(sys.argv[1]), lambda: graphstore.open(sys.argv[1], read_only=True)):
            try:
                again()
                os.write(1, b"opened\\n")
            except graphstore.EngineError as error:
                os.write(1, f"refused: {error}\\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
store.add_node("fact", {}, id="after")
store.close()
"""


def test_a_child_forked_within_a_transaction_is_refused_and_told_to_spawn(path):
    told = run(FORKS_IN_USE, path).splitlines()
    assert 2 == len(told)
    assert all(line.startswith("refused:") and "spawn" in line for line in told), told
    with graphstore.open(path) as store:
        assert ["after", "in-the-block"] == ids(store)
        assert store.verify().ok


# ---------------------------------------------------------------- the folder is elsewhere


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced", "ledger deleted", "ledger replaced"])
def test_a_write_into_a_folder_that_is_elsewhere_is_refused(path, how):
    with graphstore.open(path) as store:
        store.add_node("fact", {}, id="before")
    shutil.copytree(path, path.with_name("backup.gs"))
    store = graphstore.open(path)
    store.add_node("fact", {}, id="second")
    if how in ("moved", "replaced"):
        path.rename(path.with_name("moved.gs"))
    elif how == "deleted":
        shutil.rmtree(path)
    else:
        (path / "ledger.db").unlink()
    if how == "replaced":
        shutil.copytree(path.with_name("backup.gs"), path)
    if how == "ledger replaced":
        shutil.copyfile(path.with_name("backup.gs") / "ledger.db", path.with_name("part"))
        path.with_name("part").replace(path / "ledger.db")
    for _ in range(2):
        with pytest.raises(EngineError, match="moved, removed or replaced") as refused:
            store.add_node("fact", {}, id="lost")
        assert "not kept" == refused.value.outcome
    store.close()
    if how == "moved":
        with graphstore.open(path.with_name("moved.gs")) as again:
            assert ["before", "second"] == ids(again)
            assert again.verify().ok


def test_a_copied_folder_opens_and_goes_its_own_way(path):
    filled(path)
    copy = path.with_name("copy.gs")
    shutil.copytree(path, copy)
    with graphstore.open(copy) as store, graphstore.open(path) as original:
        assert ids(original) == ids(store)
        store.add_node("fact", {}, id="of-the-copy")
        assert "of-the-copy" not in ids(original)
        assert store.verify().ok
        assert original.verify().ok


# ---------------------------------------------------------------- the disk is full

LIMITED = """
import resource, sys, graphstore

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

store = graphstore.open(sys.argv[1])
store.add_node("fact", {"n": 1}, id="fact-a")
kept = store.versions("fact-a")
pad = "x" * 200_000
refused = 0
limit(100_000)
for verb in (
    lambda: store.add_node("fact", {"pad": pad}, id="fact-b"),
    lambda: store.revise("fact-a", {"pad": pad}),
    lambda: store.bulk_load(versions=[{"node_id": f"bulk-{n}", "content": {"pad": pad}} for n in range(20)]),
):
    try:
        verb()
    except graphstore.EngineError as error:
        refused += 1
        assert error.outcome == "not kept", (error, error.outcome)
        assert "Nothing of this transaction was kept" in str(error), error
    assert ["fact-a"] == [node.id for node in store.nodes()]
    assert kept == store.versions("fact-a")
assert refused == 3
limit(resource.RLIM_INFINITY)
store.add_node("fact", {"pad": pad}, id="fact-b")
assert store.verify().ok
store.close()
print("done")
"""


def test_a_file_that_may_not_grow_refuses_and_the_store_goes_on(path):
    assert "done\n" == run(LIMITED, path)
    with graphstore.open(path) as store:
        assert ["fact-a", "fact-b"] == ids(store)
        assert store.verify().ok


FULL = """
import os, sys, graphstore
path, filler = sys.argv[1:]
store = graphstore.open(path)
store.add_node("fact", {"n": 1}, id="fact-a")
with open(filler, "wb") as file:
    free = os.statvfs(path).f_bavail * os.statvfs(path).f_frsize
    file.write(bytes(max(0, free - 100_000)))
acknowledged = []
for number in range(40):
    try:
        store.add_node("fact", {"pad": "x" * 50_000}, id=f"fact-{number:02}")
        acknowledged.append(f"fact-{number:02}")
    except graphstore.EngineError as error:
        assert error.outcome == "not kept", (error, error.outcome)
        assert "space" in str(error), error
        break
else:
    raise AssertionError("the disk never was full")
assert ["fact-a", *acknowledged] == sorted((node.id for node in store.nodes()), key=lambda id: (id != "fact-a", id))
os.unlink(filler)
store.add_node("fact", {"pad": "x" * 50_000}, id="last")
assert store.verify().ok
store.close()
with graphstore.open(path) as store:
    assert {"fact-a", "last", *acknowledged} == {node.id for node in store.nodes()}
    assert store.verify().ok
print("done")
"""


@AS_ROOT
def test_a_full_disk_refuses_and_the_store_goes_on(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be made here")
    try:
        assert "done\n" == run(FULL, disk / "memory.gs", disk / "filler")
    finally:
        subprocess.run(["umount", str(disk)], check=False)


# ---------------------------------------------------------------- media that cannot be written

READS = """
import os, sys, graphstore
with graphstore.open(":memory:") as warm:  # what is imported later cannot be read by another user
    warm.add_node("fact", {})
    warm.query("MATCH (n:Node) RETURN count(*) AS n").single()
    warm.verify()
with graphstore.open(sys.argv[1] + ".warm") as warm, graphstore.open(sys.argv[1] + ".warm", read_only=True) as reader:
    reader.nodes()
os.chdir("/")
os.setgid(65534)
os.setuid(65534)
with graphstore.open(sys.argv[1], read_only=True) as store:
    print(sorted(node.id for node in store.nodes()))
    print(store.verify().ok)
    print(store.query("MATCH (n:Node) RETURN count(*) AS n").single()["n"])
"""

KILLED = """
import os, signal, sys, graphstore
store = graphstore.open(sys.argv[1])
store.add_node("fact", {"n": 1}, id="fact-b")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A place that other users reach. The temporary folders of pytest are closed to them again whenever another run begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "memory.gs"


def locked_away(path: Path) -> None:
    """Make a folder and its files readable only, for everybody."""
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)


def removed_files(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir() if file.name.startswith("ledger"))


@AS_ROOT
def test_read_only_media_open_after_a_clean_close(public_path):
    with graphstore.open(public_path) as store:
        store.add_node("fact", {}, id="fact-a")
    assert ["ledger.db"] == removed_files(public_path)
    locked_away(public_path)
    assert ["['fact-a']", "True", "1"] == run(READS, public_path).splitlines()
    assert ["ledger.db"] == removed_files(public_path)


@AS_ROOT
@pytest.mark.parametrize("with_shm", [True, False])
def test_read_only_media_open_after_a_kill_with_all_that_was_acknowledged(public_path, with_shm):
    with graphstore.open(public_path) as store:
        store.add_node("fact", {}, id="fact-a")
    run(KILLED, public_path, code=-9)
    assert (public_path / "ledger.db-wal").stat().st_size > 0
    if not with_shm:
        (public_path / "ledger.db-shm").unlink()
    locked_away(public_path)
    before = removed_files(public_path)
    assert ["['fact-a', 'fact-b']", "True", "2"] == run(READS, public_path).splitlines()
    assert before == removed_files(public_path)


FOLLOWS = """
import os, sys, graphstore
with graphstore.open(":memory:") as warm:  # what is imported later cannot be read by another user
    warm.add_node("fact", {})
    warm.query("MATCH (n:Node) RETURN count(*) AS n").single()
    warm.verify()
with graphstore.open(sys.argv[1] + ".warm") as warm, graphstore.open(sys.argv[1] + ".warm", read_only=True) as reader:
    reader.nodes()
os.chdir("/")
os.setgid(65534)
os.setuid(65534)
store = graphstore.open(sys.argv[1], read_only=True)
print(sorted(node.id for node in store.nodes()), flush=True)
for line in sys.stdin:
    print(sorted(node.id for node in store.nodes()), flush=True)
"""


@AS_ROOT
@pytest.mark.parametrize("writing", [True, False])
def test_a_reader_without_the_right_to_write_follows_a_writer(public_path, writing):
    """Also one that found no writer when it opened."""
    graphstore.open(public_path).close()
    store = graphstore.open(public_path) if writing else None
    locked_away(public_path)
    reader = begun(FOLLOWS, public_path)
    store = store or graphstore.open(public_path)
    for file in public_path.glob("ledger.db*"):
        file.chmod(0o644)
    store.add_node("fact", {}, id="fact-a")
    told = ended(reader)
    store.close()
    assert ["['fact-a']"] == told.splitlines()


# ---------------------------------------------------------------- open() is never called on the ledger

AUDITED = """
import os, sys
held = [False]

def audit(event, arguments):
    if event == "open" and held[0]:
        name = os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes)) else ""
        if os.path.basename(name) in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
            os.write(2, f"open() of {name}\\n".encode())
            import traceback
            traceback.print_stack()
            os._exit(3)

sys.addaudithook(audit)
import graphstore
from graphstore.interchange import formats
from graphstore.memory.recall import recall
path, out = sys.argv[1:]
store = graphstore.open(path, author="maria")
held[0] = True
for number in range(5):
    store.add_node("fact", {"n": number}, id=f"fact-{number}")
store.revise("fact-1", {"n": 11})
store.link("fact-1", "uses", "fact-2")
store.record_event("deploy", "v1", id="the-deploy")
store.bulk_load(versions=[{"node_id": "bulk", "content": {"a": 1}}])
store.query("MATCH (n:Node) RETURN count(*)").rows()
store.query_tables("MATCH (n:Node) RETURN count(*)").rows()
recall(store, "fact")
store.branch("draft").add_node("fact", {}, id="on-branch")
store.merge("draft")
store.stats()
store.changes()
store.to_arrow()
store.verify()
graphstore.verify(path)
store.export(out + "/dump")
formats.export(store, out + "/graph.xml", format="graphml")
with graphstore.open(path, read_only=True) as reader:
    reader.nodes()
    reader.verify()
with graphstore.open(path) as second:
    second.add_node("fact", {}, id="of-the-second")
store.erase("fact-3", reason="asked for")
store.evict(ids=["the-deploy"])
store.evict(ids=["bulk"], keep_audit=False)
store.rebuild()
store.verify()
graphstore.compact(path)
with graphstore.restore(out + "/dump", out + "/again.gs") as again:
    again.nodes()
store.close()
held[0] = False
print("done")
"""


def test_no_call_opens_the_files_of_a_ledger_that_is_open(tmp_path):
    """Closing a second descriptor of these files would drop SQLite's locks."""
    assert "done" == run(AUDITED, tmp_path / "memory.gs", tmp_path).splitlines()[-1]


# ---------------------------------------------------------------- what is refused


def unchanged(path: Path) -> bytes:
    return (path / "ledger.db").read_bytes()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_ledger_is_refused_and_not_touched(path, read_only):
    filled(path)
    edited(path, "PRAGMA user_version=99")
    before = unchanged(path)
    with pytest.raises(EngineError, match=r"schema 99.*Install a newer graphstore"):
        graphstore.open(path, read_only=read_only)
    assert before == unchanged(path)


def test_a_ledger_that_is_upgraded_while_it_is_open_refuses_to_be_written(path):
    filled(path)
    with graphstore.open(path) as store:
        script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version=99')"
        run(script, path / "ledger.db")
        with pytest.raises(EngineError, match="Install a newer graphstore"):
            store.add_node("fact", {})
        run(script.replace("=99", f"={SCHEMA}"), path / "ledger.db")
        store.add_node("fact", {}, id="after")
    with graphstore.open(path) as store:
        assert "after" in ids(store)
        assert store.verify().ok


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_stops_reading_when_another_release_upgrades_its_ledger(path, read_only):
    filled(path)
    script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version=99')"
    with graphstore.open(path, read_only=read_only) as store:
        view = store.as_of()
        assert 12 == len(store.nodes())
        run(script, path / "ledger.db")
        for read in (store.nodes, store.as_of, lambda: store.node("fact-01"), store.changes, store.stats):
            for _ in range(2):
                with pytest.raises(EngineError, match=r"schema 99.*Install a newer graphstore"):
                    read()
        with pytest.raises(EngineError, match=r"schema 99.*Install a newer graphstore"):
            view.nodes()  # its rows may be others by now
        run(script.replace("=99", f"={SCHEMA}"), path / "ledger.db")


@pytest.mark.parametrize("content", [b"", b"this is no database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_ledger_is_refused_and_not_touched(path, content):
    path.mkdir()
    (path / "ledger.db").write_bytes(content)
    for read_only in (True, False):
        with pytest.raises((DamageError, InvalidError)):
            graphstore.open(path, read_only=read_only)
        assert content == unchanged(path)


def test_another_database_is_refused_and_not_touched(path):
    path.mkdir()
    edited(path, "CREATE TABLE mine (a)")
    before = unchanged(path)
    for read_only in (True, False):
        with pytest.raises(InvalidError, match="not the ledger of a store"):
            graphstore.open(path, read_only=read_only)
        assert before == unchanged(path)


def test_a_head_that_requires_an_unknown_feature_is_refused_by_name(path):
    filled(path)
    [(number, digest, tx, first)] = edited(
        path, "SELECT number, digest, tx, first_body + bodies FROM chain ORDER BY number DESC LIMIT 1"
    )
    head = dumps({"tx": "2030-01-01T00:00:00Z", "ops": [], "body": [], "prev": digest, "requires": ["wings"]})
    edited(
        path,
        "INSERT INTO chain VALUES (?, ?, 0, 0, ?, 0, ?, ?)",
        number + 1,
        tx + 1,
        first,
        digest_of(head),
        head,
    )
    for read_only in (True, False):
        with pytest.raises(EngineError, match=r"requires wings.*Install a newer graphstore"):
            graphstore.open(path, read_only=read_only)
    assert not graphstore.verify(path).ok


# ---------------------------------------------------------------- damage


def flips(path: Path) -> list[tuple[str, str, int, int]]:
    """200 places to damage: a table, a column, the number of a row, a byte in it."""
    chance, found = random.Random(17), []
    rows = [
        (table, column, number, size)
        for table, column in (("body", "data"), ("chain", "head"), ("chain", "digest"))
        for number, size in edited(path, f"SELECT number, length({column}) FROM {table}")
        if size
    ]
    for number in range(200):
        table, column, row, size = rows[number % len(rows)]
        found.append((table, column, row, chance.randrange(size)))
    return found


def test_every_flipped_byte_is_found(path):
    filled(path)
    for table, column, number, at in flips(path):
        [(good,)] = edited(path, f"SELECT {column} FROM {table} WHERE number = ?", number)
        raw = bytearray(good.encode() if isinstance(good, str) else good)
        raw[at] ^= 0x01
        bad = raw.decode() if isinstance(good, str) else bytes(raw)
        edited(path, f"UPDATE {table} SET {column} = ? WHERE number = ?", bad, number)
        found = graphstore.verify(path)
        assert not found.ok, (table, column, number, at)
        assert any(str(number) in problem.message for problem in found.problems)
        edited(path, f"UPDATE {table} SET {column} = ? WHERE number = ?", good, number)
    assert graphstore.verify(path).ok


def test_a_store_that_is_open_finds_flipped_bytes_too(path):
    filled(path)
    with graphstore.open(path) as store:
        [(number,)] = _elsewhere(path, "SELECT max(number) FROM body")
        _elsewhere(path, f"UPDATE body SET data = CAST('{{' AS BLOB) WHERE number = {number}")
        assert not store.verify().ok


def _elsewhere(path: Path, statement: str) -> list[tuple]:
    script = (
        "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "print(json.dumps(c.execute(sys.argv[2]).fetchall()))"
    )
    return [tuple(row) for row in orjson.loads(run(script, path / "ledger.db", statement))]


def test_a_read_of_a_flipped_body_is_damage_and_the_rest_is_read(path):
    filled(path)
    wanted = b"the text of fact 7"
    for number, data in edited(path, "SELECT number, data FROM body"):
        if wanted in data:
            edited(
                path,
                "UPDATE body SET data = ? WHERE number = ?",
                data.replace(wanted, b"the text of fact 9"),
                number,
            )
            break
    with graphstore.open(path) as store:
        wrong = f"body {number}: its bytes do not match their checksum, version 1 of 'fact-07'"
        with pytest.raises(DamageError, match=wrong) as found:
            store.node("fact-07")
        assert str(path / "ledger.db") in str(found.value)
        assert {"n": 8, "text": "the text of fact 8"} == store.node("fact-08").content
        store.add_node("fact", {}, id="goes-on")
        assert "goes-on" == store.node("goes-on").id


def test_a_checksum_that_was_forged_with_its_body_is_found_by_the_chain(path):
    filled(path)
    [(number, data)] = edited(
        path,
        "SELECT number, data FROM body WHERE instr(data, CAST('fact 5' AS BLOB)) ORDER BY number LIMIT 1",
    )
    forged = data.replace(b"fact 5", b"fact 6")
    edited(
        path, "UPDATE body SET data = ?, checksum = ? WHERE number = ?", forged, zlib.crc32(forged), number
    )
    assert not graphstore.verify(path).ok


# ---------------------------------------------------------------- erasing

SECRET = "correct horse battery staple"

SEARCH = """
import pathlib, sys
for file in pathlib.Path(sys.argv[1]).rglob("*"):
    if file.is_file() and any(word.encode() in file.read_bytes() for word in sys.argv[2:]):
        print(file.name)
"""


def having(path: Path, *words: str) -> list[str]:
    """The files of a folder that contain one of these words: another process looks."""
    return run(SEARCH, path, *words).splitlines()


def test_no_file_of_the_folder_has_what_was_erased(path):
    with graphstore.open(path) as store:
        for number in range(90):
            store.add_node(
                "fact",
                {"text": f"{SECRET} {number}", "pad": "p" * number * 40},
                id=f"secret-{number:03}",
            )
            store.add_node("fact", {"text": "public"}, id=f"public-{number:03}")
        store.query_tables("MATCH (n:Node) RETURN count(*)")
        recall(store, "horse")
        assert having(path, SECRET)
        for number in range(90):
            if number % 3:
                store.erase(f"secret-{number:03}", reason="asked for")
            elif number % 2:
                store.evict(ids=[f"secret-{number:03}"])
            else:
                store.evict(ids=[f"secret-{number:03}"], keep_audit=False)
        assert [] == having(path, SECRET, "staple")
        assert store.verify().ok
    assert [] == having(path, SECRET, "staple")
    with graphstore.open(path) as store:
        assert 90 == len(store.nodes())
        assert store.verify().ok
    assert [] == having(path, SECRET, "staple")


def test_an_erasure_leaves_nothing_in_gaps_of_pages_and_in_free_pages(path):
    """`secure_delete` clears what is deleted, but not what was left elsewhere in the file before."""
    with graphstore.open(path) as store:
        for number in range(40):
            store.add_node("fact", {"pad": "p" * 200}, id=f"fact-{number:02}")
    connection = sqlite3.connect(path / "ledger.db", isolation_level=None)
    connection.execute("PRAGMA secure_delete=OFF")
    connection.execute("UPDATE body SET data = CAST(? || data AS BLOB) WHERE number = 20", (SECRET * 3,))
    connection.execute("UPDATE body SET data = substr(data, ?) WHERE number = 20", (len(SECRET * 3) + 1,))
    connection.execute("CREATE TABLE loose (pad)")
    connection.execute("INSERT INTO loose SELECT ? FROM body", (f"staple {'x' * 900}",))
    connection.execute("DROP TABLE loose")
    connection.close()
    assert ["ledger.db"] == having(path, SECRET) == having(path, "staple xxx")
    before = (path / "ledger.db").stat().st_size

    with graphstore.open(path) as store:
        store.erase("fact-07", reason="asked for")
        assert [] == having(path, SECRET, "staple xxx")
        assert 39 == len(store.nodes())
        assert store.verify().ok
    assert (path / "ledger.db").stat().st_size < before
    assert [(0,)] == edited(path, "PRAGMA freelist_count")


@pytest.mark.rest
def test_an_erasure_does_not_take_a_sync_in_the_interval_for_a_reader(path):
    """SQLite refuses a checkpoint at once while another connection makes one."""
    with graphstore.open(path, durability="interval") as store:
        for number in range(30):
            store.bulk_load(
                versions=[{"node_id": f"n{number}-{n}", "content": {"pad": "p" * 900}} for n in range(60)]
            )
            time.sleep(0.045)
            store.evict(ids=[f"n{number}-1"])
        assert [] == store.notices


READS_ON = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM body").fetchone()
print("reading", flush=True)
sys.stdin.readline()
"""


def test_an_erasure_beside_a_long_reader_is_told_and_finished_later(path, monkeypatch):
    monkeypatch.setattr("graphstore.ledger.database._BUSY", 0.5)
    with graphstore.open(path) as store:
        store.add_node("fact", {"text": SECRET}, id="secret")
        reader = begun(READS_ON, path / "ledger.db")
        store.erase("secret", reason="asked for")
        assert any("bytes of what was erased" in notice for notice in store.notices), store.notices
        assert having(path, SECRET)
        assert "erased" == store.inspect("secret").node.standing
        store.add_node("fact", {}, id="after")
        store.close()
    ended(reader)
    with graphstore.open(path) as store:
        assert not store.notices
        assert [] == having(path, SECRET)
        assert store.verify().ok
    assert [] == having(path, SECRET)


@pytest.mark.parametrize("by", ["who erased", "another store"])
def test_an_erasure_beside_a_long_reader_is_finished_by_who_writes_next(path, monkeypatch, by):
    monkeypatch.setattr("graphstore.ledger.database._BUSY", 0.5)
    with graphstore.open(path) as one, graphstore.open(path) as two:
        one.add_node("fact", {"text": SECRET}, id="secret")
        reader = begun(READS_ON, path / "ledger.db")
        one.erase("secret", reason="asked for")
        writer = one if by == "who erased" else two
        start = time.monotonic()
        writer.add_node("fact", {}, id="beside-the-reader")
        assert time.monotonic() - start < 5  # it waits for no reader
        assert having(path, SECRET)
        ended(reader)
        time.sleep(1.1)
        writer.add_node("fact", {}, id="after-the-reader")
        assert [] == having(path, SECRET)
        assert one.verify().ok and two.verify().ok


OPENS = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    store.stats()
    print("open", flush=True)
    sys.stdin.readline()
"""


def test_the_notice_of_bytes_that_are_left_names_who_reads_and_nobody_else(path, monkeypatch):
    monkeypatch.setattr("graphstore.ledger.database._BUSY", 0.5)
    with graphstore.open(path) as store:
        store.add_node("fact", {"text": SECRET}, id="secret")
        beside = begun(OPENS, path)
        first, second = begun(READS_ON, path / "ledger.db"), begun(READS_ON, path / "ledger.db")
        store.erase("secret", reason="asked for")
        named = {int(pid) for pid in re.findall(r"pid (\d+)", store.notices[-1])}
        assert named and named <= {first.pid, second.pid}, store.notices
        if sys.platform == "linux":  # others do not show what a process runs
            assert "python -c" in store.notices[-1].replace(Path(sys.executable).name, "python")
        for process in (first, second):
            process.kill()
            process.communicate()
        store.add_node("fact", {"text": SECRET}, id="another")
        store.erase("another", reason="asked for")
        assert 1 == len(store.notices)
        ended(beside)


ERASES = """
import sys, graphstore
with graphstore.open(sys.argv[1]) as store:
    store.erase("secret", reason="asked for")
    assert not store.notices, store.notices
"""


@pytest.mark.parametrize("saves", [True, False])
def test_what_another_process_erased_is_neither_shown_nor_kept_here(path, saves):
    with graphstore.open(path) as store:
        store.add_node("fact", {"text": SECRET}, id="secret")
        for number in range(300):
            store.add_node("fact", {"n": number}, id=f"fact-{number:03}")
        assert ["secret"] == [hit.node.id for hit in recall(store, "horse")]
        assert 301 == store.query_tables("MATCH (n:Node) RETURN count(*) AS n").single()["n"]
        run(ERASES, path)
        if saves:  # this process calls nothing more before it closes, where it saves copies of what it knows
            pass
        else:
            assert "erased" == store.inspect("secret").node.standing
            assert [] == list(recall(store, "horse"))
            told = store.query_tables("MATCH (v:Version) RETURN v.content AS c").rows()
            assert not any(row["c"] and SECRET in row["c"] for row in told)
            assert [] == having(path, SECRET, "staple")
    assert [] == having(path, SECRET, "staple")
    with graphstore.open(path) as store:
        assert store.verify().ok


def test_who_writes_after_another_evicted_without_a_trace_removes_nothing_of_it(path):
    with graphstore.open(path) as one, graphstore.open(path) as two:
        one.record_event("deploy", "v1", id="the-deploy")
        assert ["the-deploy"] == [event.id for event in two.events()]
        one.evict(ids=["the-deploy"], keep_audit=False)
        for number in range(5):
            one.add_node("fact", {}, id=f"fact-{number}")
        two.add_node("fact", {}, id="of-two")
        assert 6 == len(ids(one)) == len(ids(two))
        assert one.verify().ok
