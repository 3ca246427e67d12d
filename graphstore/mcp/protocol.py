"""The door for agents: a store behind the Model Context Protocol. `server` makes the protocol's server, `asgi` an application for HTTP, and two
functions run it until it is stopped.

A tool is a method: of `read_tools`, `graph_tools`, `write_tools`, or of `memory_tools` in the profile of that name.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, NamedTuple

from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    ToolAnnotations,
)
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import Field

from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.mcp import refusals
from graphstore.mcp.desk import QUERY_SECONDS, Desk, Slow, tool
from graphstore.mcp.graph_tools import Graph
from graphstore.mcp.memory_tools import Memory
from graphstore.mcp.prompts import audit
from graphstore.mcp.read_tools import Reads
from graphstore.mcp.shapes import shaped
from graphstore.mcp.write_tools import Writes
from graphstore.store.store import Store
from graphstore.values.text import clean, clean_json

__all__ = ["INSTRUCTIONS", "PROFILES", "Profile", "Server", "server"]

Profile = Literal["full", "memory"]
PROFILES = ("full", "memory")
_SLOW_AT_ONCE = 4
_RESOURCE_TOKENS = 20_000
_MARK = b"\xef\xbb\xbf"  # what some programs put before UTF-8

INSTRUCTIONS = """\
This is a memory with two times. Valid time is when something was true in the world; tx is when this store recorded it. Every read takes `valid` \
(as it was then) and `tx` (as we knew it then), a date, an instant or a snapshot's name; both alike is what we believed at that day about that day. \
Every answer says its coordinate in `at`.
- No id yet: search. An id: get. What took the place of something, or whether it still holds: what_superseded, with an id or its own words.
- Who recorded it, for what reason, what led to it: why. Who knew what, and when: history. What rests on it: trace (down). What changed: diff.
- What happened lately and what keeps coming back: events. A conversation, a topic or a node over time: timeline.
- Counting and anything else: schema, then cypher (reading only).
{writing}\
Answers fit in budget_tokens. Where `left_out` is above 0, call again with cursor=`more`. A refusal ends with the next call to make.
"""
_WRITING = """\
- To write: remember (give a key when only one value can hold; say valid_from when it is older than today, and always a reason), amend, record_event, \
supersede, retract, link. Nothing is ever lost: superseded is no longer true, retracted should never have been recorded. A slip of your own: undo, \
with the `tx` of the answer to it.
"""


class Offer(NamedTuple):
    """A tool as it is offered: the method, its title, and what it may do."""

    method: Callable[..., Any]
    title: str
    reads: bool = True
    destructive: bool = False
    idempotent: bool = False
    slow: bool = False


def server(
    store: Store,
    *,
    read_only: bool = False,
    profile: Profile = "full",
    query_seconds: float = QUERY_SECONDS,
) -> Server:
    """The protocol's server of a store (or of a branch of it). It does not close the store.

    `read_only`: no tool that writes is offered; so it is for a store that is open read only. `query_seconds`: how long a Cypher text may run.
    Raises InvalidError for an unknown profile.
    """
    if profile not in PROFILES:
        raise InvalidError.choice("profile", profile, PROFILES)
    read_only = read_only or store.read_only
    desk = Desk(store, query_seconds=query_seconds)
    offers = _memory_offers(desk) if profile == "memory" else _offers(desk)
    offered = [offer for offer in offers if offer.reads or not read_only]
    from graphstore import __version__

    made = Server(
        "graphstore",
        offered,
        (offer.method.__name__ for offer in offers if offer not in offered),
        title="graphstore",
        version=__version__,
        instructions=_instructions(profile, read_only),
        log_level="WARNING",
    )
    if profile == "full":
        _resources(made, desk)
        _prompts(made, desk)
    else:
        _whole_graph(made, desk)
    return made


def _instructions(profile: str, read_only: bool) -> str:
    if profile == "memory":
        return "A knowledge graph of entities, their observations and relations. What is deleted ends now; nothing is lost, and its past stays readable."
    return INSTRUCTIONS.format(writing="" if read_only else _WRITING)


def _offers(desk: Desk) -> list[Offer]:
    reads, graph, writes = Reads(desk), Graph(desk), Writes(desk)
    return [
        Offer(reads.search, "Search"),
        Offer(reads.get, "Get one thing"),
        Offer(reads.what_superseded, "What superseded it"),
        Offer(reads.history, "History"),
        Offer(reads.why, "Why"),
        Offer(graph.timeline, "Timeline"),
        Offer(graph.diff, "What changed"),
        Offer(graph.trace, "Follow causes"),
        Offer(graph.schema, "Schema", slow=True),
        Offer(graph.cypher, "Ask in Cypher", slow=True),
        Offer(graph.events, "Event history"),
        Offer(writes.remember, "Remember", reads=False),
        Offer(writes.amend, "Amend", reads=False, idempotent=True),
        Offer(writes.record_event, "Record an event", reads=False),
        Offer(writes.supersede, "Supersede", reads=False, idempotent=True),
        Offer(writes.retract, "Retract", reads=False, destructive=True),
        Offer(writes.undo, "Undo", reads=False),
        Offer(writes.link, "Link", reads=False, idempotent=True),
    ]


def _memory_offers(desk: Desk) -> list[Offer]:
    memory = Memory(desk)
    return [
        Offer(memory.create_entities, "Create entities", reads=False, idempotent=True),
        Offer(memory.create_relations, "Create relations", reads=False, idempotent=True),
        Offer(memory.add_observations, "Add observations", reads=False, idempotent=True),
        Offer(memory.delete_entities, "Delete entities", reads=False, destructive=True, idempotent=True),
        Offer(
            memory.delete_observations, "Delete observations", reads=False, destructive=True, idempotent=True
        ),
        Offer(memory.delete_relations, "Delete relations", reads=False, destructive=True, idempotent=True),
        Offer(memory.read_graph, "Read graph"),
        Offer(memory.search_nodes, "Search nodes"),
        Offer(memory.open_nodes, "Open nodes"),
    ]


def _tool(offer: Offer, slow: Slow) -> Tool:
    """A method as a tool."""
    return shaped(
        Tool.from_function(
            tool(offer.method, slow if offer.slow else None),
            name=offer.method.__name__,
            title=offer.title,
            description=" ".join((offer.method.__doc__ or "").split()),
            annotations=ToolAnnotations(
                title=offer.title,
                read_only_hint=offer.reads,
                destructive_hint=offer.destructive,
                idempotent_hint=offer.reads or offer.idempotent,
                open_world_hint=False,
            ),
        )
    )


class Server(MCPServer[Any]):
    """The protocol's server, whose refusals say what to do next, and which refuses what it would otherwise pass over."""

    def __init__(self, name: str, offers: Iterable[Offer], withheld: Iterable[str], **options: Any) -> None:
        self._slow = Slow(_SLOW_AT_ONCE)
        super().__init__(name, tools=[_tool(offer, self._slow) for offer in offers], **options)
        self._arguments: dict[str, list[str]] = {}
        self._withheld = frozenset(withheld)

    async def run_stdio_async(self) -> None:
        """Serve one client over standard input and output until it closes an end of them."""
        async with conversation() as (asked, answers):
            serving = self._lowlevel_server
            await serving.run(asked, answers, serving.create_initialization_options())

    def stop_queries(self) -> None:
        """Stop the queries that run, so that the store can be closed."""
        self._slow.stop()

    async def _known_arguments(self) -> dict[str, list[str]]:
        if not self._arguments:
            tools = await self.list_tools()
            self._arguments = {each.name: list(each.input_schema.get("properties", {})) for each in tools}
        return self._arguments

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises ToolError, whose text is for the agent."""
        known = await self._known_arguments()
        if name not in known:
            raise ToolError(clean(refusals.unknown_tool(name, list(known), self._withheld)))
        for given in arguments:
            if given not in known[name]:
                raise ToolError(clean(refusals.unknown_argument(name, given, known[name])))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            raise ToolError(
                refusals.words(name, arguments, error.__cause__ or error, known)
            ) from error.__cause__


# ---------------------------------------------------------------- resources and prompts


def _resources(made: Server, desk: Desk) -> None:
    graph, reads = Graph(desk), Reads(desk)

    @made.resource("graphstore://schema", name="schema", title="Schema", mime_type="application/json")
    def schema() -> str:
        """The kinds of nodes, events and links there are, and the graph as Cypher sees it."""
        return clean_json(graph.schema(budget_tokens=_RESOURCE_TOKENS).model_dump_json(exclude_none=True))

    @made.resource(
        "graphstore://node/{id}",
        name="node",
        title="Node or event",
        mime_type="application/json",
        security=ResourceSecurity(exempt_params={"id"}),  # an id is no path
    )
    def node(id: str) -> str:
        """One node or event in full, as `get` returns it."""
        try:
            return clean_json(
                reads.get(id, budget_tokens=_RESOURCE_TOKENS).model_dump_json(exclude_none=True)
            )
        except NotFoundError as error:
            raise ResourceNotFoundError(refusals.words("get", {"id": id}, error)) from error
        except GraphStoreError as error:
            raise ResourceError(refusals.words("get", {"id": id}, error)) from error


def _whole_graph(made: Server, desk: Desk) -> None:
    memory = Memory(desk)

    @made.resource(
        "memory://knowledge-graph",
        name="knowledge-graph",
        title="Knowledge Graph",
        mime_type="application/json",
    )
    def knowledge_graph() -> str:
        """The full knowledge graph with all entities and relations"""
        return memory.read_graph().text()


def _prompts(made: Server, desk: Desk) -> None:
    @made.prompt(name="audit", title="Audit this memory")
    def audit_prompt(
        since: Annotated[
            str, Field(description="What changed since then: a date, an instant, or a window such as 7d.")
        ] = "7d",
    ) -> str:
        """Look the memory through: what is shaky, what contradicts each other, what changed lately; and put it right."""
        return audit(desk, since)


# ---------------------------------------------------------------- standard input and output


@asynccontextmanager
async def conversation() -> AsyncIterator[tuple[Any, Any]]:
    """The streams of what a client asks and of what it is answered, who gets an answer to whatever it asks: a client whose request is passed over
    waits for ever. One that reads no more has left, as one that writes no more.
    """
    lines = _Lines()
    try:
        async with stdio_server(stdin=lines) as (asked, answers):  # type: ignore[arg-type]
            lines.answers = answers
            yield asked, answers
    except* BrokenPipeError:
        pass


class _Lines:
    """The lines of standard input that are messages. To the others it answers itself."""

    def __init__(self) -> None:
        # a file of its own: one that a thread still reads from must not be closed when the process ends
        self._file: io.BufferedReader = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await to_thread.run_sync(self._file.readline, abandon_on_cancel=True):
            text = line.removeprefix(_MARK).strip().decode("utf-8", "replace")
            refused = _refusal(text) if text else None
            if refused is not None:
                await self.answers.send(SessionMessage(refused))
            elif text:
                yield text


def _refusal(text: str) -> JSONRPCError | None:
    """The answer to a line that is not a message; None where it is one."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        pass
    else:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _refused(None, PARSE_ERROR, "this is no JSON, or it is nested too deep")
    if isinstance(message, list):
        return _refused(None, INVALID_REQUEST, "batches are not served")
    id = message.get("id") if isinstance(message, dict) else None
    known = id if isinstance(id, str) or type(id) is int else None
    return _refused(known, INVALID_REQUEST, "this is no JSON-RPC 2.0 message, or a text in it is no Unicode")


def _refused(id: int | str | None, code: int, why: str) -> JSONRPCError:
    error = ErrorData(code=code, message=f"{why}. Send one message a line.")
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)
