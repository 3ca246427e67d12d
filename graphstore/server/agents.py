"""Serves agents by the Model Context Protocol at `/mcp` of the server's address, with the same tokens. It needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any

from graphstore.remote import remote
from graphstore.server.requests import Receive, Refused, Scope, Send
from graphstore.values.doors import SIGNED

if TYPE_CHECKING:
    from graphstore.store.store import GraphStore

PATH = "/mcp"


class Agents:
    """Answers agents. It starts with the first request: its imports take a second, and most servers never need them."""

    def __init__(
        self,
        store: GraphStore,
        *,
        url: str,
        hosts: Iterable[str] = (),
        read_only: bool = False,
        token: str | None = None,
    ) -> None:
        self._store, self._url, self._hosts, self._read_only = store, url, tuple(hosts), read_only
        self._token = token  # of a token with scopes: agents then write through this server's own address
        self._asked, self._ready = asyncio.Event(), asyncio.Event()
        self._apps: dict[str, Any] = {}
        self._own: GraphStore | None = None

    def to(self, store: GraphStore, token: str) -> Agents:
        """Return a server of agents for the part of the store that a token with scopes sees. Agents write to it with `token`."""
        return Agents(store, url=self._url, hosts=self._hosts, read_only=self._read_only, token=token)

    async def run(self) -> None:
        """Start answering when the first agent asks, and continue until cancelled."""
        try:
            await self._asked.wait()
            apps = await asyncio.get_running_loop().run_in_executor(None, self._made)
            async with contextlib.AsyncExitStack() as stack:
                for app in apps.values():
                    await stack.enter_async_context(app.router.lifespan_context(app))
                self._apps = apps
                self._ready.set()
                await asyncio.Event().wait()
        finally:
            self._apps = {}
            self._ready.set()
            if self._own is not None:
                self._own.close()

    def _made(self) -> dict[str, Any]:
        try:
            from graphstore.mcp.returning import Reads
            from graphstore.mcp.transport import asgi
        except ImportError:
            return {}
        writing = self._store
        if self._token is not None and not self._read_only:
            writing = self._own = remote.connect(self._url, self._token)
        how: dict[str, Any] = {
            "hosts": self._hosts,
            "path": PATH,
            "record_reads": Reads(self._store, by_request=True),
        }
        return {
            "write": asgi(writing, read_only=self._read_only, **how),
            "read": asgi(self._store, read_only=True, **how),
        }

    async def answer(
        self, scoped: str, stopping: asyncio.Event, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request of an agent, until the server stops. Raise Refused (404) if agents are not served."""
        self._asked.set()
        await self._ready.wait()
        app = self._apps.get(scoped)
        if app is None:
            raise Refused(
                404, "agents are not served here. Install what it needs: pip install 'graphstore[mcp]'"
            )
        if name := scope.get(SIGNED):
            scope["user"] = _owner(name)
        await _until(stopping, app(scope, receive, send))


def _owner(name: str) -> Any:
    """Return the owner of a session in terms of the SDK, which then refuses the session to anybody else."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))


async def _until(stopping: asyncio.Event, answer: Awaitable[None]) -> None:
    """Wait for an answer, but cancel it when the server stops."""
    answering = asyncio.ensure_future(answer)
    ending = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((answering, ending), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            await answering
    finally:
        answering.cancel()
        ending.cancel()
