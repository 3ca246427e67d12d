"""Where things and arrows lie: in the order of time, and no arrow under a thing that it does not join."""

from __future__ import annotations

import random

import pytest

from graphstore.show.layout import layout


def test_an_arrow_over_columns_has_a_row_of_its_own_in_each() -> None:
    found = layout({"a": 1, "b": 2, "c": 3}, [("b", "a"), ("c", "b"), ("c", "a")])
    row = {each.id: each.row for each in found.places}

    assert [("a", "c", 1)] == [(each.source, each.target, len(each.rows)) for each in found.lanes]
    assert found.lanes[0].rows[0] != row["b"]


@pytest.mark.parametrize("seed", range(30))
def test_columns_follow_time_and_nothing_lies_upon_another(seed: int) -> None:
    chance = random.Random(seed)
    number = chance.randrange(1, 120)
    starts = {f"n{each}": chance.randrange(40) for each in range(number)}
    links = [
        (f"n{chance.randrange(number)}", f"n{chance.randrange(number)}") for _ in range(chance.randrange(200))
    ]
    found = layout(starts, [*links, ("n0", "unknown")])
    column = {each.id: each.column for each in found.places}
    taken = [(each.column, each.row) for each in found.places]
    for lane in found.lanes:
        assert starts[lane.source] <= starts[lane.target]
        assert column[lane.target] - column[lane.source] - 1 == len(lane.rows) > 0
        taken += [(column[lane.source] + 1 + place, row) for place, row in enumerate(lane.rows)]

    assert set(starts) == set(column)
    assert len(taken) == len(set(taken)) and min(row for _, row in taken) == 0
    for one in starts:
        for other in starts:
            assert not (starts[one] < starts[other] and column[one] > column[other])
    assert all(column[one] != column[other] for one, other in links if one != other)


def test_a_thousand_that_hang_on_one_take_so_many_rows_and_no_more() -> None:
    starts = {f"n{number}": number for number in range(1_000)}
    found = layout(starts, [(f"n{number}", "n0") for number in range(1, 1_000)])

    assert max(each.row for each in found.places) < 80
    assert 0 < len(found.lanes) <= 24
