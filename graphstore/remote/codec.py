"""Encodes answers as JSON from which the other end restores exactly the same values.

Annotated values are read by their annotation: models, instants, tuples. Where any value may occur (rows of a query, counts by name), types
that JSON lacks are tagged: an object with one key, chosen at random for each message, so that no content can be mistaken for a tag.
"""

from __future__ import annotations

import base64
import math
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import orjson

from graphstore.graph.result import Entity, Result
from graphstore.values.models import Value
from graphstore.values.shared_path import SharedPath
from graphstore.values.vocabulary import Vocabulary

Read = Callable[[Any], Any]
ARROW = "application/vnd.apache.arrow.stream"
EXACT = "application/vnd.graphstore.exact+json"

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


# ---- JSON for anyone --------------------------------------------------------------------------


def plain(value: Any) -> bytes:
    """Return a value as JSON: models as objects, instants in UTC with a Z, an open end as null."""
    return orjson.dumps(_legible(value), default=simple, option=_OPTIONS)


def _legible(value: Any) -> Any:
    if isinstance(value, Result):
        return {"columns": value.columns, "rows": value.legible(), "warnings": value.warnings}
    return value


def simple(value: Any) -> Any:
    """Return one layer of a value in JSON types. Raise TypeError for a value without a form in JSON."""
    if isinstance(value, Value):
        return value.__dict__
    if isinstance(value, Result):
        return _legible(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | SharedPath):
        return list(value)
    if isinstance(value, AbstractSet):
        return sorted(value, key=str)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Decimal | Path):
        return str(value)
    if isinstance(value, Iterator):
        return list(value)
    if isinstance(value, Vocabulary):
        names = ("name", "group", "inverse", "symmetric", "causal", "acyclic")
        return [{name: getattr(kind, name) for name in names} for kind in value.kinds.values()]
    if hasattr(value, "edges") and hasattr(value, "nodes"):  # networkx
        return {
            "nodes": [{**attributes, "id": name} for name, attributes in value.nodes(data=True)],
            "edges": [
                {**attributes, "source": source, "target": target}
                for source, target, attributes in value.edges(data=True)
            ],
        }
    if hasattr(value, "to_pylist"):
        return value.to_pylist()
    if type(value).__module__.startswith("cloudevents."):
        return orjson.loads(import_module("graphstore.interchange.cloud_events").structured(value))
    if hasattr(value, "SerializeToString"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


# ---- values by their annotation ---------------------------------------------------------------


@cache
def reading(annotation: Any) -> Read | None:
    """Return the function that reads a value of a type from its JSON; None if the JSON is the value. Raise TypeError for an unknown annotation."""
    annotation = getattr(annotation, "__supertype__", annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in (Any, str, int, float, bool, None, type(None)) or origin is Literal:
        return None
    if origin in (Union, types.UnionType):
        return _one_of(args)
    if origin in (tuple, list, set, frozenset):
        return _many(origin, args)
    if origin is Sequence:
        return _many(tuple, (*args, ...))
    if origin in (dict, Mapping):
        return _by_key(args[1])
    if annotation in _FLAT:
        return _FLAT[annotation]
    if isinstance(annotation, type):
        return _of_class(annotation)
    raise TypeError(f"{annotation} cannot be read from JSON")


_FLAT: dict[Any, Read] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    timedelta: lambda raw: _seconds(raw),
    Path: Path,
    dict: lambda raw: raw,
    bytes: base64.b64decode,
}


def _seconds(raw: float) -> timedelta:
    try:
        return timedelta(seconds=raw)
    except OverflowError:  # the largest timedelta, rounded up as a float
        return timedelta.max if raw > 0 else timedelta.min


def _one_of(options: tuple[Any, ...]) -> Read | None:
    """Return the reader of one of several types. Among records, or lists of them, the fields of an object decide."""
    rest = [option for option in options if option is not type(None)]
    readings = [reading(option) for option in rest]
    if not any(readings):
        return None
    if len(rest) == 1:
        only = readings[0]
        assert only is not None
        return lambda raw: None if raw is None else only(raw)
    classes = [one for option in rest for one in (option, *get_args(option)) if _has_fields(one)]
    by_fields = {frozenset(fields_of(one)): reading(one) for one in classes}

    def read(raw: Any) -> Any:
        if isinstance(raw, list):
            return [read(one) for one in raw]
        known = by_fields.get(frozenset(raw)) if isinstance(raw, dict) else None
        return raw if known is None else known(raw)

    return read


def _many(origin: type, args: tuple[Any, ...]) -> Read | None:
    if origin is tuple and (len(args) != 2 or args[1] is not ...):
        each = [reading(arg) for arg in args]
        return lambda raw: tuple(read(item) if read else item for read, item in zip(each, raw, strict=True))
    item = reading(args[0]) if args else None
    if item is None:
        return None if origin is list else origin
    if origin is list:
        return lambda raw: [item(one) for one in raw]
    return lambda raw: origin(item(one) for one in raw)


def _by_key(item: Any) -> Read | None:
    read = reading(item)
    return None if read is None else lambda raw: {key: read(value) for key, value in raw.items()}


def _has_fields(cls: Any) -> bool:
    return isinstance(cls, type) and (issubclass(cls, Value) or is_dataclass(cls))


@cache
def fields_of(cls: Any) -> dict[str, Any]:
    """Return the types of a record's fields, by name."""
    hints = get_type_hints(cls)
    if issubclass(cls, Value):
        return {name: hints[name] for name in cls.model_fields}
    if is_dataclass(cls):
        return {field.name: hints[field.name] for field in fields(cls)}
    return hints


def _of_class(cls: Any) -> Read | None:
    if issubclass(cls, Enum):
        return lambda raw: cls(raw)
    if issubclass(cls, Value):
        return _of_model(cls)
    if is_dataclass(cls):
        return _of_dataclass(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        each = [reading(hint) for hint in get_type_hints(cls).values()]
        return lambda raw: cls(*(read(item) if read else item for read, item in zip(each, raw, strict=True)))
    raise TypeError(f"{cls} cannot be read from JSON")


def _of_model(cls: type[Value]) -> Read:
    plan: list[tuple[str, Read]] | None = None

    def read(raw: dict[str, Any]) -> Any:
        nonlocal plan
        if plan is None:
            plan = [(name, found) for name, hint in fields_of(cls).items() if (found := reading(hint))]
        for name, of in plan:
            if (value := raw[name]) is not None:
                raw[name] = of(value)
        return cls.made(raw)

    return read


def _of_dataclass(cls: Any) -> Read:
    def read(raw: dict[str, Any]) -> Any:
        hints = fields_of(cls)
        return cls(
            **{name: of(value) if (of := reading(hints[name])) else value for name, value in raw.items()}
        )

    return read


# ---- anything, tagged -------------------------------------------------------------------------


class _Odd:
    """Marks a value that JSON would silently change, so that it is tagged."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


_SAFE = frozenset({"STRING", "BOOL", "INT64", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8", "TIMESTAMP", "DATE", "TIMESTAMP_TZ"})  # fmt: skip
_TAGGED = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS


def tagged(value: Any, *, safe: bool = False) -> bytes:
    """Encode any value of built-in types for `untagged`: `{"tag": …, "value": …}`, with tag null if none was needed.

    Raise TypeError for other types. `safe`: JSON changes nothing in the value silently.
    """
    tag, used = "~" + os.urandom(6).hex(), False

    def named(one: Any) -> Any:
        nonlocal used
        used = True
        return {tag: _word(one.value if isinstance(one, _Odd) else one)}

    raw = orjson.dumps(value if safe else _set_apart(value), default=named, option=_TAGGED)
    head = orjson.dumps(tag) if used else b"null"
    return b'{"tag":' + head + b',"value":' + raw + b"}"


def _set_apart(value: Any) -> Any:
    if value is None or value is True or value is False or type(value) is str:
        return value
    if isinstance(value, Entity):
        return value
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: _set_apart(item) for key, item in value.items()}
        return _Odd(value)
    if type(value) is list:
        return [_set_apart(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else _Odd(value)
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else _Odd(value)
    if isinstance(value, UUID | tuple):
        return _Odd(value)
    return value


def _word(value: Any) -> list[Any]:
    if isinstance(value, Entity):
        return ["entity", _set_apart(dict(value)), value.at, value.source, value.target]
    if isinstance(value, dict):
        return ["dict", [[_set_apart(key), _set_apart(item)] for key, item in value.items()]]
    if isinstance(value, tuple):
        return ["tuple", [_set_apart(item) for item in value]]
    if isinstance(value, datetime | date | time):
        return [type(value).__name__, value.isoformat()]
    if isinstance(value, timedelta):
        return ["timedelta", value.days, value.seconds, value.microseconds]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, UUID | Decimal | float | int):
        return [type(value).__name__, str(value)]
    if isinstance(value, AbstractSet):
        return ["set", [_set_apart(item) for item in sorted(value, key=str)]]
    raise TypeError(f"{type(value).__name__} {value!r} cannot be sent")


def _entity(properties: dict[str, Any], *places: Any) -> Entity:
    made = Entity(properties)
    at, made.source, made.target = (None if place is None else (place[0], place[1]) for place in places)
    assert at is not None
    made.at = at
    return made


_WORDS: dict[str, Callable[..., Any]] = {
    "entity": _entity, "tuple": tuple, "datetime": datetime.fromisoformat, "date": date.fromisoformat, "time": time.fromisoformat,
    "timedelta": timedelta, "bytes": base64.b64decode, "UUID": UUID, "Decimal": Decimal, "float": float, "int": int, "set": set, "dict": dict,
}  # fmt: skip


def untagged(message: Mapping[str, Any]) -> Any:
    """Return the value that `tagged` encoded, after its JSON was parsed."""
    tag, value = message["tag"], message["value"]
    return value if tag is None else _untag(value, tag)


def _untag(value: Any, tag: str) -> Any:
    if type(value) is dict:
        if len(value) == 1 and tag in value:
            word, *rest = value[tag]
            return _WORDS[word](*(_untag(item, tag) for item in rest))
        return {key: _untag(item, tag) for key, item in value.items()}
    if type(value) is list:
        return [_untag(item, tag) for item in value]
    return value


# ---- answers with a form of their own -----------------------------------------------------------


def result_out(result: Result) -> bytes:
    """Encode a Result with its rows, types and warnings."""
    if result._tuples is None:
        head: dict[str, Any] = {
            "columns": result.columns,
            "warnings": result.warnings,
            "arrow": base64.b64encode(arrow_out(result.to_arrow())).decode(),
        }
        return tagged(head, safe=True)
    safe = [kind in _SAFE for kind in result._types]
    rows: list[list[Any]] = [
        [item if calm else _set_apart(item) for calm, item in zip(safe, row, strict=True)]
        for row in result._tuples
    ]
    head = {"columns": result.columns, "warnings": result.warnings, "types": result._types, "rows": rows}
    return tagged(head, safe=True)


def result_in(data: bytes) -> Result:
    """Return the Result that `result_out` encoded."""
    head = untagged(orjson.loads(data))
    if "arrow" in head:
        return Result.of_arrow(arrow_in(base64.b64decode(head["arrow"])), head["warnings"])
    return Result(head["columns"], head["rows"], types=head["types"], warnings=head["warnings"])


def arrow_out(table: Any) -> bytes:
    """Encode an Arrow table as an IPC stream."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def arrow_in(data: Any) -> Any:
    """Return the Arrow table of an IPC stream."""
    import pyarrow

    with pyarrow.ipc.open_stream(data) as reader:
        return reader.read_all()


def graph_out(graph: Any) -> bytes:
    """Encode a networkx MultiDiGraph, keeping the order of its nodes and edges."""
    nodes = [[name, attributes] for name, attributes in graph.nodes(data=True)]
    edges = [list(edge) for edge in graph.edges(keys=True, data=True)]
    return tagged({"nodes": nodes, "edges": edges})


def graph_in(data: bytes) -> Any:
    """Return the networkx MultiDiGraph that `graph_out` encoded."""
    import networkx

    plain = untagged(orjson.loads(data))
    graph: Any = networkx.MultiDiGraph()
    for name, attributes in plain["nodes"]:
        graph.add_node(name, **attributes)
    for source, target, key, attributes in plain["edges"]:
        graph.add_edge(source, target, key=key, **attributes)
    return graph


def traces_out(traces: Any) -> bytes:
    """Encode a TracesData as protobuf."""
    return traces.SerializeToString()  # type: ignore[no-any-return]


def traces_in(data: bytes) -> Any:
    """Decode a TracesData from protobuf."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    return TracesData.FromString(data)


def vocabulary_out(vocabulary: Vocabulary) -> bytes:
    """Encode the kinds that a store has defined itself."""
    custom = [kind for kind in vocabulary.kinds.values() if kind.group == "custom"]
    names = ("name", "inverse", "symmetric", "causal", "acyclic", "rests")
    return orjson.dumps([{name: getattr(kind, name) for name in names} for kind in custom], default=sorted)


def vocabulary_in(data: bytes) -> Vocabulary:
    """Return the vocabulary with the kinds that `vocabulary_out` encoded."""
    return Vocabulary(orjson.loads(data))
