"""Many instants of an axis: each answer is what the view at each of them says."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from graphstore import GraphStore, InvalidError, QueryError
from graphstore.store.over_time import instants_of
from graphstore.values.period import instant, moment
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

YEAR = ("2024-12-31", "2025-10-01", "1 month")


@pytest.fixture
def orders(store: GraphStore, clock: Clock) -> GraphStore:
    """Orders that open over the year, and are corrected and taken back later."""
    chance = random.Random(13)
    for number in range(10):
        clock.move(hours=1)
        begin = day("2025-01-15") + timedelta(days=chance.randrange(200))
        store.add_node(
            "order", {"state": chance.choice("ab"), "total": number}, id=f"o{number}", valid_from=begin
        )
    for number in range(20):
        clock.move(hours=1)
        begin = day("2025-01-15") + timedelta(days=chance.randrange(200))
        which = f"o{chance.randrange(10)}"
        if number % 5 == 4:
            held = store.history(which)[0].valid_from
            store.retract(which, valid_from=held, valid_to=held + timedelta(days=30), reason="too early")
        else:
            store.revise(
                which,
                {"state": chance.choice("ab"), "total": number},
                valid_from=begin,
                valid_to=begin + timedelta(days=60),
            )
    store.link("o1", "related_to", "o2", valid_from="2025-03-05")
    return store


@pytest.mark.parametrize(
    "spans",
    [{"valid": YEAR}, {"tx": ("2026-02-01", "2026-02-02T08:00:00Z", "3 hours"), "valid": "2025-06-01"}],
)
def test_each_instant_is_answered_as_its_view_does(orders: GraphStore, spans: dict[str, Any]) -> None:
    over = orders.over(**spans)
    views = list(over.views())
    assert len(over.at) == len(views) > 5
    text = "MATCH (n:Node) WHERE n.total >= $least RETURN n.id AS id, n.total AS total, n.state AS state ORDER BY id"
    expected = [
        (at, node.id, node.content["total"], node.content["state"])
        for at, view in zip(over.at, views, strict=True)
        for node in sorted(view.nodes(kind="order"), key=lambda each: each.id)
        if node.content["total"] >= 3
    ]
    assert over.query(text, least=3).tuples() == expected
    assert over.query(text, least=3).columns == ["at", "id", "total", "state"]

    summed = over.query("MATCH (n:Node) RETURN count(*) AS orders, sum(n.total) AS total").tuples()
    totals = [[node.content["total"] for node in view.nodes()] for view in views]
    assert summed == [
        (at, len(each), sum(each) if each else None) for at, each in zip(over.at, totals, strict=True)
    ]
    assert over.count("order").tuples() == [(at, len(each)) for at, each in zip(over.at, totals, strict=True)]
    assert over.total("max(total)", "order").tuples() == [
        (at, max(each)) for at, each in zip(over.at, totals, strict=True) if each
    ]
    stood = [
        (at, node.id, node.content["total"])
        for at, view in zip(over.at, views, strict=True)
        for node in sorted(view.nodes(), key=lambda each: each.id)
    ]
    assert [(row["at"], row["id"], row["total"]) for row in over.nodes("order")] == stood


def test_counts_of_each_value(orders: GraphStore) -> None:
    over = orders.over(valid=YEAR)
    expected = {
        (at, state): count
        for at, view in zip(over.at, over.views(), strict=True)
        for state in "ab"
        if (count := sum(node.content["state"] == state for node in view.nodes()))
    }

    assert {(at, state): count for at, state, count in over.count("order", by="state").tuples()} == expected


def test_what_changed_from_one_instant_to_the_next(orders: GraphStore) -> None:
    over = orders.over(valid=YEAR)
    views = list(over.views())
    expected = [
        (at, *row)
        for at, before, after in zip(over.at[1:], views, views[1:], strict=False)
        for row in before.changes_to(after).tuples()
    ]

    assert over.compare().tuples() == expected


def test_a_property_that_nothing_ever_has_is_refused(orders: GraphStore) -> None:
    with pytest.raises(QueryError, match="no property 'nothing'"):
        orders.over(valid=YEAR).query("MATCH (n:Node) RETURN n.nothing")


@pytest.mark.parametrize(
    ("begin", "end", "step", "expected"),
    [
        ("2024-01-31", "2024-05-01", "1 month", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        (
            "2023-11-30",
            "2024-12-01",
            "quarter",
            ["2023-11-30", "2024-02-29", "2024-05-30", "2024-08-30", "2024-11-30"],
        ),
        ("2024-02-29", "2026-01-01", "1 year", ["2024-02-29", "2025-02-28"]),
        ("2024-01-01", "2024-01-22", "1 week", ["2024-01-01", "2024-01-08", "2024-01-15"]),
        ("2024-01-01", "2024-01-03", timedelta(days=1), ["2024-01-01", "2024-01-02"]),
        ("9999-11-15", "9999-12-31", "month", ["9999-11-15", "9999-12-15"]),
    ],
)
def test_steps_of_the_calendar(begin: str, end: str, step: Any, expected: list[str]) -> None:
    found = instants_of(instant(begin), instant(end), step)

    assert [moment(each).date().isoformat() for each in found] == expected


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ({}, "one of valid and tx as"),
        ({"valid": YEAR, "tx": YEAR}, "one of valid and tx as"),
        ({"valid": YEAR[:2]}, "has 2 values"),
        ({"valid": ("2025-01-01", "2026-01-01", "soon")}, "the step 'soon' is none"),
        ({"valid": ("2025-01-01", "2026-01-01", "0 days")}, "is none"),
        ({"valid": ("2025-01-01", "2026-01-01", "1 second")}, "Give a longer step"),
        ({"valid": ("2026-01-01", "2025-01-01", "1 day")}, "Give the earlier one first"),
    ],
)
def test_what_is_no_span_of_instants_is_refused(orders: GraphStore, spans: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        orders.over(**spans)
