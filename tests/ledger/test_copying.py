"""A store of release 0.1 in PostgreSQL comes into a folder: the same lines, gone on with after an interruption, refused where something else is."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore import ConflictError, DamageError, InvalidError, NotFoundError
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("copies folders")]

TABLES = """
create schema if not exists graphstore;
create table if not exists graphstore.store (name text primary key);
create table if not exists graphstore.journal (
    store text, seq bigint, id uuid not null, prev text not null, digest text not null, head bytea not null, primary key (store, seq));
create table if not exists graphstore.body (
    store text, seq bigint, n int, bytes bytea not null, primary key (store, seq, n));
"""


class InPostgres:
    """A store whose lines are kept as release 0.1 kept them."""

    def __init__(self, servers: Any) -> None:
        import psycopg

        self.name = uuid.uuid4().hex
        self.url = str(servers.url(self.name))
        self._connection = psycopg.connect(servers.primary.conninfo, autocommit=True)
        self.sql(TABLES)
        self.sql("insert into graphstore.store values (%s)", self.name)

    def sql(self, text: str, *values: Any) -> None:
        self._connection.execute(text, values or None)  # type: ignore[call-overload]

    def follow(self, path: Path) -> None:
        """Have the lines that a folder has."""
        self.sql("delete from graphstore.body where store = %s", self.name)
        self.sql("delete from graphstore.journal where store = %s", self.name)
        with self._connection.transaction():
            for number, line in enumerate(lines(path), 1):
                parts, id = orjson.loads(line), str(uuid.uuid4())
                head = line[line.index(b',"head":') + 8 : -2]
                self.sql(
                    "insert into graphstore.journal values (%s, %s, %s, %s, %s, %s)",
                    self.name, number, id, parts["head"]["prev"], parts["digest"], head,
                )  # fmt: skip
                for at, body in enumerate(parts["body"]):
                    if body is not None:
                        self.sql(
                            "insert into graphstore.body values (%s, %s, %s, %s)",
                            self.name,
                            number,
                            at,
                            bodies(line)[at],
                        )

    def close(self) -> None:
        self._connection.close()


def bodies(line: bytes) -> list[bytes]:
    from graphstore.ledger.chain import check

    return list(check(line[:-1])[1].bodies)


def lines(path: Path) -> list[bytes]:
    """The lines of a store, in the form of a dump."""
    ledger = Ledger(Database(path / NAME, read_only=True))
    try:
        return [line.line() for line in ledger.verbatim()]
    finally:
        ledger.close()


@pytest.fixture
def there(servers: Any, made: Path) -> Iterator[InPostgres]:
    opened = InPostgres(servers)
    opened.follow(made)
    yield opened
    opened.close()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store with a branch, a large transaction and something erased."""
    path = tmp_path / "made.gs"
    with graphstore.open(path) as store:
        store.add_node("fact", {"says": "a secret of mine"}, id="gone")
        store.add_node("fact", {"n": 1}, id="stays", reason="seen")
        store.branch("idea").add_node("fact", {"n": 2}, id="new")
        with store.transaction():
            for number in range(300):
                store.add_node("fact", {"n": number, "text": "word " * 40}, id=f"n{number}")
        store.erase("gone", reason="asked for")
    return path


def test_a_store_of_release_0_1_is_refused_with_the_way_out(there: InPostgres, made: Path) -> None:
    for refused in (lambda: graphstore.open(there.url), lambda: graphstore.copy(made, there.url)):
        with pytest.raises(InvalidError, match="graphstore copy 'ADDRESS' FOLDER") as error:
            refused()
        assert "postgres@" not in str(error.value)


def test_it_is_the_same_in_a_folder(there: InPostgres, made: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.gs"

    copied = graphstore.copy(there.url, back)

    assert lines(made) == lines(back)
    assert copied.lines == copied.total == len(lines(made))
    with graphstore.open(made) as one, graphstore.open(back) as two:
        assert list(one.changes()) == list(two.changes())
        assert two.verify().ok
        assert {"n": 2} == two.on("idea").node("new").content


def test_a_copy_is_gone_on_with(there: InPostgres, made: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.gs"
    first = graphstore.copy(there.url, back)
    with graphstore.open(made) as store:
        store.add_node("fact", {"n": 1}, id="later")
    there.follow(made)

    assert (1, first.total + 1) == graphstore.copy(there.url, back)[:2]
    assert 0 == graphstore.copy(there.url, back).lines
    assert lines(made) == lines(back)


def test_other_lines_in_the_folder_are_refused_and_left_alone(there: InPostgres, tmp_path: Path) -> None:
    with graphstore.open(tmp_path / "mine.gs") as store:
        store.add_node("fact", {"n": 9}, id="mine")
    before = lines(tmp_path / "mine.gs")

    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(there.url, tmp_path / "mine.gs")

    assert before == lines(tmp_path / "mine.gs")


def test_a_changed_row_is_damage(there: InPostgres, tmp_path: Path) -> None:
    there.sql(
        "update graphstore.body set bytes = '{\"n\":7}' where store = %s and seq = 2 and n = 0", there.name
    )

    with pytest.raises(DamageError, match=r"line 2: .*does not match its hash"):
        graphstore.copy(there.url, tmp_path / "back.gs")


def test_a_missing_row_is_damage(there: InPostgres, tmp_path: Path) -> None:
    there.sql("delete from graphstore.journal where store = %s and seq = 3", there.name)

    with pytest.raises(DamageError, match="line 3: it is missing"):
        graphstore.copy(there.url, tmp_path / "back.gs")


def test_what_cannot_be_copied_is_refused(there: InPostgres, made: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="in memory"):
        graphstore.copy(made, ":memory:")
    with pytest.raises(NotFoundError):
        graphstore.copy(tmp_path / "none.gs", tmp_path / "back.gs")
    with pytest.raises(NotFoundError):
        graphstore.copy(there.url + "x", tmp_path / "back.gs")
    with pytest.raises(InvalidError, match="names no store"):
        graphstore.copy(there.url.partition("?")[0], tmp_path / "back.gs")
    assert not (tmp_path / "back.gs").exists()


COPIES = """
import os, signal, sys, graphstore
from graphstore.ledger import copying
copying._BATCH = 2_000
left = int(sys.argv[3])
real = copying.check
def counted(line, known):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(line, known)
copying.check = counted
graphstore.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("after", [1, 5, 100, 200])
def test_a_copy_that_was_killed_is_gone_on_with(
    there: InPostgres, made: Path, tmp_path: Path, after: int
) -> None:
    with graphstore.open(made) as store:
        for number in range(200):
            store.add_node("fact", {"text": "word " * 40}, id=f"more{number}")
    there.follow(made)
    back = tmp_path / "back.gs"
    killed = subprocess.run([sys.executable, "-c", COPIES, there.url, str(back), str(after)])
    assert -signal.SIGKILL == killed.returncode
    before = len(lines(back))

    done = graphstore.copy(there.url, back)

    assert (len(lines(made)) - before, len(lines(made))) == done[:2]
    assert lines(made) == lines(back)
    with graphstore.open(back) as store:
        assert store.verify().ok
