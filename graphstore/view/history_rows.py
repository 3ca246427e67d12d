"""Read the history of a store as tables: every row of nodes or links with both its periods, typed fields, and who said it, when and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.errors import InvalidError, closest
from graphstore.graph.arrow_tables import (
    body_columns,
    columns_of,
    field_column,
    json_text,
    numbers,
    parsed,
    texts,
    tombstone,
)
from graphstore.graph.properties import FieldKind, field_kind, property_name
from graphstore.graph.step_functions import grouped, whole
from graphstore.ledger.statements import Statement
from graphstore.read.points import as_json
from graphstore.values.inputs import optional_text
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, coalesce, without_all
from graphstore.view.sight import Sight

Span = tuple[Instant, Instant]
_INSTANT = pa.timestamp("us", tz="UTC")
_TAKEN = ("id", "kind", "key", "scope", "number", "text", "tags", "source", "author", "told", "remainder",
          "operation", "reason", "valid_from", "valid_to", "tx_from", "tx_to")  # fmt: skip


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

    def __init__(self, sight: Sight) -> None:
        self._sight, self.point = sight, sight.point

    def nodes(
        self, asked: Asked, kind: str | None
    ) -> tuple[dict[str, pa.Array], list[str | None], dict[str, Any]]:
        """Return the columns of the periods of nodes, their contents as JSON, and the bounds of the periods."""
        rows = self.point.rows(SPANS_OF_NODES, **_spans(asked), kind=kind)
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
        rows = self.point.rows(SPANS_OF_LINKS, **_spans(asked), kind=kind)
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
                for row in self.point.rows(CONTENTS_OF_KIND, kind=kind)
            ]
            memo[which] = kinds_of_fields(parsed(bodies))
        return dict(memo[which])

    def done(self, operations: Sequence[int]) -> dict[int, tuple[str | None, str | None, str | None]]:
        """Return the verb, the author and the reason of some operations; of -1 nothing."""
        found: dict[int, tuple[str | None, str | None, str | None]] = {-1: (None, None, None)}
        for row in self.point.rows(OPERATIONS_DONE, numbers=as_json(list(dict.fromkeys(operations)))):
            body = self.point.content(row.data, row.checksum, f"operation {row.number}")
            found[row.number] = row.verb, row.author, body.get("reason")
        return found

    def content(self, row: ChangedNode) -> str:
        """Return what a node says, as JSON."""
        body = self.point.content(row.data, row.checksum, f"node {row.id!r}, version {row.ordinal}")
        return orjson.dumps(body.get("content") or {}, option=orjson.OPT_SORT_KEYS).decode()

    def _bytes(self, data: bytes | None, checksum: int, what: str) -> bytes:
        """Return a body; an empty one where it was removed. Raises DamageError when it is not what was written."""
        if data is None or crc32(data) != checksum:
            self.point.content(data, checksum, what)
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


# ---------------------------------------------------------------------- tables


def nodes(source: RowSpans, asked: Asked, kind: str | None, fields: Sequence[str] | None) -> pa.Table:
    """Return the rows of nodes, by id, valid_from and tx_from; a column for each field of the content."""
    optional_text("kind", kind)
    columns, contents, periods = source.nodes(asked, kind)
    described = {
        name: columns.pop(name) for name in ("id", "kind", "key", "scope", "number", "text", "tags", "source")
    }
    columns = {**described, **_fields(source, kind, fields, contents), **columns}
    return _in_order({**columns, **_instants(periods)})


def links(source: RowSpans, asked: Asked, kind: str | None) -> pa.Table:
    """Return the rows of links, by id, valid_from and tx_from."""
    columns, periods = source.links(asked, kind)
    return _in_order({**columns, **_instants(periods)})


def coalesced(table: pa.Table, on: Sequence[str], *, at_one_tx: bool) -> pa.Table:
    """One row for each stretch of valid time over which the columns `on` of an id stay the same. Rows that were believed over different spans of tx stay
    apart, unless all are believed at the one tx that is asked for. Raises InvalidError for an unknown column."""
    import numpy as np

    periods = ("valid_from", "valid_to", "tx_from", "tx_to")
    columns = [name for name in table.column_names if name not in periods]
    for name in on:
        if name not in columns:
            raise InvalidError.choice("column to coalesce on", name, columns)
    keys = list(dict.fromkeys(["id", *on]))
    apart = keys if at_one_tx else [*keys, "tx_from", "tx_to"]
    table = table.select([*keys, *periods])
    if not len(table):
        return table
    codes = grouped(table, apart)
    begin = whole(table["valid_from"])
    order = np.lexsort((begin, codes))
    table, codes, begin = table.take(pa.array(order)), codes[order], begin[order]
    end = whole(table["valid_to"])
    fresh = np.ones(len(table), bool)
    fresh[1:] = (codes[1:] != codes[:-1]) | (begin[1:] > end[:-1])
    firsts = np.flatnonzero(fresh)
    lasts = np.append(firsts[1:], len(table)) - 1
    heads = table.take(pa.array(firsts))
    known = np.maximum.reduceat(whole(table["tx_from"]), firsts)
    merged = {
        **{name: heads[name] for name in keys},
        "valid_from": heads["valid_from"],
        "valid_to": table["valid_to"].take(pa.array(lasts)),
        "tx_from": pa.array(known, pa.int64()).cast(pa.timestamp("us")).cast(_INSTANT),
        "tx_to": heads["tx_to"],
    }
    return pa.table(merged).sort_by(
        [("id", "ascending"), ("valid_from", "ascending"), ("tx_from", "ascending")]
    )


_CHANGES = pa.schema(
    [
        ("tx", _INSTANT), ("thing", pa.string()), ("id", pa.string()), ("kind", pa.string()), ("change", pa.string()), ("valid_from", _INSTANT),
        ("valid_to", _INSTANT), ("number", pa.int64()), ("content", pa.string()), ("operation", pa.string()), ("author", pa.string()), ("reason", pa.string()),
    ]
)  # fmt: skip


def changes(source: RowSpans, since: Instant, until: Instant) -> pa.Table:
    """Return what each transaction after `since` up to `until` changed of what is believed: the periods over which something is said, or no more."""
    found: list[tuple[int, int, str, int, bool, Span, ChangedNode | ChangedLink]] = []
    for thing, statement in (("node", CHANGED_NODES), ("link", CHANGED_LINKS)):
        rows: list[Any] = source.point.rows(statement, since=since, until=until)
        spans: dict[tuple[int, int, int], tuple[list[Span], list[Span], int, int]] = {}
        for side in (0, 1):
            for at, row in enumerate(rows):
                tx, by = (row.tx_to, row.closed_by) if side else (row.tx_from, row.opened_by)
                if since < tx <= until:
                    pair = spans.setdefault((tx, row.owner, row.said), ([], [], -1 if by is None else by, at))
                    (pair[1] if side else pair[0]).append((row.valid_from, row.valid_to))
        for (tx, _, _), (fresh, old, op, at) in spans.items():
            for is_added, here, there in ((False, old, fresh), (True, fresh, old)):
                for span in without_all_of(here, there):
                    found.append((tx, op, thing, at, is_added, span, rows[at]))
    found.sort(key=lambda each: each[:6])
    done = source.done([op for _, op, *_ in found])
    contents: dict[int, str] = {}
    lines = []
    for tx, op, thing, _, is_added, span, row in found:
        number = content = None
        if isinstance(row, ChangedLink):
            content = orjson.dumps({"source": row.source, "target": row.target}).decode()
        elif row.is_event:
            thing = "event"
        else:
            number, content = row.ordinal, contents.get(row.said)
            if content is None:
                content = contents[row.said] = source.content(row)
        change = "added" if is_added else "removed"
        lines.append((tx, thing, row.id, row.kind, change, *span, number, content, *done[op]))
    columns = list(zip(*lines, strict=True)) or [()] * len(_CHANGES)
    return pa.table(
        [_column(field, list(values)) for field, values in zip(_CHANGES, columns, strict=True)],
        schema=_CHANGES,
    )


def _column(field: pa.Field, values: list[Any]) -> pa.Array:
    import numpy as np

    if field.type == _INSTANT:
        return _instants({field.name: np.array(values, np.int64)})[field.name]
    return texts(values) if field.type == pa.string() else numbers(values)


def without_all_of(periods: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """Return the stretches that some of `periods` cover and none of `holes`."""
    return [rest for each in coalesce(periods) for rest in without_all(each, holes)]


# ------------------------------------------------------------------------------------------------- columns


def _instants(periods: Mapping[str, Any]) -> dict[str, pa.Array]:
    found = {}
    for name, column in periods.items():
        there = pa.array(column, pa.int64(), mask=column >= OPEN if name.endswith("_to") else None)
        found[name] = there.cast(pa.timestamp("us")).cast(_INSTANT)
    return found


def _in_order(columns: Mapping[str, pa.Array]) -> pa.Table:
    told = columns["told"].cast(_INSTANT)
    table = pa.table({**columns, "told": told})
    return table.sort_by(
        [("id", "ascending"), ("valid_from", "ascending"), ("tx_from", "ascending")]
    ).combine_chunks()


def _fields(
    source: RowSpans, kind: str | None, fields: Sequence[str] | None, contents: list[str | None]
) -> dict[str, pa.Array]:
    """Return the fields of contents as columns: their types are those of all descriptions of the kind that are known, whatever part is asked for."""
    kinds = source.field_kinds(kind)
    names = sorted(kinds) if fields is None else list(dict.fromkeys(fields))
    if kinds and not kinds.keys() >= set(names):
        _refuse_unknown(source, names)
    parsed: list[Json] = orjson.loads(f"[{','.join(each or '{}' for each in contents)}]")
    taken, found = set(_TAKEN), {}
    for name in names:
        values = [content.get(name) for content in parsed]
        found[property_name(name, taken)] = field_column(kinds.get(name, "text"), values)
    return found


def _refuse_unknown(source: RowSpans, fields: Sequence[str]) -> None:
    """Raise InvalidError for a field that no content of any kind has ever had: a column of None would pass for an answer."""
    known = source.field_kinds(None)
    for name in fields:
        if name not in known:
            near = closest(name, known)
            guess = f" Nearest: {', '.join(map(repr, near))}." if near else ""
            raise InvalidError(
                f"no content of a node has ever had the field {name!r}.{guess} Give fields of contents; id, kind, text and the periods are columns anyway."
            )
