"""Read the texts that an embedder turns into vectors: those of each version, from the rows of a ledger."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from graphstore.ledger.statements import Statement
from graphstore.read.index_of_rows import FORGOTTEN
from graphstore.read.points import Point
from graphstore.search.row_search import ends_of
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


class TextsOfRows:
    """Gives the texts of the versions that a ledger has.

    `state`: versions have other numbers under another one. `gone`: how many things are forgotten. `versions`: how many there are. `pending`: whether a
    transaction is open, whose versions are none of these.
    """

    def __init__(self, point: Point, pending: bool, committed: int) -> None:
        ends = ends_of(point)
        self._point = point
        self.state: Hashable = ("rows", ends.rewritten)
        self._forgotten = {row.number for row in point.rows(FORGOTTEN)}
        self.gone, self.versions, self.pending = len(self._forgotten), min(ends.versions, committed), pending

    def forgotten(self) -> Container[int]:
        """Return the entities that were evicted or erased."""
        return self._forgotten

    def said(self, versions: range, kind: str | None) -> Iterator[Said]:
        """Yield those of some versions, by their places, that have a text. `kind`: only those of nodes of this kind; None: of all nodes and events."""
        content, line = self._point.content, self._point.database.line
        first, stop = (line.row("version", place) for place in (versions.start, versions.stop))
        for row in self._point.rows(SAID, first=first, stop=stop, kind=kind):
            body = content(row.data, row.checksum, f"{row.id!r}")
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
