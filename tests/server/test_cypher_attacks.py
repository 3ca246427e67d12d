"""Texts of Cypher that ended or hung a server, sent with the read token: each is answered or refused in its time, and nobody else notices."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphstore
from tests.support.served import Wire, serve_in_process

pytestmark = [pytest.mark.rest, pytest.mark.in_process("serves a folder of its own")]

ENDLESS = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x"
LEVENSHTEIN = "RETURN levenshtein(repeat('a', 200000), repeat('b', 200000)) AS x"
HOSTILE = {
    "deep lists": "RETURN " + "[" * 1500 + "1" + "]" * 1500,
    "nested functions": "RETURN " + "abs(" * 1000 + "1" + ")" * 1000,
    "NOT NOT": "RETURN " + "NOT " * 20_000 + "true",
    "nested CASE": "RETURN " + "CASE WHEN true THEN " * 40 + "1" + " END" * 40,
    "nested maps": "RETURN " + "{a: " * 300 + "1" + "}" * 300,
    "nested types": "RETURN cast(null AS " + "STRUCT(a " * 1000 + "INT64" + ")" * 1000 + ")",
    "subqueries": "MATCH (n) WHERE "
    + "EXISTS { MATCH (n) WHERE " * 1000
    + "true"
    + " }" * 1000
    + " RETURN n",
    "many MATCH": "MATCH (n:Node) " * 4096 + "RETURN 1",
    "a long text": "RETURN '" + "x" * 200_000 + "'",
    "a huge list": "RETURN size(range(1, 300000000)) AS x",
    "a huge list, computed": "UNWIND [300000000] AS k RETURN size(range(1, k)) AS x",
    "lists of lists": "RETURN size(list_transform(range(1, 100000), x -> range(1, 100000))) AS x",
    "many rows": "UNWIND range(1, 2000) AS a UNWIND range(1, 2000) AS b RETURN a, b",
    "many bytes": "UNWIND range(1, 100000) AS a RETURN repeat('x', 10000) AS x",
    "a function that never ends": LEVENSHTEIN,
    "a product": ENDLESS,
    "settings": "CALL current_setting('threads') RETURN *",
}
FAR = {
    "a far date": "RETURN date('12000-01-01') AS x",
    "a day after the last": "RETURN timestamp('9999-12-31 23:59:59.999999') + interval('1 day') AS x",
    "far dates in lists": "RETURN [date('12000-01-01')] AS x",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("attacked") / "memory.gs"
    with graphstore.open(place) as store, store.transaction():
        for number in range(400):
            store.add_node("fact", {"n": number}, id=f"n{number:03}", valid_from="2026-01-01")
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with serve_in_process(folder) as (process, url):
        yield process, url


def reader(folder: Path, url: str) -> Wire:
    return Wire(url, (folder / "token-read").read_text().strip())


def children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()} or set(map(int, found))  # fmt: skip


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def memory(pid: int) -> int:
    """MB of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def until(holds: Callable[[], Any], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("call", ["query", "query_tables"])
@pytest.mark.parametrize("text", [*HOSTILE.values(), *FAR.values()], ids=[*HOSTILE, *FAR])
def test_a_hostile_text_is_answered_or_refused_and_the_server_goes_on(served, folder, call, text):
    process, url = served
    before = memory(process.pid)
    began = time.monotonic()
    status, value, _ = reader(folder, url).ask("POST", f"/{call}?seconds=3", {"cypher": text})

    assert time.monotonic() - began < 20
    if text in FAR.values():
        assert 200 == status, value
    else:
        assert (400 <= status < 500, "QueryError") == (True, value["error"]), value
    assert process.poll() is None
    assert (
        400
        == reader(folder, url).post("/query", {"cypher": "MATCH (n:Node) RETURN count(*) AS x"})["rows"][0][
            "x"
        ]
    )
    assert memory(process.pid) - before < 300, "the answer, or what was refused, stayed with the server"


def test_others_are_answered_while_texts_hang(served, folder):
    _, url = served
    reader(folder, url).post("/query", {"cypher": "RETURN 1 AS x"})
    answers: list[int] = []

    def hang() -> None:
        answers.append(reader(folder, url).ask("POST", "/query?seconds=6", {"cypher": LEVENSHTEIN})[0])

    hanging = [threading.Thread(target=hang) for _ in range(2)]
    for each in hanging:
        each.start()
    one, slowest, asked = reader(folder, url), 0.0, 0
    while any(each.is_alive() for each in hanging):
        began = time.monotonic()
        assert "fact" == one.get("/node?id=n001")["kind"]
        assert 400 == one.post("/query", {"cypher": "MATCH (n:Node) RETURN count(*) AS x"})["rows"][0]["x"]
        assert one.post("/query_tables", {"cypher": "MATCH (n:Node) RETURN count(*) AS x"})["rows"]
        slowest, asked = max(slowest, time.monotonic() - began), asked + 1

    assert all(400 <= status < 500 for status in answers)
    assert asked > 3
    assert slowest < 5, "it waited until those that hung were stopped"


def test_a_hanging_query_over_the_tables_holds_up_no_write_and_no_other_read(served, folder):
    _, url = served
    writer = Wire(url, (folder / "token").read_text().strip())
    done: list[int] = []
    hanging = threading.Thread(
        target=lambda: done.append(
            reader(folder, url).ask("POST", "/query_tables?seconds=6", {"cypher": LEVENSHTEIN})[0]
        )
    )
    hanging.start()
    time.sleep(1)
    began = time.monotonic()
    for number in range(20):
        writer.post("/add_node", {"kind": "other", "content": {}, "id": f"w{number}-{time.time_ns()}"})
        writer.get("/nodes?kind=other")
    took, still = time.monotonic() - began, not done
    hanging.join()

    assert still and took < 4, took
    assert (
        reader(folder, url).post("/query_tables", {"cypher": "MATCH (n:Node) RETURN count(*) AS x"})["rows"][
            0
        ]["x"]
        >= 420
    )


@pytest.mark.parametrize("call", ["query", "query_tables"])
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_in_seconds_while_a_query_hangs(tmp_path, folder, call, sign):
    with serve_in_process(_copy(folder, tmp_path)) as (process, url):
        one = reader(tmp_path / "memory.gs", url)
        one.post("/query", {"cypher": "RETURN 1 AS x"})
        with _hanging(tmp_path / "memory.gs", url, call):
            time.sleep(1)
            apart = children(process.pid)
            assert apart
            began = time.monotonic()
            process.send_signal(sign)
            assert 0 == process.wait(20)

    assert time.monotonic() - began < 30
    assert until(lambda: not any(map(is_there, apart)))
    assert graphstore.verify(tmp_path / "memory.gs").ok


def test_a_killed_server_leaves_no_process_behind_even_one_that_hangs(tmp_path, folder):
    with serve_in_process(_copy(folder, tmp_path)) as (process, url):
        reader(tmp_path / "memory.gs", url).post("/query_tables", {"cypher": "RETURN 1 AS x"})
        with _hanging(tmp_path / "memory.gs", url, "query"):
            time.sleep(1)
            apart = children(process.pid)
            assert len(apart) >= 2
            process.kill()
            process.wait(10)
            assert until(lambda: not any(map(is_there, apart))), "orphans"


@contextlib.contextmanager
def _hanging(folder: Path, url: str, call: str) -> Iterator[None]:
    def ask() -> None:
        with contextlib.suppress(Exception):  # the server ends
            reader(folder, url).ask("POST", f"/{call}", {"cypher": LEVENSHTEIN})

    hanging = threading.Thread(target=ask, daemon=True)
    hanging.start()
    try:
        yield
    finally:
        hanging.join(30)


def _copy(folder: Path, to: Path) -> Path:
    with graphstore.open(to / "memory.gs") as store, store.transaction():
        for number in range(50):
            store.add_node("fact", {"n": number}, id=f"n{number:03}", valid_from="2026-01-01")
    return to / "memory.gs"


# ---------------------------------------------------------------- agents


class Asking:
    """A process of `graphstore mcp`, asked line by line."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("mcp")
        command = [
            sys.executable,
            "-m",
            "graphstore",
            "mcp",
            str(folder),
            "--query-seconds",
            "3",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        self.send("initialize", about)
        self.receive()

    def send(self, method: str, params: Any) -> None:
        assert self.process.stdin is not None
        line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def cypher(self, text: str) -> Any:
        self.send("tools/call", {"name": "cypher", "arguments": {"query": text}})
        return self.receive()["result"]


def test_an_agents_hostile_texts_end_neither_its_server_nor_take_its_memory(tmp_path, folder):
    asking = Asking(_copy(folder, tmp_path))
    try:
        asking.cypher("RETURN 1 AS x")
        before = memory(asking.process.pid)
        for name, text in {**HOSTILE, **FAR}.items():
            began = time.monotonic()
            found = asking.cypher(text)
            assert (name in HOSTILE) == found.get("isError", False), (name, found)
            assert time.monotonic() - began < 20, name
            assert asking.process.poll() is None, name
        assert [[50]] == asking.cypher("MATCH (n:Node) RETURN count(*) AS x")["structuredContent"]["rows"]
        assert memory(asking.process.pid) - before < 300
        asking.send("tools/call", {"name": "cypher", "arguments": {"query": LEVENSHTEIN}})
        time.sleep(1)
        apart = children(asking.process.pid)
        assert apart
        began = time.monotonic()
        asking.process.send_signal(signal.SIGTERM)
        assert 0 == asking.process.wait(20)
        assert time.monotonic() - began < 6
        assert until(lambda: not any(map(is_there, apart)))
    finally:
        asking.process.kill()
        asking.process.communicate()
    assert graphstore.verify(tmp_path / "memory.gs").ok
