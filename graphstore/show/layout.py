"""Where the things of a chain lie when it is drawn from left to right in time: columns of things, and rows within a column.

All that stands in a column began no later than all that stands in a later one, and no two things of one column are linked: every arrow goes across.
An arrow that goes over columns has a row of its own in each of them, so that it runs under no thing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from graphstore.values.models import Value

ROWS = 12
"""Things in one column at most."""
_LANES = 24
"""Arrows that get rows of their own in one column at most; the rest run straight."""
_TURNS = 5  # the last one looks to the left, where an arrow comes from


class Place(Value):
    """Holds the column and the row of a thing, both from 0."""

    id: str
    column: int
    row: int


class Lane(Value):
    """The rows an arrow runs along in the columns between its ends, from the earlier, `source`, to the later. Links between the same two share it."""

    source: str
    target: str
    rows: tuple[int, ...]


class Layout(NamedTuple):
    """The place of each thing, and the lanes of the arrows that go over columns."""

    places: list[Place]
    lanes: list[Lane]


_Pair = tuple[str, str]  # the earlier end of an arrow, and the later
_Slot = str | _Pair  # what takes a row of a column: a thing, or an arrow on its way


def layout(starts: Mapping[str, int], links: Iterable[tuple[str, str]]) -> Layout:
    """The place of each thing and the lanes between: `starts` says when each begins, by id, `links` which are linked.

    A thing is put near what it is linked to; the columns are filled in the order of time.
    """
    near: dict[str, set[str]] = defaultdict(set)
    for one, other in links:
        if one in starts and other in starts and one != other:
            near[one].add(other)
            near[other].add(one)
    columns: list[list[str]] = []
    for id in sorted(starts, key=lambda each: (starts[each], each)):
        if not columns or len(columns[-1]) >= ROWS or near[id].intersection(columns[-1]):
            columns.append([])
        columns[-1].append(id)
    column = {id: number for number, ids in enumerate(columns) for id in ids}
    pairs = sorted(
        ((one, other) for one in near for other in near[one] if column[one] < column[other]),
        key=lambda each: (column[each[1]] - column[each[0]], each),
    )
    slots: list[list[_Slot]] = [list(ids) for ids in columns]
    rows = _rows(slots, _joined(slots, column, pairs))
    least = min((row for each in rows for row in each.values()), default=0)
    return Layout(
        [Place(id=id, column=at, row=rows[at][id] - least) for at, ids in enumerate(columns) for id in ids],
        [
            Lane(source=pair[0], target=pair[1], rows=tuple(rows[at][pair] - least for at in between))
            for pair in pairs
            if (between := range(column[pair[0]] + 1, column[pair[1]])) and pair in rows[between[0]]
        ],
    )


def _joined(
    slots: list[list[_Slot]], column: Mapping[str, int], pairs: Iterable[_Pair]
) -> list[dict[_Slot, list[_Slot]]]:
    """Return what each slot of a column is joined to in the column before; the shortest arrows over columns get slots first."""
    joined: list[dict[_Slot, list[_Slot]]] = [defaultdict(list) for _ in slots]
    lanes = [0] * len(slots)
    for pair in pairs:
        between = range(column[pair[0]] + 1, column[pair[1]])
        if any(lanes[at] >= _LANES for at in between):
            continue
        before: _Slot = pair[0]
        for at in between:
            lanes[at] += 1
            slots[at].append(pair)
            joined[at][pair].append(before)
            before = pair
        joined[column[pair[1]]][pair[1]].append(before)
    return joined


def _rows(slots: list[list[_Slot]], joined: list[dict[_Slot, list[_Slot]]]) -> list[dict[_Slot, int]]:
    """A row for each slot of each column, near the rows of what it is joined to: to the left, and then to the right, in turns."""
    after: list[dict[_Slot, list[_Slot]]] = [defaultdict(list) for _ in slots]
    for at, each in enumerate(joined):
        for slot, others in each.items():
            for other in others:
                after[at - 1][other].append(slot)
    rows: list[dict[_Slot, int]] = [{} for _ in slots]
    for turn in range(_TURNS):
        ways = (joined, -1, range(len(slots))) if turn % 2 == 0 else (after, 1, reversed(range(len(slots))))
        beside, step, order = ways
        for at in order:
            there = rows[at + step] if 0 <= at + step < len(slots) else {}
            rows[at] = _column(slots[at], beside[at], there, rows[at])
    return rows


def _column(
    slots: Iterable[_Slot],
    beside: Mapping[_Slot, list[_Slot]],
    there: Mapping[_Slot, int],
    was: Mapping[_Slot, int],
) -> dict[_Slot, int]:
    """The rows of one column: each slot at the mean row of what it is beside, or the nearest that is free."""
    wanted = {}
    for slot in slots:
        known = [there[each] for each in beside.get(slot, ()) if each in there]
        wanted[slot] = sum(known) / len(known) if known else was.get(slot, 0)
    found: dict[_Slot, int] = {}
    taken: set[int] = set()
    for slot in sorted(wanted, key=lambda each: (wanted[each], str(each))):
        row = next(each for each in _outward(round(wanted[slot])) if each not in taken)
        taken.add(row)
        found[slot] = row
    return found


def _outward(row: int) -> Iterable[int]:
    """Rows from one on, the nearest first."""
    yield row
    for step in range(1, ROWS + _LANES + 1):
        yield row + step
        yield row - step
