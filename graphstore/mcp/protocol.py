"""The door for agents: a store behind the Model Context Protocol. `server` makes the protocol's server, `asgi` an application for HTTP, and two
functions run it until it is stopped.

A tool is a method: of `read_tools`, `graph_tools`, `write_tools`, or of `memory_tools` in the profile of that name.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import mcp_types as wire
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.tools.tool_manager import ToolManager
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import Field, ValidationError

from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.graph import texts
from graphstore.mcp import (
    graph_tools,
    memory_tools,
    prompts,
    read_tools,
    refusals,
    room_tools,
    shapes,
    write_tools,
)
from graphstore.mcp.desk import PROGRESS, QUERY_SECONDS, Desk, Slow, tool
from graphstore.mcp.returning import Reads
from graphstore.store.store import Store
from graphstore.values.inputs import distinct, may_lack_a_name
from graphstore.values.text import clean, clean_json

__all__ = ["INSTRUCTIONS", "PROFILES", "TOOL_SETS", "Profile", "Server", "server"]

T = TypeVar("T")

Profile = Literal["full", "memory"]
PROFILES = ("full", "memory")
_STATEMENTS = ("search", "get", "what_superseded", "history", "why", "remember", "remember_many", "amend", "supersede", "retract", "undo", "resolve", "forget")  # fmt: skip
_OF_USERS = ("context", "layers", "expertise", "keep", "scratchpad", "observe", "record_outcome")
TOOL_SETS = {
    "memory": (*_STATEMENTS, *_OF_USERS),
    "graph": ("trace", "diff", "schema", "cypher", "over", "link", "unlink"),
    "events": ("events", "timeline", "record_event"),
    "sessions": ("sessions",),
}
TOOL_SETS["usual"] = (
    *_STATEMENTS,
    *(tool for tool in TOOL_SETS["graph"] if tool != "over"),
    *TOOL_SETS["events"],
)
TOOL_SETS["all"] = (*TOOL_SETS["usual"], "over", *_OF_USERS, "sessions")
"""The tools in sets, for a client that wants to read fewer of them than the usual ones, or more."""
_OF_ALL = (
    "In all tools a time is 2026-03-01, 2026-03, 7d, yesterday or a snapshot; valid: as it was then; tx: as known then; "
    "cursor: `more` of the page before."
)
"""What the first tool of a list says of all of them: some clients show an agent nothing but the list."""
_SLOW_AT_ONCE = 4
_RESOURCE_TOKENS = 20_000
_OF_A_KIND = 200
WITH_BATCHES, BEFORE_BATCHES = "2025-03-26", "2024-11-05"
"""Versions of the protocol."""
_MARK = b"\xef\xbb\xbf"  # what some programs put before UTF-8

INSTRUCTIONS = """\
This is a memory with two times. Valid time is when something was true in the world; tx is when this store recorded it. Every read takes `valid` \
(as it was then) and `tx` (as we knew it then), a date, an instant or a snapshot's name; both alike is what we believed at that day about that day. \
Every answer says its coordinate in `at`.
- No id yet: search. An id: get. What took the place of something, or whether it still holds: what_superseded, with an id or its own words.
- Who recorded it, for what reason, what led to it: why. Who knew what, and when: history. What rests on it: trace (down). What changed: diff.
- What happened lately and what keeps coming back: events. A conversation, a topic or a node over time: timeline.
- How many, how much, what changed at each step of time: over. Anything else: schema, then cypher (reading only).
{rooms}{writing}\
Answers fit in budget_tokens. Where `left_out` is above 0, call again with cursor=`more`. A refusal ends with the next call to make.
"""
_SESSIONS = """\
- What agents did in their sessions, decided, learned, met, touched and cost: sessions.
"""
_USERS = """\
- Before you answer a user: context. What a layer of memory holds: layers; to keep something there: keep; a note: scratchpad; a message: observe. \
How well it goes in a domain: expertise; how something ended: record_outcome.
"""
_WRITING = """\
- To write: remember (give a key when only one value can hold; say valid_from when it is older than today, and always a reason), remember_many, amend, record_event, \
supersede, retract, link. Nothing is ever lost: superseded is no longer true, retracted should never have been recorded. A slip of your own: undo, \
with the `tx` of the answer to it. A link that should not be: unlink. Two things that contradict each other: resolve.
"""


class Offer(NamedTuple):
    """A tool as it is offered: the method, what it may do, and a title where it has one."""

    method: Callable[..., Any]
    reads: bool = True
    destructive: bool = False
    idempotent: bool = False
    slow: bool = False
    erases: bool = False
    title: str | None = None


class Offers(NamedTuple):
    """The tools that a server offers, and the names of those that it withholds."""

    offered: list[Offer]
    withheld: frozenset[str]


def server(
    store: Store,
    *,
    read_only: bool = False,
    profile: Profile = "full",
    query_seconds: float = QUERY_SECONDS,
    tools: Iterable[str] = ("usual",),
    allow_erase: bool = False,
    author: str | None = None,
    record_reads: bool | Reads = False,
) -> Server:
    """The protocol's server of a store (or of a branch of it). It does not close the store.

    `read_only`: no tool that writes is offered; so it is for a store that is open read only. `query_seconds`: how long a Cypher text may run.
    `tools`: the sets that are offered in the full profile, some of `TOOL_SETS`. `allow_erase`: `forget` is offered too.
    `author`: who signs what clients write; by default the name that a client gives, which has no rank. A token with a name signs with that name.
    `record_reads`: the store records what each answer contained, and an agent that returns is notified of what no longer holds.
    Raises InvalidError for an unknown profile or set.
    """
    if profile not in PROFILES:
        raise InvalidError.choice("profile", profile, PROFILES)
    read_only = read_only or store.read_only
    desk = Desk(store, query_seconds=query_seconds, author=author)
    if record_reads is True:
        record_reads = Reads(store, in_names=profile == "memory", author=author)
    wanted = _chosen(tools)

    def offers() -> Offers:
        known = _memory_offers(desk) if profile == "memory" else _offers(desk, wanted)
        offered = [
            offer
            for offer in known
            if (offer.reads or not read_only)
            and (allow_erase or not offer.erases)
            and (profile == "memory" or offer.method.__name__ in wanted)
        ]
        withheld = (offer.method.__name__ for offer in known if read_only and not offer.reads)
        return Offers(offered, frozenset(withheld))

    from graphstore import __version__

    made = Server(
        "graphstore",
        offers,
        _OF_ALL if profile == "full" else "",
        reads=record_reads or None,
        title="graphstore",
        version=__version__,
        instructions=_instructions(profile, read_only, wanted),
        log_level="WARNING",
    )
    if profile == "full":
        _resources(made, desk)
        _prompts(made, desk)
        _completions(made, desk)
    else:
        _whole_graph(made, desk)
    return made


def _chosen(sets: Iterable[str]) -> set[str]:
    """The names of the tools of some sets."""
    for each in (chosen := list(sets)):
        if each not in TOOL_SETS:
            raise InvalidError.choice("set of tools", each, list(TOOL_SETS))
    return {name for each in chosen for name in TOOL_SETS[each]}


def _instructions(profile: str, read_only: bool, wanted: Collection[str]) -> str:
    if profile == "memory":
        return "A knowledge graph of entities, their observations and relations. What is deleted ends now; nothing is lost, and its past stays readable."
    rooms = "".join(said for name, said in (("sessions", _SESSIONS), ("context", _USERS)) if name in wanted)
    return INSTRUCTIONS.format(rooms=rooms, writing="" if read_only else _WRITING)


def _offers(desk: Desk, wanted: Collection[str]) -> list[Offer]:
    reads, graph, writes = read_tools.Reads(desk), graph_tools.Graph(desk), write_tools.Writes(desk)
    rooms = _room_offers(desk) if not {*_OF_USERS, "sessions"}.isdisjoint(wanted) else []
    return [
        *_each(reads.search, reads.get, reads.what_superseded, reads.history, reads.why),
        *_each(graph.timeline, graph.diff, graph.trace),
        *_each(graph.schema, graph.cypher, graph.over, slow=True),
        Offer(graph.events),
        *_each(writes.remember, writes.remember_many, writes.amend, writes.record_event, reads=False),
        Offer(writes.supersede, reads=False),
        Offer(writes.retract, reads=False, destructive=True),
        *_each(writes.undo, writes.link, reads=False),
        *_each(writes.unlink, writes.resolve, reads=False, destructive=True),
        Offer(writes.forget, reads=False, destructive=True, erases=True),
        *rooms,
    ]


def _each(*methods: Callable[..., Any], **how: Any) -> list[Offer]:
    """Offer several methods alike."""
    return [Offer(method, **how) for method in methods]


def _room_offers(desk: Desk) -> list[Offer]:
    rooms = room_tools.Rooms(desk)
    return [
        *_each(rooms.sessions, rooms.context, rooms.layers, rooms.expertise),
        *_each(rooms.keep, rooms.scratchpad, rooms.observe, rooms.record_outcome, reads=False),
    ]


def _memory_offers(desk: Desk) -> list[Offer]:
    memory = memory_tools.Memory(desk)
    adding = (memory.create_entities, memory.create_relations, memory.add_observations)
    deleting = (memory.delete_entities, memory.delete_observations, memory.delete_relations)
    offers = [
        *_each(*adding, reads=False, idempotent=True),
        *_each(*deleting, reads=False, destructive=True, idempotent=True),
        *_each(memory.read_graph, memory.search_nodes, memory.open_nodes),
    ]
    return [each._replace(title=each.method.__name__.replace("_", " ").capitalize()) for each in offers]


def _tool(offer: Offer, slow: Slow, said_once: str) -> Tool:
    """A method as a tool. Hints are listed where they are not as the protocol takes them for granted."""
    return shapes.shaped(
        Tool.from_function(
            tool(offer.method, slow if offer.slow else None),
            name=offer.method.__name__,
            title=offer.title,
            description=" ".join(f"{offer.method.__doc__} {said_once}".split()),
            annotations=wire.ToolAnnotations(
                read_only_hint=offer.reads or None,
                destructive_hint=None if offer.reads else offer.destructive,
                idempotent_hint=offer.idempotent or None,
            ),
        )
    )


def _taken(tool: Tool) -> list[str]:
    """The names of the arguments of a tool, those too that are not listed."""
    return [field.alias or name for name, field in tool.fn_metadata.arg_model.model_fields.items()]


class _Tools(ToolManager):
    """The tools of a server. They are made when a client first asks for one, since their schemas take longer than all else before the first answer."""

    def __init__(self, offers: Callable[[], Offers], slow: Slow, said_once: str) -> None:
        super().__init__()
        del self._tools  # made by `__getattr__`
        self._offers, self._slow, self._said_once = offers, slow, said_once

    def __getattr__(self, name: str) -> Any:
        if name != "_tools":
            raise AttributeError(name)
        offered, self.withheld = self._offers()
        said = [self._said_once, *[""] * (len(offered) - 1)]
        tools = [_tool(offer, self._slow, once) for offer, once in zip(offered, said, strict=False)]
        self._tools = {tool.name: tool for tool in tools}
        return self._tools


_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Server(MCPServer[Any]):
    """The protocol's server, whose refusals say what to do next, and which refuses what it would otherwise pass over."""

    def __init__(
        self,
        name: str,
        offers: Callable[[], Offers],
        said_once: str = "",
        reads: Reads | None = None,
        **options: Any,
    ) -> None:
        self._reads = reads
        self._slow = Slow(_SLOW_AT_ONCE)
        self._levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        super().__init__(name, **options)
        self._tool_manager = self._offers = _Tools(offers, self._slow, said_once)
        self._lowlevel_server.add_request_handler(
            "logging/setLevel", wire.SetLevelRequestParams, self._set_level
        )
        self._arguments: dict[str, list[str]] = {}

    async def run_stdio_async(self) -> None:
        """Serve one client over standard input and output until it closes an end of them."""
        serving = self._lowlevel_server
        async with conversation(_standard_input()) as (asked, answers):
            await serving.run(asked, answers, serving.create_initialization_options())

    async def slowly(self, work: Callable[[], T]) -> T:
        """What `work` gives, done in a thread of those that query."""
        return await self._slow.run(work)

    def stop_queries(self) -> None:
        """Stop the queries that run, so that the store can be closed."""
        self._slow.stop()

    async def _set_level(self, context: Any, params: wire.SetLevelRequestParams) -> wire.EmptyResult:
        """From which level on a client is told; before it says so it is told nothing."""
        self._levels[context.session] = params.level
        return wire.EmptyResult()

    async def _tell(self, context: Context[Any, Any] | None, level: str, what: str) -> None:
        if context is None:
            return
        wanted = self._levels.get(context.session)
        if wanted is not None and _LEVELS.index(level) >= _LEVELS.index(wanted):
            with suppress(Exception):  # a client that has gone
                await context.log(level, what, logger_name="graphstore")  # type: ignore[arg-type]

    async def _known_arguments(self) -> dict[str, list[str]]:
        if not self._arguments:
            for each in await self.list_tools():
                tool = self._offers.get_tool(each.name)
                taken = [] if tool is None else _taken(tool)
                self._arguments[each.name] = taken or list(each.input_schema.get("properties", {}))
        return self._arguments

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        """Call a tool. Raises ToolError, whose text is for the agent."""
        known = await self._known_arguments()
        if name not in known:
            raise ToolError(clean(refusals.unknown_tool(name, list(known), self._offers.withheld)))
        for given in arguments:
            if given not in known[name]:
                raise ToolError(clean(refusals.unknown_argument(name, given, known[name])))
        progress = PROGRESS.set(None if context is None else context.report_progress)
        try:
            result = await super().call_tool(name, arguments, context)
            if self._reads is not None and context is not None and isinstance(result, wire.CallToolResult):
                await self._reads.answered(name, arguments, result, context)
            return result
        except ToolError as error:
            why = refusals.words(name, arguments, error.__cause__ or error, known)
            await self._tell(context, "warning", f"{name}: {why}")
            raise ToolError(why) from error.__cause__
        finally:
            PROGRESS.reset(progress)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> wire.GetPromptResult | wire.InputRequiredResult:
        """A prompt with what is found at now. Raises MCPError of invalid parameters, whose text says what to give instead."""
        prompts = {
            each.name: [one.name for one in each.arguments or ()] for each in await self.list_prompts()
        }
        if name not in prompts:
            raise _unfit(refusals.unknown_prompt(name, list(prompts)))
        for given in arguments or {}:
            if given not in prompts[name]:
                raise _unfit(refusals.unknown_argument(name, given, prompts[name]))
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, GraphStoreError | ValidationError):
                cause = cause.__cause__
            if cause is None:
                raise
            raise _unfit(refusals.words(name, arguments or {}, cause)) from None


def _unfit(why: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=clean(why))


# ---------------------------------------------------------------- resources and prompts


def _resources(made: Server, desk: Desk) -> None:
    @made.resource("graphstore://schema", name="schema", title="Schema", mime_type="application/json")
    def schema() -> str:
        """The kinds of nodes, events and links there are, and the graph as Cypher sees it."""
        return clean_json(
            graph_tools.Graph(desk).schema(budget_tokens=_RESOURCE_TOKENS).model_dump_json(exclude_none=True)
        )

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
                read_tools.Reads(desk)
                .get(id, budget_tokens=_RESOURCE_TOKENS)
                .model_dump_json(exclude_none=True)
            )
        except NotFoundError as error:
            raise ResourceNotFoundError(refusals.words("get", {"id": id}, error)) from error
        except GraphStoreError as error:
            raise ResourceError(refusals.words("get", {"id": id}, error)) from error

    @made.resource(
        "graphstore://kind/{kind}",
        name="kind",
        title="Nodes of a kind",
        mime_type="application/json",
        security=ResourceSecurity(exempt_params={"kind"}),
    )
    def nodes_of_a_kind(kind: str) -> str:
        """What stands of a kind of node or a type of event, as `search` returns it."""
        found = read_tools.Reads(desk).search(kind=kind, limit=_OF_A_KIND, budget_tokens=_RESOURCE_TOKENS)
        return clean_json(found.model_dump_json(exclude_none=True))


def _whole_graph(made: Server, desk: Desk) -> None:
    @made.resource(
        "memory://knowledge-graph",
        name="knowledge-graph",
        title="Knowledge Graph",
        mime_type="application/json",
    )
    def knowledge_graph() -> str:
        """The full knowledge graph with all entities and relations"""
        return memory_tools.Memory(desk).read_graph().text()


def _prompts(made: Server, desk: Desk) -> None:
    @made.prompt(name="audit", title="Audit this memory")
    def audit_prompt(
        since: Annotated[
            str, Field(description="What changed since then: a date, an instant, or a window such as 7d.")
        ] = "7d",
    ) -> str:
        """Look the memory through: what is shaky, what contradicts each other, what changed lately; and put it right."""
        return prompts.audit(desk, since)


_WINDOWS = ("7d", "30d", "yesterday")
_COMPLETED = 50  # ids at once


def _completions(made: Server, desk: Desk) -> None:
    """What may follow what was typed: ids for the resource of a node, snapshots and windows for the prompt."""

    def values(ref: Any, name: str, begins: str) -> list[str]:
        view = desk.view()
        if isinstance(ref, wire.PromptReference) and (ref.name, name) == ("audit", "since"):
            known = [*_WINDOWS, *(each.name for each in desk.store.snapshots())]
            return sorted(each for each in known if each.startswith(begins))
        if isinstance(ref, wire.ResourceTemplateReference) and name == "id":
            return [str(row["id"]) for row in view.query(texts.text("ids_that_begin"), prefix=begins)]
        if isinstance(ref, wire.ResourceTemplateReference) and name == "kind":
            found = view.query(texts.text("kinds_that_begin"), prefix=begins)
            return sorted({str(row["kind"]) for row in found})
        return []

    async def complete(ref: Any, argument: Any, context: Any) -> wire.Completion:
        found = await made.slowly(lambda: values(ref, argument.name, argument.value))
        return wire.Completion(values=found[:_COMPLETED], has_more=len(found) >= _COMPLETED)

    made.completion()(complete)  # type: ignore[no-untyped-call]


# ---------------------------------------------------------------- standard input and output


async def _standard_input() -> AsyncIterator[bytes]:
    # a file of its own: one that a thread still reads from must not be closed when the process ends
    file: io.BufferedReader = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
    while line := await to_thread.run_sync(file.readline, abandon_on_cancel=True):
        yield line


@asynccontextmanager
async def conversation(lines: AsyncIterator[bytes]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of what a client asks and of what it is answered, who gets an answer to whatever it asks: a client whose request is passed over
    waits for ever. One that reads no more has left, as one that writes no more.
    """
    messages = _Messages(lines)
    try:
        async with stdio_server(stdin=messages) as (asked, answers):  # type: ignore[arg-type]
            messages.answers = answers
            yield asked, answers
    except* BrokenPipeError:
        pass


class _Messages:
    """The lines that are messages. To the others it answers itself."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            text = line.removeprefix(_MARK).strip().decode("utf-8", "replace")
            admitted = message_of(text) if text else ""
            if isinstance(admitted, wire.JSONRPCError):
                await self.answers.send(SessionMessage(admitted))
            elif admitted:
                yield admitted


def message_of(text: str) -> str | wire.JSONRPCError:
    """A text as the message that it is; the answer to one that is none.

    Who begins with the version of the protocol that knows batches is given the one before: batches are not served.
    """
    refused = _refusal(text)
    if refused is not None:
        return refused
    if WITH_BATCHES not in text:
        return text
    message = json.loads(text)
    if message.get("method") == "initialize" and message["params"].get("protocolVersion") == WITH_BATCHES:
        message["params"]["protocolVersion"] = BEFORE_BATCHES
    return json.dumps(message)


def _refusal(text: str) -> wire.JSONRPCError | None:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return _refused(None, PARSE_ERROR, "this is no JSON, or it is nested too deep")
    if isinstance(message, list):
        return _refused(None, INVALID_REQUEST, "batches are not served")
    id = message.get("id") if isinstance(message, dict) else None
    known = id if isinstance(id, str) or type(id) is int else None
    if known is None and isinstance(message, dict) and "method" in message and "id" in message:
        return _refused(None, INVALID_REQUEST, "the id of a request is a text or a whole number")
    if may_lack_a_name(text.encode(), message):
        try:
            json.loads(text, object_pairs_hook=distinct("the message"))
        except InvalidError as error:
            return _refused(known, INVALID_REQUEST, str(error).removesuffix("."))
    with suppress(ValueError):
        jsonrpc_message_adapter.validate_json(text, by_name=False)
        return None
    return _refused(known, INVALID_REQUEST, "this is no JSON-RPC 2.0 message, or a text in it is no Unicode")


def _refused(id: int | str | None, code: int, why: str) -> wire.JSONRPCError:
    error = wire.ErrorData(code=code, message=f"{why}. Send one message a line.")
    return wire.JSONRPCError(jsonrpc="2.0", id=id, error=error)
