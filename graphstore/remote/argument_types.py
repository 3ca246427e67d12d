"""Maps the types of parameters to types of JSON arguments, by which pydantic checks, converts and describes each argument."""

from __future__ import annotations

import inspect
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import reduce
from importlib import import_module
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictStr,
    TypeAdapter,
    WrapValidator,
)

from graphstore.errors import InvalidError
from graphstore.remote import codec
from graphstore.store import counterfactual
from graphstore.store.store import Store
from graphstore.values.findings import Recorded
from graphstore.values.models import Event

if TYPE_CHECKING:
    from graphstore.view.view import Reader

MODELS = frozenset({"Contradiction", "Note", "Layer", "Decay", "Group", "Proposal"})
"""The models that an argument may be, by name."""
FUNCTIONS: dict[str, dict[str, str]] = {
    "Analyser": {"builtin": "graphstore.sessions.segments.analysing"},
    "Summarise": {"brief": "graphstore.topics.consolidation"},
}
"""The functions that an argument may name, by the name of their type: each with its module."""
MEMORY = object()
"""Stands for the memory of the store that answers."""
_SECONDS = 86_400 * 1_000_000_000  # the longest that a timedelta holds, as a float rounds it up


def _adapter(carried: Any) -> TypeAdapter[Any]:
    return TypeAdapter(carried, config=ConfigDict(strict=True))


def _many(kind: type[dict[Any, Any]] | type[list[Any]], item: Any) -> Any:
    """Return the type of a list of items, or of an object of them. The first wrong item raises: pydantic would collect an error for each."""
    many: Any = dict[str, item] if kind is dict else list[item]
    if item is Any:
        return many
    each = _adapter(item)
    fits = each.validator.isinstance_python

    def check(value: Any, handler: Callable[[Any], Any]) -> Any:
        if isinstance(value, kind):
            for one in value.values() if isinstance(value, dict) else value:
                if not fits(one):
                    each.validate_python(one)
        return handler(value)

    return Annotated[many, WrapValidator(check)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NamedView(_Closed):
    """A view that an argument names: a coordinate, on the trunk or a branch."""

    valid: StrictStr | None = None
    tx: StrictStr | None = None
    branch: StrictStr | None = None
    without: StrictStr | None = None

    def view(self, reader: Reader, store: Store | None) -> Reader:
        """Return the view. `reader`: the object that answers the call; `store`: its store, if `reader` is a view."""
        line = store if store is not None else reader
        if not isinstance(line, Store):
            raise InvalidError("a view beside another one needs the store they are of.")
        at: Any = line._trunk if self.branch is None else line.on(self.branch)
        if self.without is not None:
            at = at.without(**counterfactual.arguments(self.without))
        return at if self.valid is None and self.tx is None else at.as_of(valid=self.valid, tx=self.tx)  # type: ignore[no-any-return]


Data = Annotated[StrictStr, Field(description="The bytes in base64.")]


class SentBytes(_Closed):
    """Bytes."""

    base64: Data


class SentFile(_Closed):
    """A file that is sent in the call."""

    name: StrictStr
    base64: Data


class SentFolder(_Closed):
    """A folder that is sent in the call: its files by their paths."""

    name: StrictStr
    files: _many(dict, Data)  # type: ignore[valid-type]


# ---- the JSON types that stand for other types --------------------------------------------------


def _event(value: dict[str, Any]) -> Any:
    return codec.reading(Recorded if "is_new" in value else Event)(value)  # type: ignore[misc]


def _message(value: dict[str, Any]) -> Any:
    cls = Event if "standing" in value else import_module("graphstore.context.observer").Message
    return codec.reading(cls)(value)  # type: ignore[misc]


def _named(modules: Mapping[str, str]) -> Any:
    """Return the type of an argument that names a function."""
    return Annotated[
        Literal[tuple(sorted(modules))],
        AfterValidator(lambda name: getattr(import_module(modules[name]), name)),
    ]


def _as_it_is(value: Any, check: Callable[[Any], Any]) -> Any:
    check(value)
    return value


_Object = dict[str, Any]
_BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("str", "datetime", "date", "Path", "PathLike", "Node", "Event", "Branch", "GraphStore"), str),
    **dict.fromkeys(("dict", *MODELS), _Object),
    **{name: _named(modules) for name, modules in FUNCTIONS.items()},
    "bool": bool,
    "float": float,
    "int": Annotated[int, Field(ge=-(1 << 63), le=(1 << 63) - 1)],
    "timedelta": Annotated[
        float, Field(ge=-_SECONDS, le=_SECONDS), AfterValidator(codec.reading(timedelta))  # type: ignore[arg-type]
    ],
    "bytes": Annotated[SentBytes, AfterValidator(lambda value: b64decode(value.base64))],
    "Change": Annotated[_Object, AfterValidator(lambda value: value.get("tx", value))],
    "Memory": Annotated[bool, AfterValidator(lambda value: MEMORY if value else None)],
    "Message": Annotated[_Object, AfterValidator(_message)],
    "Reader": str | NamedView,
    "Recorded": Annotated[_Object, AfterValidator(_event)],
}  # fmt: skip


def carried(hint: Any) -> Any:
    """Return the type of a parameter's JSON argument. Raise TypeError for a type that cannot be sent."""
    hint = getattr(hint, "__supertype__", hint)
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is NoneType or origin is Literal:
        return hint
    if origin in (Union, UnionType):
        return reduce(or_, [carried(each) for each in args if get_origin(each) is not Callable])
    if origin is tuple and args[1:] != (...,):
        items = reduce(or_, map(carried, args))
        places = Field(min_length=len(args), max_length=len(args))
        return Annotated[list[items], places, AfterValidator(tuple)]  # type: ignore[valid-type]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _many(dict, carried(args[1]))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _many(list, carried(args[0]))
    name = getattr(origin or hint, "__name__", "")
    if name not in _BY_NAME:
        raise TypeError(f"{hint} cannot be sent as an argument: name it in {__name__}")
    return _BY_NAME[name]


def argument(kind: Any, hint: Any, file: Literal["read", "written"] | None = None) -> TypeAdapter[Any]:
    """Return the adapter that checks and converts an argument. `kind`: its parameter's kind; `file`: the call reads or writes the file at this path."""
    if kind is inspect.Parameter.VAR_KEYWORD:
        return _adapter(_Object)
    found = carried(hint)
    if model := next((one for name, one in classes_in(hint).items() if name in MODELS), None):
        found = Annotated[found, WrapValidator(_reading_models(hint, model))]
    if kind is inspect.Parameter.VAR_POSITIONAL:
        found = _many(list, found)
    if file == "read":  # the file itself may be sent instead
        sent = Annotated[SentFile | SentFolder, WrapValidator(_as_it_is)]
        found = found | sent
    if file == "written":  # without a path the file is the answer
        found = found | None
    return _adapter(found)


def _reading_models(hint: Any, model: Any) -> Callable[[Any, Any], Any]:
    """Return a function that reads a model, or a list of them. Other values pass: the called function refuses them."""
    is_many = any(get_origin(one) is Iterable for one in members(hint))
    adapter: TypeAdapter[Any] = TypeAdapter(list[model] if is_many else model)

    def read(value: Any, _: Any) -> Any:
        return adapter.validate_python(value) if isinstance(value, dict | list) else value

    return read


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types that a parameter may have."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def classes_in(hint: Any) -> dict[str, Any]:
    """Return the classes in a type, by name, at any depth."""
    if get_origin(hint) is Literal:
        return {}
    if get_origin(hint) is Callable:
        return {"Callable": hint}
    if isinstance(hint, type) and get_origin(hint) is None:
        return {hint.__name__: hint}
    found: dict[str, Any] = {}
    for each in get_args(hint):
        found |= classes_in(each)
    return found
