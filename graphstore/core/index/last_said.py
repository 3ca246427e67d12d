"""What was said of an entity last, over each period: kept while it is written, and put back as it was where something is taken back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter

from graphstore.values.period import Instant

Said = tuple[Instant, Instant, int]  # valid from, valid to, version

_start, _stop = itemgetter(0), itemgetter(1)


_NOTHING_LIFTED: set[int] = set()  # of all that keep no `under`, from which nothing is lifted


class LastSaid:
    """The pieces of an entity, in order and apart: which version was said last over each.

    With `under`, what each version was laid over is kept too, so that it can be lifted without all that was ever said being laid anew.
    """

    __slots__ = ("lifted", "pieces", "under")

    def __init__(self, *, under: bool) -> None:
        self.pieces: list[Said] = []
        self.under: dict[int, list[tuple[Instant, Instant, list[Said]]]] | None = {} if under else None
        self.lifted: set[int] = set() if under else _NOTHING_LIFTED

    def lay(self, start: Instant, stop: Instant, ver: int) -> None:
        """Put a version over what was said before."""
        covered = _lay(self.pieces, (start, stop, ver))
        if self.under is not None:
            if ver in self.lifted:
                self.lifted.remove(ver)
                self.under[ver] = []
            self.under.setdefault(ver, []).append((start, stop, covered))

    def lift(self, ver: int) -> None:
        """Take a version away: what it was laid over shows again where nothing lies over it. Only with `under`."""
        assert self.under is not None
        self.lifted.add(ver)
        for start, stop, _ in self.under.get(ver, ()):
            first, last = _between(self.pieces, start, stop)
            shown = [part for piece in self.pieces[first:last] for part in self._through(piece)]
            self.pieces[first:last] = shown

    def drop(self, ver: int) -> None:
        """Lift a version, and forget it: nothing that is left was laid over it. Only with `under`."""
        assert self.under is not None
        self.lift(ver)
        self.under.pop(ver, None)
        self.lifted.discard(ver)

    def between(self, start: Instant, stop: Instant) -> list[Said]:
        """The pieces that show over a part of a period."""
        first, last = _between(self.pieces, start, stop)
        return self.pieces[first:last]

    def _through(self, piece: Said) -> list[Said]:
        """A piece; where its version is lifted, what that was laid over."""
        assert self.under is not None
        todo, found = [piece], []
        while todo:
            start, stop, ver = todo.pop()
            if ver not in self.lifted:
                found.append((start, stop, ver))
                continue
            for begun, ended, covered in self.under[ver]:
                if begun < stop and start < ended:
                    first, last = _between(covered, start, stop)
                    todo += [(max(start, a), min(stop, b), other) for a, b, other in covered[first:last]]
        return sorted(found)


def _between(pieces: list[Said], start: Instant, stop: Instant) -> tuple[int, int]:
    """From where to where pieces hold over a part of a period."""
    return bisect_right(pieces, start, key=_stop), bisect_left(pieces, stop, key=_start)


def _lay(said: list[Said], piece: Said) -> list[Said]:
    """Put a piece over what was said before; the pieces stay in order and apart. Returns what it covers."""
    start, stop, _ = piece
    if not said or said[-1][1] <= start:
        said.append(piece)
        return []
    # what is said anew is mostly the end of what was said
    first = len(said) - 1 if said[-1][0] <= start else bisect_right(said, start, key=_stop)
    last = first
    fresh: list[Said] = []
    covered: list[Said] = []
    while last < len(said) and said[last][0] < stop:
        begun, ended, ver = said[last]
        if begun < start:
            fresh.append((begun, start, ver))
        if stop < ended:
            fresh.append((stop, ended, ver))
        covered.append((max(begun, start), min(ended, stop), ver))
        last += 1
    said[first:last] = sorted([*fresh, piece])
    return covered
