"""Compare three lines of belief about one thing over valid time: the common base, ours and theirs.

A line is a list of pieces (start, stop, statement), with nothing believed between them. Two pieces agree if their statements are equal.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from graphstore.values.models import Standing
from graphstore.values.period import Instant, Period

Outcome = Literal["ours", "theirs", "conflict"]


@dataclass(frozen=True, slots=True)
class StatedContent:
    """The content believed over a period, and its row. Statements with equal content are equal."""

    content: bytes
    row: int = field(compare=False)


class StatedPiece(NamedTuple):
    """A statement over a period."""

    start: Instant
    stop: Instant
    statement: StatedContent


class GoneSince(NamedTuple):
    """A period over which a side took something back since the base, the operation that did so, and the standing that it has there now."""

    start: Instant
    stop: Instant
    operation: int
    standing: Standing

    @property
    def never_was(self) -> bool:
        """Return True if the side states that it never was true."""
        return self.standing == "retracted"


@dataclass(frozen=True, slots=True)
class Spoken:
    """Holds what a side did to a thing since the base, besides its statements: what it took back, and whether it confirmed the rest."""

    gone: list[GoneSince] = field(default_factory=list)
    is_confirmed: bool = False


class Cell(NamedTuple):
    """A period over which none of the three changes. None: nothing is believed there; if a side took that back, `…_gone` holds how."""

    start: Instant
    stop: Instant
    base: StatedContent | None
    ours: StatedContent | None
    theirs: StatedContent | None
    ours_gone: GoneSince | None = None
    theirs_gone: GoneSince | None = None
    is_clash: bool = False

    @property
    def period(self) -> Period:
        return self.start, self.stop

    @property
    def outcome(self) -> Outcome:
        """Return the side that holds: theirs if only they changed it; a conflict if both did, differently, or if one took back what the other states."""
        if self.is_clash:
            return "conflict"
        if self.theirs in (self.base, self.ours):
            return "ours"
        return "theirs" if self.ours == self.base else "conflict"


def cells(
    base: Iterable[StatedPiece], ours: Iterable[StatedPiece], theirs: Iterable[StatedPiece]
) -> list[Cell]:
    """Return the fewest cells of the three lines, in order."""
    lines = [sorted(line) for line in (base, ours, theirs)]
    edges = sorted({edge for line in lines for piece in line for edge in piece[:2]})
    found: list[Cell] = []
    walks = [_walk(line) for line in lines]
    for walk in walks:
        next(walk)
    for start, stop in pairwise(edges):
        was, here, there = (walk.send(start) for walk in walks)
        cell = Cell(start, stop, was, here, there)
        if cell[2:5] == (None, None, None):
            continue
        if found and found[-1].stop == start and found[-1][2:] == cell[2:]:
            found[-1] = found[-1]._replace(stop=stop)
        else:
            found.append(cell)
    return found


def with_gone(three: Iterable[Cell], ours: Spoken, theirs: Spoken) -> list[Cell]:
    """Return the same cells, as few as possible, that also take into account what each side took back.

    A conflict arises if one side took back what the other has since stated, or confirmed although it never was true; and if both took it back for different
    reasons. This also counts where nothing was believed in the base: one side may have described that time for the first time.
    """
    gone = [*ours.gone, *theirs.gone]
    found: list[Cell] = []
    for cell in three:
        edges = {edge for each in gone for edge in each[:2] if cell.start < edge < cell.stop}
        for start, stop in pairwise(sorted({cell.start, cell.stop, *edges})):
            here = _last_gone(ours.gone, start) if cell.ours is None else None
            there = _last_gone(theirs.gone, start) if cell.theirs is None else None
            clash = _takes_back(here, cell.theirs, cell.base, theirs.is_confirmed)
            clash = clash or _takes_back(there, cell.ours, cell.base, ours.is_confirmed)
            if cell.base is not None and here is not None and there is not None:
                clash = clash or here.standing != there.standing
            piece = cell._replace(start=start, stop=stop, ours_gone=here, theirs_gone=there, is_clash=clash)
            if found and found[-1].stop == start and found[-1][2:] == piece[2:]:
                piece = found.pop()._replace(stop=stop)
            found.append(piece)
    return found


def _takes_back(
    gone: GoneSince | None, stated: StatedContent | None, base: StatedContent | None, is_confirmed: bool
) -> bool:
    """Return True if one side took back what the other states over a period."""
    if gone is None or stated is None:
        return False
    return stated != base or (is_confirmed and gone.never_was)


def _last_gone(gone: list[GoneSince], at: Instant) -> GoneSince | None:
    here = (each for each in gone if each.start <= at < each.stop)
    return max(here, key=lambda each: each.operation, default=None)


def _walk(line: list[StatedPiece]) -> Generator[StatedContent | None, Instant, None]:
    """Return a generator that receives ascending instants and yields the statement at each."""
    at = 0
    statement: StatedContent | None = None
    while True:
        instant = yield statement
        while at < len(line) and line[at].stop <= instant:
            at += 1
        statement = line[at].statement if at < len(line) and line[at].start <= instant else None
