"""Occurrences of an event: each keeps what was said of it, the event shows the metadata of the latest, and all of it is read at a coordinate."""

from __future__ import annotations

import pytest

import graphstore
from graphstore import InvalidError, NotFoundError, events
from tests.conftest import after, day

pytestmark = pytest.mark.served


def slower(store, value: int | None, at, *, baseline: int = 1200, **more):
    """A regression to a value, as the recorder writes it."""
    metadata = None if value is None else {"metric": "lcp_ms", "baseline": baseline, "value": value}
    told = f"LCP regressed: {baseline}ms → {value}ms"
    return store.record_event(
        "regression", told, fingerprint="lcp", source="lcp_ms", occurred_at=at, metadata=metadata, **more
    ).event


def values(store, id: str) -> list[int | None]:
    return [each["metadata"].get("value") for each in events.occurrences(store, id)]


def test_each_occurrence_keeps_its_numbers_and_the_event_shows_the_latest(store, clock):
    id = slower(store, 2400, "2026-01-02").id
    slower(store, 3000, "2026-01-04", baseline=1300)
    slower(store, 2000, "2026-01-03")

    assert [2400, 2000, 3000] == values(store, id)
    assert {"metric": "lcp_ms", "baseline": 1300, "value": 3000} == store.event(id).metadata
    assert {
        "occurred_at": "2026-01-04T00:00:00Z",
        "description": "LCP regressed: 1300ms → 3000ms",
        "source": "lcp_ms",
        "metadata": {"metric": "lcp_ms", "baseline": 1300, "value": 3000},
    } == events.occurrences(store, id)[-1]


def test_at_an_earlier_coordinate_it_is_the_latest_by_then(store, clock):
    id = slower(store, 2400, "2026-01-02").id
    known = store.as_of().at.tx
    clock.move(days=1)
    slower(store, 3000, "2026-01-04")

    then = store.as_of(valid="2026-01-03")
    assert (2400, [2400]) == (then.event(id).metadata["value"], values(then, id))
    assert (2400, [2400]) == (
        store.as_of(tx=known).event(id).metadata["value"],
        values(store.as_of(tx=known), id),
    )


def test_an_occurrence_that_says_no_metadata_has_none_and_hides_none(store):
    id = slower(store, 2400, "2026-01-02").id
    slower(store, 3000, "2026-01-03")
    slower(store, None, "2026-01-04")

    assert [2400, 3000, None] == values(store, id)
    assert 3000 == store.event(id).metadata["value"]


def test_earlier_occurrences_in_the_transaction_of_the_first_keep_theirs(store):
    with store.transaction(reason="a log"):
        id = slower(store, 10, "2026-01-10").id
        for number in (5, 7, 3):
            slower(store, number, f"2026-01-{number:02}")

    assert [3, 5, 7, 10] == values(store, id)
    assert [3, 5, 7, 10] == [
        store.as_of(valid=day(f"2026-01-{n:02}")).event(id).metadata["value"] for n in (3, 5, 7, 10)
    ]


def test_cypher_shows_what_the_view_shows(store):
    id = slower(store, 2400, "2026-01-02").id
    slower(store, 3000, "2026-01-04")

    (found,) = store.as_of(valid="2026-02-01").query(
        "MATCH (e:Event) RETURN e.id AS id, e.metadata AS metadata"
    )
    assert id == found["id"] and '"value":3000' in found["metadata"]


def test_the_report_tells_the_latest_with_the_first_beside_it(store):
    slower(store, 2400, "2026-01-02")
    slower(store, 3000, "2026-01-04")

    (event,) = events.history_report(store, since="2026-01-01")["events"]
    assert ("LCP regressed: 1200ms → 3000ms", 3000, 2) == (
        event["description"],
        event["metadata"]["value"],
        event["count"],
    )
    assert ("LCP regressed: 1200ms → 2400ms", 2400) == (
        event["first"]["description"],
        event["first"]["metadata"]["value"],
    )


def test_a_merge_brings_the_numbers_of_a_branch(store):
    id = slower(store, 2400, "2026-01-02").id
    trial = store.branch("trial")
    slower(trial, 3000, "2026-01-04")
    with trial.transaction():
        other = trial.record_event("error", "odd", occurred_at="2026-01-09", metadata={"n": 1}).event.id
        trial.record_event("error", "odd", occurred_at="2026-01-08", metadata={"n": 2})
    store.merge("trial")

    assert [2400, 3000] == values(store, id)
    assert [2, 1] == [each["metadata"]["n"] for each in events.occurrences(store, other)]


def test_what_was_undone_is_not_told(store):
    id = slower(store, 2400, "2026-01-02").id
    slower(store, 3000, "2026-01-04")
    store.undo(store.changes()[-1].tx, reason="not so")

    assert ([2400], 2400) == (values(store, id), store.event(id).metadata["value"])


def test_only_events_have_occurrences(store):
    node = store.add_node("fact", {"text": "x"})

    with pytest.raises(InvalidError, match="is a node"):
        events.occurrences(store, node.id)
    with pytest.raises(NotFoundError):
        events.occurrences(store, "evt_nowhere")


def test_they_are_there_when_the_store_is_opened_again_and_go_when_it_is_erased(tmp_path):
    path = tmp_path / "memory.gs"
    with graphstore.open(path) as store:
        id = slower(store, 2400, after(0)).id
        slower(store, 987654321, after(1))
    with graphstore.open(path) as store:
        assert [2400, 987654321] == values(store, id)
        store.erase(id, reason="asked for")
        assert [] == events.occurrences(store, id)

    assert not [each for each in path.rglob("*") if each.is_file() and b"987654321" in each.read_bytes()]


def test_a_merge_keeps_every_occurrence_of_an_event_that_began_earlier_than_it_was_recorded(store):
    branch = store.branch("plan")
    days = ["2026-01-05", "2026-01-03", "2026-01-07"]
    ids = {branch.record_event("error", "it failed", occurred_at=at).event.id for at in days}

    store.merge("plan")

    assert sorted(days) == [str(one["occurred_at"])[:10] for one in events.occurrences(store, *ids)]
