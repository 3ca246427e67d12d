"""The type of each argument as JSON Schema: the OpenAPI document shows it, and every request is checked by it before the store is asked."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from graphstore.errors import InvalidError
from graphstore.values.inputs import brief, text_of
from graphstore.values.models import Change, Event, Node, Recorded
from graphstore.values.vocabulary import strength_of

Schema = Mapping[str, Any]
Check = Callable[[str, Any], None]
"""Raises InvalidError for a value that is not of the type, naming the argument, the value and what is allowed."""

_SECONDS = 86_400 * 1_000_000_000  # the longest that a timedelta holds, as a float rounds it up
OBJECT: Schema = {"type": "object", "additionalProperties": {}}
_FLAT: dict[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1},
    float: {"type": "number"},
    NoneType: {"type": "null"},
    datetime: {"type": "string"},
    date: {"type": "string"},
    timedelta: {"type": "number", "minimum": -_SECONDS, "maximum": _SECONDS},
    Path: {"type": "string"},
    os.PathLike: {"type": "string"},
    Node: {"type": "string"},
    Event: {"type": "string"},
    Recorded: OBJECT,
    Change: OBJECT,
    bytes: {"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"], "additionalProperties": False},
}  # fmt: skip
_DATA: Schema = {"type": "string", "description": "The bytes in base64."}
FILES: Schema = {
    "anyOf": [
        {
            "type": "object",
            "description": "A file that is sent in the call.",
            "properties": {"name": {"type": "string"}, "base64": _DATA},
            "required": ["name", "base64"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "description": "A folder that is sent in the call: its files by their paths.",
            "properties": {
                "name": {"type": "string"},
                "files": {"type": "object", "additionalProperties": _DATA},
            },
            "required": ["name", "files"],
            "additionalProperties": False,
        },
    ]
}
"""What may stand for the path of a file or folder that is read."""
_NAMED: dict[str, Schema] = {
    "Branch": {"type": "string"},
    "Memory": {"type": "boolean"},
    "Reader": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {name: {"type": ["string", "null"]} for name in ("valid", "tx", "branch")},
                "additionalProperties": False,
            },
        ]
    },
}
"""The types of the store's own classes, by name."""


def of(each: inspect.Parameter, hint: Any, sort: str, named: Mapping[str, Schema]) -> Schema:
    """The schema of a parameter. `sort`: what `calls` says of it; `named`: the schemas of models and functions, by the name of the type."""
    if each.kind is each.VAR_KEYWORD:
        return OBJECT
    found = _of_event(hint) if sort in ("event", "messages") else _of(hint, {**_NAMED, **named})
    if each.kind is each.VAR_POSITIONAL:
        return {"type": "array", "items": found}
    if each.default not in (each.empty, None, ()) and isinstance(each.default, str | int | float):
        return {**found, "default": each.default}
    return found


def with_files(schema: Schema) -> Schema:
    """The schema of a path, or of a file that is sent in its place."""
    return one_of([schema, FILES])


def optional(schema: Schema) -> Schema:
    """The schema of what may be null as well."""
    return one_of([schema, _FLAT[NoneType]])


def _of_event(hint: Any) -> Schema:
    """Of a message: an id or text, an object, a pair of texts; or of several."""
    one: Schema = {"anyOf": [{"type": "string"}, OBJECT]}
    if not any(get_origin(each) is Iterable for each in _members(hint)):
        return one
    pair = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
    many: Schema = {"type": "array", "items": {"anyOf": [*one["anyOf"], pair]}}
    return one_of([many, _FLAT[NoneType]]) if NoneType in _members(hint) else many


def _of(hint: Any, names: Mapping[str, Schema]) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, UnionType):
        return one_of([_of(one, names) for one in args if get_origin(one) is not Callable])
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": _of(args[1], names)}
    if origin in (Iterable, list, tuple, Sequence):
        return {"type": "array", "items": _of(args[0], names)}
    plain = origin or hint
    if plain in _FLAT:
        return _FLAT[plain]
    if (name := getattr(plain, "__name__", "")) in names:
        return names[name]
    raise TypeError(f"{hint} has no schema: name it in {__name__}")


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def one_of(each: Iterable[Schema]) -> Schema:
    """The schema of what is of any of several."""
    found: list[Schema] = []
    for one in each:
        found += [part for part in one.get("anyOf", [one]) if part not in found]
    if {} in found:
        return {}
    if len(found) == 2 and found[1] == _FLAT[NoneType] and isinstance(found[0].get("type"), str):
        return {**found[0], "type": [found[0]["type"], "null"]}
    return found[0] if len(found) == 1 else {"anyOf": found}


# ---- checking ---------------------------------------------------------------------------------


def checking(schema: Schema) -> Check | None:
    """What checks a value by a schema made here; None where anything is right."""
    fits = _fitting(schema)
    if fits is None:
        return None

    def check(name: str, value: Any) -> None:
        if not fits(value):
            _refuse(name, value, schema)

    return check


_IS: dict[str, tuple[type, ...]] = {
    "string": (str,), "boolean": (bool,), "null": (NoneType,), "object": (dict,), "array": (list,), "integer": (int,), "number": (int, float),
}  # fmt: skip
"""The types of what JSON is read as. They are compared as they are: true is no number."""


def _fitting(schema: Schema) -> Callable[[Any], bool] | None:
    """Whether a value is of a schema: of those keywords that are used here."""
    if "anyOf" in schema:
        each = [fits for one in schema["anyOf"] if (fits := _fitting(one))]
        return lambda value: any(fits(value) for fits in each)
    if "enum" in schema:
        words = frozenset(schema["enum"])
        return lambda value: type(value) is str and value in words
    if "type" not in schema:
        return None
    named = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    types = frozenset(kind for one in named for kind in _IS[one])
    within = _within(schema)
    if within is None:
        return lambda value: type(value) in types
    return lambda value: type(value) in types and (value is None or within(value))


def _within(schema: Schema) -> Callable[[Any], bool] | None:
    """Whether what a value of the right type holds is right."""
    if "maximum" in schema:
        least, most = schema["minimum"], schema["maximum"]
        return lambda value: bool(least <= value <= most)
    if "items" in schema:
        item = _fitting(schema["items"])
        if item is None:
            return None
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        return lambda value: (
            len(value) >= least and (most is None or len(value) <= most) and all(map(item, value))
        )
    if isinstance(more := schema.get("additionalProperties"), Mapping):
        each = _fitting(more)
        return None if each is None else lambda value: all(each(one) for one in value.values())
    if "properties" in schema:
        of_each = {name: _fitting(one) for name, one in schema["properties"].items()}
        needed = set(schema.get("required", ()))
        return lambda value: (
            needed <= value.keys() <= of_each.keys()
            and all((fits := of_each[name]) is None or fits(one) for name, one in value.items())
        )
    return None


def _refuse(name: str, value: Any, schema: Schema) -> None:
    """Raise InvalidError for a value that is not of a schema, in the words of the store's own checks."""
    if "enum" in schema:
        raise InvalidError.choice(name, value, schema["enum"])
    if name in _OWN_CHECKS:
        _OWN_CHECKS[name](value)
    words = list(dict.fromkeys(_words(schema)))
    if words == ["text"] and not isinstance(value, str):
        text_of(name, value, empty=True)
    if words == ["JSON object"]:
        an_object(name, value)
    if words == ["true or false"]:
        raise InvalidError(f"{name} {brief(value)} is neither true nor false. Give true or false.")
    is_number = type(value) is int or (type(value) is float and words == ["number"])
    if words in (["number"], ["whole number"]) and is_number:
        span = f" from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
        raise InvalidError(f"{name} {brief(value)} is out of range. Give a {words[0]}{span}.")
    raise InvalidError(f"{name} {brief(value)} is no {' or '.join(words)}. Give {_given(words)}.")


_OWN_CHECKS: Mapping[str, Callable[[Any], object]] = {"strength": strength_of}
"""Checks of the store that say more of an argument than its type does."""


def an_object(name: str, value: Any) -> None:
    """Raise InvalidError for what is no JSON object."""
    if not isinstance(value, dict):
        raise InvalidError(f"{name} {brief(value)} is no JSON object. Give a dict with text keys.")


def _given(words: Sequence[str]) -> str:
    return " or ".join(word if word.startswith(("text", "true")) else f"a {word}" for word in words)


_CALLED = {"string": "text", "boolean": "true or false", "object": "JSON object", "integer": "whole number", "number": "number", "array": "list"}  # fmt: skip


@cache
def _plural(word: str) -> str:
    return word if word in ("text", "true or false") else f"{word}s"


def _words(schema: Schema) -> list[str]:
    if "anyOf" in schema:
        return [word for one in schema["anyOf"] for word in _words(one)]
    if "enum" in schema:
        return [f"one of {', '.join(map(repr, schema['enum']))}"]
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    found = [_CALLED[one] for one in types if one != "null"]
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    if found in (["list"], ["JSON object"]) and inner and (parts := _words(inner)):
        return [f"{found[0]} of {' or '.join(_plural(part) for part in dict.fromkeys(parts))}"]
    return found
