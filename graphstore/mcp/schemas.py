"""Derives the JSON schemas of a tool's arguments and answers from its annotations, and reads the arguments of a call.

The schemas are flat and short: every agent reads all of them before its first call. Optional arguments accept null.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from graphstore.errors import InvalidError

Fields = Mapping[str, FieldInfo]
Shape = dict[str, Any]

_RARE = "rare"
RARE: Any = {_RARE: True}
"""Marks an argument that is accepted but not listed, since few calls need it; and a field of an answer that only its text uses."""
_TYPES = {str: "string", datetime: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}
_LISTS = (list, tuple, Sequence)


# ---------------------------------------------------------------- as they are listed


def input_schema(fields: Fields, given: Collection[str] = ()) -> Shape:
    """Return the JSON schema of the listed arguments. It leaves out constraints: an error states these when a call breaks one.

    `given`: the arguments that the connection has a default for: they are not required.
    """
    return _object({name: field for name, field in fields.items() if _RARE not in _extra(field)}, given)


def _extra(field: FieldInfo) -> Shape:
    more = field.json_schema_extra
    return dict(more) if isinstance(more, dict) else {}


def _object(fields: Fields, given: Collection[str] = ()) -> Shape:
    properties = {}
    for name, field in fields.items():
        shown = {} if field.description is None else {"description": " ".join(field.description.split())}
        properties[field.alias or name] = {**shown, **_shape(field.annotation, _whole), **_extra(field)}
    required = [
        field.alias or name for name, field in fields.items() if field.is_required() and name not in given
    ]
    schema: Shape = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _whole(model: type[BaseModel]) -> Shape:
    return {"description": model.__doc__, **_object(model.model_fields)}


def output_schema(answer: type[BaseModel]) -> Shape:
    """Return a schema of an answer with the types of its fields, and the names of theirs, once each: an answer shows the rest."""
    named = dict[type[BaseModel], str]()
    properties = {}
    for name, field in answer.model_fields.items():
        if _RARE not in _extra(field):
            shape = _shape(field.annotation, partial(_names, named, name))
            properties[name] = {key: value for key, value in shape.items() if key != "enum"}
    return {"type": "object", "properties": properties}


def _names(named: dict[type[BaseModel], str], field: str, model: type[BaseModel]) -> Shape:
    """Return the names of the fields of a record; where a field before has such records, the name of that."""
    first = named.setdefault(model, field)
    names = (each.alias or own for own, each in model.model_fields.items())
    return {"type": "object", "description": ", ".join(names) if first == field else f"as {first}"}


def _shape(annotation: Any, of_model: Callable[[type[BaseModel]], Shape]) -> Shape:
    """Return the schema of a type. `of_model`: that of a record in it."""
    choices = [each for each in _choices(annotation) if each is not type(None)]
    if len(choices) > 1:
        return {}
    kind = choices[0]
    origin = get_origin(kind) or kind
    if origin is Annotated:
        return _shape(get_args(kind)[0], of_model)
    if origin is Literal:
        return {"enum": list(get_args(kind)), "type": "string"}
    if origin in _LISTS:
        return {"type": "array", "items": _shape(get_args(kind)[0], of_model)}
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        return of_model(origin)
    return {"type": _TYPES[origin]} if origin in _TYPES else {}


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


# ---------------------------------------------------------------- as they are read


def read(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as a model of them says, with the defaults of those that are left out.

    A text is never read as JSON where a text is wanted, though it looks like it; else it is, since some clients send lists and objects as texts. One text
    is taken for a list of one; true is no number. Raises InvalidError and ValidationError.
    """
    meant = {
        name: _meant(name, given[name], field) for name, field in model.model_fields.items() if name in given
    }
    checked = model.model_validate(meant)
    return {name: getattr(checked, name) for name in model.model_fields}


def _meant(name: str, value: Any, field: FieldInfo) -> Any:
    kinds = _choices(field.annotation)
    if isinstance(value, bool) and bool not in kinds and (int in kinds or float in kinds):
        raise InvalidError(f"{name} {value!r} is no number. Give a number.")
    if not isinstance(value, str) or str in kinds:
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    if not isinstance(parsed, str | int | float):
        return parsed
    return [value] if list[str] in kinds else value
