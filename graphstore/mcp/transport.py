"""Serves agents over HTTP, behind a token and a check of host and origin."""

from __future__ import annotations

import hmac
import ipaddress
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from graphstore.errors import EngineError, InvalidError
from graphstore.mcp.messages import message_of
from graphstore.mcp.protocol import server
from graphstore.mcp.queries import QueriesApart
from graphstore.mcp.stdio import log_plainly, over_stdio
from graphstore.store.store import Store

__all__ = ["address", "asgi", "over_http", "over_stdio"]

PATH = "/mcp"
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_MOST_BYTES = 64 << 20


def over_http(store: Store, host: str, port: int, *, token: str | None = None, **how: Any) -> None:
    """Serve clients over streamable HTTP at http://host:port/mcp until stopped. Port 0: any that is free; the address is printed on standard error.

    Raises InvalidError for a host that others can reach without a token, EngineError where the address cannot be had.
    """
    import uvicorn

    if token is None and not is_local(host):
        raise InvalidError(
            f"{host} can be reached from elsewhere, and no token is asked for. Set GRAPHSTORE_TOKEN or give --token-file, or serve 127.0.0.1."
        )
    log_plainly()
    with _listening(host, port) as taken:
        port = taken.getsockname()[1]
        app = asgi(store, token=token, hosts=(host,), **how)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
        print(f"agents are served at http://{_in_url(host)}:{port}{PATH}", file=sys.stderr, flush=True)
        uvicorn.Server(config).run(sockets=[taken])


def asgi(
    store: Store, *, token: str | None = None, hosts: Sequence[str] = (), path: str = PATH, **how: Any
) -> Starlette:
    """Make the server as an ASGI application. Mounted in another, its lifespan has to be run: `app.router.lifespan_context(app)`.

    `token`: the bearer token clients must show, None for none. `hosts`: names under which it is asked for, beside this machine's own; a request under
    any other, or from a web page of any other, is refused. `how`: as for `graphstore.mcp.server`.
    """
    named = dict.fromkeys((*_LOCAL, *map(_in_url, hosts)))
    security = TransportSecuritySettings(
        allowed_hosts=[each for name in named for each in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{each}"
            for name in named
            for each in (name, f"{name}:*")
            for scheme in ("http", "https")
        ],
    )
    manager = StreamableHTTPSessionManager(server(store, **how), security_settings=security)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        with QueriesApart(store, how.get("query_seconds")) as apart:
            apart.begin()
            async with manager.run():
                yield

    return Starlette(
        routes=[Route(path, _Sessions(manager))],
        middleware=[*([] if token is None else [Middleware(_Token, token=token)]), Middleware(_MessageCheck)],
        lifespan=life,
    )


class _Sessions:
    """Hands a request to the session that it belongs to."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)


class _MessageCheck:
    """Answers what is no message, as over standard input."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > _MOST_BYTES:
                await JSONResponse({"error": "the message is too large"}, 413)(scope, receive, send)
                return
            if not message.get("more_body"):
                break
        admitted = message_of(b"".join(parts).decode("utf-8", "replace"))
        if isinstance(admitted, dict):
            await JSONResponse(admitted, 400)(scope, receive, send)
            return
        body = admitted.encode()
        kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        scope = {**scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}
        await self._app(scope, _once(body, receive), send)


def _once(body: bytes, receive: Receive) -> Receive:
    left = [body]

    async def received() -> Any:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return received


class _Token:
    """Lets through who shows the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = Headers(scope=scope).get("authorization", "").encode()
            if not hmac.compare_digest(shown, self._wanted):
                content = {"error": "a bearer token is required: Authorization: Bearer …"}
                refused = JSONResponse(content, status_code=401, headers={"WWW-Authenticate": "Bearer"})
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


def address(text: str) -> tuple[str, int]:
    """The host and port of `HOST:PORT`, `:PORT` or `PORT`; this machine alone where no host is named. Raises InvalidError."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidError(f"{text!r} is no address. Give HOST:PORT, such as 127.0.0.1:8765.")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, kind, number, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, number)
        if sys.platform != "win32":  # where it lets two processes listen on one port
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(where)
        taken.listen(128)
    except OSError as error:
        raise EngineError(f"{host}:{port} cannot be had: {error.strerror or error}. Give another --http HOST:PORT.") from None  # fmt: skip
    with taken:
        yield taken
