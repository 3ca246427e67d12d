"""Telling apart by hand what one fingerprint took for one event."""

from __future__ import annotations

import pytest

from graphstore import InvalidError, NotFoundError, events
from tests.conftest import day

pytestmark = pytest.mark.served


def seen(store, text: str, at: str, **more):
    return store.record_event("error", text, occurred_at=at, source="app.js", origin="system", **more).event


def story(store) -> str:
    """Two bugs under one fingerprint: of widget 7 twice, of widget 9 once, which a fix after the first two resolved."""
    id = seen(store, "Widget 7 broke", "2026-01-01", metadata={"build": 1}).id
    seen(store, "Widget 7 broke", "2026-01-03", metadata={"build": 2})
    store.record_event("fix", "one call more", id="fix", occurred_at="2026-01-04", related_to=id)
    assert id == seen(store, "Widget 9 broke", "2026-01-06").id
    return id


def test_each_text_is_an_event_with_its_own_occurrences(store):
    id = story(store)

    seven, nine = events.tell_apart(store, id, reason="another cause")

    assert ("Widget 7 broke", 2, day("2026-01-01"), day("2026-01-03")) == (
        seven.description,
        seven.count,
        seven.first_seen,
        seven.last_seen,
    )
    assert ("Widget 9 broke", 1, day("2026-01-06")) == (nine.description, nine.count, nine.first_seen)
    assert [{"build": 1}, {"build": 2}] == [each["metadata"] for each in events.occurrences(store, seven.id)]
    assert "retracted" == store.inspect(id).node.standing


def test_links_go_to_what_had_happened_when_they_began(store):
    seven, nine = events.tell_apart(store, story(store), reason="another cause")

    assert ("resolved", "active") == (seven.status, nine.status)
    report = events.history_report(store, status="active", since="2020-01-01..2030-01-01")
    assert [nine.id] == [each["id"] for each in report["events"]]


def test_later_reports_are_held_to_their_text(store):
    seven, nine = events.tell_apart(store, story(store), reason="another cause")

    assert seven.id == seen(store, "Widget 7 broke", "2026-01-08").id
    assert nine.id == seen(store, "Widget 9 broke", "2026-01-08").id
    again = store.record_event(
        "error", "Widget 11 broke", occurred_at="2026-01-08", source="app.js", origin="system"
    )
    assert again.is_new and again.event == store.event(again.event.id)
    report = {"type": "error", "description": "Widget 9 broke", "source": "app.js", "origin": "system"}
    store.bulk_load(events=[{**report, "occurred_at": "2026-01-09"}])
    assert 3 == store.event(nine.id).count


def test_what_was_believed_before_stays_and_undo_takes_it_back(store, clock):
    id = story(store)
    before = store.as_of()
    clock.move(minutes=1)
    seven, _ = events.tell_apart(store, id, reason="another cause")

    assert 3 == before.event(id).count
    change = next(change for change in store.changes() if change.verb == "tell_apart")
    assert id == change.subject
    clock.move(minutes=1)
    store.undo(change, reason="it was one after all")
    assert ("stands", 3) == (store.event(id).standing, store.event(id).count)
    assert "retracted" == store.inspect(seven.id).node.standing
    assert id == seen(store, "Widget 9 broke", "2026-01-10").id


def test_what_cannot_be_told_apart_is_refused_and_nothing_written(store):
    id = seen(store, "Widget 7 broke", "2026-01-01").id
    seen(store, "Widget 7 broke", "2026-01-02")
    deploy = store.record_event("deploy", "v1").event.id
    node = store.add_node("fact", {}).id
    known = store.changes()

    with pytest.raises(InvalidError, match=r"all 2 occurrences .* say the same"):
        events.tell_apart(store, id, reason="why")
    with pytest.raises(InvalidError, match="no fingerprint"):
        events.tell_apart(store, deploy, reason="why")
    with pytest.raises(InvalidError, match="is a node"):
        events.tell_apart(store, node, reason="why")
    with pytest.raises(NotFoundError):
        events.tell_apart(store, "unknown", reason="why")
    with pytest.raises(InvalidError, match="reason"):
        events.tell_apart(store, id, reason="")
    assert known == store.changes()


def test_one_that_was_told_apart_is_not_told_apart_again(store):
    id = story(store)
    events.tell_apart(store, id, reason="another cause")

    with pytest.raises(NotFoundError, match="retracted"):
        events.tell_apart(store, id, reason="again")
