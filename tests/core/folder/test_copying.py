"""A store from a folder to PostgreSQL and back: the same lines, gone on with after an interruption, refused where something else is."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, DamageError, InvalidError, NotFoundError
from graphstore.core.folder import copying
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger
from tests.support.old_release import open_old

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("copies folders")]


@pytest.fixture
def url(servers: Any) -> str:
    return str(servers.url(uuid.uuid4().hex))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store with a branch, a large transaction and something erased."""
    path = tmp_path / "made.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "a secret of mine"}, id="gone")
        store.add_node("fact", {"n": 1}, id="stays", reason="seen")
        store.branch("idea").add_node("fact", {"n": 2}, id="new")
        with store.transaction():
            for number in range(3_000):
                store.add_node("fact", {"n": number}, id=f"n{number}")
        store.erase("gone", reason="asked for")
    return path


def lines(path: Path) -> list[bytes]:
    """The lines of a store, in the form of a dump."""
    ledger = Ledger(Database(path / NAME, read_only=True))
    try:
        for _ in ledger.read():
            pass
        return list(ledger.lines(ledger.state))
    finally:
        ledger.close()


def test_a_folder_is_the_same_after_it_went_to_a_server_to_another_store_and_back(
    made, url, servers, tmp_path
):
    there = graphstore.copy(made, url)
    other = str(servers.url(uuid.uuid4().hex))
    graphstore.copy(url, other)
    back = graphstore.copy(other, tmp_path / "back.gs")

    assert lines(made) == lines(tmp_path / "back.gs")
    assert there.digest == back.digest and there.lines == there.total == len(lines(made))
    with graphstore.open(url) as one, graphstore.open(tmp_path / "back.gs") as two:
        assert list(one.changes()) == list(two.changes())
        assert one.verify().ok and two.verify().ok
        assert {"n": 2} == two.on("idea").node("new").content


def test_a_copy_is_gone_on_with_in_both_directions(made, url, tmp_path):
    back = tmp_path / "back.gs"
    first = graphstore.copy(made, url)
    graphstore.copy(url, back)
    with graphstore.open(made) as store:
        store.add_node("fact", {"n": 1}, id="later")

    assert (1, first.total + 1) == graphstore.copy(made, url)[:2]
    assert (1, first.total + 1) == graphstore.copy(url, back)[:2]
    assert 0 == graphstore.copy(url, back).lines == graphstore.copy(made, url).lines
    assert lines(made) == lines(back)


def test_what_is_erased_between_two_copies_is_erased_at_the_target(made, url, servers):
    with graphstore.open(made) as store:
        store.add_node("fact", {"says": "another secret of mine"}, id="told")
    graphstore.copy(made, url)
    with graphstore.open(made) as store:
        store.erase("told", reason="asked for")
    graphstore.copy(made, url)

    graphstore.open(url).close()

    name = url.rpartition("=")[2]
    rows = servers.primary.sql(f"select bytes from graphstore.body where store = '{name}'")
    assert not any(b"secret of mine" in bytes(row[0]) for row in rows)


def test_what_is_sent_in_many_batches_arrives_whole(made, url, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 1_000)

    assert len(lines(made)) == graphstore.copy(made, url).lines


def test_other_lines_at_the_target_are_refused_and_left_alone(made, url, tmp_path):
    with graphstore.open(url) as store:
        store.add_node("fact", {"n": 9}, id="mine")
    with graphstore.open(tmp_path / "mine.gs") as store:
        store.add_node("fact", {"n": 9}, id="mine")
    before = lines(tmp_path / "mine.gs")

    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(made, url)
    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(url, tmp_path / "mine.gs")

    assert before == lines(tmp_path / "mine.gs")
    with graphstore.open(url) as store:
        assert {"n": 9} == store.node("mine").content


def test_a_changed_row_is_damage(made, url, servers, tmp_path):
    graphstore.copy(made, url)
    name = url.rpartition("=")[2]
    servers.primary.sql(
        f"update graphstore.body set bytes = '{{\"n\":7}}' where store = '{name}' and seq = 2 and n = 0"
    )

    with pytest.raises(DamageError, match="does not match its hash"):
        graphstore.copy(url, tmp_path / "back.gs")
    with pytest.raises(DamageError, match="line 2"):
        graphstore.open(url)


def test_what_cannot_be_copied_is_refused(made, url, tmp_path):
    with pytest.raises(InvalidError, match="neither"):
        graphstore.copy(made, tmp_path / "other.gs")
    with pytest.raises(NotFoundError):
        graphstore.copy(tmp_path / "nothing.gs", url)
    with pytest.raises(NotFoundError):
        graphstore.copy(url + "x", url)
    with pytest.raises(NotFoundError):  # nothing was made for them
        graphstore.open(url, create=False)
    with pytest.raises(NotFoundError):
        graphstore.copy(url + "x", tmp_path / "back.gs")
    assert not (tmp_path / "back.gs").exists()


COPIES = """
import os, signal, sys, graphstore
from graphstore.core.folder import copying
copying._BATCH = 20_000
left = int(sys.argv[3])
real = copying.parts_of
def counted(line, spans):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(line, spans)
copying.parts_of = counted
graphstore.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("after", [1, 5, 100, 200])
def test_a_copy_into_a_folder_that_was_killed_is_gone_on_with(made, url, tmp_path, after):
    with graphstore.open(made) as store:
        for number in range(200):
            store.add_node("fact", {"text": "word " * 40}, id=f"more{number}")
    total = graphstore.copy(made, url).total
    back = tmp_path / "back.gs"
    killed = subprocess.run([sys.executable, "-c", COPIES, url, str(back), str(after)])
    assert -signal.SIGKILL == killed.returncode
    there = len(lines(back))

    done = graphstore.copy(url, back)

    assert (total - there, total) == done[:2]
    assert lines(made) == lines(back)
    with graphstore.open(back) as store:
        assert store.verify().ok


def test_a_folder_of_release_0_1_is_copied_as_it_is(url, tmp_path):
    with open_old(tmp_path / "old.gs") as store:
        store.add_node("fact", {"n": 1}, id="one")
        store.branch("idea").add_node("fact", {"n": 2}, id="two")
    before = (tmp_path / "old.gs/journal/00000001.jsonl").read_bytes().splitlines(keepends=True)[1:]

    graphstore.copy(tmp_path / "old.gs", url)
    graphstore.copy(url, tmp_path / "back.gs")

    assert before == lines(tmp_path / "back.gs")
    assert not (tmp_path / "old.gs" / NAME).exists()
