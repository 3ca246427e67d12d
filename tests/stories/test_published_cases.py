"""Cases after those that other stores with periods publish: the same answer here, or not, as docs/semantics/reading.md tells."""

from __future__ import annotations

import pytest

from graphstore import GraphStore, InvalidError, NotFoundError
from tests.conftest import Clock

pytestmark = pytest.mark.served

STAYS = [("a", "1999-01-01", "2000-01-01"), ("b", "1999-01-01", "2018-12-31"), ("c", "1999-01-01", "2017-01-01"), ("d", "2017-01-01", "2019-01-01")]  # fmt: skip


@pytest.fixture
def stays(store: GraphStore) -> GraphStore:
    """A table after that of the page on application-time periods in MariaDB's documentation: a name and a period."""
    for name, begin, end in STAYS:
        store.add_node("stay", {"name": name}, id=name, valid_from=begin, valid_to=end)
    return store


def rows(store: GraphStore) -> list[tuple[str, str, str]]:
    """The table as it is printed there."""
    found = store.history_table("stay").rows()
    return sorted(
        (row["name"], f"{row['valid_from']:%Y-%m-%d}", f"{row['valid_to']:%Y-%m-%d}") for row in found
    )


def test_delete_for_portion_of(stays: GraphStore) -> None:
    for name in "bcd":
        stays.retract(name, valid_from="2001-01-01", valid_to="2018-01-01", reason="a portion")

    assert rows(stays) == [
        ("a", "1999-01-01", "2000-01-01"),
        ("b", "1999-01-01", "2001-01-01"),
        ("b", "2018-01-01", "2018-12-31"),
        ("c", "1999-01-01", "2001-01-01"),
        ("d", "2018-01-01", "2019-01-01"),
    ]


def test_update_for_portion_of(stays: GraphStore) -> None:
    for name, start in (("b", "2000-01-01"), ("c", "2000-01-01"), ("d", "2017-01-01")):
        stays.amend(name, {"name": f"{name}_original"}, valid_from=start, valid_to="2018-01-01")
    with pytest.raises(
        InvalidError, match="'d' begins 2017-01-01, after valid_from 2000-01-01"
    ):  # not shortened
        stays.amend("d", {"name": "d"}, valid_from="2000-01-01", valid_to="2018-01-01")

    assert rows(stays) == [
        ("a", "1999-01-01", "2000-01-01"),
        ("b", "1999-01-01", "2000-01-01"),
        ("b", "2018-01-01", "2018-12-31"),
        ("b_original", "2000-01-01", "2018-01-01"),
        ("c", "1999-01-01", "2000-01-01"),
        ("c_original", "2000-01-01", "2017-01-01"),
        ("d", "2018-01-01", "2019-01-01"),
        ("d_original", "2017-01-01", "2018-01-01"),
    ]


def test_a_portion_that_nothing_overlaps_is_refused_and_not_passed_over(stays: GraphStore) -> None:
    with pytest.raises(NotFoundError):
        stays.retract("a", valid_from="2001-01-01", valid_to="2018-01-01", reason="a portion")
    with pytest.raises(NotFoundError):
        stays.amend("a", {"name": "a_original"}, valid_from="2000-01-01", valid_to="2018-01-01")


def prices(store: GraphStore, id: str) -> list[tuple[float, str, str]]:
    """The rows of a product: its price and period, an open end as nothing."""
    found = store.history_table("product").rows()
    return [
        (
            row["price"],
            f"{row['valid_from']:%Y-%m-%d}",
            f"{row['valid_to']:%Y-%m-%d}" if row["valid_to"] else "",
        )
        for row in found
        if row["id"] == id
    ]


def test_the_temporal_leftovers_of_postgresql(store: GraphStore) -> None:
    """The products of the page on updating and deleting temporal data in PostgreSQL's manual."""
    store.add_node("product", {"price": 5.0}, id="5", valid_from="2020-01-01", valid_to="2022-01-01")
    store.revise("5", {"price": 8.0}, valid_from="2022-01-01", valid_to="open")
    store.add_node("product", {"price": 9.0}, id="6", valid_from="2021-01-01", valid_to="2024-01-01")
    store.amend("5", {"price": 12.0}, valid_from="2023-09-01", valid_to="2025-03-01")

    assert prices(store, "5") == [
        (5.0, "2020-01-01", "2022-01-01"),
        (8.0, "2022-01-01", "2023-09-01"),
        (12.0, "2023-09-01", "2025-03-01"),
        (8.0, "2025-03-01", ""),
    ]
    store.retract("5", valid_from="2021-08-01", valid_to="2023-09-01", reason="not on offer")
    assert prices(store, "5") == [
        (5.0, "2020-01-01", "2021-08-01"),
        (12.0, "2023-09-01", "2025-03-01"),
        (8.0, "2025-03-01", ""),
    ]
    assert prices(store, "6") == [(9.0, "2021-01-01", "2024-01-01")]


def test_the_price_that_was_wrong_for_a_year_of_xtdb(store: GraphStore, clock: Clock) -> None:
    """The product of the fourth part of XTDB's walk through immutability."""
    store.add_node("product", {"price": 300}, id="1", valid_from="2022-01-01")
    store.revise("1", {"price": 400}, valid_from="2023-01-01")
    store.revise("1", {"price": 500}, valid_from="2024-01-01")

    def price(day: str, **known: object) -> object:
        return store.as_of(valid=day, **known).node("1").content["price"]  # type: ignore[arg-type]

    days = ("2022-01-02", "2023-01-02", "2024-01-02")
    assert [price(day) for day in days] == [300, 400, 500]
    before = store.as_of().at.tx
    clock.move(days=1)
    store.revise("1", {"price": 350}, valid_from="2023-01-01", valid_to="2024-01-01", reason="a slip")
    assert [price(day) for day in days] == [300, 350, 500]
    assert [price(day, tx=before) for day in days] == [300, 400, 500]
    everything = store.history_table("product", tx=("2026-01-01", None)).rows()
    assert {300, 350, 400, 500} == {row["price"] for row in everything}


def test_history_that_is_loaded_later_of_xtdb(store: GraphStore, clock: Clock) -> None:
    """The third part of that walk: the past of a product is told after its present."""
    store.add_node("product", {"price": 350}, id="1", valid_from="2024-01-01")
    with pytest.raises(NotFoundError):
        store.as_of(valid="2023-01-01").node("1")
    clock.move(days=1)
    store.revise("1", {"price": 300}, valid_from="2022-01-01", valid_to="2024-01-01")

    found = [store.as_of(valid=day).node("1").content["price"] for day in ("2024-01-02", "2023-01-01")]
    assert found == [350, 300]
    with pytest.raises(NotFoundError):
        store.as_of(valid="2020-01-01").node("1")


def test_the_age_of_alice_in_datahike_and_datomic(store: GraphStore, clock: Clock) -> None:
    """Time variance in Datahike's documentation: its one time is the transaction's. A change without a period here is of all the time a thing holds, so `tx` alone tells the two apart."""
    store.add_node("person", {"name": "Alice", "age": 25}, id="alice")
    first = store.as_of().at.tx
    clock.move(days=1)
    store.amend("alice", {"age": 30})

    def age(**at: object) -> object:
        return store.as_of(**at).node("alice").content["age"]  # type: ignore[arg-type]

    assert age() == 30
    assert store.knowledge_at(first).node("alice").content["age"] == 25
    assert {row["age"] for row in store.history_table("person", tx=(None, None)).rows()} == {25, 30}
    changed = store.changes_table(since=first).rows()
    assert [("removed", '{"age":25,"name":"Alice"}'), ("added", '{"age":30,"name":"Alice"}')] == [
        (row["change"], row["content"]) for row in changed
    ]


def test_a_past_without_an_end_takes_all_that_comes_later_as_in_xtdb(store: GraphStore, clock: Clock) -> None:
    store.add_node("product", {"price": 350}, id="1", valid_from="2024-01-01")
    clock.move(days=1)
    store.revise("1", {"price": 300}, valid_from="2022-01-01")

    assert prices(store, "1") == [(300, "2022-01-01", "")]
