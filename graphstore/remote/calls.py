"""The calls of a store by name: how their arguments, answers and errors are sent, and which HTTP status an error has.

A call has the name of its method: `node`, `add_node`. The name of a room's function begins with the room: `topics.latest_on`. Client and
server use this one table, so that they agree. Nothing here knows the transport.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, wraps
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal, get_type_hints

import orjson
from pydantic import TypeAdapter

from graphstore import errors
from graphstore.errors import EngineError, GraphStoreError
from graphstore.graph.guard import refuse_limits
from graphstore.graph.result import Result
from graphstore.read.walks import By, Direction
from graphstore.remote import argument_types, codec, json_schemas
from graphstore.remote.argument_types import MEMORY, NamedView
from graphstore.store import registry
from graphstore.store.store import Branch, GraphStore, Store
from graphstore.store.sweeping import Swept
from graphstore.values import findings
from graphstore.values.findings import Chain
from graphstore.values.models import Coordinate, Value
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader, View

Scope = Literal["read", "write"]
On = Literal["view", "store", "branch"]

# ---- the calls --------------------------------------------------------------------------------

_ROOMS: dict[str, tuple[str, ...]] = {
    "cloud_events": ("graphstore.interchange.cloud_events",),
    "consolidation": ("graphstore.topics.consolidation",),
    "context": ("graphstore.context.sections", "graphstore.context.budget"),
    "events": ("graphstore.events.report", "graphstore.events.recurrences", "graphstore.events.recorder"),
    "gasoline": ("graphstore.imports.gasoline",),
    "imports": ("graphstore.imports.records",),
    "indexer": ("graphstore.context.feeders",),
    "lifecycle": ("graphstore.memory.lifecycle",),
    "links": ("graphstore.store.links",),
    "memobrain": ("graphstore.imports.memobrain",),
    "memory": (
        "graphstore.memory.memory",
        "graphstore.memory.embedders",
        "graphstore.context.feeders",
        "graphstore.context.memory_status",
    ),
    "observer": ("graphstore.context.observer",),
    "otlp": ("graphstore.imports.otlp",),
    "page": ("graphstore.context.glimpses",),
    "pi_brain": ("graphstore.imports.pi_brain",),
    "recall": ("graphstore.memory.recall",),
    "sessions": ("graphstore.sessions.sessions",),
    "tables": ("graphstore.store.histories",),
    "timeline": ("graphstore.events.timeline",),
    "topics": ("graphstore.topics.topics",),
    "working": ("graphstore.context.working",),
}
"""The modules that register the calls of each room. Some need packages that may not be installed."""

EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "transaction": "a conversation of its own: POST /transaction",
        "in_transaction": "calls a function of the caller within transaction",
        "last_write": "of this opening, not of the store",
        "history_table": "asks tables.history",
        "links_table": "asks tables.links",
        "changes_table": "asks tables.changes",
        "over": "asks query, tables.history and changes_to",
        "export": "a stream: GET /export",
        "close": "ends this end of the connection, not the store",
        "read_only": "of the one who asks",
        "save": "a file of the one who asks",
        "reading": "of the process that holds the store",
        "scan": "of the process that holds the store: nodes, events and query tell the same",
        "knows": "of the process that holds the store: inspect tells more",
        "verb": "of the process that holds the store: the verbs are calls",
        "together": "of the process that holds the store",
        "setting": "of the process that holds the store",
        "keep_setting": "of the process that holds the store",
        "keep_settings": "of the process that holds the store",
        "coordinate": "of the process that holds the store: at tells the same",
        "last_tx": "of the process that holds the store: stats tells the same",
        "instant_of": "of the process that holds the store",
        "bounds_of": "of the process that holds the store",
        "fixed": "of the process that holds the store",
        "pinned": "of the process that holds the store: as_of tells the same",
        "is_loaded": "of the process that holds the branch",
        "is_of": "of the process that holds the branch",
    }
)
"""Public names of GraphStore, View and Branch that are not calls, each with the reason."""

_READS = frozenset({
    "node", "event", "history", "versions", "operations", "diff", "inspect", "nodes", "events", "compare", "changes_to", "links_from", "backlinks_to", "link_history", "supersedes", "what_superseded",
    "causes", "effects", "walk", "path", "paths", "grounds", "shaky", "contradictions", "contradiction", "warnings_of", "joinable", "whole_id", "query", "to_arrow", "to_networkx", "at", "vocabulary",
})  # fmt: skip
_WHOLE_READS = frozenset({
    "query_tables", "recipe", "recipes", "snapshots", "changes", "stats", "verify", "branches", "on", "as_of", "knowledge_at", "without", "retention", "trust", "languages", "info", "refresh", "readers_of", "brief",
})  # fmt: skip
_WRITES = frozenset({
    "add_node", "revise", "amend", "supersede", "end", "retract", "fold", "join", "split", "confirm", "undo", "link", "unlink", "resolve", "define_kind", "define_point", "promote_kind", "record_event",
    "bulk_load", "evict", "evict_old", "erase", "forget", "set_trust", "set_languages", "set_retention", "sweep", "snapshot", "touch", "flush_accesses", "rebuild", "branch", "merge", "pull",
    "delete_branch", "merge_store",
})  # fmt: skip

_OF_BRANCHES = frozenset({"info", "pull"})
_FILES = {"merge_store": frozenset({"other"})}
"""The parameters of methods that are files."""

NAMES = _READS | _WHOLE_READS | _WRITES
"""The calls that are methods and properties of views, stores and branches."""


@dataclass(frozen=True)
class Call:
    """One call. `files`: parameters that are paths on the server. `parameters`: those that can be sent, by name."""

    name: str
    function: Callable[..., Any]
    scope: Scope
    on: On
    files: frozenset[str] = frozenset()

    @cached_property
    def signature(self) -> inspect.Signature:
        """Return the signature without the view or store."""
        whole = inspect.signature(self.function)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters that can be sent, by name; not progress and the caller's functions. `*more` is a list, `**params` an object."""
        parameters = self.signature.parameters.values()
        return {
            each.name: each for each in parameters if each.name not in NOT_SENT and each.name != "unknown"
        }

    @cached_property
    def doc(self) -> str:
        """Return the docstring."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def returns(self) -> str:
        """Return the annotation of the result."""
        return str(self.signature.return_annotation)

    @cached_property
    def required(self) -> frozenset[str]:
        """Return the required parameters."""
        return frozenset(
            each.name for each in self.parameters.values()
            if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        )  # fmt: skip

    @cached_property
    def needed(self) -> frozenset[str]:
        """Return the parameters that a request must have. A read that writes a file returns the file if no path is given."""
        return self.required - self.files if self.scope == "read" else self.required

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Return the parameters that may be given by position."""
        return tuple(self._of_kind(inspect.Parameter.POSITIONAL_OR_KEYWORD))

    @cached_property
    def more(self) -> str | None:
        """Return the parameter for the remaining positional arguments."""
        return next(self._of_kind(inspect.Parameter.VAR_POSITIONAL), None)

    @cached_property
    def any(self) -> str | None:
        """Return the parameter for the remaining named arguments."""
        return next(self._of_kind(inspect.Parameter.VAR_KEYWORD), None)

    def _of_kind(self, kind: Any) -> Iterator[str]:
        return (name for name, each in self.signature.parameters.items() if each.kind is kind)

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """Return the types of the parameters by name, resolved."""
        return self._resolved({name: each.annotation for name, each in self.parameters.items()})

    @cached_property
    def arguments(self) -> Mapping[str, TypeAdapter[Any]]:
        """Return the adapters that check and convert the arguments, by name."""
        files = dict.fromkeys(self.files - {"media_path"}, _OF_FILES[self.scope])
        return {
            name: argument_types.argument(each.kind, self.hints[name], files.get(name))
            for name, each in self.parameters.items()
        }

    @cached_property
    def reading(self) -> codec.Read | None:
        """Return the function that builds the answer from its JSON."""
        return codec.reading(self._resolved({"return": self.signature.return_annotation})["return"])

    @cached_property
    def answer(self) -> TypeAdapter[Any] | str:
        """Return the type of the answer, or the name of its class if it is not a record of the store."""
        names = json_schemas.NAMED.keys() & set(re.findall(r"\w+", self.returns))
        if names:
            return names.pop()
        return TypeAdapter(self._resolved({"return": self.signature.return_annotation})["return"])

    def _resolved(self, written: dict[str, Any]) -> dict[str, Any]:
        names = _UNIMPORTED | vars(import_module(self.function.__module__))
        if "return" in written and self.name in _ANSWERED_IN:
            names |= vars(import_module(_ANSWERED_IN[self.name]))
        return get_type_hints(SimpleNamespace(__annotations__=written), names)


_ANSWERED_IN = {"imports.import_git": "graphstore.imports.git"}
"""The module with the type of an answer, if the module of the call does not import it."""
_OF_FILES: Mapping[Scope, Literal["read", "written"]] = {"read": "written", "write": "read"}
"""By scope: whether a call reads or writes the files that it names."""
_UNIMPORTED = vars(findings) | {
    "Branch": Branch,
    "By": By,
    "Coordinate": Coordinate,
    "Direction": Direction,
    "GraphStore": GraphStore,
    "Reader": Reader,
    "Result": Result,
    "Swept": Swept,
    "TimeLike": TimeLike,
}
"""Types that the modules of calls import for annotations alone."""
NOT_SENT = frozenset({"progress", "lens", "tokens", "extractor", "judge", "limits"})
"""Parameters that are never sent: functions of the caller, and the limits of a query, which the server sets."""


class _Calls(Mapping[str, Call]):
    """Maps names to calls. A lookup imports the room of the call; a count or an iteration imports all."""

    def __init__(self) -> None:
        self._known: dict[str, Call] = {}
        self._whole = False

    def __getitem__(self, name: str) -> Call:
        found = self._known.get(name)
        if found is None:
            self._known[name] = found = self._found(name)
        return found

    def _found(self, name: str) -> Call:
        if name in _READS:
            return Call(name, _OF_VIEW.get(name) or getattr(View, name), "read", "view")
        if name in _WHOLE_READS or name in _WRITES:
            scope: Scope = "write" if name in _WRITES else "read"
            on: On = "branch" if name in _OF_BRANCHES else "store"
            return Call(
                name,
                _OF_STORE.get(name) or getattr(Branch if name in _OF_BRANCHES else GraphStore, name),
                scope,
                on,
                _FILES.get(name, frozenset()),
            )
        room = name.partition(".")[0]
        if name not in registry.registered():
            for module in _ROOMS.get(room, ()):
                _imported(module)
        if name not in registry.registered():
            raise KeyError(name)
        return _of_room(registry.registered()[name])

    def __iter__(self) -> Iterator[str]:
        if not self._whole:
            for modules in _ROOMS.values():
                for module in modules:
                    _imported(module)
            for name in (*_READS, *_WHOLE_READS, *_WRITES, *registry.registered()):
                self[name]
            self._whole = True
        return iter(sorted(self._known))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False


def _imported(module: str) -> None:
    with suppress(GraphStoreError):  # a room without its dependency has no calls
        vars(import_module(module))  # this runs a module that is imported lazily


def _of_room(found: registry.Registered) -> Call:
    first = next(iter(inspect.signature(found.function).parameters.values()))
    on: On = "store" if found.scope == "write" or first.name == "store" else "view"
    return Call(found.name, found.function, found.scope, on, found.files)


CALLS: Mapping[str, Call] = _Calls()


def ask(name: str, reader: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return the answer of a view or store, local or remote, to a call by its name."""
    if "." not in name:
        return getattr(reader, name)(*args, **kwargs)
    assert name in CALLS  # this imports its room
    return registry.registered()[name].anywhere(reader, *args, **kwargs)


# ---- calls that return something other than a value ---------------------------------------------


@wraps(View.path)
def _path(view: Any, *args: Any, **kwargs: Any) -> Chain:
    at: View = view if isinstance(view, View) else view.as_of()
    return at.path(*args, **kwargs)


def _giving(attribute: str, returns: str, method: Callable[..., Any], *without: str) -> Callable[..., Any]:
    """Return a function that reads an attribute of the method's result. `without`: parameters that it does not accept."""

    @wraps(method)
    def given(store: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(getattr(store, method.__name__)(*args, **kwargs), attribute)

    whole = inspect.signature(method)
    kept = [each for name, each in whole.parameters.items() if name not in without]
    given.__signature__ = whole.replace(parameters=kept, return_annotation=returns)  # type: ignore[attr-defined]
    return given


def _read(attribute: Any) -> Callable[..., Any]:
    """Return a property as a function that reads it."""

    @wraps(attribute.fget)
    def value(reader: Any) -> Any:
        return getattr(reader, attribute.fget.__name__)

    return value


_OF_VIEW: dict[str, Callable[..., Any]] = {
    "path": _path,
    "at": _read(View.at),
    "vocabulary": _read(View.vocabulary),
}
_OF_STORE: dict[str, Callable[..., Any]] = {
    "as_of": _giving("at", "Coordinate", GraphStore.as_of),
    "knowledge_at": _giving("at", "Coordinate", GraphStore.knowledge_at),
    "without": _giving("counterfact", "Counterfact", GraphStore.without),
    "branch": _giving("info", "BranchInfo", GraphStore.branch, "at"),
    "on": _giving("info", "BranchInfo", GraphStore.on),
    "retention": _read(GraphStore.retention),
    "trust": _read(GraphStore.trust),
    "languages": _read(GraphStore.languages),
    "info": _read(Branch.info),
}


# ---- answering a call --------------------------------------------------------------------------


def run(call: Call, reader: Reader, args: Mapping[str, Any], store: Store | None = None) -> Any:
    """Call a view or store with prepared arguments. `store`: the view's store, which an argument for another view or the memory needs."""
    arguments = dict(args)
    for name, value in args.items():
        if isinstance(value, NamedView):
            arguments[name] = value.view(reader, store)
        elif value is MEMORY:
            arguments[name] = import_module("graphstore.memory.memory").Memory(
                store if store is not None else reader
            )
    own = call.name not in _OF_VIEW and call.name not in _OF_STORE and "." not in call.name
    function = getattr(reader, call.name) if own else call.function
    if "." in call.name and registry.watch is not None:
        function = registry.registered()[call.name].anywhere
    before: tuple[Any, ...] = () if own else (reader,)
    if call.any == "params":
        params = arguments.pop("params", {})
        refuse_limits(params, *(call.parameters.keys() - {call.any}))
        first = arguments.pop(call.positional[0])
        return function(*before, first, **{**arguments, **params})
    if call.more is not None:
        places = [arguments.pop(name) for name in call.positional]
        return function(*before, *places, *_listed(arguments.pop(call.more, ())), **arguments)
    return function(*before, **arguments)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


# ---- the answers ------------------------------------------------------------------------------

_FORMS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "Result": (codec.result_out, codec.result_in),
    "Table": (codec.arrow_out, codec.arrow_in),
    "MultiDiGraph": (codec.graph_out, codec.graph_in),
    "TracesData": (codec.traces_out, codec.traces_in),
    "Vocabulary": (codec.vocabulary_out, codec.vocabulary_in),
}


def encode(value: Any, exact: bool = False) -> bytes:
    """Return an answer as JSON. `exact`: in the form that `decode` reads, which for a few types is not JSON."""
    try:
        return _encoded(value, exact)
    except TypeError as error:  # an iterator read during encoding may raise a refusal
        if isinstance(error.__cause__, GraphStoreError):
            raise error.__cause__ from None
        raise


def _encoded(value: Any, exact: bool) -> bytes:
    if not exact:
        return codec.plain(value)
    form = _FORMS.get(type(value).__name__)
    if form is not None and not isinstance(value, Value):
        return form[0](value)
    return codec.tagged(value) if _is_open(value) else codec.plain(value)


def _is_open(value: Any) -> bool:
    """Return True for an object that is not a model, or a list of them. It may hold values of any type."""
    if isinstance(value, dict):
        first = next(iter(value.values()), None)
        first = first[0] if isinstance(first, list) and first else first
        return not (isinstance(first, Value) or hasattr(first, "__dataclass_fields__"))
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def decode(call: Call, data: bytes) -> Any:
    """Return the exact result of the method from the bytes that `encode` made."""
    if call.name in _OF_FORM:
        return _FORMS[_OF_FORM[call.name]][1](data)
    raw = orjson.loads(data)
    if type(raw) is dict and len(raw) == 2 and "tag" in raw and "value" in raw:
        return codec.untagged(raw)
    return raw if call.reading is None or raw is None else call.reading(raw)


_OF_FORM = {
    "query": "Result",
    "changes_to": "Result",
    "query_tables": "Result",
    "recipe": "Result",
    "tables.changes": "Result",
    "tables.history": "Result",
    "tables.links": "Result",
    "to_arrow": "Table",
    "to_networkx": "MultiDiGraph",
    "otlp.traces_data": "TracesData",
    "vocabulary": "Vocabulary",
}
"""The calls whose answer has a form of its own."""


# ---- the errors -------------------------------------------------------------------------------

_STATUS = {
    "NotFoundError": 404,
    "InvalidError": 422,
    "ConflictError": 409,
    "QueryError": 400,
    "LockedError": 423,
    "WriteConflictError": 409,
    "EngineError": 503,
    "DamageError": 503,
}
_BY_STATUS = {400: "QueryError", 401: "InvalidError", 403: "InvalidError", 404: "NotFoundError", 409: "ConflictError", 413: "InvalidError", 422: "InvalidError", 423: "LockedError"}  # fmt: skip


def error_out(error: BaseException) -> tuple[int, dict[str, str]]:
    """Return status and body of an error. The body of an unexpected error names only its class."""
    if isinstance(error, GraphStoreError):
        name = next(cls.__name__ for cls in type(error).__mro__ if hasattr(errors, cls.__name__))
        told = {"error": name, "message": str(error)}
        if isinstance(error, EngineError):  # the outcome of a write
            told |= {"outcome": error.outcome} if error.outcome else {}
            told |= {"tx": error.tx.isoformat()} if error.tx else {}
        return _STATUS.get(name, 500), told
    return 500, {
        "error": "EngineError",
        "message": f"the server failed ({type(error).__name__}). Its log says more.",
    }


def error_in(status: int, body: Mapping[str, Any]) -> GraphStoreError:
    """Return the error of a response."""
    named: Any = getattr(errors, str(body.get("error")), None)
    known = isinstance(named, type) and issubclass(named, GraphStoreError)
    cls: type[GraphStoreError] = named if known else getattr(errors, _BY_STATUS.get(status, "EngineError"))
    found = cls(str(body.get("message") or f"the server answered with status {status}."))
    if isinstance(found, EngineError):
        outcome, tx = body.get("outcome"), body.get("tx")
        found.outcome = outcome if outcome in ("kept", "not kept", "unknown") else None
        found.tx = datetime.fromisoformat(tx) if isinstance(tx, str) else None
    return found
