"""Read the texts that an embedder turns into vectors: those of each version, from the rows of a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.sameness import statement


class Said(NamedTuple):
    """Holds the text of a version, and which node or event it describes."""

    version: int
    entity: int
    id: str
    kind: str
    scope: str
    text: str
    thread: str | None


class _Described(NamedTuple):
    """A row of `said.sql`: a version with its content."""

    number: int
    entity: int
    id: str
    is_event: int
    kind: str
    scope: str
    data: bytes
    checksum: int


SAID = Statement("said", _Described)


def said(point: Point, versions: range, kind: str | None) -> Iterator[Said]:
    """Yield those of some versions, by their places, that have a text. `kind`: only those of nodes of this kind; None: of all nodes and events."""
    first, stop = (point.database.line.row("version", place) for place in (versions.start, versions.stop))
    for row in point.rows(SAID, first=first, stop=stop, kind=kind):
        body = point.content(row.data, row.checksum, f"{row.id!r}")
        if (text := _text(body, bool(row.is_event))).strip():
            yield Said(row.number, row.entity, row.id, row.kind, row.scope, text, _thread(body))


def _text(body: Mapping[str, Any], is_event: bool) -> str:
    """Return the text of a body: the description of an event, the statement of a version. That of a message that was not authorized is empty: no embedder gets it."""
    if is_event:
        return "" if body.get("authorized") is False else body.get("description") or ""
    return statement(body.get("content") or {}, body.get("text"))


def _thread(body: Mapping[str, Any]) -> str | None:
    thread = (body.get("content") or {}).get("thread")
    return thread if isinstance(thread, str) else None
