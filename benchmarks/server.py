"""What a server costs: durable writes of many processes at once, one by one and in batches, and point reads, over real sockets.

The clients are processes of this machine that do the least a client can: a request laid out by hand on a socket that stays open. All that were
acknowledged are counted in the store afterwards.

`python -m benchmarks.server URL TOKEN write|batch|load|read SECONDS NAME` is one client: it prints how many were answered.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import orjson

import graphstore
from benchmarks.arena import Arena, Row

WRITERS, BATCH, CLIENTS_OF_BATCHES = 8, 1_000, 4
SINGLE, IN_BATCHES = 1 / 3_000, 1 / 30_000  # seconds a write, all clients together
POINT = 0.5e-3


def server(arena: Arena) -> Iterator[Row]:
    """Writes a second over HTTP, said as seconds a write, and the time of a point read."""
    seconds = 1.0 if arena.quick else 3.0
    for work, what, clients, budget in (
        (f"HTTP: a durable write, {WRITERS} processes", "write", WRITERS, SINGLE),
        (f"HTTP: one of a batch of {BATCH:,}, {CLIENTS_OF_BATCHES} processes", "batch", CLIENTS_OF_BATCHES, IN_BATCHES),
        (f"HTTP: one of a load of {BATCH:,} in Arrow, {CLIENTS_OF_BATCHES} processes", "load", CLIENTS_OF_BATCHES, IN_BATCHES),
        ("HTTP: a node, one process", "read", 1, POINT),
    ):  # fmt: skip
        took = median(_taken(arena.folder / "served", what, clients, seconds) for _ in range(arena.rounds))
        yield Row(work, arena.size, {"ours": took}, budget, "–")


def _taken(folder: Path, what: str, clients: int, seconds: float) -> float:
    """Seconds a call, in all. Every call that was answered is looked for in the store."""
    with graphstore.open(folder) as store:
        store.add_node("fact", {"says": "the deploy day is friday"}, id="known")
    with _served(folder) as url:
        token = (folder / "token").read_text(encoding="ascii").strip()
        asking = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.server", url, token, what, str(seconds), f"c{number}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(clients)
        ]
        told = [orjson.loads(each.communicate()[0]) for each in asking]
    count = sum(each["count"] for each in told)
    took = max(each["end"] for each in told) - min(each["start"] for each in told)
    with graphstore.open(folder, read_only=True) as store:
        written = 0 if what == "read" else count + sum(each["first"] for each in told)
        assert store.stats()["nodes"] == 1 + written, "a write that was acknowledged is not there"
    shutil.rmtree(folder)
    return float(took) / count


@contextmanager
def _served(folder: Path) -> Iterator[str]:
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
    }
    lay_out, count = made[what], 0
    with socket.create_connection((host, int(port))) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = end = 0.0  # the first is not counted: both ends load what they need
        while count == 0 or time.time() < start + seconds:
            path, body = lay_out(count)
            _ask(wire, host, token, path, body if isinstance(body, bytes) else orjson.dumps(body))
            start, end = start or time.time(), time.time()
            count += 1
    each = BATCH if what in ("batch", "load") else 1
    told = {"count": (count - 1) * each, "first": each, "start": start, "end": end}
    print(orjson.dumps(told).decode(), flush=True)


def _fact(name: str, number: int) -> dict[str, object]:
    return {"kind": "fact", "content": {"by": name, "number": number, "says": "the deploy day is friday"}}


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
