"""Names places of lines and bodies, in a ledger and in a journal of release 0.1."""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 13
"""The place of a body in a ledger has the number of the body above so many bits."""

SHIFT = 40  # the place of a line of release 0.1 has its segment above so many bits
OFFSET = (1 << SHIFT) - 1


class Place(NamedTuple):
    """The place of a body: `pos` is segment and offset in one number, `length` is in bytes. (0, 0): it was forgotten."""

    pos: int
    length: int


NOWHERE = Place(0, 0)


class Line(NamedTuple):
    """One verified line: its head, the places of its bodies as pairs, and its own place."""

    head: dict[str, Any]
    places: list[tuple[int, int]]
    at: Place = NOWHERE


class Position(NamedTuple):
    """How far a reader has come: the segment, and the offset in it."""

    segment: int
    offset: int


Ticket = int  # the number of the transaction appended last, counted since the ledger was opened
State = tuple[Position, str, tuple[int, int, int] | None, Ticket]
"""The end, the last digest, the last line, and the number of the last transaction."""


def segment_of(place: Place) -> int:
    """The number of a body's segment."""
    return place.pos >> SHIFT


def placed(head: dict[str, Any], spans: list[tuple[int, int]], at: int, length: int) -> Line:
    """The line of so many bytes at `at`, whose bodies have these spans within it."""
    places = [(at + start, size) if size else NOWHERE for start, size in spans]
    return Line(head, places, Place(at, length))
