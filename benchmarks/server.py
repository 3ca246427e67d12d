"""What a server costs: durable writes of many processes at once, one by one and in batches, and point reads, over real sockets.

The clients are processes of this machine that do the least a client can: a request laid out by hand on a socket that stays open. All that were
acknowledged are counted in the store afterwards.

`python -m benchmarks.server URL TOKEN write|batch|load|read|past|cypher SECONDS NAME` is one client: it prints how many were answered.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import orjson

import graphstore
from benchmarks import ours
from benchmarks.arena import Arena, Row
from benchmarks.data import history

WRITERS, BATCH, CLIENTS_OF_BATCHES = 8, 1_000, 4
_INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}},
}  # fmt: skip
BARE_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bare")
@server.tool()
def ask(text: str) -> str:
    return text
server.run("stdio")
"""


def server(arena: Arena) -> Iterator[Row]:
    """Writes a second over HTTP, said as seconds a write; and the time of a point read, alone and beside others."""
    seconds = 0.2 if arena.quick else 2.0
    folder = arena.folder / "served"
    for work, what, clients in (
        (f"HTTP: a durable write, {WRITERS} processes", "write", WRITERS),
        (f"HTTP: one of a batch of {BATCH:,}, {CLIENTS_OF_BATCHES} processes", "batch", CLIENTS_OF_BATCHES),
        (f"HTTP: one of a load of {BATCH:,} in Arrow, {CLIENTS_OF_BATCHES} processes", "load", CLIENTS_OF_BATCHES),
    ):  # fmt: skip
        took = median(_written(folder, [what] * clients, seconds) for _ in range(min(arena.rounds, 3)))
        yield arena.row(work, {"ours": took})

    with graphstore.open(folder) as store:
        ours.bulk_load(store, ours.prepare(history(200 if arena.quick else 10_000)))
        store.add_node("fact", {"says": "the deploy day is friday"}, id="known")
    for beside, others in (
        ("alone", []),
        ("beside 4 processes that write", ["write"] * 4),
        ("beside 2 that read past days", ["past"] * 2),
        ("beside one that asks Cypher of past days", ["cypher"]),
    ):
        reader, *_ = _asked(folder, ["read", *others], 2 * seconds)
        row = arena.row(f"HTTP: a node, one process, {beside}", {})
        yield arena.spread(row, {"ours": reader["times"]}, set())
    shutil.rmtree(folder)


def first_answer(command: list[str]) -> float:
    """Return the seconds from the start of an MCP server until it has answered `initialize`."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        agent.stdin.write(orjson.dumps(_INITIALIZE) + b"\n")
        agent.stdin.flush()
        answer = orjson.loads(agent.stdout.readline())
        took = min(time.perf_counter() - began, _processor_time(agent.pid))
        assert answer["result"]["serverInfo"], answer
        agent.stdin.close()
    return took


def _processor_time(pid: int) -> float:
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _written(folder: Path, clients: list[str], seconds: float) -> float:
    """Seconds a write, in all. Every one that was answered is looked for in the store."""
    graphstore.open(folder).close()
    told = _asked(folder, clients, seconds)
    count = sum(each["count"] for each in told)
    took = max(each["end"] for each in told) - min(each["start"] for each in told)
    with graphstore.open(folder, read_only=True) as store:
        written = count + sum(each["first"] for each in told)
        assert store.stats()["nodes"] == written, "a write that was acknowledged is not there"
    shutil.rmtree(folder)
    return float(took) / max(count, 1)


def _asked(folder: Path, clients: list[str], seconds: float) -> list[dict[str, Any]]:
    """What each client says of its calls, all at once."""
    with served(folder) as url:
        token = (folder / "token").read_text(encoding="ascii").strip()
        asking = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.server",
                    url,
                    token,
                    what,
                    str(seconds),
                    f"{what}{number}",
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number, what in enumerate(clients)
        ]
        return [orjson.loads(each.communicate()[0]) for each in asking]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "graphstore", "serve", str(folder), "--port", "0", "--no-ticks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().partition(" on ")[2].split()[0]
        process.terminate()


def _client(url: str, token: str, what: str, seconds: float, name: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    made: dict[str, Callable[[int], tuple[str, object]]] = {
        "write": lambda number: (f"/add_node?author={name}", _fact(name, number)),
        "batch": lambda number: (
            "/batch?answers=ids",
            {"calls": [["add_node", _fact(name, number * BATCH + each)] for each in range(BATCH)]},
        ),
        "load": lambda number: ("/bulk_load?tables=nodes,versions", _table(name, number)),
        "read": lambda number: ("/node", {"id": "known"}),
        "past": lambda number: (f"/links_from?valid={_day(number)}", {"id": f"n{number % 20:07d}"}),
        "cypher": lambda number: (f"/query?valid={_day(number)}", {"cypher": ours.QUESTION}),
    }
    lay_out, count, times = made[what], 0, []
    with socket.create_connection((host, int(port))) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = end = 0.0  # the first is not counted: both ends load what they need
        while count == 0 or time.time() < start + seconds:
            path, body = lay_out(count)
            sent = time.perf_counter()
            _ask(wire, host, token, path, body if isinstance(body, bytes) else orjson.dumps(body))
            times.append(time.perf_counter() - sent)
            start, end = start or time.time(), time.time()
            count += 1
    each = BATCH if what in ("batch", "load") else 1
    told = {
        "count": (count - 1) * each,
        "first": each,
        "start": start,
        "end": end,
        "times": times[1:] or times,
    }
    print(orjson.dumps(told).decode(), flush=True)


def _fact(name: str, number: int) -> dict[str, object]:
    return {"kind": "fact", "content": {"by": name, "number": number, "says": "the deploy day is friday"}}


def _day(number: int) -> str:
    return (datetime(2024, 1, 1) + timedelta(days=number % 500)).isoformat() + "Z"


def _table(name: str, number: int) -> bytes:
    import pyarrow as pa

    ids = [f"{name}-{number}-{each}" for each in range(BATCH)]
    contents = [orjson.dumps(_fact(name, number * BATCH + each)["content"]).decode() for each in range(BATCH)]
    sink = pa.BufferOutputStream()
    for table in (
        pa.table({"id": ids, "kind": ["fact"] * BATCH}),
        pa.table({"node_id": ids, "content": contents}),
    ):
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _ask(wire: socket.socket, host: str, token: str, path: str, body: bytes) -> None:
    kind = "application/vnd.apache.arrow.stream" if path.startswith("/bulk_load") else "application/json"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    wire.sendall(head.encode() + body)
    data = wire.recv(1 << 16)
    while True:
        told, found, rest = data.partition(b"\r\n\r\n")
        if found and len(rest) >= int(told.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            break
        data += wire.recv(1 << 16)
    assert data.startswith(b"HTTP/1.1 200"), data[:300]


if __name__ == "__main__":
    _client(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5])
