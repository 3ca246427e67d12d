"""Reads the lines of a session file as entries, in one pass: pi's session files (versions 1 to 3) and those of Claude Code.

Files come from programs that were killed, forked, merged and upgraded. So no content of a line raises here: it is kept, repaired if there is
only one possible repair, or reported as a warning. The file is never written.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from orjson import JSONDecodeError, loads

from graphstore.sessions.transcripts.entries import Entries
from graphstore.values.models import Json, Value
from graphstore.values.period import EPOCH

Format = Literal["pi", "claude", "codex", "copilot", "gemini", "opencode"]
Progress = Callable[[int, int], None]
Found = tuple[int, int, bytes, Json]
"""An object of a file: its line, its offset, its bytes, and their value."""

PI_METADATA = frozenset({"label", "session_info"})
CLAUDE_CHAIN = frozenset({"user", "assistant", "system", "attachment"})
CLAUDE_METADATA = frozenset({"summary", "file-history-snapshot", "queue-operation", "progress"})
MOST_WARNINGS = 1_000
"""The most warnings kept with their place. All are counted."""
BLOCK, STEP = 1 << 20, 4 << 20
BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_ABSENT: Any = object()
_SECONDS_END = 1e11  # a smaller number is in seconds: as milliseconds it would be before 1974
_SURROGATES = re.compile("[\ud800-\udfff]")
_BEGINS = re.compile(r'\{\s*"(?:type|parentUuid|uuid|id|timestamp)"')
_TRIES = 16


class Warning(Value):
    """What could not be taken as it stands: the line (0 for the whole file), why, in words that can be counted, and what was there."""

    line: int
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        text = f"line {self.line}: {self.reason}" if self.line else self.reason
        return f"{text} ({self.detail})" if self.detail else text


class Warnings:
    """Keeps the first warnings of a file in full, and counts all of them by reason."""

    def __init__(self) -> None:
        self.kept: list[Warning] = []
        self.lines: dict[str, array[int]] = {}

    def counts(self, until: int | None = None) -> dict[str, int]:
        """Return the number of warnings for each reason; with `until`, only those up to that line."""
        found = {
            reason: len(lines) if until is None else sum(line <= until for line in lines)
            for reason, lines in self.lines.items()
        }
        return {reason: count for reason, count in found.items() if count}

    def add(self, line: int, reason: str, detail: object = "") -> None:
        self.lines.setdefault(reason, array("I")).append(line)
        if len(self.kept) < MOST_WARNINGS:
            text = str(detail)
            self.kept.append(
                Warning(line=line, reason=reason, detail=text if len(text) <= 120 else f"{text[:119]}…")
            )


class Header(Value):
    """What a file says of its session. Where it has no line for it (Claude Code), it is put together from the entries."""

    format: Format
    version: int | None = None
    session_id: str
    timestamp: datetime | None
    cwd: str | None
    parent_session: str | None = None
    """The path of the parent's file, as it was written there."""
    parent_session_id: str | None
    agent: str | None = None
    """The name of the sub-agent whose work it is; its parent is the session it worked for."""
    raw: Json


# ---- from bytes to objects --------------------------------------------------------------------


class Lines:
    """Reads the JSON objects of a file in order. Anything else is reported to `warnings`. `size` is the number of bytes read so far."""

    def __init__(
        self, file: Iterable[bytes], total: int, warnings: Warnings, progress: Progress | None
    ) -> None:
        self.file, self.total, self.warnings, self.progress = file, total, warnings, progress
        self.size = 0

    def __iter__(self) -> Iterator[Found]:
        number = at = reported = 0
        for line in self.file:
            number += 1
            start = at
            at += len(line)
            self.size = at
            if number == 1 and line.startswith(BOM):
                line, start = line[3:], 3
            raw = line.strip(_BLANK)
            if not raw:
                continue
            if line[0] in _BLANK:
                start += len(line) - len(line.lstrip(_BLANK))
            try:
                value = loads(raw)
            except JSONDecodeError as error:
                yield from self._mended(number, start, raw, line.endswith(b"\n"), error)
            else:
                if type(value) is dict:
                    yield number, start, raw, value
                else:
                    self.warnings.add(number, "no object", raw[:80].decode("utf-8", "replace"))
            if self.progress and at - reported >= STEP:
                reported = at
                self.progress(at, self.total)
        if self.progress:
            self.progress(at, max(at, self.total))

    def _mended(self, number: int, start: int, raw: bytes, ended: bool, error: Exception) -> Iterator[Found]:
        found, left = pieces(raw)
        for offset, part, value in found:
            yield number, start + offset, part, value
        if left:
            self.warnings.add(
                number, "damaged line" if ended else "torn last line", f"{left} bytes left out: {error}"
            )
        elif len(found) > 1:
            self.warnings.add(number, "several objects on one line", f"{len(found)} objects, all kept")
        else:
            self.warnings.add(number, "mended line", f"{error}")


def pieces(raw: bytes) -> tuple[list[tuple[int, bytes, Json]], int]:
    """Return the objects on a line that is not one object: offset, bytes and value of each; and the number of bytes that belong to none."""
    text = raw.decode("utf-8", "surrogateescape")
    found: list[tuple[int, bytes, Json]] = []
    at = byte = left = tries = 0
    whole = True  # nothing was damaged so far: objects follow one another
    while at < len(text):
        value, end = _object_at(text, at)
        fits = value is not None and (whole or ("type" in value and "timestamp" in value))
        if not fits:
            # A torn object contains objects of its own. So reading resumes only at one that looks like an entry.
            following = _BEGINS.search(text, max(end, at + 1)) if tries < _TRIES else None
            end, whole, tries = following.start() if following else len(text), False, tries + 1
        part = text[at:end].encode("utf-8", "surrogateescape")
        if fits and value is not None:
            bare = part.strip(_BLANK)
            found.append((byte + len(part) - len(part.lstrip(_BLANK)), bare, value))
        else:
            left += len(part.strip(_BLANK))
        at, byte = end, byte + len(part)
    return found, left


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_SPACE = re.compile(r"[ \t\r\n]*")


def _object_at(text: str, at: int) -> tuple[Json | None, int]:
    """Return the object that begins at `at` after blanks, and its end; None and `at` if there is none."""
    begin = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches an empty string too
    try:
        value, end = _DECODER.raw_decode(text, begin)
        if not isinstance(value, dict):
            return None, end
        plain = _SURROGATES.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        cleaned: Json = loads(plain)
    except (ValueError, RecursionError):
        return None, at
    return cleaned, _SPACE.match(text, end).end()  # type: ignore[union-attr]


def body_of(raw: bytes) -> Json | None:
    """Return the object that the bytes of an entry encode; None if they encode none."""
    try:
        value = loads(raw)
    except JSONDecodeError:
        found, _ = pieces(raw)
        value = found[0][2] if found else None
    return value if isinstance(value, dict) else None


def moment_of(value: Any) -> tuple[datetime | None, str | None]:
    """Return the instant of a field, and what is wrong with it. A string without a zone is UTC; a number is milliseconds (seconds if small)."""
    try:
        if type(value) is str:
            at = datetime.fromisoformat(value)
            if at.tzinfo is UTC:
                return at, None
            if at.tzinfo is None:
                return at.replace(tzinfo=UTC), "timestamp without zone"
            return at.astimezone(UTC), None
        if type(value) is int or type(value) is float:
            return EPOCH + timedelta(milliseconds=value if abs(value) >= _SECONDS_END else value * 1000), None
    except (ValueError, OverflowError):
        pass
    return None, "no timestamp" if value is None else "timestamp that is none"


# ---- from objects to entries ------------------------------------------------------------------


class SessionReading:
    """Accumulates the entries and properties of a file while its objects are read."""

    def __init__(self, path: Path, warnings: Warnings) -> None:
        self.path, self.warnings = path, warnings
        self.entries = Entries()
        self.positions: dict[str, int] = {}
        self.parents = self.entries.parents
        self.sums = array("I")
        self.parallel = bytearray()  # 1: a parallel part of a reply, so its parent shows no jump
        self.boundary_bodies: dict[int, Json] = {}  # the fields of boundary entries that boundaries need
        self.name: str | None = None
        self.titles: dict[int, str] = {}
        """The agent's titles for the work at entries, by position."""
        self.titles_elsewhere: dict[str, str] = {}
        """The agent's titles for the work at entries of another file, by entry id."""
        self.header_at: int | None = None
        self.raw_header: Json = {}
        self.orphans: set[int] = set()
        self.copies = 0
        """The number of leading entries that are marked as another session's."""
        self._objects = 0
        self._repeats: dict[str, int] = {}

    def read_object(self, piece: Found) -> None:
        raise NotImplementedError

    def header(self) -> Header:
        raise NotImplementedError

    def add(
        self,
        piece: Found,
        given: Any,
        parent: Any,
        *,
        kind: str,
        at: datetime | None,
        content: bool,
        role: str | None,
        sidechain: bool = False,
        parallel: bool = False,
    ) -> int:
        """Add an entry. Return its position."""
        line, offset, raw, _ = piece
        entries = self.entries
        position = len(entries.ids)
        index = self.positions
        if type(given) is str and given and given not in index:
            id = given
        else:
            id = self._made(line, given, raw)
        if parent is None:
            above = -1
        elif parent is _ABSENT:
            above = position - 1
        else:
            above = index.get(parent, -1)
            if above < 0:
                entries.foreign[position] = parent
        entries.add(
            id,
            above,
            (line, offset, len(raw)),
            kind=kind,
            role=role,
            at=at,
            content=content,
            sidechain=sidechain,
        )
        index[id] = position
        self.sums.append(crc32(raw))
        self.parallel.append(parallel)
        return position

    def _made(self, line: int, given: Any, raw: bytes) -> str:
        """Return an id derived from the line, so that the line has the same id in a grown file and in a fork."""
        if type(given) is str and given:
            self.warnings.add(line, "duplicate id", given)
        id = blake2b(raw, digest_size=8).hexdigest()
        if id not in self.positions:
            return id
        number = self._repeats.get(id, 1) + 1
        while f"{id}-{number}" in self.positions:
            number += 1
        self._repeats[id] = number
        return f"{id}-{number}"

    def instant(self, line: int, value: Json, needed: bool) -> datetime | None:
        """Return the instant of an entry with a faulty timestamp: the timestamp if it can be repaired, else that of its message."""
        given = value.get("timestamp")
        at, wrong = moment_of(given)
        message = value.get("message")
        if at is None and type(message) is dict:
            at, _ = moment_of(message.get("timestamp"))
        if wrong and (given is not None or (at is None and needed)):
            self.warnings.add(line, wrong, "" if given is None else given)
        return at

    def kind_of(self, line: int, value: Json) -> str:
        kind = value.get("type")
        if type(kind) is str and kind:
            return kind
        self.warnings.add(line, "entry without type", "" if kind is None else kind)
        return "unknown"

    def parent_of(self, line: int, parent: Any) -> str | None:
        if parent is None or (type(parent) is str and parent):
            return parent
        self.warnings.add(line, "parent id that is none", parent)
        return None

    def finish(self) -> None:
        """Resolve parents that come later in the file, report missing ones, and break circles of parents."""
        later = []
        for position, parent in self.entries.foreign.items():
            above = self.positions.get(parent, -1)
            self.parents[position] = above
            if above < 0:
                self.warnings.add(self.entries.line(position), "orphan", f"there is no parent {parent}")
            else:
                later.append(position)
        self._open_circles(later)
        self.orphans = {position for position in self.entries.foreign if self.parents[position] < 0}

    def _open_circles(self, later: list[int]) -> None:
        # Every circle contains a parent that comes later, so it is enough to start from these.
        walked = bytearray(len(self.entries))
        for begin in later:
            trail = []
            at = begin
            while at >= 0 and not walked[at]:
                walked[at] = 1
                trail.append(at)
                at = self.parents[at]
            if at >= 0 and walked[at] == 1:
                circle = trail[trail.index(at) :]
                first = min(circle)
                self.parents[first] = -1
                self.warnings.add(self.entries.line(first), "circle of parents", f"{len(circle)} entries")
            for at in trail:
                walked[at] = 2


class PiReading(SessionReading):
    """Reads entries of pi. Without ids (version 1) they are chained in file order."""

    def read_object(self, piece: Found) -> None:
        line, _, _, value = piece
        get = value.get
        kind = get("type")
        self._objects += 1
        if kind == "session":
            return self._take_header(line, value)
        if type(kind) is not str or not kind:
            kind = self.kind_of(line, value)
        given = get("id")
        parent = get("parentId", _ABSENT)
        if type(given) is not str or not given:
            if given is not None or not self.unnumbered:
                self.warnings.add(line, "entry without id", "" if given is None else given)
        elif parent is _ABSENT:
            self.warnings.add(line, "entry without parent id", given)
        if parent is not None and parent is not _ABSENT and (type(parent) is not str or not parent):
            parent = self.parent_of(line, parent)
        role = None
        message = get("message")
        if type(message) is dict:
            role = message.get("role")
            if type(role) is not str:
                role = None
        content = kind not in PI_METADATA
        at, wrong = moment_of(get("timestamp"))
        if wrong:
            at = self.instant(line, value, content)
        position = self.add(piece, given, parent, kind=kind, at=at, content=content, role=role)
        if kind == "compaction" or kind == "branch_summary":
            self.boundary_bodies[position] = self._boundary_fields(value)
        elif kind == "session_info":
            name = get("name")
            self.name = name if type(name) is str and name else None
        return None

    @property
    def unnumbered(self) -> bool:
        """Return True if the entries may have no ids: the header is of version 1, or there is no header so far."""
        return self.raw_header.get("version") in (None, 1)

    def _boundary_fields(self, value: Json) -> Json:
        fields: Json = {
            key: value[key]
            for key, kinds in (
                ("summary", (str,)), ("fromId", (str,)), ("firstKeptEntryId", (str,)),
                ("tokensBefore", (int, float)), ("tokensAfter", (int, float)), ("firstKeptEntryIndex", (int,)),
            )
            if isinstance(value.get(key), kinds) and not isinstance(value[key], bool)
        }  # fmt: skip
        return fields

    def _take_header(self, line: int, value: Json) -> None:
        if self.header_at is not None:
            self.warnings.add(line, "second header", value.get("id", ""))
            return
        if self.entries:
            self.warnings.add(line, "header not first", f"{len(self.entries)} entries before it")
        self.header_at, self.raw_header = self._objects - 1, value

    def entry_at_index(self, number: int) -> str | None:
        """Return the id of the entry that was object number `number` of the file. The header counts as an object."""
        if self.header_at is not None:
            if number == self.header_at:
                return None
            number -= number > self.header_at
        return self.entries.ids[number] if 0 <= number < len(self.entries) else None

    def finish(self) -> None:
        if self.header_at is None:
            self.warnings.add(0, "no header")
        super().finish()
        for fields in self.boundary_bodies.values():
            number = fields.pop("firstKeptEntryIndex", None)
            kept = self.entry_at_index(number) if number is not None else None
            if kept is not None:
                fields.setdefault("firstKeptEntryId", kept)

    def header(self) -> Header:
        raw = self.raw_header
        version = raw.get("version")
        if version is None and self.header_at is not None:
            version = 1
        if version not in (1, 2, 3, None) or isinstance(version, bool | float):
            self.warnings.add(0, "unknown version", version)
            version = None
        at, wrong = moment_of(raw.get("timestamp"))
        if wrong and self.header_at is not None:
            self.warnings.add(0, f"header: {wrong}", raw.get("timestamp", ""))
        parent = text_in(raw, "parentSession") or text_in(raw, "branchedFrom")
        return Header(
            format="pi",
            version=version,
            session_id=text_in(raw, "id") or session_id_in(self.path.name),
            timestamp=at,
            cwd=text_in(raw, "cwd"),
            parent_session=parent,
            parent_session_id=None if parent is None else session_id_in(parent),
            raw=raw,
        )


class ClaudeReading(SessionReading):
    """Reads entries of Claude Code. The file has no header line unless an extraction wrote one; sidechains have a flag."""

    def __init__(self, path: Path, warnings: Warnings) -> None:
        super().__init__(path, warnings)
        self._session_id: str | None = None
        self._agent: str | None = None
        self._cwd: str | None = None
        self._begins: datetime | None = None
        self._main = False  # some content entry is not on a sidechain
        self._replies: dict[str, str] = {}  # recent entries and the reply that each is a part of
        self._summaries: dict[str, str] = {}
        self._given_name: str | None = None  # set by the user
        self._forked_from: str | None = None

    def read_object(self, piece: Found) -> None:
        line, _, _, value = piece
        get = value.get
        kind = get("type")
        if kind is None and type(get("_type")) is str:
            return self._take_header(line, value)
        if type(kind) is not str or not kind:
            kind = self.kind_of(line, value)
        given = get("uuid")
        named = type(given) is str and given
        content = kind not in CLAUDE_METADATA and bool(named or kind in CLAUDE_CHAIN)
        if content and not named:
            self.warnings.add(line, "entry without id", "" if given is None else given)
        sidechain = get("isSidechain") is True
        compacted = kind == "system" and get("subtype") == "compact_boundary"
        above = get("parentUuid", _ABSENT if content and not named else None)
        parent = above if above is _ABSENT else self.parent_of(line, above)
        if compacted and parent is None:
            parent = self.parent_of(line, get("logicalParentUuid"))
        role, parallel = self._role_of(value, given, parent)
        at, wrong = moment_of(get("timestamp"))
        if wrong:
            at = self.instant(line, value, content)
        position = self.add(
            piece, given if named else None, parent, kind=kind, at=at, content=content, role=role, sidechain=sidechain, parallel=parallel
        )  # fmt: skip
        if compacted or get("isCompactSummary") is True:
            self._take_compaction(position, value, compacted)
        self._notice(value, kind, content, sidechain, at)
        if kind == "ai-title" and (title := text_in(value, "aiTitle")):
            self.titles[position] = title
        forked = get("forkedFrom")
        if type(forked) is dict and content:
            self.copies = position + 1
            self._forked_from = text_in(forked, "sessionId") or self._forked_from
        return None

    def _take_header(self, line: int, value: Json) -> None:
        if self.raw_header:
            self.warnings.add(line, "second header", value.get("sessionId", ""))
        else:
            self.raw_header = value

    def _role_of(self, value: Json, given: Any, parent: Any) -> tuple[str | None, bool]:
        """Return the role, and True if the entry is one of several parallel parts: results of tools, or parts of the parent's reply."""
        message = value.get("message")
        if type(message) is not dict:
            return None, False
        role = message.get("role")
        content = message.get("content")
        if (
            role == "user"
            and type(content) is list
            and any(type(block) is dict and block.get("type") == "tool_result" for block in content)
        ):
            return "toolResult", True
        reply = message.get("id")
        if role == "assistant" and type(reply) is str and type(given) is str:
            replies = self._replies
            together = type(parent) is str and replies.get(parent) == reply
            if len(replies) >= 1024:
                replies.clear()
            replies[given] = reply
            return role, together
        return (role if type(role) is str else None), False

    def _take_compaction(self, position: int, value: Json, compacted: bool) -> None:
        summary = message_text(value.get("message")) if not compacted else None
        above = self.parents[position]
        if not compacted and above in self.boundary_bodies:
            self.boundary_bodies[above]["summary"] = summary
            return
        fields: Json = {"compaction": True}
        if summary:
            fields["summary"] = summary
        about = value.get("compactMetadata")
        tokens = about.get("preTokens") if type(about) is dict else None
        if isinstance(tokens, int) and not isinstance(tokens, bool):
            fields["tokensBefore"] = tokens
        self.boundary_bodies[position] = fields

    def _notice(self, value: Json, kind: str, content: bool, sidechain: bool, at: datetime | None) -> None:
        if content:
            self._main = self._main or not sidechain
            if self._begins is None:
                self._begins = at
            self._cwd = self._cwd or text_in(value, "cwd")
            self._session_id = self._session_id or text_in(value, "sessionId")
            self._agent = self._agent or text_in(value, "agentId")
        elif kind == "custom-title":
            self._given_name = text_in(value, "customTitle") or self._given_name
        elif kind == "summary":
            leaf, summary = text_in(value, "leafUuid"), text_in(value, "summary")
            if leaf and summary:
                self._summaries[leaf] = summary

    def finish(self) -> None:
        super().finish()
        called = list(self.titles.values())
        # A summary may describe another session. It counts here only if this file has the entry that it names.
        here = {leaf: summary for leaf, summary in self._summaries.items() if leaf in self.positions}
        self.titles |= {self.positions[leaf]: summary for leaf, summary in here.items()}
        self.titles_elsewhere = {
            leaf: summary for leaf, summary in self._summaries.items() if leaf not in here
        }
        self.name = self._given_name or next(reversed([*here.values(), *called]), None)

    def header(self) -> Header:
        raw = self.raw_header
        stem = self.path.name.removesuffix(".jsonl")
        aside = self._agent is not None or self._session_id not in (None, stem)
        agent = bool(self.entries) and self._begins is not None and aside and not self._main
        parent = text_in(raw, "parentSessionId") or (self._session_id if agent else None)
        parent = parent or self._forked_from
        own = text_in(raw, "sessionId") or (stem if agent else self._session_id) or stem
        return Header(
            format="claude",
            session_id=own,
            timestamp=self._begins,
            cwd=self._cwd,
            parent_session_id=parent if parent != own else None,
            agent=(self._agent or stem.removeprefix("agent-")) if agent else None,
            raw=raw,
        )


# ---- shared by the readings -------------------------------------------------------------------

_NAMED = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z?_(.+)")


def session_id_in(path: str) -> str:
    """Return the session id in a file name `{time}_{id}.jsonl`; the name itself if it has another form."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".jsonl")
    found = _NAMED.fullmatch(name)
    return found[1] if found else name


def text_in(value: Mapping[str, Any], key: str) -> str | None:
    """Return the string in a field; None if it is empty or not a string."""
    found = value.get(key)
    return found if type(found) is str and found else None


def message_text(message: Any) -> str | None:
    """Return the text of a message, its blocks joined by line breaks."""
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [
        block["text"] for block in content if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    return "\n".join(parts) if parts else None
