"""Converts the arguments of a method to JSON for a request: bound by the method's own signature, by name.

An argument that cannot be sent is refused here, with advice.
"""

from __future__ import annotations

import math
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from functools import cache
from inspect import unwrap
from pathlib import Path
from typing import Any, get_origin

import orjson

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.graph.limits import LIMITS
from graphstore.remote import codec
from graphstore.remote.argument_types import FUNCTIONS, MODELS, classes_in, members
from graphstore.remote.calls import NOT_SENT, Call
from graphstore.store import registry
from graphstore.values.findings import Change
from graphstore.values.inputs import json_object, text_of
from graphstore.values.models import Event, Node, Value
from graphstore.values.period import instant, iso


def arguments(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a method by name, as JSON: the input of `prepare`. Raise TypeError if they do not fit its signature,
    InvalidError for an argument that cannot be sent."""
    given = _bound(call, args, kwargs)
    for name, convert in _converting(call).items():
        if given.get(name) is not None:
            given[name] = convert(call, name, given[name])
    for name in call.files & given.keys():
        if isinstance(given[name], str | os.PathLike):
            given[name] = _carried(call, Path(given[name]).expanduser().absolute())
    for name in NOT_SENT & given.keys():
        if given.pop(name) is not None and name != "progress":
            raise InvalidError(
                f"{name}= of {call.name} is a function, and functions cannot be sent to a server. Leave it out, or open the store itself."
            )
    return given


def _bound(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        given = dict(call.signature.bind(*args, **kwargs).arguments)
    except TypeError:
        unwrap(call.function)(None, *args, **kwargs)  # raises the same error as in process
        raise
    if call.more in given:
        given[call.more] = list(given[call.more])
    others: dict[str, Any] = {} if call.any is None else given.pop(call.any, {})
    if call.any != "params":
        return given | others
    if given.pop("limits", LIMITS) != LIMITS:
        raise InvalidError("the limits of a query are those of the server it is sent to. Leave limits out.")
    return given | _of_query({name: _listed(value) for name, value in others.items()})


def _listed(value: Any) -> Any:
    """Return an Arrow table as a list of its rows, and anything else unchanged."""
    is_table = hasattr(value, "to_pylist") and hasattr(value, "column_names")
    return value.to_pylist() if is_table else value


def _of_query(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a query for sending, tagged where JSON would change them."""
    try:
        orjson.dumps(params, option=_STRICT)
        return {"params": params}
    except TypeError:
        pass
    try:
        return {"tagged": orjson.loads(codec.tagged(params))}
    except TypeError as error:
        raise InvalidError(f"a parameter of the query cannot be sent: {error}.") from None


_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def _time(call: Call, name: str, value: Any) -> Any:
    return iso(instant(value, name)) if isinstance(value, datetime) else value


def _change(call: Call, name: str, value: Any) -> Any:
    """Return the instant of a transaction, given itself or as one of its changes."""
    return _time(call, name, value.tx if isinstance(value, Change) else value)


def _object(call: Call, name: str, value: Any) -> Any:
    return json_object(name, value) if isinstance(value, Mapping) else value


def _named(call: Call, name: str, value: Any) -> Any:
    """Return the name of one of the store's own functions. Raise InvalidError for any other function."""
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
    """Return a model, or several, as JSON with all fields. The server refuses anything else."""
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


Converting = Callable[[Call, str, Any], Any]
_BY_CLASS: dict[str, Converting] = {
    "Change": _change, "datetime": _time, "Callable": _named, **dict.fromkeys(FUNCTIONS, _named), "Memory": _memory, "Reader": _view,
    "Recorded": _model, "Message": _model, "timedelta": _model, **dict.fromkeys(MODELS, _model),
}  # fmt: skip
"""The converters of arguments to JSON, by a class in the argument's type. The first match counts."""


@cache
def _converting(call: Call) -> Mapping[str, Converting]:
    """Return the converters of a call's arguments that are not JSON already, by name."""
    found = {name: _of_type(hint) for name, hint in call.hints.items() if name != call.more}
    return {name: convert for name, convert in found.items() if convert is not None}


def _of_type(hint: Any) -> Converting | None:
    classes = classes_in(hint)
    for name, convert in _BY_CLASS.items():
        if name in classes:
            return convert
    kinds = {get_origin(one) or one for one in members(hint)}
    return _object if str not in kinds and kinds & {Mapping, dict} else None


_MOST_CARRIED = 20 << 20  # bytes of files sent in one call, before base64 adds a third
_WANTED = {
    "imports.import_git": ".git/**/*",
    "sessions.ingest": "**/*.json*",
    "pi_brain.import_pi_brain": "**/*.json",
    "memory.index_soul": "*.md",
}
"""By call: the files of a folder that it reads, if it does not read all."""


def _carried(call: Call, path: Path) -> Any:
    """Return a local file or folder as it is sent, for a call that reads it. A missing or too large one is sent as a path: the server may have it."""
    if call.scope == "read" or call.name == "timeline.record_message":
        return str(path)
    try:
        if path.is_file():
            if call.name == "gasoline.import_gasoline" and (found := _with_configuration(path)):
                return found
            if path.stat().st_size <= _MOST_CARRIED:
                return {"name": str(path), "base64": _encoded(path)}
        elif path.is_dir():
            files = _files_in(call, path)
            if sum(file.stat().st_size for file in files) <= _MOST_CARRIED:
                sent = {file.relative_to(path).as_posix(): _encoded(file) for file in files}
                return {"name": str(path), "files": sent}
    except OSError as error:
        raise InvalidError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    return str(path)


def not_sent(call: Call, given: Mapping[str, Any], message: str) -> str:
    """Return the message of a refusal, with the path that was sent because its file was missing or too large."""
    named = [path for name in call.files - {"media_path"} if isinstance(path := given.get(name), str)]
    if not named or "--files" not in message:
        return message
    most = f"{_MOST_CARRIED >> 20} MB"
    return f"there is no file or folder {named[0]!r} here, or it is larger than {most}; and {message}"


def _with_configuration(log: Path) -> Any:
    """Return a Gasoline log that has a configuration, as the folder with both."""
    from graphstore.imports.gasoline import config_of

    config = config_of(log)
    if config is None or log.stat().st_size > _MOST_CARRIED:
        return None
    files = {file.relative_to(config.parent).as_posix(): _encoded(file) for file in (log, config)}
    return {"name": str(config.parent), "files": files}


def _files_in(call: Call, folder: Path) -> list[Path]:
    wanted = _WANTED.get(call.name, "**/*")
    if call.name == "imports.import_git" and not (folder / ".git").is_dir():
        wanted = "**/*"
    return [file for file in sorted(folder.glob(wanted)) if file.is_file() and not file.is_symlink()]


def _encoded(file: Path) -> str:
    return b64encode(file.read_bytes()).decode()


def body(call: Call, given: Mapping[str, Any]) -> bytes:
    """Return the arguments as the body of a request. Raise InvalidError that names the argument which JSON cannot hold."""
    try:
        found = orjson.dumps(given, default=_sendable, option=orjson.OPT_PASSTHROUGH_DATETIME)
        if b"null" in found:  # JSON turns numbers that are not finite into null
            for name, value in given.items():
                _refuse_not_finite(name, value, value)
        return found
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


def _refuse_not_finite(name: str, whole: Any, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        if value is whole:
            raise InvalidError(f"{name} {value!r} is out of range. Give a finite number.")
        raise InvalidError(f"{name} is not JSON: it holds {value!r}. Numbers are finite.")
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_not_finite(name, whole, each)


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
