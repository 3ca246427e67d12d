"""Read the history of a store as tables: every row of nodes or links with both its periods, typed fields, author, instant and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from graphstore.errors import InvalidError, closest
from graphstore.graph.arrow_tables import (
    arrow_out,
    columns_by_name,
    columns_of,
    description_columns,
    field_column,
    link_columns,
    numbers,
    tombstone,
    whole_bodies,
)
from graphstore.graph.properties import FieldKind, field_kind, property_name
from graphstore.graph.step_functions import grouped, whole
from graphstore.ledger.statements import Statement
from graphstore.read.operations import done_by
from graphstore.read.points import Point
from graphstore.values.inputs import optional_text
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, coalesce, without_all
from graphstore.view.sight import Sight

Span = tuple[Instant, Instant]
_TAKEN = ("id", "kind", "key", "scope", "number", "text", "tags", "source", "author", "told", "remainder",
          "operation", "reason", "valid_from", "valid_to", "tx_from", "tx_to")  # fmt: skip
_BOUNDS = ("valid_from", "valid_to", "tx_from", "tx_to")
_ORDER = [("id", "ascending"), ("valid_from", "ascending"), ("tx_from", "ascending")]
_CHANGES = ("tx", "thing", "id", "kind", "change", "valid_from", "valid_to", "number", "content", "operation",
            "author", "reason")  # fmt: skip


class HistorySpans(NamedTuple):
    """Holds the requested part of a history: half-open spans of both axes, and whether periods are cut to them. A tx span of one instant means what was believed then."""

    valid: Span
    tx: Span
    clip: bool

    @property
    def is_one_tx(self) -> bool:
        """Return True if what was believed at one instant is requested."""
        return self.tx[1] - self.tx[0] == 1

    def columns(self, point: Point, statement: Statement[Any], kind: str | None) -> dict[str, list[Any]]:
        """Return the columns of the requested periods."""
        spans = dict(zip(_BOUNDS, (*self.valid, *self.tx), strict=True))
        found = columns_of(point.rows(statement, **spans, kind=kind), statement.model)
        if self.is_one_tx:  # later ends were not known then
            found["tx_to"] = [OPEN] * len(found["tx_to"])
        if self.clip:
            for axis in ("valid",) if self.is_one_tx else ("valid", "tx"):
                since, until = spans[f"{axis}_from"], spans[f"{axis}_to"]
                found[f"{axis}_from"] = [max(each, since) for each in found[f"{axis}_from"]]
                found[f"{axis}_to"] = [min(each, until) for each in found[f"{axis}_to"]]
        return found


class NodeSpan(NamedTuple):
    """A period of a node with its description."""

    id: str
    kind: str
    key: str | None
    scope: str
    number: int
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
    """A period of a link with its attributes."""

    id: str
    source: str
    target: str
    kind: str
    strength: int | None
    confidence: str
    created_by: str
    author: str | None
    told: Instant
    verb: str | None
    operation: int | None
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    data: bytes | None
    checksum: int | None


class VersionContent(NamedTuple):
    """Stores the content of a version of a node."""

    data: bytes | None
    checksum: int


class ChangedNode(NamedTuple):
    """A period of a node or event that was opened or closed."""

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
    """A period of a link that was opened or closed."""

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


SPANS_OF_NODES = Statement("spans_of_nodes", NodeSpan)
SPANS_OF_LINKS = Statement("spans_of_links", LinkSpan)
CONTENTS_OF_KIND = Statement("contents_of_kind", VersionContent)
CHANGED_NODES = Statement("changed_nodes", ChangedNode)
CHANGED_LINKS = Statement("changed_links", ChangedLink)


def nodes(sight: Sight, asked: HistorySpans, kind: str | None, fields: Sequence[str] | None) -> pa.Table:
    """Return the rows of nodes, by id, valid_from and tx_from, with a column for each field of the content."""
    optional_text("kind", kind)
    columns = asked.columns(sight.point, SPANS_OF_NODES, kind)
    known = whole_bodies(
        sight.point,
        columns["data"],
        columns["checksum"],
        lambda at: f"node {columns['id'][at]!r}, version {columns['number'][at]}",
    )
    bodies = [body or tombstone(word) for body, word in zip(known, columns["word"], strict=True)]
    said = description_columns(bodies)
    done = done_by(sight.point, (op for op in columns["operation"] if op is not None))
    reasons = [done[op][2] if op in done else None for op in columns["operation"]]
    return _in_order(
        {
            **columns_by_name({name: columns[name] for name in ("id", "kind", "key", "scope", "number")}),
            **{name: said[name] for name in ("text", "tags", "source")},
            **_fields(sight, kind, fields, [body.get("content") or {} for body in bodies]),
            **_recorded(columns, reason=reasons),
        }
    )


def links(sight: Sight, asked: HistorySpans, kind: str | None) -> pa.Table:
    """Return the rows of links, by id, valid_from and tx_from."""
    point = sight.point
    columns = asked.columns(point, SPANS_OF_LINKS, kind)
    bodies = whole_bodies(
        point, columns["data"], columns["checksum"], lambda at: f"link {columns['id'][at]!r}"
    )
    said = link_columns(bodies)
    return _in_order(
        {
            **columns_by_name({name: columns[name] for name in ("id", "source", "target", "kind")}),
            "reason": said["reason"],
            **columns_by_name({name: columns[name] for name in ("strength", "confidence", "created_by")}),
            "metadata": said["metadata"],
            **_recorded(columns),
        }
    )


def _recorded(columns: Mapping[str, list[Any]], **said: list[str | None]) -> dict[str, pa.Array]:
    """Return the columns of who first recorded something, when and by which operation, of whether its period was recorded later, and of the period's bounds."""
    known = zip(columns["operation"], columns["told"], columns["tx_from"], strict=True)
    found = columns_by_name(
        {
            "author": columns["author"],
            # if the first operation is unknown, the instant when its period was recorded
            "told": [since if operation is None else at for operation, at, since in known],
            "operation": columns["verb"],
            **said,
            **{bound: columns[bound] for bound in _BOUNDS},
        }
    )
    return {name: found[name] for name in ("author", "told", "remainder", "operation", *said, *_BOUNDS)}


def _in_order(columns: Mapping[str, pa.Array]) -> pa.Table:
    return arrow_out(pa.table(columns)).sort_by(_ORDER).combine_chunks()


def coalesced(table: pa.Table, on: Sequence[str], *, at_one_tx: bool) -> pa.Table:
    """Return one row for each stretch of valid time over which the columns `on` of an id stay the same. Rows believed over different spans of tx stay separate, unless all
    are believed at one requested tx. Raises InvalidError for an unknown column."""
    import numpy as np

    columns = [name for name in table.column_names if name not in _BOUNDS]
    for name in on:
        if name not in columns:
            raise InvalidError.choice("column to coalesce on", name, columns)
    keys = list(dict.fromkeys(["id", *on]))
    apart = keys if at_one_tx else [*keys, "tx_from", "tx_to"]
    table = table.select([*keys, *_BOUNDS])
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
        "tx_from": numbers(known).cast(heads["tx_from"].type),
        "tx_to": heads["tx_to"],
    }
    return pa.table(merged).sort_by(_ORDER)


def changes(point: Point, since: Instant, until: Instant) -> pa.Table:
    """Return the changes of belief by each transaction after `since` up to `until`: the periods over which something is stated, or no longer stated."""
    found: list[tuple[int, int, str, int, bool, Span, ChangedNode | ChangedLink]] = []
    for thing, statement in (("node", CHANGED_NODES), ("link", CHANGED_LINKS)):
        rows: list[Any] = point.rows(statement, since=since, until=until)
        spans: dict[tuple[int, int, int], tuple[list[Span], list[Span], int, int]] = {}
        for side in (0, 1):
            for at, row in enumerate(rows):
                tx, by = (row.tx_to, row.closed_by) if side else (row.tx_from, row.opened_by)
                if since < tx <= until:
                    pair = spans.setdefault((tx, row.owner, row.said), ([], [], -1 if by is None else by, at))
                    (pair[1] if side else pair[0]).append((row.valid_from, row.valid_to))
        for (tx, _, _), (fresh, old, op, at) in spans.items():
            for is_added, here, there in ((False, old, fresh), (True, fresh, old)):
                for span in (rest for each in coalesce(here) for rest in without_all(each, there)):
                    found.append((tx, op, thing, at, is_added, span, rows[at]))
    found.sort(key=lambda each: each[:6])
    done: dict[int, tuple[str | None, str | None, str | None]] = {-1: (None, None, None)}
    done.update(done_by(point, (op for _, op, *_ in found)))
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
                body = point.content(row.data, row.checksum, f"node {row.id!r}, version {row.ordinal}")
                dumped = orjson.dumps(body.get("content") or {}, option=orjson.OPT_SORT_KEYS)
                content = contents[row.said] = dumped.decode()
        change = "added" if is_added else "removed"
        lines.append((tx, thing, row.id, row.kind, change, *span, number, content, *done[op]))
    columns = list(zip(*lines, strict=True)) or [()] * len(_CHANGES)
    return arrow_out(pa.table(columns_by_name(dict(zip(_CHANGES, columns, strict=True)))))


# ------------------------------------------------------------------------------------------------- fields


def _fields(
    sight: Sight, kind: str | None, fields: Sequence[str] | None, contents: list[Json]
) -> dict[str, pa.Array]:
    """Return the fields of contents as columns. Their types are determined by all known descriptions of the kind, not only by the requested part."""
    kinds = _field_kinds(sight, kind)
    names = sorted(kinds) if fields is None else list(dict.fromkeys(fields))
    if kinds and not kinds.keys() >= set(names):
        _refuse_unknown(sight, names)
    taken, found = set(_TAKEN), {}
    for name in names:
        values = [content.get(name) for content in contents]
        found[property_name(name, taken)] = field_column(kinds.get(name, "text"), values)
    return found


def _field_kinds(sight: Sight, kind: str | None) -> dict[str, FieldKind]:
    """Return the types of all fields that nodes (of a kind) ever had."""
    memo = sight.memo()
    assert memo is not None
    which = "fields", kind, sight.index.last_tx if sight.sees_all() else sight.tx
    if which not in memo:
        values: dict[str, list[Any]] = {}
        for row in sight.point.rows(CONTENTS_OF_KIND, kind=kind):
            body = sight.point.content(row.data, row.checksum, "a node")
            for name, value in (body.get("content") or {}).items():
                values.setdefault(name, []).append(value)
        memo[which] = {name: field_kind(each) for name, each in values.items()}
    found: dict[str, FieldKind] = memo[which]
    return found


def _refuse_unknown(sight: Sight, fields: Sequence[str]) -> None:
    """Raise InvalidError for a field that no content of any kind has ever had: a column of None would look like an answer."""
    known = _field_kinds(sight, None)
    for name in fields:
        if name not in known:
            near = closest(name, known)
            guess = f" Nearest: {', '.join(map(repr, near))}." if near else ""
            raise InvalidError(
                f"no content of a node has ever had the field {name!r}.{guess} Give fields of contents; id, kind, text and the periods are columns anyway."
            )
