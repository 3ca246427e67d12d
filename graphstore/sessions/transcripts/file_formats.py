"""Which agent wrote a session file, what reads its lines, and what makes steps of its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

from graphstore.sessions.transcripts.lines import ClaudeReading, Format, Lines, PiReading, Reading, Warnings
from graphstore.sessions.transcripts.other_agents import OTHER_READINGS, STEPS, agent_of
from graphstore.sessions.transcripts.steps import Step, steps

FORMATS: tuple[Format, ...] = ("pi", "claude", "codex", "copilot", "gemini", "opencode")
READINGS: Mapping[str, type[Reading]] = {"pi": PiReading, "claude": ClaudeReading, **OTHER_READINGS}
_CLAUDE_SIGNS = frozenset({"uuid", "parentUuid", "leafUuid", "sessionId", "_type"})
_LOOKED_AT = 100


def format_of(file: BinaryIO) -> Format:
    """Who wrote a file of lines, by the first object in it that shows it; pi where none does. The file is rewound."""
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
    """What makes steps of the entries of a file, in their order."""
    return STEPS[format]() if format in STEPS else steps
