"""Describing again: a put and a patch write only what differs, an end can be opened, and who expects another version is refused."""

from __future__ import annotations

from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from tests.conftest import Clock

pytestmark = pytest.mark.served


def periods(store: GraphStore, id: str) -> list[tuple[str, str | None, Any, int]]:
    """What is believed of a node: from, to, content, number."""
    return [
        (
            f"{row.valid_from:%Y-%m-%d}",
            row.valid_to and f"{row.valid_to:%Y-%m-%d}",
            row.content,
            row.number,
        )
        for row in store.history(id)
    ]


@pytest.fixture
def salary(store: GraphStore, clock: Clock) -> GraphStore:
    """A salary of three years, with a gap after 2022 and one that was retracted."""
    store.add_node("fact", {"pay": 10, "unit": "a"}, id="salary", valid_from="2020-01-01", valid_to="2022-01-01",
                   tags=["money"], text="ten")  # fmt: skip
    store.revise("salary", {"pay": 12, "unit": "a"}, valid_from="2023-01-01", valid_to="2025-01-01")
    store.retract("salary", valid_from="2023-06-01", valid_to="2023-07-01", reason="on leave")
    clock.move(days=1)
    return store


# ---------------------------------------------------------------------- revise is a put


def test_a_description_that_says_the_same_writes_nothing(salary: GraphStore) -> None:
    before, history = len(list(salary.changes())), salary.history("salary")
    same = salary.revise(
        "salary", {"pay": 12, "unit": "a"}, valid_from="2024-01-01", valid_to="2025-01-01", reason="nightly"
    )

    assert before == len(list(salary.changes()))
    assert history == salary.history("salary")
    assert (2, {"pay": 12, "unit": "a"}) == (same.number, same.content)


def test_only_the_part_that_differs_is_written_gaps_included(salary: GraphStore) -> None:
    salary.revise("salary", {"pay": 12, "unit": "a"}, valid_from="2021-01-01", valid_to="2026-01-01")

    a, b = {"pay": 10, "unit": "a"}, {"pay": 12, "unit": "a"}
    assert [
        ("2020-01-01", "2021-01-01", a, 1),
        ("2021-01-01", "2023-01-01", b, 3),
        ("2023-01-01", "2023-06-01", b, 2),
        ("2023-06-01", "2023-07-01", b, 3),
        ("2023-07-01", "2025-01-01", b, 2),
        ("2025-01-01", "2026-01-01", b, 3),
    ] == periods(salary, "salary")


@pytest.mark.parametrize(
    "more", [{"tags": ["other"]}, {"text": "twelve"}, {"source": "payroll:1"}], ids=lambda more: min(more)
)
def test_other_tags_text_or_source_are_another_description(salary: GraphStore, more: dict[str, Any]) -> None:
    given = {"valid_from": "2024-01-01", "valid_to": "2025-01-01", **more}
    assert 3 == salary.revise("salary", {"pay": 12, "unit": "a"}, **given).number
    assert 3 == salary.revise("salary", {"pay": 12, "unit": "a"}, **given).number


def test_a_text_or_source_that_is_not_given_is_no_difference(store: GraphStore) -> None:
    store.add_node("fact", {"v": 1}, id="x", text="one", source="user:ana")

    assert (1, "one", "user:ana") == (
        (same := store.revise("x", {"v": 1})).number, same.text, same.source,
    )  # fmt: skip


def test_true_is_not_one(store: GraphStore) -> None:
    store.add_node("fact", {"v": [1]}, id="x")

    assert {"v": [True]} == store.revise("x", {"v": [True]}).content


def test_the_source_stays_where_none_is_given(store: GraphStore) -> None:
    store.add_node("fact", {"v": 1}, id="x", source="user:ana")

    assert "user:ana" == store.revise("x", {"v": 2}).source


def test_who_is_trusted_less_does_not_write_in_the_name_of_who_is_trusted_more(store: GraphStore) -> None:
    store.add_node("fact", {"v": 1}, id="x", source="user:ana", valid_to="2027-01-01")
    store.set_trust({"user": 2})

    assert store.revise("x", {"v": 2}, valid_from="2027-01-01", valid_to="2028-01-01").source is None


# ---------------------------------------------------------------------- amend is a patch


def test_fields_change_where_something_stands_and_nowhere_else(salary: GraphStore) -> None:
    salary.amend("salary", {"unit": "b"}, valid_from="2021-01-01", valid_to="2024-01-01", reason="renamed")

    assert [
        ("2020-01-01", "2021-01-01", {"pay": 10, "unit": "a"}, 1),
        ("2021-01-01", "2022-01-01", {"pay": 10, "unit": "b"}, 3),
        ("2023-01-01", "2023-06-01", {"pay": 12, "unit": "b"}, 4),
        ("2023-07-01", "2024-01-01", {"pay": 12, "unit": "b"}, 4),
        ("2024-01-01", "2025-01-01", {"pay": 12, "unit": "a"}, 2),
    ] == periods(salary, "salary")


def test_what_is_amended_keeps_its_words_and_says_what_it_was(salary: GraphStore) -> None:
    done = salary.amend("salary", {"pay": 11}, valid_to="2022-01-01", reason="recount")

    assert ({"pay": 11, "unit": "a"}, "ten", ("money",)) == (done.content, done.text, done.tags)
    assert ("user_feedback", "amend", "recount") == (
        done.trigger, (last := list(salary.changes())[-1]).verb, last.reason,
    )  # fmt: skip


def test_an_amendment_that_changes_nothing_writes_nothing(salary: GraphStore) -> None:
    before = len(list(salary.changes()))

    assert 2 == salary.amend("salary", {"pay": 12}, valid_from="2023-01-01").number
    assert before == len(list(salary.changes()))


def test_where_nothing_stands_there_is_nothing_to_amend(salary: GraphStore) -> None:
    with pytest.raises(NotFoundError, match=r"nothing to amend. revise\('salary', …\)"):
        salary.amend("salary", {"pay": 1}, valid_from="2022-01-01", valid_to="2023-01-01")


def test_null_is_a_value(salary: GraphStore) -> None:
    assert {"pay": 12, "unit": None} == salary.amend(
        "salary", {"unit": None}, valid_from="2024-01-01"
    ).content


def test_an_amendment_shakes_what_was_derived_before_it(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"rate": 1, "by": "ana"}, id="base", valid_from="2025-01-01")
    store.add_node("fact", {}, id="sum", derived_from=["base"], valid_from="2025-01-01")
    clock.move(days=1)
    store.amend("base", {"rate": 2}, valid_from="2026-01-01")

    assert "shaky" == store.node("sum").standing
    assert "stands" == store.as_of(valid="2025-06-01").node("sum").standing


# ---------------------------------------------------------------------- an open end


def test_an_ended_thing_gets_an_open_end_again(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"v": 1}, id="x", valid_from="2026-01-01", valid_to="2026-01-15")
    store.revise("x", {"v": 1}, valid_to=graphstore.OPEN)

    assert [("2026-01-01", "2026-01-15", {"v": 1}, 1), ("2026-01-15", None, {"v": 1}, 2)] == periods(
        store, "x"
    )


def test_a_value_of_a_slot_with_an_open_end_cuts_those_that_come_later(store: GraphStore) -> None:
    store.add_node("fact", {"v": "later"}, id="later", key="k", valid_from="2026-06-01")
    store.add_node("fact", {"v": "now"}, id="now", key="k", valid_from="2026-01-01", valid_to=graphstore.OPEN)

    assert "now" == store.as_of(valid="2027-01-01").nodes(key="k")[0].id


def test_a_link_has_an_open_end_when_that_is_said(store: GraphStore) -> None:
    store.add_node("fact", {}, id="a")
    store.add_node("fact", {}, id="b")

    assert store.link("a", "uses", "b", valid_to=graphstore.OPEN).valid_to is None


# ---------------------------------------------------------------------- lost updates


def writes(store: GraphStore) -> dict[str, Any]:
    return {
        "revise": lambda **more: store.revise("x", {"v": 3}, **more),
        "amend": lambda **more: store.amend("x", {"v": 3}, **more),
        "end": lambda **more: store.end("x", at="2027-01-01", **more),
        "retract": lambda **more: store.retract("x", reason="wrong", **more),
        "confirm": lambda **more: store.confirm("x", reason="looked", **more),
        "supersede": lambda **more: store.supersede("x", by="y", **more),
    }


@pytest.fixture
def twice(store: GraphStore, clock: Clock) -> GraphStore:
    store.add_node("fact", {"v": 1}, id="x", valid_from="2026-01-01")
    store.add_node("fact", {"v": "new"}, id="y", valid_from="2026-01-20")
    clock.move(hours=1)
    with store.transaction(author="bob"):
        store.revise("x", {"v": 2})
    clock.move(hours=1)
    return store


@pytest.mark.parametrize("verb", ["revise", "amend", "end", "retract", "confirm", "supersede"])
def test_who_expects_another_version_is_refused_and_shown_what_holds(twice: GraphStore, verb: str) -> None:
    before = len(list(twice.changes()))
    with pytest.raises(
        ConflictError,
        match=r"expected at version 1 \(if_number\), and version 2 holds now: 'v: 2', recorded 2026-02-01 01:00Z by bob",
    ):
        writes(twice)[verb](if_number=1)
    assert before == len(list(twice.changes()))

    writes(twice)[verb](if_number=2)


def test_where_nothing_holds_now_the_last_version_counts(twice: GraphStore) -> None:
    twice.end("x", at="2026-01-25")
    with pytest.raises(ConflictError, match="version 2 is its last, and nothing holds now"):
        twice.revise("x", {"v": 3}, if_number=1)
    twice.revise("x", {"v": 3}, valid_from="2026-01-25", if_number=2)


def test_what_is_there_comes_before_what_is_expected(twice: GraphStore) -> None:
    with pytest.raises(NotFoundError):
        twice.retract("x", valid_to="2025-01-01", reason="never", if_number=1)
    with pytest.raises(NotFoundError):
        twice.confirm("nothing-such", reason="looked", if_number=1)


def test_one_number_is_of_one_node(twice: GraphStore) -> None:
    with pytest.raises(InvalidError, match="several things are superseded"):
        twice.supersede("x", "y", by="y", if_number=1)
    event = twice.record_event("deploy", "out").event
    with pytest.raises(InvalidError, match="is an event, which has no versions"):
        twice.confirm(event.id, reason="seen", if_number=1)
    with pytest.raises(InvalidError, match="if_number 0 is out of range"):
        twice.revise("x", {"v": 3}, if_number=0)


# ---------------------------------------------------------------------- what changed


def test_what_says_the_same_under_another_number_has_not_changed(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {"v": 1}, id="x", tags=["a"])
    before = store.as_of()
    clock.move(days=1)
    store.revise("x", {"v": 2})
    clock.move(days=1)
    store.revise("x", {"v": 1}, source="user:ana")

    assert not before.compare(store.as_of())
    clock.move(days=1)
    store.revise("x", {"v": 1}, tags=["b"])
    assert ["x"] == [change.id for change in before.compare(store.as_of()).changed]


# ---------------------------------------------------------------------- what cannot be described


@pytest.mark.parametrize("verb", ["revise", "amend"])
@pytest.mark.parametrize("times", [{}, {"valid_from": "2024-01-01"}])
def test_what_was_forgotten_is_not_described_again(
    salary: GraphStore, verb: str, times: dict[str, str]
) -> None:
    salary.erase("salary", reason="private")
    with pytest.raises(ConflictError, match="'salary' is erased: nothing new can be recorded"):
        getattr(salary, verb)("salary", {"pay": 1}, **times)


@pytest.mark.parametrize("verb", ["revise", "amend"])
def test_an_event_is_not_described_again(store: GraphStore, verb: str) -> None:
    event = store.record_event("deploy", "out").event
    with pytest.raises(InvalidError, match="is an event"):
        getattr(store, verb)(event.id, {"pay": 1})


def test_an_amendment_keeps_the_source_or_has_its_own(store: GraphStore) -> None:
    store.add_node("fact", {"a": 1}, id="fact", source="ann")
    assert "ann" == store.amend("fact", {"a": 2}).source
    assert "bob" == store.amend("fact", {"a": 3}, source="bob").source


def test_what_is_written_is_shown_as_written_where_something_else_holds_now(salary: GraphStore) -> None:
    then = salary.revise("salary", {"pay": 1}, valid_from="2020-02-01", valid_to="2020-03-01", source="ann")
    assert (3, "2020-02-01", "2020-03-01") == (
        then.number,
        *(f"{at:%Y-%m-%d}" for at in (then.valid_from, then.valid_to)),
    )
    salary.revise("salary", {"pay": 2}, valid_from="2026-01-01")
    then = salary.revise("salary", {"pay": 3}, valid_from="2020-02-01", valid_to="2020-03-01")
    assert ("2020-02-01", {"pay": 3}) == (f"{then.valid_from:%Y-%m-%d}", then.content)
    assert salary.as_of(valid="2020-02-15").node("salary") == then


def test_the_first_thing_of_a_store_is_expected_as_any_other(store: GraphStore, clock: Clock) -> None:
    store.add_node("fact", {}, id="first", valid_from="2026-01-01")
    with pytest.raises(ConflictError, match="version 1 holds now"):
        store.revise("first", {"n": 1}, if_number=2)
    with store.transaction():
        store.revise("first", {"n": 1})
        store.retract("first", reason="a slip")
        store.revise("first", {"n": 2}, valid_from="2026-01-01", if_number=1)
    clock.move(days=1)
    store.retract("first", reason="a slip")
    with pytest.raises(ConflictError, match="is its last, and nothing holds now"):
        store.revise("first", {"n": 3}, valid_from="2026-01-01", if_number=9)
