"""Build the text that full-text search finds: the statements of a node or an event, without fields that only describe it."""

from __future__ import annotations

from collections.abc import Iterator

from graphstore.values.layers import CHUNK
from graphstore.values.models import Json


def text_of_node(body: Json, kind: str, key: str | None) -> str:
    """Return the searched text of a node's version: its key, text and tags, and the texts and numbers of its content, but not a chunk's user."""
    content = body.get("content", {})
    if kind == CHUNK:
        content = {name: value for name, value in content.items() if name not in ("user", "thread")}
    return "\n".join((key or "", body.get("text") or "", *body.get("tags", ()), *_leaves(content)))


def text_of_event(body: Json) -> str:
    """Return the searched text of an event: its description and its source."""
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
