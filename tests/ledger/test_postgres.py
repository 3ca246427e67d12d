"""A store in PostgreSQL: it is copied both ways, many write it, and nothing acknowledged is lost when the server or the network fails."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import ConflictError, EngineError, GraphStoreError, InvalidError, NotFoundError
from graphstore.errors import LockedError

pytestmark = [pytest.mark.postgres, pytest.mark.rest, pytest.mark.in_process("opens stores by their address")]


@pytest.fixture
def url(postgres: Any) -> str:
    """The address of a new store."""
    return str(postgres.url(f"store-{uuid.uuid4().hex}"))


def filled(store: Any) -> None:
    """Write one of each: nodes, links, events, branches, what was retracted and erased, and U+0000 wherever a text may be."""
    for at in range(20):
        store.add_node(
            "fact",
            {"says": f"it is {at}\0\1"},
            id=f"n{at}",
            key=f"k{at % 3}",
            tags=[f"t{at % 2}"],
            reason="so \0 it is",
        )
    store.link("n1", "derived_from", "n2", reason="read", metadata={"page": "\0"})
    store.record_event("message", "hello \0", metadata={"sender": "a\0b"}, id="m1")
    store.retract("n2", reason="never so")
    store.erase("n3", reason="must go")
    store.branch("idea").add_node("fact", {"says": "perhaps"}, id="b1")


def dumped(store: Any, file: Path) -> bytes:
    store.export(file)
    return file.read_bytes()


def test_a_store_is_copied_there_and_back_with_equal_bytes(url: str, tmp_path: Path):
    with graphstore.open(tmp_path / "a.gs") as store:
        filled(store)
        before, told = dumped(store, tmp_path / "a"), [str(each) for each in store.changes()]

    there = graphstore.copy(tmp_path / "a.gs", url)
    again = graphstore.copy(tmp_path / "a.gs", url)
    back = graphstore.copy(url, tmp_path / "b.gs")

    assert there.lines == there.total == back.lines and again.lines == 0
    assert there.digest == again.digest == back.digest
    with graphstore.open(url) as store:
        assert store.verify().ok and dumped(store, tmp_path / "p") == before
        assert [str(each) for each in store.changes()] == told
    with graphstore.open(tmp_path / "b.gs") as store:
        assert dumped(store, tmp_path / "b") == before
    assert graphstore.verify(url).ok


def test_a_copy_goes_on_where_it_ended_and_refuses_another_store(url: str, tmp_path: Path):
    with graphstore.open(url) as store:
        store.add_node("fact", {"says": "one"})
        graphstore.copy(url, tmp_path / "a.gs")
        store.add_node("fact", {"says": "two"})
    assert graphstore.copy(url, tmp_path / "a.gs").lines == 1
    with graphstore.open(tmp_path / "other.gs") as store:
        store.add_node("fact", {"says": "other"})
    with pytest.raises(ConflictError, match="other lines"):
        graphstore.copy(tmp_path / "other.gs", url)


def test_opening_makes_a_schema_once_and_a_reader_makes_none(postgres: Any, url: str):
    with pytest.raises(NotFoundError):
        graphstore.open(url, read_only=True)
    with pytest.raises(NotFoundError):
        graphstore.open(url, create=False)
    with graphstore.open(url) as store:
        node = store.add_node("fact", {"says": "it"})
        with graphstore.open(url, read_only=True) as reader:
            assert reader.node(node.id).content == {"says": "it"}
            with pytest.raises(InvalidError, match="read only"):
                reader.add_node("fact", {"says": "that"})


@pytest.mark.parametrize("name", ["public", "pg_mine", "information_schema", "x" * 64, "a%00b"])
def test_a_name_that_is_none_is_refused(postgres: Any, name: str):
    with pytest.raises(InvalidError, match="no name of a store"):
        graphstore.open(f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres?store={name}")


def test_a_schema_with_other_tables_is_refused(postgres: Any):
    name = f"other{uuid.uuid4().hex}"
    postgres.sql(f"create schema {name}")
    postgres.sql(f"create table {name}.mine (x int)")
    with pytest.raises(InvalidError, match="mine"):
        graphstore.open(postgres.url(name))


def test_no_message_shows_a_password(postgres: Any, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    role = f"r{uuid.uuid4().hex[:8]}"
    postgres.sql(f"create role {role} login")
    secret = "s3cr3t"
    told = []
    for where in (
        f"postgresql://{role}:{secret}@127.0.0.1:{postgres.port}/postgres?store=x",
        f"postgresql://{role}:{secret}@127.0.0.1:1/postgres?store=x&connect_timeout=1",
        f"postgresql://{role}:{secret}@127.0.0.1:{postgres.port}/nowhere?store=x",
        f"postgresql://{role}:{secret}@127.0.0.1:{postgres.port}/postgres?store=x&unknown={secret}",
        f"postgresql://127.0.0.1:{postgres.port}/postgres?store=x&user={role}&password={secret}",
    ):
        with pytest.raises(GraphStoreError) as refused:
            graphstore.open(where)
        error: BaseException | None = refused.value
        while error is not None:
            told += [str(error), repr(error)]
            error = error.__cause__ or error.__context__
    with graphstore.open(
        f"postgresql://postgres:{secret}@127.0.0.1:{postgres.port}/postgres?store=x{uuid.uuid4().hex}"
    ) as store:
        told += [repr(store), str(store.stats())]
    assert not [each for each in [*told, caplog.text] if secret in each]


def test_a_role_without_rights_is_told_which_it_needs(postgres: Any, url: str):
    role = f"r{uuid.uuid4().hex[:8]}"
    postgres.sql(f"create role {role} login")
    with pytest.raises(EngineError, match="GRANT CREATE ON DATABASE"):
        graphstore.open(url.replace("postgres@", f"{role}@"))
    graphstore.open(url).close()
    with pytest.raises(EngineError, match="Give the role the right"):
        graphstore.open(url.replace("postgres@", f"{role}@"))
    name = url.partition("store=")[2]
    postgres.sql(f'grant usage on schema "{name}" to {role}')
    postgres.sql(f'grant select on all tables in schema "{name}" to {role}')
    with graphstore.open(url.replace("postgres@", f"{role}@"), read_only=True) as reader:
        assert reader.nodes() == []
    with (
        graphstore.open(url.replace("postgres@", f"{role}@")) as writer,
        pytest.raises(EngineError, match="UPDATE") as refused,
    ):
        writer.add_node("fact", {"says": "it"})
    assert refused.value.outcome == "not kept"


def test_a_writer_that_waits_is_told_who_writes(url: str):
    with graphstore.open(url) as store, store.transaction():
        store.add_node("fact", {"says": "mine"})
        code = (
            "import graphstore, sys\n"
            "try: graphstore.open(sys.argv[1], timeout=0.3).add_node('fact', {'says': 'yours'})\n"
            "except graphstore.errors.LockedError as error: print(error)"
        )
        told = subprocess.run(
            [sys.executable, "-c", code, url], capture_output=True, text=True, check=True
        ).stdout
    assert "has been writing" in told and "'graphstore'" in told
    with graphstore.open(url) as store:
        assert [each.content for each in store.nodes()] == [{"says": "mine"}]


def test_threads_and_processes_write_one_after_another(url: str):
    code = "import graphstore, sys\nwith graphstore.open(sys.argv[1]) as s:\n  [s.add_node('fact', {'says': str(i)}) for i in range(25)]"
    with graphstore.open(url) as store:
        others = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(3)]
        threads = [
            threading.Thread(target=lambda: [store.add_node("fact", {"says": "t"}) for _ in range(10)])
            for _ in range(2)
        ]
        for each in threads:
            each.start()
        for thread in threads:
            thread.join()
        assert [each.wait() for each in others] == [0, 0, 0]
        assert len(store.nodes()) == 95 and store.verify().ok
        instants = [each.tx for each in store.changes()]
    assert instants == sorted(set(instants))


@pytest.mark.parametrize("hours", [-26, 26])
def test_tx_is_of_the_clock_of_the_server(url: str, hours: int):
    code = (
        "import sys, time\n"
        "real, shift = time.time_ns, int(sys.argv[2]) * 3600 * 10**9\n"
        "time.time_ns = lambda: real() + shift\n"
        "import graphstore\n"
        "with graphstore.open(sys.argv[1]) as s: s.add_node('fact', {'says': 'shifted'})"
    )
    with graphstore.open(url) as store:
        store.add_node("fact", {"says": "before"})
        subprocess.run([sys.executable, "-c", code, url, str(hours)], check=True)
        store.add_node("fact", {"says": "after"})
        instants = [each.tx.timestamp() for each in store.changes()]
    assert instants == sorted(set(instants)) and max(instants) - min(instants) < 60


# ---------------------------------------------------------------- what fails on the way


class Line:
    """Passes bytes between clients and a server, until it is told to cut: `after` what the server answers to a text, or `before` the text reaches it."""

    def __init__(self, port: int) -> None:
        self._to, self._listening = port, socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.text, self.when, self.cuts = b"", "", 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, text: bytes, when: str) -> None:
        """Cut the connection that next sends this text."""
        self.text, self.when, self.cuts = text, when, 0

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                answering = threading.Event()
                threading.Thread(target=self._forward, args=(client, server, answering), daemon=True).start()
                threading.Thread(target=self._back, args=(server, client, answering), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self.text and self.text in data:
                    self.text, self.cuts = b"", self.cuts + 1
                    if self.when == "before":
                        break
                    cut.set()
                server.sendall(data)
        for each in (client, server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _back(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if cut.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@pytest.fixture
def line(postgres: Any) -> Iterator[Line]:
    yield Line(postgres.port)


def through(line: Line, url: str, postgres: Any) -> str:
    return url.replace(f":{postgres.port}/", f":{line.port}/")


@pytest.mark.parametrize("text", [b"synchronous_commit = off; COMMIT", b"INSERT INTO flushed VALUES"])
def test_a_write_whose_answer_is_lost_is_looked_for(postgres: Any, url: str, line: Line, text: bytes):
    with graphstore.open(through(line, url, postgres)) as store:
        line.cut(text, "after")
        node = store.add_node("fact", {"says": "cut"})
        assert line.cuts == 1
        assert store.node(node.id).content == {"says": "cut"}
        store.add_node("fact", {"says": "after"})
        assert len(store.changes()) == 2 and store.verify().ok


def test_a_write_that_is_lost_before_its_commit_is_not_kept(postgres: Any, url: str, line: Line):
    with graphstore.open(through(line, url, postgres)) as store:
        store.add_node("fact", {"says": "before"})
        for text in (b"synchronous_commit = off; COMMIT", b"all_version"):
            line.cut(text, "before")
            with pytest.raises(EngineError) as refused:
                store.add_node("fact", {"says": "cut"})
            assert refused.value.outcome == "not kept" and line.cuts == 1
        store.add_node("fact", {"says": "after"})
        assert [each.content["says"] for each in store.nodes()] == ["before", "after"] and store.verify().ok


def test_a_read_is_asked_again_on_a_new_connection(postgres: Any, url: str):
    with graphstore.open(url) as store:
        node = store.add_node("fact", {"says": "it"})
        postgres.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'graphstore'"
        )
        assert store.node(node.id).content == {"says": "it"}
        postgres.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'graphstore'"
        )
        store.add_node("fact", {"says": "that"})
        assert len(store.nodes()) == 2


def test_a_server_that_is_silent_is_waited_for(postgres: Any, url: str):
    with graphstore.open(url) as store:
        store.add_node("fact", {"says": "it"})
        with postgres.frozen():
            done = threading.Thread(target=lambda: store.add_node("fact", {"says": "that"}))
            done.start()
            time.sleep(2)
            assert done.is_alive()
        done.join(30)
        assert len(store.nodes()) == 2


def test_a_standby_that_is_promoted_has_all_that_was_acknowledged():
    from tests.support import postgres

    if not postgres.THERE:
        pytest.skip("needs PostgreSQL's programs: the package postgresql-15")
    with postgres.pair(in_memory=True) as servers:
        promote(servers)


def promote(servers: Any) -> None:
    """Kill the primary while somebody writes, and read at the standby what was acknowledged. Nobody else can use these servers."""
    name = uuid.uuid4().hex
    with graphstore.open(servers.url(name, servers.primary)) as store:
        kept, stop = [], threading.Event()

        def write() -> None:
            with contextlib.suppress(EngineError):
                while not stop.is_set():
                    kept.append(store.add_node("fact", {"says": str(len(kept))}).id)

        writing = threading.Thread(target=write)
        writing.start()
        time.sleep(3)
        servers.primary.kill()
        stop.set()
        writing.join(60)
    servers.standby.sql("alter system set synchronous_standby_names = ''")
    servers.standby.promote()
    with graphstore.open(servers.url(name, servers.standby)) as store:
        found = [each.id for each in store.nodes()]
        assert kept and set(kept) <= set(found) and len(found) <= len(kept) + 1
        assert store.verify().ok


def test_a_turn_of_another_thread_ends_in_time(url: str):
    with graphstore.open(url, timeout=0.2) as store, graphstore.open(url, timeout=0.2) as other:
        refused: list[BaseException] = []

        def write() -> None:
            try:
                other.add_node("fact", {"says": "yours"})
            except LockedError as error:
                refused.append(error)

        with store.transaction():
            store.add_node("fact", {"says": "mine"})
            writing = threading.Thread(target=write)
            writing.start()
            writing.join(20)
        assert "Try again" in str(refused[0])
        with store.transaction(), pytest.raises(InvalidError, match="another opening"):
            other.add_node("fact", {"says": "yours"})


def test_a_pooler_in_transaction_mode_is_in_front(postgres: Any, url: str, tmp_path: Path):
    if shutil.which("pgbouncer", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("needs pgbouncer, of Debian's package of that name")
    from tests.support.postgres import pooler

    with graphstore.open(tmp_path / "a.gs") as folder:
        filled(folder)
    with pooler(postgres) as port:
        pooled = url.replace(f":{postgres.port}/", f":{port}/")
        assert graphstore.copy(tmp_path / "a.gs", pooled).lines > 20
        with (
            graphstore.open(pooled) as store,
            graphstore.open(pooled) as other,
            graphstore.open(url) as direct,
        ):
            nodes = [each.add_node("fact", {"says": "it"}) for each in (store, other, direct, store)]
            assert [store.node(each.id).id for each in nodes] == [other.node(each.id).id for each in nodes]
            assert store.what_superseded("n0") and direct.last_tx == store.last_tx
            threads = [
                threading.Thread(target=lambda: [store.add_node("fact", {"says": "t"}) for _ in range(5)])
                for _ in range(6)
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert len(store.nodes()) == len(direct.nodes()) and store.verify().ok
