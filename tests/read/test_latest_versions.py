"""What was said last over each period, kept from write to write, is what the last of all writes over it said."""

from __future__ import annotations

import random

from graphstore.read.latest_versions import Said, between, write


def test_each_instant_shows_the_version_that_was_written_over_it_last() -> None:
    rng = random.Random(7)
    for _ in range(50):
        pieces: list[Said] = []
        told: list[Said] = []
        for version in range(rng.randrange(1, 12)):
            start = rng.randrange(40)
            told.append((start, start + rng.randrange(1, 20), version))
            write(pieces, told[-1])

        for at in range(60):
            last = [version for start, stop, version in told if start <= at < stop][-1:]
            assert last == [version for _, _, version in between(pieces, at, at + 1)]
