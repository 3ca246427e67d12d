"""The message of a refused call, for an agent to act on: what was got, what is near it, and the next call to make."""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Container, Mapping
from typing import Any

from pydantic import ValidationError

from graphstore.errors import (
    ConflictError,
    EngineError,
    GraphStoreError,
    InvalidError,
    LockedError,
    NotFoundError,
    QueryError,
)
from graphstore.values.inputs import brief
from graphstore.values.text import clean

log = logging.getLogger(__name__)

_QUOTED = r"('[^']*'|\"[^\"]*\")"
# the library's words for its own methods, and the tools that do the same
_AS_TOOLS = (
    (re.compile(rf"inspect\({_QUOTED}\) shows"), r"get(id=\1) shows"),
    (re.compile(rf"Read it with (?:event|node)\({_QUOTED}\)"), r"Read it with get(id=\1)"),
    (re.compile(r"Read it with event\(…\)"), "Read it with get(id=…)"),
    (re.compile(rf"Use revise\({_QUOTED}, …\)"), r"Use remember(statement=…, revises=\1)"),
    (re.compile(rf"use retract\({_QUOTED}, reason=…\)"), r"use retract(id=\1, reason=…)"),
    (re.compile(rf"link\({_QUOTED}, 'contradicts', {_QUOTED}\)"), r"link(source=\1, kind='contradicts', target=\2)"),
    (re.compile(r"snapshots\(\) lists them"), "schema() lists them"),
    (re.compile(r"changes\(\) lists them, each with its tx"), "why(id=…) lists what was done to a thing: recorded_at is the tx"),
)  # fmt: skip
_NEAREST = re.compile(rf"Nearest: {_QUOTED}")
_AMBIGUOUS = re.compile(r"is ambiguous: ([^,.]+)")
_ABSENT = re.compile(rf"(?:node|event) {_QUOTED} does not stand")
_NO_TABLE = re.compile(r"Table (\w+) does not exist")
_UNREACHED = re.compile(r"^no server answers at|did not answer within|^the connection to \S+ broke")
_ECHO = 200  # characters of what was given
_MOST = 4_000
_GOT = re.compile(rf"no [a-z, ]+? {_QUOTED}")
_INSTEAD = re.compile(r"There is a (thread|sender) of that name")
_OF_IDS = (
    "id",
    "id_or_text",
    "source",
    "target",
    "old",
    "by",
    "related_to",
    "revises",
    "corrects",
    "supersedes",
    "derived_from",
)


def words(
    tool: str, arguments: Mapping[str, Any], error: BaseException, known: Container[str] = ("search",)
) -> str:
    """The message for the agent: the error, and the next call where the tools for it are `known`."""
    if isinstance(error, ValidationError):
        return clean(_of_arguments(tool, error))
    if not isinstance(error, GraphStoreError):
        log.error("tool %s failed", tool, exc_info=error)
        return f"{tool} failed unexpectedly: {type(error).__name__}. Nothing was written. This is a fault of the server, not of the call; its log has the details."
    text = str(error)
    for pattern, tools in _AS_TOOLS:
        text = pattern.sub(tools, text)
    following = _next(tool, arguments, error, str(error), known) if "search" in known else ""
    return clean(_short_enough(f"{text} Next: {following}" if following else text, arguments))


def _short_enough(text: str, arguments: Mapping[str, Any]) -> str:
    """A refusal in which long arguments are cut."""
    for value in arguments.values():
        for given in value if isinstance(value, list) else (value,):
            if isinstance(given, str) and len(given) > _ECHO:
                for form in (given, repr(given)[1:-1], json.dumps(given, ensure_ascii=False)[1:-1]):
                    text = text.replace(form, form[:_ECHO] + "…")
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]} … {text[-_MOST // 2 :]}"


def _next(
    tool: str, arguments: Mapping[str, Any], error: GraphStoreError, text: str, known: Container[str]
) -> str:
    if isinstance(error, NotFoundError):
        return _after_not_found(tool, arguments, text)
    if isinstance(error, QueryError) and "was stopped after" in text:
        return "call cypher again with less to go through: a kind, a LIMIT, fewer hops."
    if isinstance(error, QueryError) and (found := _NO_TABLE.search(text)):
        return (
            f"call cypher again: labels are Node, Absent and Event, and a kind is a property, (n:Node {{kind: {found[1].lower()!r}}}); "
            "a kind of link is a relationship in capitals. schema() lists those in use."
        )
    if isinstance(error, QueryError):
        return "call schema() for the labels, properties and link kinds there are."
    if isinstance(error, LockedError):
        return "try again when the other process has ended, or ask the user to stop it."
    if isinstance(error, EngineError) and _UNREACHED.search(text):
        return "tell the user that the store's server is not reached (graphstore serve starts it), and try again then."
    if isinstance(error, EngineError) and "needs more memory" in text:
        return f"call {tool} again with less to go through: a kind, a LIMIT, fewer hops."
    if isinstance(error, EngineError):
        return "tell the user: the store needs to be looked at (graphstore verify)."
    if isinstance(error, ConflictError):
        return f"call {_about(arguments)} and decide."
    if isinstance(error, InvalidError) and "there is no snapshot" in text:
        return "call schema() for the names of snapshots, or give a date such as 2026-01-30."
    if isinstance(error, InvalidError) and "unknown link kind" in text and "define_kind" in known:
        return f"call {tool} again with one of these, or first define_kind(name={_quoted(str(arguments.get('kind')))})."
    if isinstance(error, InvalidError):
        return f"call {tool} again with that put right."
    return ""


def _after_not_found(tool: str, arguments: Mapping[str, Any], text: str) -> str:
    if tool == "undo":
        return "call undo(tx=…) with the whole tx that was meant."
    if found := _ABSENT.search(text):
        return f"call what_superseded(id_or_text={_quoted(found[1][1:-1])})."
    if found := _AMBIGUOUS.search(text):
        return f"call {tool} with the whole id, such as {found[1].strip()}."
    if "was not known at" in text:
        return f"call {tool} with a later tx, or without tx."
    if found := _INSTEAD.search(text):
        return f"call timeline({found[1]}={_quoted(_got(arguments, text))})."
    if found := _NEAREST.search(text):
        return f"call get(id={_quoted(found[1][1:-1])}) if that was meant, else search(query={_quoted(_got(arguments, text))})."
    got = _got(arguments, text)
    return f"call search(query={_quoted(got)})." if got.strip() else "call search(query=…) for its id."


def _got(arguments: Mapping[str, Any], text: str) -> str:
    if found := _GOT.search(text):
        return found[1][1:-1]
    return next((str(arguments[name]) for name in _OF_IDS if arguments.get(name)), "…")


def _about(arguments: Mapping[str, Any]) -> str:
    for name in _OF_IDS:
        value = arguments.get(name)
        if value:
            return f"get(id={_quoted(value[0] if isinstance(value, list) else str(value))})"
    return f"search(query={_quoted(str(arguments.get('statement') or '…')[:80])})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _of_arguments(tool: str, error: ValidationError) -> str:
    """A refusal of arguments of the wrong type, an argument each."""
    parts = []
    for each in error.errors():
        name = ".".join(map(str, each["loc"][:1]))
        got = "" if each["type"] == "missing" else f" got {brief(each['input'])}:"
        parts.append(f"{name}:{got} {each['msg'].lower()}")
    return f"{tool} was called with the wrong arguments. {'; '.join(dict.fromkeys(parts))}. Next: call {tool} again with that put right."


def unknown_tool(
    name: str, known: list[str], writing: Container[str] = (), erasing: Container[str] = ()
) -> str:
    """The refusal of a tool that is not there. `writing`, `erasing`: those that are offered elsewhere, where one may write or erase."""
    if name in erasing:
        return (
            f"no tool {name!r} here, where nothing is erased. Next: tell the user that graphstore forget STORE WHO erases a person "
            "and graphstore erase STORE ID a thing; what is retracted stays in the history."
        )
    if name in writing:
        return f"{name} writes, and here one only reads. Tools: {', '.join(known)}. Next: tell the user what you would have written."
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"no tool {name!r}. Tools: {', '.join(known)}.{guess}"


def unknown_prompt(name: str, known: list[str]) -> str:
    """The refusal of a prompt that is not there."""
    return f"no prompt {name!r}. Prompts: {', '.join(known) or 'none'}. Next: get one of these, or list the tools."


def unknown_argument(tool: str, name: str, known: list[str]) -> str:
    """The refusal of an argument that the tool does not have: left out it would answer another question."""
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"{tool} has no argument {name!r}. Arguments: {', '.join(known)}.{guess} Next: call {tool} again with one of these."
