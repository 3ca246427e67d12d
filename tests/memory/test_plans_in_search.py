"""Search finds what is planned, marks it, and leaves what stands where it was."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import GraphStore, NotFoundError
from graphstore.memory.recall import recall

pytestmark = pytest.mark.served


@pytest.fixture
def launch(store: GraphStore, clock) -> GraphStore:
    store.add_node("note", {"text": "the launch checklist"}, id="checklist")
    store.add_node(
        "fact", {"text": "launch of the rocket"}, id="launch", valid_from=clock() + timedelta(days=30)
    )
    return store


def shown(found) -> list[tuple[str, str]]:
    return [(hit.node.id, hit.standing) for hit in found]


def test_a_plan_is_found_and_marked(launch):
    found = recall(launch, "rocket launch")
    assert ("launch", "not_yet") in shown(found) and ("checklist", "stands") in shown(found)
    [plan] = [hit for hit in found if hit.node.id == "launch"]
    assert "(planned from " in str(plan)


def test_a_plan_follows_what_stands_and_answers_as_well(launch):
    assert [id for id, _ in shown(recall(launch, "launch"))] == ["checklist", "launch"]


def test_once_it_has_begun_a_plan_stands(launch, clock):
    clock.move(days=31)
    assert dict(shown(recall(launch, "rocket")))["launch"] == "stands"


def test_what_only_stands_is_asked_for_by_standing(launch):
    assert shown(recall(launch, "rocket", standing="stands")) == []
    assert shown(recall(launch, "rocket", standing="not_yet")) == [("launch", "not_yet")]


def test_a_view_of_the_past_has_no_plan_of_what_began_since(launch, clock):
    before = clock() - timedelta(days=10)
    clock.move(days=31)
    launch.add_node("note", {"text": "it flew"})
    assert shown(recall(launch.as_of(valid=before), "rocket")) == []


def test_a_plan_that_was_given_up_is_no_hit(launch):
    launch.retract("launch", reason="cancelled")
    assert shown(recall(launch, "rocket")) == []
    assert recall(launch, "rocket").elsewhere


def test_a_plan_that_is_written_after_a_search_is_found_by_the_next(launch, clock):
    assert shown(recall(launch, "banquet")) == []
    launch.add_node(
        "fact", {"text": "banquet for the crew"}, id="banquet", valid_from=clock() + timedelta(days=40)
    )
    assert shown(recall(launch, "banquet")) == [("banquet", "not_yet")]
    launch.revise("banquet", {"text": "dinner for the crew"})
    assert shown(recall(launch, "banquet")) == [] and shown(recall(launch, "dinner")) == [
        ("banquet", "not_yet")
    ]


def test_filters_hold_for_plans(launch):
    assert shown(recall(launch, "rocket", kinds="note")) == []
    assert shown(recall(launch, "rocket", kinds="fact")) == [("launch", "not_yet")]


def test_an_id_that_was_recorded_later_says_so(store, clock):
    past = clock() - timedelta(days=900)
    store.add_node("fact", {"text": "Ada leads"}, id="lead", valid_from=past)
    view = store.knowledge_at(past + timedelta(days=1))
    for ask in (view.node, view.history, view.inspect, view.what_superseded, view.links_from):
        with pytest.raises(
            NotFoundError, match=r"'lead' was not known at .* recorded later, at .*as_of\(valid="
        ):
            ask("lead")
    with pytest.raises(NotFoundError, match="no node or event 'leed'"):
        view.node("leed")
