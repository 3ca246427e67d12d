"""Derives the ids of segments, and the links that lead into each segment of a session.

All decisions use one file alone. A link from another session names only the entry that it comes from; the store finds the segment that holds that
entry.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path, PureWindowsPath

import orjson

from graphstore.errors import NotFoundError
from graphstore.sessions.segments.nodes import SEGMENT, SESSION
from graphstore.sessions.transcripts.transcript import Boundary, Entry, Segment, Transcript
from graphstore.values.models import Json

PRIORITY = {"fork": 0, "branch": 1, "tree_jump": 2, "compaction": 3, "resume": 4}
STRUCTURAL = ("continuation", "branch", "tree_jump", "compaction", "resume", "fork")
"""The kinds of link that follow from the structure of a session."""

_NAMED = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)(?:-(\d{3}))?Z_")


def session_node(session_id: str) -> str:
    """Return the node id of a session: 16 hex characters."""
    return _derived(SESSION, session_id)


def segment_node(session_id: str, start_entry: str) -> str:
    """Return the node id of a segment. It depends neither on the file nor on the segment's end, so neither a move nor growth changes it."""
    return _derived(SEGMENT, session_id, start_entry)


def link_id(kind: str, source: str, target: str, metadata: Json, turn: int = 0) -> str:
    """Return the id of a structural link. It is the same from every file and at every time. `turn`: how often the link was retracted before."""
    raw = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()
    again = (str(turn),) if turn else ()
    return f"lnk_{_derived(kind, source, target, raw, *again)}"


def _derived(*words: str) -> str:
    return blake2b("\x1f".join(words).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def time_in(name: str) -> datetime | None:
    """Return the start of a session from its file name `{time}_{id}.jsonl`; None if the name has no time."""
    found = _NAMED.match(PureWindowsPath(name).name)
    if found is None:
        return None
    day, hour, minute, second, milli = found.groups()
    try:
        return datetime.fromisoformat(f"{day}T{hour}:{minute}:{second}.{milli or '000'}+00:00")
    except ValueError:
        return None


def has_entry(transcript: Transcript, entry_id: str) -> bool:
    """Return True if a file holds an entry."""
    try:
        transcript.entry(entry_id)
    except NotFoundError:
        return False
    return True


def strays(transcript: Transcript, segments: Sequence[Segment]) -> dict[str, str]:
    """Return the entries that continue their segment after a branch summary without hanging on it. Each maps to the first entry of its segment."""
    found = {}
    for segment in segments:
        if segment.entry_count < 2 or transcript.entry(segment.start_entry_id).type != "branch_summary":
            continue
        begin = transcript.entry(segment.start_entry_id).position
        content = (entry for entry in transcript.entries[begin + 1 : segment.stop] if entry.is_content)
        second = next(content)
        above = transcript.content_parent(second.id)
        if above is None or above.position != begin:
            found[second.id] = segment.start_entry_id
    return found


def names(named: str, by: Path, file: Path) -> bool:
    """Return True if the path that file `by` gives for its parent means `file`, wherever `file` is now."""
    if PureWindowsPath(named).name != file.name:
        return False
    return str(file) == named or file.parent == by.parent or time_in(named) is not None


# ---- the links -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Joint:
    """A link into a segment. Without `source` it comes from another session, from the segment that holds `entry` (None: no shared entry)."""

    kind: str
    source: str | None
    target: str
    metadata: Json
    entry: str | None = None


class Joints:
    """Builds the links into the segments of one file."""

    def __init__(self, transcript: Transcript, segments: Sequence[Segment]) -> None:
        self._transcript = transcript
        self._segments = segments  # all segments; together they cover the file
        self._starts = [segment.start for segment in segments]

    def into(self, segment: Segment, before: Segment | None) -> list[Joint]:
        """Return the links into an own segment. `before` is the previous own segment in the file."""
        target = self._node(segment)
        joints = []
        if before is not None:
            joints.append(Joint("continuation", self._node(before), target, {}))
        cut = sorted(segment.opened_by, key=lambda boundary: PRIORITY[boundary.type])
        if not cut:
            return joints
        top, *others = cut
        metadata = _fields(top)
        if others:
            metadata["boundaries"] = [{"type": other.type, **_fields(other)} for other in others]
        joint = self._fork(target, metadata) if top.type == "fork" else self._cut(top, segment, metadata)
        return joints if joint is None else [*joints, joint]

    def _fork(self, target: str, metadata: Json) -> Joint:
        transcript = self._transcript
        shared = {
            "last_shared_entry": transcript.last_shared,
            "parent_session": transcript.header.parent_session or transcript.header.parent_session_id,
            "shared_entries": transcript.copied,
        }
        known = {name: value for name, value in shared.items() if value is not None}
        return Joint("fork", None, target, {**metadata, **known}, transcript.last_shared)

    def _cut(self, top: Boundary, segment: Segment, metadata: Json) -> Joint | None:
        """Return the link from the segment that holds the parent of the cut entry. An entry without a parent is linked from the leaf that was left."""
        transcript = self._transcript
        hangs_on = transcript.content_parent(segment.start_entry_id)
        if hangs_on is None and top.previous_entry_id is not None:
            hangs_on = transcript.entry(top.previous_entry_id)
        if hangs_on is None:
            return None
        home = self._holding(hangs_on)
        if home.start >= segment.start:
            return None  # the parent comes later in the file: only a damaged tree has this
        metadata["from_entry"] = hangs_on.id
        if home.copied:
            return Joint(top.type, None, self._node(segment), metadata, hangs_on.id)
        return Joint(top.type, self._node(home), self._node(segment), metadata)

    def _holding(self, entry: Entry) -> Segment:
        return self._segments[bisect_right(self._starts, entry.position) - 1]

    def _node(self, segment: Segment) -> str:
        return segment_node(self._transcript.header.session_id, segment.start_entry_id)


def _fields(boundary: Boundary) -> Json:
    """Return the metadata of a boundary, without its position."""
    metadata = {name: value for name, value in boundary.metadata.items() if value is not None}
    if boundary.previous_entry_id is not None and boundary.type != "fork":
        metadata["previous_entry"] = boundary.previous_entry_id
    return metadata


def begins(transcript: Transcript, segments: Sequence[Segment]) -> list[datetime | None]:
    """Return the start of each segment. It is never before the start of the previous segment, even if the clock was set back."""
    latest = transcript.header.timestamp if not transcript.copied else None
    found = []
    for segment in segments:
        at = segment.start_timestamp
        if at is not None and (latest is None or at > latest):
            latest = at
        found.append(latest)
    return found
