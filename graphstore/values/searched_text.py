"""The text of a description that full-text search finds: what a node or an event says, without what only describes it."""

from __future__ import annotations

from collections.abc import Iterator

from graphstore.values.layers import CHUNK
from graphstore.values.models import Json


def text_of_node(body: Json, kind: str, key: str | None) -> str:
    """Return what a version of a node says: its key, its text where that was given, the texts and numbers in its content, its tags. Whose a chunk is, is not what it says."""
    content = body.get("content", {})
    if kind == CHUNK:
        content = {name: value for name, value in content.items() if name not in ("user", "thread")}
    return "\n".join((key or "", body.get("text") or "", *body.get("tags", ()), *_leaves(content)))


def text_of_event(body: Json) -> str:
    """Return what an event says: its description, and its source."""
    return "\n".join((body.get("description") or "", body.get("source") or ""))


def _leaves(content: Json) -> Iterator[str]:
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)
