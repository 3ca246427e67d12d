"""A store served over a real socket, for tests: in a thread of this process, or in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from graphstore import GraphStore
from graphstore.ledger.tokens import StoreTokens
from graphstore.server import run
from graphstore.server.http_app import app
from tests.support.wire import METRICS, READ, WRITE, Wire

__all__ = ["TOKENS", "Wire", "fact", "serve_in_process", "serve_in_thread"]

TOKENS = StoreTokens(WRITE, READ, METRICS)


def fact(id: str, **more: Any) -> dict[str, Any]:
    """The arguments of `add_node` for a small fact."""
    return {"kind": "fact", "content": {"name": id}, "id": id, **more}


class _Prompt(uvicorn.Server):
    """Looks ten times as often whether it is to end."""

    async def main_loop(self) -> None:
        turn = 0
        while not await self.on_tick(turn):
            turn += 1
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def serve_in_thread(
    store: GraphStore, *, tokens: StoreTokens | None = TOKENS, loop: str = "auto", **options: Any
) -> Iterator[str]:
    """The URL of a server of this store in a thread of this process. The store stays open."""
    made = app(store, tokens=tokens, **options)
    config = run.config(made)
    config.loop = loop
    server = _Prompt(config)
    listening = run.listen(run.Listening(port=0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.002)
    try:
        yield run.url_of("127.0.0.1", listening.getsockname()[1])
    finally:
        made.end()
        server.should_exit = True
        thread.join(30)
        listening.close()


@contextlib.contextmanager
def serve_in_process(folder: Path | str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a process of `graphstore serve` and its URL. It is killed at the end if it still runs."""
    command = [sys.executable, "-m", "graphstore", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, _url_of(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stdout.close()


def _url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("serving "):
            return line.partition(" on ")[2].split()[0]
    raise AssertionError(f"the server did not start: exit code {process.wait(30)}")
