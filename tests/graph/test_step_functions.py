"""Sums over time, compared with sums of exact fractions made instant by instant."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pyarrow
import pytest

from graphstore import InvalidError
from graphstore.graph.result import Result
from tests.conftest import day

START = day("2026-01-01")
INSTANT = pyarrow.timestamp("us", tz="UTC")


def periods(values: Any, spans: list[tuple[int, int]], kind: Any = None, group: Any = None) -> Result:
    """A table of values that hold from one day to another."""
    begin, end = (
        pyarrow.array([START + timedelta(days=at) for at in ends], INSTANT)
        for ends in zip(*spans, strict=True)
    )
    columns = {"x": pyarrow.array(values, kind), "valid_from": begin, "valid_to": end}
    return Result.of_arrow(pyarrow.table(columns | ({} if group is None else {"g": group})))


def of_day(steps: Result, number: int) -> list[Any]:
    """The values that hold on a day."""
    at = START + timedelta(days=number)
    return [row[-1] for row in steps.tuples() if row[-3] <= at < row[-2]]


RANDOM: dict[str, Callable[[random.Random], float]] = {
    "cents": lambda chance: round(chance.uniform(-100, 100), 2),
    "thousands": lambda chance: chance.uniform(-1e3, 1e3),
    "any size": lambda chance: chance.uniform(-1, 1) * 10 ** chance.randrange(-300, 300),
    "the ends": lambda chance: chance.choice([5e-324, -5e-324, 1e308, -1e308, 0.0, 1.0]),
    "whole": lambda chance: float(chance.randrange(-(2**53), 2**53)),
}


@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("seed", range(3))
def test_sums_of_fractions_are_exact_and_rounded_once(kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    spans = [(begin := chance.randrange(20), begin + chance.randrange(1, 10)) for _ in range(25)]
    values = [None if chance.random() < 0.1 else RANDOM[kind](chance) for _ in spans]
    groups = [chance.choice("ab") for _ in spans]
    table = periods(values, spans, pyarrow.float64(), groups)
    sums, means = (table.steps(f"{name}(x)", by="g") for name in ("sum", "avg"))
    for number in range(32):
        for group in "ab":
            held = [
                value
                for value, (begin, end), of in zip(values, spans, groups, strict=True)
                if begin <= number < end and of == group
            ]
            there = [value for value in held if value is not None]
            total = sum(map(Fraction, there))
            try:
                expected = float(total)
            except OverflowError:
                expected = math.inf if total > 0 else -math.inf
            own = [[row for row in steps.tuples() if row[0] == group] for steps in (sums, means)]
            found = [of_day(Result(sums.columns, rows), number) for rows in own]
            none = [] if not held else [None]
            assert found == ([[expected], [expected / len(there)]] if there else [none, none])


def test_what_is_no_number_ends_with_its_row() -> None:
    table = periods([math.nan, math.inf, 1.0, 2.5], [(1, 2), (3, 4), (0, 6), (5, 6)])

    total = table.steps("sum(x)")
    assert [of_day(total, number) for number in (0, 2, 3, 4, 5)] == [[1.0], [1.0], [math.inf], [1.0], [3.5]]
    assert math.isnan(of_day(total, 1)[0])


def test_a_sum_of_whole_numbers_that_64_bits_do_not_hold_is_refused() -> None:
    table = periods([2**62] * 3, [(0, 5), (0, 4), (0, 3)])

    with pytest.raises(InvalidError, match="larger than 64 bits"):
        table.steps("sum(x)")
    assert of_day(table.steps("avg(x)"), 1) == [2.0**62]
    assert of_day(periods([2**63 + 2048], [(0, 1)], pyarrow.uint64()).steps("sum(x)"), 0) == [2.0**63 + 2048]


@pytest.mark.parametrize(
    ("by", "says"),
    [(3, "is no name of a column"), ([3], "is no name of a column"), ("valid_from", "the axis of the steps")],
)
def test_what_is_no_group_is_refused(by: Any, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        periods([1], [(0, 1)]).steps("count(*)", by=by)


def test_a_group_that_is_named_twice_is_one() -> None:
    table = periods([1, 2], [(0, 1), (0, 1)])

    assert table.steps("count(*)", by=["x", "x"]) == table.steps("count(*)", by="x")
