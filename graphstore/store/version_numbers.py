"""Many rows of versions at once: which of them go on from what was said of their node, or say its last period again, and the number each gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphstore.values.period import Instant

Tail = tuple[int, Instant, Instant, int]
"""What was said of a node last: its row, when that begins, where all that was said of the node ends, and the number of its version."""
NEW: Tail = (-1, -1 << 63, -1 << 63, 0)
_MORE: Tail = (-1, -1 << 63, (1 << 63) - 1, 0)  # nothing goes on from it


class Numbered(NamedTuple):
    """Rows of versions, as many from the first on as go on or say again, by column."""

    ents: Any
    numbers: Any
    starts: Any
    stops: Any
    closed: dict[int, int]  # place among these -> the row that it takes the place of, in order
    tails: dict[int, Tail]  # of each node, after them


def numbered(
    ents: Sequence[int],
    starts: Sequence[Instant],
    stops: Sequence[Instant],
    tail: Callable[[int], Tail | None],
    first_row: int,
    stored: int,
) -> Numbered | None:
    """The rows up to the first that does more; None where that is the first of all. They become the rows from `first_row` on; those from `stored` on
    are not stored yet, and one that is replaced leaves its number. `tail`: of a node, `NEW` of a new one; None where a further version of it does more."""
    import numpy as np

    columns = tuple(np.array(column, np.int64) for column in (ents, starts, stops))
    order = np.argsort(columns[0], kind="stable")
    ent, start, stop = (column[order] for column in columns)
    heads = np.flatnonzero(np.concatenate(([True], ent[1:] != ent[:-1])))
    last = np.array([tail(each) or _MORE for each in ent[heads].tolist()], np.int64)
    row, begun, until = (np.roll(column, 1) for column in (order + first_row, start, stop))
    row[heads], begun[heads], until[heads] = last[:, 0], last[:, 1], last[:, 2]
    on = start >= until
    again = ~on & (start == begun) & (stop >= until)
    wrong = ~(on | again) | (start >= stop)
    if wrong.any():
        upto = int(order[wrong].min())
        return numbered(ents[:upto], starts[:upto], stops[:upto], tail, first_row, stored) if upto else None
    steps = on | (again & (row < stored))
    count = np.cumsum(steps)
    sizes = np.diff(np.append(heads, len(ent)))
    number = count + np.repeat(last[:, 3] - count[heads] + steps[heads], sizes)
    numbers = np.empty_like(number)
    numbers[order] = number
    closed = dict(sorted(zip(order[again].tolist(), row[again].tolist(), strict=True)))
    ends = heads + sizes - 1
    tails = zip(
        *((column[ends]).tolist() for column in (order + first_row, start, stop, number)), strict=True
    )
    return Numbered(
        columns[0],
        numbers,
        columns[1],
        columns[2],
        closed,
        dict(zip(ent[ends].tolist(), tails, strict=True)),
    )
