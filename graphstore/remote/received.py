"""Reads the arguments of a call from JSON or from a query string. It refuses invalid ones with the messages of the store's own checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn, get_origin

from pydantic import ValidationError

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.remote import codec
from graphstore.remote.argument_types import MODELS, classes_in, members
from graphstore.remote.calls import Call
from graphstore.remote.json_schemas import Schema, schema_of
from graphstore.values.inputs import brief, json_or_text, text_of
from graphstore.values.vocabulary import strength_of


def prepare(call: Call, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as its function expects them, from JSON. Raise InvalidError for an unknown or missing one."""
    checked = dict(args)
    names = call.parameters.keys()
    if call.any == "params" and "tagged" in checked:
        checked["params"] = _untagged(checked.pop("tagged"))
    if call.any != "unknown" and not checked.keys() <= names:
        raise InvalidError.choice(f"argument of {call.name}", min(checked.keys() - names), names)
    if not call.needed <= checked.keys():
        missing = ", ".join(sorted(call.needed - checked.keys()))
        raise InvalidError(f"{call.name} misses {missing}. Arguments: {', '.join(names) or 'none'}.")
    for name in call.arguments.keys() & checked.keys():
        try:
            checked[name] = call.arguments[name].validate_python(checked[name])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _refuse(call, name, checked[name], error)
    return checked


def _untagged(message: Any) -> Any:
    """Return the parameters of a query from the tagged form that a client sends. Raise InvalidError for any other form."""
    try:
        found = codec.untagged(message)
        an_object("params", found)
        return found
    except InvalidError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AssertionError, RecursionError) as error:
        raise InvalidError(f"tagged is not as a client writes it: {error!r:.200}. Give params.") from None


def an_object(name: str, value: Any) -> None:
    """Raise InvalidError for a value that is not a JSON object."""
    if not isinstance(value, dict):
        raise InvalidError(f"{name} {brief(value)} is no JSON object. Give a dict with text keys.")


# ---- from a query string ---------------------------------------------------------------------------


def from_query(call: Call, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the arguments of a call from a query string. A repeated name is a list; numbers, booleans and objects follow the parameter's annotation."""
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(text)
    args: dict[str, Any] = {}
    params: dict[str, Any] = {}
    for name, texts in found.items():
        hint = call.hints.get(name)
        if hint is None and call.any == "params":
            params[name] = json_or_text(name, texts[0])
        elif name == call.any:
            args[name] = json_or_text(name, texts[0])
        else:
            args[name] = texts[0] if hint is None else _spelt(hint, name, texts)
    if params:
        an_object("params", args.get("params", {}))
        args["params"] = {**args.get("params", {}), **params}
    return prepare(call, args)


def _spelt(hint: Any, name: str, texts: list[str]) -> Any:
    sorts = {get_origin(one) or one for one in members(hint)}
    text = texts[0]
    if Iterable in sorts and text[:1] == "[" and len(texts) == 1:
        return json_or_text(name, text)
    if len(texts) > 1 or (Iterable in sorts and str not in sorts):
        return texts
    if bool in sorts:
        if text.lower() not in ("true", "false", "1", "0"):
            raise InvalidError(f"{name} {text!r} is neither true nor false. Give true or false.")
        return text.lower() in ("true", "1")
    if sorts & {int, float, timedelta} and str not in sorts:
        return _number(text, name, int if int in sorts else float)
    is_object = sorts & {Mapping, dict} or not MODELS.isdisjoint(classes_in(hint))
    return json_or_text(name, text) if is_object and text[:1] == "{" else text


def _number(text: str, name: str, kind: type[int] | type[float]) -> int | float:
    try:
        found = kind(text) if len(text) <= _DIGITS and text.isascii() else None
    except ValueError:
        found = None
    if found is None or not math.isfinite(found):
        raise InvalidError(f"{name} {brief(text)} is no number. Give one.")
    return found


_DIGITS = 400  # characters of the longest number that is read; 1e308 written out has fewer

# ---- refusing --------------------------------------------------------------------------------------


def _refuse(call: Call, name: str, value: Any, error: Exception) -> NoReturn:
    """Raise InvalidError for an argument: with the message of the store's own check if its type is wrong, else with the reason."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        own = first.get("ctx", {}).get("error")
        if isinstance(own, GraphStoreError):
            raise own from None
        if not MODELS.isdisjoint(classes_in(call.hints[name])):
            why = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        elif first["type"] == "value_error":
            why = repr(own)
        else:
            _refuse_type(name, value, schema_of(call.arguments[name]))
    else:
        why = repr(error)
    raise InvalidError(f"{name} of {call.name} cannot be read: {why}.") from None


def _refuse_type(name: str, value: Any, schema: Schema) -> NoReturn:
    if "enum" in schema:
        raise InvalidError.choice(name, value, schema["enum"]) from None
    if name in _OWN_CHECKS:
        _OWN_CHECKS[name](value)
    words = list(dict.fromkeys(_words(schema)))
    if words == ["text"] and not isinstance(value, str):
        text_of(name, value, empty=True)
    if words == ["JSON object"]:
        an_object(name, value)
    if words == ["true or false"]:
        raise InvalidError(f"{name} {brief(value)} is neither true nor false. Give true or false.") from None
    is_number = type(value) is int or (type(value) is float and words == ["number"])
    if words in (["number"], ["whole number"]) and is_number:
        span = f" from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else ""
        raise InvalidError(f"{name} {brief(value)} is out of range. Give a {words[0]}{span}.") from None
    raise InvalidError(f"{name} {brief(value)} is no {' or '.join(words)}. Give {_given(words)}.") from None


_OWN_CHECKS: Mapping[str, Callable[[Any], object]] = {"strength": strength_of}
"""Checks of the store that give a better message than the type of an argument does."""


def _given(words: Sequence[str]) -> str:
    return " or ".join(word if word.startswith(("text", "true")) else f"a {word}" for word in words)


_CALLED = {"string": "text", "boolean": "true or false", "object": "JSON object", "integer": "whole number", "number": "number", "array": "list"}  # fmt: skip


def _words(schema: Schema) -> list[str]:
    if "anyOf" in schema:
        return [word for one in schema["anyOf"] for word in _words(one)]
    if "$ref" in schema:
        return ["JSON object"]
    if "enum" in schema:
        return [f"one of {', '.join(map(repr, schema['enum']))}"]
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    found = [_CALLED[one] for one in types if one != "null"]
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    if (
        found in (["list"], ["JSON object"])
        and isinstance(inner, Mapping)
        and inner
        and (parts := _words(inner))
    ):
        many = [part if part in ("text", "true or false") else f"{part}s" for part in dict.fromkeys(parts)]
        return [f"{found[0]} of {' or '.join(many)}"]
    return found
