"""An agent: a client of the protocol that calls tools one after the other, for tests that are not asynchronous."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

mcp = pytest.importorskip("mcp")
from anyio.from_thread import BlockingPortal, start_blocking_portal  # noqa: E402
from mcp_types import Implementation  # noqa: E402


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
    client = mcp.Client(server, client_info=Implementation(name=name, version="1"), **options)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield Agent(portal, opened)
