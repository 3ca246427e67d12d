"""The history of a store as tables: every row of nodes or links with both its periods, typed fields, and who said it, when and why.

Rows are chosen and cut in columns of the index; contents are read once for each description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from graphstore.core.tables.arrow_tables import (
    claim_columns,
    end_columns,
    fractions,
    numbers,
    read_bodies,
    texts,
    told_columns,
    truths,
)
from graphstore.core.tables.properties import FieldKind, field_kind, property_name
from graphstore.core.tables.step_functions import grouped, whole
from graphstore.errors import InvalidError, closest
from graphstore.values.inputs import optional_text
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, coalesce, without_all

if TYPE_CHECKING:
    from graphstore.core.read.sight import Sight

Span = tuple[Instant, Instant]
_INSTANT = pa.timestamp("us", tz="UTC")
_TAKEN = ("id", "kind", "key", "scope", "number", "text", "tags", "source", "author", "told", "remainder",
          "operation", "reason", "valid_from", "valid_to", "tx_from", "tx_to")  # fmt: skip


class Asked:
    """Which part of a history is asked for: spans of both axes, half-open, cut to them or not. A span of tx that is one instant is what was believed then."""

    def __init__(self, valid: Span, tx: Span, clip: bool) -> None:
        self.valid, self.tx, self.clip = valid, tx, clip

    def rows(self, sight: Sight, columns: Sequence[Any], committed: int) -> tuple[Any, dict[str, Any]]:
        """The numbers of the rows, and their periods: columns of valid_from, valid_to, tx_from and tx_to are given."""
        import numpy as np

        begin, end, known, gone = (_array(column)[:committed] for column in columns)
        gone = np.where(gone > sight.tx, OPEN, gone)  # closed by what is not committed yet
        (since, until), (first, last) = self.valid, self.tx
        chosen = np.flatnonzero(
            (begin < until)
            & (end > since)
            & (known < last)
            & (known <= sight.tx)
            & (gone > first)
            & (known < gone)
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


def nodes(sight: Sight, asked: Asked, kind: str | None, fields: Sequence[str] | None) -> pa.Table:
    """The rows of nodes, by id, valid_from and tx_from; a column for each field of the content."""
    import numpy as np

    optional_text("kind", kind)
    index, core = sight.index, sight.core
    chosen, periods = asked.rows(
        sight, (index.r_from, index.r_to, index.r_tx, index.r_end), index.mark().rows
    )
    ents = _array(index.r_ent)[chosen]
    wanted = np.array(
        [not index.is_event[ent] and kind in (None, index.kind[ent]) for ent in ents.tolist()], bool
    )
    chosen, ents = chosen[wanted], ents[wanted].tolist()
    periods = {name: column[wanted] for name, column in periods.items()}
    found = core.graphs.node_tables(core.epoch.world, core.raw).of(numbers(chosen.tolist()))
    versions = _array(index.r_ver)[chosen].tolist()
    told = told_columns(index, [index.v_op[ver] for ver in versions], periods["tx_from"].tolist())
    columns = {
        **{name: found[name] for name in ("id", "kind", "key", "scope", "number", "text", "tags", "source")},
        **_fields(sight, kind, fields, found["content"].to_pylist()),
        **told,
        **_operations(sight, [index.v_op[ver] for ver in versions]),
        **_instants(periods),
    }
    return _in_order(columns)


def links(sight: Sight, asked: Asked, kind: str | None) -> pa.Table:
    """The rows of links, by id, valid_from and tx_from."""
    import numpy as np

    index, core = sight.index, sight.core
    chosen, periods = asked.rows(
        sight, (index.k_from, index.k_to, index.k_tx, index.k_end), index.mark().link_rows
    )
    owners = _array(index.k_link)[chosen].tolist()
    wanted = np.array([kind in (None, index.l_kind[link]) for link in owners], bool)
    rows = chosen[wanted]
    periods = {name: column[wanted] for name, column in periods.items()}
    of, claims = _array(index.k_link)[rows].tolist(), _array(index.k_claim)[rows].tolist()
    bodies = read_bodies(core.raw, [(index.c_pos[claim], index.c_len[claim]) for claim in claims])
    told = [index.c_op[claim] for claim in claims]
    said = claim_columns(index, bodies, of, claims)
    columns = {
        "id": said.pop("id"),
        **end_columns(index, of),
        **said,
        **told_columns(index, told, periods["tx_from"].tolist()),
        "operation": _operations(sight, told)["operation"],
        **_instants(periods),
    }
    return _in_order(columns)


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


def changes(sight: Sight, since: Instant, until: Instant) -> pa.Table:
    """What each transaction after `since` up to `until` changed of what is believed: the periods over which something is said, or no more."""
    import numpy as np

    index = sight.index
    until = min(until, sight.tx)
    found: list[tuple[Any, ...]] = []
    for thing, columns, committed in (
        ("node", (index.r_from, index.r_to, index.r_tx, index.r_end, index.r_ver, index.r_op, index.r_close), index.mark().rows),
        ("link", (index.k_from, index.k_to, index.k_tx, index.k_end, index.k_claim, index.k_op, index.k_close), index.mark().link_rows),
    ):  # fmt: skip
        begin, end, known, gone, said, opened, closed = (_array(column)[:committed] for column in columns)
        spans: dict[tuple[int, int, int], tuple[list[Span], list[Span], int, int]] = {}
        for at, by, side in ((known, opened, 0), (gone, closed, 1)):
            for row in np.flatnonzero((at > since) & (at <= until) & (known < gone)).tolist():
                owner = index.r_ent[row] if thing == "node" else index.k_link[row]
                which = (int(at[row]), owner, int(said[row]))
                pair = spans.setdefault(which, ([], [], int(by[row]), row))
                (pair[1] if side else pair[0]).append((int(begin[row]), int(end[row])))
        for (tx, _, _), (fresh, old, op, row) in spans.items():
            for change, here, there in (("removed", old, fresh), ("added", fresh, old)):
                for span in without_all_of(here, there):
                    found.append((tx, op, thing, row, change, span))
    return _changes(
        sight,
        sorted(found, key=lambda each: (each[0], each[1], each[2], each[3], each[4] == "added", each[5])),
    )


def without_all_of(periods: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """The stretches that some of `periods` cover and none of `holes`."""
    return [rest for each in coalesce(periods) for rest in without_all(each, holes)]


def _changes(sight: Sight, found: Sequence[tuple[int, int, str, int, str, Span]]) -> pa.Table:
    import numpy as np

    index, core = sight.index, sight.core
    versions = [
        index.r_ver[row]
        for _, _, thing, row, _, _ in found
        if thing == "node" and not index.is_event[index.r_ent[row]]
    ]
    distinct = sorted(set(versions))
    bodies = read_bodies(core.raw, [(index.v_pos[ver], index.v_len[ver]) for ver in distinct])
    contents = {
        ver: orjson.dumps(body.get("content") or {}, option=orjson.OPT_SORT_KEYS).decode()
        for ver, body in zip(distinct, bodies, strict=True)
    }
    said = _operations(sight, [op for _, op, *_ in found])
    rows = []
    for (tx, op, thing, row, change, span), verb, reason in zip(
        found, said["operation"].to_pylist(), said["reason"].to_pylist(), strict=True
    ):
        number = content = None
        if thing == "node":
            ent, ver = index.r_ent[row], index.r_ver[row]
            name, kind, thing = index.names[ent], index.kind[ent], "event" if index.is_event[ent] else "node"
            if thing == "node":
                number, content = index.v_num[ver], contents[ver]
        else:
            link = index.k_link[row]
            name, kind = index.l_name[link], index.l_kind[link]
            ends = {"source": index.names[index.l_src[link]], "target": index.names[index.l_tgt[link]]}
            content = orjson.dumps(ends).decode()
        author = index.o_author[op] if op >= 0 else None
        rows.append((tx, thing, name, kind, change, *span, number, content, verb, author, reason))
    columns = list(zip(*rows, strict=True)) or [()] * len(_CHANGES)
    made = []
    for field, values in zip(_CHANGES, columns, strict=True):
        if field.type == _INSTANT:
            made.append(_instants({field.name: np.array(values, np.int64)})[field.name])
        else:
            made.append(texts(list(values)) if field.type == pa.string() else numbers(list(values)))
    return pa.table(made, schema=_CHANGES)


# ------------------------------------------------------------------------------------------------- columns


def _array(column: Any) -> Any:
    return numbers(column[:]).to_numpy(
        zero_copy_only=False
    )  # a copy: an array that is looked into cannot grow


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


def _operations(sight: Sight, ops: Sequence[int]) -> dict[str, pa.Array]:
    """What was done when rows were said first, and why."""
    index = sight.index
    distinct = sorted({op for op in ops if op >= 0})
    bodies = read_bodies(sight.core.raw, [(index.o_pos[op], index.o_len[op]) for op in distinct])
    reasons = {op: body.get("reason") for op, body in zip(distinct, bodies, strict=True)}
    return {
        "operation": texts([index.o_verb[op] if op >= 0 else None for op in ops]),
        "reason": texts([reasons.get(op) for op in ops]),
    }


def _fields(
    sight: Sight, kind: str | None, fields: Sequence[str] | None, contents: list[str | None]
) -> dict[str, pa.Array]:
    """The fields of contents as columns: their types are those of all descriptions of the kind that are known, whatever part is asked for."""
    kinds = _field_kinds(sight, kind)
    names = sorted(kinds) if fields is None else list(dict.fromkeys(fields))
    if kinds and not kinds.keys() >= set(names):
        _refuse_unknown(sight, names)
    parsed: list[Json] = orjson.loads(f"[{','.join(each or '{}' for each in contents)}]")
    taken, found = set(_TAKEN), {}
    for name in names:
        values = [content.get(name) for content in parsed]
        found[property_name(name, taken)] = _typed(kinds.get(name, "text"), values)
    return found


def _refuse_unknown(sight: Sight, fields: Sequence[str]) -> None:
    """Raise InvalidError for a field that no content of any kind has ever had: a column of None would pass for an answer."""
    known = _field_kinds(sight, None)
    for name in fields:
        if name not in known:
            near = closest(name, known)
            guess = f" Nearest: {', '.join(map(repr, near))}." if near else ""
            raise InvalidError(
                f"no content of a node has ever had the field {name!r}.{guess} Give fields of contents; id, kind, text and the periods are columns anyway."
            )


def _field_kinds(sight: Sight, kind: str | None) -> dict[str, FieldKind]:
    import numpy as np

    index, core = sight.index, sight.core
    rows = _array(index.r_ver)[: index.mark().rows]
    known = _array(index.r_tx)[: index.mark().rows] <= sight.tx
    kept = core.graphs.node_tables(core.epoch.world, core.raw).field_kinds
    which = kind, int(np.count_nonzero(known))
    if which in kept:
        return dict(kept[which])
    versions = np.unique(rows[known]).tolist()
    versions = [
        ver
        for ver in versions
        if not index.is_event[index.v_ent[ver]] and kind in (None, index.kind[index.v_ent[ver]])
    ]
    values: dict[str, list[Any]] = {}
    for body in read_bodies(core.raw, [(index.v_pos[ver], index.v_len[ver]) for ver in versions]):
        for name, value in (body.get("content") or {}).items():
            values.setdefault(name, []).append(value)
    for other in [each for each in kept if each[1] != which[1]]:
        del kept[other]
    kept[which] = {name: field_kind(each) for name, each in values.items()}
    return dict(kept[which])


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
