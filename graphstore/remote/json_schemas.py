"""Describes the types of arguments and answers as JSON Schema, by pydantic. Answers are described as `codec.plain` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

Schema = Mapping[str, Any]

OBJECT: Schema = {"type": "object", "additionalProperties": {}}
TEXT: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
_IN_COMPONENTS = "#/components/schemas/{model}"


def record(
    properties: Mapping[str, Schema], needed: Iterable[str] = (), words: str = "", *, closed: bool = False
) -> dict[str, Any]:
    """Return the schema of an object. `needed`: the required properties; `closed`: there are no others."""
    found: dict[str, Any] = {"type": "object"}
    if words:
        found["description"] = words
    found["properties"] = properties
    if needed := list(needed):
        found["required"] = needed
    return found | {"additionalProperties": False} if closed else found


def one_of(each: Iterable[Schema]) -> dict[str, Any]:
    """Return the schema of a value that fits at least one of several schemas."""
    found: list[Schema] = []
    for one in each:
        found += [part for part in one.get("anyOf", [one]) if part not in found]
    if {} in found:
        return {}
    if len(found) == 2 and found[1] == NULL and isinstance(found[0].get("type"), str):
        return {**found[0], "type": [found[0]["type"], "null"]}
    return dict(found[0]) if len(found) == 1 else {"anyOf": found}


class PlainJsonSchema(GenerateJsonSchema):
    """Describes types as the store writes them, and more briefly than pydantic: without titles."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a record. A later release may answer with more fields."""
        found = super().model_schema(schema)
        if self.mode == "serialization":
            found.pop("additionalProperties", None)
        return found

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def get_union_of_schemas(self, schemas: list[JsonSchemaValue]) -> JsonSchemaValue:
        return one_of(schemas)

    def get_flattened_anyof(self, schemas: list[JsonSchemaValue]) -> JsonSchemaValue:
        return one_of(schemas)

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", "enum": list(schema["expected"])}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "number", "description": "Seconds."}

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", "contentEncoding": "base64"}

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        return dict(TEXT)

    def tuple_schema(self, schema: Any) -> JsonSchemaValue:
        if "variadic_item_index" in schema:
            return super().tuple_schema(schema)
        return self._in_places(schema["items_schema"])

    def call_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a named tuple."""
        return self._in_places([one["schema"] for one in schema["arguments_schema"]["arguments_schema"]])

    def _in_places(self, each: Sequence[Any]) -> JsonSchemaValue:
        """Describe a list with its own schema for each position, in keywords that older clients know too."""
        items = one_of(map(self.generate_inner, each))
        return {"type": "array", "items": items, "minItems": len(each), "maxItems": len(each)}


Described = tuple[Any, JsonSchemaMode, TypeAdapter[Any]]
"""A type to describe: its key, the direction of its values (`validation`: in, `serialization`: out), and its adapter."""


def described(types: Iterable[Described]) -> tuple[dict[Any, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the schemas of types by key, and the records they refer to by name, as components of an OpenAPI document."""
    inputs = [(key, mode, adapter.core_schema) for key, mode, adapter in types]
    generator = PlainJsonSchema(by_alias=True, ref_template=_IN_COMPONENTS)
    found, records = generator.generate_definitions(inputs)
    modes = {(key, mode): key for key, mode, _ in inputs}
    return {modes[each]: schema for each, schema in found.items()}, {
        name: _untitled(schema) for name, schema in records.items()
    }


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in schema.items() if name != "title"}
    if "description" in found:
        found["description"] = " ".join(found["description"].split())
    return found


def schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the schema of an argument."""
    return adapter.json_schema(schema_generator=PlainJsonSchema)


# ---- answers that are not records -------------------------------------------------------------

_TEXTS: Schema = {"type": "array", "items": TEXT}
_RECORDS: Schema = {"type": "array", "items": OBJECT}
_FLAG: Schema = {"type": "boolean"}
_KIND: dict[str, Schema] = {
    "name": TEXT,
    "group": TEXT,
    "inverse": {"type": ["string", "null"]},
    "symmetric": _FLAG,
    "causal": _FLAG,
    "acyclic": _FLAG,
}
NAMED: dict[str, Schema] = {
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
"""The schemas of answers that are not records of the store, by the names of their classes."""
