"""A day, a month or a year in a read: its end as a coordinate, its start for `since`, the instant at which it ends for `until`."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from graphstore import InvalidError, recall, timeline
from tests.conftest import day

pytestmark = pytest.mark.served

END = timedelta(days=1) - timedelta(microseconds=1)


@pytest.fixture
def diary(store, clock):
    """Something is recorded at midnight, at noon and in the evening of three days."""
    for number in (1, 2, 3):
        for hour in (0, 12, 23):
            clock.set(day(f"2026-02-0{number}") + timedelta(hours=hour))
            store.add_node("note", {"says": f"note {number}-{hour}"}, id=f"n{number}-{hour}")
            store.record_event("TEXT", f"visit {number}-{hour}", id=f"e{number}-{hour}")
    return store


def notes(reader):
    return sorted(node.id for node in reader.nodes("note"))


@pytest.mark.parametrize("given", ["2026-02-02", date(2026, 2, 2), "2 February 2026", "2026-02-02 UTC"])
def test_a_day_as_a_coordinate_is_its_end(diary, given):
    until_then = ["n1-0", "n1-12", "n1-23", "n2-0", "n2-12", "n2-23"]

    assert until_then == notes(diary.as_of(valid=given)) == notes(diary.as_of(tx=given))
    assert until_then == notes(diary.knowledge_at(given)) == notes(diary.as_of(given))
    assert day("2026-02-02") + END == diary.as_of(valid=given).at.valid
    assert ["n1-0", "n1-12", "n1-23", "n2-0"] == notes(diary.as_of(valid=day("2026-02-02")))


@pytest.mark.parametrize(
    "given", ["today", "2026-02-03", "2026-02", "2026", "this week", "now", "since 2025"]
)
def test_what_contains_now_is_now_and_hides_nothing(diary, clock, given):
    clock.move(minutes=30)
    diary.add_node("note", {"says": "just now"}, id="new")

    for view in (diary.as_of(valid=given), diary.as_of(tx=given), diary.knowledge_at(given)):
        assert "new" in notes(view)
        assert view.at.valid <= clock.now and view.at.tx <= clock.now


def test_a_coming_day_is_planned_as_valid_and_refused_as_tx(diary):
    diary.add_node("note", {"says": "later"}, id="later", valid_from="2026-03-01T20:00:00Z")

    assert "later" in notes(diary.as_of(valid="2026-03-01"))
    assert "later" not in notes(diary.as_of(valid="2026-03-01T19:59:00Z"))
    for ahead in ("2026-03-01", "tomorrow", "next month", "in 2 days"):
        with pytest.raises(InvalidError, match="has not come yet"):
            diary.as_of(tx=ahead)


def test_a_span_as_since_is_its_start_and_as_until_its_end(diary):
    whole = {"e2-0", "e2-12", "e2-23"}
    for since, until in (("2026-02-02", "2026-02-02"), (date(2026, 2, 2), date(2026, 2, 2)), ("yesterday", "yesterday")):  # fmt: skip
        assert whole == {event.id for event in diary.events(since=since, until=until)}
        assert whole == {event.id for event in timeline.messages(diary, since=since, until=until, limit=None)}
        found = recall.recall(diary, "visit", since=since, until=until, kinds="TEXT")
        assert whole == {hit.node.id for hit in found}
    assert 9 == len(diary.events(since="2026-02", until="2026-02"))
    assert {"e1-0", "e1-12", "e1-23"} == {event.id for event in diary.events(until="2026-02-01")}
    assert {"e1-0"} == {event.id for event in diary.events(until=day("2026-02-01") + timedelta(hours=12))}


def test_changes_until_a_day_are_all_of_that_day(diary):
    subjects = {change.subject for change in diary.changes(since="2026-02-02", until="2026-02-02")}

    assert {"n2-12", "e2-12", "n2-23", "e2-23"} == subjects - {"n2-0", "e2-0"}
    assert "n3-0" not in subjects
    assert diary.changes() == diary.changes(until="today") == diary.changes(until="2026-02-03")


def test_times_in_cypher_are_coordinates(diary):
    text = "FOR VALID_TIME AS OF '{}' MATCH (n:Node) RETURN count(*) AS many"

    assert [6] == [row["many"] for row in diary.query(text.format("2026-02-02"))]
    assert [4] == [row["many"] for row in diary.query(text.format("2026-02-02T00:00:00Z"))]


def test_periods_as_pairs_take_starts(diary):
    instants = diary.over(valid=("2026-02-01", "2026-02-03", "1 day")).at

    assert [day("2026-02-01"), day("2026-02-02")] == instants
    held = {row["id"] for row in diary.history_table("note", valid=("2026-02-01", "2026-02-02")).rows()}
    assert {"n1-0", "n1-12", "n1-23"} == held


def test_a_counterfactual_view_reads_times_alike(diary):
    without = diary.without(id="n1-0")

    assert ["n1-12", "n1-23"] == notes(without.as_of(valid="2026-02-01"))
    assert day("2026-02-01") + END == without.as_of(valid="the day before yesterday").at.valid
    assert ["n1-12", "n1-23"] == notes(without.as_of(tx="2026-02-01"))
