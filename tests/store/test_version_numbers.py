"""Rows of versions numbered by column, beside a loop that looks at one row after another."""

from __future__ import annotations

import random

import pytest

from graphstore.store.version_numbers import NEW, numbered

FIRST, STORED = 1_000, 900
KNOWN = {0: (950, 5, 9, 3), 1: (880, 5, 9, 3), 2: None}
"""The tails of nodes: one said in this transaction, one stored before, one of which a further version does more. All others are new."""


def one_by_one(rows):
    """What `numbered` gives: numbers, what is closed, tails; by the rule of each row."""
    tails, numbers, closed = dict(KNOWN), [], {}
    for at, (ent, start, stop) in enumerate(rows):
        tail = tails.get(ent, NEW)
        if tail is None or start >= stop:
            break
        row, begun, until, number = tail
        if start >= until:
            number += 1
        elif start == begun and stop >= until:
            closed[at] = row
            number += row < STORED
        else:
            break
        numbers.append(number)
        tails[ent] = FIRST + at, start, stop, number
    described = {ent for ent, _, _ in rows[: len(numbers)]}
    return numbers, closed, {ent: tails[ent] for ent in described}


def random_rows(chance):
    """Rows that mostly go on from each other, or say the same time again."""
    rows, ends = [], {0: (5, 9), 1: (5, 9)}
    for _ in range(chance.randrange(1, 60)):
        ent = chance.choice((0, 1, 3, 4, 5, *([2] if chance.random() < 0.05 else [])))
        begun, until = ends.get(ent, (0, 0))
        start = chance.choice((until, until + 2, begun)) if chance.random() < 0.97 else until - 1
        stop = max(until, start) + chance.choice((0, 1, 5))
        if stop == start and chance.random() < 0.9:
            stop += 1
        ends[ent] = start, stop
        rows.append((ent, start, stop))
    return rows


@pytest.mark.parametrize("seed", range(200))
def test_columns_say_what_one_row_after_another_says(seed):
    rows = random_rows(random.Random(seed))
    numbers, closed, tails = one_by_one(rows)
    found = numbered(*map(list, zip(*rows, strict=True)), lambda ent: KNOWN.get(ent, NEW), FIRST, STORED)
    if not numbers:
        assert found is None
        return
    assert numbers == found.numbers.tolist()
    assert list(closed.items()) == list(found.closed.items())
    assert tails == found.tails
    assert rows[: len(numbers)] == list(
        zip(*(column.tolist() for column in (found.ents, found.starts, found.stops)), strict=True)
    )
