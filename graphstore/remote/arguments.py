"""The arguments of a method as a request carries them: bound by the method's own signature, by name, as JSON.

What cannot be sent is refused here, with what to do instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from graphstore.core.tables.guard import LIMITS
from graphstore.errors import GraphStoreError, InvalidError
from graphstore.remote import codec
from graphstore.remote.calls import NOT_SENT, Call
from graphstore.store import registry
from graphstore.values.inputs import json_object, text_of
from graphstore.values.models import Change, Event, Node, Value
from graphstore.values.period import instant, iso


def arguments(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a method, by name and as JSON: the input of `prepare`. Raises TypeError for what its signature does not take,
    InvalidError for what cannot be sent."""
    given = _bound(call, args, kwargs)
    for name in call.sorts.keys() & given.keys():
        if (value := given[name]) is not None and (check := _SORTS.get(call.sorts[name])):
            given[name] = check(call, name, value)
    for name in call.files & given.keys():
        if isinstance(given[name], str | os.PathLike):
            given[name] = str(Path(given[name]).expanduser().absolute())
    for name in NOT_SENT & given.keys():
        if given.pop(name) is not None and name != "progress":
            raise InvalidError(
                f"{name}= of {call.name} is a function, and functions cannot be sent to a server. Leave it out, or open the store itself."
            )
    return given


def _bound(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    places, more = call.positional, call.more
    if call.any == "params":
        if not args and "cypher" in kwargs:
            kwargs = dict(kwargs)
            args = (kwargs.pop("cypher"),)
        if kwargs.get("limits", LIMITS) != LIMITS:
            raise InvalidError(
                "the limits of a query are those of the server it is sent to. Leave limits out."
            )
        kwargs = {name: value for name, value in kwargs.items() if name != "limits"}
        if len(args) != 1:
            call.function(None, *args, **kwargs)  # raises the same error as in process
        try:
            orjson.dumps(kwargs, option=_STRICT)
            return {"cypher": args[0], "params": dict(kwargs)}
        except TypeError:
            pass
        try:
            return {"cypher": args[0], "tagged": orjson.loads(codec.tagged(dict(kwargs)))}
        except TypeError as error:
            raise InvalidError(f"a parameter of the query cannot be sent: {error}.") from None
    given = dict(zip(places, args, strict=False))
    if more is not None and len(args) > len(places):
        given[more] = list(args[len(places) :])
    too_many = len(args) > len(places) and more is None
    twice = given.keys() & kwargs.keys()
    given.update(kwargs)
    unknown = call.any is None and not given.keys() <= call.signature.parameters.keys()
    if too_many or twice or unknown or not call.required <= given.keys():
        call.function(None, *args, **kwargs)  # raises the TypeError of the signature
    return given


_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def _time(call: Call, name: str, value: Any) -> Any:
    return iso(instant(value, name)) if isinstance(value, datetime) else value


def _change(call: Call, name: str, value: Any) -> Any:
    """The instant of a transaction, by one of its changes too."""
    return _time(call, name, value.tx if isinstance(value, Change) else value)


def _object(call: Call, name: str, value: Any) -> Any:
    return json_object(name, value) if isinstance(value, Mapping) else value


def _named(call: Call, name: str, value: Any) -> Any:
    """The name of a function that is one of the store's own."""
    if isinstance(value, Mapping):
        return {key: _named(call, name, one) for key, one in value.items()}
    if not callable(value):
        return value
    module = str(getattr(value, "__module__", ""))
    own = getattr(value, "__name__", "") or type(value).__name__.lower()
    if module.startswith("graphstore.") and "<" not in own:
        return own.lstrip("_")
    raise InvalidError(
        f"{name}= of {call.name} is a function of yours, and functions cannot be sent to a server. Name one of the store's own, or open the store itself."
    )


def _memory(call: Call, name: str, value: Any) -> Any:
    if value is True or isinstance(getattr(value, "_store", None), registry.Elsewhere):
        return True
    raise InvalidError("memory is that of another store. Give one of the store that is read.")


def _model(call: Call, name: str, value: Any) -> Any:
    """A model, or several, with all fields; anything else is refused by the server."""
    listed = (
        value if isinstance(value, str | Mapping | Value) or not isinstance(value, Iterable) else list(value)
    )
    try:
        return orjson.loads(codec.plain(listed))
    except TypeError as error:
        raise InvalidError(f"{name} {value!r} of {call.name} is not JSON: {error}.") from None


def _view(call: Call, name: str, value: Any) -> Any:
    if isinstance(value, str | Mapping):
        return value
    place = getattr(value, "_named_as", None)
    if not isinstance(value, registry.Elsewhere) or place is None:
        raise InvalidError("compare wants another view of the same store.")
    return place()


_SORTS: dict[str, Callable[[Call, str, Any], Any]] = {
    "time": _time, "change": _change, "object": _object, "function": _named, "memory": _memory, "view": _view, "model": _model,
    "event": _model, "messages": _model, "age": _model,
}  # fmt: skip


def body(call: Call, given: Mapping[str, Any]) -> bytes:
    """The arguments as the body of a request. Raises InvalidError naming the one that JSON cannot hold."""
    try:
        return orjson.dumps(given, default=_sendable, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:
        pass
    for name, value in given.items():
        if isinstance(value, str):
            text_of(name, value, empty=True)
        try:
            orjson.dumps(value, default=_sendable, option=orjson.OPT_PASSTHROUGH_DATETIME)
        except TypeError as error:
            cause = error.__cause__
            if isinstance(cause, GraphStoreError):
                raise cause from None
            raise InvalidError(f"{name} {value!r} of {call.name} is not JSON: {error}.") from None
    raise InvalidError(f"the arguments of {call.name} are not JSON. Give text as the names of fields.")


def _sendable(value: Any) -> Any:
    if isinstance(value, Node | Event):
        return value.id
    if isinstance(value, datetime):
        return iso(instant(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes | bytearray):
        return {"base64": codec.simple(value)}
    if isinstance(value, timedelta | Value | Mapping) or not isinstance(value, Iterable):
        return codec.simple(value)
    return list(value)
