"""Three lines of belief about one thing, instant by instant of valid time: what both began with, what is ours, what is theirs.

A line is a list of pieces (start, stop, what is said there); nothing is said between them. Two pieces agree when what they say is equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from graphstore.values.period import Instant, Period

Outcome = Literal["ours", "theirs", "conflict"]


@dataclass(frozen=True, slots=True)
class Said:
    """What is said over a period, and the row that says it. Two rows that say the same are equal."""

    says: bytes
    row: int = field(compare=False)


class Piece(NamedTuple):
    """Something said over a period."""

    start: Instant
    stop: Instant
    said: Said


class Cell(NamedTuple):
    """A period over which none of the three changes. None: nothing is said there."""

    start: Instant
    stop: Instant
    base: Said | None
    ours: Said | None
    theirs: Said | None

    @property
    def period(self) -> Period:
        return self.start, self.stop

    @property
    def outcome(self) -> Outcome:
        """Whose word holds: theirs where only they changed it, a conflict where both did and not alike."""
        if self.theirs in (self.base, self.ours):
            return "ours"
        return "theirs" if self.ours == self.base else "conflict"


def cells(base: Iterable[Piece], ours: Iterable[Piece], theirs: Iterable[Piece]) -> list[Cell]:
    """The cells of three lines in order, as few as there can be."""
    lines = [sorted(line) for line in (base, ours, theirs)]
    edges = sorted({edge for line in lines for piece in line for edge in piece[:2]})
    found: list[Cell] = []
    walks = [_walk(line) for line in lines]
    for walk in walks:
        next(walk)
    for start, stop in pairwise(edges):
        cell = Cell(start, stop, *(walk.send(start) for walk in walks))
        if cell[2:] == (None, None, None):
            continue
        if found and found[-1].stop == start and found[-1][2:] == cell[2:]:
            found[-1] = found[-1]._replace(stop=stop)
        else:
            found.append(cell)
    return found


def _walk(line: list[Piece]) -> Generator[Said | None, Instant, None]:
    """Sent instants that rise, gives what the line says there."""
    at = 0
    said: Said | None = None
    while True:
        instant = yield said
        while at < len(line) and line[at].stop <= instant:
            at += 1
        said = line[at].said if at < len(line) and line[at].start <= instant else None
