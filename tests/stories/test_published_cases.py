"""Cases after those that other stores with periods publish: the same answer here, or not, as docs/semantics/reading.md tells."""

from __future__ import annotations

import pytest

from graphstore import GraphStore, NotFoundError

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
    for name in "bcd":
        stays.amend(name, {"name": f"{name}_original"}, valid_from="2000-01-01", valid_to="2018-01-01")

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
