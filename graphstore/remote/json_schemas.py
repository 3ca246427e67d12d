"""The types of arguments and answers as JSON Schema: the OpenAPI document shows them, and every request is checked by them before the store is asked.

The answers are as `codec.plain` writes them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from inspect import getdoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from graphstore.errors import InvalidError
from graphstore.remote.codec import fields_of
from graphstore.values.findings import Change, Recorded
from graphstore.values.inputs import brief, text_of
from graphstore.values.models import Event, Node, Value
from graphstore.values.vocabulary import strength_of

Schema = Mapping[str, Any]
Check = Callable[[str, Any], None]
"""Raises InvalidError for a value that is not of the type, naming the argument, the value and what is allowed."""

OBJECT: Schema = {"type": "object", "additionalProperties": {}}
TEXT: Schema = {"type": "string"}


def record(
    properties: Mapping[str, Schema], needed: Iterable[str] = (), words: str = "", *, closed: bool = False
) -> dict[str, Any]:
    """Return the schema of an object. `needed`: those of its properties that it must have; `closed`: it has no others."""
    found: dict[str, Any] = {"type": "object"}
    if words:
        found["description"] = words
    found["properties"] = properties
    if needed := list(needed):
        found["required"] = needed
    return found | {"additionalProperties": False} if closed else found


NULL: Schema = {"type": "null"}
_FLAT: dict[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: NULL,
    Path: {"type": "string"},
}


def _of(hint: Any, of_class: Callable[[Any], Schema], words: Schema) -> Schema:
    """Return the schema of a type. `of_class`: that of a class; `words`: what is said of one of a few words besides."""
    hint = getattr(hint, "__supertype__", hint)
    origin, args = get_origin(hint), get_args(hint)
    each = partial(_of, of_class=of_class, words=words)
    if origin is Literal:
        return {**words, "enum": list(args)}
    if origin in (Union, UnionType):
        return one_of([each(one) for one in args if get_origin(one) is not Callable])
    if origin is tuple and args[1:] != (...,):
        return _in_places(list(map(each, args)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": each(args[1])}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return {"type": "array", "items": each(args[0])}
    return of_class(origin or hint)


def _in_places(each: Sequence[Schema]) -> Schema:
    """Return the schema of a list with a value of its own kind at each place."""
    return {"type": "array", "items": one_of(each), "minItems": len(each), "maxItems": len(each)}


def one_of(each: Iterable[Schema]) -> Schema:
    """Return the schema of what is of any of several."""
    found: list[Schema] = []
    for one in each:
        found += [part for part in one.get("anyOf", [one]) if part not in found]
    if {} in found:
        return {}
    if len(found) == 2 and found[1] == NULL and isinstance(found[0].get("type"), str):
        return {**found[0], "type": [found[0]["type"], "null"]}
    return found[0] if len(found) == 1 else {"anyOf": found}


# ---- arguments ----------------------------------------------------------------------------------

_SECONDS = 86_400 * 1_000_000_000  # the longest that a timedelta holds, as a float rounds it up
_GIVEN: dict[Any, Schema] = (
    _FLAT
    | dict.fromkeys((datetime, date, os.PathLike, Node, Event), TEXT)
    | {
        int: {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1},
        timedelta: {"type": "number", "minimum": -_SECONDS, "maximum": _SECONDS},
        Recorded: OBJECT,
        Change: OBJECT,
        bytes: record({"base64": TEXT}, ["base64"], closed=True),
    }
)
_DATA: Schema = {"type": "string", "description": "The bytes in base64."}
FILES: Schema = {
    "anyOf": [
        record(
            {"name": TEXT, "base64": _DATA},
            ["name", "base64"],
            "A file that is sent in the call.",
            closed=True,
        ),
        record(
            {"name": TEXT, "files": {"type": "object", "additionalProperties": _DATA}},
            ["name", "files"],
            "A folder that is sent in the call: its files by their paths.",
            closed=True,
        ),
    ]
}
"""What may stand for the path of a file or folder that is read."""
_GIVEN_BY_NAME: dict[str, Schema] = {
    "Branch": {"type": "string"},
    "Memory": {"type": "boolean"},
    "Reader": {
        "anyOf": [
            TEXT,
            record(
                {name: {"type": ["string", "null"]} for name in ("valid", "tx", "branch", "without")},
                closed=True,
            ),
        ]
    },
}
"""The types of the store's own classes, by name."""


def of(each: inspect.Parameter, hint: Any, sort: str, named: Mapping[str, Schema]) -> Schema:
    """The schema of a parameter. `sort`: what `calls` says of it; `named`: the schemas of models and functions, by the name of the type."""
    if each.kind is each.VAR_KEYWORD:
        return OBJECT
    if sort in ("event", "messages"):
        found = _of_event(hint)
    else:
        found = _of(hint, partial(_of_given_class, names={**_GIVEN_BY_NAME, **named}), {})
    if each.kind is each.VAR_POSITIONAL:
        return {"type": "array", "items": found}
    if each.default not in (each.empty, None, ()) and isinstance(each.default, str | int | float):
        return {**found, "default": each.default}
    return found


def _of_given_class(cls: Any, names: Mapping[str, Schema]) -> Schema:
    if cls in _GIVEN:
        return _GIVEN[cls]
    if (name := getattr(cls, "__name__", "")) in names:
        return names[name]
    raise TypeError(f"{cls} has no schema: name it in {__name__}")


def _of_event(hint: Any) -> Schema:
    """Of a message: an id or text, an object, a pair of texts; or of several."""
    one: Schema = {"anyOf": [{"type": "string"}, OBJECT]}
    if not any(get_origin(each) is Iterable for each in members(hint)):
        return one
    pair = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
    many: Schema = {"type": "array", "items": {"anyOf": [*one["anyOf"], pair]}}
    return one_of([many, NULL]) if NoneType in members(hint) else many


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types that a parameter may have."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


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


def _words(schema: Schema) -> list[str]:
    if "anyOf" in schema:
        return [word for one in schema["anyOf"] for word in _words(one)]
    if "enum" in schema:
        return [f"one of {', '.join(map(repr, schema['enum']))}"]
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    found = [_CALLED[one] for one in types if one != "null"]
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    if found in (["list"], ["JSON object"]) and inner and (parts := _words(inner)):
        many = [part if part in ("text", "true or false") else f"{part}s" for part in dict.fromkeys(parts)]
        return [f"{found[0]} of {' or '.join(many)}"]
    return found


# ---- answers ------------------------------------------------------------------------------------

_TEXTS: Schema = {"type": "array", "items": TEXT}
_RECORDS: Schema = {"type": "array", "items": OBJECT}
_ANSWERED: dict[Any, Schema] = _FLAT | {
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    timedelta: {"type": "number", "description": "Seconds."},
    Decimal: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    dict: OBJECT,
}
_FLAG: Schema = {"type": "boolean"}
_KIND: dict[str, Schema] = {
    "name": TEXT,
    "group": TEXT,
    "inverse": {"type": ["string", "null"]},
    "symmetric": _FLAG,
    "causal": _FLAG,
    "acyclic": _FLAG,
}
_NAMED: dict[str, Schema] = {
    "Result": record(
        {"columns": _TEXTS, "rows": _RECORDS, "warnings": _TEXTS}, ["columns", "rows", "warnings"],
        "The rows of a query, each an object by the names of the columns.",
    ),
    "Vocabulary": {"type": "array", "description": "The kinds of links.", "items": record(_KIND, _KIND)},
    "MultiDiGraph": record(
        {"nodes": _RECORDS, "edges": _RECORDS}, ["nodes", "edges"],
        "A graph: nodes with their `id`, edges with `source` and `target`, both with what else is known of them.",
    ),
    "Table": {**_RECORDS, "description": "The rows of a table, each an object by the names of the columns."},
    "TracesData": {**OBJECT, "description": "OTLP traces in the JSON form of protobuf."},
    "CloudEvent": {**OBJECT, "description": "An event in the structured mode of CloudEvents."},
}  # fmt: skip
"""What is no record of the store's own, by the name of its class."""


class Components:
    """The schemas of records by name, which refer to one another."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[type, str] = {}

    def of(self, hint: Any) -> Schema:
        """Return the schema of an answer by its annotation. Raises TypeError for an annotation it does not know."""
        return _of(hint, self._of_class, {"type": "string"})

    def named(self, name: str) -> Schema:
        """Return the schema of what is no record of the store's own."""
        self.schemas[name] = _NAMED[name]
        return {"$ref": f"#/components/schemas/{name}"}

    def _of_class(self, cls: Any) -> Schema:
        if cls in _ANSWERED:
            return _ANSWERED[cls]
        if getattr(cls, "__name__", "") in _NAMED:
            return self.named(cls.__name__)
        name = self._names.get(cls)
        if name is None:
            name = cls.__name__
            if name in self.schemas:
                name = cls.__module__.rpartition(".")[2].title().replace("_", "") + name
            self._names[cls] = name
            self.schemas[name] = {}  # its place; a record may hold others of its kind
            self.schemas[name] = self._of_fields(cls)
        return {"$ref": f"#/components/schemas/{name}"}

    def _of_fields(self, cls: Any) -> Schema:
        words = {"description": " ".join((getdoc(cls) or "").split())}
        if issubclass(cls, Enum):
            return {**words, "type": "string", "enum": [one.value for one in cls]}
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            hints = get_type_hints(cls)
            return {**words, **_in_places([self.of(hint) for hint in hints.values()])}
        if not (issubclass(cls, Value) or is_dataclass(cls)):
            raise TypeError(f"{cls} has no schema: name it in {__name__}")
        hints = fields_of(cls)
        return words | record({name: self.of(hint) for name, hint in hints.items()}, hints)
