"""Tracks the version of an entity written last over each part of valid time, as sorted, disjoint pieces."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter

from graphstore.values.period import Instant

Said = tuple[Instant, Instant, int]  # valid from, valid to, version

_start, _stop = itemgetter(0), itemgetter(1)


def between(pieces: list[Said], start: Instant, stop: Instant) -> list[Said]:
    """Return the pieces that overlap a period."""
    return pieces[bisect_right(pieces, start, key=_stop) : bisect_left(pieces, stop, key=_start)]


def write(pieces: list[Said], piece: Said) -> None:
    """Write a piece over earlier ones."""
    start, stop, _ = piece
    if not pieces or pieces[-1][1] <= start:
        pieces.append(piece)
        return
    # most pieces are written at the end
    first = len(pieces) - 1 if pieces[-1][0] <= start else bisect_right(pieces, start, key=_stop)
    last = first
    fresh = [piece]
    while last < len(pieces) and pieces[last][0] < stop:
        begun, ended, ver = pieces[last]
        if begun < start:
            fresh.append((begun, start, ver))
        if stop < ended:
            fresh.append((stop, ended, ver))
        last += 1
    pieces[first:last] = sorted(fresh)
