"""Copies of a folder, whole or in part: a sound one opens and is checked once, a damaged one is refused by the row that is damaged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import graphstore
from graphstore import DamageError, GraphStoreError
from tests.support.ledger_rows import change, recorded, rows

pytestmark = pytest.mark.in_process("looks at the files of the store")

FACTS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        for number in range(FACTS):
            store.add_node("fact", {"n": number}, id=f"fact-{number:02}")
    return path


@pytest.fixture
def copy(path: Path) -> Path:
    """A copied folder."""
    return Path(shutil.copytree(path, path.with_name("copy.gs")))


def flip_in_chain(path: Path, number: int) -> None:
    """Change one byte of a head, without what the rows show of it."""
    [(head,)] = rows(path, f"SELECT hex(head) FROM chain WHERE number = {number}")
    raw = bytearray(bytes.fromhex(head))
    raw[raw.index(b'"tx":"') + 8] ^= 0x01
    change(path, f"UPDATE chain SET head = x'{raw.hex()}' WHERE number = {number}")


def flip_in_file(path: Path, what: bytes) -> None:
    """Change one byte of the file of a closed ledger, at the last place of these bytes."""
    raw = bytearray((path / "ledger.db").read_bytes())
    raw[raw.rindex(what)] ^= 0x01
    (path / "ledger.db").write_bytes(raw)


def recorded_file(path: Path) -> list[int]:
    return [value for (value,) in rows(path, "SELECT value FROM property WHERE name IN ('device', 'inode')")]


def file_of(path: Path) -> list[int]:
    found = (path / "ledger.db").stat()
    return [found.st_dev, found.st_ino]


def holds_all(path: Path, count: int = FACTS) -> None:
    with graphstore.open(path) as store:
        assert [f"fact-{number:02}" for number in range(count)] == sorted(node.id for node in store.nodes())
        assert store.verify().ok


# ---------------------------------------------------------------- the file that a ledger is in


def test_a_ledger_records_the_file_it_is_in(path):
    assert file_of(path) == recorded_file(path)


def test_a_sound_copy_opens_and_records_its_own_file(path, copy):
    assert file_of(copy) != recorded_file(copy)
    holds_all(copy)
    assert file_of(copy) == recorded_file(copy)
    assert file_of(path) == recorded_file(path)


def test_a_copy_whose_chain_has_a_flipped_byte_is_refused_by_its_row(copy):
    flip_in_chain(copy, 7)
    before = recorded(copy)

    for _ in range(2):  # a refused one is not taken for checked
        with pytest.raises(
            DamageError, match=r"ledger\.db line 7: its digest does not match.*Restore a dump or a backup"
        ):
            graphstore.open(copy)
    assert before == recorded(copy)


def test_a_copy_whose_file_is_damaged_beside_the_chain_is_refused(copy):
    """The index of the chain by tx is no part of what its digests cover: only SQLite can check it."""
    [(tx,)] = rows(copy, "SELECT tx FROM chain WHERE number = 9")
    flip_in_file(copy, tx.to_bytes(8, "big"))

    with pytest.raises(DamageError, match=r"ledger\.db line \d+"):
        graphstore.open(copy)


def test_the_second_opening_of_a_copy_does_not_check_it_again(copy):
    graphstore.open(copy).close()
    flip_in_chain(copy, 7)

    with graphstore.open(copy) as store:
        assert FACTS == len(store.nodes())
        assert [7] == [problem.line for problem in store.verify().problems][:1]


def test_a_restored_backup_of_the_ledger_is_checked(path, tmp_path):
    shutil.copyfile(path / "ledger.db", tmp_path / "backup.db")
    with graphstore.open(path) as store:
        store.retract("fact-03", reason="wrong")
    for file in path.iterdir():
        file.unlink()
    shutil.copyfile(tmp_path / "backup.db", tmp_path / "part.db")  # both are there, so it is another file
    (tmp_path / "part.db").rename(path / "ledger.db")
    change(path, "UPDATE property SET value = value + 1 WHERE name = 'inode'")  # an inode may be used again

    holds_all(path)
    assert file_of(path) == recorded_file(path)


def test_a_moved_folder_is_not_checked(path):
    moved = path.rename(path.with_name("moved.gs"))
    flip_in_chain(moved, 7)

    with graphstore.open(moved) as store:
        assert FACTS == len(store.nodes())


def test_a_ledger_without_a_record_of_its_file_is_checked_and_gets_one(path):
    change(path, "DELETE FROM property WHERE name IN ('device', 'inode')")

    holds_all(path)
    assert file_of(path) == recorded_file(path)


def test_a_copy_with_a_damaged_content_opens_for_what_is_sound(copy):
    change(copy, "UPDATE body SET data = CAST('{}' AS BLOB) WHERE number = 3")

    with graphstore.open(copy) as store:
        with pytest.raises(DamageError, match=r"body 3: .*, version 1 of 'fact-02'"):
            store.node("fact-02")
        assert {"n": 4} == store.node("fact-04").content


# ---------------------------------------------------------------- copies of the WAL

KILLED = """
import os, signal, sys, graphstore
store = graphstore.open(sys.argv[1])
for id in sys.argv[2:]:
    store.add_node("fact", {"n": int(id[-2:])}, id=id)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path, *ids: str) -> None:
    """Add facts in a process that is killed: they are in the WAL alone."""
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path), *ids], check=False)
    assert -signal.SIGKILL == run.returncode
    assert (path / "ledger.db-wal").stat().st_size


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
class TestWAL:
    def test_a_folder_copied_with_its_wal_has_what_is_in_it(self, path):
        killed(path, "fact-20", "fact-21")
        copy = Path(shutil.copytree(path, path.with_name("copy.gs")))

        holds_all(copy, 22)
        holds_all(path, 22)

    def test_a_ledger_copied_without_its_wal_lacks_that_and_is_sound(self, path):
        killed(path, "fact-20")
        copy = path.with_name("copy.gs")
        copy.mkdir()
        shutil.copyfile(path / "ledger.db", copy / "ledger.db")

        holds_all(copy)

    @pytest.mark.parametrize("as_copy", [True, False], ids=["in a copy", "in its folder"])
    @pytest.mark.parametrize("of", ["an earlier day", "another store"])
    def test_the_wal_of_another_day_or_store_changes_no_answer_unseen(self, path, of, as_copy):
        """SQLite takes any WAL beside a file for that file's own."""
        if of == "an earlier day":
            killed(path, "fact-20", "fact-21")
            shutil.copyfile(path / "ledger.db-wal", path.with_name("wal"))
            with graphstore.open(path) as store:
                for number in range(22, 60):
                    store.add_node("fact", {"n": number}, id=f"fact-{number}")
        else:
            other = path.with_name("other.gs")
            graphstore.open(other).close()
            killed(other, *[f"else-{number}" for number in range(10, 40)])
            shutil.copyfile(other / "ledger.db-wal", path.with_name("wal"))
        with graphstore.open(path, read_only=True) as store:
            expected = {node.id: node.content for node in store.nodes()}
        for file in path.glob("ledger.db-*"):
            file.unlink()
        if as_copy:
            path = Path(shutil.copytree(path, path.with_name("copy.gs")))
        shutil.copyfile(path.parent / "wal", path / "ledger.db-wal")

        try:
            store = graphstore.open(path)
        except GraphStoreError as error:
            assert "ledger.db" in str(error)
            return
        with store:
            try:
                found = {node.id: node.content for node in store.nodes()}
            except GraphStoreError as error:
                assert "ledger.db" in str(error)
            else:
                assert expected == found or not store.verify().ok


# ---------------------------------------------------------------- the lock file


def test_a_store_whose_lock_file_is_lost_refuses_to_write_and_opens_again(path):
    """Another process would make a new lock file, and both would write at once."""
    with graphstore.open(path) as store:
        (path / "lock").unlink()
        for _ in range(2):
            with pytest.raises(
                GraphStoreError, match=r"lock was moved, removed or replaced.*Open the store again"
            ) as refused:
                store.add_node("fact", {}, id="lost")
            assert "not kept" == refused.value.outcome
        assert FACTS == len(store.nodes())
        assert not (path / "lock").exists()
        with graphstore.open(path) as second:
            second.add_node("fact", {"n": FACTS}, id=f"fact-{FACTS}")
            assert FACTS + 1 == len(store.nodes())
            with pytest.raises(GraphStoreError, match="replaced"):
                store.add_node("fact", {}, id="lost")
    holds_all(path, FACTS + 1)


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be replaced there")
def test_a_lock_file_that_was_copied_back_is_another_one(path):
    with graphstore.open(path) as store:
        shutil.copyfile(path / "lock", path / "part")
        (path / "part").replace(path / "lock")
        with pytest.raises(GraphStoreError, match=r"lock was moved, removed or replaced"):
            store.add_node("fact", {}, id="lost")
    holds_all(path)
