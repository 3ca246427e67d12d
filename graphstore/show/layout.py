"""Where the things of a chain lie when it is drawn from left to right in time: columns of things, and rows within a column.

All that stands in a column began no later than all that stands in a later one, and no two things of one column are linked: every arrow goes across.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from graphstore.values.models import Value

ROWS = 12
"""Things in one column at most."""


class Place(Value):
    """Where a thing lies: its column and its row, both from 0."""

    id: str
    column: int
    row: int


def places(starts: Mapping[str, int], links: Iterable[tuple[str, str]]) -> list[Place]:
    """The place of each thing: `starts` says when each begins, by id, `links` which are linked.

    A thing is put near what it is linked to; the columns are filled in the order of time.
    """
    near: dict[str, set[str]] = defaultdict(set)
    for one, other in links:
        if one in starts and other in starts:
            near[one].add(other)
            near[other].add(one)
    columns: list[list[str]] = []
    for id in sorted(starts, key=lambda each: (starts[each], each)):
        if not columns or len(columns[-1]) >= ROWS or near[id].intersection(columns[-1]):
            columns.append([])
        columns[-1].append(id)
    rows: dict[str, float] = {}
    found = []
    for number, column in enumerate(columns):
        wanted = {id: _beside(id, near, rows) for id in column}
        taken: set[int] = set()
        for id in sorted(column, key=lambda each: (wanted[each], each)):
            row = next(each for each in _outward(round(wanted[id])) if each not in taken)
            taken.add(row)
            rows[id] = row
            found.append((id, number, row))
    least = min((row for _, _, row in found), default=0)
    return [Place(id=id, column=column, row=row - least) for id, column, row in found]


def _beside(id: str, near: dict[str, set[str]], rows: dict[str, float]) -> float:
    """The mean row of what it is linked to among the columns before."""
    before = [rows[each] for each in near[id] if each in rows]
    return sum(before) / len(before) if before else 0.0


def _outward(row: int) -> Iterable[int]:
    """Rows from one on, the nearest first."""
    yield row
    for step in range(1, 2 * ROWS + 2):
        yield row + step
        yield row - step
