"""The lines of a session file as entries, in one pass: pi's session files (version 1 to 3) and those of Claude Code.

Files come from programs that were killed, forked, merged and upgraded. So nothing here raises for what a line holds: it is kept, mended where
there is one way to, or reported as a warning, and the file is never written.
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
"""An object of a file: its line, its offset, its bytes, and what they say."""

PI_METADATA = frozenset({"label", "session_info"})
CLAUDE_CHAIN = frozenset({"user", "assistant", "system", "attachment"})
CLAUDE_METADATA = frozenset({"summary", "file-history-snapshot", "queue-operation", "progress"})
MOST_WARNINGS = 1_000
"""So many are kept with their place; all are counted."""
BLOCK, STEP = 1 << 20, 4 << 20
BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_ABSENT: Any = object()
_SECONDS_END = 1e11  # a smaller number is seconds: as milliseconds it would lie before 1974
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
    """The warnings of a file: the first ones as they are, all of them counted by reason."""

    def __init__(self) -> None:
        self.kept: list[Warning] = []
        self.lines: dict[str, array[int]] = {}

    def counts(self, until: int | None = None) -> dict[str, int]:
        """How many there are of each reason; with `until`, up to that line."""
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
    """The JSON objects of a file in order. What is none is reported to `warnings`; `size` is how much has been read."""

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
    """The objects that stand on a line which is not one: offset, bytes and value of each; and how many bytes belong to none.

    Bytes that are no UTF-8, and halves of surrogate pairs, read as U+FFFD.
    """
    text = raw.decode("utf-8", "surrogateescape")
    found: list[tuple[int, bytes, Json]] = []
    at = byte = left = tries = 0
    whole = True  # nothing damaged so far: objects follow one another
    while at < len(text):
        value, end = _object_at(text, at)
        fits = value is not None and (whole or ("type" in value and "timestamp" in value))
        if not fits:
            # what was torn holds objects of its own: only one that looks like an entry may go on from here
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
    """The object that begins at `at`, blanks before it skipped, and where it ends; None and `at` where there is none."""
    begin = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
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
    """What the bytes of an entry say."""
    try:
        value = loads(raw)
    except JSONDecodeError:
        found, _ = pieces(raw)
        value = found[0][2] if found else None
    return value if isinstance(value, dict) else None


def moment_of(value: Any) -> tuple[datetime | None, str | None]:
    """The instant a field says, and what is wrong with it. Text without a zone is UTC; a number is milliseconds (seconds when small)."""
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
    """What is known of a file while its objects come by."""

    def __init__(self, path: Path, warnings: Warnings) -> None:
        self.path, self.warnings = path, warnings
        self.entries = Entries()
        self.positions: dict[str, int] = {}
        self.parents = self.entries.parents
        self.sums = array("I")
        self.parallel = bytearray()  # 1: written beside other parts of one reply, no sign of a jump
        self.boundary_bodies: dict[int, Json] = {}  # what boundaries need of the bodies
        self.name: str | None = None
        self.titles: dict[int, str] = {}
        """What the agent called the work at an entry."""
        self.titles_elsewhere: dict[str, str] = {}
        """What it called the work at an entry of another file."""
        self.header_at: int | None = None
        self.raw_header: Json = {}
        self.orphans: set[int] = set()
        self.copies = 0
        """The leading entries that say they are another session's."""
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
        """Keep an entry; gives its position."""
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
        """An id that the same line gets wherever it stands, so that it is the same in a grown file and in a fork."""
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
        """The instant of an entry whose timestamp is not in order: what can be made of it, else its message's."""
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
        """Find the parents that come later, report those that never came, and open the circles."""
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
        # a circle has a parent that comes later, so only from there it can be met
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
    """Entries of pi. Without ids (version 1) they are chained in the order of the file."""

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
        """Whether nothing says that the entries have ids: a header of version 1, or none so far."""
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
        """The id of the entry that was the file's object of that number, the header counted."""
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
    """Entries of Claude Code. There is no header line, unless an extraction wrote one; sidechains have a flag."""

    def __init__(self, path: Path, warnings: Warnings) -> None:
        super().__init__(path, warnings)
        self._session_id: str | None = None
        self._agent: str | None = None
        self._cwd: str | None = None
        self._begins: datetime | None = None
        self._main = False  # some content is on no sidechain
        self._replies: dict[str, str] = {}  # the reply that recent entries are parts of
        self._summaries: dict[str, str] = {}
        self._given_name: str | None = None  # by the user
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
        """Who speaks; and whether it is one of several parts written side by side: results of tools, parts of the parent's reply."""
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
        # a summary may be about another session: it counts where the entry it names is here
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


# ---- what the readings share ------------------------------------------------------------------

_NAMED = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z?_(.+)")


def session_id_in(path: str) -> str:
    """The session id in a file's name `{time}_{id}.jsonl`; without it, the name."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".jsonl")
    found = _NAMED.fullmatch(name)
    return found[1] if found else name


def text_in(value: Mapping[str, Any], key: str) -> str | None:
    """The text of a field, or None for what is none or empty."""
    found = value.get(key)
    return found if type(found) is str and found else None


def message_text(message: Any) -> str | None:
    """The text of a message, its blocks joined."""
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
