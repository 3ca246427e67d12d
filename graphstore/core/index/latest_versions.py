"""Which version of an entity was written last over each period of valid time; what it replaced is kept, so that an undo need not read all versions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter

from graphstore.values.period import Instant

Said = tuple[Instant, Instant, int]  # valid from, valid to, version

_start, _stop = itemgetter(0), itemgetter(1)


_NOTHING_HIDDEN: set[int] = set()  # of all that are not reversible


class LatestVersions:
    """The pieces of an entity, in order and apart: the version written last over each.

    `reversible`: what each version replaced is kept too, so that it can be hidden without writing all versions again.
    """

    __slots__ = ("hidden", "pieces", "replaced")

    def __init__(self, *, reversible: bool) -> None:
        self.pieces: list[Said] = []
        self.replaced: dict[int, list[tuple[Instant, Instant, list[Said]]]] | None = (
            {} if reversible else None
        )
        self.hidden: set[int] = set() if reversible else _NOTHING_HIDDEN

    def write(self, start: Instant, stop: Instant, ver: int) -> None:
        """Put a version over what was written before."""
        replaced = _write(self.pieces, (start, stop, ver))
        if self.replaced is not None:
            if ver in self.hidden:
                self.hidden.remove(ver)
                self.replaced[ver] = []
            self.replaced.setdefault(ver, []).append((start, stop, replaced))

    def hide(self, ver: int) -> None:
        """Hide a version: what it replaced shows again where no later version does. Only where it is reversible."""
        assert self.replaced is not None
        self.hidden.add(ver)
        for start, stop, _ in self.replaced.get(ver, ()):
            first, last = _between(self.pieces, start, stop)
            shown = [part for piece in self.pieces[first:last] for part in self._through(piece)]
            self.pieces[first:last] = shown

    def remove(self, ver: int) -> None:
        """Hide a version, and forget it: none that is left replaced it. Only where it is reversible."""
        assert self.replaced is not None
        self.hide(ver)
        self.replaced.pop(ver, None)
        self.hidden.discard(ver)

    def between(self, start: Instant, stop: Instant) -> list[Said]:
        """The pieces that show over a part of a period."""
        first, last = _between(self.pieces, start, stop)
        return self.pieces[first:last]

    def _through(self, piece: Said) -> list[Said]:
        """A piece; where its version is hidden, what that replaced."""
        assert self.replaced is not None
        todo, found = [piece], []
        while todo:
            start, stop, ver = todo.pop()
            if ver not in self.hidden:
                found.append((start, stop, ver))
                continue
            for begun, ended, replaced in self.replaced[ver]:
                if begun < stop and start < ended:
                    first, last = _between(replaced, start, stop)
                    todo += [(max(start, a), min(stop, b), other) for a, b, other in replaced[first:last]]
        return sorted(found)


def _between(pieces: list[Said], start: Instant, stop: Instant) -> tuple[int, int]:
    """From where to where pieces hold over a part of a period."""
    return bisect_right(pieces, start, key=_stop), bisect_left(pieces, stop, key=_start)


def _write(pieces: list[Said], piece: Said) -> list[Said]:
    """Put a piece over what was written before; the pieces stay in order and apart. Returns what it replaced."""
    start, stop, _ = piece
    if not pieces or pieces[-1][1] <= start:
        pieces.append(piece)
        return []
    # what is written is mostly the end
    first = len(pieces) - 1 if pieces[-1][0] <= start else bisect_right(pieces, start, key=_stop)
    last = first
    fresh: list[Said] = []
    replaced: list[Said] = []
    while last < len(pieces) and pieces[last][0] < stop:
        begun, ended, ver = pieces[last]
        if begun < start:
            fresh.append((begun, start, ver))
        if stop < ended:
            fresh.append((stop, ended, ver))
        replaced.append((max(begun, start), min(ended, stop), ver))
        last += 1
    pieces[first:last] = sorted([*fresh, piece])
    return replaced
