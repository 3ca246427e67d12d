"""The stores of the fixtures behind a real server, when GRAPHSTORE_DOOR=http: one server for the whole run, each store behind a token of its own.

A file of tests that speak the public methods is marked `served`, and runs through a server too (`make test-http`). A file that uses the stores and is not
is marked `in_process` with the reason. So is a test of a `served` file that cannot hold through a server. It must fail there: take the mark off when it holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.server.requests import Heads

THROUGH_A_SERVER = os.environ.get("GRAPHSTORE_DOOR") == "http"


def mark(items: list[pytest.Item]) -> None:
    """Expect of each test that is `in_process`, in a file that is `served`, that it fails through a server."""
    for item in items:
        inside = item.get_closest_marker("in_process")
        if inside is not None and item.get_closest_marker("served") is not None:
            item.add_marker(pytest.mark.xfail(reason=inside.args[0], strict=True))


def check(request: pytest.FixtureRequest) -> None:
    """Refuse a store to a test that does not say whether it holds through a server."""
    if not any(request.node.get_closest_marker(name) for name in ("served", "in_process")):
        pytest.fail(
            f"{request.node.path.name} uses a store: mark it `served`, or `in_process` with the reason"
        )


@contextlib.contextmanager
def reached(store: GraphStore) -> Iterator[GraphStore]:
    """The store itself; or, when the tests go through a server, one that asks it over HTTP."""
    if not THROUGH_A_SERVER:
        yield store
        return
    from graphstore.remote import remote

    server = _server()
    with contextlib.ExitStack() as stack:
        token = stack.enter_context(server.behind(store))
        there = remote.connect(server.url, token)
        stack.callback(type(there).close, there)

        def close() -> None:
            """Here a server ends with its only client, so that a test may open the store again."""
            type(there).close(there)
            stack.close()
            store.close()

        there.close = close  # type: ignore[method-assign]
        yield there


@cache
def _server() -> _Server:
    return _Server()


class _Server:
    """One server in a thread, which asks the app of the store whose token it is shown."""

    def __init__(self) -> None:
        import uvicorn

        from graphstore.server import run

        self._doors: dict[bytes, Any] = {}
        listening = run.listen(run.Listening(port=0))
        made = _App(self)
        self._server = uvicorn.Server(run.config(made))
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._server.run, args=([listening],), daemon=True).start()
        while self._loop is None or not self._server.started:
            time.sleep(0.002)
        self.url = run.url_of("127.0.0.1", listening.getsockname()[1])

    @contextlib.contextmanager
    def behind(self, store: GraphStore) -> Iterator[str]:
        """The token for a store while it is served."""
        from graphstore.ledger.tokens import StoreTokens
        from graphstore.server.http_app import Patience, ServedStore, ServerLimits
        from graphstore.server.requests import Gate

        tokens = StoreTokens(write=secrets.token_hex(16), read=secrets.token_hex(16))
        assert self._loop is not None

        async def opened() -> Any:
            door = ServedStore(
                store, tokens, limits=ServerLimits(), patience=Patience(), gate=Gate(), read_only=store.read_only
            )  # type: ignore[arg-type]  # fmt: skip
            life = door.open()
            await life.__aenter__()
            return door, life

        door, life = asyncio.run_coroutine_threadsafe(opened(), self._loop).result(30)
        self._doors[tokens.write.encode()] = door
        try:
            yield tokens.write
        finally:
            door.end()
            del self._doors[tokens.write.encode()]
            asyncio.run_coroutine_threadsafe(life.__aexit__(None, None, None), self._loop).result(30)

    def gone(self, client: Any) -> None:
        for door in list(self._doors.values()):
            door.gone(client)


class _App:
    def __init__(self, server: _Server) -> None:
        self._of = server
        self.gone = server.gone
        self.heads = Heads(60.0, 1 << 16, stranger=3_600.0, strangers=10_000)
        self.state = SimpleNamespace(door=server)

    def come(self, client: Any) -> bool:
        return True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            self._of._loop = asyncio.get_running_loop()
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": f"{message['type']}.complete"})
            return
        token = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
        await self._of._doors[token](scope, receive, send)
