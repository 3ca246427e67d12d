"""Conversations of agents whose process only passes lines on: the lines come in the body of one request, the answers go back in that of its answer.

Such a process goes on with another server when this one ends. So the call of a tool has an id of its own: what was kept of it is not done twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from graphstore.errors import InvalidError
from graphstore.remote.http_client import Lines
from graphstore.server import resent
from graphstore.server.requests import Receive, Scope, Send

if TYPE_CHECKING:
    from graphstore.mcp.desk import Doing, Shown
    from graphstore.mcp.protocol import Server
    from graphstore.store.store import GraphStore

PATH = "/mcp/conversation"
_KNOWN = ("id", "again", "profile", "tools", "allow_erase")


class Conversations:
    """Those with the agents of a store; each way to offer tools has one server of the protocol."""

    def __init__(self, store: GraphStore, *, read_only: bool) -> None:
        self._store, self._read_only = store, read_only
        self._servers: dict[tuple[Any, ...], Server] = {}

    async def converse(self, scoped: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the lines of one agent, until they end. Raises InvalidError for an option that is none, ImportError where agents are not served."""
        asked = dict(parse_qsl(scope["query_string"].decode("ascii", "replace")))
        for name in asked:
            if name not in _KNOWN:
                raise InvalidError.choice("option", name, _KNOWN)
        made = await asyncio.to_thread(self._made, asked, self._read_only or scoped != "write")
        conversation = _Conversation(self._store, asked.get("id", ""), int(asked.get("again", "0")))
        headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await made.converse(conversation.lines(receive), _Answers(send), conversation.doing)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _made(self, asked: dict[str, str], read_only: bool) -> Server:
        from graphstore.mcp.protocol import server

        how: dict[str, Any] = {
            "profile": asked.get("profile", "full"),
            "tools": tuple(asked.get("tools", "usual").split(",")),
            "allow_erase": asked.get("allow_erase") == "yes",
            "read_only": read_only,
        }
        key = tuple(how.values())
        found = self._servers.get(key)
        if found is None:
            found = self._servers.setdefault(key, server(self._store, **how))
        return found

    def stop(self) -> None:
        """End the queries that run."""
        for made in self._servers.values():
            made.stop_queries()


class _Conversation:
    """One of them. The first `again` of its lines were sent to another server before."""

    def __init__(self, store: GraphStore, id: str, again: int) -> None:
        self._store, self._id, self._left = store, id, again
        self._again: set[int | str] = set()

    async def lines(self, receive: Receive) -> AsyncIterator[bytes]:
        """Its lines, as they come."""
        asked = Lines()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            for line in asked.of(message.get("body", b"")):
                self._look(line)
                yield line + b"\n"
            if not message.get("more_body"):
                yield asked.rest()
                return

    def _look(self, line: bytes) -> None:
        if self._left > 0:
            self._left -= 1
            with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
                self._again.add(orjson.loads(line)["id"])

    def doing(self, request: int | str) -> Doing:
        """How the call of a tool is done by the id of its request."""
        known = blake2b(orjson.dumps([self._id, request]), digest_size=16).hexdigest()
        again = request in self._again

        def done(store: Any, work: Callable[[Any], Shown]) -> Shown:
            if again and resent.kept_of(store, known):
                return resent.answered_again(store, known, work)
            with store._asked_by(known):
                return work(store)

        return done


class _Answers:
    """What the protocol's server writes its answers to, as to a file."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def write(self, text: str) -> None:
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def flush(self) -> None:
        """Nothing is held back."""
