"""Convert the engine's types to Arrow types by their names, so that a page without rows has the same columns as one with rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

_INSTANT = pa.timestamp("us", tz="UTC")
_FLAT = {
    "STRING": pa.string(), "UUID": pa.string(), "BLOB": pa.binary(), "BOOL": pa.bool_(), "DOUBLE": pa.float64(), "FLOAT": pa.float32(), "DATE": pa.date32(),
    "TIMESTAMP": _INSTANT, "TIMESTAMP_MS": _INSTANT, "TIMESTAMP_SEC": _INSTANT, "TIMESTAMP_TZ": _INSTANT, "TIMESTAMP_NS": _INSTANT,
    "INTERVAL": pa.duration("us"), "INT128": pa.int64(), "INT64": pa.int64(), "SERIAL": pa.int64(), "INT32": pa.int32(), "INT16": pa.int16(),
    "INT8": pa.int8(), "UINT64": pa.uint64(), "UINT32": pa.uint32(), "UINT16": pa.uint16(), "UINT8": pa.uint8(),
}  # fmt: skip
_LIST = re.compile(r"\[\d*\]\Z")


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of an engine's type; None if the values must decide."""
    kind = kind.strip()
    if kind in _FLAT:
        return _FLAT[kind]
    if ends := _LIST.search(kind):
        inner = arrow_type(kind[: ends.start()])
        return None if inner is None else pa.list_(inner)
    name, bracket, rest = kind.partition("(")
    parts = list(_parts(rest[:-1])) if bracket and rest.endswith(")") else []
    if name == "DECIMAL" and len(parts) == 2:
        return pa.decimal128(int(parts[0]), int(parts[1]))
    if name == "MAP" and len(parts) == 2:
        key, value = map(arrow_type, parts)
        return None if key is None or value is None else pa.map_(key, value)
    if name == "STRUCT" and parts:
        fields = [_field(part) for part in parts]
        return None if any(type_ is None for _, type_ in fields) else pa.struct(fields)
    return None


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between commas that are outside of brackets and quotes."""
    depth, quoted, begin = 0, False, 0
    for at, letter in enumerate(text):
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in "([") - (letter in ")]")
        if letter == "," and not depth and not quoted:
            yield text[begin:at].strip()
            begin = at + 1
    yield text[begin:].strip()


def _field(text: str) -> tuple[str, Any]:
    """Return the name and type of a field. A type has no space outside of brackets."""
    if text.startswith("`"):
        name, _, kind = text[1:].partition("`")
        return name, arrow_type(kind)
    depth, at = 0, len(text) - 1
    while at > 0 and (depth or text[at] != " "):
        depth += (text[at] in ")]") - (text[at] in "([")
        at -= 1
    return text[:at], arrow_type(text[at:])


_NAMES = {
    pa.timestamp("us"): "TIMESTAMP",
    **{kind: name for name, kind in reversed(_FLAT.items()) if name not in ("UUID", "SERIAL", "INT128")},
}
_SHOWN = {"_LABEL": "_label", "_NODES": "_nodes", "_RELS": "_rels"}
_PLACES = frozenset({"_ID", "_SRC", "_DST"})


def spelled_out(kind: pa.DataType) -> str | None:
    """Return the type name of nodes, relationships and paths as in answers, from the engine's column type; None if it has no name."""
    if pa.types.is_list(kind):
        inner = spelled_out(kind.value_type)
        return None if inner is None else f"{inner}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        key, item = spelled_out(kind.key_type), spelled_out(kind.item_type)
        return None if key is None or item is None else f"MAP({key}, {item})"
    if not pa.types.is_struct(kind):
        return _NAMES.get(kind)
    fields = [kind.field(at) for at in range(kind.num_fields)]
    is_thing = any(field.name in _SHOWN for field in fields)
    named = [
        (_SHOWN.get(field.name, field.name) if is_thing else field.name, spelled_out(field.type))
        for field in fields
        if not (is_thing and field.name in _PLACES)
    ]
    if any(inner is None or "`" in name for name, inner in named):
        return None
    return f"STRUCT({', '.join(f'`{name}` {inner}' for name, inner in named)})"


def fitted(value: Any, kind: pa.DataType) -> Any:
    """Convert a value for an Arrow type: maps to pairs, ids to text, whole numbers of a decimal to decimals."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(fitted(key, kind.key_type), fitted(item, kind.item_type)) for key, item in value.items()]
    if pa.types.is_struct(kind):
        return {
            kind.field(at).name: fitted(value.get(kind.field(at).name), kind.field(at).type)
            for at in range(kind.num_fields)
        }
    if pa.types.is_list(kind):
        return [fitted(item, kind.value_type) for item in value]
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_string(kind) and not isinstance(value, str):
        return str(value)
    return value


def is_nested(kind: pa.DataType) -> bool:
    """Return True if values of a type must be converted one by one."""
    return bool(pa.types.is_nested(kind) or pa.types.is_decimal(kind))
