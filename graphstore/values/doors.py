"""Through which door this process is asked at the moment: Python, the command line, MCP, HTTP. It is never written down; a server remembers it for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Signer(NamedTuple):
    """Names who writes by a token of a name: that name, and the author that the request gives."""

    name: str
    asked: str | None = None


SIGNER: ContextVar[Signer | None] = ContextVar("signer", default=None)
"""Whose token a request shows, if that has a name."""

SIGNED = "graphstore.signed"
"""Under which name a request of ASGI has the name of its token."""

DOOR: ContextVar[str] = ContextVar("door", default="python")
AGENT = "graphstore-"
"""How a client of ours begins the User-Agent of its writes; its door follows."""


@contextmanager
def through(door: str, signer: Signer | None = None) -> Iterator[None]:
    """Within the block this thread, or this task, is asked through a door, by a token of a name if `signer` is given."""
    before, signed = DOOR.set(door), SIGNER.set(signer)
    try:
        yield
    finally:
        SIGNER.reset(signed)
        DOOR.reset(before)


def door_of(user_agent: str) -> str:
    """Return the door of who sends this User-Agent: what a client of ours says, a browser, or some program that speaks HTTP."""
    if user_agent.startswith(AGENT):
        said = user_agent.removeprefix(AGENT)
        return said if said in ("python", "cli", "mcp", "server") else "http"
    return "page" if user_agent.startswith("Mozilla/") else "http"
