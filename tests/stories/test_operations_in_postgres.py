"""What `docs/operations.md` shows of a store in PostgreSQL, run against real servers in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import graphstore
from tests.support import postgres

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("opens stores of its own")]

ROOT = Path(__file__).parents[2]
_, _, PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8").partition("## A store in PostgreSQL")
DUMP, RESTORE, BASE, RECOVER, BACK = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server that archives its log. The folder `archive` lies beside its data."""
    pytest.importorskip("psycopg")
    if not postgres.THERE:
        pytest.skip("needs PostgreSQL's programs: the package postgresql-15")
    with tempfile.TemporaryDirectory(prefix="graphstore-operations-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        postgres.give(folder)
        (folder / "archive").mkdir()
        postgres.give(folder / "archive")
        made = postgres.Server(folder / "primary", postgres.free_port())
        made.begin(f'archive_mode = on\narchive_command = \'cp "%p" "{folder}/archive/%f"\'\n')
        made.start()
        yield made
        made.stop()


@pytest.fixture
def typed(server: postgres.Server, tmp_path: Path) -> Callable[..., str]:
    """What a shell prints of a block of the page."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, start in {"graphstore": "-m graphstore ", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {start}"$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), str(postgres.BINARIES), os.environ["PATH"]])

    def run(block: str, **names: object) -> str:
        given = {name: str(value) for name, value in names.items()}
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": path,
            "DATABASE": address(server),
            **given,
        }
        done = subprocess.run(
            ["bash", "-euc", block],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=120,
        )
        assert 0 == done.returncode, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run


def address(server: postgres.Server, database: str = "postgres") -> str:
    return f"postgresql://postgres@127.0.0.1:{server.port}/{database}"


def ids(place: object) -> list[str]:
    """The nodes of a store that is whole."""
    with graphstore.open(place, read_only=True) as store:  # type: ignore[arg-type]
        assert store.verify().ok
        return sorted(node.id for node in store.nodes())


@pytest.fixture
def filled(server: postgres.Server) -> Iterator[str]:
    """The address of the store `team` with `one` and `two` in it, alone at the server."""
    at = f"{address(server)}?store=team"
    with graphstore.open(at) as store:
        store.add_node("fact", {"says": "first"}, id="one")
        store.add_node("fact", {"says": "a secret"}, id="two")
    yield at
    server.sql("drop schema graphstore cascade")


def test_a_dump_is_restored_into_another_database(server, filled, typed):
    typed(DUMP)
    server.sql("create database restored")
    try:
        with graphstore.open(filled) as store:
            store.erase("two", reason="asked for")
        assert "ok=True" in typed(RESTORE, RESTORED=address(server, "restored"))

        again = f"{address(server, 'restored')}?store=team"
        assert ["one", "two"] == ids(again) and ["one"] == ids(filled)
        with graphstore.open(filled) as store:
            erased = [change.subject for change in store.changes() if change.verb == "erase"]
        with graphstore.open(again) as store:
            for id in erased:
                store.erase(id, reason="it was erased since")
        assert ["one"] == ids(again)
        assert not any(
            b"secret" in bytes(row[0]) for row in sql_of(again, "select bytes from graphstore.body")
        )
    finally:
        server.sql("drop database restored with (force)")


def sql_of(at: str, text: str) -> list[tuple[bytes]]:
    import psycopg

    with psycopg.connect(at.partition("?")[0]) as connection:
        return connection.execute(text).fetchall()  # type: ignore[call-overload,no-any-return]


def test_a_base_backup_and_the_log_are_restored_up_to_an_instant(server, filled, typed, tmp_path):
    typed(BASE)
    with graphstore.open(filled) as store:
        store.add_node("fact", {"says": "after the backup"}, id="three")
    [(instant,)] = server.sql("select clock_timestamp()::text")
    time.sleep(0.1)
    with graphstore.open(filled) as store:
        store.add_node("fact", {"says": "a mistake"}, id="four")
    [(wanted,)] = server.sql("select pg_walfile_name(pg_current_wal_lsn())")
    server.sql("select pg_switch_wal()")
    archive = server.folder.parent / "archive"
    until = time.monotonic() + 20
    while not (archive / str(wanted)).exists():
        assert time.monotonic() < until, server.log()
        time.sleep(0.05)
    typed(RECOVER, ARCHIVE=archive, UNTIL=instant)
    data = server.folder.parent / "base"
    (tmp_path / "base").rename(data)
    postgres.give(data)
    restored = postgres.Server(data, postgres.free_port())

    restored.start()
    try:
        until = time.monotonic() + 20
        while restored.sql("select pg_is_in_recovery()") == [(True,)]:
            assert time.monotonic() < until, restored.log()
            time.sleep(0.05)
        at = f"{address(restored)}?store=team"
        assert ["one", "three", "two"] == ids(at)
        with graphstore.open(at) as store:
            store.add_node("fact", {"says": "it goes on"}, id="five")
    finally:
        restored.stop()


def test_a_store_goes_back_to_a_folder_and_what_is_new_follows(filled, typed, tmp_path):
    typed(BACK)
    with graphstore.open(filled) as store:
        store.add_node("fact", {"says": "later"}, id="three")

    typed(BACK)

    assert ["one", "three", "two"] == ids(tmp_path / "back.gs")
    with graphstore.open(filled, read_only=True) as server, graphstore.open(tmp_path / "back.gs") as folder:
        assert list(server.changes()) == list(folder.changes())
        folder.add_node("fact", {"says": "in the folder"}, id="four")
