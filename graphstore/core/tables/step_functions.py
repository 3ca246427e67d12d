"""Aggregates over time: what a table of periods adds up to at each instant, as steps, by one sweep over the ends of its periods."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.tables.arrow_tables import texts
from graphstore.errors import InvalidError
from graphstore.values.period import OPEN

TimeAxis = Literal["valid", "tx"]
_AGGREGATE = re.compile(r"\s*(count|sum|avg|min|max)\s*\(\s*(.*?)\s*\)\s*\Z", re.IGNORECASE)
_INSTANT = pa.timestamp("us", tz="UTC")


def steps(table: pa.Table, aggregate: str, by: Sequence[str], axis: TimeAxis) -> pa.Table:
    """The steps of an aggregate. Raises InvalidError for one that is not known, a column that is not there, and a sum of what is no number."""
    parsed = _AGGREGATE.match(aggregate) if isinstance(aggregate, str) else None
    if parsed is None:
        raise InvalidError(
            f"{aggregate!r} is no aggregate. Give count(*), or count, sum, avg, min or max of a column, such as 'sum(total)'."
        )
    name, column = parsed[1].lower(), parsed[2]
    if axis not in ("valid", "tx"):
        raise InvalidError.choice("axis", axis, ("valid", "tx"))
    wanted = [
        f"{axis}_from",
        f"{axis}_to",
        *by,
        *([] if column in ("*", "") and name == "count" else [column]),
    ]
    for each in wanted:
        if each not in table.column_names:
            raise InvalidError.choice("column", each, table.column_names)
    begin, end = whole(table[wanted[0]]), whole(table[wanted[1]])
    table = table.filter(pa.array(begin < end))
    begin, end = begin[begin < end], end[begin < end]
    groups, heads = _groups(table, by)
    values = table[column] if column in table.column_names and column != "*" else None
    if name in ("min", "max"):
        found = _extremes(begin, end, groups, values, name == "max")
    else:
        found = _sums(begin, end, groups, values, name)
    group, since, until, value = _merged(*found)
    return pa.table(
        [*(heads[each].take(pa.array(group)) for each in by), _times(since), _times(until), value],
        names=[*by, wanted[0], wanted[1], aggregate.strip()],
    )


def whole(column: pa.ChunkedArray) -> Any:
    """Instants as numbers, an open end as the last one."""
    if not pa.types.is_timestamp(column.type) and not pa.types.is_null(column.type):
        raise InvalidError("the ends of periods are no instants. Ask for a table of periods.")
    return pc.fill_null(column.cast(pa.timestamp("us")).cast(pa.int64()), OPEN).to_numpy()


def coded(column: pa.ChunkedArray) -> Any:
    """A number for each distinct value, -1 for none."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([texts([str(value) for value in column.to_pylist()])])
    encoded = pc.dictionary_encode(column.combine_chunks())
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)


def grouped(table: pa.Table, by: Sequence[str]) -> Any:
    """A number for each distinct row of these columns."""
    import numpy as np

    codes = np.zeros(len(table), np.int64)
    for name in by:
        _, each = np.unique(coded(table[name]), return_inverse=True)
        _, codes = np.unique(codes * (int(each.max(initial=0)) + 1) + each, return_inverse=True)
    return codes


def _groups(table: pa.Table, by: Sequence[str]) -> tuple[Any, pa.Table]:
    """The group of each row, in the order of their values, and a row of each group."""
    import numpy as np

    codes = grouped(table, by)
    _, firsts = np.unique(codes, return_index=True)
    heads = table.select(list(by)).take(pa.array(firsts)) if by else table.select([])
    if by and not any(pa.types.is_nested(heads[each].type) for each in by):
        order = pc.sort_indices(heads, sort_keys=[(each, "ascending") for each in by]).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        codes, heads = place[codes] if len(order) else codes, heads.take(pa.array(order))
    return codes, heads


def _times(instants: Any) -> pa.Array:
    return pa.array(instants, pa.int64(), mask=instants >= OPEN).cast(pa.timestamp("us")).cast(_INSTANT)


def _numbers(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """Values as numbers, wide enough to be added exactly, and which there are."""
    import numpy as np

    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise InvalidError(
            f"a sum is of numbers, and the column holds {kind}. Count it, or ask for its min or max."
        )
    there = pc.is_valid(values).to_numpy().astype(np.int64)
    wide = np.int64 if pa.types.is_integer(kind) else np.longdouble
    filled = pc.fill_null(values.cast(pa.int64() if wide is np.int64 else pa.float64()), 0)
    return filled.to_numpy().astype(wide), there


def _sums(begin: Any, end: Any, groups: Any, values: pa.ChunkedArray | None, name: str) -> Any:
    """What begins is added and what ends is taken away, in the order of the instants."""
    import numpy as np

    rows = np.ones(len(begin), np.int64)
    there = rows if values is None else pc.is_valid(values).to_numpy().astype(np.int64)
    added = there if name == "count" or values is None else _numbers(values)[0]
    times, of = np.concatenate([begin, end]), np.concatenate([groups, groups])
    order = np.lexsort((times, of)) if groups.any() else np.argsort(times, kind="stable")
    times, of = times[order], of[order]
    if not len(times):
        empty = np.zeros(0, np.int64)
        return (
            empty,
            empty,
            empty,
            pa.array([], pa.int64() if added.dtype == np.int64 and name != "avg" else pa.float64()),
        )
    fresh = np.ones(len(times), bool)
    fresh[1:] = (times[1:] != times[:-1]) | (of[1:] != of[:-1])
    firsts = np.flatnonzero(fresh)

    def run(deltas: Any) -> Any:
        return np.cumsum(np.add.reduceat(np.concatenate([deltas, -deltas])[order], firsts))

    held, counted, total = run(rows), run(there), run(added)
    if total.dtype != np.int64:  # what is left of one group, where nothing holds, is no part of the next
        held_before = np.concatenate([[0], held[:-1]])
        rest = np.where(held_before == 0, np.concatenate([[0], total[:-1]]), 0)
        starts = np.maximum.accumulate(np.where(held_before == 0, np.arange(len(total)), 0))
        total = total - rest[starts]
    times, of = times[firsts], of[firsts]
    until = np.append(times[1:], OPEN)
    keep = held > 0
    mask = (counted[keep] == 0) & (name != "count")
    if name == "avg":
        found = pa.array((total[keep] / np.maximum(counted[keep], 1)).astype(np.float64), mask=mask)
    elif total.dtype == np.int64:
        found = pa.array(total[keep], mask=mask)
    else:
        found = pa.array(total[keep].astype(np.float64), mask=mask)
    return of[keep], times[keep], until[keep], found


def _extremes(begin: Any, end: Any, groups: Any, values: Any, largest: bool) -> Any:
    """What begins is put on a heap, and taken off when it comes to the top after it ended."""
    import numpy as np

    values = values.combine_chunks()
    ranks = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    sign = -1 if largest else 1
    order = np.lexsort((begin, groups))
    found: list[tuple[int, int, int, int | None]] = []
    stops = np.flatnonzero(np.diff(groups[order])) + 1
    for rows in np.split(order, stops) if len(order) else []:
        instants = np.unique(np.concatenate([begin[rows], end[rows]])).tolist()
        waiting = iter(rows.tolist())
        heap: list[tuple[int, int, int]] = []
        nulls: list[int] = []
        row = next(waiting, None)
        for at, until in zip(instants, [*instants[1:], OPEN], strict=True):
            while row is not None and begin[row] <= at:
                if there[row]:
                    heapq.heappush(heap, (sign * int(ranks[row]), int(end[row]), row))
                else:
                    heapq.heappush(nulls, int(end[row]))
                row = next(waiting, None)
            while heap and heap[0][1] <= at:
                heapq.heappop(heap)
            while nulls and nulls[0] <= at:
                heapq.heappop(nulls)
            if heap or nulls:
                found.append((int(groups[rows[0]]), at, until, heap[0][2] if heap else None))
    group, since, until, chosen = (
        (list(each) for each in zip(*found, strict=True)) if found else ([], [], [], [])
    )
    return (
        np.array(group, np.int64), np.array(since, np.int64), np.array(until, np.int64), values.take(pa.array(chosen, pa.int64())),
    )  # fmt: skip


def _merged(group: Any, since: Any, until: Any, value: pa.Array) -> tuple[Any, Any, Any, pa.Array]:
    """Stretches that follow one another with the same value as one."""
    import numpy as np

    if not len(group):
        return group, since, until, value
    same = coded(pa.chunked_array([value]))
    fresh = np.ones(len(group), bool)
    fresh[1:] = (group[1:] != group[:-1]) | (since[1:] != until[:-1]) | (same[1:] != same[:-1])
    firsts = np.flatnonzero(fresh)
    lasts = np.append(firsts[1:], len(group)) - 1
    return group[firsts], since[firsts], until[lasts], value.take(pa.array(firsts))
