"""Turns one entry of a session of pi or Claude Code into steps: texts, tool calls, their results, tokens.

Both agents store the same facts under different names. A field of an unexpected type is ignored; nothing here raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A text of the user or the assistant, without wrappers and reminders."""

    who: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. `model` names the model that made the call."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    model: str
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Holds the result of a tool call. `refused`: the user did not allow it to run."""

    call: str
    tool: str | None
    text: str
    failed: bool
    refused: bool = False


@dataclass(frozen=True, slots=True)
class UserCommand:
    """A command that the user ran directly."""

    command: str
    output: str
    failed: bool


@dataclass(frozen=True, slots=True)
class TokensTaken:
    """Holds the tokens that a message used, and its cost in US dollars if the session states it.

    `message` is the same for all entries of one message; None if unknown. `in_parts`: one message may be written as several entries.
    """

    message: str | None
    provider: str
    model: str
    tokens_input: int
    tokens_output: int
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    in_parts: bool = False

    def goes_on(self, before: TokensTaken) -> bool:
        """Return True if this may be another part of the same message. Without ids, equal token counts show it."""
        if not (self.in_parts and before.in_parts) or self.message is not None or before.message is not None:
            return False
        return all(
            getattr(self, name) == getattr(before, name)
            for name in ("tokens_input", "cache_read", "cache_write")
        )


@dataclass(frozen=True, slots=True)
class Stopped:
    """States why the assistant stopped: `done`, `tool`, `length`, `aborted` or `error`; `message` is the text of an error."""

    why: Literal["done", "tool", "length", "aborted", "error"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class SummaryStep:
    """A summary of earlier work, and the files that it names."""

    how: Literal["compaction", "branch"]
    text: str
    files: tuple[str, ...] = field(default=())


class Spending:
    """Accumulates tokens per model. Each message counts once, since its parts repeat the tokens of the whole."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], dict[str, TokensTaken]] = {}

    def add(self, took: TokensTaken) -> None:
        """Add the tokens that one entry states."""
        messages = self._models.setdefault((took.provider, took.model), {})
        key = took.message or f"#{len(messages)}"
        if messages and took.message is None:
            latest = next(reversed(messages))
            key = latest if took.goes_on(messages[latest]) else key
        before = messages.get(key)
        if before is None or took.tokens_output >= before.tokens_output:  # the last part has the total
            messages[key] = took

    def __iter__(self) -> Iterator[tuple[str, str, list[TokensTaken]]]:
        """Yield provider, model and the tokens of each message, in order of first use."""
        for (provider, model), messages in self._models.items():
            yield provider, model, list(messages.values())


TOKENS = ("tokens_input", "tokens_output", "cache_read", "cache_write")


def summed(messages: Sequence[TokensTaken]) -> dict[str, int]:
    """Return the sums of the tokens of messages, by the names in `TOKENS`."""
    return {name: sum(getattr(took, name) for took in messages) for name in TOKENS}


Step = SpokenMessage | ToolCall | ToolAnswer | UserCommand | TokensTaken | Stopped | SummaryStep

_STOPS: Mapping[str, Literal["done", "tool", "length", "aborted", "error"]] = {
    "stop": "done", "end": "done", "end_turn": "done", "stop_sequence": "done", "tooluse": "tool", "tool_use": "tool",
    "length": "length", "max_tokens": "length", "aborted": "aborted", "error": "error", "refusal": "error",
}  # fmt: skip
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]{0,40}\]")
_REFUSED = re.compile(
    r"\A\s*(?:<\w+>)?\s*(?:Error: )?(?:The user doesn't want to (?:proceed|take this action)|\[?Request interrupted|\[?(?:Tool use|Command) (?:was )?interrupted|"
    r"Interrupted by (?:the )?user|Command was aborted|User rejected|Operation aborted\s*\Z)"
)
_ABORTED = re.compile(r"(?:\A|\n)Command aborted\s*\Z")  # follows the command's own output
_ARGUMENTS = "command-args"
_WRAPPER = re.compile(
    r"<(system-reminder|command-(?:name|message|contents|args)|local-command-[a-z]{1,20}|bash-[a-z]{1,20}|user-memory-input|agent-notification|"
    r"ide_[a-z_]{1,30}|task-notification|skill|file)(?:\s[^<>]{0,500})?>"
)
_IMAGE = re.compile(r"\[Image #\d+\]")
_CAVEAT = re.compile(
    r"\ACaveat: The messages below were generated by the user while running local commands.*", re.DOTALL
)
_EXIT = re.compile(r"(?:\bCommand exited with code|\A\s*Exit code) (\d+)\b")
_TAIL = 200  # characters at the end of a command's output that are searched for the exit status


def steps(body: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps of an entry, in order."""
    type = body.get("type")
    if type in ("compaction", "branch_summary"):
        details = as_object(body.get("details"))
        files = (*as_texts(details.get("readFiles")), *as_texts(details.get("modifiedFiles")))
        yield SummaryStep(
            "branch" if type == "branch_summary" else "compaction", as_text(body.get("summary")), files
        )
        return
    message = as_object(body.get("message"))
    role = message.get("role")
    if role == "user":
        yield from _by_user(body, message)
    elif role == "assistant":
        yield from _by_assistant(body, message)
    elif role == "toolResult":
        text = plain(message.get("content"))
        code = _EXIT.search(text[-_TAIL:])
        failed = message.get("isError") is True or (code is not None and code[1] != "0")
        call, tool = as_text(message.get("toolCallId")), as_text(message.get("toolName")) or None
        yield ToolAnswer(call, tool, text, failed, failed and _refused(text))
    elif role == "bashExecution":
        failed = message.get("exitCode") not in (None, 0) and message.get("cancelled") is not True
        yield UserCommand(as_text(message.get("command")), as_text(message.get("output")), failed)


def plain(content: Any) -> str:
    """Return the text of a message's content: the string itself, or its text parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (
        part if isinstance(part, str) else as_text(part.get("text"))
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")
    )
    return "\n".join(text for text in texts if text)


def own_words(text: str) -> str:
    """Return the user's own part of a text: without wrappers of commands, their output, and reminders. Arguments of a command are the user's."""
    text = _CAVEAT.sub("", text)
    if "<" in text:
        text = "".join(_unwrapped(text))
    return _IMAGE.sub("", _INTERRUPTED.sub("", text)).strip()


def _unwrapped(text: str) -> Iterator[str]:
    """Yield the text outside the wrappers, and the arguments of commands. An unclosed wrapper counts as text."""
    at, unclosed = 0, set()
    for found in _WRAPPER.finditer(text):
        name = found[1]
        if found.start() < at or name in unclosed:
            continue
        end = text.find(f"</{name}>", found.end())
        if end < 0:
            unclosed.add(name)
            continue
        yield text[at : found.start()]
        if name == _ARGUMENTS:
            yield text[found.end() : end]
        at = end + len(name) + 3
    yield text[at:]


def _by_user(body: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Step]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "tool_result":
            text = plain(part.get("content"))
            failed = part.get("is_error") is True
            yield ToolAnswer(as_text(part.get("tool_use_id")), None, text, failed, failed and _refused(text))
    text = plain(content)
    if body.get("isCompactSummary") is True:
        yield SummaryStep("compaction", text)
        return
    if _INTERRUPTED.search(text):
        yield Stopped("aborted")
    words = "" if body.get("isMeta") is True else own_words(text)
    if words:
        yield SpokenMessage("user", words)


def _by_assistant(body: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Step]:
    model = as_text(message.get("model"))
    folder = as_text(body.get("cwd")) or None
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in ("toolCall", "tool_use"):
            given = part.get("arguments", part.get("input"))
            yield ToolCall(
                as_text(part.get("id")), as_text(part.get("name")), as_object(given), model, folder
            )
    words = plain(content).strip()
    if body.get("isApiErrorMessage") is True:
        yield Stopped("error", words)
        return
    if words:
        yield SpokenMessage("assistant", words)
    took = _took(body, message)
    if took is not None:
        yield took
    why = _STOPS.get(as_text(message.get("stopReason") or message.get("stop_reason")).lower())
    if why is not None:
        yield Stopped(why, as_text(message.get("errorMessage")))


def _took(body: Mapping[str, Any], message: Mapping[str, Any]) -> TokensTaken | None:
    usage, model = message.get("usage"), as_text(message.get("model"))
    if not isinstance(usage, dict) or model == "<synthetic>":
        return None
    if "input_tokens" in usage or "output_tokens" in usage:
        taken, made, read, written = counts(
            usage, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
        )
        key = as_text(message.get("id")) or as_text(body.get("requestId")) or None
        cost = _cost(body.get("costUSD"))
        return TokensTaken(key, "anthropic", model, taken, made, read, written, cost, in_parts=True)
    taken, made, read, written = counts(usage, "input", "output", "cacheRead", "cacheWrite")
    provider, cost = as_text(message.get("provider")), _cost(usage.get("cost"))
    return TokensTaken(None, provider, model, taken, made, read, written, cost)


def _cost(cost: Any) -> float | None:
    """Return the stated total, or the sum of the parts; None if there is neither."""
    if isinstance(cost, dict):
        parts = [cost["total"]] if "total" in cost else list(cost.values())
        return math.fsum(map(_amount, parts)) if parts else None
    return None if cost is None else _amount(cost)


def _refused(text: str) -> bool:
    return _REFUSED.match(text.lstrip()[:_TAIL]) is not None or _ABORTED.search(text[-_TAIL:]) is not None


def as_text(value: Any) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def as_texts(value: Any) -> list[str]:
    """Return the strings in a list; an empty list for anything else."""
    return [each for each in as_list(value) if isinstance(each, str)]


def as_objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list for anything else."""
    return [each for each in as_list(value) if isinstance(each, dict)]


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def as_count(value: Any) -> int:
    """Return the value as an int if it is a number of 0 or more below 2**53, else 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1 << 53:
        return 0
    return int(value)


def counts(value: Mapping[str, Any], *fields: str) -> list[int]:
    """Return these fields of an object as counts."""
    return [as_count(value.get(field)) for field in fields]


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        return 0.0
    return float(value)
