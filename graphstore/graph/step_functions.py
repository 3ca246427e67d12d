"""Aggregates over time: the value at each instant, as steps, from one sweep over the ends of periods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from graphstore.errors import InvalidError
from graphstore.graph.arrow_tables import arrow_out, instants, texts
from graphstore.values.period import OPEN

TimeAxis = Literal["valid", "tx"]
_AGGREGATE = re.compile(r"\s*(count|sum|avg|min|max)\s*\(\s*(.*?)\s*\)\s*\Z", re.IGNORECASE)
_MOST = float(1 << 62)


def steps(table: pa.Table, aggregate: str, by: Sequence[str], axis: TimeAxis) -> pa.Table:
    """Return the steps of an aggregate. Raises InvalidError for an unknown aggregate or column, and for a sum of anything but numbers."""
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
    if twice := {f"{axis}_from", f"{axis}_to"} & {*by}:
        raise InvalidError(f"{min(twice)} is the axis of the steps, and no group. Leave it out of by.")
    table = table.select(list(dict.fromkeys(wanted)))
    begin, end = whole(table[wanted[0]]), whole(table[wanted[1]])
    lasting = begin < end
    if not lasting.all():
        table, begin, end = table.filter(pa.array(lasting)), begin[lasting], end[lasting]
    groups, heads = _groups(table, by)
    values = table[column] if column in table.column_names and column != "*" else None
    if name in ("min", "max"):
        found = _extremes(begin, end, groups, values, name == "max")
    else:
        found = _sums(begin, end, groups, values, name)
    group, since, until, value = _merged(*found)
    columns = [*(heads[each].take(pa.array(group)) for each in by), instants(since), instants(until), value]
    return arrow_out(pa.table(columns, names=[*by, wanted[0], wanted[1], aggregate.strip()]))


def whole(column: pa.ChunkedArray) -> Any:
    """Return instants as numbers, an open end as the last one."""
    if not pa.types.is_timestamp(column.type) and not pa.types.is_null(column.type):
        raise InvalidError("the ends of periods are no instants. Ask for a table of periods.")
    return pc.fill_null(column.cast(pa.timestamp("us")).cast(pa.int64()), OPEN).to_numpy()


def coded(column: pa.ChunkedArray) -> Any:
    """Return a number for each distinct value, -1 for null."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([texts([str(value) for value in column.to_pylist()])])
    encoded = pc.dictionary_encode(column.combine_chunks())
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)


def grouped(table: pa.Table, by: Sequence[str]) -> Any:
    """Return a number for each distinct row of these columns."""
    import numpy as np

    codes = np.zeros(len(table), np.int64)
    for name in by:
        each, values = _places(coded(table[name]))
        codes, _ = _places(codes * len(values) + each)
    return codes


def _groups(table: pa.Table, by: Sequence[str]) -> tuple[Any, pa.Table]:
    """Return the group of each row, numbered in the order of their values, and one row of each group."""
    import numpy as np

    codes = grouped(table, by)
    firsts = np.zeros(codes.max(initial=-1) + 1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]  # written last to first: the first row remains
    heads = table.select(list(by)).take(pa.array(firsts)) if by else table.select([])
    if by and not any(pa.types.is_nested(heads[each].type) for each in by):
        order = pc.sort_indices(heads, sort_keys=[(each, "ascending") for each in by]).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        codes, heads = place[codes] if len(order) else codes, heads.take(pa.array(order))
    return codes, heads


def _numbers(values: pa.ChunkedArray) -> Any:
    """Return values as numbers, 0 for null."""
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise InvalidError(
            f"a sum is of numbers, and the column holds {kind}. Count it, or ask for its min or max."
        )
    wide = pa.float64() if pa.types.is_floating(kind) or kind == pa.uint64() else pa.int64()
    return pc.fill_null(values.cast(wide, safe=False), 0).to_numpy()


class _StepCells(NamedTuple):
    """The stretches between consecutive instants in each group, ordered by group and time, and the stretches in which each row begins and ends."""

    group: Any
    since: Any
    until: Any
    first: Any
    stop: Any

    def run(self, values: Any) -> Any:
        """Return for each cell the sum over the rows that hold there: add what begins and subtract what ends, in order of time."""
        import numpy as np

        changes = np.zeros(len(self.group), values.dtype)
        np.add.at(changes, self.first, values)
        np.subtract.at(changes, self.stop, values)
        return np.cumsum(changes)


def _cells(begin: Any, end: Any, groups: Any) -> _StepCells:
    import numpy as np

    places, times = _places(np.concatenate([begin, end]))
    found, present = _places(np.concatenate([groups, groups]) * len(times) + places)
    group, since = (present // len(times), times[present % len(times)]) if len(times) else (present, present)
    return _StepCells(group, since, np.append(since[1:], OPEN), found[: len(begin)], found[len(begin) :])


def _places(values: Any) -> tuple[Any, Any]:
    """Return the index of each whole number among the distinct ones, and these in order."""
    import numpy as np

    known, places = np.unique(values, return_inverse=True)
    return places, known


def _sums(begin: Any, end: Any, groups: Any, values: pa.ChunkedArray | None, name: str) -> Any:
    """Return the sum, count or average of what holds in each cell."""
    import numpy as np

    rows = np.ones(len(begin), np.int64)
    there = rows if values is None else pc.is_valid(values).to_numpy().astype(np.int64)
    added = there if name == "count" or values is None else _numbers(values)
    cells = _cells(begin, end, groups)
    held = cells.run(rows)
    counted = held if there is rows else cells.run(there)
    if added is there:
        total = counted
    elif added.dtype == np.int64 and np.abs(added.astype(np.float64)).sum() < _MOST:
        total = cells.run(added)
    elif added.dtype == np.int64 and name == "sum":
        raise InvalidError("the sum may be larger than 64 bits hold. Ask for avg, or for smaller numbers.")
    else:
        total = _exact(cells, added.astype(np.float64))
    keep = held > 0
    mask = (counted[keep] == 0) & (name != "count")
    if name == "avg":
        found = pa.array(total[keep].astype(np.float64) / np.maximum(counted[keep], 1), mask=mask)
    else:
        found = pa.array(total[keep], mask=mask)
    return cells.group[keep], cells.since[keep], cells.until[keep], found


def _exact(cells: _StepCells, values: Any) -> Any:
    """Return the sums of fractions in each cell, rounded once, so that a large value leaves no error when it ends. They are computed as integers, in units of
    the smallest part."""
    import numpy as np

    finite = np.isfinite(values)
    ratios = [value.as_integer_ratio() for value in np.where(finite, values, 0.0).tolist()]
    parts = max((part for _, part in ratios), default=1)  # all denominators are powers of two
    wholes = np.empty(len(ratios), object)
    wholes[:] = [number * (parts // part) for number, part in ratios]
    total = np.array([_divided(number, parts) for number in cells.run(wholes)], np.float64)
    if not finite.all():
        up, down, none = (
            cells.run(which.astype(np.int64)) > 0
            for which in (values == np.inf, values == -np.inf, np.isnan(values))
        )
        total = np.select([none | (up & down), up, down], [np.nan, np.inf, -np.inf], total)
    return total


def _divided(number: int, parts: int) -> float:
    try:
        return number / parts
    except OverflowError:  # as in a sum of floats
        return inf if number > 0 else -inf


def _extremes(begin: Any, end: Any, groups: Any, values: Any, largest: bool) -> Any:
    """Return the least or largest value in each cell. Two stretches of 2^n cells cover a row; they are halved until they are single cells."""
    import numpy as np

    values = values.combine_chunks()
    ranks = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    there = pc.is_valid(values).to_numpy(zero_copy_only=False)
    cells = _cells(begin, end, groups)
    held = cells.run(np.ones(len(begin), np.int64)) > 0
    nothing = len(values) + 1
    best = nothing - ranks if largest else ranks
    size = np.frexp(cells.stop - cells.first)[1] - 1  # the logarithm of the number of cells, rounded down
    least = np.full(len(held), nothing, np.int64)
    for level in range(int(size.max(initial=0)), -1, -1):
        rows = np.flatnonzero((size == level) & there)
        np.minimum.at(least, cells.first[rows], best[rows])
        np.minimum.at(least, cells.stop[rows] - (1 << level), best[rows])
        half = (1 << level) >> 1
        if half:
            halves = least.copy()
            np.minimum(halves[half:], least[:-half], out=halves[half:])
            least = halves
    row_of = np.zeros(nothing + 1, np.int64)
    row_of[best] = np.arange(len(best))
    known = least[held]
    chosen = pa.array(row_of[known], mask=known == nothing)
    return cells.group[held], cells.since[held], cells.until[held], values.take(chosen)


def _merged(group: Any, since: Any, until: Any, value: pa.Array) -> tuple[Any, Any, Any, pa.Array]:
    """Merge consecutive stretches with the same value."""
    import numpy as np

    if not len(group):
        return group, since, until, value
    same = coded(pa.chunked_array([value]))
    fresh = np.ones(len(group), bool)
    fresh[1:] = (group[1:] != group[:-1]) | (since[1:] != until[:-1]) | (same[1:] != same[:-1])
    firsts = np.flatnonzero(fresh)
    lasts = np.append(firsts[1:], len(group)) - 1
    return group[firsts], since[firsts], until[lasts], value.take(pa.array(firsts))
