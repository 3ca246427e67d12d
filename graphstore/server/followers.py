"""Who follows the store by way of the server: streams of changes and agents, for as long as each stays. Who reads the folder by itself is not known here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from graphstore.server.requests import Headers, Scope
from graphstore.values.doors import door_of
from graphstore.values.period import Instant, moment


class Followers:
    """Those of one server. Of the event loop's thread alone."""

    def __init__(self) -> None:
        self._here: dict[object, dict[str, Any]] = {}

    @contextmanager
    def one(self, what: str, rights: str, headers: Headers, scope: Scope) -> Iterator[None]:
        """Within the block there is one more: `changes` are followed, or an `agent` is there."""
        key, client = object(), scope.get("client")
        self._here[key] = {
            "what": what,
            "door": "mcp" if what == "agent" else door_of(headers.get(b"user-agent", b"").decode("latin-1")),
            "rights": rights,
            "client": client[0] if client else None,
            "since": datetime.now(UTC),
        }
        try:
            yield
        finally:
            del self._here[key]

    def activity(self, connections: int, doors: dict[Instant, str]) -> dict[str, Any]:
        """Who is here, how many connections are open, and through which door this server wrote lately, by tx."""
        wrote = [{"tx": moment(tx), "door": door} for tx, door in doors.items()]
        return {"followers": list(self._here.values()), "connections": connections, "doors": wrote}
