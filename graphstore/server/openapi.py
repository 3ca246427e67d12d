"""The OpenAPI document of a server, made from the registry of calls."""

from __future__ import annotations

import inspect
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
    "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
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
    409: "right in itself, but it contradicts what the store holds",
    422: "the input itself is wrong",
    503: "too much is waiting",
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
        _in_query(name, {"type": "string"}, _APART.get(name, "The author."), False) for name in names
    ]
    operation = {
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
    if method == "get":
        parameters += [
            _in_query(name, _schema(each), "", _is_needed(each)) for name, each in call.parameters.items()
        ]
        return operation
    body: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(each) for name, each in call.parameters.items()},
        "additionalProperties": False,
    }
    needed = [name for name, each in call.parameters.items() if _is_needed(each)]
    if needed:
        body["required"] = needed
    operation["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": body}}}
    return operation


def _in_query(name: str, schema: dict[str, Any], words: str, needed: bool) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": needed, "schema": schema, "description": words}


def _is_needed(each: inspect.Parameter) -> bool:
    return each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)


_WORDS = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}


def _schema(each: inspect.Parameter) -> dict[str, Any]:
    """The schema of an argument, as far as its annotation is a simple one. The description is the annotation itself."""
    annotation = str(each.annotation).replace("builtins.", "")
    found: dict[str, Any] = {"description": f"`{annotation}`"}
    plain = annotation.removesuffix(" | None")
    if each.kind is each.VAR_POSITIONAL:
        found |= {"type": "array", "items": {"type": "string"}}
    elif each.kind is each.VAR_KEYWORD or plain.startswith(("Mapping", "dict")):
        found["type"] = "object"
    elif plain == "TimeLike":
        found |= {"type": "string", "examples": ["2026-01-30", "2026-01-30T12:00:00Z"]}
    elif plain.startswith("Literal["):
        found["enum"] = [word.strip("'\" ") for word in plain[8:-1].split(",")]
    elif plain in _WORDS:
        found["type"] = _WORDS[plain]
    if each.default not in (each.empty, None, ()) and isinstance(each.default, (str, int, float)):
        found["default"] = each.default
    return found


def _first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    return re.split(r"(?<=\.) ", " ".join(doc.partition("\n\n")[0].split()), maxsplit=1)[0]
