"""The fields of an event's body in one table: what callers give, what the journal stores, and the columns of tables and files."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class EventField(NamedTuple):
    """A field of an event's body. `absent`: the value that is read if the body lacks it. `of_message`: an event with it is a message."""

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
"""The fields that place an event in its trace."""
EVENT_TEXTS = tuple(field.name for field in BODY if field.kind == "text" and field.absent is None)
"""Texts that an event may have."""
MESSAGE_TEXTS = tuple(field.name for field in BODY if field.of_message and field.kind == "text")
"""Texts that make an event a message."""
ENDED_AT = "ended_at"
"""The end of an event's span, stored in its metadata as ISO 8601 text."""
EVENT_FIELDS = ("type", "description", "id", "occurred_at", "source", "origin", "agent", "related_to", "metadata",
                "fingerprint", *SPAN_IDS, ENDED_AT, "authorized", *MESSAGE_TEXTS)  # fmt: skip
"""The fields that a caller may give, in the order in which messages list them."""

OF_AN_OCCURRENCE = ("description", "source", "metadata")
"""The fields that each occurrence of an event has itself."""


def differing(first: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields in which an occurrence differs from the first report of its event."""
    return {name: body.get(name) for name in OF_AN_OCCURRENCE if body.get(name) != first.get(name)}
