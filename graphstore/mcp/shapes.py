"""The shapes of what a tool takes and gives, as a client lists them: flat and short, since every agent reads all of them before it asks anything.

What may be left out is not required, and null is taken for left out.
"""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

from mcp.server.mcpserver.tools.base import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata

from graphstore.errors import InvalidError

__all__ = ["shaped"]

_NULL = {"type": "null"}


def shaped(tool: Tool) -> Tool:
    """A tool whose shapes are plain, and which takes what agents give for a text or a list of them."""
    asked = tool.fn_metadata
    given = None if asked.output_schema is None else outlined(plain(asked.output_schema))
    arguments = _Arguments(arg_model=asked.arg_model, output_schema=given, output_model=asked.output_model)
    return tool.model_copy(
        update={"parameters": named(inlined(plain(tool.parameters))), "fn_metadata": arguments}
    )


def plain(schema: Any) -> Any:
    """A JSON schema without titles, without null as a choice or as a default."""
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("default", ...) is None:
        schema = {name: value for name, value in schema.items() if name != "default"}
    choices = [each for each in schema.get("anyOf", ()) if each != _NULL]
    if len(choices) == 1:
        schema = {**choices[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
    shown: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            shown[name] = {each: plain(shape) for each, shape in value.items()}
        elif name == "description":
            shown[name] = " ".join(value.split())
        elif name not in ("title", "additionalProperties") or (name == "title" and isinstance(value, dict)):
            shown[name] = plain(value)
    return shown


_CHECKED = ("default", "minimum", "maximum", "exclusiveMinimum", "minLength", "minItems", "format")
"""What an argument is checked for when it is given: a refusal says it then."""


_RARE = "rare"
RARE: Any = {_RARE: True}
"""Marks an argument that is taken and not listed: few calls need it, and every agent would read it. So a field of an answer that is for its text alone."""


def named(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of the arguments that are listed, without what is checked when they are given."""
    return {
        **schema,
        "properties": {
            name: {key: value for key, value in shape.items() if key not in _CHECKED}
            for name, shape in schema.get("properties", {}).items()
            if _RARE not in shape
        },
    }


def outlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an answer with the types of its fields, and the names of theirs, once each: an answer shows the rest."""
    known, named = schema.get("$defs", {}), dict[str, str]()

    def of(shape: dict[str, Any], field: str) -> dict[str, Any]:
        if "$ref" in shape:
            inner = shape["$ref"].rpartition("/")[2]
            before = named.setdefault(inner, field)
            names = ", ".join(known[inner].get("properties", {})) if before == field else f"as {before}"
            return {"type": "object", "description": names}
        kept = {"type": shape["type"]} if "type" in shape else {}
        if isinstance(items := shape.get("items"), dict):
            kept["items"] = of(items, field)
        return kept

    fields = {
        name: of(shape, name) for name, shape in schema.get("properties", {}).items() if _RARE not in shape
    }
    return {"type": "object", "properties": fields}


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that refers to nothing: some clients know no references in what a tool takes."""
    known = schema.get("$defs", {})

    def put(part: Any) -> Any:
        if isinstance(part, list):
            return [put(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return put(
                {**known[part["$ref"].rpartition("/")[2]], **{k: v for k, v in part.items() if k != "$ref"}}
            )
        return {name: put(each) for name, each in part.items() if name != "$defs"}

    return put(schema)  # type: ignore[no-any-return]


class _Arguments(FuncMetadata):
    """What a tool is called with. A text is never read as JSON, though it looks like it; one text is taken for a list of one; true is no number."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """The arguments as they are meant; those that are JSON in a text are read. Raises InvalidError for true and false as a number."""
        read = super().pre_parse_json(data)
        for name, field in self.arg_model.model_fields.items():
            given, kinds = data.get(name), _kinds(field.annotation)
            if isinstance(given, bool) and bool not in kinds and (int in kinds or float in kinds):
                raise InvalidError(f"{name} {given!r} is no number. Give a number.")
            if not isinstance(given, str):
                continue
            if str in kinds:
                read[name] = given
            elif list[str] in kinds and isinstance(read[name], str):
                read[name] = [given]
        return read


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
