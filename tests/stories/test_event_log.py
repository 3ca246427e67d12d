"""The event log's own scenarios, one by one and in its words, and what else a log of that kind must bear."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta

import pytest

import graphstore
from graphstore import InvalidError, events
from tests.conftest import BOOM, after, day

pytestmark = pytest.mark.served


def reported(store, **filters):
    """The events of a report, by id."""
    return {event["id"]: event for event in events.history_report(store, **filters)["events"]}


def test_01_error_event_recorded_when_new_fingerprint_first_seen(store, recorder):
    seen = recorder.observe_error(BOOM, source="user-profile.js:42", at=after(0))

    assert (True, "error", BOOM, "user-profile.js:42", after(0)) == (
        seen.is_new,
        seen.event.type,
        seen.event.description,
        seen.event.source,
        seen.event.occurred_at,
    )


def test_02_repeat_error_occurrence_count_incremented_no_new_event(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    seen = recorder.observe_error(BOOM, at=after(5))

    assert (False, 2, 1) == (seen.is_new, seen.event.count, len(store.events()))


def test_03_regression_event_recorded_when_threshold_exceeded(store, recorder):
    assert None is recorder.observe_metric("lcp_ms", 1700, baseline=1200, page="/dashboard", at=after(0))
    seen = recorder.observe_metric("lcp_ms", 2400, baseline=1200, page="/dashboard", at=after(5))

    assert "LCP regressed: 1200ms → 2400ms on /dashboard" == seen.event.description
    assert (1200, 2400) == (seen.event.metadata["baseline"], seen.event.metadata["value"])


def test_04_resolution_event_when_error_absent_for_five_minutes(store, recorder):
    broken = recorder.observe_error(BOOM, at=after(0)).event.id

    (seen,) = recorder.tick(after(300))

    assert "resolution" == seen.event.type
    told = reported(store)[broken]
    assert ("resolved", [(seen.event.id, "possibly_resolved_by", "inferred")]) == (
        told["status"],
        [(link["target"], link["relationship"], link["confidence"]) for link in told["links"]],
    )


def test_05_baseline_shift_event_on_baseline_update(store, recorder):
    recorder.observe_metric("lcp_ms", 1200, baseline=1200, at=after(0))
    seen = recorder.observe_metric("lcp_ms", 1200, baseline=1500, at=after(5))

    assert ("baseline_shift", 1200, 1500) == (
        seen.event.type,
        seen.event.metadata["old"],
        seen.event.metadata["new"],
    )


def test_06_deploy_event_on_ci_webhook_or_resource_change(store, recorder):
    told = recorder.observe_deploy({"sha": "1a2b3c4d5e", "environment": "production"}, at=after(0))
    recorder.observe_resources(["/app.1.js"], at=after(1))
    implied = recorder.observe_resources(["/app.2.js"], at=after(2))

    assert ("deploy", "deploy") == (told.event.type, implied.event.type)
    assert (None, True) == (told.event.metadata.get("implied"), implied.event.metadata.get("implied"))


def test_07_ai_recorded_fix_event_with_explicit_link(store, recorder):
    broken = recorder.observe_error(BOOM, at=after(0)).event.id
    fix = store.record_event(
        "fix", "Fixed null user in UserProfile", related_to=broken, agent="claude"
    ).event.id

    assert [{"target": fix, "relationship": "resolved_by", "confidence": "explicit"}] == reported(store)[
        broken
    ]["links"]


def test_08_automatic_correlation_regression_within_thirty_seconds_of_resource_change(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    deploy = recorder.observe_resources(["/app.2.js"], at=after(10)).event.id
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(40)).event.id

    (link,) = reported(store)[slow]["links"]
    assert (deploy, "possibly_caused_by", "inferred") == (
        link["target"],
        link["relationship"],
        link["confidence"],
    )


def test_09_automatic_correlation_error_disappears_after_reload(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    broken = recorder.observe_error(BOOM, at=after(5)).event.id
    deploy = recorder.observe_resources(["/app.2.js"], at=after(10)).event.id

    (seen,) = recorder.tick(after(70))

    assert "resolution" == seen.event.type
    assert {(seen.event.id, "possibly_resolved_by"), (deploy, "possibly_resolved_by")} == {
        (link["target"], link["relationship"]) for link in reported(store)[broken]["links"]
    }


def test_10_query_with_type_filter_returns_only_matching_events(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    recorder.observe_deploy({}, at=after(1))

    assert {"error"} == {event["type"] for event in reported(store, type="error").values()}


def test_11_query_with_since_filter_returns_only_recent_events(store, clock):
    store.record_event("fix", "old", id="old", occurred_at="2026-01-20")
    store.record_event("fix", "new", id="new", occurred_at="2026-01-31T23:30:00Z")

    assert ({"new"}, {"new"}, {"new", "old"}) == tuple(
        set(reported(store, since=since)) for since in ("1h", "7d", "30d")
    )


def test_12_query_with_related_to_returns_linked_events(store):
    store.record_event("error", "boom", id="boom")
    store.record_event("error", "bang", id="bang")
    store.record_event("fix", "mended", id="fix", related_to="boom")

    assert ({"boom", "fix"}, {"fix", "boom"}) == (
        set(reported(store, related_to="boom")),
        set(reported(store, related_to="fix")),
    )


def test_13_pattern_detection_recurring_error_identified(store):
    for broken in ("2026-01-10T02:00:00Z", "2026-01-17T09:00:00Z", "2026-01-24T16:00:00Z"):
        seen = store.record_event("error", BOOM, occurred_at=broken)
        mended = datetime.fromisoformat(broken) + timedelta(hours=24)
        store.record_event("fix", "mended", occurred_at=mended, related_to=seen.event.id)

    assert [
        "Recurring: TypeError in UserProfile seen 3 times in 30 days, resolved each time within 1 day"
    ] == [each["description"] for each in events.history_report(store)["patterns"]]


def test_14_ninety_day_eviction_removes_old_events_on_startup(tmp_path, clock):
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.record_event("error", "boom", id="evt_old", occurred_at="2025-11-02")
        store.record_event("error", "bang", id="evt_new", occurred_at="2025-11-05")

    with graphstore.open(tmp_path / "memory.gs", clock=clock, retention_days=90) as store:
        assert ["evt_new"] == list(reported(store, since="365d"))
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        assert ["evt_new"] == [event.id for event in store.events()]


def test_15_corrupted_jsonl_line_skipped_gracefully(store, tmp_path):
    gasoline = pytest.importorskip("graphstore.imports.gasoline")  # waits for the import of such logs
    log = tmp_path / "events.jsonl"
    good = {"type": "error", "timestamp": "2026-01-31T10:00:00Z", "description": "boom", "origin": "system"}
    log.write_text(
        "\n".join(
            [json.dumps({"id": "evt_1", **good}), '{"id": "evt_2", "ty', json.dumps({"id": "evt_3", **good})]
        )
        + "\n"
    )

    imported = gasoline.import_gasoline(store, log)

    assert {"evt_1", "evt_3"} == set(reported(store))
    assert [2] == [damage.line for damage in imported.damaged]


def test_16_empty_history_empty_response_no_error(store):
    assert {
        "events": [],
        "total_events": 0,
        "time_range": "7d",
        "patterns": [],
        "summary": "No history recorded yet.",
    } == events.history_report(store)


def test_17_event_deduplication_by_fingerprint(store, recorder):
    for number in range(100):
        recorder.observe_error(f"GET https://api.test/users/{10_000 + number} failed: 404", at=after(number))
    recorder.observe_error("GET https://api.test/users/1 failed: 500", at=after(100))

    assert [(1, "500"), (100, "404")] == [(event.count, event.description[-3:]) for event in store.events()]


def test_18_orphaned_links_marked_in_query_response(store, clock):
    store.record_event("error", "boom", id="evt_old", occurred_at="2025-10-01")
    store.record_event("fix", "mended", id="evt_fix", occurred_at="2026-01-31", related_to="evt_old")
    store.evict(before="2025-11-03")

    assert [
        {"target": "evt_old", "relationship": "resolves", "confidence": "explicit", "target_evicted": True}
    ] == reported(store)["evt_fix"]["links"]


def test_19_concurrent_read_and_write_no_corruption(disk_store, clock):
    failures = []
    over = threading.Event()

    def read():
        try:
            while not over.is_set():
                report = events.history_report(disk_store)
                assert report["total_events"] == len(report["events"])
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for number in range(60):
        clock.move(seconds=1)
        disk_store.record_event("error", f"boom {number % 20}", source=str(number % 20))
    over.set()
    for thread in readers:
        thread.join()

    assert [] == failures
    assert (20, 60) == (len(disk_store.events()), sum(event.count for event in disk_store.events()))
    assert disk_store.verify().ok


def test_20_record_event_with_valid_event_stored_with_origin_agent(store):
    seen = store.record_event("fix", "Fixed null user in UserProfile")

    assert ("agent", "agent") == (seen.event.origin, reported(store)[seen.event.id]["origin"])


@pytest.mark.parametrize(
    "invalid",
    [("fix", ""), ("", "mended"), ("fix", None), (None, "mended"), ("fix", "mended", {"origin": "robot"})],
)
def test_21_record_event_with_invalid_event_is_an_error(store, invalid):
    type, description, more = (*invalid, {})[:3]
    with pytest.raises(InvalidError):
        store.record_event(type, description, **more)

    assert [] == store.events()


def test_22_system_events_have_origin_system_agent_events_have_origin_agent(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    recorder.observe_deploy({}, at=after(1))
    recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(2))
    recorder.tick(after(400))
    store.record_event("fix", "mended")

    assert {"system": {"error", "deploy", "regression", "resolution"}, "agent": {"fix"}} == {
        origin: {event["type"] for event in reported(store).values() if event["origin"] == origin}
        for origin in ("system", "agent")
    }


def test_23_agent_name_recorded_for_agent_origin_events(store):
    seen = store.record_event("fix", "mended", agent="claude-code")

    assert ("claude-code", "claude-code") == (seen.event.agent, reported(store)[seen.event.id]["agent"])


# ---------------------------------------------------------------- what else it must bear


def test_events_are_ordered_by_when_they_happened_whatever_the_clock_did(store, clock):
    for hour, name in ((3, "c"), (1, "a"), (2, "b")):
        clock.set(day("2026-02-02"))
        store.record_event("fix", name, id=name, occurred_at=f"2026-02-01T0{hour}:00:00Z")
        clock.set(day("2026-02-01"))

    assert ["c", "b", "a"] == list(reported(store))


def test_an_unknown_related_to_is_a_warning_and_the_event_is_kept(store):
    seen = store.record_event("fix", "mended", related_to="evt_nowhere")

    assert (1, True) == (len(seen.warnings), "evt_nowhere" in seen.warnings[0])
    assert [] == reported(store)[seen.event.id]["links"]


def test_a_cycle_of_causes_and_relations_ends(store):
    for name in "abc":
        store.record_event("error", f"boom {name}", id=f"evt_{name}", occurred_at="2026-01-31")
    for source, target in ("ab", "bc", "ca"):
        store.link(f"evt_{source}", "caused_by", f"evt_{target}")
        store.link(f"evt_{source}", "related_to", f"evt_{target}")

    assert (["evt_b", "evt_c"], False) == (
        [event.id for event in store.causes("evt_a").nodes],
        store.causes("evt_a").truncated,
    )
    assert {"evt_a", "evt_b", "evt_c"} == set(reported(store, related_to="evt_a"))


def test_a_description_of_ten_kilobytes_is_kept_whole(store, recorder):
    long = "boom " * 2048

    recorder.observe_error(long, at=after(0))

    assert [long] == [event["description"] for event in reported(store).values()]


def test_a_late_report_does_not_change_what_was_reported_before(store, recorder, clock):
    broken = recorder.observe_error(BOOM, at=after(0)).event.id
    before = store.as_of()
    (seen,) = recorder.tick(after(300))

    assert ("active", "resolved") == (before.event(broken).status, store.event(broken).status)
    assert "resolved" == store.as_of(valid=after(1)).event(broken).status
    assert seen.event.occurred_at == after(0)
