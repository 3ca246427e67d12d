"""The history of a store as tables: every row of nodes or links with both its periods, typed fields, and who said it, when and why.

Periods are chosen and cut in columns; a source reads them from the rows of a ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from graphstore.core.read.spans_from_rows import Asked, RowSpans, Span
from graphstore.core.tables.arrow_tables import fractions, numbers, texts, truths
from graphstore.core.tables.properties import FieldKind, property_name
from graphstore.core.tables.step_functions import grouped, whole
from graphstore.errors import InvalidError, closest
from graphstore.values.inputs import optional_text
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, coalesce, without_all

_INSTANT = pa.timestamp("us", tz="UTC")
_TAKEN = ("id", "kind", "key", "scope", "number", "text", "tags", "source", "author", "told", "remainder",
          "operation", "reason", "valid_from", "valid_to", "tx_from", "tx_to")  # fmt: skip


def nodes(source: RowSpans, asked: Asked, kind: str | None, fields: Sequence[str] | None) -> pa.Table:
    """The rows of nodes, by id, valid_from and tx_from; a column for each field of the content."""
    optional_text("kind", kind)
    columns, contents, periods = source.nodes(asked, kind)
    described = {
        name: columns.pop(name) for name in ("id", "kind", "key", "scope", "number", "text", "tags", "source")
    }
    columns = {**described, **_fields(source, kind, fields, contents), **columns}
    return _in_order({**columns, **_instants(periods)})


def links(source: RowSpans, asked: Asked, kind: str | None) -> pa.Table:
    """The rows of links, by id, valid_from and tx_from."""
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
    """What each transaction after `since` up to `until` changed of what is believed: the periods over which something is said, or no more."""
    import numpy as np

    found: list[tuple[int, int, str, int, str, Span]] = []
    for thing in ("node", "link"):
        changed = source.changed(thing, since, until)
        begin, end, known, gone = changed.valid_from, changed.valid_to, changed.tx_from, changed.tx_to
        spans: dict[tuple[int, int, int], tuple[list[Span], list[Span], int, int]] = {}
        for at, by, side in ((known, changed.opened_by, 0), (gone, changed.closed_by, 1)):
            for row in np.flatnonzero((at > since) & (at <= until) & (known < gone)).tolist():
                which = (int(at[row]), int(changed.owner[row]), int(changed.said[row]))
                pair = spans.setdefault(which, ([], [], int(by[row]), row))
                (pair[1] if side else pair[0]).append((int(begin[row]), int(end[row])))
        for (tx, _, _), (fresh, old, op, row) in spans.items():
            for change, here, there in (("removed", old, fresh), ("added", fresh, old)):
                for span in without_all_of(here, there):
                    found.append((tx, op, thing, row, change, span))
    found.sort(key=lambda each: (each[0], each[1], each[2], each[3], each[4] == "added", each[5]))
    return _changes(source, found)


def without_all_of(periods: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """The stretches that some of `periods` cover and none of `holes`."""
    return [rest for each in coalesce(periods) for rest in without_all(each, holes)]


def _changes(source: RowSpans, found: Sequence[tuple[int, int, str, int, str, Span]]) -> pa.Table:
    import numpy as np

    done = source.done([op for _, op, *_ in found])
    about = source.about([(thing, row) for _, _, thing, row, _, _ in found])
    rows = [
        (tx, each.thing, each.id, each.kind, change, *span, each.number, each.content, *done[op])
        for (tx, op, _, _, change, span), each in zip(found, about, strict=True)
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(_CHANGES)
    made = []
    for field, values in zip(_CHANGES, columns, strict=True):
        if field.type == _INSTANT:
            made.append(_instants({field.name: np.array(values, np.int64)})[field.name])
        else:
            made.append(texts(list(values)) if field.type == pa.string() else numbers(list(values)))
    return pa.table(made, schema=_CHANGES)


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
    """The fields of contents as columns: their types are those of all descriptions of the kind that are known, whatever part is asked for."""
    kinds = source.field_kinds(kind)
    names = sorted(kinds) if fields is None else list(dict.fromkeys(fields))
    if kinds and not kinds.keys() >= set(names):
        _refuse_unknown(source, names)
    parsed: list[Json] = orjson.loads(f"[{','.join(each or '{}' for each in contents)}]")
    taken, found = set(_TAKEN), {}
    for name in names:
        values = [content.get(name) for content in parsed]
        found[property_name(name, taken)] = _typed(kinds.get(name, "text"), values)
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


def _typed(kind: FieldKind, values: list[Any]) -> pa.Array:
    if kind == "text":
        return texts(values)
    if kind == "truth":
        return truths(values)
    if kind == "whole":
        return numbers(values)
    if kind == "number":
        return fractions([None if value is None else float(value) for value in values])
    return texts([None if value is None else orjson.dumps(value).decode() for value in values])
