"""Histories as tables, and what they add up to over time, compared with reads at single coordinates and with sums made instant by instant."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow
import pytest

from graphstore import GraphStore, InvalidError
from graphstore.graph.result import Result
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

REGIONS = ("north", "south", None)
END = datetime.max.replace(tzinfo=day("2025-01-01").tzinfo)


@pytest.fixture
def accounts(store: GraphStore, clock: Clock) -> GraphStore:
    """Accounts that move and are corrected late, also in parts that are taken back."""
    chance = random.Random(3)
    for number in range(8):
        clock.move(hours=1)
        content = {"region": chance.choice(REGIONS), "total": number / 10}
        store.add_node(
            "account",
            content,
            id=f"a{number}",
            valid_from=day("2025-01-01") + timedelta(days=number),
            reason=f"opened {number}",
        )
    store.add_node("note", {"total": "many"}, id="note", valid_from="2025-01-01")
    store.link("a1", "related_to", "a2", valid_from="2025-02-01", valid_to="2025-06-01")
    store.link("a2", "derived_from", "a3", valid_from="2025-02-01")
    for number in range(30):
        clock.move(hours=1)
        begin = day("2025-01-10") + timedelta(days=chance.randrange(200))
        until = chance.choice([None, begin + timedelta(days=chance.randrange(1, 60))])
        which = f"a{chance.randrange(8)}"
        if number % 6 == 5:
            held = store.history(which)[0].valid_from
            store.retract(which, valid_from=held, valid_to=held + timedelta(days=2), reason="never was")
        else:
            store.revise(
                which,
                {"region": chance.choice(REGIONS), "total": chance.randrange(40) / 10},
                valid_from=begin,
                valid_to=until,
                reason="late",
            )
    return store


def plane(clock: Clock) -> Iterator[tuple[datetime, datetime]]:
    """Coordinates."""
    chance = random.Random(5)
    for _ in range(15):
        tx = day("2026-02-01") + timedelta(hours=chance.randrange(1, 38), minutes=30)
        yield day("2025-01-01") + timedelta(days=chance.randrange(220)), min(tx, clock.now)


def test_each_coordinate_is_in_the_table_of_everything(accounts: GraphStore, clock: Clock) -> None:
    rows = accounts.history_table("account", tx=(None, None)).rows()
    assert rows == sorted(rows, key=lambda row: (row["id"], row["valid_from"], row["tx_from"]))
    for valid, tx in plane(clock):
        there = {node.id: node for node in accounts.as_of(valid=valid, tx=tx).nodes(kind="account")}
        found = [
            row
            for row in rows
            if row["valid_from"] <= valid < (row["valid_to"] or END)
            and row["tx_from"] <= tx < (row["tx_to"] or END)
        ]
        assert {row["id"]: (row["region"], row["total"], row["number"]) for row in found} == {
            node.id: (node.content["region"], node.content["total"], node.number) for node in there.values()
        }
        assert all(
            (row["author"], row["told"]) == (there[row["id"]].author, there[row["id"]].recorded_at)
            for row in found
        )


def test_at_one_tx_it_is_what_history_says(accounts: GraphStore, clock: Clock) -> None:
    for _, tx in plane(clock):
        view = accounts.as_of(tx=tx)
        rows = accounts.history_table("account", tx=tx).rows()
        known = [
            node for node in (f"a{number}" for number in range(8)) if any(row["id"] == node for row in rows)
        ]
        expected = [
            (one.id, one.valid_from, one.valid_to, one.content["total"])
            for id in known
            for one in view.history(id)
        ]
        assert [(row["id"], row["valid_from"], row["valid_to"], row["total"]) for row in rows] == expected
        assert all(row["tx_to"] is None and row["tx_from"] <= tx for row in rows)


def test_a_window_is_cut_to_its_ends(accounts: GraphStore) -> None:
    begin, end = day("2025-03-01"), day("2025-03-10")
    whole = accounts.history_table("account").rows()
    inside = accounts.history_table("account", valid=(begin, end), clip=True).rows()

    assert [
        (max(row["valid_from"], begin), min(row["valid_to"] or END, end), row["total"])
        for row in whole
        if row["valid_from"] < end and begin < (row["valid_to"] or END)
    ] == [(row["valid_from"], row["valid_to"], row["total"]) for row in inside]


def test_types_are_those_of_the_kind_and_not_of_the_rows(accounts: GraphStore) -> None:
    schema = accounts.history_table("account").to_arrow().schema

    assert schema.field("total").type == pyarrow.float64()
    assert accounts.history_table("account", valid=("1990-01-01", "1991-01-01")).to_arrow().schema == schema
    assert (
        accounts.history_table(fields=["total", "region"]).to_arrow().schema.field("total").type
        == pyarrow.string()
    )


def test_a_field_that_no_content_has_ever_had_is_refused(accounts: GraphStore) -> None:
    with pytest.raises(InvalidError, match=r"ever had the field 'totl'\. Nearest: 'total'\. Give fields"):
        accounts.history_table("account", fields=["region", "totl"])
    with pytest.raises(InvalidError, match="ever had the field 'id'"):
        accounts.history_table(fields="id")
    with pytest.raises(InvalidError, match="ever had the field 'nothing'"):
        accounts.history_table("account", fields=["nothing"], valid=("1990-01-01", "1991-01-01"))


def test_a_field_of_other_kinds_or_times_is_a_column_of_none(store: GraphStore, clock: Clock) -> None:
    assert [] == store.history_table(fields=["state"]).rows()
    store.add_node("order", {"total": 1}, id="o")
    store.add_node("note", {"says": "x"}, id="n")
    clock.move(days=1)
    assert [("o", None)] == [(row["id"], row["says"]) for row in store.history_table("order", ["says"])]
    assert [] == store.history_table("invoice", fields=["anything"]).rows()
    store.revise("o", {"total": 1, "state": "paid"})
    before = store.history_table("order", fields=["state"], tx="2026-02-01")
    assert [("o", None)] == [(row["id"], row["state"]) for row in before]


def test_neighbouring_periods_that_say_the_same_are_one(accounts: GraphStore) -> None:
    rows = accounts.history_table("account", fields=["region"], coalesce_on="region").rows()
    expected: list[list[Any]] = []
    for row in accounts.history_table("account", fields=["region"]).rows():
        same = (
            expected
            and expected[-1][:2] == [row["id"], row["region"]]
            and expected[-1][3] == row["valid_from"]
        )
        if same:
            expected[-1][3] = row["valid_to"]
        else:
            expected.append([row["id"], row["region"], row["valid_from"], row["valid_to"]])

    assert [[row[name] for name in ("id", "region", "valid_from", "valid_to")] for row in rows] == expected


def test_links_have_both_their_periods(accounts: GraphStore) -> None:
    [link] = accounts.links_table("related_to").rows()

    assert (link["source"], link["target"], link["valid_from"], link["valid_to"]) == (
        "a1",
        "a2",
        day("2025-02-01"),
        day("2025-06-01"),
    )
    assert len(accounts.links_table()) == 2
    assert len(accounts.links_table(valid=("2025-07-01", None))) == 1


def test_changes_add_up_to_what_is_believed(accounts: GraphStore, clock: Clock) -> None:
    rows = accounts.changes_table().rows()
    halfway = sorted({row["tx"] for row in rows})[20]
    assert [row["tx"] for row in rows] == sorted(row["tx"] for row in rows)
    assert accounts.changes_table(until=halfway).rows() + accounts.changes_table(since=halfway).rows() == rows
    for valid, tx in plane(clock):
        said: dict[str, int | None] = {}
        for row in rows:
            if (
                row["thing"] == "node"
                and row["kind"] == "account"
                and row["tx"] <= tx
                and row["valid_from"] <= valid < (row["valid_to"] or END)
            ):
                said[row["id"]] = row["number"] if row["change"] == "added" else None
        expected = {node.id: node.number for node in accounts.as_of(valid=valid, tx=tx).nodes(kind="account")}
        assert {id: number for id, number in said.items() if number is not None} == expected


def test_what_is_otherwise_there_as_a_table(accounts: GraphStore, clock: Clock) -> None:
    before, after = (
        accounts.as_of(valid="2025-02-01", tx=day("2026-02-01") + timedelta(hours=12)),
        accounts.as_of(valid="2025-05-01"),
    )
    found, rows = before.compare(after), before.changes_to(after).rows()

    changed = [(each.after.id, field.path) for each in found.changed for field in each.fields]
    assert [(row["id"], row["field"]) for row in rows if row["change"] == "changed"] == changed
    assert {row["id"] for row in rows if row["change"] == "added"} == {node.id for node in found.added}
    assert {row["id"] for row in rows if row["change"] == "removed"} == {node.id for node in found.removed}
    assert {row["reason"] for row in rows if row["change"] == "changed"} <= {
        "late",
        *(f"opened {n}" for n in range(8)),
    }


def test_who_took_it_away_is_told_whatever_was_done_since(store: GraphStore, clock: Clock) -> None:
    def told(author: str) -> Any:
        clock.move(days=1)
        return store.transaction(author=author)

    with told("ann"):
        store.add_node("shop", {"open": True}, id="x", valid_from="2025-01-01", reason="first")
    early = store.as_of(valid="2025-03-01")
    with told("bob"):
        store.end("x", at="2025-06-01", reason="closed shop")
    with told("eve"):
        store.retract("x", valid_from="2025-03-01", valid_to="2025-03-10", reason="not so")
    with told("fay"):
        store.amend("x", {"rent": 2}, valid_from="2025-01-05", valid_to="2025-01-06", reason="another time")
    with told("gil"):
        store.add_node(
            "shop",
            {"open": True},
            id="y",
            valid_from="2025-01-01",
            valid_to="2025-04-01",
            reason="for a while",
        )

    def said(before: Any, after: Any) -> list[tuple[Any, ...]]:
        return [
            (row["id"], row["change"], row["author"], row["reason"])
            for row in before.changes_to(after).rows()
        ]

    at = {day: store.as_of(valid=day) for day in ("2025-03-01", "2025-07-01", "2025-01-05", "2025-02-01")}
    assert said(early, at["2025-03-01"]) == [
        ("y", "added", "gil", "for a while"),
        ("x", "removed", "eve", "not so"),
    ]
    assert said(early, at["2025-07-01"]) == [("x", "removed", "bob", "closed shop")]
    assert said(at["2025-02-01"], at["2025-07-01"]) == [
        ("x", "removed", "bob", "closed shop"),
        ("y", "removed", "gil", "for a while"),
    ]
    assert said(at["2025-02-01"], at["2025-01-05"]) == [("x", "changed", "fay", "another time")]
    assert said(at["2025-02-01"], early) == [("y", "removed", "gil", "for a while")]  # not yet known there
    assert said(early, store.as_of(tx="2026-01-01")) == [("x", "removed", "ann", "first")]


def by_hand(rows: list[dict[str, Any]], at: datetime, region: Any, aggregate: str) -> Any:
    """The aggregate at one instant, of the rows that hold there; "none" where none does."""
    held = [
        row for row in rows if row["valid_from"] <= at < (row["valid_to"] or END) and row["region"] == region
    ]
    totals = [row["total"] for row in held if row["total"] is not None]
    if not held:
        return "none"
    return {
        "count(*)": len(held), "count(total)": len(totals), "sum(total)": sum(totals) if totals else None, "min(total)": min(totals, default=None),
        "max(total)": max(totals, default=None), "avg(total)": sum(totals) / len(totals) if totals else None,
    }[aggregate]  # fmt: skip


@pytest.mark.parametrize(
    "aggregate", ["count(*)", "count(total)", "sum(total)", "min(total)", "max(total)", "avg(total)"]
)
def test_steps_are_the_aggregate_at_every_instant(accounts: GraphStore, aggregate: str) -> None:
    table = accounts.history_table("account")
    steps = table.steps(aggregate, by="region").rows()
    for region in REGIONS:
        own = [row for row in steps if row["region"] == region]
        assert all(a["valid_to"] < b["valid_from"] or a[aggregate] != b[aggregate] for a, b in pairwise(own))
        for number in range(230):
            at = day("2025-01-01") + timedelta(days=number)
            there = [row[aggregate] for row in own if row["valid_from"] <= at < (row["valid_to"] or END)]
            expected = by_hand(table.rows(), at, region, aggregate)
            assert there == (
                [] if expected == "none" else [expected if expected is None else pytest.approx(expected)]
            )


def test_steps_are_drawn(accounts: GraphStore) -> None:
    drawn = accounts.history_table("account").steps("sum(total)", by=["region"])._repr_html_()

    assert drawn.count("<svg") == 1 and "north" in drawn and "<table" in drawn
    assert "<svg" not in accounts.history_table("account").steps("max(region)")._repr_html_()


def test_a_branch_has_a_history_of_its_own(accounts: GraphStore) -> None:
    branch = accounts.branch("plan")
    branch.add_node("account", {"region": "north", "total": 9.5}, id="planned")

    assert "planned" in {row["id"] for row in branch.history_table("account").rows()}
    assert "planned" not in {row["id"] for row in accounts.history_table("account").rows()}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"valid": "2025-01-01"}, "Give a pair"),
        ({"valid": ("2025-02-01", "2025-01-01")}, "Give the earlier one first"),
        ({"coalesce_on": "nothing"}, "column to coalesce on 'nothing'"),
        ({"coalesce_on": ["tx_from"]}, "column to coalesce on 'tx_from'"),
        ({"fields": [3]}, "is no name of a column"),
        ({"tx": "2100-01-01"}, "has not come yet"),
    ],
)
def test_what_is_no_span_is_refused(accounts: GraphStore, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        accounts.history_table(**asked)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("sum of it", "no aggregate"),
        ("sum(nothing)", "unknown column"),
        ("sum(region)", "of numbers"),
        ("min(*)", "unknown column"),
    ],
)
def test_what_is_no_aggregate_is_refused(accounts: GraphStore, asked: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        accounts.history_table("account").steps(asked)


def test_steps_want_periods() -> None:
    with pytest.raises(InvalidError, match="unknown column 'valid_from'"):
        Result(["a"], [(1,)]).steps("count(*)")
