"""Reads session files of Codex, Copilot CLI, Gemini CLI and OpenCode: their lines as entries, and the steps of each entry.

Codex and Copilot CLI write a line for each event. Early versions of Codex, Copilot CLI and Gemini CLI, and `opencode export`, write one JSON
document with a list of messages. Each message is an entry, located by its offset in the document. In all formats each entry follows the one
before it. Only Gemini CLI has branches, after the user went back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from orjson import JSONDecodeError, loads

from graphstore.sessions.transcripts.lines import (
    Format,
    Found,
    Header,
    SessionReading,
    Warnings,
    moment_of,
    text_in,
)
from graphstore.sessions.transcripts.steps import (
    SpokenMessage,
    Step,
    Stopped,
    SummaryStep,
    TokensTaken,
    ToolAnswer,
    ToolCall,
    as_count,
    as_list,
    as_object,
    as_objects,
    counts,
    own_words,
)
from graphstore.values.models import Json

_CODEX = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CODEX_ITEMS = frozenset({
    "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call", "web_search_call",
})  # fmt: skip
_COPILOT = frozenset({"user.message", "assistant.message", "tool.execution_start", "tool.execution_complete", "session.compaction_complete", "abort"})  # fmt: skip
_GIVEN = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions|skill|collaboration_mode)\b|# AGENTS\.md instructions)"
)
_ABORTED = re.compile(r"\s*<turn_aborted>")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXITED = re.compile(r"(?:^|\n)(?:Exit code|Process exited with code):? (\d+)")
_HEAD = 1 << 16
_LISTS = ("messages", "timeline", "chatMessages", "items")
"""The possible names of the list of messages in a document. The first non-empty list counts."""
_COPILOT_ONCE = {
    "user": "user",
    "copilot": "assistant",
    "assistant": "assistant",
    "tool_call_completed": "toolResult",
    "tool": "toolResult",
}
"""The role of an entry in a document of Copilot CLI."""
_COPILOT_ROLES = {"user.message": "user", "assistant.message": "assistant", "tool.execution_complete": "toolResult"}  # fmt: skip
_GEMINI_ROLES = {"user": "user", "gemini": "assistant"}


def agent_of(value: Json) -> Format | None:
    """Return the agent that wrote an object of a file, if the object alone identifies it."""
    kind = text_in(value, "type")
    if kind in _CODEX and isinstance(value.get("payload"), dict):
        return "codex"
    if kind is not None and isinstance(value.get("data"), dict) and ("." in kind or kind == "abort"):
        return "copilot"
    if (
        "projectHash" in value
        or kind == "gemini"
        or (kind is None and "sessionId" in value and "startTime" in value)
    ):
        return "gemini"
    if "instructions" in value and "id" in value and kind is None:
        return "codex"
    info = value.get("info")
    if isinstance(info, dict) and ("parts" in value or ("messages" in value and "id" in info)):
        return "opencode"
    return None


def document_in(file: BinaryIO) -> tuple[Format, Json, list[Found]] | None:
    """Return agent, fields and messages of a file that is one JSON document; None for any other file. The file is rewound."""
    try:
        head = file.read(_HEAD)
        if not head.lstrip().startswith(b"{") or _is_line(head.lstrip().partition(b"\n")[0]):
            return None
        text = (head + file.read()).decode("utf-8", "surrogateescape")
        fields, messages = _parts(text)
        agent = _of_document(fields)
    except (ValueError, RecursionError):
        return None
    finally:
        file.seek(0)
    return None if agent is None else (agent, fields, messages)


def _of_document(fields: Json) -> Format | None:
    """Return the agent that wrote a document with these fields besides its list of messages."""
    if "sessionId" in fields and ("timeline" in fields or "chatMessages" in fields):
        return "copilot"
    if isinstance(fields.get("session"), dict) and "items" in fields:
        return "codex"
    agent = agent_of({**fields, "messages": []})
    return agent if agent in ("gemini", "opencode") else None


def _is_line(line: bytes) -> bool:
    """Return True if a line is an object of its own, and not a document with messages."""
    try:
        value = loads(line)
    except JSONDecodeError:
        return False
    return not (isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _LISTS))


def _parts(text: str) -> tuple[Json, list[Found]]:
    """Return the fields of a document without its messages, and each message with line, offset and bytes. Raise ValueError if it is not a document."""
    decoder, blank = json.JSONDecoder(), re.compile(r"[ \t\r\n,:]*")
    fields: Json = {}
    lists: dict[str, list[tuple[int, int, Any]]] = {}

    def skip(at: int) -> int:
        return blank.match(text, at).end()  # type: ignore[union-attr]  # it matches an empty string too

    at = skip(text.index("{") + 1)
    while text[at : at + 1] == '"':
        key, at = decoder.raw_decode(text, at)
        at = skip(at)
        if key not in _LISTS or text[at : at + 1] != "[":
            fields[key], at = decoder.raw_decode(text, at)
        else:
            at = skip(at + 1)
            fields[key], spans = [], lists.setdefault(key, [])
            while text[at : at + 1] not in ("]", ""):
                value, end = decoder.raw_decode(text, at)
                spans.append((at, end, value))
                at = skip(end)
            at += 1
        at = skip(at)
    if text[at : at + 1] != "}" or text[at + 1 :].strip():
        raise ValueError("no whole document")
    messages = next((lists[key] for key in _LISTS if lists.get(key)), [])
    return fields, list(_placed(text, messages))


def _placed(text: str, spans: list[tuple[int, int, Any]]) -> Iterator[Found]:
    offset = char = 0
    line = 1
    for begin, end, value in spans:
        before, raw = text[char:begin], text[begin:end].encode("utf-8", "surrogateescape")
        offset += len(before.encode("utf-8", "surrogateescape"))
        line += before.count("\n")
        if isinstance(value, dict):
            yield line, offset, raw, value
        offset, char, line = offset + len(raw), end, line + raw.count(b"\n")


# ---- from objects to entries -----------------------------------------------------------------------


class ChainReading(SessionReading):
    """Reads entries that follow one another in file order."""

    format: Format

    def __init__(self, path: Path, warnings: Warnings) -> None:
        super().__init__(path, warnings)
        self.session: Json = {}
        self.cwd: str | None = None
        self.parent: str | None = None
        self.agent: str | None = None

    def take_fields(self, fields: Json) -> None:
        """Read the fields that a document has besides its messages."""
        raise NotImplementedError

    def chained(self, piece: Found, id: Any, at: Any, kind: str, role: str | None, content: bool) -> int:
        """Add an entry whose parent is the previous entry."""
        line = piece[0]
        when, wrong = moment_of(at)
        if wrong and at is not None:
            self.warnings.add(line, wrong, at)
        above = self.entries.ids[-1] if len(self.entries) else None
        return self.add(piece, id, above, kind=kind, at=when, content=content, role=role)

    def compacted(self, position: int, summary: str | None, **tokens: int) -> None:
        """Record that an entry is a compaction: it summarises the entries before it."""
        self.boundary_bodies[position] = {"compaction": True, "summary": summary or "", **tokens}

    def header(self) -> Header:
        begun, _ = moment_of(self.session.get("timestamp"))
        return Header(
            format=self.format,
            session_id=text_in(self.session, "id") or self.path.name.rpartition(".")[0] or self.path.name,
            timestamp=begun,
            cwd=self.cwd,
            parent_session_id=self.parent,
            agent=self.agent,
            raw=self.session,
        )


class CodexReading(ChainReading):
    """Reads a rollout of Codex: lines with a payload, or in the first versions bare items after a line about the session."""

    format: Format = "codex"

    def read_object(self, piece: Found) -> None:
        value = piece[3]
        payload, kind = _payload(value), text_in(value, "type")
        if kind == "session_meta" or (kind is None and "instructions" in value):
            if not self.session:
                self._take_meta(payload, value)
            return
        inner = text_in(payload, "type")
        role = text_in(payload, "role")
        content = (
            kind == "compacted"
            or inner in _CODEX_ITEMS
            or (inner == "message" and role in ("user", "assistant"))
        )
        if inner in ("function_call_output", "custom_tool_call_output"):
            role = "toolResult"
        at = value.get("timestamp", payload.get("timestamp"))
        position = self.chained(piece, None, at, str(inner or kind), role, content)
        if kind == "compacted":
            self.compacted(position, text_in(payload, "message"))

    def take_fields(self, fields: Json) -> None:
        """Read the fields that a document of the first versions has besides its items."""
        self.session = as_object(fields.get("session"))

    def _take_meta(self, payload: Json, value: Json) -> None:
        self.session = {**payload, "timestamp": payload.get("timestamp", value.get("timestamp"))}
        self.cwd = text_in(payload, "cwd")
        self.parent = text_in(payload, "forked_from_id")
        source = payload.get("source")
        spawned = as_object(as_object(as_object(source).get("subagent")).get("thread_spawn"))
        if above := text_in(spawned, "parent_thread_id"):
            self.parent, self.agent = above, text_in(payload, "agent_nickname") or text_in(payload, "id")


class CopilotReading(ChainReading):
    """Reads events of Copilot CLI."""

    format: Format = "copilot"

    def take_fields(self, fields: Json) -> None:
        """Read the fields that a document of the first versions has besides its messages."""
        self.session = {"id": fields.get("sessionId"), "timestamp": fields.get("startTime")}
        self.cwd = text_in(fields, "cwd") or text_in(fields, "workingDirectory")

    def read_object(self, piece: Found) -> None:
        value = piece[3]
        kind, data = str(value.get("type")), as_object(value.get("data"))
        id, at = value.get("id"), value.get("timestamp")
        if "data" not in value:
            said = text_in(value, "type") or text_in(value, "role") or "unknown"
            role = _COPILOT_ONCE.get(said)
            self.chained(piece, id, at, said, role, role is not None)
            return
        if kind == "session.start" and not self.session:
            self.session = {"id": data.get("sessionId"), "timestamp": data.get("startTime", at)}
            self.cwd = text_in(as_object(data.get("context")), "cwd")
        if kind == "session.title_changed":
            self.name = text_in(data, "title") or self.name
        position = self.chained(piece, id, at, kind, _COPILOT_ROLES.get(kind), kind in _COPILOT)
        if kind == "session.compaction_complete":
            names = {"tokensBefore": "preCompactionTokens", "tokensAfter": "postCompactionTokens"}
            tokens = {name: data[key] for name, key in names.items() if type(data.get(key)) is int}
            self.compacted(position, text_in(data, "summaryContent"), **tokens)


class GeminiReading(ChainReading):
    """Reads a chat of Gemini CLI: a document, or a line per message, which is written again when its calls or tokens change."""

    format: Format = "gemini"

    def __init__(self, path: Path, warnings: Warnings) -> None:
        super().__init__(path, warnings)
        self._below: str | None = None  # after going back: the parent of the next entry
        self._went_back = False

    def read_object(self, piece: Found) -> None:
        line, offset, raw, value = piece
        kind, id = text_in(value, "type"), text_in(value, "id")
        if kind is None and id is None:
            self._take_change(line, offset, raw, value)
            return
        if id is not None and id in self.positions:
            at = self.positions[id]  # the message was written again with its current content
            self.entries.move(at, (line, offset, len(raw)))
            self.sums[at] = crc32(raw)
            return
        role = _GEMINI_ROLES.get(str(kind))
        at = self.chained(piece, id, value.get("timestamp"), str(kind), role, role is not None)
        if self._went_back:
            self.parents[at] = self.positions.get(self._below or "", -1)
            self._went_back = False

    def _take_change(self, line: int, offset: int, raw: bytes, value: Json) -> None:
        """Read the properties of the session, a change of them, or a step back before a message."""
        if (target := text_in(value, "$rewindTo")) is not None:
            at = self.positions.get(target)
            above = self.parents[at] if at is not None else -1
            self._below = self.entries.ids[above] if above >= 0 else None
            self._went_back = bool(self.entries)
            return
        change = as_object(value.get("$set")) or value
        if "sessionId" in change and "startTime" in change:
            self.take_fields(change)
        self.name = text_in(change, "summary") or self.name
        self.cwd = self.cwd or _first_folder(change)
        if change.get("messages"):
            try:
                text = raw.decode("utf-8", "surrogateescape")
                begin = text.index("{", text.index('"$set"')) if "$set" in value else 0
                end = text.rindex("}") if "$set" in value else len(text)
                start = len(text[:begin].encode("utf-8", "surrogateescape"))
                for _, inside, part, message in _parts(text[begin:end])[1]:
                    if text_in(message, "type") is not None:
                        self.read_object((line, offset + start + inside, part, message))
            except ValueError:
                self.warnings.add(line, "damaged line", "its messages cannot be distinguished")

    def take_fields(self, fields: Json) -> None:
        """Read the fields that the document, or its first line, has besides its messages."""
        self.session = {"id": fields.get("sessionId"), "timestamp": fields.get("startTime")}
        self.name = text_in(fields, "summary") or self.name
        self.cwd = _first_folder(fields) or self._root()
        if fields.get("kind") == "subagent" and self.path.parent.parent.name == "chats":
            self.parent, self.agent = self.path.parent.name, text_in(fields, "sessionId")

    def _root(self) -> str | None:
        """Return the project folder from the file `.project_root` above the chats; None if there is none."""
        try:
            return (self.path.parent.parent / ".project_root").read_text(encoding="utf-8").strip() or None
        except (OSError, ValueError):
            return None


def _first_folder(fields: Json) -> str | None:
    folders = fields.get("directories")
    return folders[0] if isinstance(folders, list) and folders and isinstance(folders[0], str) else None


class OpenCodeReading(ChainReading):
    """Reads a session as `opencode export` writes it."""

    format: Format = "opencode"

    def read_object(self, piece: Found) -> None:
        value = piece[3]
        info = as_object(value.get("info"))
        role, at = text_in(info, "role"), as_object(info.get("time")).get("created")
        position = self.chained(piece, info.get("id"), at, "message", role, role in ("user", "assistant"))
        if info.get("summary") is True:
            self.compacted(position, _texts(value))

    def take_fields(self, fields: Json) -> None:
        """Read the fields that the document has besides its messages."""
        info = as_object(fields.get("info"))
        self.session = {"id": info.get("id"), "timestamp": as_object(info.get("time")).get("created")}
        self.name, self.cwd = text_in(info, "title"), text_in(info, "directory")
        for name in as_list(fields.get("damaged")):
            self.warnings.add(1, "damaged file", f"{name} is left out: it is no JSON object")
        if above := text_in(info, "parentID"):
            self.parent, self.agent = above, text_in(info, "id")


# ---- steps of an entry -----------------------------------------------------------------------------


class CodexSteps:
    """Makes steps of the lines of a rollout, in order. The turn names the model, and a patch names its files."""

    def __init__(self) -> None:
        self.model = ""
        self._folder: str | None = None
        self._counted: Any = None
        self._patches: dict[str, int] = {}

    def __call__(self, body: Mapping[str, Any]) -> Iterator[Step]:
        payload, kind = _payload(body), body.get("type")
        if kind == "turn_context":
            self.model = text_in(payload, "model") or self.model
            self._folder = text_in(payload, "cwd") or self._folder
        elif kind == "compacted":
            yield SummaryStep("compaction", text_in(payload, "message") or "")
        elif kind == "event_msg":
            yield from self._event(payload)
        else:
            yield from self._item(payload)

    def _event(self, payload: Json) -> Iterator[Step]:
        kind = payload.get("type")
        if kind == "turn_aborted":
            yield Stopped("aborted")
        elif kind == "task_complete":
            yield Stopped("done")
        elif kind == "error":
            yield Stopped("error", text_in(payload, "message") or "")
        elif kind == "token_count":
            info = as_object(payload.get("info"))
            used, total = as_object(info.get("last_token_usage")), info.get("total_token_usage")
            if used and (total is None or total != self._counted):
                self._counted = total
                taken, made, cached = counts(used, "input_tokens", "output_tokens", "cached_input_tokens")
                yield TokensTaken(None, "openai", self.model, max(0, taken - cached), made, cached)

    def _item(self, payload: Json) -> Iterator[Step]:
        kind, call = payload.get("type"), text_in(payload, "call_id") or text_in(payload, "id") or ""
        if kind == "message":
            yield from self._message(payload)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            yield from self._call(call, payload)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            text, failed = _output(payload.get("output"))
            for number in range(self._patches.get(call, 1)):
                yield ToolAnswer(f"{call}#{number}" if number else call, None, text, failed)

    def _message(self, payload: Json) -> Iterator[Step]:
        text = _plain(payload.get("content"))
        if payload.get("role") == "assistant":
            if text.strip():
                yield SpokenMessage("assistant", text.strip())
        elif payload.get("role") == "user":
            if _ABORTED.match(text):
                yield Stopped("aborted")
            elif not _GIVEN.match(text) and (words := own_words(text)):
                yield SpokenMessage("user", words)

    def _call(self, call: str, payload: Json) -> Iterator[Step]:
        tool = text_in(payload, "name") or "shell"
        given = _arguments(payload.get("arguments", payload.get("input", payload.get("action"))))
        command = given.get("command", given.get("cmd"))
        if isinstance(command, list):
            command = " ".join(map(str, command[2:] if command[1:2] in (["-lc"], ["-c"]) else command))
        patch = (
            given.get("input", "") if tool == "apply_patch" else command if isinstance(command, str) else ""
        )
        files = _PATCHED.findall(patch) if isinstance(patch, str) and "*** Begin Patch" in patch else []
        folder = text_in(given, "workdir") or self._folder
        if not files:
            yield ToolCall(
                call, tool, {**given, **({"command": command} if command else {})}, self.model, folder
            )
            return
        self._patches[call] = len(files)
        for number, file in enumerate(files):
            id = f"{call}#{number}" if number else call
            yield ToolCall(id, "apply_patch", {"path": file.strip()}, self.model, folder)


class CopilotSteps:
    """Makes steps of the events of Copilot CLI. A call is known from the message that requests it, or from its start."""

    def __init__(self) -> None:
        self._model, self._called = "", set[str]()

    def __call__(self, body: Mapping[str, Any]) -> Iterator[Step]:
        kind, data = body.get("type"), as_object(body.get("data"))
        if "data" not in body:
            yield from _copilot_once(body)
            return
        named = (text_in(data, name) for name in ("model", "newModel", "selectedModel"))
        self._model = next(filter(None, named), self._model)
        if kind == "user.message":
            if words := own_words(text_in(data, "content") or ""):
                yield SpokenMessage("user", words)
        elif kind == "assistant.message":
            yield from self._answer(data)
        elif kind == "tool.execution_start":
            yield from self._call(data, "toolName")
        elif kind == "tool.execution_complete":
            result, error = data.get("result"), as_object(data.get("error"))
            text = (
                text_in(error, "message")
                or (result if isinstance(result, str) else text_in(as_object(result), "content"))
                or ""
            )
            failed = data.get("success") is False
            refused = failed and error.get("code") in ("denied", "rejected", "aborted")
            yield ToolAnswer(
                text_in(data, "toolCallId") or "", text_in(data, "toolName"), text, failed, refused
            )
        elif kind == "session.compaction_complete":
            yield SummaryStep("compaction", text_in(data, "summaryContent") or "")
        elif kind == "abort":
            yield Stopped("aborted")
        elif kind == "session.error":
            yield Stopped("error", text_in(data, "message") or "")
        elif kind == "session.shutdown":
            for model, metrics in as_object(data.get("modelMetrics")).items():
                used = as_object(as_object(metrics).get("usage"))
                taken, read, written = counts(used, "inputTokens", "cacheReadTokens", "cacheWriteTokens")
                yield TokensTaken(None, "github", str(model), max(0, taken - read), 0, read, written)

    def _answer(self, data: Json) -> Iterator[Step]:
        for request in as_objects(data.get("toolRequests")):
            yield from self._call(request, "name")
        if text := (text_in(data, "content") or "").strip():
            yield SpokenMessage("assistant", text)
        if made := as_count(data.get("outputTokens")):
            yield TokensTaken(text_in(data, "messageId"), "github", self._model, 0, made)
        if not data.get("toolRequests") and text:
            yield Stopped("done")

    def _call(self, data: Json, name: str) -> Iterator[Step]:
        id = text_in(data, "toolCallId") or ""
        if id not in self._called:
            self._called.add(id)
            yield ToolCall(id, text_in(data, name) or "", _arguments(data.get("arguments")), self._model)


def _copilot_once(body: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps of an entry of a Copilot CLI document: of its timeline, or of its messages."""
    said = _COPILOT_ONCE.get(str(body.get("type") or body.get("role")))
    text = text_in(body, "text") or _plain(body.get("content"))
    id = text_in(body, "callId") or text_in(body, "tool_call_id") or ""
    if said == "user":
        if words := own_words(text):
            yield SpokenMessage("user", words)
    elif said == "assistant":
        asked = [as_object(each) for each in as_list(body.get("tool_calls"))]
        if text.strip():
            yield SpokenMessage("assistant", text.strip())
        for each in asked:
            named = as_object(each.get("function"))
            yield _called(
                text_in(each, "id") or "", text_in(named, "name") or "", _arguments(named.get("arguments"))
            )
        if text.strip() and not asked:
            yield Stopped("done")
    elif said == "toolResult":
        result = as_object(body.get("result"))
        tool = text_in(body, "name") or text_in(body, "toolTitle")
        if tool is not None:
            yield _called(id, tool, _arguments(body.get("arguments")))
        refused = result.get("type") in ("rejected", "denied")
        failed = refused or result.get("type") in ("failure", "error")
        yield ToolAnswer(id, tool, text_in(result, "log") or text, failed, refused)


def _called(id: str, tool: str, given: Json) -> ToolCall:
    """Return a tool call. A call of the editor is named by its command (`view`, `create`)."""
    does = given.get("command")
    if tool == "str_replace_editor" and does in ("view", "create"):
        tool = str(does)
    given = {
        name: value for name, value in given.items() if name != "command" or tool not in ("view", "create")
    }
    return ToolCall(id, tool, given, "")


def gemini_steps(body: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps of a message of Gemini CLI."""
    kind, text, model = body.get("type"), _plain(body.get("content")), str(body.get("model") or "")
    if kind == "user":
        if words := own_words(text):
            yield SpokenMessage("user", words)
        return
    if kind == "error":
        yield Stopped("error", text)
    if kind != "gemini":
        return
    calls = as_objects(body.get("toolCalls"))
    if text.strip() and calls:
        yield SpokenMessage("assistant", text.strip())
    for each in calls:
        id, tool, status = text_in(each, "id") or "", text_in(each, "name") or "", each.get("status")
        yield ToolCall(id, tool, as_object(each.get("args")), model)
        if "result" in each or status in ("success", "error", "cancelled"):
            failed = status in ("error", "cancelled")
            yield ToolAnswer(id, tool, _responses(each.get("result")), failed, status == "cancelled")
    if text.strip() and not calls:
        yield SpokenMessage("assistant", text.strip())
        yield Stopped("done")
    tokens = as_object(body.get("tokens"))
    if tokens:
        taken, made, thought, cached = counts(tokens, "input", "output", "thoughts", "cached")
        yield TokensTaken(
            text_in(body, "id"), "google", model, max(0, taken - cached), made + thought, cached
        )


def opencode_steps(body: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps of a message of OpenCode."""
    info = as_object(body.get("info"))
    role, model = info.get("role"), str(info.get("modelID") or "")
    folder = text_in(as_object(info.get("path")), "cwd")
    if role == "user":
        if words := own_words(_texts(body)):
            yield SpokenMessage("user", words)
        return
    if role != "assistant":
        return
    if info.get("summary") is True:
        yield SummaryStep("compaction", _texts(body))
    for part in as_objects(body.get("parts")) if info.get("summary") is not True else ():
        if part.get("type") == "text" and (said := (text_in(part, "text") or "").strip()):
            yield SpokenMessage("assistant", said)
        elif part.get("type") == "tool":
            state, id = as_object(part.get("state")), text_in(part, "callID") or ""
            tool = text_in(part, "tool") or ""
            yield ToolCall(id, tool, as_object(state.get("input")), model, folder)
            if state.get("status") in ("completed", "error"):
                [code] = counts(as_object(state.get("metadata")), "exit")
                failed = state["status"] == "error" or code > 0
                yield ToolAnswer(id, tool, text_in(state, "error") or text_in(state, "output") or "", failed)
    tokens = as_object(info.get("tokens"))
    cost: Any = info.get("cost")
    if tokens:
        taken, made, thought = counts(tokens, "input", "output", "reasoning")
        read, written = counts(as_object(tokens.get("cache")), "read", "write")
        known = isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost > 0
        provider, priced = str(info.get("providerID") or ""), float(cost) if known else None
        yield TokensTaken(text_in(info, "id"), provider, model, taken, made + thought, read, written, priced)
    error = as_object(info.get("error"))
    if error:
        aborted = error.get("name") == "MessageAbortedError"
        why = text_in(as_object(error.get("data")), "message") or ""
        yield Stopped("aborted" if aborted else "error", why)
    elif info.get("finish") == "stop" or (
        "finish" not in info and "completed" in as_object(info.get("time"))
    ):
        yield Stopped("done")


STEPS: Mapping[str, Callable[[], Callable[[Mapping[str, Any]], Iterator[Step]]]] = {
    "codex": CodexSteps,
    "copilot": CopilotSteps,
    "gemini": lambda: gemini_steps,
    "opencode": lambda: opencode_steps,
}
"""By format: makes the function that turns entries into steps. Each run of entries needs its own."""
OTHER_READINGS: Mapping[str, type[ChainReading]] = {
    each.format: each for each in (CodexReading, CopilotReading, GeminiReading, OpenCodeReading)
}
"""By format: the reader of lines, or of a file that is one document."""


def _payload(value: Mapping[str, Any]) -> Json:
    payload = value.get("payload")
    return payload if isinstance(payload, dict) else dict(value)


def _arguments(given: Any) -> Json:
    """Return the arguments of a call. They may be given as JSON text or as plain text."""
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            return {"input": given}
        return value if isinstance(value, dict) else {"input": given}
    return as_object(given)


def _output(given: Any) -> tuple[str, bool]:
    """Return the output of a tool, and True if the call failed."""
    text = _plain(given)
    inner = _arguments(text) if text.startswith("{") else {}
    if "output" in inner and isinstance(inner["output"], str):
        return inner["output"], as_count(as_object(inner.get("metadata")).get("exit_code")) > 0
    code = _EXITED.search(text[:400])
    return text, code is not None and code[1] != "0"


def _responses(given: Any) -> str:
    """Return the text of a Gemini CLI tool result."""
    parts = given if isinstance(given, list) else [given]
    found = [as_object(as_object(as_object(part).get("functionResponse")).get("response")) for part in parts]
    return "\n".join(text_in(each, "error") or text_in(each, "output") or "" for each in found).strip()


def _texts(body: Mapping[str, Any]) -> str:
    """Return the texts of an OpenCode message, except synthetic ones."""
    parts = (part for part in as_objects(body.get("parts")) if part.get("type") == "text")
    return "\n".join(
        text for part in parts if part.get("synthetic") is not True and (text := text_in(part, "text"))
    )


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in as_objects(content) if (text := text_in(part, "text")))
