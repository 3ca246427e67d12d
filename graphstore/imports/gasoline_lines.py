"""Reads one line of a Gasoline log as an event and its links, without loss: what has no field of its own is kept in the metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from graphstore.errors import InvalidError
from graphstore.imports.row_files import Row
from graphstore.values.event_fields import EVENT_TEXTS, MESSAGE_TEXTS
from graphstore.values.inputs import ORIGINS, authorized_of, text_of
from graphstore.values.models import Event
from graphstore.values.period import Instant, instant, moment

REQUIRED = ("type", "timestamp", "description")
TEXTS = tuple(name for name in EVENT_TEXTS if name not in MESSAGE_TEXTS)
FIELDS = {*REQUIRED, *TEXTS, *"id origin status metadata links occurrences said reported recorded".split()}
LINK_FIELDS = {"target", "relationship", "confidence", "reason", "strength", "created_by", "metadata", "valid_from", "valid_to"}  # fmt: skip
STATUSES = ("active", "resolved", "superseded")
APART = "gasoline"
"""The metadata field for values that would clash with another name."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A link as a line states it: its ends in the line's direction, under the line's name."""

    line: int
    source: str
    name: str
    target: str
    confidence: str = "explicit"
    fields: Mapping[str, Any] = field(default_factory=dict)  # the other fields of the entry


@dataclass(frozen=True, slots=True)
class Record:
    """An event as a line states it. `instants`: its occurrences in order."""

    line: int
    id: str
    type: str
    description: str
    instants: tuple[Instant, ...]
    fields: Mapping[str, Any]
    status: str | None
    said: Mapping[Instant, dict[str, Any]] = field(default_factory=dict)
    """By occurrence: its own description, source or metadata, where they differ from the line's (None: it had none)."""
    first: Instant | None = None
    """The occurrence that the line's description belongs to, if it is not the earliest."""

    @property
    def reported(self) -> Instant:
        """Return the instant of the occurrence that the line's description belongs to."""
        return self.instants[0] if self.first not in self.instants else self.first

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(self.fields["metadata"])


def record_of(line: int, row: Row) -> Record:
    """Return the event of a line. Raise InvalidError if it cannot be kept."""
    texts = _texts_of(row)
    medium = any(row.get(name) for name in ("media_path", "media_hash") if name in texts)
    missing = [name for name in REQUIRED if row.get(name) in (None, "")]
    if medium and row.get("description") == "":
        missing.remove("description")  # the medium replaces it
    if missing:
        raise InvalidError(f"no {', no '.join(missing)}")
    first = instant(row["timestamp"], "timestamp")
    again = row["occurrences"] if isinstance(row.get("occurrences"), list) else []
    origin = row.get("origin")
    fields = {name: row[name] for name in texts if isinstance(row.get(name), str)}
    if texts is EVENT_TEXTS:
        fields["authorized"] = bool(row["authorized"])
    if origin not in ORIGINS:
        origin = "agent" if row.get("agent") else "system"
    status = row.get("status") if row.get("status") in STATUSES else None
    return Record(
        line=line,
        id=_id_of(row, first),
        type=text_of("type", row["type"]),
        description=text_of("description", row["description"], empty=medium),
        instants=tuple(sorted([first, *(instant(at, "occurrence") for at in again)])),
        fields={**fields, "origin": origin, "metadata": _metadata_of(row)},
        status=status,
        said=_said_of(row.get("said")),
        first=instant(row["reported"], "reported") if isinstance(row.get("reported"), str) else None,
    )


def _said_of(given: Any) -> dict[Instant, dict[str, Any]]:
    """Return the fields of occurrences that differ from the line's, as an export writes them; empty for any other value."""
    if not _is_said(given):
        return {}
    return {instant(at, "occurrence"): own for at, own in given.items()}


def _is_said(given: Any) -> bool:
    return isinstance(given, dict) and all(
        isinstance(own, dict)
        and all(isinstance(own.get(name), str | None) for name in ("description", "source"))
        and isinstance(own.get("metadata"), dict | None)
        and own.keys() <= {"description", "source", "metadata"}
        for own in given.values()
    )


def _texts_of(row: Row) -> tuple[str, ...]:
    """Return the names of text fields in this line. `authorized` (a boolean, or 0 and 1) marks the line of a message, which has more."""
    return EVENT_TEXTS if row.get("authorized") in (True, False) else TEXTS


def _id_of(row: Row, at: Instant) -> str:
    """Return the line's id; without one, an id derived from the line."""
    if row.get("id") not in (None, ""):
        return text_of("id", row["id"])
    raw = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    return f"evt_{at // 1000}_{blake2b(raw, digest_size=4).hexdigest()}"


def _metadata_of(row: Row) -> dict[str, Any]:
    """Return the line's metadata, together with everything that no field of an event holds."""
    given = row.get("metadata")
    kept = dict(given) if isinstance(given, dict) else {}
    apart = {} if given is None or isinstance(given, dict) else {"metadata": given}
    texts = _texts_of(row)
    for name in (*texts, "origin", "status", "occurrences", "said", "reported", "recorded"):
        value = row.get(name)
        taken = {
            "origin": value in ORIGINS,
            "status": value in STATUSES,
            "occurrences": isinstance(value, list),
            "said": _is_said(value),
            "recorded": False,
        }
        if value is not None and not taken.get(name, isinstance(value, str)):
            apart[name] = value
    for name in row.keys() - FIELDS - {*texts, *(("authorized",) if texts is EVENT_TEXTS else ())}:
        if row[name] is not None:
            (apart if name in kept else kept)[name] = row[name]
    return set_apart(kept, apart)


def set_apart(metadata: dict[str, Any], apart: Mapping[str, Any]) -> dict[str, Any]:
    if not apart:
        return metadata
    there = metadata.get(APART, {})
    return {**metadata, APART: {**(there if isinstance(there, dict) else {APART: there}), **apart}}


def _comparable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata without what an import itself adds."""
    kept = {name: value for name, value in metadata.items() if name != "status"}
    if isinstance(apart := kept.get(APART), dict):
        kept[APART] = {name: apart[name] for name in apart if name not in ("recorded", "status")}
    return {name: value for name, value in kept.items() if name != APART or value}


def stated_of(line: int, source: str, entry: Any) -> Stated:
    """Return a link of a line. Raise InvalidError if it is not a link."""
    if not isinstance(entry, dict):
        raise InvalidError(f"link {entry!r} is no object")
    target, name = (entry.get(part) for part in ("target", "relationship"))
    if not isinstance(target, str) or not isinstance(name, str) or not target.strip() or not name.strip():
        raise InvalidError(f"link to {target!r} as {name!r}: it needs a target and a relationship")
    confidence = entry.get("confidence") or "explicit"
    if confidence not in ("explicit", "inferred"):
        raise InvalidError(
            f"link {name} {target!r}: {InvalidError.choice('confidence', confidence, ('explicit', 'inferred'))}"
        )
    fields = {part: entry[part] for part in LINK_FIELDS if part in entry and entry[part] is not None}
    more = {part: value for part, value in entry.items() if part not in LINK_FIELDS and value is not None}
    metadata = fields.get("metadata", {})
    fields["metadata"] = {**more, **(metadata if isinstance(metadata, dict) else {"metadata": metadata})}
    for part in ("target", "relationship", "confidence"):
        fields.pop(part, None)
    for part in ("valid_from", "valid_to"):
        if part in fields:
            fields[part] = moment(instant(fields[part], part))
    return Stated(line, source, name, target, confidence, fields)


def is_same(record: Record, known: Event, first: Mapping[str, Any]) -> bool:
    """Return True if a line describes a known event. `first`: the body of its first report."""
    fields = record.fields
    texts = [name for name in EVENT_TEXTS if name != "fingerprint"]
    stated = {name: fields.get(name) for name in ("origin", *texts)}
    stated |= {"type": record.type, "description": record.description}
    stated["authorized"] = authorized_of(record.type, dict(fields))
    if (
        any(getattr(known, name) != value for name, value in stated.items())
        or fields.get("fingerprint", known.fingerprint) != known.fingerprint
    ):
        return False
    return _comparable(fields["metadata"]) == _comparable(first.get("metadata") or {})
