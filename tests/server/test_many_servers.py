"""Several servers over one store in PostgreSQL: any takes writes, and what one was told the others tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import graphstore
from graphstore import InvalidError
from graphstore.cli.command_line import app
from graphstore.server.dispatch import ServerLimits
from tests.support.cutting_proxy import CuttingProxy
from tests.support.served import serve_in_process, serve_in_thread
from tests.support.wire import WRITE, Wire

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.rest,
    pytest.mark.in_process("starts servers of its own"),
    pytest.mark.skip(reason="a store in PostgreSQL is refused until it runs on the statements of the ledger"),
]


@pytest.fixture
def address(servers: Any) -> str:
    return str(servers.url(uuid.uuid4().hex))


def within(seconds: float, true: Any) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_any_of_two_servers_takes_writes_and_both_answer_alike(address, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    with (
        serve_in_process(f"{address}&cache={folders[0]}") as (_, first),
        serve_in_process(f"{address}&cache={folders[1]}") as (_, second),
        graphstore.open(first, token=(folders[0] / "token").read_text().strip()) as one,
        graphstore.open(second, token=(folders[1] / "token").read_text().strip()) as two,
    ):
        stores = [one, two]

        def write(at: int) -> None:
            for number in range(60):
                stores[at].add_node("fact", {"n": number}, id=f"{at}-{number}")

        threads = [threading.Thread(target=write, args=(at,)) for at in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        within(10, lambda: 120 == one.stats()["nodes"] == two.stats()["nodes"])
        assert list(one.changes()) == list(two.changes())
        assert one.verify().ok and two.verify().ok


def test_who_follows_one_server_hears_what_was_written_at_another(address, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    heard: list[str] = []
    with (
        serve_in_process(f"{address}&cache={folders[0]}") as (_, first),
        serve_in_process(f"{address}&cache={folders[1]}") as (_, second),
        graphstore.open(second, token=(folders[1] / "token").read_text().strip()) as two,
    ):
        token = (folders[0] / "token").read_text().strip()
        asked = urllib.request.Request(
            f"{first}/changes", headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        )

        def listen() -> None:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                for line in answer:
                    if line.startswith(b"data:"):
                        heard.append(str(json.loads(line[5:])))
                        if "told" in heard[-1]:
                            return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        time.sleep(0.5)
        two.add_node("fact", {"n": 1}, id="told")

        listening.join(10)
        assert any("told" in one for one in heard)


def test_a_server_whose_store_is_gone_says_so_and_answers_with_what_it_knows(address, servers, tmp_path):
    proxy = CuttingProxy(servers.primary.port)
    host = address.partition("@")[2].partition("/")[0]
    at = f"{address.replace(host, f'127.0.0.1:{proxy.port}')}&cache={tmp_path / 'copy'}"
    with serve_in_process(at) as (_, url):
        wire = Wire(url, (tmp_path / "copy" / "token").read_text().strip())
        wire.post("/add_node", {"kind": "fact", "content": {"n": 1}, "id": "one"})
        assert 200 == wire.ask("GET", "/health")[0]

        proxy.close()

        within(20, lambda: 503 == wire.ask("GET", "/health")[0])
        assert {"n": 1} == wire.get("/node?id=one")["content"]


def test_who_writes_to_a_server_whose_store_is_gone_is_answered_soon(address, servers, tmp_path):
    proxy = CuttingProxy(servers.primary.port)
    host = address.partition("@")[2].partition("/")[0]
    at = f"{address.replace(host, f'127.0.0.1:{proxy.port}')}&cache={tmp_path / 'copy'}"
    with serve_in_process(at) as (_, url):
        wire = Wire(url, (tmp_path / "copy" / "token").read_text().strip())
        wire.post("/add_node", {"kind": "fact", "content": {"n": 1}, "id": "one"})

        proxy.close()

        within(4, lambda: 503 == wire.ask("GET", "/health")[0])
        begun, token = time.monotonic(), (tmp_path / "copy" / "token").read_text().strip()

        def add(n: int) -> Any:
            return Wire(url, token).ask("POST", "/add_node", {"kind": "fact", "content": {}, "id": f"n{n}"})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(add, range(8)))
        assert [503] * 8 == [status for status, *_ in answers], answers
        assert all("cannot be reached" in str(body) for _, body, *_ in answers), answers
        assert time.monotonic() - begun < 12


def test_a_server_names_the_address_of_its_store_without_the_password(address, tmp_path):
    at = f"{address.replace('postgres@', 'postgres:s3cret@')}&cache={tmp_path / 'copy'}"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphstore", "serve", at, "--port", "0", "--log-level", "info"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    process.terminate()
    rest, lines = process.communicate(timeout=20)

    shown = "postgresql://" + address.partition("@")[2]
    assert first.startswith(f"serving {shown} on http://"), first
    assert f"store={shown}" in lines or f'"{shown}"' in lines, lines
    assert "s3cret" not in first + rest + lines


@pytest.mark.parametrize("said", ["True", "-1", "12", "soon", "", "2026-01-01T00:00:00"])
def test_a_header_that_is_no_tx_is_refused(address, said):
    with served(address) as one:
        status, body, _ = Wire(one.url, WRITE).ask("GET", "/nodes", None, **{"Graphstore-At-Least": said})

    assert 422 == status and "Graphstore-At-Least" in str(body), body


def test_a_copy_is_not_opened_as_a_store_and_a_store_is_no_copy(address, tmp_path):
    copy, own = tmp_path / "copy", tmp_path / "own.gs"
    with graphstore.open(f"{address}&cache={copy}") as store:
        store.add_node("fact", {"n": 1}, id="one")
    with graphstore.open(own) as store:
        store.add_node("fact", {"n": 1}, id="mine")

    with pytest.raises(InvalidError, match="is a copy of postgresql://"):
        graphstore.open(copy)
    with pytest.raises(InvalidError, match="no copy"):
        graphstore.open(f"{address}&cache={own}")

    with graphstore.open(own, read_only=True) as store:
        assert {"n": 1} == store.node("mine").content


@pytest.fixture
def two(address: str) -> Iterator[tuple[Served, Served]]:
    """Two servers over one store in threads of this process, which the same tokens let in."""
    with ExitStack() as ending:
        yield tuple(ending.enter_context(served(address)) for _ in range(2))


@contextmanager
def served(address: str, **options: Any) -> Iterator[Served]:
    limits = ServerLimits(behind=0.3)
    with graphstore.open(address, **options) as store, serve_in_thread(store, limits=limits) as url:
        yield Served(store, url)


def ask(url: str, body: dict[str, Any], id: str, *, again: bool = False) -> Any:
    """Add a node by a request with an id."""
    headers = {
        "Authorization": f"Bearer {WRITE}",
        "Content-Type": "application/json",
        "Graphstore-Request": id,
        **({"Graphstore-Again": "yes"} if again else {}),
    }
    asked = urllib.request.Request(f"{url}/add_node", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def hold(store: graphstore.GraphStore, until: threading.Event) -> None:
    """Keep the writer of a server waiting, and give its turn at the database to others."""
    with store._writer:
        until.wait(20)


def events(url: str, last: str | None, count: int) -> list[tuple[str, list[str]]]:
    """The next changes that a server tells after an id: the id of each, and what it is about."""
    headers = {"Authorization": f"Bearer {WRITE}", "Accept": "text/event-stream"}
    asked = urllib.request.Request(
        f"{url}/changes", headers=headers | ({"Last-Event-ID": last} if last else {})
    )
    found: list[tuple[str, list[str]]] = []
    with urllib.request.urlopen(asked, timeout=20) as answer:
        for line in answer:
            if line.startswith(b"id:"):
                id = line[3:].decode().strip()
            elif line.startswith(b"data:"):
                found.append((id, [change["subject"] for change in json.loads(line[5:])]))
                if len(found) == count:
                    break
    return found


class Served(NamedTuple):
    """A store in this process, and where it is served."""

    store: graphstore.GraphStore
    url: str


def test_a_client_that_moves_on_reads_what_it_wrote_also_from_a_standby_that_lags(address, servers):
    name = address.rpartition("=")[2]
    with (
        served(address) as first,
        served(servers.url(name, servers.standby), read_only=True) as second,
        graphstore.open(first.url, token=WRITE) as client,
    ):
        assert client.last_write is None
        client.add_node("fact", {"n": 1}, id="one")
        with servers.standby.paused():
            client.add_node("fact", {"n": 2}, id="two")
            written = client.last_write
            assert written == first.store.last_write
            assert "two" not in {node.id for node in second.store.nodes()}
            known = {"Graphstore-At-Least": written.isoformat()}
            status, body, _ = Wire(second.url, WRITE).ask("GET", "/nodes", None, **known)
            assert (503, True) == (status, "not followed to tx" in str(body)), body
        assert {"n": 2} == Wire(second.url, WRITE).get("/node?id=two", **known)["content"]


def test_a_client_with_two_addresses_goes_on_where_one_server_is_gone(address, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    with (
        serve_in_process(f"{address}&cache={folders[0]}") as (process, first),
        serve_in_process(f"{address}&cache={folders[1]}") as (_, second),
        graphstore.open(
            f"{first},{second}",
            token=",".join((folder / "token").read_text().strip() for folder in folders),
        ) as client,
    ):
        threading.Timer(0.3, process.kill).start()
        for number in range(200):
            client.add_node("fact", {"n": number}, id=f"n{number}")
            assert {"n": number} == client.node(f"n{number}").content

        assert client.url == second
        made = [change.subject for change in client.changes() if change.verb == "add_node"]
        assert sorted(f"n{number}" for number in range(200)) == sorted(made)


@pytest.mark.parametrize("late", [False, True])
def test_what_was_asked_of_two_servers_is_done_once_and_answered_alike(two, late):
    """The first has done it, or is just about to: its client has not heard of it, and asks the second."""
    first, second = two
    body = {"kind": "fact", "content": {"n": 1}}
    held = threading.Event()
    if late:
        holding = threading.Thread(target=hold, args=(first.store, held))
        holding.start()
    asked = [ask(first.url, body, "r1")] if not late else []
    slow = ThreadPoolExecutor(1).submit(ask, first.url, body, "r1")
    time.sleep(0.2)

    again = ask(second.url, body, "r1", again=True)
    held.set()
    answers = [*asked, slow.result(20), again]

    assert 1 == len({answer["id"] for answer in answers})
    assert 1 == sum(change.verb == "add_node" for change in second.store.changes())


def test_changes_are_gone_on_with_at_another_server(two):
    first, second = two
    first.store.add_node("fact", {"n": 1}, id="a")
    heard = events(first.url, None, 1)
    first.store.add_node("fact", {"n": 2}, id="b")

    rest = events(second.url, heard[-1][0], 1)

    assert ["a"] == heard[0][1] and ["b"] == rest[0][1]


def test_the_commands_about_a_server_take_the_address_of_its_store(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = f"{address}&cache={tmp_path / 'copy'}"
    for command in (["token", "list"], ["page", "--print"]):
        assert "no store at" in CliRunner().invoke(app, [*command, at]).stderr
        assert "&cache=" in CliRunner().invoke(app, [*command, address]).stderr
    with serve_in_process(at) as (_, url):
        token = CliRunner().invoke(app, ["token", "add", at, "ana", "--rights", "write"]).stdout.strip()
        assert "ana  write" in CliRunner().invoke(app, ["token", "list", at]).stdout
        assert url in CliRunner().invoke(app, ["page", at, "--print"]).stdout
        scoped = CliRunner().invoke(app, ["token", "add", at, "ben", "--scope", "team/a"]).stdout.strip()
        Wire(url, token).post("/add_node", {"kind": "fact", "content": {"n": 1}, "id": "one"})
        status, refused, _ = Wire(url, scoped).ask("GET", "/nodes")
        assert 501 == status
        assert "take the store to a folder with graphstore copy" in refused["message"]
    assert "Start it: graphstore serve" in CliRunner().invoke(app, ["page", at, "--print"]).stderr


def test_agents_at_the_address_of_a_store_write_there_and_not_into_a_folder_of_that_name(address, tmp_path):
    pytest.importorskip("mcp")
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "ana", "version": "1"},
    }
    remember = {"name": "remember", "arguments": {"statement": "lunch is at noon"}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": remember},
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "graphstore", "mcp", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.communicate(timeout=30)

    assert "error" not in answers[1] and not answers[1]["result"].get("isError"), answers
    assert [] == list(tmp_path.iterdir())
    with graphstore.open(address, read_only=True) as store:
        assert "lunch is at noon" in json.dumps([node.content for node in store.nodes()])


in_sqlite = pytest.mark.skip(
    reason="a store in PostgreSQL refuses tokens with scopes: they are answered by statements of SQLite"
)


@pytest.fixture
def scoped(address: str, tmp_path: Path) -> Iterator[Scoped]:
    """Two servers in processes of their own over one store; a client for all of it, and at each server one whose token holds one scope."""
    places = [f"{address}&cache={tmp_path / name}" for name in ("one", "two")]
    with serve_in_process(places[0]) as (_, first), serve_in_process(places[1]) as (_, second):
        added = ["--scope", "team/a", "--rights", "write"]
        tokens = [
            CliRunner().invoke(app, ["token", "add", place, "ana", *added]).stdout.strip() for place in places
        ]
        whole = (tmp_path / "one" / "token").read_text().strip()
        yield Scoped(Wire(first, whole), Wire(first, tokens[0]), Wire(second, tokens[1]))


class Scoped(NamedTuple):
    whole: Wire
    first: Wire
    second: Wire


def fact(id: str, n: int, scope: str | None = None) -> dict[str, Any]:
    """The arguments of a node."""
    return {"kind": "fact", "content": {"n": n}, "id": id} | ({} if scope is None else {"scope": scope})


@in_sqlite
def test_a_token_with_scopes_reads_at_one_server_what_it_wrote_at_another(scoped):
    scoped.whole.post("/add_node", fact("team/a/1", 1, "team/a"))
    scoped.whole.post("/add_node", fact("hidden", 2, "team/b"))

    status, made, told = scoped.second.ask("POST", "/add_node", fact("team/a/2", 3))
    known = {"Graphstore-At-Least": told["graphstore-written"]}

    assert (200, "team/a") == (status, made["scope"])
    assert ["team/a/1", "team/a/2"] == [node["id"] for node in scoped.first.get("/nodes", **known)]
    assert 404 == scoped.first.ask("GET", "/node?id=hidden")[0]
    assert 422 == scoped.second.ask("POST", "/add_node", fact("team/a/3", 1, "team/b"))[0]
    assert 409 == scoped.second.ask("POST", "/add_node", fact("team/a/1", 1))[0]
    assert 403 == scoped.first.ask("POST", "/erase", {"id": "team/a/1", "reason": "x"})[0]
    assert ["hidden", "team/a/1", "team/a/2"] == sorted(
        node["id"] for node in scoped.whole.get("/nodes", **known)
    )


@in_sqlite
def test_what_tokens_with_scopes_write_at_two_servers_is_told_as_it_is_kept(scoped):
    scoped.whole.post("/add_node", fact("team/a/1", 0, "team/a"))
    numbers: list[int] = []

    def write(wire: Wire, outside: bool) -> None:
        for n in range(40):
            if outside:
                wire.post("/add_node", fact(f"b{n}", n, "team/b"))
            else:
                content = {"by": id(wire), "n": n}
                numbers.append(wire.post("/revise", {"id": "team/a/1", "content": content})["number"])

    writing = [(scoped.whole, True), (scoped.first, False), (scoped.second, False)]
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(write, *each) for each in writing]:
            done.result()

    assert list(range(2, 82)) == sorted(numbers)

    def kept(wire: Wire) -> list[Any]:
        found: list[Any] = wire.get("/versions?id=team/a/1")
        return found

    within(10, lambda: list(range(1, 82)) == sorted({each["number"] for each in kept(scoped.whole)}))
    assert 41 == scoped.whole.get("/stats")["nodes"]
    for wire in (scoped.first, scoped.second):
        within(10, lambda wire=wire: kept(scoped.whole) == kept(wire))
        assert 1 == wire.get("/stats")["nodes"]


@in_sqlite
def test_what_is_erased_at_one_server_is_gone_for_the_token_with_scopes_of_another(scoped, tmp_path):
    scoped.whole.post("/add_node", fact("team/a/1", 1, "team/a"))
    scoped.whole.post(
        "/add_node", {"kind": "fact", "content": {"says": "aardvark"}, "id": "team/a/2", "scope": "team/a"}
    )
    within(10, lambda: 200 == scoped.second.ask("GET", "/node?id=team/a/2")[0])

    scoped.whole.post("/erase", {"id": "team/a/2", "reason": "asked for"})

    within(10, lambda: "aardvark" not in str(scoped.second.get("/versions?id=team/a/2")))
    assert {"n": 1} == scoped.second.get("/node?id=team/a/1")["content"]
    within(10, lambda: not says(tmp_path / "two", b"aardvark"))


def says(folder: Path, word: bytes) -> bool:
    """Whether a file in a folder has a word."""
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # one that was just put in the place of another
            if word in file.read_bytes():
                return True
    return False
