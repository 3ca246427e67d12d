"""The calls as OpenAPI shows them: a route each, with its parameters and its words. The answers are given elsewhere."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Response

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
    "description": "It lies in the store's folder: `token`, `token-read`.",
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


def described(app: FastAPI, calls: Mapping[str, Call], path_of: Callable[[Call], str]) -> dict[str, Any]:
    """The OpenAPI of an app with a route for each call. Made when it is first asked for: a server that starts has no need of it."""
    if app.openapi_schema is None:
        full = FastAPI(title=app.title, version=app.version, description=app.description)
        _describe(full, calls, path_of)
        schema = full.openapi()
        schema["components"] = schema.get("components", {}) | {"securitySchemes": {"token": _TOKEN}}
        app.openapi_schema = schema
    return app.openapi_schema


def _describe(app: FastAPI, calls: Mapping[str, Call], path_of: Callable[[Call], str]) -> None:
    for call in calls.values():
        for method in ("POST", "GET") if call.scope == "read" else ("POST",):
            app.add_api_route(
                path_of(call),
                _elsewhere,
                methods=[method],
                operation_id=f"{method.lower()}_{call.name.replace('.', '_')}",
                summary=_first_sentence(call.doc),
                description=call.doc,
                tags=[call.name.rpartition(".")[0] or call.on],
                response_model=None,
                responses={
                    200: {"description": f"`{call.returns}`, as JSON"},
                    **{
                        status: {"description": said, "content": {"application/json": {"schema": _ERROR}}}
                        for status, said in _STATUS.items()
                    },
                },
                openapi_extra=_extra(call, method),
            )


async def _elsewhere() -> Response:
    raise AssertionError("answered before the router is asked")


def _extra(call: Call, method: str) -> dict[str, Any]:
    names = [*_APART, *(("author",) if call.scope == "write" else ())]
    said = [_in_query(name, {"type": "string"}, _APART.get(name, "Who says so."), False) for name in names]
    if method == "GET":
        said += [
            _in_query(name, _schema(each), "", _is_needed(each)) for name, each in call.parameters.items()
        ]
        return {"parameters": said, "security": [{"token": []}]}
    body = {
        "type": "object",
        "properties": {name: _schema(each) for name, each in call.parameters.items()},
        "required": [name for name, each in call.parameters.items() if _is_needed(each)],
        "additionalProperties": False,
    }
    if not body["required"]:
        del body["required"]
    content = {"required": _is_wanted(call), "content": {"application/json": {"schema": body}}}
    return {"parameters": said, "requestBody": content, "security": [{"token": []}]}


def _in_query(name: str, schema: dict[str, Any], words: str, needed: bool) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": needed, "schema": schema, "description": words}


def _is_wanted(call: Call) -> bool:
    return any(_is_needed(each) for each in call.parameters.values())


def _is_needed(each: inspect.Parameter) -> bool:
    return each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)


_WORDS = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}


def _schema(each: inspect.Parameter) -> dict[str, Any]:
    """The schema of an argument, as far as its annotation says it simply; the annotation itself says the rest."""
    said = str(each.annotation).replace("builtins.", "")
    found: dict[str, Any] = {"description": f"`{said}`"}
    plain = said.removesuffix(" | None")
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
    """What a call is for; the rest of its docstring follows beside it."""
    return re.split(r"(?<=\.) ", " ".join(doc.partition("\n\n")[0].split()), maxsplit=1)[0]
