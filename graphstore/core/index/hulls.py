"""Fast search in a deep history: hulls of time over runs of rows or links, and over runs of those."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

from graphstore.values.period import Instant, Period

BRANCHING = 16


class Blocks:
    """Hulls of valid time over runs of 16, 256, 4096 … rows, so that a deep history is searched in few steps."""

    __slots__ = ("_followed", "_following", "levels")

    def __init__(self) -> None:
        self.levels: list[list[Period]] = [[]]
        self._followed = 0  # so many runs are in all levels
        self._following = Lock()

    def last(self, rows: list[int], count: int, r_from: array[int], r_to: array[int], valid: Instant) -> int:
        """The last of the first `count` rows that covers `valid`, or -1."""
        if (self._followed + 1) * BRANCHING <= len(rows):
            with self._following:
                self._follow(rows, r_from, r_to)
        levels = self.levels
        at = count - 1
        while at >= 0:
            skip, size = 1, BRANCHING
            for hulls in levels:
                if (at + 1) % size:
                    break
                start, stop = hulls[at // size]
                if start <= valid < stop:
                    break
                skip = size
                size *= BRANCHING
            if skip == 1:
                row = rows[at]
                if r_from[row] <= valid < r_to[row]:
                    return row
            at -= skip
        return -1

    def _follow(self, rows: list[int], r_from: array[int], r_to: array[int]) -> None:
        # one append a step: after an interruption the next call continues here
        hulls = self.levels[0]
        while (len(hulls) + 1) * BRANCHING <= len(rows):
            run = rows[len(hulls) * BRANCHING : (len(hulls) + 1) * BRANCHING]
            hulls.append((min(r_from[row] for row in run), max(r_to[row] for row in run)))
        level = 0
        while len(self.levels[level]) >= BRANCHING:
            if level + 1 == len(self.levels):
                self.levels.append([])
            lower, upper = self.levels[level], self.levels[level + 1]
            while (len(upper) + 1) * BRANCHING <= len(lower):
                below = lower[len(upper) * BRANCHING : (len(upper) + 1) * BRANCHING]
                upper.append((min(low for low, _ in below), max(high for _, high in below)))
            level += 1
        self._followed = len(hulls)


class Hull(NamedTuple):
    """The bounds of rows of links: valid time from `since` to `until`, believed from `recorded` to `taken`."""

    since: Instant
    until: Instant
    recorded: Instant
    taken: Instant

    def around(self, other: Hull) -> Hull:
        """The hull of both."""
        return Hull(
            min(self.since, other.since),
            max(self.until, other.until),
            min(self.recorded, other.recorded),
            max(self.taken, other.taken),
        )


class Runs:
    """Hulls over runs of 16, 256, 4096 … links of one thing, so that links that ended long ago are skipped. One that may have changed is None until it
    is computed again."""

    __slots__ = ("_forgetting", "_hull_of", "_levels", "_number", "links")

    def __init__(self, links: list[int], hull_of: Callable[[int], Hull]) -> None:
        self.links, self._hull_of = links, hull_of
        self._levels: list[list[Hull | None]] = [[]]
        self._number = 0  # how often something was forgotten
        self._forgetting = Lock()

    def perhaps(self, valid: Instant, tx: Instant, upto: Instant | None = None) -> list[int]:
        """The links that may hold at (valid, tx), or at an instant from there `upto` another, in order: all that do, and few others."""
        return list(chain.from_iterable(self.one_by_one(valid, tx, upto)))

    def one_by_one(self, valid: Instant, tx: Instant, upto: Instant | None = None) -> Iterator[list[int]]:
        """The same, run by run: what is not asked for is not looked for."""
        links, at = self.links, 0
        last = valid if upto is None else upto
        while at < len(links):
            level, size, skip = 0, BRANCHING, 0
            while at % size == 0 and at + size <= len(links):
                hull = self._hull(level, at // size)
                if hull.since <= last and valid < hull.until and hull.recorded <= tx < hull.taken:
                    break
                level, skip, size = level + 1, size, size * BRANCHING
            if not skip:
                yield links[at : at + BRANCHING]
            at += skip or BRANCHING

    def forget(self, link: int) -> None:
        """Invalidate the hulls over a link whose rows changed."""
        at = bisect_left(self.links, link)
        with self._forgetting:
            self._number += 1
            for level in self._levels:
                at //= BRANCHING
                if at < len(level):
                    level[at] = None

    def _hull(self, level: int, at: int) -> Hull:
        if len(self._levels) <= level:
            self._levels.append([])
        hulls = self._levels[level]
        while len(hulls) <= at:
            hulls.append(None)
        found = hulls[at]
        if found is None:
            number = self._number
            below = range(at * BRANCHING, (at + 1) * BRANCHING)
            parts = (
                self._hull(level - 1, each) if level else self._hull_of(self.links[each]) for each in below
            )
            found = reduce(Hull.around, parts)
            with self._forgetting:
                if self._number == number:  # else a row may have come that it lacks
                    hulls[at] = found
        return found


class Parts:
    """A long list of links, or rows, by what they share, each part in its order."""

    __slots__ = ("_followed", "_following", "parts", "whole")

    def __init__(self, whole: list[int]) -> None:
        self.whole = whole
        self.parts: dict[Any, list[int]] = {}
        self._followed = 0
        self._following = Lock()

    def follow(self, part_of: Callable[[int], Any]) -> Parts:
        """Take in those that have come; `part_of`: what one shares with the others of its part."""
        if self._followed < len(self.whole):
            with self._following:
                while self._followed < len(self.whole):
                    one = self.whole[self._followed]
                    self.parts.setdefault(part_of(one), []).append(one)
                    self._followed += 1
        return self
