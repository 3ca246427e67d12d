"""The type of each answer as JSON Schema, as `codec.plain` writes it: the OpenAPI document shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from inspect import getdoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from graphstore.remote.codec import fields_of
from graphstore.remote.parameter_types import OBJECT, Schema, one_of
from graphstore.values.models import Value

_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_RECORDS: Schema = {"type": "array", "items": OBJECT}
_FLAT: dict[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    timedelta: {"type": "number", "description": "Seconds."},
    Path: {"type": "string"},
    Decimal: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    dict: OBJECT,
}
_NAMED: dict[str, Schema] = {
    "Result": {
        "type": "object",
        "description": "The rows of a query, each an object by the names of the columns.",
        "properties": {"columns": _TEXTS, "rows": _RECORDS, "warnings": _TEXTS},
        "required": ["columns", "rows", "warnings"],
    },
    "Vocabulary": {
        "type": "array",
        "description": "The kinds of links.",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "group": {"type": "string"},
                "inverse": {"type": ["string", "null"]},
                "symmetric": {"type": "boolean"},
                "causal": {"type": "boolean"},
                "acyclic": {"type": "boolean"},
            },
            "required": ["name", "group", "inverse", "symmetric", "causal", "acyclic"],
        },
    },
    "MultiDiGraph": {
        "type": "object",
        "description": "A graph: nodes with their `id`, edges with `source` and `target`, both with what else is known of them.",
        "properties": {"nodes": _RECORDS, "edges": _RECORDS},
        "required": ["nodes", "edges"],
    },
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
        """The schema of an answer by its annotation. Raises TypeError for an annotation it does not know."""
        hint = getattr(hint, "__supertype__", hint)
        origin, args = get_origin(hint), get_args(hint)
        if origin is Literal:
            return {"type": "string", "enum": list(args)}
        if origin in (Union, UnionType):
            return one_of([self.of(one) for one in args])
        if origin is tuple and not (len(args) == 2 and args[1] is ...):
            return self._in_places(args)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if isinstance(origin, type) and issubclass(origin, Sequence | AbstractSet | Iterator):
            return {"type": "array", "items": self.of(args[0])}
        plain = origin or hint
        return _FLAT[plain] if plain in _FLAT else self._of_class(plain)

    def named(self, name: str) -> Schema:
        """The schema of what is no record of the store's own."""
        self.schemas[name] = _NAMED[name]
        return {"$ref": f"#/components/schemas/{name}"}

    def _in_places(self, args: Sequence[Any]) -> Schema:
        """The schema of a list with a value of its own kind at each place."""
        each = [self.of(one) for one in args]
        return {"type": "array", "items": one_of(each), "minItems": len(each), "maxItems": len(each)}

    def _of_class(self, cls: Any) -> Schema:
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
            return {**words, **self._in_places(list(hints.values()))}
        if not (issubclass(cls, Value) or is_dataclass(cls)):
            raise TypeError(f"{cls} has no schema: name it in {__name__}")
        hints = fields_of(cls)
        return {
            **words,
            "type": "object",
            "properties": {name: self.of(hint) for name, hint in hints.items()},
            "required": list(hints),
        }
