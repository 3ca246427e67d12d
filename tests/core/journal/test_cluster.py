"""A store in PostgreSQL: many writing processes, and what holds when servers, connections, clocks and processes fail."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, EngineError, GraphStore, InvalidError, NotFoundError, WriteConflictError
from graphstore.core.journal.cluster import Cluster, address
from graphstore.core.journal.cluster_journal import ClusterJournal
from tests.conftest import Clock, day

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("opens stores of its own")]


@pytest.fixture
def url(servers: Any) -> str:
    """The address of a store that is not there yet."""
    return str(servers.url(uuid.uuid4().hex))


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., graphstore.GraphStore]]:
    """Opens the store once more, as another process would."""
    stores: list[graphstore.GraphStore] = []

    def another(at: str = url, **options: Any) -> graphstore.GraphStore:
        stores.append(graphstore.open(at, **options))
        return stores[-1]

    yield another
    for store in stores:
        store.close()


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def known(store: graphstore.GraphStore, id: str) -> bool:
    try:
        store.node(id)
    except NotFoundError:
        return False
    return True


class Writing:
    """A writing process, and what it has acknowledged."""

    def __init__(self, url: str, name: str, count: int) -> None:
        command = [sys.executable, "-m", "tests.support.cluster_writer", url, name, str(count)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )
        assert self.process.stdout is not None
        assert "open\n" == self.process.stdout.readline()

    def ended(self) -> list[str]:
        """The ids that were acknowledged, once the process is through."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        assert 0 == self.process.wait(timeout=60)
        return [line.split()[1] for line in output.splitlines() if line.startswith("ok ")]


def check_whole(stores: list[graphstore.GraphStore], acknowledged: list[str]) -> None:
    """All that was acknowledged is there once, the chain is whole, tx rises, and every follower says the same."""
    for store in stores:
        store.refresh()
        assert store.verify().ok, store.verify().problems
    first = stores[0]
    changes = list(first.changes())
    made = [change.subject for change in changes if change.verb == "add_node"]
    assert sorted(made) == sorted(set(made)), "written twice"
    assert set(acknowledged) <= set(made), "acknowledged and lost"
    instants = [change.tx for change in reversed(changes)]
    assert instants == sorted(instants) or instants[::-1] == sorted(instants)
    for other in stores[1:]:
        assert list(other.changes()) == changes


# ---------------------------------------------------------------------- opening


def test_what_one_writes_another_reads_without_asking(opened):
    one, other = opened(), opened()

    one.add_node("fact", {"auth": "sessions"}, id="auth")

    until(lambda: known(other, "auth"))
    assert {"auth": "sessions"} == other.node("auth").content
    other.revise("auth", {"auth": "JWT"})
    until(lambda: one.node("auth").content == {"auth": "JWT"})
    check_whole([one, other], ["auth"])


def test_the_last_of_many_is_told_and_not_only_found_by_a_look(opened, monkeypatch):
    monkeypatch.setattr("graphstore.core.journal.cluster_journal._POLL", 600.0)
    one, other = opened(), opened(read_only=True)
    one.add_node("fact", {"n": 0}, id="first")
    until(lambda: known(other, "first"))

    for number in range(50):
        one.add_node("fact", {"n": number}, id=f"n{number}")

    until(lambda: known(other, "n49"))


def test_a_reader_of_the_standby_reads_what_was_written_and_writes_nothing(opened, servers, url):
    writer = opened()
    for number in range(20):
        writer.add_node("fact", {"n": number}, id=f"n{number}")
        store = url.rpartition("=")[2]
        with graphstore.open(servers.url(store, servers.standby), read_only=True) as reader:
            until(lambda reader=reader, id=f"n{number}": known(reader, id))
            assert {"n": number} == reader.node(f"n{number}").content
            with pytest.raises(InvalidError, match="read only"):
                reader.retract(f"n{number}", reason="it may not")


def test_a_decision_rests_on_what_others_wrote_before(opened):
    one, other = opened(), opened()
    one.add_node("fact", {"n": 1}, id="same")

    with pytest.raises(ConflictError):
        other.add_node("fact", {"n": 2}, id="same")


@pytest.mark.parametrize(
    "wrong, error, says",
    [
        (lambda url: graphstore.open(url.partition("?")[0]), InvalidError, "store="),
        (lambda url: graphstore.open(url, create=False), NotFoundError, "no store"),
        (lambda url: graphstore.open(url, read_only=True), NotFoundError, "no store"),
        (lambda url: graphstore.open(url, durability="interval"), InvalidError, "commit by commit"),
        (lambda url: graphstore.open(url + "&options=-csynchronous_commit%3Doff"), InvalidError, "synchronous_commit=off"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened_is_refused_with_the_reason(url, wrong, error, says):
    with pytest.raises(error, match=says):
        wrong(url)


@pytest.mark.parametrize(
    "address, says",
    [
        ("postgresql://HOST/postgres?store=", "names no store"),
        ("postgresql://HOST/postgres?store=a&store=b", "more than once"),
        ("postgresql://HOST/postgres?store=a%00b", "no NUL"),
        ("postgresql://HOST/postgres?store=%ff", "no address"),
        ("postgresql://HOST/postgres?store=" + "%C3%A4" * 101, "at most 200 bytes"),
        ("postgresql://HOST/postgres?store=\ud800", "no address"),
        ("postgresql://[::1/postgres?store=a", "no address"),
        ("postgresql://u:s3c/ret@HOST/postgres?store=a", "%2F"),
        ("postgresql://u:s3c#ret@HOST/postgres?store=a", "%23"),
        ("postgresql://u:s3c?ret@HOST/postgres?store=a", "%3F"),
        ("postgresql://u:s3c%ret@HOST/postgres?store=a", "%25"),
        ("postgresql://HOST/postgres?store=a&cache=", "cache= is empty"),
        ("postgresql://HOST/postgres?store=a&colour=red", 'invalid URI query parameter: "colour"'),
        ("postgresql://HOST/postgres?store=a&sslmode=perhaps", 'invalid sslmode value: "perhaps"'),
        ("postgresql://HOST/postgres?store=a&connect_timeout=soon", "connect_timeout"),
        ("postgresql://127.0.0.1:door/postgres?store=a", "port"),
        ("postgresql+psycopg://u:s3cret@HOST/postgres?store=a", r"begins with postgresql://"),
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_once_and_no_password_is_shown(servers, address, says):
    host = f"127.0.0.1:{servers.primary.port}"
    begun = time.monotonic()

    with pytest.raises(InvalidError, match=says) as refused:
        graphstore.open(address.replace("HOST", host))

    assert "s3c" not in str(refused.value)
    assert time.monotonic() - begun < 10, "it was tried again and again"


@pytest.mark.parametrize(
    "hidden, says", [("sys.modules['psycopg'] = None", "psycopg"), ("os.environ['PSYCOPG_IMPL'] = 'none'", "libpq")]
)  # fmt: skip
def test_without_the_driver_or_its_library_it_says_what_to_install(hidden, says):
    script = f"import os, sys; {hidden}; import graphstore; graphstore.open('postgresql://host/db?store=a')"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert f"needs {says}" in done.stderr and "graphstore[postgres]" in done.stderr, done.stderr


@pytest.fixture(scope="module")
def guarded(servers: Any) -> str:
    """A user whom the server asks for the password `right`."""
    rules = servers.primary.folder / "pg_hba.conf"
    rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    servers.primary.sql("create role guarded login password 'right'")
    servers.primary.sql("select pg_reload_conf()")
    time.sleep(0.2)
    return "guarded"


@pytest.mark.parametrize(
    "user, database, says",
    [
        ("guarded:wrong", "postgres", "password authentication failed"),
        ("guarded", "postgres", "no password supplied"),
        ("nobody_at_all", "postgres", "role .* does not exist"),
        ("postgres", "no_such_database", "database .* does not exist"),
    ],
)
def test_who_is_not_let_in_is_told_at_once(servers, guarded, user, database, says):
    begun = time.monotonic()

    with pytest.raises(EngineError, match=says) as refused:
        graphstore.open(f"postgresql://{user}@127.0.0.1:{servers.primary.port}/{database}?store=a")

    assert "wrong" not in str(refused.value)
    assert time.monotonic() - begun < 10, "it was tried again and again"


def test_a_password_is_taken_from_the_file_that_libpq_reads(servers, guarded, tmp_path, monkeypatch):
    passwords = tmp_path / "passwords"
    passwords.write_text(f"127.0.0.1:*:*:{guarded}:right\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    servers.primary.sql(f"grant create on database postgres to {guarded}")
    servers.primary.sql(f"grant pg_read_all_data, pg_write_all_data to {guarded}")

    with graphstore.open(
        f"postgresql://{guarded}@127.0.0.1:{servers.primary.port}/postgres?store={uuid.uuid4().hex}"
    ) as store:
        store.add_node("fact", {"n": 1}, id="one")
        assert "guarded" not in repr(store)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_holds_every_text(servers, encoding):
    name = f"d{uuid.uuid4().hex}"
    servers.primary.sql(f"create database {name} template template0 encoding '{encoding}' locale 'C'")
    at = f"postgresql://postgres@127.0.0.1:{servers.primary.port}/{name}?store="
    try:
        with graphstore.open(f"{at}%C3%A4") as store:
            store.add_node("fact", {"says": "漢字"}, id="one")
            assert store.verify().ok
        with graphstore.open(f"{at}%C3%A4&client_encoding=latin1") as store:
            assert {"says": "漢字"} == store.node("one").content
        with pytest.raises(InvalidError, match="synchronous_commit=off"):
            graphstore.open(f"{at}a&options=-csynchronous_commit%3Doff")
        if encoding == "LATIN1":
            with pytest.raises(EngineError, match="has no equivalent in encoding"):
                graphstore.open(f"{at}%E6%BC%A2")
    finally:
        servers.primary.sql(f"drop database {name} with (force)")


def test_of_two_hosts_is_said_what_each_of_them_says(servers):
    primary, standby = (f"127.0.0.1:{one.port}" for one in (servers.primary, servers.standby))

    with pytest.raises(EngineError, match=r"database .* does not exist; .* database .* does not exist"):
        graphstore.open(f"postgresql://postgres@{primary},{standby}/no_such_database?store=a")


@pytest.fixture
def limited(servers: Any) -> Iterator[Callable[[str], Any]]:
    """A database of its own with a user who may do nothing there. Runs a statement in it as its owner."""
    import psycopg

    name = f"d{uuid.uuid4().hex}"
    servers.primary.sql(f"create role {name} login")
    servers.primary.sql(f"create database {name}")

    def sql(text: str) -> Any:
        with psycopg.connect(
            f"host=127.0.0.1 port={servers.primary.port} user=postgres dbname={name}", autocommit=True
        ) as connection:
            found = connection.execute(text)
            return found.fetchall() if found.description else []

    sql.name = name  # type: ignore[attr-defined]
    yield sql
    servers.primary.sql(f"drop database {name} with (force)")
    servers.primary.sql(f"drop role {name}")


def test_a_user_without_rights_is_told_which_and_writes_with_them(servers, limited, tmp_path):
    host = f"127.0.0.1:{servers.primary.port}/{limited.name}"
    mine = f"postgresql://{limited.name}@{host}?store=a"
    with pytest.raises(EngineError, match="needs create on the database"):
        graphstore.open(mine)
    graphstore.open(f"postgresql://postgres@{host}?store=a").close()
    with pytest.raises(EngineError, match="usage of the schema graphstore"):
        graphstore.open(mine)
    limited(f"grant usage on schema graphstore to {limited.name}")
    limited(f"grant select on all tables in schema graphstore to {limited.name}")
    graphstore.open(mine, read_only=True).close()
    limited(f"grant insert on all tables in schema graphstore to {limited.name}")
    with graphstore.open(mine) as store:
        with pytest.raises(EngineError, match="insert, update and delete") as refused:
            store.add_node("fact", {"n": 1}, id="one")
            store.add_node("fact", {"n": 2}, id="two")
        assert 1 == str(refused.value).count("Nothing of") and ".." not in str(refused.value)
        limited(f"grant update, delete on all tables in schema graphstore to {limited.name}")
        store.add_node("fact", {"n": 3}, id="three")

        store.erase("three", reason="asked for")

        assert any("Have their owner run: vacuum" in notice for notice in store.notices), store.notices


def test_a_schema_that_somebody_else_has_made_is_enough_to_make_the_tables(servers, limited):
    limited(f"create schema graphstore authorization {limited.name}")

    with graphstore.open(
        f"postgresql://{limited.name}@127.0.0.1:{servers.primary.port}/{limited.name}?store=a"
    ) as store:
        store.add_node("fact", {"n": 1}, id="one")

    assert [(1,)] == limited("select count(*) from graphstore.journal")


def test_nothing_is_left_open_where_a_store_is_not_opened(servers, url, tmp_path):
    (tmp_path / "other").write_text("of somebody else")
    name = f"refused {uuid.uuid4().hex}"
    at = f"{url}&application_name={name.replace(' ', '%20')}"

    for wrong in (
        lambda: graphstore.open(at, create=False),
        lambda: graphstore.open(f"{at}&cache={tmp_path}"),
        lambda: graphstore.open(f"{at}&cache=/proc/none"),
        lambda: graphstore.open(at, durability="interval"),
    ):
        with pytest.raises(graphstore.GraphStoreError):
            wrong()
        wanted = f"select count(*) from pg_stat_activity where application_name = '{name}'"
        until(lambda: servers.primary.sql(wanted) == [(0,)])  # noqa: B023


def test_forgetting_says_where_else_it_is(opened):
    store = opened()
    store.add_node("fact", {"says": "a secret"}, id="gone")
    store.add_node("fact", {"says": "another"}, id="gone too")

    store.erase("gone", reason="asked for")
    store.erase("gone too", reason="asked for")

    [notice] = [one for one in store.notices if "deleted" in one]
    assert "write-ahead log, its backups and standbys" in notice


@pytest.mark.parametrize("name", ["synchronous_commit", "fsync"])
def test_a_server_that_acknowledges_what_is_on_no_disk_gets_nothing_to_write(servers, limited, name):
    at = f"postgresql://postgres@127.0.0.1:{servers.primary.port}/{limited.name}?store=a"

    def turn(to: str) -> None:
        servers.primary.sql(f"alter system set {name} = {to}")
        servers.primary.sql("select pg_reload_conf()")
        until(lambda: servers.primary.sql(f"show {name}") == [(to,)])

    turn("off")
    try:
        with pytest.raises(InvalidError, match=f"{name}=off"):
            graphstore.open(at)
        assert [(True,)] == limited("select to_regclass('graphstore.journal') is null"), "it made the tables"
        turn("on")
        with graphstore.open(at) as store:
            store.add_node("fact", {"n": 1}, id="one")
            turn("off")
            store._core.journal.cluster.patience = 0.3
            limited(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
            with pytest.raises(
                EngineError, match=f"{name}=off: it acknowledges what is on no disk"
            ) as refused:
                store.add_node("fact", {"n": 2}, id="two")
            assert "not kept" == refused.value.outcome
            assert {"n": 1} == store.node("one").content
    finally:
        servers.primary.sql(f"alter system reset {name}")
        servers.primary.sql("select pg_reload_conf()")
    assert [(1,)] == limited("select count(*) from graphstore.journal")


def test_a_server_that_waits_for_no_standby_is_told(opened, servers, url):
    assert [] == opened().notices

    alone = opened(url + "&options=-csynchronous_commit%3Dlocal")

    assert any("no synchronous standby" in notice for notice in alone.notices)


def test_a_copy_is_kept_where_the_address_says_so_and_made_anew_where_it_is_damaged(url, tmp_path):
    kept = f"{url}&cache={tmp_path / 'copy'}"
    with graphstore.open(kept) as store:
        store.add_node("fact", {"n": 1}, id="one")
    with graphstore.open(url) as other:
        other.add_node("fact", {"n": 2}, id="two")
    with graphstore.open(kept) as store:
        assert {"n": 2} == store.node("two").content
    segment = tmp_path / "copy" / "journal" / "00000001.jsonl"
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])

    with graphstore.open(kept) as store:
        assert [{"n": 1}, {"n": 2}] == [store.node(id).content for id in ("one", "two")]
        assert store.verify().ok
    assert whole == segment.read_bytes()


# ---------------------------------------------------------------------- time


def test_tx_rises_where_a_clock_is_set_back_and_no_view_changes(opened):
    early, late = Clock("2026-02-01"), Clock("2026-02-01")
    late.move(hours=1)
    ahead, behind = opened(clock=late), opened(clock=early)
    ahead.add_node("fact", {"n": 1}, id="n")
    view = ahead.as_of()
    seen = view.node("n").content

    behind.revise("n", {"n": 2})
    early.move(hours=-5)
    behind.revise("n", {"n": 3})

    assert ahead.refresh() >= 0 and seen == view.node("n").content
    instants = [change.tx for change in ahead.changes()]
    assert 3 == len(set(instants))
    assert max(instants) - min(instants) == timedelta(microseconds=2)
    check_whole([ahead, behind], ["n"])


# ---------------------------------------------------------------------- forgetting, branches


def test_what_is_erased_is_in_no_table_and_in_no_copy(opened, servers):
    one, other = opened(), opened()
    one.add_node("fact", {"says": "a secret of mine"}, id="gone")
    one.add_node("fact", {"says": "another"}, id="stays")
    until(lambda: known(other, "gone") and other.node("gone").content)
    paths = [one.path, other.path]

    other.erase("gone", reason="asked for")

    until(lambda: one.refresh() == 0 and not known(one, "gone"))
    rows = servers.primary.sql("select bytes from graphstore.body")
    assert not any(b"secret of mine" in bytes(row[0]) for row in rows)
    for path in paths:
        assert not any(b"secret of mine" in file.read_bytes() for file in path.rglob("*") if file.is_file())
    check_whole([one, other, opened()], [])
    assert {"says": "another"} == one.node("stays").content


def test_what_is_purged_leaves_no_trace_for_anybody(opened):
    one, other = opened(), opened()
    event = one.record_event("error", "noise").event
    one.add_node("fact", {"n": 1}, id="stays")
    until(lambda: known(other, "stays"))

    one.evict(ids=[event.id], keep_audit=False)

    other.refresh()
    for store in (one, other, opened()):
        assert store.verify().ok
        assert event.id not in {change.subject for change in store.changes()}
        assert {"n": 1} == store.node("stays").content
    other.add_node("fact", {"n": 2}, id="after")
    until(lambda: known(one, "after"))


def test_a_branch_of_one_is_gone_on_with_and_merged_by_another(opened):
    one, other = opened(), opened()
    one.add_node("fact", {"n": 1}, id="base")
    one.branch("idea").add_node("fact", {"n": 2}, id="new")

    other.refresh()
    other.on("idea").revise("base", {"n": 3})
    other.merge("idea")

    one.refresh()
    assert [{"n": 3}, {"n": 2}] == [one.node(id).content for id in ("base", "new")]
    check_whole([one, other], [])


# ---------------------------------------------------------------------- faults


def lose(servers: Any, url: str, after: int) -> None:
    """Take the last lines from a server, as a failover loses what was never acknowledged."""
    name = url.rpartition("=")[2]
    for table in ("body", "journal"):
        servers.primary.sql(f"delete from graphstore.{table} where store = '{name}' and seq > {after}")


def test_what_was_read_and_lost_is_forgotten_by_who_read_it(opened, servers, url):
    writer = opened()
    reader = opened(read_only=True)
    for number in range(6):
        writer.add_node("fact", {"n": number}, id=f"n{number}")
    until(lambda: known(reader, "n5"))

    lose(servers, url, 4)
    writer.close()
    other = opened()
    other.add_node("fact", {"n": "other"}, id="n4")

    until(
        lambda: reader.refresh() == 0 and known(reader, "n4") and reader.node("n4").content == {"n": "other"}
    )
    assert not known(reader, "n5")
    check_whole([reader, other], ["n0", "n4"])


def test_a_writer_whose_lines_were_lost_writes_after_those_that_are_there(opened, servers, url):
    writer = opened()
    for number in range(6):
        writer.add_node("fact", {"n": number}, id=f"n{number}")
    time.sleep(0.1)  # its turn is over

    lose(servers, url, 4)
    writer.add_node("fact", {"n": "after"}, id="after")

    assert not known(writer, "n5")
    check_whole([writer, opened()], ["n0", "n3", "after"])


def test_a_kept_copy_of_what_was_lost_is_made_anew(servers, url, tmp_path):
    kept = f"{url}&cache={tmp_path / 'copy'}"
    with graphstore.open(kept) as store:
        for number in range(300):
            store.add_node("fact", {"n": number}, id=f"n{number}")

    lose(servers, url, 200)

    with graphstore.open(kept) as store:
        assert 200 == store.stats()["transactions"]
        store.add_node("fact", {"n": "after"}, id="after")
        check_whole([store], ["n199", "after"])


def test_two_processes_write_at_once(opened, url):
    writers = [Writing(url, name, 150) for name in ("a", "b")]

    acknowledged = [id for writer in writers for id in writer.ended()]

    assert 300 == len(acknowledged)
    check_whole([opened(), opened(read_only=True)], acknowledged)


def test_what_is_acknowledged_is_at_the_server_by_then(servers, url, tmp_path):
    import psycopg

    cluster = Cluster(address(url), read_only=False)
    cluster.prepare(create=True)
    journal = ClusterJournal(tmp_path / "copy", cluster, writer=True)
    assert [] == list(journal.read())
    deciding, lines = threading.Lock(), 40

    def missing(_: int) -> list[int]:
        found = []
        with psycopg.connect(servers.primary.conninfo, autocommit=True) as other:
            for _ in range(100):
                with deciding:
                    journal.take_turn()
                    head: dict[str, Any] = {"tx": "2026-01-01T00:00:00Z", "ops": []}
                    journal.append([(dict(head), [b"{}"]) for _ in range(lines)])
                    ticket = journal.ticket()
                    journal.start_sync()
                    journal.leave_turn()
                assert journal.sync(ticket)
                wanted = "select count(*) from graphstore.journal where store = %s and seq > %s and seq <= %s"
                numbers = (lines * (ticket - 1), lines * ticket)
                there = other.execute(wanted, (cluster.where.store, *numbers)).fetchone()
                found += [ticket] * (there != (lines,))
        return found

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change anywhere
    try:
        with ThreadPoolExecutor(16) as pool:
            assert [[]] * 16 == list(pool.map(missing, range(16)))
    finally:
        sys.setswitchinterval(interval)
        journal.close()


@pytest.mark.parametrize("when", ["before", "middle", "after"])
@pytest.mark.parametrize(
    "step, mark",
    [("turn", "select pg_advisory_lock("), ("prepare", "graphstore_insert"), ("lines", '"cut-{}"'), ("end", "select pg_advisory_unlock(")],
)  # fmt: skip
def test_a_connection_cut_at_any_step_of_a_commit_leaves_no_doubt(opened, servers, url, step, mark, when):
    from tests.support.cutting_proxy import CuttingProxy

    proxy = CuttingProxy(servers.primary.port)
    store = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))
    for number in range(4):
        until(lambda: not store._core.journal.cluster.locked)  # each commit takes its turn, and ends it
        proxy.cut(mark.format(number).encode(), when)
        store.add_node("fact", {"says": f"cut-{number}"}, id=f"n{number}")
        until(lambda cuts=number + 1: cuts == proxy.cuts)

    proxy.close()
    assert 4 == store.stats()["transactions"]
    check_whole([opened()], [f"n{number}" for number in range(4)])


@pytest.mark.parametrize("when", ["before", "middle", "after"])
def test_threads_whose_connection_is_cut_again_and_again_write_all_once(opened, servers, url, when):
    from tests.support.cutting_proxy import CuttingProxy

    proxy, chance = CuttingProxy(servers.primary.port), random.Random(when)
    store = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))

    acknowledged: list[str] = []

    def add(mine: int) -> None:
        for number in range(60):
            acknowledged.append(store.add_node("fact", {"says": number}, id=f"n{mine}-{number}").id)

    with ThreadPoolExecutor(8) as pool:
        adding = [pool.submit(add, mine) for mine in range(8)]
        while not all(each.done() for each in adding):
            proxy.cut(b'"says":', when)
            more = len(acknowledged) + chance.randint(1, 40)
            until(lambda more=more: len(acknowledged) >= more or all(each.done() for each in adding))
    for each in adding:
        each.result()

    proxy.close()
    assert 480 == len(acknowledged) and proxy.cuts > 3
    check_whole([opened()], acknowledged)


@pytest.mark.parametrize("when", ["before", "middle", "after"])
def test_threads_whose_server_goes_away_know_what_was_kept_and_what_is_unknown(opened, servers, url, when):
    from tests.support.cutting_proxy import CuttingProxy

    proxy = CuttingProxy(servers.primary.port)
    store = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))
    store._core.journal.cluster.patience = 0.3
    outcomes: dict[str | None, list[str]] = {"kept": [], "not kept": [], "unknown": []}

    def add(mine: int) -> None:
        for n in range(10_000):
            try:
                store.add_node("fact", {"says": n}, id=f"n{mine}-{n}")
            except EngineError as error:
                outcomes[error.outcome].append(f"n{mine}-{n}")
                return
            outcomes["kept"].append(f"n{mine}-{n}")

    with ThreadPoolExecutor(8) as pool:
        for mine in range(8):
            pool.submit(add, mine)
        until(lambda: len(outcomes["kept"]) > 100)
        proxy.close_after_cut = True
        proxy.cut(b'"says":', when)

    assert 8 == len(outcomes["not kept"]) + len(outcomes["unknown"]) and outcomes["unknown"]
    again = opened()
    assert not any(known(again, id) for id in outcomes["not kept"])
    check_whole([again], outcomes["kept"])


def test_a_writer_that_was_stopped_is_fenced(opened, url):
    stopped = Writing(url, "stopped", 4_000)
    other = opened()
    until(lambda: other.stats()["transactions"] > 20)

    os.kill(stopped.process.pid, signal.SIGSTOP)
    try:
        for number in range(20):
            other.add_node("fact", {"n": number}, id=f"other-{number}")
    finally:
        os.kill(stopped.process.pid, signal.SIGCONT)
    until(lambda: other.stats()["transactions"] > 200)
    stopped.process.kill()
    assert stopped.process.stdout is not None
    acknowledged = [line.split()[1] for line in stopped.process.stdout if line.startswith("ok ")]
    stopped.process.wait()

    check_whole([other, opened()], [*acknowledged, *(f"other-{number}" for number in range(20))])


def test_reads_go_on_while_no_server_is_there_and_a_write_says_that_nothing_was_kept(opened, url, servers):
    from tests.support.cutting_proxy import CuttingProxy

    proxy = CuttingProxy(servers.primary.port)
    store = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))
    store.add_node("fact", {"n": 1}, id="one")
    store._core.journal.cluster.patience = 0.3
    proxy.close()
    time.sleep(0.1)  # its turn is over

    with pytest.raises(EngineError, match="cannot be reached") as refused:
        store.add_node("fact", {"n": 2}, id="two")

    assert "not kept" == refused.value.outcome
    assert {"n": 1} == store.node("one").content


def test_what_was_sent_without_an_answer_is_unknown_until_the_store_is_opened_again(opened, servers, url):
    from tests.support.cutting_proxy import CuttingProxy

    proxy = CuttingProxy(servers.primary.port)
    store = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))
    store.add_node("fact", {"n": 1}, id="one")
    store._core.journal.cluster.patience = 0.3
    proxy.cut(b'"in doubt"', "after")
    proxy.close_after_cut = True

    with pytest.raises(EngineError) as refused:
        store.add_node("fact", {"says": "in doubt"}, id="two")

    assert "unknown" == refused.value.outcome and refused.value.tx is not None
    assert {"n": 1} == store.node("one").content and not known(store, "two")
    with pytest.raises(EngineError):
        store.add_node("fact", {"n": 3}, id="three")
    again = opened()
    assert refused.value.tx in {change.tx for change in again.changes()}
    check_whole([again], ["one", "two"])


def test_a_reader_of_a_standby_that_lags_says_what_it_knows(opened, servers, url):
    lagging = servers.url(url.rpartition("=")[2], servers.standby)
    writer = opened()
    writer.add_node("fact", {"n": 1}, id="one")
    first = writer.last_write
    with graphstore.open(lagging, read_only=True) as reader:
        until(lambda: known(reader, "one"))
        with servers.standby.paused():
            writer.add_node("fact", {"n": 2}, id="two")
            assert 0 == reader.refresh() and not known(reader, "two")
            assert first == reader.as_of().at.tx
            with pytest.raises(InvalidError, match="not known here yet"):
                reader.as_of(tx=writer.last_write)
        until(lambda: known(reader, "two"))


def test_a_full_disk_of_the_server_keeps_nothing_of_what_it_refuses(opened, servers, url):
    store = opened()
    written = []
    with servers.primary.files_of_at_most(18 << 20), pytest.raises(EngineError) as refused:
        for number in range(12):
            content = {"says": random.Random(number).randbytes(1 << 20).hex()}
            store.add_node("fact", content, id=f"n{number}")
            written.append(f"n{number}")

    assert "not kept" == refused.value.outcome and not known(store, f"n{len(written)}")
    store.add_node("fact", {"n": "after"}, id="after")
    check_whole([store, opened()], [*written, "after"])


def test_a_connection_is_encrypted_and_its_server_checked_where_the_address_says_so(
    opened, servers, url, tmp_path, monkeypatch
):
    monkeypatch.setattr("graphstore.core.journal.cluster._PATIENCE", 0.2)
    host = servers.url("x", servers.primary).partition("@")[2].partition("/")[0]
    at = url.replace(url.partition("@")[2].partition("/")[0], host)
    with servers.primary.encrypted() as certificate:
        checked = f"{at}&sslmode=verify-full&sslrootcert={certificate}"
        with graphstore.open(checked) as store:
            store.add_node("fact", {"n": 1}, id="one")
            used = "select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'graphstore' and ssl"
            assert [(True,)] == servers.primary.sql(used)
        other = tmp_path / "other.pem"
        other.write_bytes(certificate.read_bytes()[:-200])
        with pytest.raises(EngineError, match=r"(?i)certificate|ssl"):
            graphstore.open(f"{at}&sslmode=verify-full&sslrootcert={other}")


@pytest.mark.parametrize("size", [1, 1 << 17])
def test_a_full_disk_beneath_the_copy_keeps_nothing_of_what_it_refuses(opened, tmp_path, url, size):
    store = opened(f"{url}&cache={tmp_path / 'copy'}")
    store.add_node("fact", {"n": 0}, id="before")
    most = max(each.stat().st_size for each in tmp_path.rglob("*.jsonl"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most + 50, limits[1]))
    try:
        with pytest.raises(EngineError, match=r"cannot write .*jsonl") as refused:
            store.add_node("fact", {"n": "y" * size}, id="not kept")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert "not kept" == refused.value.outcome and not known(store, "not kept")
    store.add_node("fact", {"n": 1}, id="after")
    assert {"n": 1} == store.node("after").content
    check_whole([store, opened()], ["before", "after"])


def test_what_the_server_refuses_is_not_kept_and_the_store_goes_on(opened, servers, url):
    store = opened()
    store.add_node("fact", {"n": 1}, id="one")
    name = url.rpartition("=")[2]
    servers.primary.sql(
        "create or replace function full_disk() returns trigger language plpgsql as "
        f"$$begin if new.store = '{name}' then raise exception 'no space left' using errcode = '53100'; end if; return new; end$$;"
        "create or replace trigger full_disk before insert on graphstore.body for each row execute function full_disk()"
    )

    with pytest.raises(EngineError, match="no space left") as refused:
        store.add_node("fact", {"n": 2}, id="two")

    assert "not kept" == refused.value.outcome and not known(store, "two")
    servers.primary.sql("drop trigger full_disk on graphstore.body")
    store.add_node("fact", {"n": 3}, id="two")
    check_whole([store, opened()], ["one", "two"])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_primary_loses_nothing_that_was_acknowledged(seed):
    from tests.support import postgres

    with postgres.pair(in_memory=True) as pair:
        url = pair.url("team")
        writers = [Writing(url, name, 700) for name in ("a", "b", "c")]
        follower = graphstore.open(url, read_only=True)
        until(lambda: follower.stats()["transactions"] > random.Random(seed).randint(50, 600))

        pair.primary.kill()
        pair.standby.promote()

        acknowledged = [id for writer in writers for id in writer.ended()]
        assert 2_100 == len(acknowledged)
        with follower, graphstore.open(url) as fresh:
            until(lambda: follower.stats()["transactions"] == fresh.stats()["transactions"])
            check_whole([fresh, follower], acknowledged)


# ---------------------------------------------------------------------- a server that says nothing


def impatient(
    store: graphstore.GraphStore, silence: float = 0.5, patience: float = 1.0
) -> graphstore.GraphStore:
    """The store, which waits for its server less long."""
    store._core.journal.cluster.silence, store._core.journal.cluster.patience = silence, patience
    return store


def timed(work: Callable[[], Any]) -> float:
    """How many seconds it takes; it may raise EngineError."""
    begun = time.monotonic()
    with suppress(EngineError):
        work()
    return time.monotonic() - begun


@pytest.fixture
def alone(servers: Any, url: str) -> str:
    """The address of the store at the primary, which is not looked for long where it is silent."""
    return f"{servers.url(url.rpartition('=')[2], servers.primary)}&connect_timeout=2"


@pytest.fixture
def slow(servers: Any, url: str) -> Iterator[Callable[[], list[int]]]:
    """Has what the server inserts into the store with `slow` in it take a second. Gives the processes that are at it."""
    name = url.rpartition("=")[2]
    servers.primary.sql(
        "create or replace function take_time() returns trigger language plpgsql as "
        f"$$begin if new.store = '{name}' and position('slow' in encode(new.bytes, 'escape')) > 0 then perform pg_sleep(1); end if; return new; end$$;"
        "create or replace trigger take_time before insert on graphstore.body for each row execute function take_time()"
    )
    wanted = "select pid from pg_stat_activity where wait_event = 'PgSleep'"
    yield lambda: [int(str(pid)) for (pid,) in servers.primary.sql(wanted)]
    servers.primary.sql("drop trigger take_time on graphstore.body")


def test_a_frozen_server_is_not_waited_for_without_end(opened, servers, alone):
    store = impatient(opened(alone))
    store.add_node("fact", {"n": 1}, id="one")
    until(lambda: not store._core.journal.cluster.locked)

    with servers.primary.frozen():
        begun = time.monotonic()
        with pytest.raises(EngineError, match="cannot be reached") as refused:
            store.add_node("fact", {"n": 2}, id="two")
        assert "not kept" == refused.value.outcome
        assert timed(store.refresh) < 5
        assert {"n": 1} == store.node("one").content
        until(lambda: "cannot be reached" in (store._core.journal.away or ""))
        assert time.monotonic() - begun < 20

    until(lambda: timed(lambda: store.add_node("fact", {"n": 3}, id="three")) < 5 and known(store, "three"))
    until(lambda: store._core.journal.away is None)
    check_whole([store, opened()], ["one", "three"])


def test_a_store_whose_server_is_frozen_is_closed(opened, servers, alone):
    store = impatient(opened(alone))
    store.add_node("fact", {"n": 1}, id="one")
    with servers.primary.frozen():
        assert timed(store.close) < 5


@pytest.mark.parametrize("goes_on", ["at once", "while it is asked for", "when it was given up"])
def test_a_server_that_freezes_in_the_middle_of_a_commit_keeps_it_once(opened, servers, alone, slow, goes_on):
    store = opened(alone)
    store.add_node("fact", {"n": 1}, id="one")
    impatient(store, patience={"when it was given up": 1.0}.get(goes_on, 60.0))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.add_node, "fact", {"says": "slow"}, id="two")
        until(slow)
        with servers.primary.frozen():
            time.sleep({"at once": 0.1, "while it is asked for": 4.0, "when it was given up": 0.0}[goes_on])
            if goes_on == "when it was given up":
                error = writing.exception(20)
                assert isinstance(error, EngineError) and "unknown" == error.outcome, error
                assert "no answer to a commit" in str(error)
                assert "asked for it before anything else" in str(error) and str(error.tx.year) in str(error)
                assert not known(store, "two")
        if goes_on != "when it was given up":
            assert "two" == writing.result(30).id

    until(lambda: timed(lambda: store.add_node("fact", {"n": 3}, id="three")) < 5 and known(store, "three"))

    assert {"says": "slow"} == store.node("two").content, "the server had it, and went on"
    check_whole([store, opened()], ["one", "two", "three"])


def test_what_was_given_up_and_was_not_kept_is_not_there_and_may_be_written_again(
    opened, servers, alone, slow
):
    store = opened(alone)
    store.add_node("fact", {"n": 1}, id="one")
    impatient(store)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.add_node, "fact", {"says": "slow"}, id="two")
        until(slow)
        [pid] = slow()
        with servers.primary.frozen():
            assert isinstance(writing.exception(20), EngineError)
            os.kill(pid, signal.SIGTERM)  # what it does as soon as it goes on

    until(
        lambda: timed(lambda: store.add_node("fact", {"says": "again"}, id="two")) < 5 and known(store, "two")
    )

    assert {"says": "again"} == store.node("two").content
    check_whole([store, opened()], ["one", "two"])


def test_one_process_of_the_server_that_is_stopped_holds_nobody_up_for_long(
    opened, servers, alone, slow, monkeypatch
):
    monkeypatch.setattr("graphstore.core.journal.cluster._TURN", 0.5)
    store, other = opened(alone), opened(alone)
    store.add_node("fact", {"n": 1}, id="one")
    impatient(store, patience=2.0)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.add_node, "fact", {"says": "slow"}, id="two")
        until(slow)
        with servers.primary.frozen(only=slow()):
            error = writing.exception(30)
            assert isinstance(error, EngineError) and "unknown" == error.outcome, error

    until(lambda: timed(lambda: store.add_node("fact", {"n": 3}, id="three")) < 5 and known(store, "three"))
    check_whole([store, other], ["one", "three"])


def test_threads_write_all_once_through_a_server_that_freezes_now_and_then(opened, servers, alone):
    store = opened(alone)
    store.add_node("fact", {"n": 0}, id="first")
    impatient(store, silence=0.3, patience=60.0)
    acknowledged: list[str] = []

    def add(mine: int) -> None:
        for number in range(150):
            acknowledged.append(store.add_node("fact", {"says": number}, id=f"n{mine}-{number}").id)

    with ThreadPoolExecutor(8) as pool:
        adding = [pool.submit(add, mine) for mine in range(8)]
        for seconds in (0.2, 1.0, 3.0):
            more = len(acknowledged) + 150
            until(lambda more=more: len(acknowledged) >= more or all(each.done() for each in adding))
            with servers.primary.frozen():
                time.sleep(seconds)
    for each in adding:
        each.result()

    assert 1_200 == len(acknowledged)
    check_whole([store, opened()], acknowledged)


def test_a_standby_that_lags_is_waited_for_longer_than_a_silent_server(opened, servers, alone):
    store = impatient(opened(alone), silence=0.3)
    store.add_node("fact", {"n": 1}, id="one")

    with ThreadPoolExecutor(1) as pool:
        with servers.standby.frozen():
            writing = pool.submit(store.add_node, "fact", {"n": 2}, id="two")
            time.sleep(4)
            assert not writing.done()
        assert "two" == writing.result(20).id

    check_whole([store, opened()], ["one", "two"])


def test_forgetting_takes_the_time_that_the_server_needs(opened, servers, limited):
    alone = f"postgresql://postgres@127.0.0.1:{servers.primary.port}/{limited.name}?store=a"
    with graphstore.open(alone) as store:
        for number in range(40):
            store.add_node("fact", {"says": random.Random(number).randbytes(20_000).hex()}, id=f"n{number}")
    slowly = "options=-cvacuum_cost_delay=20%20-cvacuum_cost_limit=1%20-cvacuum_cost_page_dirty=40"
    with graphstore.open(f"{alone}&{slowly}") as store:
        impatient(store, silence=0.3, patience=0.5)

        took = timed(lambda: store.erase("n1", reason="asked for"))

        assert took > 1.5, f"{took}: VACUUM was to be slow"
        [notice] = [one for one in store.notices if "deleted" in one]
        assert "is deleted. The server's write-ahead log" in notice
        check_whole([store], [])


def test_it_is_told_that_the_server_which_took_over_waits_for_no_standby(opened, servers, alone):
    store = opened(alone)
    assert [] == store.notices
    servers.primary.sql("alter system set synchronous_standby_names = ''")
    servers.primary.sql("select pg_reload_conf()")
    try:
        until(lambda: servers.primary.sql("show synchronous_standby_names") == [("",)])
        for _ in range(2):
            servers.primary.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'graphstore'"
            )
            store.add_node("fact", {"n": 1})
    finally:
        servers.primary.sql("alter system set synchronous_standby_names = 'standby'")
        servers.primary.sql("select pg_reload_conf()")

    [notice] = store.notices
    assert "no synchronous standby" in notice


# ---------------------------------------------------------------------- overtaken


@pytest.fixture
def overtaken(opened, servers, url, monkeypatch):
    """A store whose commit with some mark is held up on its way until another process has written, and that one."""
    from tests.support.cutting_proxy import CuttingProxy

    proxy = CuttingProxy(servers.primary.port)
    slow = opened(url.replace(url.partition("@")[2].partition("/")[0], f"127.0.0.1:{proxy.port}"))
    monkeypatch.setattr("graphstore.core.journal.cluster._TURN", 0.2)
    other = opened()

    def held_up(mark: str, work: Callable[[], Any], meanwhile: Callable[[graphstore.GraphStore], Any]) -> Any:
        proxy.hold(f'"{mark}"'.encode())
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(work)
            until(lambda: proxy.holds)
            meanwhile(other)
            proxy.release()
            return waiting.result(20)

    yield slow, other, held_up
    proxy.close()


def test_a_verb_that_another_process_came_before_is_decided_again(overtaken):
    slow, other, held_up = overtaken
    slow.add_node("fact", {"n": 0}, id="old", key="slot", valid_from="2026-01-01")

    def theirs(store):
        store.add_node("fact", {"n": 1}, id="theirs", key="slot", valid_from="2026-02-01")

    mine = held_up(
        "held",
        lambda: slow.add_node("fact", {"n": "held"}, id="mine", key="slot", valid_from="2026-03-01", tags=iter(["a"])),
        theirs,
    )  # fmt: skip

    assert ("a",) == tuple(mine.tags)
    assert (
        day("2026-03-01") == slow.as_of(valid="2026-02-15").node("theirs").valid_to
    )  # decided on what it had not seen before
    assert day("2026-02-01") == slow.as_of(valid="2026-01-15").node("old").valid_to
    check_whole([slow, other], ["old", "theirs", "mine"])


def test_a_verb_whose_ground_was_taken_away_is_refused_for_what_is_there_now(overtaken):
    slow, other, held_up = overtaken

    with pytest.raises(ConflictError, match="same"):
        held_up(
            "held",
            lambda: slow.add_node("fact", {"n": "held"}, id="same"),
            lambda store: store.add_node("fact", {"n": "theirs"}, id="same"),
        )

    assert {"n": "theirs"} == slow.node("same").content
    check_whole([slow, other], ["same"])


def test_a_block_is_not_decided_again_but_by_who_wrote_it(overtaken):
    slow, other, held_up = overtaken
    slow.add_node("account", {"held": 10}, id="account")
    tries = 0

    def more(store):
        nonlocal tries
        tries += 1
        store.revise("account", {"held": store.node("account").content["held"] + 1})
        store.add_node("fact", {"n": "held"}, id="held")
        return tries

    def block():
        with slow.transaction():
            more(slow)

    def theirs(store):
        store.revise("account", {"held": 100})

    with pytest.raises(WriteConflictError, match="in_transaction") as refused:
        held_up("held", block, theirs)
    assert "not kept" == refused.value.outcome and 1 == tries and not known(slow, "held")
    assert {"held": 100} == slow.node("account").content

    theirs = partial(GraphStore.revise, id="account", content={"held": 200})
    assert 3 == held_up("held", lambda: slow.in_transaction(more), theirs)
    assert {"held": 201} == slow.node("account").content
    check_whole([slow, other], ["account", "held"])
