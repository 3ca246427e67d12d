"""What a report is asked for: what is broken now, by whom it was told, several types; and what is no part of the log unless it is asked for."""

from __future__ import annotations

import pytest

from graphstore import InvalidError, events
from tests.conftest import after

pytestmark = pytest.mark.served


@pytest.fixture
def log(store, clock):
    clock.move(days=1)
    store.record_event(
        "error", "old, and again", id="again", origin="system", occurred_at=after(0), fingerprint="x"
    )
    store.record_event("error", "broken", id="broken", origin="system", occurred_at=after(10))
    store.record_event("error", "mended", id="mended", origin="system", occurred_at=after(20))
    store.record_event(
        "fix", "mended it", id="fix", agent="claude", related_to="mended", occurred_at=after(30)
    )
    store.record_event("deploy", "v2", id="v2", agent="codex", occurred_at=after(40))
    store.record_event("error", "old, and again", origin="system", occurred_at=after(50), fingerprint="x")
    store.record_event("TEXT", "hello", id="hello", thread="a", occurred_at=after(60))
    store.record_event("tool", "read", id="span", trace_id="t", span_id="s", occurred_at=after(70))
    store.record_event("note", "of one's own", id="note", occurred_at=after(5))
    return store


def told(store, **filters) -> list[str]:
    return [each["id"] for each in events.history_report(store, **filters)["events"]]


def test_newest_is_by_the_last_occurrence_and_messages_and_spans_are_no_part_of_it(log):
    assert ["again", "v2", "fix", "mended", "broken", "note"] == told(log)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"status": "active"}, ["again", "broken", "note"]),
        ({"status": "active", "type": ["error", "regression"]}, ["again", "broken"]),
        ({"status": ["resolved", "superseded"]}, ["mended"]),
        ({"origin": "system"}, ["again", "mended", "broken"]),
        ({"agent": "claude"}, ["fix"]),
        ({"agent": ["claude", "codex"]}, ["v2", "fix"]),
        ({"type": ("fix", "deploy")}, ["v2", "fix"]),
        ({"type": "TEXT"}, ["hello"]),
        ({"every": True, "limit": 2}, ["span", "hello"]),
    ],
)
def test_what_is_asked_for_is_told(log, filters, found):
    assert found == told(log, **filters)


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"status": "open"}, "Valid: active, resolved, superseded"),
        ({"origin": "me"}, "origin"),
        ({"type": 7}, "type 7 is no text"),
    ],
)
def test_what_is_none_is_refused(log, filters, words):
    with pytest.raises(InvalidError, match=words):
        told(log, **filters)


def test_only_what_an_agent_recorded_names_one(store):
    with pytest.raises(InvalidError, match=r"agent 'bot' with origin 'system'\. .* give origin 'agent'"):
        store.record_event("error", "it broke", origin="system", agent="bot")
    assert [] == list(store.events())
