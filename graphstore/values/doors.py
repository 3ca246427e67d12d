"""Through which door this process is asked at the moment: Python, the command line, MCP, HTTP. It is never written down; a server remembers it for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DOOR: ContextVar[str] = ContextVar("door", default="python")
AGENT = "graphstore-"
"""How a client of ours begins the User-Agent of its writes; its door follows."""


@contextmanager
def through(door: str) -> Iterator[None]:
    """Within the block this thread, or this task, is asked through a door."""
    before = DOOR.set(door)
    try:
        yield
    finally:
        DOOR.reset(before)


def door_of(user_agent: str) -> str:
    """The door of who sends this User-Agent: what a client of ours says, a browser, or some program that speaks HTTP."""
    if user_agent.startswith(AGENT):
        said = user_agent.removeprefix(AGENT)
        return said if said in ("python", "cli", "mcp", "server") else "http"
    return "page" if user_agent.startswith("Mozilla/") else "http"
