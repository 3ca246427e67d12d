"""An agent: a client of the protocol that calls tools one after the other, for tests that are not asynchronous."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

mcp = pytest.importorskip("mcp")
from anyio.from_thread import BlockingPortal, start_blocking_portal  # noqa: E402
from mcp.types import Implementation  # noqa: E402


class Agent:
    """Calls tools; `ask` gives the structured answer, `told` the words, `refused` the words of a refusal."""

    def __init__(self, portal: BlockingPortal, client: Any) -> None:
        self._portal, self.client = portal, client

    def do(self, method: Any, *given: Any) -> Any:
        """What a method of the client gives."""
        return self._portal.call(method, *given)

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.do(self.client.call_tool, tool, arguments)

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        found: dict[str, Any] = result.structured_content
        return found

    def told(self, tool: str, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return str(result.content[0].text)

    def refused(self, tool: str, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert result.is_error, result.structured_content
        return str(result.content[0].text)

    def pages(self, tool: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Every page of an answer."""
        page = self.ask(tool, **arguments)
        yield page
        while "more" in page:
            page = self.ask(tool, **arguments, cursor=page["more"])
            yield page

    def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self.do(self.client.list_tools).tools}


@contextmanager
def agent(server: Any, name: str = "ana", **options: Any) -> Iterator[Agent]:
    """An agent of that name at a server, a transport or an address."""
    client_info = Implementation(name=name, version="1")
    if hasattr(mcp, "Client"):
        client: Any = mcp.Client(server, client_info=client_info, **options)
    else:
        client = _client_of_release_1(server, client_info)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield Agent(portal, opened)


@asynccontextmanager
async def _client_of_release_1(server: Any, client_info: Any) -> AsyncIterator[Any]:
    """A client of the SDK's release 1, with the names of release 2."""
    from mcp.shared.memory import create_connected_server_and_client_session as connected

    if hasattr(server, "create_initialization_options"):
        async with connected(server, client_info=client_info) as session:
            yield _Renamed(session)
        return
    async with (
        server as (reads, writes, *_),
        mcp.ClientSession(reads, writes, client_info=client_info) as session,
    ):  # type: ignore[attr-defined]
        await session.initialize()
        yield _Renamed(session)


class _Renamed:
    """A value whose names are those of release 2: `is_error` for `isError`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getattr__(self, name: str) -> Any:
        old = re.sub("_([a-z])", lambda found: found[1].upper(), name)
        return _renamed(getattr(self._value, name if hasattr(self._value, name) else old))


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if callable(value):

        async def called(*given: Any) -> Any:
            return _renamed(await value(*given))

        return called
    return _Renamed(value) if hasattr(type(value), "model_fields") else value
