"""Detects which agent wrote a session file, and selects the reader of its lines and the maker of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

from orjson import JSONDecodeError, loads

from graphstore.sessions.transcripts.lines import (
    ClaudeReading,
    Format,
    Lines,
    PiReading,
    SessionReading,
    Warnings,
)
from graphstore.sessions.transcripts.other_agents import OTHER_READINGS, STEPS, agent_of
from graphstore.sessions.transcripts.steps import Step, steps

FORMATS: tuple[Format, ...] = ("pi", "claude", "codex", "copilot", "gemini", "opencode")
READINGS: Mapping[str, type[SessionReading]] = {"pi": PiReading, "claude": ClaudeReading, **OTHER_READINGS}
_CLAUDE_SIGNS = frozenset({"uuid", "parentUuid", "leafUuid", "sessionId", "_type"})
_LOOKED_AT = 100
_HEAD = 256
_DATABASE = b"SQLite format 3\0"


def why_not_read(file: BinaryIO) -> str | None:
    """Return why a file of a known agent cannot be read, and what to give instead. Return None for any other file. The file is rewound."""
    try:
        head = file.read(_HEAD)
        if head.startswith(_DATABASE):
            return "it is an SQLite database, such as OpenCode's `opencode.db`, and is not read. Give what `opencode export` writes of a session."
        if not head.lstrip().startswith(b"[") and b'"history"' not in head:
            return None
        value = loads(head + file.read())
    except JSONDecodeError:
        return None
    finally:
        file.seek(0)
    if _are(value, "sessionId", "messageId", "message"):
        return "it is a `logs.json` of Gemini CLI, which has what the user asked and no answers, and is not read. Give the folder `chats` beside it."
    history = value.get("history") if isinstance(value, dict) else value
    if _are(history, "role", "parts"):
        return "it is a checkpoint of Gemini CLI (`/chat save`), which has no times and no session, and is not read. Give the folder `chats` beside it."
    return None


def _are(values: Any, *fields: str) -> bool:
    """Return True if `values` is a non-empty list of objects with these fields."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(each, dict) and all(field in each for field in fields) for each in values)
    )


def format_of(file: BinaryIO) -> Format:
    """Return the agent that wrote a file of lines, by the first object that identifies it; `pi` if none does. The file is rewound."""
    try:
        for _, _, _, value in Lines(islice(file, _LOOKED_AT), 0, Warnings(), None):
            if value.get("type") == "session" or ("parentId" in value and "data" not in value):
                return "pi"
            if (agent := agent_of(value)) is not None:
                return agent
            if not _CLAUDE_SIGNS.isdisjoint(value):
                return "claude"
    finally:
        file.seek(0)
    return "pi"


def stepper(format: str) -> Callable[[Mapping[str, Any]], Iterator[Step]]:
    """Return the function that makes steps of the entries of a file, called in their order."""
    return STEPS[format]() if format in STEPS else steps
