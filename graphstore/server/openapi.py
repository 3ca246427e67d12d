"""Makes the OpenAPI document of a server from the registry of calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import graphstore
from graphstore.remote import json_schemas
from graphstore.remote.calls import Call
from graphstore.remote.codec import ARROW
from graphstore.remote.json_schemas import NAMED, OBJECT, record
from graphstore.remote.json_schemas import TEXT as _TEXT

Schema = dict[str, Any]

_APART = {
    "valid": "As it was in the world then. Default: now.",
    "tx": "As the store knew it then. Default: now.",
    "as_of": "The name of a snapshot: both at once. Or a time: the valid time.",
    "without": "What had never been recorded, such as `author=ben` or `source=crawler`: the answer is counterfactual.",
    "branch": "On this branch. Default: the trunk.",
    "transaction": "Within this transaction.",
}
_OF_WRITES = ("branch", "author", "transaction")
_LESS = ("fields", "brief", "part")
_OF_READS = ("branch", "transaction", "seconds", *_LESS)
_AT_A_COORDINATE = (*_APART, "seconds", *_LESS)
_PARAMETERS: dict[str, Schema] = {
    **{name: {"name": name, "in": "query", "description": words, "schema": _TEXT} for name, words in _APART.items()},
    "author": {"name": "author", "in": "query", "description": "Who writes.", "schema": _TEXT},
    "fields": {"name": "fields", "in": "query", "description": "Of records with one of these fields only these, with commas.", "schema": _TEXT},
    "brief": {"name": "brief", "in": "query", "description": "So many characters of each text at most.", "schema": {"type": "integer", "minimum": 100}},
    "part": {"name": "part", "in": "query", "description": "Of a list so many at most; of -10 the last 10.", "schema": {"type": "integer"}},
    "seconds": {"name": "seconds", "in": "query", "description": "So long a query may run.", "schema": {"type": "number"}},
    "request": {
        "name": "Graphstore-Request", "in": "header", "schema": _TEXT,
        "description": "The id of this request. One that is sent again with the id it had is not done again: it has the answer that the first had.",
    },
    "if-match": {
        "name": "If-Match", "in": "header", "schema": _TEXT,
        "description": "The number of the version that is to be there now, in quotes; else nothing is written.",
    },
}  # fmt: skip
_INSTANT = {"type": "string", "format": "date-time"}
_OUTCOME = {
    "type": "string",
    "enum": ["kept", "not kept", "unknown"],
    "description": "Of an EngineError of a write. Unknown: ask `changes` for its tx.",
}
_CLASS = {"type": "string", "description": "The class of the error."}
_ERROR = record(
    {"error": _CLASS, "message": _TEXT, "outcome": _OUTCOME, "tx": _INSTANT},
    ["error", "message"],
    "Why a request was refused, and what to do.",
)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "It is in the store's folder: `token`, `token-read`; for `/metrics` alone, `token-metrics`.",
}
_STATUS = {
    400: "a Cypher text that is refused or does not run",
    401: "no token, or one that is not known",
    403: "not for this token, host or origin",
    404: "nothing by that id, or nothing there at that coordinate",
    405: "not by this method",
    409: "right in itself, but it contradicts what the store holds",
    406: "no kind of answer that the client accepts",
    413: "more than the server takes",
    415: "a body of a kind that is not read here",
    422: "the input itself is wrong",
    423: "another process writes the store",
    429: "more than this token may ask at once",
    503: "too much is waiting, the disk refuses, or the writer cannot be followed",
    504: "it took too long",
}
_JSON, _EVENTS = "application/json", "application/cloudevents-batch+json"
_REFUSALS = {
    "Refused": {
        "description": "Refused. " + "; ".join(f"{status}: {words}" for status, words in _STATUS.items()),
        "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
}
_REFUSED = {"default": {"$ref": "#/components/responses/Refused"}}
_PLAIN = frozenset({"str", "bool", "int", "float"})  # types that a schema states without a description
_OF_TABLES = frozenset({"Result", "pyarrow.Table"})
_BEGUN = record({"transaction": _TEXT, "tx": _INSTANT}, ["transaction", "tx"])
_HEALTH = record(dict.fromkeys(("status", "name", "version"), _TEXT), ["status", "name", "version"])
_LIST = {"type": "array"}
_ACTIVITY = record({"followers": _LIST, "connections": {"type": "integer"}, "doors": _LIST})
_RIGHTS = record({"rights": _TEXT}, ["rights"])
_MEDIA = {"description": "audio/* or image/*", "content": {"audio/*": {}, "image/*": {}}}


def described(calls: Mapping[str, Call], path_of: Callable[[Call], str]) -> Schema:
    """Return the OpenAPI document: a path for each call, and the other paths of the server."""
    schemas, records = json_schemas.described(_types(calls.values()))
    paths = {path_of(call): _of_call(call, schemas) for call in calls.values()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "graphstore",
            "description": graphstore.__doc__ or "",
            "version": graphstore.__version__,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": {**paths, **_others(), **_of_webhooks(paths["/events/observe_deploy"]["post"])},
        "components": {
            "schemas": {"Error": _ERROR, **NAMED, **records},
            "parameters": _PARAMETERS,
            "responses": _REFUSALS,
            "securitySchemes": {"token": _TOKEN},
        },
        "security": [{"token": []}],
    }


_ANSWER = ""  # stands for the answer among argument names
Schemas = Mapping[tuple[str, str], Schema]
"""The schemas of arguments and answers, by the names of the call and the argument."""


def _types(calls: Iterable[Call]) -> Iterator[json_schemas.Described]:
    """Yield the types of all arguments and answers."""
    for call in calls:
        for name, adapter in call.arguments.items():
            yield (call.name, name), "validation", adapter
        if not isinstance(call.answer, str):
            yield (call.name, _ANSWER), "serialization", call.answer


def _of_call(call: Call, schemas: Schemas) -> Schema:
    answer = _answer(call, schemas)
    post = _operation(call, "post", answer, schemas)
    if call.scope == "write":
        return {"post": post}
    get = _operation(call, "get", answer, schemas)
    of_both = [each for each in get["parameters"] if each in post["parameters"]]
    for operation in (get, post):
        operation["parameters"] = [each for each in operation["parameters"] if each not in of_both]
    summary = post.pop("summary")
    get.pop("summary")
    return {"summary": summary, "post": post, "get": get, "parameters": of_both}


def _answer(call: Call, schemas: Schemas) -> Schema:
    if isinstance(call.answer, str):
        schema: Schema = {"$ref": f"#/components/schemas/{call.answer}"}
        if call.returns.startswith("Iterator"):
            schema = {"type": "array", "items": schema}
    else:
        schema = schemas[call.name, _ANSWER]
    content: Schema = {_JSON: {"schema": schema}}
    if call.name == "cloud_events.cloud_events":
        content[_EVENTS] = content[_JSON]
    if call.returns in _OF_TABLES:
        content[ARROW] = {}
    if call.scope == "read" and call.files:  # the file itself, if no path was given
        content = {_JSON: {"schema": {}}, "application/*": {"schema": {}}}
    return {"description": f"`{call.returns}`, as JSON", "content": content}


def _operation(call: Call, method: str, answer: Schema, schemas: Schemas) -> Schema:
    names = _OF_WRITES if call.scope == "write" else _AT_A_COORDINATE if call.on == "view" else _OF_READS
    parameters = [_named(name) for name in names if method == "post" or name not in call.parameters]
    operation: Schema = {
        "tags": [call.name.rpartition(".")[0] or call.on],
        "summary": _first_sentence(call.doc),
        "operationId": f"{method}_{call.name.replace('.', '_')}",
        "responses": {"200": answer} | _REFUSED,
        "parameters": parameters,
    }
    if method == "get":
        parameters += [_in_query(call, name, schemas) for name in call.parameters]
        return operation
    if call.doc.rstrip(".") != operation["summary"].rstrip("."):
        operation["description"] = call.doc
    if call.scope == "write":
        parameters.append(_named("request"))
    if "if_number" in call.parameters:
        parameters.append(_named("if-match"))
    body: Schema = {
        "type": "object",
        "properties": {name: _schema(call, name, schemas) for name in call.parameters},
        "additionalProperties": call.any is not None,
    }
    needed = [name for name in call.parameters if name in call.needed]
    if needed:
        body["required"] = needed
    operation["requestBody"] = {"required": bool(needed), "content": {_JSON: {"schema": body}}}
    return operation


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _others() -> Schema:
    """Return the paths that are not calls: health, metrics, batches, transactions, dumps."""
    calls = {
        "type": "array",
        "description": 'Each a name and its arguments: `["add_node", {"kind": "fact"}]`.',
        "items": {
            "type": "array",
            "items": {"anyOf": [_TEXT, OBJECT]},
            "minItems": 2,
            "maxItems": 2,
        },
    }
    told = {"author": _TEXT, "reason": _TEXT}
    ids = {
        "name": "answers",
        "in": "query",
        "description": "Only the ids of what was written.",
        "schema": {"type": "string", "enum": ["ids"]},
    }
    of_transaction = {"name": "transaction", "in": "path", "required": True, "schema": _TEXT}
    begin = record({**told, "read_only": {"type": "boolean"}}, closed=True)
    batch = record({"calls": calls, **told}, ["calls"], closed=True)
    writes = [_named(name) for name in (*_OF_WRITES, "request")]
    nothing = _of_json({"type": "null"}, "null")
    return {
        **_of_pages(),
        "/health": {"get": _other("Whether the server is well.", "health", _of_json(_HEALTH, "It is."), security=[])},
        "/metrics": {"get": _other("Counts and times in the text form of Prometheus.", "metrics", _of_kind("text/plain"))},
        "/export": {"get": _other("A dump of the whole journal, one line of JSON for each transaction.", "export", _of_kind("application/jsonl"))},
        "/batch": {
            "post": _other(
                "Many calls in one transaction, all or nothing.", "batch", _of_json({"type": "array", "items": {}}, "The answer of each."),
                parameters=[*writes, ids], body=batch,
            )
        },
        "/transaction": {
            "post": _other(
                "Begin a transaction, or with `read_only` one coordinate for many reads. Its name stands in the query of what belongs to it.",
                "transaction", _of_json(_BEGUN, "Its name, and its tx."), parameters=[_named("branch"), _named("author")], body=begin,
            )
        },
        **{
            f"/transaction/{{transaction}}/{word}": {
                "post": _other(summary, word, nothing, parameters=[of_transaction, _named("branch"), _named("author"), _named("request")])
            }
            for word, summary in (("commit", "Keep a transaction."), ("abort", "Drop a transaction."))
        },
    }  # fmt: skip


def _of_webhooks(observed: Schema) -> Schema:
    """Return the paths that a service calls with its own payload. The answer is that of the call that observes a deploy."""
    answer = observed["responses"]["200"]
    writes = [_named(name) for name in (*_OF_WRITES, "request")]
    told = "A deploy, as GitHub, GitLab or a script sends it: the body is the payload itself. Null: it told of none."
    return {
        "/webhooks/deploy": {"post": _other(told, "deployed", answer, parameters=writes, body=dict(OBJECT))}
    }


def _of_pages() -> Schema:
    """Return the other paths that the page at `/` uses."""
    return {
        "/rights": {"get": _other("What the token that is shown may do: `read` or `write`.", "rights", _of_json(_RIGHTS, "It."))},
        "/activity": {"get": _other("Who follows by way of this server, and through which door it wrote lately, by tx.", "activity", _of_json(_ACTIVITY, "It."))},
        "/media/{event}": {
            "get": _other(
                "The audio or the image that a message was recorded with, whole or a Range of it.", "media", _MEDIA,
                parameters=[{"name": "event", "in": "path", "required": True, "schema": _TEXT}, *map(_named, ("valid", "tx", "as_of", "branch"))],
            )
        },
    }  # fmt: skip


def _other(
    summary: str, name: str, answer: Schema, *, parameters: Sequence[Schema] = (), body: Schema | None = None, **more: Any
) -> Schema:  # fmt: skip
    operation = {
        "tags": ["server"],
        "summary": summary,
        "operationId": name,
        "responses": {"200": answer} | _REFUSED,
        **more,
    }
    if parameters:
        operation["parameters"] = list(parameters)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": body}}}
    return operation


def _of_json(schema: Schema, words: str) -> Schema:
    return {"description": words, "content": {_JSON: {"schema": schema}}}


def _of_kind(kind: str) -> Schema:
    return {"description": kind, "content": {kind: {"schema": _TEXT}}}


def _in_query(call: Call, name: str, schemas: Schemas) -> Schema:
    """Return a query parameter. Values other than strings, numbers and lists of them are JSON. Null is expressed by omitting it."""
    schema = _schema(call, name, schemas)
    words = {"description": schema.pop("description")} if "description" in schema else {}
    plain = _without_null(schema)
    found = {"name": name, "in": "query", "required": name in call.needed, **words}
    if plain.get("type") == "object":
        return {**found, "content": {_JSON: {"schema": plain}}}
    return {**found, "schema": plain}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(types := schema.get("type"), list):
        return {**schema, "type": next(one for one in types if one != "null")}
    if "anyOf" in schema:
        return {**schema, "anyOf": [one for one in schema["anyOf"] if one != {"type": "null"}]}
    return schema


def _schema(call: Call, name: str, schemas: Schemas) -> Schema:
    """Return the schema of an argument. The description is its annotation, if that says more than the type."""
    parameter = call.parameters[name]
    annotation = str(parameter.annotation).replace("builtins.", "")
    words = {} if annotation.removesuffix(" | None") in _PLAIN else {"description": f"`{annotation}`"}
    found = {**words, **schemas[call.name, name]}
    if isinstance(parameter.default, str | int | float):
        found["default"] = parameter.default
    return found


def _first_sentence(doc: str) -> str:
    """Return the first sentence of a docstring, on one line."""
    return re.split(r"(?<=\.) ", " ".join(doc.partition("\n\n")[0].split()), maxsplit=1)[0]
