"""A store that is open here, shared: served to other processes of this machine from a thread of this one, until it is closed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from graphstore.core.folder import access_tokens as tokens
from graphstore.core.folder import server_file
from graphstore.errors import EngineError
from graphstore.server.agents import Agents
from graphstore.server.http_app import app
from graphstore.server.run import Listening, config, listen, together, url_of

if TYPE_CHECKING:
    from graphstore.server.dispatch import Calling
    from graphstore.store.store import GraphStore

_LAST = 15.0  # seconds that requests under way have to end


def serving(store: GraphStore) -> Callable[[], None]:
    """Serve a store on a free port of this machine alone. Returns what ends that. Raises EngineError where it cannot be served."""
    assert store.path is not None
    place = Path(store.path)
    listening = Listening(port=0)
    socket = listen(listening)
    url = url_of(listening.host, socket.getsockname()[1])
    ready = threading.Event()
    loop: asyncio.AbstractEventLoop | None = None

    @contextlib.asynccontextmanager
    async def beside(_: Calling) -> AsyncIterator[None]:
        nonlocal loop
        loop = asyncio.get_running_loop()
        made.agents = Agents(store, url=url, hosts=(listening.host,), read_only=False)
        server_file.announce(place, url, "with the store")
        ready.set()
        async with together([made.agents.run()]):
            yield

    made = app(store, tokens=tokens.kept(place), started=beside, **listening.admitting())
    server = uvicorn.Server(config(made))

    def run() -> None:
        try:
            asyncio.run(server._serve([socket]))
        finally:
            socket.close()
            server_file.withdraw(place)

    thread = threading.Thread(target=run, name="graphstore sharing", daemon=True)
    thread.start()
    while not ready.wait(0.05):
        if not thread.is_alive():
            raise EngineError(f"{place} could not be shared: its server did not start.")

    def end() -> None:
        server_file.withdraw(place)
        server.should_exit = True
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(made.end)
        thread.join(_LAST)

    return end
