"""A server as a process: how it is found, who may enter, how it ends, and that nothing acknowledged is lost however it ends."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path

import orjson
import pytest

import graphstore
from graphstore import GraphStore
from graphstore.ledger import server_file
from tests.support.served import Wire, serve_in_process

pytestmark = pytest.mark.rest

SECONDS = float(os.environ.get("GRAPHSTORE_SERVED_SECONDS", "3"))


def made(tmp_path: Path, count: int = 1) -> Path:
    place = tmp_path / "memory.gs"
    with graphstore.open(place) as store:
        for number in range(count):
            store.add_node("fact", {"n": number}, id=f"n{number}")
    return place


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graphstore", *words], capture_output=True, text=True, timeout=60
    )


def test_a_server_tells_where_it_is_serves_and_ends(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        told = orjson.loads((place / "server.json").read_bytes())
        assert (url, process.pid, socket.gethostname()) == (told["url"], told["pid"], told["host"])
        for name in ("server.json", "token", "token-read", "token-metrics"):
            assert 0o600 == stat.S_IMODE((place / name).stat().st_mode), name
        assert (url, (place / "token").read_text().strip()) == server_file.serving(place)
        wire = Wire(url, (place / "token").read_text().strip())
        wire.post("/add_node", {"kind": "fact", "content": {}, "id": "served"})
        assert 403 == Wire(url, (place / "token-read").read_text().strip()).ask("POST", "/evict_old", {})[0]
        assert "ok" == wire.get("/health")["status"]
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)

    assert not (place / "server.json").exists()
    assert server_file.serving(place) is None
    with graphstore.open(place) as store:
        assert ["n0", "served"] == [node.id for node in store.nodes()]


def test_the_tokens_of_a_store_stay_and_are_shown_when_asked(tmp_path):
    place = made(tmp_path)
    assert "no tokens yet" in run("serve", str(place), "--show-token").stderr
    with serve_in_process(place):
        first = run("serve", str(place), "--show-token").stdout
    with serve_in_process(place):
        second = run("serve", str(place), "--show-token").stdout

    assert first == second
    assert ["write", "read", "metrics"] == [line.split()[0] for line in first.splitlines()]


def test_a_token_that_others_may_read_is_refused(tmp_path):
    place = made(tmp_path)
    (place / "token").write_text("x" * 40)
    (place / "token").chmod(0o644)
    found = run("serve", str(place), "--port", "0")

    assert 1 == found.returncode
    assert f"chmod 600 {place / 'token'}" in found.stderr
    assert not (place / "server.json").exists()


@pytest.mark.parametrize("name", ["token", "server.json"])
@pytest.mark.parametrize("how", ["a link", "of somebody else"])
def test_what_others_put_into_the_folder_is_not_believed(tmp_path, name, how):
    place = made(tmp_path)
    with graphstore.open(place):
        server_file.announce(place, "http://127.0.0.1:1")
        (place / "token").write_text("t" * 40)
        (place / "token").chmod(0o600)
        assert ("http://127.0.0.1:1", "t" * 40) == server_file.serving(place)
        if how == "a link":
            (place / name).rename(tmp_path / "elsewhere")
            (place / name).symlink_to(tmp_path / "elsewhere")
        elif os.geteuid():
            pytest.skip("only root can give a file away")
        else:
            os.chown(place / name, 12345, -1)
        assert server_file.serving(place) is None
        server_file.withdraw(place)
    if name == "token":
        assert f"{place / name} cannot be read" in run("serve", str(place), "--port", "0").stderr


def test_a_number_that_another_process_has_now_holds_nothing(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, _):
        process.kill()
        process.wait(10)
    told = orjson.loads((place / "server.json").read_bytes())
    living = os.getppid()
    (place / "server.json").write_bytes(orjson.dumps(told | {"pid": living}))
    (place / "lock").write_text(f"pid {living} on {socket.gethostname()}\n")

    assert server_file.serving(place) is None
    found = run("stats", str(place))
    assert (0, "") == (found.returncode, found.stderr)
    with serve_in_process(place) as (_, url):
        assert "ok" == Wire(url, None).get("/health")["status"]


def test_one_server_a_store(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        found = run("serve", str(place), "--port", "0")
        assert (1, True) == (found.returncode, f"on {url} (pid {process.pid})" in found.stderr)
        assert (url, (place / "token").read_text().strip()) == server_file.serving(place)


def test_a_server_reads_what_another_process_writes_and_tells_its_followers(tmp_path):
    place = made(tmp_path)
    with graphstore.open(place) as store, serve_in_process(place) as (_, url):
        token = (place / "token").read_text().strip()
        wire = Wire(url, token)
        store.add_node("fact", {}, id="there")
        assert "there" == wire.get("/node?id=there")["id"]
        stream = Wire(url, token)._connection
        shown = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        stream.request("GET", "/changes?since=2000-01-01", headers=shown)
        lines = stream.getresponse()
        read_until(lines, b"there")
        store.add_node("fact", {}, id="later")
        read_until(lines, b"later")
        wire.post("/add_node", {"kind": "fact", "content": {}, "id": "served"})
        assert "served" == store.node("served").id


def read_until(lines: HTTPResponse, word: bytes) -> None:
    """Read lines of a stream until one has a word. The connection gives up after two minutes."""
    while word not in (line := lines.readline()):
        assert line, "the stream ended"


def test_a_store_in_memory_is_not_served(tmp_path):
    found = run("serve", ":memory:", "--port", "0")

    assert (1, True) == (found.returncode, "Serve a folder" in found.stderr)


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = run("serve", str(made(tmp_path)), "--port", str(taken.getsockname()[1]))

    assert (1, True) == (found.returncode, "--port 0" in found.stderr)


def test_what_a_killed_server_told_of_itself_is_nothing(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, _):
        process.kill()
        process.wait(10)

    assert (place / "server.json").exists()
    assert server_file.serving(place) is None
    with serve_in_process(place) as (_, url):
        found = server_file.serving(place)
        assert found is not None
        assert url == found[0]


def test_a_server_that_starts_is_waited_for(tmp_path):
    place = made(tmp_path)
    with graphstore.open(place):
        server_file.announce(place, None)
        (place / "token").write_text("t" * 40)
        telling = threading.Timer(0.1, server_file.announce, (place, "http://127.0.0.1:1"))
        telling.start()
        assert ("http://127.0.0.1:1", "t" * 40) == server_file.serving(place)
        telling.join()
        server_file.announce(place, None)
        assert server_file.serving(place, wait=0.05) is None
        server_file.withdraw(place)
        assert server_file.serving(place) is None


@pytest.mark.parametrize("told", [b"", b"[]", b"{}", b'{"pid": "1", "url": 3}', b'{"pid": -1}'])
def test_what_makes_no_sense_says_nothing(tmp_path, told):
    place = made(tmp_path)
    (place / "server.json").write_bytes(told)

    assert server_file.serving(place) is None


def test_a_server_ends_though_clients_hold_on(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        token = (place / "token").read_text().strip()
        wire = Wire(url, token)
        held = wire.post("/transaction")["transaction"]
        wire.post(f"/add_node?transaction={held}", {"kind": "fact", "content": {}, "id": "held"})
        stream = Wire(url, token)._connection
        stream.request(
            "GET", "/changes", headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        )
        response = stream.getresponse()
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(20)
        assert b"n0" in response.read()

    with graphstore.open(place) as store:
        assert ["n0"] == [node.id for node in store.nodes()]
        assert (True, []) == (store.verify().ok, store.notices)


def test_who_waits_for_a_transaction_when_the_server_ends_is_answered(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        token = (place / "token").read_text().strip()
        held = Wire(url, token).post("/transaction")["transaction"]
        found: list[int] = []

        def write() -> None:
            found.append(
                Wire(url, token).ask("POST", "/add_node", {"kind": "fact", "content": {}, "id": "late"})[0]
            )

        waiting = threading.Thread(target=write)
        waiting.start()
        while b"graphstore_requests_under_way 2" not in Wire(url, token).get("/metrics"):
            time.sleep(0.02)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)
        assert time.monotonic() - start < 5
        waiting.join(10)

    assert [200] == found
    with graphstore.open(place) as store:
        assert ["late", "n0"] == sorted(node.id for node in store.nodes())
    assert held


def test_a_server_that_only_reads_follows_the_writer(tmp_path):
    place = made(tmp_path)
    with graphstore.open(place) as store, serve_in_process(place, "--read-only") as (_, url):
        wire = Wire(url, (place / "token").read_text().strip())
        assert 403 == wire.ask("POST", "/add_node", {"kind": "fact", "content": {}})[0]
        store.add_node("fact", {"n": 9}, id="later")
        for _ in range(200):
            if 200 == wire.ask("GET", "/node?id=later")[0]:
                break
            time.sleep(0.02)

        assert {"n": 9} == wire.get("/node?id=later")["content"]
        assert server_file.serving(place) is None


def test_agents_are_served_at_the_same_address_behind_the_same_tokens(tmp_path):
    pytest.importorskip("mcp")
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from tests.support.agent import agent

    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        for name, writes in (("token", True), ("token-read", False)):
            shown = {"Authorization": f"Bearer {(place / name).read_text().strip()}"}
            transport = streamable_http_client(f"{url}/mcp", http_client=httpx2.AsyncClient(headers=shown))
            with agent(transport) as ana:
                assert writes == ("remember" in ana.tools())
                assert "n0" in str(ana.ask("get", id="n0"))
        assert 401 == Wire(url, None).ask("POST", "/mcp", {})[0]
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)


def workers(place: Path, url: str, seconds: float) -> list[subprocess.Popen[bytes]]:
    token = (place / "token").read_text().strip()
    root = Path(__file__).parents[2]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.server_worker", url, token, f"w{number}", str(seconds), place.parent / f"w{number}.txt"],
            cwd=root,
        )
        for number in range(8)
    ]  # fmt: skip


def acknowledged(place: Path) -> set[str]:
    return {line for notes in place.parent.glob("w*.txt") for line in notes.read_text().split("\n")[:-1]}


def check_whole(store: GraphStore, noted: set[str]) -> None:
    known = {node.id for node in store.nodes()}
    assert set() == noted - known
    halves = {id.removesuffix("-a") for id in known if id.endswith("-a")}
    assert halves == {id.removesuffix("-b") for id in known if id.endswith("-b")}
    assert store.verify().ok


def test_eight_processes_write_and_one_is_killed_then_the_server_is(tmp_path):
    place = made(tmp_path)
    with serve_in_process(place) as (process, url):
        writing = workers(place, url, SECONDS)
        while len({id.split("-")[0] for id in acknowledged(place)}) < 8:
            time.sleep(0.02)
        time.sleep(SECONDS / 3)
        writing[0].kill()
        for each in writing:
            each.wait(SECONDS + 30)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(30)
    with graphstore.open(place) as store:
        first = acknowledged(place)
        check_whole(store, first)
    for notes in tmp_path.glob("w*.txt"):
        notes.rename(notes.with_name(f"first-{notes.name}"))

    other = made(tmp_path / "other")
    with serve_in_process(other) as (process, url):
        writing = workers(other, url, 60.0)
        while len(acknowledged(other)) < 200:
            time.sleep(0.02)
        process.kill()
        process.wait(10)
        for each in writing:
            each.wait(30)
    with graphstore.open(other) as store:
        check_whole(store, acknowledged(other))


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never did"
        time.sleep(0.05)
