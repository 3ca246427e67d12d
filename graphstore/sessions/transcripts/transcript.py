"""Reads files of agent sessions: their entries, boundaries, segments and statistics.

>>> transcript = transcripts.read("2026-01-25T10-00-00-000Z_a1b2.jsonl")
>>> [cut.type for cut in transcripts.boundaries(transcript)]
['compaction', 'resume']

A session is a tree of entries in the order they were written. Going back in it, a compaction, a pause and a fork are boundaries. A segment is a
chain of the tree between two boundaries. Metadata entries, which only name or mark, are kept, but walks up the tree skip them.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from math import fsum
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple
from zlib import crc32

from graphstore.errors import EngineError, InvalidError, NotFoundError
from graphstore.sessions.transcripts import session_bytes
from graphstore.sessions.transcripts.entries import NEVER, Entries, Entry
from graphstore.sessions.transcripts.file_formats import READINGS, format_of, stepper, why_not_read
from graphstore.sessions.transcripts.lines import (
    BLOCK,
    Format,
    Header,
    Lines,
    Progress,
    SessionReading,
    Warning,
    Warnings,
    body_of,
)
from graphstore.sessions.transcripts.other_agents import OTHER_READINGS, document_in
from graphstore.sessions.transcripts.steps import Spending, Step, TokensTaken, ToolAnswer, ToolCall, summed
from graphstore.values import file_access
from graphstore.values.models import Json, Value
from graphstore.values.period import MICROSECOND, instant, moment

BoundaryType = Literal["fork", "branch", "tree_jump", "compaction", "resume"]
PAUSE = timedelta(minutes=10)
_PAUSE, _MINUTE = PAUSE // MICROSECOND, 60_000_000
_NEAR = 1 << 16  # bytes; a smaller gap is read instead of skipped by a seek
_UNKNOWN = -2


class Boundary(Value):
    """Where the work was cut: at the content entry `entry_id`. `previous_entry_id` is the leaf that was left, or the content entry before."""

    type: BoundaryType
    entry_id: str
    timestamp: datetime | None
    previous_entry_id: str | None
    metadata: Json
    """`gap_minutes`, `summary`, `tokens_before`, `tokens_after`, `first_kept_entry_id`, `branch_point_id`, `parent_session`,
    `parent_session_id`, `shared_entries`, `orphan`, `copied`: those that apply."""


class Segment(Value):
    """Entries between two cuts: positions `[start, stop)`. What is counted and named are its content entries."""

    start_entry_id: str
    end_entry_id: str
    start: int
    stop: int
    entry_count: int
    start_timestamp: datetime | None
    end_timestamp: datetime | None
    boundaries: tuple[Boundary, ...]
    """Those that end it."""
    opened_by: tuple[Boundary, ...]
    copied: bool


class Tokens(Value):
    """What a model read and wrote."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0


class SessionStatistics(Value):
    """What a session's own part holds and took; what it copied from its parent is counted apart, in `copied`."""

    file: str
    format: Format
    version: int | None
    session_id: str
    name: str | None
    cwd: str | None
    parent_session: str | None
    entries: int
    content_entries: int
    copied: int
    segments: int
    boundaries: dict[str, int]
    types: dict[str, int]
    messages: dict[str, int]
    tools: dict[str, int]
    tool_errors: int
    models: dict[str, int]
    tokens: Tokens
    cost: float | None
    """In dollars, as the file says; None where it says nothing."""
    started_at: datetime | None
    ended_at: datetime | None
    duration_minutes: float | None
    warnings: dict[str, int]


class _Way(NamedTuple):
    """Holds the last content entry outside sidechains (`end`), and the positions of it and its content ancestors (`passed`)."""

    end: int
    passed: set[int]


class Transcript:
    """A session file that was read. Bodies stay in the file and are read on request.

    `copied`: the number of leading entries copied from the parent; `last_shared`: the last of them. `name`: the session's latest name. `size`: bytes
    that were read. `warnings`: the first 1,000; `warning_counts`: all, by reason.
    """

    def __init__(self, path: Path, reading: SessionReading, header: Header, size: int, copied: int) -> None:
        self.path, self.header, self.size, self.copied = path, header, size, copied
        self.entries = reading.entries
        self.name = reading.name
        self.warnings: list[Warning] = reading.warnings.kept
        self.warning_counts = reading.warnings.counts()
        self.last_shared = self.entries.ids[copied - 1] if copied else None
        self.titles_elsewhere = reading.titles_elsewhere
        self._reading = reading

    def __repr__(self) -> str:
        return f"<Transcript {self.header.session_id}: {len(self.entries)} entries, {len(self.warnings)} warnings>"

    def warnings_until(self, line: int) -> dict[str, int]:
        """Return the number of warnings up to a line, by reason."""
        return self._reading.warnings.counts(line)

    def title(self, segment: Segment, more: Mapping[str, str]) -> str | None:
        """Return the agent's latest title for the work of a segment. `more`: titles in other files, by entry."""
        titles = dict(self._reading.titles)
        for entry in more.keys() & self._reading.positions.keys():
            titles.setdefault(self._reading.positions[entry], more[entry])
        within = [at for at in titles if segment.start <= at < segment.stop]
        return titles[max(within)] if within else None

    def title_from(self, more: Mapping[str, str]) -> str | None:
        """Return the title that other files give to the latest entry here. `more`: titles by entry."""
        positions = self._reading.positions
        named = {positions[entry]: more[entry] for entry in more.keys() & positions.keys()}
        return named[max(named)] if named else None

    def entry(self, id: str) -> Entry:
        """Return the entry with this id. Raise NotFoundError if there is none."""
        position = self._reading.positions.get(id)
        if position is None:
            raise NotFoundError.nearest(f"entry in {self.path.name}", id, lambda: self._reading.positions)
        return self.entries[position]

    def ancestors(self, entry_id: str) -> Iterator[Entry]:
        """Yield the entries above one, parent first, metadata included. Stop at a root, at an orphan, or where a circle was broken."""
        parents = self._reading.parents
        at = parents[self.entry(entry_id).position]
        while at >= 0:
            yield self.entries[at]
            at = parents[at]

    def content_parent(self, entry_id: str) -> Entry | None:
        """Return the nearest content entry above, skipping metadata."""
        at = self._nearest[self.entry(entry_id).position]
        return self.entries[at] if at >= 0 else None

    def body(self, entry: Entry) -> Json:
        """Return the body of an entry, read from the file. Raise EngineError if the file has changed since, or is gone."""
        with self._opened() as file:
            file.seek(entry.offset)
            return self._body(entry, file.read(entry.length))

    def bodies(self, segment: Segment) -> Iterator[tuple[Entry, Json]]:
        """Yield each entry of a segment with its body, in order. Raise EngineError as `body` does."""
        return self.bodies_between(segment.start, segment.stop)

    def bodies_between(self, start: int, stop: int) -> Iterator[tuple[Entry, Json]]:
        """Yield each entry at the positions `[start, stop)` with its body."""
        for entry, raw in self._bytes(start, stop):
            yield entry, self._body(entry, raw)

    def digest(self, segment: Segment) -> str:
        """Return a digest of the bytes of a segment's entries, 32 hex characters. Raise EngineError as `body` does."""
        found = blake2b(digest_size=16)
        for _, raw in self._bytes(segment.start, segment.stop):
            found.update(raw)
            found.update(b"\n")
        return found.hexdigest()

    def _bytes(self, start: int, stop: int) -> Iterator[tuple[Entry, bytes]]:
        sums = self._reading.sums
        with self._opened() as file:
            at = 0
            for position in range(start, stop):
                entry = self.entries[position]
                gap = entry.offset - at
                if 0 <= gap < _NEAR:
                    file.read(gap)
                else:
                    file.seek(entry.offset)
                raw = file.read(entry.length)
                at = entry.offset + len(raw)
                if crc32(raw) != sums[position]:
                    raise self._changed(entry)
                yield entry, raw

    def _opened(self) -> BinaryIO:
        try:
            return session_bytes.opened(self.path, _NEAR)
        except OSError as error:
            raise EngineError(f"{self.path} was read and cannot be opened now: {error}") from None

    def _body(self, entry: Entry, raw: bytes) -> Json:
        found = body_of(raw) if crc32(raw) == self._reading.sums[entry.position] else None
        if found is None:
            raise self._changed(entry)
        return found

    def _changed(self, entry: Entry) -> EngineError:
        return EngineError(
            f"{self.path} has changed since it was read: line {entry.line} is not entry {entry.id} any more. Read it again."
        )

    @cached_property
    def _nearest(self) -> array[int]:
        """Return the position of each entry's nearest content ancestor, -1 if there is none."""
        entries, parents = self.entries, self._reading.parents
        nearest = array("q", [_UNKNOWN]) * len(entries)
        content = entries.content
        for position in range(len(entries)):
            above = parents[position]
            if above < 0 or content[above]:
                nearest[position] = above
                continue
            passed = []
            while above >= 0 and not content[above]:
                if nearest[above] != _UNKNOWN:
                    above = nearest[above]
                    break
                passed.append(above)
                above = parents[above]
            for metadata in passed:
                nearest[metadata] = above
            nearest[position] = above
        return nearest

    def is_kept(self, segment: Segment) -> bool | None:
        """Return True if most of a segment is on the path to the session's end; None if the session ends with it."""
        content, path, aside = self.entries.content, self._way_to_the_end, self.entries.sidechain
        within = [at for at in range(segment.start, segment.stop) if content[at]]
        if path.end < segment.stop or not within or all(aside[at] for at in within):
            return None
        return 2 * sum(at in path.passed for at in within) >= len(within)

    @cached_property
    def _way_to_the_end(self) -> _Way:
        content, aside = self.entries.content, self.entries.sidechain
        ends = (at for at in range(len(self.entries) - 1, -1, -1) if content[at] and not aside[at])
        at = end = next(ends, -1)
        passed = set()
        while at >= 0:
            passed.add(at)
            at = self._nearest[at]
        return _Way(end, passed)

    @cached_property
    def cuts(self) -> list[Boundary]:
        """Return the boundaries of the session, in file order."""
        return list(_Cutting(self, self._reading, self._nearest).found())


def read(
    path: str | Path, *, parent: str | Path | None = None, progress: Progress | None = None
) -> Transcript:
    """Read the session in a file. Damage is kept or reported in `warnings`, and never raises.

    `parent`: the path of the parent's file, if it is neither where the header says nor in the same folder. `progress` is called with bytes done and
    the total. Raise InvalidError if there is no such file, or if its format is known but cannot be read.
    """
    file = Path(path)
    reading, header, size = _reading(file, progress)
    above, found = _parent_of(file, header, parent)
    if above is not None and found is not None and header.format == found.format:
        header = header.model_copy(update={"parent_session_id": found.session_id})
    copied = _copied(reading, header, above)
    return Transcript(file, reading, header, size, copied)


def _reading(path: Path, progress: Progress | None) -> tuple[SessionReading, Header, int]:
    if not file_access.is_file(path):
        raise InvalidError(f"there is no session file at {str(path)!r}. Give a .jsonl file.")
    warnings = Warnings()
    with session_bytes.opened(path, BLOCK) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        refused = why_not_read(file)
        if refused is not None:
            raise InvalidError(refused)
        whole = document_in(file)
        if whole is not None:
            agent, fields, messages = whole
            document = OTHER_READINGS[agent](path, warnings)
            document.take_fields(fields)
            for piece in messages:
                document.read_object(piece)
            document.finish()
            return document, document.header(), size
        reading = READINGS[format_of(file)](path, warnings)
        lines = Lines(file, size, warnings, progress)
        read_object = reading.read_object
        for piece in lines:
            read_object(piece)
    reading.finish()
    return reading, reading.header(), lines.size


# ---- the parent's part ------------------------------------------------------------------------


def _parent_of(
    path: Path, header: Header, given: str | Path | None
) -> tuple[SessionReading | None, Header | None]:
    if given is not None:
        found, header_of, _ = _reading(Path(given), None)
        return found, header_of
    if header.parent_session is None:
        return None, None
    named = header.parent_session
    beside = path.parent / named.replace("\\", "/").rpartition("/")[2]
    for place in (Path(named), beside):
        try:
            if file_access.is_file(place) and not place.samefile(path):
                found, header_of, _ = _reading(place, None)
                return found, header_of
        except (OSError, ValueError):  # such a name is not valid for a file
            continue
    return None, None


def _copied(reading: SessionReading, header: Header, parent: SessionReading | None) -> int:
    """Return the number of leading entries copied from the parent: with its file, those it has under the same id; else those before the fork."""
    if header.parent_session is None and parent is None:
        return reading.copies
    if parent is not None:
        shared = max(_shared(reading.entries, parent), reading.copies)
        # Entries without ids are identified by their bytes, and an old fork may have written these differently.
        if shared or header.version not in (1, None):
            return shared
    if header.timestamp is None or header.format != "pi":
        return 0
    count = 0
    entries, begun = reading.entries, instant(header.timestamp)
    for position, time in enumerate(entries.times):
        if time == NEVER:
            continue
        if time >= begun:
            break
        count = position + 1
    while count and not entries.content[count - 1]:
        count -= 1  # a fork writes labels again, under new ids with old timestamps
    return count


def _shared(entries: Entries, parent: SessionReading) -> int:
    shared = 0
    for at, (id, time) in enumerate(zip(entries.ids, entries.times, strict=True)):
        position = parent.positions.get(id)
        if position is None or parent.entries.times[position] != time:
            if entries.content[at]:
                return shared
        else:
            shared = at + 1
    return shared


# ---- boundaries and segments ------------------------------------------------------------------


def boundaries(t: Transcript) -> list[Boundary]:
    """Return the boundaries of a session in file order; at one entry by priority. Those inside the copied part have `copied` in their metadata."""
    return list(t.cuts)


class _Cutting:
    """Walks once over the content entries in file order. The leaf of a chain is its last entry so far; an entry with another parent is a jump."""

    def __init__(self, t: Transcript, reading: SessionReading, nearest: array[int]) -> None:
        self.t, self.reading, self.nearest = t, reading, nearest
        self.entries = t.entries
        self.leaf = -1  # of the main chain
        self.since = NEVER
        self.chains: dict[int, int] = {}  # by entry of a sidechain: its chain
        self.leaves: dict[int, int] = {}  # by chain: its leaf
        self.forks = t.header.parent_session is not None or t.header.parent_session_id is not None

    def found(self) -> Iterator[Boundary]:
        t, before = self.t, -1
        fork, bodies = self.forks, self.reading.boundary_bodies
        for at, content in enumerate(self.entries.content):
            if not content:
                continue
            jump, gap, body = self._jump(at), self._gap(at), bodies.get(at)
            if jump is None and gap is None and body is None and not fork:
                before = at
                continue
            entry = self.entries[at]
            copied = {"copied": True} if at < t.copied else {}
            first = fork and at >= t.copied
            if first:
                fork = False
                yield self._fork(entry, jump, gap)
            if body is not None and entry.type == "branch_summary":
                yield self._branch(entry, body, before, copied)
            if jump is not None and not first:
                yield self._made("tree_jump", entry, self._id(jump), {**self._point(at), **copied})
            if body is not None and entry.type != "branch_summary":
                said = {name: body[key] for key, name in _COMPACTION.items() if key in body}
                yield self._made("compaction", entry, self._id(before), {**said, **copied})
            if gap is not None and not first:
                yield self._made("resume", entry, self._id(before), {"gap_minutes": gap, **copied})
            before = at

    def _id(self, position: int) -> str | None:
        return self.entries.ids[position] if position >= 0 else None

    def _made(self, type: BoundaryType, entry: Entry, previous: str | None, metadata: Json) -> Boundary:
        fields = {"type": type, "entry_id": entry.id, "timestamp": entry.timestamp}
        return Boundary.made({**fields, "previous_entry_id": previous, "metadata": metadata})

    def _point(self, at: int) -> Json:
        point: Json = {"branch_point_id": self._id(self.nearest[at])}
        if at in self.reading.orphans:
            point["orphan"] = self.entries.foreign[at]
        return point

    def _jump(self, at: int) -> int | None:
        """Return the leaf that was left if the entry does not continue from it, else None. Advance the leaf of the entry's chain."""
        entries, above = self.entries, self.nearest[at]
        if entries.sidechain[at]:
            return self._jump_aside(at, above)
        leaf, self.leaf = self.leaf, at
        if leaf < 0 or above == leaf or self.reading.parallel[at]:
            return None
        if above >= 0 and entries.sidechain[above]:
            return None
        body = self.reading.boundary_bodies.get(at)
        if "branch_summary" in (entries.type(at), entries.type(leaf)):
            return None
        if body is not None and "compaction" in body:
            return None  # Claude Code itself starts a new chain there
        return leaf

    def _jump_aside(self, at: int, above: int) -> int | None:
        chain = self.chains.get(above) if above >= 0 else None
        if chain is None:
            chain = at
            leaf = above
        else:
            leaf = self.leaves[chain]
        self.chains[at], self.leaves[chain] = chain, at
        return None if above == leaf or self.reading.parallel[at] else leaf

    def _gap(self, at: int) -> float | None:
        """Return the length of a pause before the entry in minutes, since the last entry with a time; None if there was no pause."""
        since, now = self.since, self.entries.times[at]
        if now == NEVER:
            return None
        self.since = now
        if since == NEVER or now - since < _PAUSE:
            return None
        return round((now - since) / _MINUTE, 2)

    def _fork(self, entry: Entry, jump: int | None, gap: float | None) -> Boundary:
        header, t = self.t.header, self.t
        metadata: Json = {
            "parent_session": header.parent_session,
            "parent_session_id": header.parent_session_id,
            "shared_entries": t.copied,
        }
        if gap is not None:
            metadata["gap_minutes"] = gap
        if jump is not None:
            metadata |= self._point(entry.position)
        return self._made("fork", entry, t.last_shared, metadata)

    def _branch(self, entry: Entry, body: Json, before: int, copied: Json) -> Boundary:
        above = self.nearest[entry.position]
        left = body.get("fromId")
        # older files state here where the branch begins, not which leaf was left
        if left in (None, "", "root", entry.parent_id, self._id(above)):
            left = self._id(before)
        else:
            position = self.reading.positions.get(left)
            if position is not None and not self.entries.content[position]:
                left = self._id(self.nearest[position])
        metadata = {**self._point(entry.position), **copied}
        if "summary" in body:
            metadata["summary"] = body["summary"]
        return self._made("branch", entry, left, metadata)


_COMPACTION = {
    "summary": "summary",
    "tokensBefore": "tokens_before",
    "tokensAfter": "tokens_after",
    "firstKeptEntryId": "first_kept_entry_id",
}


def segments(t: Transcript) -> list[Segment]:
    """Return the file cut before each boundary: every entry is in exactly one segment, in order.

    Metadata before the first content entry belongs to its segment, and so does what a fork wrote between the copied part and its first own content.
    """
    if not t.entries:
        return []
    cuts = _cuts(t)
    stops = [*list(cuts)[1:], len(t.entries)]
    return [
        _segment(t, start, stop, tuple(cuts[start]), tuple(cuts.get(stop, ())))
        for start, stop in zip(cuts, stops, strict=True)
    ]


def _cuts(t: Transcript) -> dict[int, list[Boundary]]:
    """Return the positions at which segments begin, with their boundaries."""
    cuts: dict[int, list[Boundary]] = {0: []}
    if 0 < t.copied < len(t.entries):
        cuts[t.copied] = []
    # Entries before the first content entry, and before the first own one, do not form a segment.
    first = {t.entries.content.find(1, start): start for start in list(cuts)}
    for boundary in t.cuts:
        at = t.entry(boundary.entry_id).position
        cuts.setdefault(first.get(at, at), []).append(boundary)
    return dict(sorted(cuts.items()))


def _segment(
    t: Transcript, start: int, stop: int, opened_by: tuple[Boundary, ...], ended_by: tuple[Boundary, ...]
) -> Segment:
    entries, content = t.entries, t.entries.content
    count = content.count(1, start, stop)
    named = range(start, stop) if not count else [at for at in range(start, stop) if content[at]]
    since = next((time for at in named if (time := entries.times[at]) != NEVER), None)
    until = next((time for at in reversed(named) if (time := entries.times[at]) != NEVER), None)
    return Segment.made(
        {
            "start_entry_id": entries.ids[named[0]],
            "end_entry_id": entries.ids[named[-1]],
            "start": start,
            "stop": stop,
            "entry_count": count,
            "start_timestamp": None if since is None else moment(since),
            "end_timestamp": None if until is None else moment(until),
            "boundaries": ended_by,
            "opened_by": opened_by,
            "copied": stop <= t.copied,
        }
    )


# ---- statistics -------------------------------------------------------------------------------


def statistics(t: Transcript) -> SessionStatistics:
    """Return statistics of the session's own part. Read the bodies once. Raise EngineError if the file has changed since it was read."""
    own = t.entries[t.copied :]
    content = [entry for entry in own if entry.is_content]
    times = [entry.timestamp for entry in content if entry.timestamp is not None]
    started, ended = (min(times), max(times)) if times else (None, None)
    bodies = t.bodies_between(t.copied, len(t.entries))
    header = t.header
    steps = stepper(header.format)
    took = _took(step for _, body in bodies for step in steps(body))
    return SessionStatistics(
        file=str(t.path),
        format=header.format,
        version=header.version,
        session_id=header.session_id,
        name=t.name,
        cwd=header.cwd,
        parent_session=header.parent_session,
        entries=len(own),
        content_entries=len(content),
        copied=t.copied,
        segments=sum(not one.copied for one in segments(t)),
        boundaries=dict(Counter(one.type for one in t.cuts if "copied" not in one.metadata)),
        types=dict(Counter(entry.type for entry in own)),
        messages=dict(Counter(entry.role for entry in own if entry.role is not None)),
        started_at=started,
        ended_at=ended,
        duration_minutes=round((ended - started) / timedelta(minutes=1), 2) if started and ended else None,
        warnings=dict(t.warning_counts),
        **took,
    )


def _took(steps: Iterable[Step]) -> dict[str, Any]:
    """Return tools, models, tokens and cost of all steps."""
    tools: Counter[str] = Counter()
    errors, spending = 0, Spending()
    for step in steps:
        if isinstance(step, ToolCall):
            tools[step.tool] += 1
        elif isinstance(step, ToolAnswer):
            errors += step.failed
        elif isinstance(step, TokensTaken):
            spending.add(step)
    models: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    costs: list[float] = []
    for provider, model, messages in spending:
        if model:
            models[f"{provider}/{model}" if provider else model] += len(messages)
        spent.update(summed(messages))
        costs += [took.cost for took in messages if took.cost is not None]
    tokens = {name.removeprefix("tokens_"): count for name, count in spent.items()}
    return {
        "tools": dict(tools.most_common()),
        "models": dict(models.most_common()),
        "tool_errors": errors,
        "tokens": Tokens(**tokens, total=spent.total()),
        "cost": round(fsum(costs), 6) if costs else None,
    }


__all__ = [
    "Boundary",
    "BoundaryType",
    "Entry",
    "Header",
    "Segment",
    "SessionStatistics",
    "Transcript",
    "Warning",
    "boundaries",
    "read",
    "segments",
    "statistics",
]
