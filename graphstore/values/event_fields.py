"""The fields of an event's body, in one table: what a caller gives, what the journal keeps, what tables and files have as columns."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class EventField(NamedTuple):
    """`absent`: what is read where the body does not have it. `of_message`: an event with it is a message."""

    name: str
    kind: Literal["text", "truth", "json"] = "text"
    absent: str | None = None
    of_message: bool = False


BODY = (
    EventField("description", absent=""),
    EventField("source"),
    EventField("origin", absent="agent"),
    EventField("agent"),
    EventField("fingerprint"),
    EventField("metadata", "json"),
    EventField("trace_id"),
    EventField("span_id"),
    EventField("parent_span_id"),
    EventField("sender", of_message=True),
    EventField("sender_name", of_message=True),
    EventField("thread", of_message=True),
    EventField("classification", of_message=True),
    EventField("authorized", "truth", of_message=True),
    EventField("media_path", of_message=True),
    EventField("media_hash", of_message=True),
)
"""In the order of the columns."""

SPAN_IDS = ("trace_id", "span_id", "parent_span_id")
"""The place of an event in its trace."""
EVENT_TEXTS = tuple(field.name for field in BODY if field.kind == "text" and field.absent is None)
"""Texts that an event may have."""
MESSAGE_TEXTS = tuple(field.name for field in BODY if field.of_message and field.kind == "text")
"""Texts that make an event a message."""
ENDED_AT = "ended_at"
"""When the span of an event ended, kept in its metadata as ISO 8601 text."""
EVENT_FIELDS = ("type", "description", "id", "occurred_at", "source", "origin", "agent", "related_to", "metadata",
                "fingerprint", *SPAN_IDS, ENDED_AT, "authorized", *MESSAGE_TEXTS)  # fmt: skip
"""What a caller may give, in the order of the messages that list it."""

OF_AN_OCCURRENCE = ("description", "source", "metadata")
"""What each occurrence of an event says for itself."""


def differing(first: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return what an occurrence says otherwise than the first report of its event."""
    return {name: body.get(name) for name in OF_AN_OCCURRENCE if body.get(name) != first.get(name)}
