"""Read the periods of a history table from the rows of a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.read.sight import Sight
from graphstore.core.tables.arrow_tables import body_columns, json_text, numbers, parsed, texts
from graphstore.core.tables.graph_source import columns_of
from graphstore.core.tables.history_arrow import tombstone
from graphstore.core.tables.properties import FieldKind, field_kind
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point, as_json
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant

Span = tuple[Instant, Instant]


class Changed(NamedTuple):
    """Periods that were opened or closed, in columns: of what they are, what it says then, both periods, and the operations that opened and closed them."""

    owner: Any
    said: Any
    valid_from: Any
    valid_to: Any
    tx_from: Any
    tx_to: Any
    opened_by: Any
    closed_by: Any


class About(NamedTuple):
    """What a changed period is of, and what it says."""

    thing: str
    id: str
    kind: str
    number: int | None
    content: str | None


class Asked:
    """Which part of a history is asked for: spans of both axes, half-open, cut to them or not. A span of tx that is one instant is what was believed then."""

    def __init__(self, valid: Span, tx: Span, clip: bool) -> None:
        self.valid, self.tx, self.clip = valid, tx, clip

    def rows(self, begin: Any, end: Any, known: Any, gone: Any) -> tuple[Any, dict[str, Any]]:
        """Return the places of the periods that are asked for, and these. Columns of valid_from, valid_to, tx_from and tx_to are given, as known at the sight's tx."""
        import numpy as np

        (since, until), (first, last) = self.valid, self.tx
        chosen = np.flatnonzero(
            (begin < until) & (end > since) & (known < last) & (gone > first) & (known < gone)
        )
        found = {
            "valid_from": begin[chosen],
            "valid_to": end[chosen],
            "tx_from": known[chosen],
            "tx_to": gone[chosen],
        }
        if last - first == 1:  # an end that came later was not known then
            found["tx_to"] = np.where(found["tx_to"] > first, OPEN, found["tx_to"])
        if self.clip:
            found["valid_from"] = np.maximum(found["valid_from"], since)
            found["valid_to"] = np.minimum(found["valid_to"], until)
            if last - first != 1:
                found["tx_from"] = np.maximum(found["tx_from"], first)
                found["tx_to"] = np.minimum(found["tx_to"], last)
        return chosen, found


class NodeSpan(NamedTuple):
    """Describes a period of a node, and what it says."""

    id: str
    kind: str
    key: str | None
    scope: str
    ordinal: int
    author: str | None
    told: Instant
    verb: str | None
    operation: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    word: str
    data: bytes | None
    checksum: int


class LinkSpan(NamedTuple):
    """Describes a period of a link, and what it says."""

    id: str
    source: str
    target: str
    kind: str
    strength: int | None
    is_inferred: int
    created_by: str
    author: str | None
    told: Instant
    verb: str | None
    operation: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    body: int | None
    data: bytes | None
    checksum: int


class Content(NamedTuple):
    """Holds what a version of a node says."""

    data: bytes | None
    checksum: int


class ChangedNode(NamedTuple):
    """Describes a period of a node or event that was opened or closed."""

    owner: int
    said: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None
    id: str
    kind: str
    is_event: int
    ordinal: int
    data: bytes | None
    checksum: int


class ChangedLink(NamedTuple):
    """Describes a period of a link that was opened or closed."""

    owner: int
    said: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None
    id: str
    kind: str
    source: str
    target: str


class Done(NamedTuple):
    """Describes an operation, and the body that has its reason."""

    number: int
    verb: str
    author: str | None
    data: bytes | None
    checksum: int | None


SPANS_OF_NODES = Statement("spans_of_nodes", NodeSpan)
SPANS_OF_LINKS = Statement("spans_of_links", LinkSpan)
CONTENTS_OF_KIND = Statement("contents_of_kind", Content)
CHANGED_NODES = Statement("changed_nodes", ChangedNode)
CHANGED_LINKS = Statement("changed_links", ChangedLink)
OPERATIONS_DONE = Statement("operations_done", Done)
_BOUNDS = ("valid_from", "valid_to", "tx_from", "tx_to")


class RowSpans:
    """Gives the periods of a ledger at the point of a sight."""

    def __init__(self, sight: Sight, point: Point) -> None:
        self._sight, self._point = sight, point
        self.tx = point.tx
        self._changed: dict[str, Sequence[ChangedNode | ChangedLink]] = {}

    def nodes(
        self, asked: Asked, kind: str | None
    ) -> tuple[dict[str, pa.Array], list[str | None], dict[str, Any]]:
        """Return the columns of the periods of nodes, their contents as JSON, and the bounds of the periods."""
        rows = self._point.rows(SPANS_OF_NODES, **_spans(asked), kind=kind)
        rows, columns, periods = _chosen(asked, rows, NodeSpan)
        words = columns["word"]
        bodies = [
            self._bytes(row.data, row.checksum, f"node {row.id!r}, version {row.ordinal}") for row in rows
        ]
        said = body_columns(bodies, lambda at: tombstone(words[at]))
        done = self.done([op for op in columns["operation"] if op is not None])
        reasons = [done[op][2] if op in done else None for op in columns["operation"]]
        found = {
            **{name: texts(columns[name]) for name in ("id", "kind", "key", "scope")},
            "number": numbers(columns["ordinal"]),
            **{name: said[name] for name in ("text", "tags", "source")},
            **_told(columns, periods),
            "operation": texts(columns["verb"]),
            "reason": texts(reasons),
        }
        return found, said["content"].to_pylist(), periods

    def links(self, asked: Asked, kind: str | None) -> tuple[dict[str, pa.Array], dict[str, Any]]:
        """Return the columns of the periods of links, and the bounds of the periods."""
        rows = self._point.rows(SPANS_OF_LINKS, **_spans(asked), kind=kind)
        rows, columns, periods = _chosen(asked, rows, LinkSpan)
        bodies = parsed(
            [
                b"" if row.body is None else self._bytes(row.data, row.checksum, f"link {row.id!r}")
                for row in rows
            ]
        )
        found = {
            **{name: texts(columns[name]) for name in ("id", "source", "target", "kind")},
            "reason": texts([body.get("reason") for body in bodies]),
            "strength": numbers([strength or None for strength in columns["strength"]]),
            "confidence": texts(["inferred" if each else "explicit" for each in columns["is_inferred"]]),
            "created_by": texts(columns["created_by"]),
            "metadata": texts([json_text(body.get("metadata")) for body in bodies]),
            **_told(columns, periods),
            "operation": texts(columns["verb"]),
        }
        return found, periods

    def field_kinds(self, kind: str | None) -> dict[str, FieldKind]:
        """Return the types of all fields that nodes (of a kind) ever had."""
        memo = self._sight.memo()
        assert memo is not None
        which = "fields", kind, self._sight.index.last_tx if self._sight.sees_all() else self._sight.tx
        if which not in memo:
            bodies = [
                self._bytes(row.data, row.checksum, "a node")
                for row in self._point.rows(CONTENTS_OF_KIND, kind=kind)
            ]
            memo[which] = kinds_of_fields(parsed(bodies))
        return dict(memo[which])

    def changed(self, thing: str, since: Instant, until: Instant) -> Changed:
        """Return the periods of nodes and events, or of links, that were opened or closed after an instant and by another."""
        import numpy as np

        statement: Statement[Any] = CHANGED_NODES if thing == "node" else CHANGED_LINKS
        rows = self._changed[thing] = self._point.rows(statement, since=since, until=until)
        columns = columns_of(rows, ChangedNode if thing == "node" else ChangedLink)
        columns["closed_by"] = [-1 if op is None else op for op in columns["closed_by"]]
        return Changed(*(np.array(columns[name], np.int64) for name in Changed._fields))

    def done(self, operations: Sequence[int]) -> dict[int, tuple[str | None, str | None, str | None]]:
        """Return the verb, the author and the reason of some operations; of -1 nothing."""
        found: dict[int, tuple[str | None, str | None, str | None]] = {-1: (None, None, None)}
        for row in self._point.rows(OPERATIONS_DONE, numbers=as_json(list(dict.fromkeys(operations)))):
            body = self._point.content(row.data, row.checksum, f"operation {row.number}")
            found[row.number] = row.verb, row.author, body.get("reason")
        return found

    def about(self, rows: Sequence[tuple[str, int]]) -> list[About]:
        """Return what rows of what `changed` returned are of, each with whether it is of a `node` or a `link`."""
        return list(self._about(rows))

    def _about(self, rows: Sequence[tuple[str, int]]) -> Iterator[About]:
        contents: dict[int, str] = {}
        for thing, at in rows:
            row = self._changed[thing][at]
            if isinstance(row, ChangedLink):
                ends = {"source": row.source, "target": row.target}
                yield About(thing, row.id, row.kind, None, orjson.dumps(ends).decode())
            elif row.is_event:
                yield About("event", row.id, row.kind, None, None)
            else:
                if row.said not in contents:
                    body = self._point.content(
                        row.data, row.checksum, f"node {row.id!r}, version {row.ordinal}"
                    )
                    content = body.get("content") or {}
                    contents[row.said] = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
                yield About(thing, row.id, row.kind, row.ordinal, contents[row.said])

    def _bytes(self, data: bytes | None, checksum: int, what: str) -> bytes:
        """Return a body; an empty one where it was removed. Raises DamageError when it is not what was written."""
        if data is None or crc32(data) != checksum:
            self._point.content(data, checksum, what)
        return data or b""


def kinds_of_fields(bodies: Iterable[Json]) -> dict[str, FieldKind]:
    """Return the types of the fields that the contents of these bodies have."""
    values: dict[str, list[Any]] = {}
    for body in bodies:
        for name, value in (body.get("content") or {}).items():
            values.setdefault(name, []).append(value)
    return {name: field_kind(each) for name, each in values.items()}


def _spans(asked: Asked) -> dict[str, Instant]:
    return dict(zip(_BOUNDS, (*asked.valid, *asked.tx), strict=True))


def _chosen(
    asked: Asked, rows: list[Any], model: Any
) -> tuple[list[Any], dict[str, list[Any]], dict[str, Any]]:
    """Return the rows that are asked for, their columns, and the bounds of their periods."""
    import numpy as np

    columns = columns_of(rows, model)
    chosen, periods = asked.rows(*(np.array(columns[name], np.int64) for name in _BOUNDS))
    if len(chosen) == len(rows):
        return rows, columns, periods
    rows = [rows[at] for at in chosen.tolist()]
    return rows, columns_of(rows, model), periods


def _told(columns: dict[str, list[Any]], periods: dict[str, Any]) -> dict[str, pa.Array]:
    """Make the columns of who recorded something first, when, and whether its period was recorded later."""
    recorded = periods["tx_from"].tolist()  # where nobody knows who recorded it first
    known = zip(columns["operation"], columns["told"], recorded, strict=True)
    told = numbers([since if operation is None else at for operation, at, since in known])
    return {
        "author": texts(columns["author"]),
        "told": told.cast(pa.timestamp("us")),
        "remainder": pc.less(told, numbers(periods["tx_from"])),
    }
