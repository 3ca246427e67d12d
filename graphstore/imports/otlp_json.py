"""Encodes OTLP messages as the JSON of OpenTelemetry: lower camel case, ids in hex, 64-bit numbers as text, enums as numbers.

Protobuf's own JSON differs: its ids are base64. Unknown fields are left out and reported.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from graphstore.errors import InvalidError
from graphstore.values.event_fields import SPAN_IDS
from graphstore.values.inputs import brief
from graphstore.values.models import Json

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*\Z")
_LONG = frozenset(
    getattr(FieldDescriptor, f"TYPE_{name}64") for name in ("INT", "UINT", "FIXED", "SFIXED", "SINT")
)
_REAL = frozenset({FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT})
_WHOLE = re.compile(r"-?[0-9]{1,20}\Z")
_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(message: Message) -> Json:
    """Return a message as a JSON object: the fields that are set, in the order of their numbers."""
    found: Json = {}
    for field, value in message.ListFields():
        if _repeated(field):
            found[field.json_name] = [_written(field, each) for each in value]
        else:
            found[field.json_name] = _written(field, value)
    return found


def _written(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return to_json(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return value.hex() if field.name in SPAN_IDS else base64.b64encode(value).decode()
    if field.type in _LONG:
        return str(value)
    if field.type in _REAL and not math.isfinite(value):
        return next(
            name for name, real in _NAMED.items() if real == value or (value != value and real != real)
        )
    return value


def from_json(found: Any, message: Message, where: str, unknown: Callable[[str], None]) -> None:
    """Fill a message from a JSON object. `unknown` is called with the place of each unknown name.

    Raise InvalidError that names the place of a value which does not fit its field.
    """
    if not isinstance(found, dict):
        raise InvalidError(f"{where} is {brief(found)}, no object")
    message.SetInParent()  # mark it as set, even if it is empty
    fields = {field.json_name: field for field in message.DESCRIPTOR.fields}
    for name, value in found.items():
        field = fields.get(name)
        place = f"{where}.{name}"
        if field is None:
            unknown(place)
        elif value is not None:
            _fill(message, field, value, place, unknown)


def _fill(
    message: Message, field: FieldDescriptor, value: Any, place: str, unknown: Callable[[str], None]
) -> None:
    try:
        if _repeated(field):
            if not isinstance(value, list):
                raise InvalidError(f"{place} is {brief(value)}, no list")
            several = getattr(message, field.name)
            for number, each in enumerate(value):
                if field.message_type is not None:
                    from_json(each, several.add(), f"{place}[{number}]", unknown)
                else:
                    several.append(_read(field, each, f"{place}[{number}]"))
        elif field.message_type is not None:
            from_json(value, getattr(message, field.name), place, unknown)
        else:
            setattr(message, field.name, _read(field, value, place))
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidError):
            raise
        raise InvalidError(f"{place} is {brief(value)}: {error}") from None


def _read(field: FieldDescriptor, value: Any, place: str) -> Any:
    kind = field.type
    if kind == FieldDescriptor.TYPE_BYTES and isinstance(value, str):
        if field.name not in SPAN_IDS:
            return _bytes(value, place)
        if not _HEX.match(value):
            raise InvalidError(f"{place} is {brief(value)}, no hex: ids are hex in OTLP/JSON, not base64")
        return bytes.fromhex(value)
    if field.enum_type is not None and isinstance(value, str):
        known = field.enum_type.values_by_name
        if value not in known:
            raise InvalidError(f"{place}: {InvalidError.choice('value', value, known)}")
        return known[value].number
    if kind in _REAL:
        if isinstance(value, str) and value in _NAMED:
            return _NAMED[value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    elif kind == FieldDescriptor.TYPE_BOOL or kind == FieldDescriptor.TYPE_STRING:
        if isinstance(value, bool if kind == FieldDescriptor.TYPE_BOOL else str):
            return value
    elif kind != FieldDescriptor.TYPE_BYTES:
        if isinstance(value, str) and _WHOLE.match(value):
            return int(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value):
            return int(value)
    raise InvalidError(f"{place} is {brief(value)}, which does not fit the field")


def _bytes(value: str, place: str) -> bytes:
    plain = value.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        raise InvalidError(f"{place} is {brief(value)}, no base64") from None


def unknown_fields(message: Message, where: str) -> Iterator[str]:
    """Yield the places of fields that this version of the protocol does not know, in a message read from bytes."""
    for field in UnknownFieldSet(message):
        yield f"{where}: field {field.field_number}"
    for inner, value in message.ListFields():
        if inner.message_type is not None:
            several = _repeated(inner)
            for number, each in enumerate(value if several else (value,)):
                yield from unknown_fields(
                    each, f"{where}.{inner.json_name}" + (f"[{number}]" if several else "")
                )


def _repeated(field: FieldDescriptor) -> bool:
    several: bool | None = getattr(field, "is_repeated", None)  # older runtimes have a label instead
    return field.label == FieldDescriptor.LABEL_REPEATED if several is None else several
