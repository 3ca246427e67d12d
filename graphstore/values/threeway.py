"""A three-way comparison of the beliefs about one thing over valid time: the common base, ours and theirs.

A line is a list of pieces (start, stop, statement), with nothing believed between them. Two pieces agree when their statements are equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from graphstore.values.period import Instant, Period

Outcome = Literal["ours", "theirs", "conflict"]


@dataclass(frozen=True, slots=True)
class Statement:
    """The content believed over a period, and its row. Statements with equal content are equal."""

    content: bytes
    row: int = field(compare=False)


class Piece(NamedTuple):
    """A statement over a period."""

    start: Instant
    stop: Instant
    statement: Statement


class Cell(NamedTuple):
    """A period over which none of the three changes. None: nothing is believed there."""

    start: Instant
    stop: Instant
    base: Statement | None
    ours: Statement | None
    theirs: Statement | None

    @property
    def period(self) -> Period:
        return self.start, self.stop

    @property
    def outcome(self) -> Outcome:
        """Which side holds: theirs where only they changed it, a conflict where both did, differently."""
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


def _walk(line: list[Piece]) -> Generator[Statement | None, Instant, None]:
    """A generator: send ascending instants, receive the line's statement there."""
    at = 0
    statement: Statement | None = None
    while True:
        instant = yield statement
        while at < len(line) and line[at].stop <= instant:
            at += 1
        statement = line[at].statement if at < len(line) and line[at].start <= instant else None
