"""What is summed up, and what something new rests on."""

from __future__ import annotations

import pytest

from graphstore import InvalidError, NotFoundError

pytestmark = pytest.mark.served


@pytest.fixture
def days(store):
    return [store.add_node("note", {"day": day}, id=f"day-{day}").id for day in (1, 2, 3)]


def test_something_new_is_derived_from_what_it_names(store, days):
    plan = store.add_node("plan", {"says": "rest"}, derived_from=days[:2], reason="two hard days")
    assert [("derived_from", "day-1", "two hard days"), ("derived_from", "day-2", "two hard days")] == sorted(
        (link.kind, link.target, link.reason) for link in store.links_from(plan.id)
    )


def test_things_are_folded_into_a_new_summary_and_stay(store, days):
    week = store.fold(days, into={"says": "a busy week"}, reason="end of the week")
    assert ("summary", {"says": "a busy week"}) == (week.kind, week.content)
    assert days == sorted(link.target for link in store.links_from(week.id, "derived_from"))
    assert ["stands"] * 3 == [store.node(day).standing for day in days]


def test_things_are_folded_into_a_node_that_is_there(store, days):
    store.add_node("note", {"says": "so far"}, id="week-so-far")
    assert "week-so-far" == store.fold(days, into="week-so-far").id
    assert days == sorted(link.target for link in store.links_from("week-so-far"))


def test_a_summary_is_shaky_when_a_member_falls_and_undone_by_a_retract(store, days):
    week = store.fold(days, into={"says": "a busy week"})
    store.retract("day-2", reason="was a holiday")
    assert "shaky" == store.node(week.id).standing
    store.retract(week.id, reason="summed up wrongly")
    assert [] == store.shaky()
    assert "stands" == store.node("day-1").standing


def test_folding_nothing_or_the_unknown_writes_nothing(store, days):
    before = store.changes()
    with pytest.raises(InvalidError, match="fold"):
        store.fold([], into={"says": "nothing"})
    with pytest.raises(NotFoundError):
        store.fold(["day-1", "day-9x"], into={"says": "half"})
    assert before == store.changes()


def test_things_are_folded_as_they_were_read_or_by_id(store, days):
    first, *others = (store.node(day) for day in days)
    boom = store.record_event("error", "boom").event
    week = store.fold([first, boom, others[0].id], into={"says": "a hard week"})

    assert week.id == store.fold(others[1], into=week).id
    assert sorted([*days, boom.id]) == sorted(link.target for link in store.links_from(week.id))
