"""Search in deep histories: what the hulls find is what a look at every row finds, in few looks."""

from __future__ import annotations

import random
from array import array

import pytest

from graphstore.core.index.hulls import BRANCHING, Blocks, Hull, Runs

DEEP = BRANCHING**3


class Counted(list[int]):
    """A list that counts what is read of it one by one."""

    looks = 0

    def __getitem__(self, at):
        self.looks += isinstance(at, int)
        return super().__getitem__(at)


def history(count: int, seed: int, longest: int) -> tuple[list[int], array[int], array[int]]:
    """Row numbers that leave gaps, and the periods of all rows."""
    chance = random.Random(seed)
    starts = array("q", (chance.randrange(100) for _ in range(2 * count)))
    stops = array("q", (start + chance.randrange(longest) for start in starts))
    return Counted(sorted(chance.sample(range(2 * count), count))), starts, stops


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 300, 4096, 4500])
@pytest.mark.parametrize("longest", [1, 3, 40])
def test_the_last_row_that_covers_an_instant_is_found_as_by_looking_at_all(count, longest):
    rows, starts, stops = history(count, count + longest, longest)
    blocks = Blocks()
    for first in sorted({count, max(count - 1, 0), count // 2, count // 16 * 16}, reverse=True):
        for valid in (0, 1, 50, 99, 100, 138, 140):
            covering = [row for row in rows[:first] if starts[row] <= valid < stops[row]]
            assert (covering or [-1])[-1] == blocks.last(rows, first, starts, stops, valid)


@pytest.mark.parametrize("step", [1, 7, 16, 100, 256])
def test_rows_that_come_later_are_found_too(step):
    count = DEEP + 600
    starts = array("q", range(count))
    stops = array("q", (at + 1 for at in starts))
    rows: list[int] = []
    blocks = Blocks()
    for done in range(0, count, step if step > 7 else 97 * step):
        rows.extend(range(len(rows), done))
        for valid in {0, done // 2, done - 17, done - 1} if done > 16 else ():
            assert valid == blocks.last(rows, len(rows), starts, stops, valid)
        assert -1 == blocks.last(rows, len(rows), starts, stops, done)


@pytest.mark.parametrize("valid", [0, 15, 16, 255, 256, 2000, DEEP - 1, DEEP])
def test_a_row_deep_in_a_history_is_found_in_few_looks(valid):
    count = DEEP + 2 * BRANCHING
    starts = array("q", range(count))
    stops = array("q", (at + 1 for at in starts))
    rows = Counted(range(count))
    blocks = Blocks()
    assert -1 == blocks.last(rows, count, starts, stops, count)
    for since, place in ((starts, valid), (starts[::-1], count - 1 - valid)):
        until, blocks = array("q", (at + 1 for at in since)), Blocks()
        blocks.last(rows, count, since, until, count)
        rows.looks = 0
        assert place == blocks.last(rows, count, since, until, valid)
        assert rows.looks <= BRANCHING


def test_the_hulls_of_a_history_are_of_each_sixteen_below():
    rows, starts, stops = history(DEEP, 3, 40)
    blocks = Blocks()
    blocks.last(rows, DEEP, starts, stops, 50)
    assert [256, 16, 1] == [len(level) for level in blocks.levels]
    for level, hulls in enumerate(blocks.levels):
        size = BRANCHING ** (level + 1)
        for at, hull in enumerate(hulls):
            run = rows[at * size : (at + 1) * size]
            assert hull == (min(starts[row] for row in run), max(stops[row] for row in run))


# ---------------------------------------------------------------------- links


def links(count: int, seed: int, longest: int) -> list[Hull]:
    chance = random.Random(seed)
    found = []
    for at in range(count):
        since, recorded = at // 8 + chance.randrange(20), at // 8 + chance.randrange(20)
        found.append(
            Hull(since, since + chance.randrange(longest), recorded, recorded + chance.randrange(longest))
        )
    return found


def holds(hull: Hull, valid: int, tx: int) -> bool:
    return hull.since <= valid < hull.until and hull.recorded <= tx < hull.taken


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 255, 256, 257, 600, 4096, 4400])
@pytest.mark.parametrize("longest", [1, 5, 30])
def test_every_link_that_holds_is_among_those_that_may(count, longest):
    hulls = links(count, count + longest, longest)
    names = [3 * at for at in range(count)]
    runs = Runs(names, lambda link: hulls[link // 3])
    for valid in (-1, 0, 5, count // 16, count // 8, count // 8 + 20, count):
        for tx in (valid - 3, valid, valid + 3):
            may = runs.perhaps(valid, tx)
            assert sorted(set(may)) == may
            assert {name for name in names if holds(hulls[name // 3], valid, tx)} <= {*may}


def test_links_that_ended_long_ago_are_skipped_by_each_of_both_times():
    count = DEEP + BRANCHING
    ever = Hull(0, count, 0, count)
    for of in (
        lambda at: ever._replace(since=at, until=at + 1),
        lambda at: ever._replace(recorded=at, taken=at + 1),
        lambda at: ever._replace(since=at, until=at + 1, recorded=at, taken=at + 1),
    ):
        runs = Runs(list(range(count)), of)
        for at in (0, 15, 16, 255, 256, 2000, DEEP - 1, DEEP):
            first = at // BRANCHING * BRANCHING
            assert list(range(first, first + BRANCHING)) == runs.perhaps(at, at)
        assert [] == runs.perhaps(count, count)
        assert [] == runs.perhaps(-1, -1)
    runs = Runs(list(range(count + 3)), lambda at: Hull(0, 1, 0, 1))
    assert [count, count + 1, count + 2] == runs.perhaps(1, 0)  # those of no full run are not looked at


def test_hulls_are_computed_once_and_again_only_over_what_has_changed():
    count = DEEP
    hulls = [Hull(at, at + 1, 0, count) for at in range(count)]
    asked: list[int] = []

    def hull_of(link: int) -> Hull:
        asked.append(link)
        return hulls[link]

    runs = Runs(list(range(count)), hull_of)
    assert list(range(32, 48)) == runs.perhaps(40, 0)
    assert list(range(count)) == sorted(asked)
    asked.clear()
    assert list(range(32, 48)) == runs.perhaps(40, 0)
    assert [] == asked
    hulls[1000] = Hull(40, 41, 0, count)
    runs.forget(1000)
    assert [*range(32, 48), *range(992, 1008)] == runs.perhaps(40, 0)
    assert list(range(992, 1008)) == asked


def test_what_was_not_computed_yet_can_be_forgotten():
    runs = Runs(list(range(DEEP)), lambda at: Hull(at, at + 1, 0, 9))
    runs.forget(DEEP - 1)
    assert list(range(16)) == runs.perhaps(3, 3)
    runs.forget(5)
    runs.forget(DEEP - 1)
    assert list(range(16)) == runs.perhaps(3, 3)
    short = Runs(list(range(20)), lambda at: Hull(at, at + 1, 0, 9))
    assert list(range(16, 20)) == short.perhaps(17, 3)
    short.forget(18)
    assert list(range(20)) == short.perhaps(3, 3)


def test_the_hull_of_both_is_around_both():
    one, other = Hull(1, 5, 3, 4), Hull(2, 9, 0, 7)
    assert Hull(1, 9, 0, 7) == one.around(other) == other.around(one)
