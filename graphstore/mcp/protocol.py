"""Serves a store to agents by the Model Context Protocol. `server` makes the protocol's server; `stdio` and `transport` run it.

A tool is a method of a class in `read_tools`, `graph_tools`, `write_tools` and `user_tools`, or in `memory_tools` for the profile of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from anyio import to_thread
from mcp.server.lowlevel import Server as Protocol

from graphstore.errors import GraphStoreError, InvalidError, NotFoundError
from graphstore.graph import texts
from graphstore.mcp import (
    desk,
    graph_tools,
    memory_tools,
    messages,
    prompts,
    read_tools,
    refusals,
    returning,
    tooling,
    user_tools,
    write_tools,
)
from graphstore.mcp.queries import QUERY_SECONDS
from graphstore.mcp.sdk import CLIENT, INTERNAL_ERROR, Client, Json, handle, let_listen, refusal
from graphstore.store.store import Store
from graphstore.values.text import clean, clean_json

__all__ = ["INSTRUCTIONS", "PROFILES", "TOOL_SETS", "Defaults", "Profile", "Server", "server"]
Defaults = desk.Defaults

Profile = Literal["full", "memory"]
PROFILES = ("full", "memory")
_STATEMENTS = ("brief", "search", "list", "get", "what_superseded", "history", "why", "remember", "remember_many", "amend", "supersede", "retract", "undo", "resolve", "join", "review", "forget", "forget_person")  # fmt: skip
_ERASING = frozenset({"forget", "forget_person"})
_WRITING = _ERASING | frozenset(
    "amend define_kind join keep link observe record_event record_outcome remember remember_many resolve retract scratchpad supersede undo unlink".split()
)
_OF_USERS = ("context", "layers", "expertise", "keep", "scratchpad", "observe", "record_outcome")
TOOL_SETS = {
    "memory": (*_STATEMENTS, *_OF_USERS),
    "graph": ("trace", "diff", "schema", "cypher", "over", "link", "unlink", "define_kind"),
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
    "In all tools a time is 2026-03-01, 2026-03, 7d, last Friday, 5 May 2026 15:00 Europe/Berlin or a snapshot; valid: as it was then; tx: as known then; "
    "cursor: `more` of the page before."
)
"""What the first tool of a list says of all of them: some clients show an agent nothing but the list."""
_SLOW_AT_ONCE = 4
_RESOURCE_TOKENS = 20_000
_OF_A_KIND = 200
_JSON = "application/json"
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_WINDOWS = ("7d", "30d", "yesterday")
_COMPLETED = 50  # ids at once
_NAMED = re.compile(r"\{(\w+)\}")  # a tool in the instructions

INSTRUCTIONS = """\
This is a memory with two times. Valid time is when something was true in the world; tx is when this store recorded it. Every read takes `valid` \
(as it was then) and `tx` (as we knew it then): a day, month or year means its end, or now if that is in it; an instant, words such as last Friday, or a \
snapshot's name. Both alike is what we believed at that day about that day. Every answer says its coordinate in `at`.
- At the beginning of a session: {brief}.
- No id yet: {search}.| Without words: {list}.| An id: {get}.| What took the place of something, or whether it still holds: {what_superseded}, with an id or its own words.
- Who recorded it, for what reason, what led to it: {why}.| Who knew what, and when: {history}.| What rests on it: {trace} (down).| What changed: {diff}.
- What happened lately and what keeps coming back: {events}.| A conversation, a topic or a node through time: {timeline}.
- What somebody should look at, and the call that settles it: {review}.
- How many, how much, what changed at each step of time: {over}.| Anything else: {schema}, then {cypher} (reading only).
- What agents did in their sessions, decided, learned, met, touched and cost: {sessions}.
- Before you answer a user: {context}.| What a layer of memory holds: {layers}.| To keep something there: {keep}.| A note: {scratchpad}.| A message: {observe}.\
| How well it goes in a domain: {expertise}.| How something ended: {record_outcome}.
- To write: {remember} (give a key when only one value can hold; say valid_from when it is older than today, and always a reason).| Several at once: \
{remember_many}.| Some fields: {amend}.| What happened: {record_event}.| What is related: {link}; a link that should not be: {unlink}.| Nothing is ever lost: what \
is no longer true, {supersede}; what should never have been recorded, {retract}.| A slip of your own: {undo}, with the `tx` of the answer to it.| Two things \
that contradict each other: {resolve}.| Two ids of one thing: {join}.| A kind of link that is missing: {define_kind}.| What must not be kept at all: {forget}.| All that is of a person: {forget_person}.
Answers fit in budget_tokens. Where `left_out` is above 0, call again with cursor=`more`. A refusal ends with the next call to make.
"""
"""How to use the tools. A part of a line, up to |, is left out if one of the tools that it names in braces is not offered; a line without a part, too."""


class Resource(NamedTuple):
    """What a client may read under an address. In that of several, `{…}` stands for a name that `read` gets."""

    uri: str
    name: str
    title: str
    description: str
    read: Callable[[desk.Desk, str], str]

    @property
    def prefix(self) -> str:
        """Return what the addresses of several begin with; the whole address of one."""
        return self.uri.partition("{")[0]

    def listed(self) -> Json:
        """Return it as a client lists it."""
        where = "uri" if self.uri == self.prefix else "uriTemplate"
        return {where: self.uri, "name": self.name, "title": self.title, "description": self.description, "mimeType": _JSON}  # fmt: skip


def _schema(at: desk.Desk, _: str) -> str:
    return _json(graph_tools.GraphTools(at).schema(budget_tokens=_RESOURCE_TOKENS))


def _brief(at: desk.Desk, _: str) -> str:
    return _json(read_tools.ReadTools(at).brief())


def _node(at: desk.Desk, id: str) -> str:
    return _json(read_tools.ReadTools(at).get(id=id, budget_tokens=_RESOURCE_TOKENS))


def _kind(at: desk.Desk, kind: str) -> str:
    return _json(read_tools.ReadTools(at).search(kind=kind, limit=_OF_A_KIND, budget_tokens=_RESOURCE_TOKENS))


def _knowledge_graph(at: desk.Desk, _: str) -> str:
    return memory_tools.MemoryTools(at).read_graph().text()


def _json(answer: Any) -> str:
    return clean_json(answer.model_dump_json(exclude_none=True))


RESOURCES: dict[Profile, tuple[Resource, ...]] = {
    "full": (
        Resource(
            "graphstore://schema", "schema", "Schema",
            "The kinds of nodes, events and links there are, and the graph as Cypher sees it.", _schema,
        ),
        Resource(
            "graphstore://brief", "brief", "Briefing",
            "What to know before you work here, as `brief` returns it.", _brief,
        ),
        Resource(
            "graphstore://node/{id}", "node", "Node or event",
            "One node or event in full, as `get` returns it.", _node,
        ),
        Resource(
            "graphstore://kind/{kind}", "kind", "Nodes of a kind",
            "What stands of a kind of node or a type of event, as `search` returns it.", _kind,
        ),
    ),
    "memory": (
        Resource(
            "memory://knowledge-graph", "knowledge-graph", "Knowledge Graph",
            "The full knowledge graph with all entities and relations", _knowledge_graph,
        ),
    ),
}  # fmt: skip
_AUDIT = {
    "name": "audit",
    "title": "Audit this memory",
    "description": "Look the memory through: what is shaky, what contradicts each other, what changed lately; and put it right.",
    "arguments": [
        {
            "name": "since",
            "description": "What changed since then: a date, an instant, or a window such as 7d.",
            "required": False,
        }
    ],
}
_BRIEF = {
    "name": "brief",
    "title": "Brief me",
    "description": "Begin a session: what stands, what changed since your last visit, what is open, in doubt or due.",
    "arguments": [
        {"name": "user", "description": "Without what names another user.", "required": False},
        {"name": "project", "description": "Without what names another project.", "required": False},
        {"name": "path", "description": "Without what names another file or folder.", "required": False},
        {"name": "since", "description": "What changed since then.", "required": False},
    ],
}
PROMPTS: dict[Profile, dict[str, Json]] = {"full": {"audit": _AUDIT, "brief": _BRIEF}, "memory": {}}


def server(
    store: Store,
    *,
    read_only: bool = False,
    profile: Profile = "full",
    query_seconds: float = QUERY_SECONDS,
    tools: Iterable[str] = ("usual",),
    allow_erase: bool = False,
    author: str | None = None,
    record_reads: bool | returning.Reads = False,
    before_first_call: Callable[[], None] | None = None,
    defaults: Defaults | None = None,
) -> Server:
    """Make the protocol's server of a store (or of a branch of it). It does not close the store.

    Args:
        store: the store that is asked.
        read_only: no tool that writes is offered; so it is for a store that is open read only.
        profile: `full`, or the nine tools of the reference memory server.
        query_seconds: how long a Cypher text may run.
        tools: the sets that are offered in the full profile, some of `TOOL_SETS`.
        allow_erase: `forget` is offered too.
        author: who signs what clients write; by default the name that a client gives, which has no rank. A token with a name signs with that name.
        record_reads: the store records what each answer contained, and an agent that returns is notified of what no longer holds.
        before_first_call: called before the first request that needs the store.
        defaults: the scope, user and kind of calls that leave them out. Over HTTP the address may give others: `?scope=…&user=…&kind=…`.

    Raises InvalidError for an unknown profile or set.
    """
    if profile not in PROFILES:
        raise InvalidError.choice("profile", profile, PROFILES)
    read_only = read_only or store.read_only
    if record_reads is True:
        record_reads = returning.Reads(store, in_names=profile == "memory", author=author)
    offer = Offer(_chosen(tools) if profile == "full" else None, read_only, allow_erase)
    return Server(
        desk.Desk(store, query_seconds=query_seconds, author=author, defaults=defaults),
        profile,
        offer,
        _instructions(profile, offer),
        reads=record_reads or None,
        before_first_call=before_first_call,
    )


def _chosen(sets: Iterable[str]) -> set[str]:
    """Return the names of the tools of some sets."""
    for each in (chosen := list(sets)):
        if each not in TOOL_SETS:
            raise InvalidError.choice("set of tools", each, list(TOOL_SETS))
    return {name for each in chosen for name in TOOL_SETS[each]}


def _instructions(profile: str, offer: Offer) -> str:
    """Return the instructions, which name only tools that are offered. The modules of the tools are not imported for them."""
    left_out = (_WRITING if offer.read_only else frozenset()) | (frozenset() if offer.erasing else _ERASING)
    offered = set(offer.names or ()) - left_out
    if profile == "memory":
        return "A knowledge graph of entities, their observations and relations. What is deleted ends now; nothing is lost, and its past stays readable."
    lines = []
    for line in INSTRUCTIONS.splitlines():
        bullet = "- " if line.startswith("- ") else ""
        parts = [
            part for part in line.removeprefix(bullet).split("|") if offered >= set(_NAMED.findall(part))
        ]
        if parts:
            lines.append(bullet + _NAMED.sub(r"\1", "".join(parts).strip()) + "\n")
    return "".join(lines)


class Offer(NamedTuple):
    """Which tools are offered: those of some names, None for all; only those that read; those too that erase."""

    names: Collection[str] | None
    read_only: bool
    erasing: bool

    def has(self, name: str, traits: tooling.Traits) -> bool:
        """Return True if a tool is offered."""
        return (
            (traits.reads or not self.read_only)
            and (self.erasing or not traits.erases)
            and (self.names is None or name in self.names)
        )


def _groups(profile: Profile, offer: Offer) -> list[type[tooling.Tools]]:
    """Return the classes whose methods are the tools, those too that are not offered."""
    if profile == "memory":
        return [memory_tools.MemoryTools]
    groups = [read_tools.ReadTools, graph_tools.GraphTools, write_tools.WriteTools]
    is_of_users = not {*_OF_USERS, "sessions"}.isdisjoint(offer.names or ())
    return [*groups, user_tools.UserTools] if is_of_users else groups


def _traits(profile: Profile, offer: Offer) -> dict[str, tooling.Traits]:
    """Return what each tool may do, by its name."""
    methods = (item for group in _groups(profile, offer) for item in vars(group).items())
    return {name: method.traits for name, method in methods if hasattr(method, "traits")}


class Server(Protocol[Any]):
    """The protocol's server. Its refusals say what to do next, and it refuses what it would otherwise pass over."""

    def __init__(
        self,
        at: desk.Desk,
        profile: Profile,
        offer: Offer,
        instructions: str,
        *,
        reads: returning.Reads | None,
        before_first_call: Callable[[], None] | None,
    ) -> None:
        from graphstore import __version__

        super().__init__("graphstore", version=__version__, instructions=instructions)
        self.title = "graphstore"
        self._desk, self._profile, self._offer, self._reads = at, profile, offer, reads
        self._before_first_call = before_first_call
        self._levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._lists: dict[frozenset[str], list[Json]] = {}
        for method, handler in {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "logging/setLevel": self._set_level,
        }.items():
            handle(self, method, handler)
        let_listen(self)
        if profile == "full":
            handle(self, "completion/complete", self._complete)

    async def run_stdio_async(self) -> None:
        """Serve one client over standard input and output until it closes an end of them."""
        async with messages.conversation(messages.standard_input()) as (asked, answers):
            await self.run(asked, answers, self.create_initialization_options())

    @cached_property
    def slow_calls(self) -> tooling.SlowCalls:
        """Return what runs the calls that query."""
        return tooling.SlowCalls(_SLOW_AT_ONCE)

    def stop_queries(self) -> None:
        """Stop the queries that run, so that the store can be closed."""
        if "slow_calls" in vars(self):
            self.slow_calls.stop()

    # ------------------------------------------------------------------ tools

    @cached_property
    def _known(self) -> dict[str, tooling.Tool]:
        """Return the tools by name, those too that are not offered. They are made when a client first asks for one."""
        groups = (group(self._desk) for group in _groups(self._profile, self._offer))
        return {each.name: each for each in tooling.tools_of(groups, self._profile == "memory")}

    @cached_property
    def _tools(self) -> dict[str, tooling.Tool]:
        return {name: tool for name, tool in self._known.items() if self._offer.has(name, tool.traits)}

    def _listed_tools(self) -> list[Json]:
        """Return the tools as a client lists them. What a connection has defaults for is not required."""
        with_default = frozenset(
            name for name, value in self._desk.defaults()._asdict().items() if value is not None
        )
        if with_default not in self._lists:
            said_once = _OF_ALL if self._profile == "full" else ""
            first, *others = self._tools.values()
            self._lists[with_default] = [first.listed(said_once), *(each.listed() for each in others)]
        return self._lists[with_default]

    async def _list_tools(self, client: Client, params: Json) -> Json:
        token = CLIENT.set(client)
        try:
            return {"tools": self._listed_tools()}
        finally:
            CLIENT.reset(token)

    async def _call_tool(self, client: Client, params: Json) -> Json:
        name, given = params["name"], params.get("arguments") or {}
        tool = self._tools.get(name)
        if tool is None:
            withheld = [
                each for each, one in self._known.items() if self._offer.read_only and not one.traits.reads
            ]
            erasing = [each for each, one in self._known.items() if one.traits.erases]
            return _failure(refusals.unknown_tool(name, list(self._tools), withheld, erasing))
        for argument in given:
            if argument not in tool.fields:
                return _failure(refusals.unknown_argument(name, argument, list(tool.fields)))
        try:
            result: Json = await self._run(partial(tool.call, given), client, tool.traits.slow)
        except Exception as error:
            why = refusals.words(name, given, error, self._tools)
            await self._tell(client, "warning", f"{name}: {why}")
            return _failure(why)
        if self._reads is not None:
            await self._reads.answered(name, given, result, client)
        return result

    async def _run(self, work: Callable[[], Any], client: Client, is_slow: bool = False) -> Any:
        """Return what `work` gives, done in a thread for a client."""
        token = CLIENT.set(client)
        try:
            if self._before_first_call is not None:
                await to_thread.run_sync(self._before_first_call)
                self._before_first_call = None
            if is_slow:
                return await self.slow_calls.run(work)
            return await tooling.reported(partial(to_thread.run_sync, work))
        finally:
            CLIENT.reset(token)

    # ------------------------------------------------------------------ the log

    async def _set_level(self, client: Client, params: Json) -> Json:
        """Set from which level on a client gets the log; before it says so it gets nothing."""
        self._levels[client.session] = params["level"]
        return {}

    async def _tell(self, client: Client, level: str, text: str) -> None:
        wanted = self._levels.get(client.session)
        if wanted is not None and _LEVELS.index(level) >= _LEVELS.index(wanted):
            await client.log(level, text)

    # ------------------------------------------------------------------ resources

    async def _list_resources(self, client: Client, params: Json) -> Json:
        known = (each.listed() for each in RESOURCES[self._profile])
        return {"resources": [each for each in known if "uri" in each]}

    async def _list_templates(self, client: Client, params: Json) -> Json:
        known = (each.listed() for each in RESOURCES[self._profile])
        return {"resourceTemplates": [each for each in known if "uriTemplate" in each]}

    async def _read_resource(self, client: Client, params: Json) -> Json:
        uri = str(params["uri"])
        for each in RESOURCES[self._profile]:
            name = uri.removeprefix(each.prefix)
            is_one = each.prefix == each.uri
            if uri.startswith(each.prefix) and (not name if is_one else name and "/" not in name):
                read = partial(each.read, self._desk, unquote(name))
                return {
                    "contents": [
                        {"uri": uri, "mimeType": _JSON, "text": await self._read(read, uri, name, client)}
                    ]
                }
        raise refusal(f"Unknown resource: {uri}", data={"uri": uri})

    async def _read(self, read: Callable[[], str], uri: str, name: str, client: Client) -> str:
        try:
            text: str = await self._run(read, client)
        except Exception as error:
            code = {} if isinstance(error, NotFoundError) else {"code": INTERNAL_ERROR}
            raise refusal(
                refusals.words("get", {"id": unquote(name)}, error), data={"uri": uri}, **code
            ) from error
        return text

    # ------------------------------------------------------------------ prompts

    async def _list_prompts(self, client: Client, params: Json) -> Json:
        return {"prompts": list(PROMPTS[self._profile].values())}

    async def _get_prompt(self, client: Client, params: Json) -> Json:
        """Return a prompt with what is found at now. Refuses what does not fit, and says what to give instead."""
        name, given = params["name"], params.get("arguments") or {}
        known = PROMPTS[self._profile]
        if name not in known:
            raise refusal(clean(refusals.unknown_prompt(name, list(known))))
        names = [each["name"] for each in known[name]["arguments"]]
        for argument in given:
            if argument not in names:
                raise refusal(clean(refusals.unknown_argument(name, argument, names)))
        try:
            text = await self._run(partial(getattr(prompts, name), self._desk, **given), client)
        except GraphStoreError as error:
            raise refusal(refusals.words(name, given, error)) from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": known[name]["description"], "messages": [message]}

    # ------------------------------------------------------------------ completions

    async def _complete(self, client: Client, params: Json) -> Json:
        """Return what may follow what was typed: ids and kinds for resources, snapshots and windows for the prompt."""
        argument = params["argument"]
        complete = partial(self._completed, params["ref"], argument["name"], argument["value"])
        found = await self._run(complete, client, is_slow=True)
        return {"completion": {"values": found[:_COMPLETED], "hasMore": len(found) >= _COMPLETED}}

    def _completed(self, ref: Json, name: str, begins: str) -> list[str]:
        view = self._desk.view()
        if (ref["type"], ref.get("name"), name) == ("ref/prompt", "audit", "since"):
            known = [*_WINDOWS, *(each.name for each in self._desk.store.snapshots())]
            return sorted(each for each in known if each.startswith(begins))
        if ref["type"] == "ref/resource" and name == "id":
            return [str(row["id"]) for row in view.query(texts.text("ids_that_begin"), prefix=begins)]
        if ref["type"] == "ref/resource" and name == "kind":
            found = view.query(texts.text("kinds_that_begin"), prefix=begins)
            return sorted({str(row["kind"]) for row in found})
        return []


def _failure(text: str) -> Json:
    return {"content": [{"type": "text", "text": clean(text)}], "isError": True}
