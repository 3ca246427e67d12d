"""Record the door by which this process is called at the moment: Python, the command line, MCP, HTTP. It is never stored; a server remembers it for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Signer(NamedTuple):
    """The writer behind a named token: the token's name, and the author that the request gives."""

    name: str
    asked: str | None = None


SIGNER: ContextVar[Signer | None] = ContextVar("signer", default=None)
"""The signer of a request, if its token has a name."""

SIGNED = "graphstore.signed"
"""The key in an ASGI request under which the name of its token is."""

DOOR: ContextVar[str] = ContextVar("door", default="python")
AGENT = "graphstore-"
"""The beginning of the User-Agent with which our clients write; their door follows."""


@contextmanager
def through(door: str, signer: Signer | None = None) -> Iterator[None]:
    """Mark this thread or task, within the block, as called by a door, and by a named token if `signer` is given."""
    before, signed = DOOR.set(door), SIGNER.set(signer)
    try:
        yield
    finally:
        SIGNER.reset(signed)
        DOOR.reset(before)


def door_of(user_agent: str) -> str:
    """Return the door of a User-Agent: the one that our client names, a browser, or any program that uses HTTP."""
    if user_agent.startswith(AGENT):
        said = user_agent.removeprefix(AGENT)
        return said if said in ("python", "cli", "mcp", "server") else "http"
    return "page" if user_agent.startswith("Mozilla/") else "http"
