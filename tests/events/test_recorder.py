"""The recorder: what it makes of raw observations, when it links them, and that a new one takes up where the last left off."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta

import pytest

import graphstore
from graphstore import InvalidError, events
from graphstore.events.deploys import changed_resources, deploy_description, is_code
from tests.conftest import BOOM, START, after

pytestmark = pytest.mark.served


def links_of(store, kind: str) -> list[tuple[str, str, str]]:
    """Source, target and confidence of every link of a kind."""
    found = {link.id: link for event in store.events() for link in store.links_from(event.id, (kind,))}
    return [(link.source, link.target, link.confidence) for link in found.values()]


def types(store) -> list[str]:
    return sorted(event.type for event in store.events())


# ---------------------------------------------------------------- errors and resolutions


def test_an_error_is_one_event_however_often_it_is_seen(store, recorder):
    first = recorder.observe_error(BOOM, source="user-profile.js:42", at=after(0), metadata={"tab": 1})
    again = recorder.observe_error(BOOM, source="user-profile.js:42", at=after(10))

    assert (True, False, first.event.id, 2) == (first.is_new, again.is_new, again.event.id, again.event.count)
    assert ("system", None, {"tab": 1}) == (again.event.origin, again.event.agent, again.event.metadata)


def test_a_thousand_repeats_stay_one_event(store, recorder):
    for number in range(1000):
        recorder.observe_error(f"{BOOM} at 0x{number:08x}", at=after(number))

    (event,) = store.events()
    assert (1000, after(0), after(999)) == (event.count, event.first_seen, event.last_seen)


@pytest.mark.parametrize(("quiet", "resolved"), [(299.9, 0), (300, 1)])
def test_five_quiet_minutes_of_browsing_resolve_an_error(store, recorder, quiet, resolved):
    recorder.observe_error(BOOM, at=after(0))

    assert resolved == len(recorder.tick(after(quiet)))


def test_a_resolution_happened_when_the_error_was_seen_last_and_is_inferred(store, recorder):
    broken = recorder.observe_error(BOOM, at=after(0)).event.id
    recorder.observe_error(BOOM, at=after(60))

    (told,) = recorder.tick(after(360))

    assert ("resolution", after(60), "system") == (told.event.type, told.event.occurred_at, told.event.origin)
    (link,) = store.links_from(broken)
    assert ("resolved_by", told.event.id, "inferred", "store", after(60)) == (
        link.kind,
        link.target,
        link.confidence,
        link.created_by,
        link.valid_from,
    )
    assert "not seen for 300 s of active browsing" == link.reason
    assert "resolved" == store.event(broken).status


def test_time_without_browsing_resolves_nothing(store, recorder):
    recorder.observe_error(BOOM, at=after(0))

    assert [] == recorder.tick(after(200))
    assert [] == recorder.tick(after(9000), active=False)
    assert [] == recorder.tick(after(9099))
    assert 1 == len(recorder.tick(after(9100)))


def test_a_clock_set_back_adds_no_browsing(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    recorder.tick(after(200))
    recorder.tick(after(0))
    recorder.tick(after(200))

    assert "active" == store.events()[0].status


def test_an_error_that_comes_back_and_stops_again_is_resolved_again(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    (first,) = recorder.tick(after(300))
    assert [] == recorder.tick(after(700))
    back = recorder.observe_error(BOOM, at=after(1000))
    assert "active" == back.event.status

    (second,) = recorder.tick(after(1300))

    assert (first.event.id, 2, after(1000)) == (second.event.id, second.event.count, second.event.last_seen)
    assert ["error", "resolution"] == types(store)
    assert "resolved" == store.event(back.event.id).status


def test_an_error_resolved_by_a_fix_is_not_resolved_once_more(store, recorder):
    broken = recorder.observe_error(BOOM, at=after(0))
    store.record_event("fix", "mended", related_to=broken.event.id, occurred_at=after(10))

    assert [] == recorder.tick(after(400))


def test_what_an_agent_reported_is_not_resolved_by_silence(store, recorder):
    store.record_event("error", "it looks broken", occurred_at=after(0))

    recorder.tick(after(1))
    assert [] == recorder.tick(after(4000))


# ---------------------------------------------------------------- resources and deploys


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://x.test/app.9f3a.js", True),
        ("/app.mjs?v=2", True),
        ("main.CSS#top", True),
        ("/logo.png?x=.js", False),
        ("/api/users", False),
        ("https://[", False),
    ],
)
def test_scripts_and_stylesheets_are_known_by_their_path(url, code):
    assert code == is_code(url)


def test_the_first_list_of_resources_is_no_deploy_and_a_changed_one_is(store, recorder):
    assert None is recorder.observe_resources(["/app.1.js", "/logo.png"], at=after(0))
    assert None is recorder.observe_resources(["/app.1.js#x", "/other.png"], at=after(10))

    told = recorder.observe_resources(["/app.2.js", "/main.css"], at=after(20))

    assert ("deploy", after(20), "Resources changed: 2 added (app.2.js, main.css), 1 removed (app.1.js)") == (
        told.event.type,
        told.event.occurred_at,
        told.event.description,
    )
    assert {
        "implied": True,
        "added": ["/app.2.js", "/main.css"],
        "removed": ["/app.1.js"],
        "resources": ["/app.2.js", "/main.css"],
    } == told.event.metadata


def test_a_query_string_makes_another_resource(recorder):
    recorder.observe_resources(["/app.js?v=1"], at=after(0))

    assert recorder.observe_resources(["/app.js?v=2"], at=after(1)).is_new


def test_many_changed_resources_are_told_shortly():
    assert "Resources changed: 4 added (a.js, b.js, c.js, …)" == changed_resources(
        ["/a.js", "/b.js", "/c.js", "/d.js"], []
    )


@pytest.mark.parametrize("urls", ["app.js", 7, [7], None])
def test_resources_are_a_list_of_urls(recorder, urls):
    with pytest.raises(InvalidError, match="url"):
        recorder.observe_resources(urls)


@pytest.mark.parametrize(
    ("payload", "description"),
    [
        (
            {
                "sha": "1a2b3c4d5e6f7a8b9c0d",
                "ref": "refs/heads/main",
                "environment": "production",
                "actor": "ana",
            },
            "Deployed 1a2b3c4 (main) to production by ana",
        ),
        ({"commit": {"id": "v1.2.3"}, "branch": "main", "status": "success"}, "Deployed v1.2.3 (main)"),
        ({"sha": "abc", "status": "failure"}, "Deploy failure: abc"),
        ({"status": "failure"}, "Deploy failure"),
        ({}, "Deployed"),
    ],
)
def test_a_deploy_is_described_by_what_its_payload_says(payload, description):
    assert description == deploy_description(payload)


def test_a_webhook_is_a_deploy_and_its_payload_is_kept(store, recorder):
    payload = {"id": 7, "sha": "abc", "url": "https://ci.test/7", "timestamp": "2026-02-01T00:00:05Z"}

    told = recorder.observe_deploy(payload)

    assert ("deploy", after(5), payload) == (told.event.type, told.event.occurred_at, told.event.metadata)


def test_a_webhook_delivered_twice_is_one_event(store, recorder):
    first = recorder.observe_deploy({"id": "d7", "sha": "abc"}, at=after(0))
    again = recorder.observe_deploy({"id": "d7", "sha": "abc", "status": "success"}, at=after(9))
    other = recorder.observe_deploy({"sha": "abc"}, at=after(9))

    assert (True, False, True) == (first.is_new, again.is_new, other.is_new)
    assert 2 == len(store.events())


def test_seconds_since_1970_are_a_timestamp_too(recorder):
    told = recorder.observe_deploy({"sha": "abc", "timestamp": START.timestamp()})

    assert START == told.event.occurred_at


@pytest.mark.parametrize(
    "payload", [None, "deployed", ["x"], {"timestamp": "noon"}, {"timestamp": 1e300}, {"x": {1}}]
)
def test_a_payload_that_is_none_is_refused(store, recorder, payload):
    with pytest.raises(InvalidError):
        recorder.observe_deploy(payload)
    assert [] == store.events()


# ---------------------------------------------------------------- metrics


def test_a_regression_is_told_once_per_crossing(store, recorder):
    told = [
        recorder.observe_metric("lcp_ms", value, baseline=1200, page="/dashboard", at=after(number))
        for number, value in enumerate((1200, 2400, 2500, 1300, 2600))
    ]

    assert [None, "regression", None, "resolution", "regression"] == [
        each and each.event.type for each in told
    ]
    assert (told[1].event.id, 2) == (told[4].event.id, told[4].event.count)
    assert ("LCP regressed: 1200ms → 2400ms on /dashboard", "lcp_ms") == (
        told[1].event.description,
        told[1].event.source,
    )
    assert {"metric": "lcp_ms", "page": "/dashboard", "unit": "ms", "baseline": 1200, "value": 2400, "limit": 1800, "given": 1200} == told[1].event.metadata  # fmt: skip


def test_the_way_back_resolves_the_regression_as_far_as_can_be_seen(store, recorder):
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(0)).event.id
    assert "active" == store.event(slow).status

    back = recorder.observe_metric("lcp_ms", 1300, at=after(10)).event

    assert [(slow, back.id, "inferred")] == links_of(store, "resolved_by")
    assert ("resolved", after(10)) == (store.event(slow).status, back.occurred_at)


def test_pages_have_metrics_of_their_own(store, recorder):
    for page in ("/a", "/b"):
        recorder.observe_metric("lcp_ms", 2400, baseline=1200, page=page, at=after(0))

    assert 2 == len(store.events(type="regression"))


def test_a_baseline_is_learned_from_the_first_values(store, recorder):
    for number, value in enumerate((1000, 1300, 900, 1200, 1100)):
        assert None is recorder.observe_metric("lcp_ms", value, at=after(number))

    told = recorder.observe_metric("lcp_ms", 2000, at=after(9))

    assert 1100 == told.event.metadata["baseline"]
    assert ["regression"] == types(store)


def test_thresholds_may_be_given_for_one_value(recorder):
    assert None is recorder.observe_metric("cls", 0.14, baseline=0.1, at=after(0))
    assert None is recorder.observe_metric("cls", 0.14, ratio=0.2, margin=0.1, at=after(1))
    assert "regression" == recorder.observe_metric("cls", 0.14, ratio=0.2, at=after(2)).event.type


def test_a_new_baseline_is_a_shift_that_supersedes_the_one_before(store, recorder):
    recorder.observe_metric("lcp_ms", 1000, baseline=1000, at=after(0))
    first = recorder.observe_metric("lcp_ms", 1000, baseline=1100, at=after(1)).event
    second = recorder.observe_metric("lcp_ms", 1000, baseline=1200, at=after(2)).event

    assert ("LCP baseline shifted: 1100ms → 1200ms", 1100, 1200) == (
        second.description,
        second.metadata["old"],
        second.metadata["new"],
    )
    assert [(second.id, first.id, "explicit")] == links_of(store, "supersedes")
    assert ("superseded", "active") == (store.event(first.id).status, store.event(second.id).status)


def test_a_new_steady_state_shifts_the_baseline_and_arms_the_metric(store, recorder):
    told = [
        recorder.observe_metric("lcp_ms", value, baseline=1000, at=after(number))
        for number, value in enumerate([2000] * 10 + [3500])
    ]

    assert ["regression", *[None] * 8, "baseline_shift", "regression"] == [
        each and each.event.type for each in told
    ]
    assert {"old": 1000, "new": 2000, "learned": True} == {
        name: told[9].event.metadata[name] for name in ("old", "new", "learned")
    }


@pytest.mark.parametrize("value", [None, "12", float("nan"), float("inf"), True])
def test_a_value_that_is_no_number_is_refused(store, recorder, value):
    with pytest.raises(InvalidError, match="value"):
        recorder.observe_metric("lcp_ms", value)
    with pytest.raises(InvalidError, match="baseline"):
        recorder.observe_metric("lcp_ms", 1, baseline="12")


# ---------------------------------------------------------------- correlation


def test_a_regression_soon_after_changed_resources_is_possibly_caused_by_them(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    deploy = recorder.observe_resources(["/app.2.js"], at=after(100)).event.id

    told = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(104.2)).event

    (link,) = told.links
    assert (told.id, "caused_by", deploy, "inferred", "store", f"4.2 s after deploy {deploy}") == (
        link.source,
        link.kind,
        link.target,
        link.confidence,
        link.created_by,
        link.reason,
    )


def test_a_deploy_told_late_is_correlated_when_it_is_told(store, recorder):
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(60)).event.id

    deploy = recorder.observe_deploy({"id": 1, "timestamp": after(40).isoformat()}).event

    assert [(slow, deploy.id, "inferred")] == links_of(store, "caused_by")
    assert [link.target for link in deploy.links] == [deploy.id]


@pytest.mark.parametrize(("seconds", "linked"), [(30, 1), (30.000001, 0), (-1, 0)])
def test_the_window_of_a_cause_is_closed_and_never_runs_backwards(store, recorder, seconds, linked):
    recorder.observe_deploy({}, at=after(100))
    recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(100 + seconds))

    assert linked == len(links_of(store, "caused_by"))


def test_an_explicit_cause_is_not_said_once_more(store, recorder):
    slow = store.record_event("regression", "slow", id="slow", occurred_at=after(10))
    store.record_event("deploy", "v2", id="v2", occurred_at=after(5))
    store.link(slow.event.id, "caused_by", "v2")

    recorder.observe_deploy({}, at=after(8))

    assert 2 == len(links_of(store, "caused_by"))
    assert ["explicit"] == [link.confidence for link in store.links_from("slow") if link.target == "v2"]


def test_a_suspicion_that_was_taken_back_is_not_said_again(store, recorder):
    recorder.observe_deploy({}, at=after(0))
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(10)).event
    store.unlink(slow.links[0].id, reason="it was the network")

    recorder.observe_deploy({}, at=after(5))

    assert 1 == len(links_of(store, "caused_by"))


def test_an_inferred_cause_gives_way_to_an_explicit_one(store, recorder):
    deploy = recorder.observe_deploy({}, at=after(0)).event.id
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(10)).event.id

    store.link(slow, "caused_by", deploy, reason="reproduced", valid_from=after(10))

    assert [(slow, deploy, "explicit")] == links_of(store, "caused_by")


def test_an_error_that_went_with_a_reload_is_possibly_resolved_by_it(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    broken = recorder.observe_error(BOOM, at=after(10)).event.id
    deploy = recorder.observe_resources(["/app.2.js"], at=after(20)).event.id
    assert [] == recorder.tick(after(79))

    (told,) = recorder.tick(after(80))

    assert ("resolution", after(10)) == (told.event.type, told.event.occurred_at)
    assert {(broken, told.event.id, "inferred"), (broken, deploy, "inferred")} == set(
        links_of(store, "resolved_by")
    )
    (link,) = [link for link in store.links_from(broken) if link.target == deploy]
    assert (after(20), f"last seen 10 s before deploy {deploy}, not seen for 60 s since") == (
        link.valid_from,
        link.reason,
    )
    assert ("resolved", []) == (store.event(broken).status, recorder.tick(after(500)))


def test_an_error_that_went_on_after_the_reload_is_not_resolved_by_it(store, recorder):
    broken = recorder.observe_error(BOOM, at=after(10)).event.id
    recorder.observe_deploy({}, at=after(20))
    recorder.observe_error(BOOM, at=after(81))

    assert [] == recorder.tick(after(200))
    assert "active" == store.event(broken).status


# ---------------------------------------------------------------- many calls, many recorders


def test_one_observation_is_one_transaction(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    recorder.observe_error(BOOM, at=after(10))
    before = store.stats()["transactions"]

    recorder.observe_resources(["/app.2.js"], at=after(20))
    assert before + 1 == store.stats()["transactions"]
    recorder.tick(after(90))
    assert before + 2 == store.stats()["transactions"]
    recorder.observe_resources(["/app.2.js"], at=after(95))

    assert before + 2 == store.stats()["transactions"]


def test_observations_join_the_callers_transaction(store, recorder):
    with store.transaction(author="replay"):
        recorder.observe_error(BOOM, at=after(0))
        recorder.observe_error(BOOM, at=after(1))
        assert 1 == len(recorder.tick(after(301)))

    assert {"replay"} == {change.author for change in store.changes()}
    assert 1 == store.stats()["transactions"]


def test_the_agent_is_the_author_of_what_is_written(store):
    events.Recorder(store, agent="claude").observe_error(BOOM)

    assert ["claude"] == [change.author for change in store.changes()]
    assert None is store.events()[0].agent


def test_an_observation_that_fails_teaches_nothing(store, recorder):
    recorder.observe_metric("lcp_ms", 1200, baseline=1200, at=after(0))
    with pytest.raises(InvalidError):
        recorder.observe_metric("lcp_ms", 2400, at="noon")

    assert "regression" == recorder.observe_metric("lcp_ms", 2400, at=after(1)).event.type


def test_without_an_instant_it_is_the_stores_now(store, recorder, clock):
    told = recorder.observe_error(BOOM)
    clock.move(minutes=6)

    assert told.event.tx_from == told.event.occurred_at
    assert 1 == len(recorder.tick())


def test_a_new_recorder_takes_up_where_the_last_left_off(store, recorder):
    recorder.observe_resources(["/app.1.js"], at=after(0))
    recorder.observe_resources(["/app.2.js"], at=after(1))
    recorder.observe_error(BOOM, at=after(100))
    slow = recorder.observe_metric("lcp_ms", 2400, baseline=1200, at=after(100)).event.id
    recorder.observe_metric("cls", 0.1, baseline=0.1, at=after(100))
    shifted = recorder.observe_metric("cls", 0.1, baseline=0.2, at=after(100)).event.id

    new = events.Recorder(store)

    assert None is new.observe_resources(["/app.2.js"], at=after(101))
    assert None is new.observe_metric("lcp_ms", 2400, at=after(101))
    assert [slow] == [link.source for link in new.observe_metric("lcp_ms", 1200, at=after(101)).event.links]
    assert None is new.observe_metric("cls", 0.25, baseline=0.2, at=after(101))
    again = new.observe_metric("cls", 0.25, baseline=0.3, at=after(101)).event
    assert [shifted] == [link.target for link in again.links]
    assert [BOOM] == [
        store.event(each.event.metadata["resolves"]).description for each in new.tick(after(401))
    ]


def test_events_of_others_do_not_mislead_a_new_recorder(store, clock):
    for metadata in (
        {"metric": 7, "baseline": 1},
        {"metric": "x", "baseline": "1"},
        {"metric": "x", "page": 7, "baseline": 1},
        {},
    ):
        store.record_event("regression", f"odd {metadata}", origin="system", metadata=metadata)
    store.record_event("regression", "an agent's", metadata={"metric": "lcp_ms", "baseline": 7})
    store.record_event("deploy", "odd", origin="system", metadata={"implied": True, "resources": "all"})
    recorder = events.Recorder(store)

    assert None is recorder.observe_metric("lcp_ms", 2400)
    assert None is recorder.observe_resources(["/app.js"])


def test_fifty_threads_record_one_error_once_each(disk_store, clock):
    recorder = events.Recorder(disk_store)
    failures = []

    def observe():
        try:
            recorder.observe_error(BOOM)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=observe) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failures
    assert [(50, "active")] == [(event.count, event.status) for event in disk_store.events()]
    path = disk_store.path
    disk_store.close()
    with graphstore.open(path, clock=clock) as reopened:
        assert [50] == [event.count for event in reopened.events()]


def test_instants_ahead_of_the_stores_clock_are_observed_too(store):
    recorder = events.Recorder(store)
    recorder.observe_error(BOOM, at=after(1000))

    assert 1 == len(recorder.tick(after(1300)))
    assert [] == recorder.tick(after(1700))


@pytest.mark.parametrize(
    "settings",
    [{"settle": 0}, {"settle": 1.5}, {"ratio": -1}, {"margin_ms": "x"}, {"quiet": 300}, {"correlation": timedelta(-1)}, {"agent": ""}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(store, settings):
    with pytest.raises(InvalidError):
        events.Recorder(store, **settings)


def test_the_recorder_never_sleeps_nor_reads_a_clock():
    source = sys.modules["graphstore.events.recorder"]

    assert not {"time", "datetime"} & vars(source).keys()
