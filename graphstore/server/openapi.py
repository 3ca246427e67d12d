"""The OpenAPI document of a server, made from the registry of calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import graphstore
from graphstore.remote.calls import Call

_APART = {
    "valid": "As it was in the world then. Default: now.",
    "tx": "As the store knew it then. Default: now.",
    "as_of": "The name of a snapshot: both at once.",
    "branch": "On this branch. Default: the trunk.",
    "transaction": "Within this transaction.",
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "message": {"type": "string"},
        "outcome": {
            "enum": ["kept", "not kept", "unknown"],
            "description": "Of an EngineError of a write. Unknown: ask `changes` for its tx.",
        },
        "tx": {"type": "string", "format": "date-time"},
    },
    "required": ["error", "message"],
}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "It is in the store's folder: `token`, `token-read`.",
}
_STATUS = {
    400: "a Cypher text that is refused or does not run",
    401: "no token, or one that is not known",
    403: "not for this token, host or origin",
    404: "nothing by that id, or nothing there at that coordinate",
    405: "not by this method",
    409: "right in itself, but it contradicts what the store holds",
    413: "more than the server takes",
    422: "the input itself is wrong",
    423: "another process writes the store",
    429: "more than this token may ask at once",
    503: "too much is waiting, the disk refuses, or the writer cannot be followed",
    504: "it took too long",
}
_REFUSALS = {
    str(status): {"description": meaning, "content": {"application/json": {"schema": _ERROR}}}
    for status, meaning in _STATUS.items()
}


def described(calls: Mapping[str, Call], path_of: Callable[[Call], str]) -> dict[str, Any]:
    """The OpenAPI document of the calls, a path for each."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "graphstore",
            "description": graphstore.__doc__ or "",
            "version": graphstore.__version__,
        },
        "paths": {
            path_of(call): {
                method: _operation(call, method)
                for method in (("post", "get") if call.scope == "read" else ("post",))
            }
            for call in calls.values()
        },
        "components": {"securitySchemes": {"token": _TOKEN}},
    }


def _operation(call: Call, method: str) -> dict[str, Any]:
    names = [*_APART, *(("author",) if call.scope == "write" else ())]
    parameters = [
        _in_query(name, {"type": "string", "description": ""}, _APART.get(name, "The author."), False)
        for name in names
    ]
    operation: dict[str, Any] = {
        "tags": [call.name.rpartition(".")[0] or call.on],
        "summary": _first_sentence(call.doc),
        "description": call.doc,
        "operationId": f"{method}_{call.name.replace('.', '_')}",
        "responses": {
            "200": {
                "description": f"`{call.returns}`, as JSON",
                "content": {"application/json": {"schema": {}}},
            }
        }
        | _REFUSALS,
        "parameters": parameters,
        "security": [{"token": []}],
    }
    if call.scope == "read" and call.files:
        operation["responses"]["200"]["content"] |= {"application/*": {"schema": {}}}
    if method == "get":
        parameters += [
            _in_query(name, _schema(call, name), "", name in call.needed) for name in call.parameters
        ]
        return operation
    body: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(call, name) for name in call.parameters},
        "additionalProperties": call.any is not None,
    }
    needed = [name for name in call.parameters if name in call.needed]
    if needed:
        body["required"] = needed
    operation["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": body}}}
    return operation


def _in_query(name: str, schema: dict[str, Any], words: str, needed: bool) -> dict[str, Any]:
    """A parameter of a query; what is no text, number or list of them stands there as JSON. There is no null: it is left out."""
    plain = _without_null(schema)
    found = {"name": name, "in": "query", "required": needed, "description": words or schema["description"]}
    if plain.get("type") == "object":
        return {**found, "content": {"application/json": {"schema": plain}}}
    return {**found, "schema": plain}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(types := schema.get("type"), list):
        return {**schema, "type": next(one for one in types if one != "null")}
    if "anyOf" in schema:
        return {**schema, "anyOf": [one for one in schema["anyOf"] if one != {"type": "null"}]}
    return schema


def _schema(call: Call, name: str) -> dict[str, Any]:
    """The schema of an argument. The description is its annotation."""
    annotation = str(call.parameters[name].annotation).replace("builtins.", "")
    found = {"description": f"`{annotation}`", **call.schemas[name]}
    if "TimeLike" in annotation:
        found["examples"] = ["2026-01-30", "2026-01-30T12:00:00Z"]
    return found


def _first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    return re.split(r"(?<=\.) ", " ".join(doc.partition("\n\n")[0].split()), maxsplit=1)[0]
