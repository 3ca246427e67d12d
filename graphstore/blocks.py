"""A deep history searched in few steps: hulls of valid time over runs of rows, and over runs of those."""

from __future__ import annotations

from array import array

from graphstore.period import Instant, Period

BRANCHING = 16


class Blocks:
    """Hulls of valid time over runs of 16, 256, 4096 … rows, so that a deep history is searched in few steps."""

    __slots__ = ("levels",)

    def __init__(self) -> None:
        self.levels: list[list[Period]] = [[]]

    def last(self, rows: list[int], count: int, r_from: array[int], r_to: array[int], valid: Instant) -> int:
        """The last of the first `count` rows that covers `valid`, or -1."""
        self._follow(rows, r_from, r_to)
        levels = self.levels
        at = count - 1
        while at >= 0:
            skip, size = 1, BRANCHING
            for hulls in levels:
                if (at + 1) % size:
                    break
                block = (at + 1) // size - 1
                if block >= len(hulls) or hulls[block][0] <= valid < hulls[block][1]:
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
        # one append a step: interrupted anywhere, the next call goes on where this one stopped
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
