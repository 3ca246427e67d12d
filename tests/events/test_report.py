"""The room of the event log: windows, correlation, metrics and patterns by tables, the report in the shape its readers know."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import orjson
import pytest

from graphstore import InvalidError, NotFoundError, events
from graphstore.events.correlation import Activity, Happening, correlate
from graphstore.events.recurrences import (
    Daily,
    FollowedDeploys,
    Recurring,
    deploy_correlated,
    joined,
    lasting,
    name_of,
    recurring,
    time_of_day,
)
from graphstore.events.regressions import (
    Metric,
    Recovered,
    Regressed,
    Shifted,
    Thresholds,
    change,
    label,
    limit_of,
    measure,
)
from graphstore.values.period import instant, iso
from graphstore.values.time_range import plural, window, window_sentence, window_text
from tests.conftest import day

pytestmark = pytest.mark.in_process("looks at what is laid aside in the store")

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
NOW = instant("2026-02-01")
UTC_ZONE = ZoneInfo("UTC")


def at(text: str) -> int:
    return instant(text)


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("since", "begin", "end"),
    [
        ("30m", "2026-01-31T23:30:00Z", "2026-02-01"),
        ("1h", "2026-01-31T23:00:00Z", "2026-02-01"),
        ("7d", "2026-01-25", "2026-02-01"),
        ("2w", "2026-01-18", "2026-02-01"),
        (" 7d ", "2026-01-25", "2026-02-01"),
        ("2026-01-20", "2026-01-20", "2026-02-01"),
        ("2026-01-20T10:00:00+01:00", "2026-01-20T09:00:00Z", "2026-02-01"),
        ("2026-01-01..2026-01-20", "2026-01-01", "2026-01-20T23:59:59.999999Z"),
        ("2026-01-01 .. 2026-01-20T12:00:00Z", "2026-01-01", "2026-01-20T12:00:00Z"),
        (("2026-01-01", day("2026-01-20")), "2026-01-01", "2026-01-20"),
        ("7d..1d", "2026-01-25", "2026-01-31"),
        ("2026-01..yesterday", "2026-01-01", "2026-01-31T23:59:59.999999Z"),
        ("last 7 days", "2026-01-25", "2026-02-01"),
        ("since January 2026", "2026-01-01", "2026-02-01"),
        ("2026-01-31..today", "2026-01-31", "2026-02-01"),
        (day("2026-01-20").date(), "2026-01-20", "2026-02-01"),
    ],
)
def test_a_window_is_relative_an_instant_or_a_range(since, begin, end):
    assert (at(begin), at(end)) == window(since, NOW)


def test_a_window_longer_than_time_begins_with_time():
    assert (at("0001-01-01T00:00:00Z"), NOW) == window("999999999w", NOW)


@pytest.mark.parametrize(
    "since",
    ["90s", "7", "d", "0d", "-1d", "1.5h", "7D", "", "soon", "1y", None, 7, ("2026-01-01",), ("a", "b"), "..", "2026-01-01..", "7d..1y"],
)  # fmt: skip
def test_anything_else_is_refused_with_every_form(since):
    with pytest.raises(InvalidError, match=r"'30m', '1h', '7d', '2w'.*2026-01-20T10:00:00Z.*\.\..*pair"):
        window(since, NOW)


def test_a_range_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidError, match="ends before it begins"):
        window("2026-01-20..2026-01-01", NOW)


def test_a_window_without_a_time_zone_says_how_to_give_one():
    with pytest.raises(InvalidError, match="no time zone"):
        window("2026-01-20T10:00:00", NOW)


@pytest.mark.parametrize(
    ("since", "asked", "sentence"),
    [
        ("7d", "7d", "in last 7 days"),
        ("1h", "1h", "in last 1 hour"),
        ("30m", "30m", "in last 30 minutes"),
        ("last 7 days", "last 7 days", "in last 7 days"),
        ("last Friday", "last Friday", "since last Friday"),
        ("since March", "since March", "since March"),
        ("2026-01-01", "2026-01-01", "since 2026-01-01"),
        ("2026-01-01..2026-02-01", "2026-01-01..2026-02-01", "from 2026-01-01 to 2026-02-01"),
        ((day("2026-01-01"), "2026-02-01"), "2026-01-01..2026-02-01", "from 2026-01-01 to 2026-02-01"),
    ],
)
def test_a_window_is_written_as_requested(since, asked, sentence):
    assert (asked, sentence) == (window_text(since), window_sentence(since))


@pytest.mark.parametrize(
    ("count", "noun", "words"), [(1, "fix", "1 fix"), (2, "fix", "2 fixes"), (1842, "event", "1,842 events")]
)
def test_counts_in_words(count, noun, words):
    assert words == plural(count, noun)


# ---------------------------------------------------------------- correlation


def regression(*seen: int) -> Happening:
    return Happening("r", "regression", seen)


def deploy(*seen: int, quiet: int = 10 * MINUTE) -> Happening:
    return Happening("d", "deploy", seen, quiet)


def error(last: int, quiet: int = 10 * MINUTE) -> Happening:
    return Happening("e", "error", (last,), quiet)


@pytest.mark.parametrize(
    ("after", "linked"),
    [(0, True), (4_200_000, True), (30 * SECOND, True), (30 * SECOND + 1, False), (-1, False)],
)
def test_a_regression_within_thirty_seconds_after_a_deploy_is_possibly_caused_by_it(after, linked):
    found = correlate([deploy(NOW), regression(NOW + after)])

    assert [("r", "caused_by", "d")] * linked == [said[:3] for said in found]


def test_a_proposal_says_its_basis_and_when_it_holds_from():
    (found,) = correlate([deploy(NOW), regression(NOW + 4_200_000)])

    assert ("4.2 s after deploy d", NOW + 4_200_000) == (found.reason, found.valid_from)


def test_a_later_occurrence_of_a_regression_may_have_a_later_cause():
    (found,) = correlate([deploy(NOW), regression(NOW - DAY, NOW + SECOND)])

    assert NOW + SECOND == found.valid_from


def test_every_deploy_in_the_window_is_a_suspect_and_each_pair_is_linked_once():
    other = Happening("d2", "deploy", (NOW + 5 * SECOND,))
    found = correlate([deploy(NOW, NOW + SECOND), other, regression(NOW + 6 * SECOND, NOW + 7 * SECOND)])

    assert [("r", "d"), ("r", "d2")] == [(said.source, said.target) for said in found]


def test_a_pair_that_is_linked_already_gets_no_automatic_link():
    linked = {("r", "caused_by", "d")}

    assert [] == correlate([deploy(NOW), regression(NOW)], linked=linked)


def test_the_correlation_window_is_an_argument():
    assert [] == correlate([deploy(NOW), regression(NOW + 2 * SECOND)], correlation=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("last", "linked"),
    [
        (0, True),
        (-60 * SECOND, True),
        (60 * SECOND, True),
        (-60 * SECOND - 1, False),
        (60 * SECOND + 1, False),
    ],
)
def test_an_error_that_stops_within_sixty_seconds_of_a_reload_is_possibly_resolved_by_it(last, linked):
    found = correlate([deploy(NOW), error(NOW + last)])

    assert [("e", "resolved_by", "d", NOW + max(last, 0))] * linked == [said[:4] for said in found]


@pytest.mark.parametrize(
    ("error_quiet", "deploy_quiet", "linked"), [(60, 60, True), (59, 60, False), (60, 59, False)]
)
def test_an_error_must_be_gone_for_sixty_seconds_after_the_reload_too(error_quiet, deploy_quiet, linked):
    found = correlate([deploy(NOW, quiet=deploy_quiet * SECOND), error(NOW, quiet=error_quiet * SECOND)])

    assert linked == bool(found)


def test_time_between_two_calls_counts_as_active_unless_it_is_said_otherwise():
    activity = Activity()
    activity.note(NOW)
    activity.note(NOW + 2 * MINUTE)
    activity.note(NOW + 60 * MINUTE, active=False)
    activity.note(NOW + 59 * MINUTE)
    activity.note(NOW + 61 * MINUTE)

    assert [3 * MINUTE, 2 * MINUTE, MINUTE, 0] == [
        activity.since(NOW + after * MINUTE) for after in (0, 1, 10, 61)
    ]


# ---------------------------------------------------------------- metrics

USUAL = Thresholds(ratio=0.5, margin=200, settle=5)


def run(metric: Metric, values: list[float], thresholds: Thresholds = USUAL) -> list[str]:
    """What each of the values was found to be."""
    found = []
    for value in values:
        metric, findings = measure(metric, value, thresholds)
        metric = metric._replace(
            regression="r" if any(isinstance(each, Regressed) for each in findings) else metric.regression
        )
        found.append("+".join(type(each).__name__ for each in findings))
    return found


@pytest.mark.parametrize(
    ("baseline", "value", "over"),
    [(1200, 1801, True), (1200, 1800, False), (100, 299, False), (100, 300, False), (100, 301, True)],
)
def test_a_regression_is_over_both_the_ratio_and_the_margin(baseline, value, over):
    _, found = measure(Metric("lcp_ms", baseline=baseline), value, USUAL)

    assert [Regressed(baseline, value)] * over == found
    assert over == (value > limit_of(baseline, USUAL))


def test_a_regression_is_told_once_per_crossing_and_again_after_the_metric_was_back():
    values = [1200, 2400, 2500, 2600, 1300, 2400]

    assert ["", "Regressed", "", "", "Recovered", "Regressed"] == run(Metric("lcp_ms", baseline=1200), values)


def test_the_first_values_teach_the_baseline_without_a_word():
    metric = Metric("lcp_ms")
    for value in (900, 1300, 1000, 1200, 1100):
        metric, found = measure(metric, value, USUAL)
        assert [] == found

    assert 1100 == metric.baseline


def test_twice_as_many_steady_values_on_another_level_shift_the_baseline_and_arm_it_again():
    found = run(Metric("lcp_ms", baseline=1000), [2000] * 10 + [3500])

    assert ["Regressed", *[""] * 8, "Shifted", "Regressed"] == found


@pytest.mark.parametrize("values", [[1200] * 10, [1800, 2400] * 5, [2000] * 9])
def test_a_small_unsteady_or_short_change_is_no_new_steady_state(values):
    assert "Shifted" not in run(Metric("lcp_ms", baseline=1000), values)


def test_a_given_baseline_shifts_once_and_said_again_says_nothing_new():
    metric, first = measure(Metric("lcp_ms"), 1000, USUAL, 1000)
    metric, same = measure(metric, 1000, USUAL, 1000)
    metric, other = measure(metric, 1000, USUAL, 1100)

    assert ([], [], [Shifted(1000, 1100, learned=False)]) == (first, same, other)


def test_a_metric_that_settles_is_not_thrown_back_by_the_baseline_the_caller_repeats():
    metric, found = Metric("lcp_ms"), []
    for value in [1000] + [2000] * 12:
        metric, more = measure(metric, value, USUAL, 1000)
        found += more

    assert [Regressed(1000, 2000), Shifted(1000, 2000, learned=True)] == found


def test_back_under_the_limit_of_an_open_regression_is_a_recovery():
    metric = Metric("lcp_ms", baseline=1000, armed=False, regression="r", limit=1500)

    assert [Recovered(1500, 1500)] == measure(metric, 1500, USUAL)[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [("lcp_ms", "LCP"), ("cls", "CLS"), ("load_time_ms", "load time"), ("bundle_kb", "bundle kb")],
)
def test_metrics_have_names_in_words(name, words):
    assert words == label(name)


def test_a_regression_is_described_as_the_documents_do():
    assert "LCP regressed: 1200ms → 2400ms on /dashboard" == change(
        Metric("lcp_ms", "/dashboard"), "regressed", 1200.0, 2400, "ms"
    )
    assert "CLS regressed: 0.1 → 0.25" == change(Metric("cls"), "regressed", 0.1, 0.25, "")


# ---------------------------------------------------------------- patterns, decided

MONTH = (NOW - 30 * DAY, NOW)


def days_ago(*days: float) -> list[int]:
    return [NOW - int(each * DAY) for each in days]


@pytest.mark.parametrize(
    ("episodes", "expected"),
    [
        ([(20, 19.5), (10, 9), (3, 2.8)], Recurring(3, DAY, False)),
        ([(20, 19.5), (10, 9), (3, None)], Recurring(3, DAY, True)),
        ([(20, 19), (10, 9)], None),
        ([(3, None)], None),
        ([], None),
        ([(40, 39), (10, 9), (3, 2)], None),
        ([(31, 29), (10, 9), (3, 2)], Recurring(3, 2 * DAY, False)),
    ],
)
def test_what_is_active_resolved_and_active_again_twice_recurs(episodes, expected):
    told = [(NOW - int(a * DAY), None if b is None else NOW - int(b * DAY)) for a, b in episodes]

    assert expected == recurring(told, MONTH)


def test_episodes_of_several_events_that_overlap_are_one():
    assert [(1, 4), (5, None)] == joined([(5, 6), (1, 3), (2, 4), (6, None), (8, 9)])


@pytest.mark.parametrize(
    ("deploys", "regressions", "expected"),
    [
        ([0, 100, 200], [10, 130, 200], FollowedDeploys((0, 100 * SECOND, 200 * SECOND), 3)),
        ([0, 100, 200], [31, 130, 200], None),
        ([0, 100], [10, 110], None),
        ([0, 100, 200, 300, 400, 500], [10, 110, 210], FollowedDeploys((0, 100 * SECOND, 200 * SECOND), 6)),
        ([0, 100, 200, 300, 400, 500, 600], [10, 110, 210], None),
        ([0, 100, 200], [-1, 99, 199], None),
    ],
)
def test_deploys_that_are_mostly_followed_by_a_regression(deploys, regressions, expected):
    found = deploy_correlated(
        [each * SECOND for each in deploys], [each * SECOND for each in regressions], 30 * SECOND
    )

    assert expected == found


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["01T03:05", "02T03:20", "03T03:50"], Daily(185, 231, 3, 3, 3)),
        (["01T02:50", "02T03:10", "03T03:20"], Daily(170, 201, 3, 3, 3)),
        (["01T23:50", "02T23:55", "04T00:10"], Daily(1430, 11, 3, 3, 3)),
        (["01T03:05", "01T03:20", "02T03:50"], None),
        (["01T03:05", "02T03:20"], None),
        (["01T03:05", "02T04:05", "03T03:20"], None),
        (["01T03:05", "02T03:20", "03T03:50", "04T03:06", "05T12:00"], Daily(185, 231, 4, 5, 4)),
        (["01T03:05", "02T03:20", "03T03:50", "04T12:00"], None),
        (["01T10:00", "01T10:30", "02T10:40", "02T10:45", "03T11:10"], Daily(630, 671, 4, 5, 3)),
    ],
)
def test_occurrences_that_keep_to_an_hour_of_the_day(times, expected):
    instants = [at(f"2026-01-{each}:00Z") for each in times]

    assert expected == time_of_day(instants, UTC_ZONE)


def test_the_hour_of_the_day_is_that_of_the_time_zone_over_the_change_of_clocks():
    berlin = ZoneInfo("Europe/Berlin")
    instants = [at(f"2026-03-{each}:05Z") for each in ("27T02:59", "28T02:59", "29T01:59", "30T01:59")]

    assert None is time_of_day(instants, UTC_ZONE)
    assert Daily(239, 240, 4, 4, 4) == time_of_day(instants, berlin)


def test_three_days_are_three_days_though_one_of_them_has_twenty_three_hours():
    berlin = ZoneInfo("Europe/Berlin")
    instants = [at(f"2026-03-{each}Z") for each in ("28T22:59:59", "28T23:00:30", "29T22:00:01")]

    assert Daily(1439, 1, 3, 3, 3) == time_of_day(instants, berlin)


@pytest.mark.parametrize(
    ("description", "name"),
    [
        (
            "TypeError: Cannot read property 'name' of undefined at UserProfile.render",
            "TypeError in UserProfile",
        ),
        ("LCP regressed: 1200ms → 2400ms on /dashboard", "LCP regressed on /dashboard"),
        ("Network down", "Network down"),
        ("x" * 200, "x" * 79 + "…"),
        ("a\nb", "a b"),
    ],
)
def test_descriptions_have_short_names(description, name):
    assert name == name_of(description)


@pytest.mark.parametrize(
    ("length", "words"),
    [(0, "1 minute"), (MINUTE + 1, "2 minutes"), (HOUR, "1 hour"), (23 * HOUR, "23 hours"), (23 * HOUR + 1, "1 day"), (30 * DAY, "30 days")],
)  # fmt: skip
def test_lengths_of_time_in_words(length, words):
    assert words == lasting(length)


# ---------------------------------------------------------------- patterns, read


def break_and_mend(store, days, description="TypeError: no name at UserProfile.render", **more):
    """An error so many days before now, each time mended twelve hours later."""
    for ago in days:
        broken = day("2026-02-01") - timedelta(days=ago)
        seen = store.record_event("error", description, occurred_at=broken, **more)
        mended = broken + timedelta(hours=12)
        store.record_event("fix", f"mended {ago}", occurred_at=mended, related_to=seen.event.id)
    return seen.event.id


def test_a_recurring_error_is_told_as_the_documents_do(store):
    broken = break_and_mend(store, [20.1, 11.4, 3.7])

    assert [
        {
            "kind": "recurring",
            "description": "Recurring: TypeError in UserProfile seen 3 times in 30 days, resolved each time within 12 hours",
            "events": [broken],
            "times": 3,
            "resolved": 3,
            "longest_seconds": 43_200.0,
            "active": False,
        }
    ] == events.patterns(store)


def test_an_error_that_is_still_there_is_said_to_be_active(store):
    break_and_mend(store, [20.1, 11.4])
    store.record_event("error", "TypeError: no name at UserProfile.render", occurred_at="2026-01-31")

    (found,) = events.patterns(store)

    assert "Recurring: TypeError in UserProfile seen 3 times in 30 days, resolved 2 times within 12 hours, still active" == found["description"]  # fmt: skip


def test_several_events_of_one_fingerprint_are_one_pattern(store):
    ids = [break_and_mend(store, [ago], id=f"error_{ago}", fingerprint="same") for ago in (20.1, 11.4, 3.7)]

    assert [ids[::-1]] == [each["events"] for each in events.patterns(store)]


def test_deploys_followed_by_regressions_are_a_pattern(store):
    for ago in (4, 3, 2, 1):
        told_at = day("2026-02-01") - timedelta(days=ago)
        store.record_event("deploy", f"v{ago}", id=f"deploy_{ago}", occurred_at=told_at)
        if ago != 3:
            store.record_event(
                "regression",
                f"slow after {ago}",
                id=f"slow_{ago}",
                occurred_at=told_at + timedelta(seconds=30),
            )

    (found,) = events.patterns(store)

    assert (
        "Deploy-correlated: 3 of 4 deploys in 30 days followed by a regression within 30 s"
        == found["description"]
    )
    assert {"deploy_4", "slow_4", "deploy_2", "slow_2", "deploy_1", "slow_1"} == set(found["events"])
    assert [] == events.patterns(store, deploys=4)
    assert [] == events.patterns(store, share=0.8)
    assert [] == events.patterns(store, type="error")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"days": 0}, "days 0 is out of range. Give a whole number of at least 1."),
        ({"share": 1.5}, "share 1.5 is out of range. Give a finite number from 0 to 1."),
        ({"in_hour": -0.1}, "in_hour -0.1 is out of range. Give a finite number from 0 to 1."),
        ({"type": ["error"]}, "type ['error'] is no text. Give a str."),
    ],
)
def test_what_is_no_threshold_of_a_pattern_is_refused(store, asked, words):
    with pytest.raises(InvalidError) as raised:
        events.patterns(store, **asked)
    assert raised.value.args[0] == words


def test_an_error_at_the_same_hour_of_several_days_is_a_pattern(store):
    for date in ("2026-01-20", "2026-01-21", "2026-01-22"):
        seen = store.record_event("error", "nightly job failed", occurred_at=f"{date}T03:10:00Z")

    (found,) = events.patterns(store)

    assert (
        "Time of day: nightly job failed seen 3 times in 30 days, all between 03:10 and 03:11 UTC on 3 days"
        == found["description"]
    )
    assert [seen.event.id] == found["events"]
    assert "04:10" == events.patterns(store, timezone="Europe/Berlin")[0]["from"]


def test_an_unknown_time_zone_is_refused(store):
    for zone in ("Mars/Olympus", "../etc/passwd", "", 7):
        with pytest.raises(InvalidError, match="time zone"):
            events.patterns(store, timezone=zone)


def test_patterns_are_found_again_after_a_write(store):
    break_and_mend(store, [20.1, 11.4])
    assert [] == events.patterns(store)
    view = store.as_of()

    store.record_event("error", "TypeError: no name at UserProfile.render", occurred_at="2026-01-31")

    assert 1 == len(events.patterns(store))
    assert [] == events.patterns(view)


def test_patterns_see_what_the_open_transaction_has_written(store):
    break_and_mend(store, [20.1, 11.4])
    with store.transaction():
        assert [] == events.patterns(store)
        store.record_event("error", "TypeError: no name at UserProfile.render", occurred_at="2026-01-31")
        assert 1 == len(events.patterns(store))


def test_patterns_of_the_store_are_kept_for_sixty_seconds_and_those_of_a_view_for_good(store, clock):
    break_and_mend(store, [29.9999, 11.4, 3.7])
    view = store.as_of()
    assert 1 == len(events.patterns(store))

    clock.move(seconds=59)
    assert 1 == len(events.patterns(store))
    clock.move(days=1)

    assert [] == events.patterns(store)
    assert 1 == len(events.patterns(view))


def test_what_the_caller_does_with_patterns_is_not_remembered(store):
    break_and_mend(store, [20.1, 11.4, 3.7])
    events.patterns(store)[0]["events"].clear()

    assert 1 == len(events.patterns(store)[0]["events"])


# ---------------------------------------------------------------- the report


def test_the_report_has_the_shape_of_the_document(store):
    broken = store.record_event(
        "error",
        "TypeError: Cannot read property 'name' of undefined at UserProfile.render",
        id="evt_1",
        occurred_at="2026-01-30T10:00:00Z",
        source="user-profile.js:42",
        origin="system",
    )
    store.record_event(
        "fix",
        "null user",
        id="evt_3",
        occurred_at="2026-01-30T11:00:00Z",
        related_to=broken.event.id,
        agent="claude",
    )

    assert {
        "events": [
            {
                "id": "evt_3",
                "type": "fix",
                "timestamp": "2026-01-30T11:00:00Z",
                "description": "null user",
                "status": None,
                "links": [{"target": "evt_1", "relationship": "resolves", "confidence": "explicit"}],
                "origin": "agent",
                "agent": "claude",
            },
            {
                "id": "evt_1",
                "type": "error",
                "timestamp": "2026-01-30T10:00:00Z",
                "description": "TypeError: Cannot read property 'name' of undefined at UserProfile.render",
                "source": "user-profile.js:42",
                "status": "resolved",
                "links": [{"target": "evt_3", "relationship": "resolved_by", "confidence": "explicit"}],
                "origin": "system",
            },
        ],
        "total_events": 2,
        "time_range": "7d",
        "patterns": [],
        "summary": "2 events in last 7 days. 1 error (resolved), 1 fix.",
    } == events.history_report(store)


def test_the_summary_counts_what_is_resolved_of_every_type_that_can_be_open(store):
    for number in (1, 2):
        store.record_event(
            "incident", f"outage {number}", id=f"inc_{number}", occurred_at="2026-01-30T10:00:00Z"
        )
    store.record_event("fix", "mended", related_to="inc_1", occurred_at="2026-01-30T11:00:00Z")

    assert (
        "3 events in last 7 days. 1 fix, 2 incidents (1 resolved)." == events.history_report(store)["summary"]
    )


def test_an_event_that_came_again_says_how_often_and_when(store):
    for hour in (10, 12, 11):
        store.record_event("error", "boom", occurred_at=f"2026-01-30T{hour}:00:00Z", metadata={"tab": 3})

    (event,) = events.history_report(store)["events"]

    assert (3, "2026-01-30T10:00:00Z", "2026-01-30T12:00:00Z", {"tab": 3}) == (
        event["count"],
        event["first_seen"],
        event["last_seen"],
        event["metadata"],
    )


def test_an_inferred_cause_is_possible_from_either_end_and_says_its_reason(store):
    store.record_event("deploy", "v2", id="deploy")
    store.record_event("regression", "slow", id="slow", source="lcp_ms")
    store.link("slow", "possibly_caused_by", "deploy", reason="4 s after it")
    store.link("slow", "possibly_related_to", "deploy")

    told = {each["id"]: each["links"] for each in events.history_report(store)["events"]}

    assert [
        {
            "target": "deploy",
            "relationship": "possibly_caused_by",
            "confidence": "inferred",
            "reason": "4 s after it",
        },
        {"target": "deploy", "relationship": "related_to", "confidence": "inferred"},
    ] == sorted(told["slow"], key=lambda link: link["relationship"])
    assert {"possibly_causes", "related_to"} == {link["relationship"] for link in told["deploy"]}


def test_a_regression_names_its_metric(store):
    store.record_event("regression", "slow", source="lcp_ms")
    store.record_event("baseline_shift", "other", metadata={"metric": "cls"})
    store.record_event("error", "boom", metadata={"metric": "x"})

    assert {"lcp_ms", "cls", None} == {each.get("metric") for each in events.history_report(store)["events"]}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["fix", "late", "slow"]),
        ({"type": "error"}, ["late"]),
        ({"since": "30d"}, ["fix", "late", "slow", "old"]),
        ({"since": "2026-01-01..2026-01-10"}, ["old"]),
        ({"pattern": "PROFILE"}, ["late"]),
        ({"related_to": "late"}, ["fix", "late"]),
        ({"related_to": "late", "type": "fix"}, ["fix"]),
        ({"type": "error", "pattern": "slow"}, []),
        ({"limit": 1}, ["fix"]),
    ],
)
def test_filters_are_anded_and_the_newest_come_first(store, filters, expected):
    store.record_event("error", "old Profile", id="old", occurred_at="2026-01-05")
    store.record_event("regression", "slow", id="slow", occurred_at="2026-01-28")
    store.record_event("error", "late Profile", id="late", occurred_at="2026-01-29")
    store.record_event("fix", "mended", id="fix", occurred_at="2026-01-30", related_to="late")

    assert expected == [each["id"] for each in events.history_report(store, **filters)["events"]]


def test_what_the_related_are_asked_for_is_marked(store):
    store.record_event("error", "boom", id="boom")
    store.record_event("fix", "mended", id="fix", related_to="boom")

    assert {"boom": True, "fix": None} == {
        each["id"]: each.get("asked") for each in events.history_report(store, related_to="boom")["events"]
    }


def test_an_unknown_id_to_be_related_to_is_not_found(store):
    store.record_event("error", "boom", id="boom_one")

    with pytest.raises(NotFoundError, match="boom_one"):
        events.history_report(store, related_to="boom_two")


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"])
def test_a_limit_is_a_whole_number_of_at_least_one(store, limit):
    with pytest.raises(InvalidError, match="limit"):
        events.history_report(store, limit=limit)


def test_a_repeat_inside_the_window_brings_an_old_event_into_it(store):
    store.record_event("error", "boom", occurred_at="2026-01-01")
    store.record_event("error", "boom", occurred_at="2026-01-31")

    assert (1, 1, 0) == tuple(
        events.history_report(store, since=since)["total_events"]
        for since in ("7d", "2025-12-31..2026-01-02", "2026-01-02..2026-01-20")
    )


def test_the_window_ends_at_the_valid_time_of_the_view(store):
    store.record_event("error", "boom", occurred_at="2026-01-10")
    store.record_event("error", "bang", occurred_at="2026-01-20")

    report = events.history_report(store.as_of(valid="2026-01-12"))

    assert ["boom"] == [each["description"] for each in report["events"]]


def test_the_same_report_is_read_at_a_coordinate_for_ever(store):
    store.record_event("error", "boom", id="boom")
    view = store.as_of()
    before = events.history_report(view)

    store.record_event("fix", "mended", related_to="boom")

    assert before == events.history_report(view)


def test_the_total_counts_what_the_limit_leaves_out_and_the_summary_says_so(store):
    for number in range(12):
        store.record_event("fix", f"fix {number}")

    report = events.history_report(store, limit=5)

    assert (12, 5) == (report["total_events"], len(report["events"]))
    assert "12 events in last 7 days. 12 fixes. Shown: the newest 5 of 12." == report["summary"]


def test_the_summary_counts_by_type_in_the_documents_order_then_others(store):
    store.record_event("deploy", "v2", id="deploy")
    store.record_event("note", "hm")
    for name in ("a", "b"):
        store.record_event("error", name, id=name)
    store.record_event("fix", "mended", related_to="a")
    store.record_event("baseline_shift", "up")
    store.record_event("regression", "slow", id="slow")
    store.link("slow", "caused_by", "deploy")

    assert (
        "7 events in last 7 days. 2 errors (1 resolved), 1 regression (linked to deploy), 1 baseline shift, 1 deploy, 1 fix, 1 note."
        == events.history_report(store)["summary"]
    )


@pytest.mark.parametrize(
    ("filters", "summary"),
    [
        ({}, "No events in last 7 days."),
        ({"since": "2026-01-20"}, "No events since 2026-01-20."),
        ({"type": "fix", "since": "365d"}, "No matching events in last 365 days."),
    ],
)
def test_a_window_without_events_says_so(store, filters, summary):
    store.record_event("error", "boom", occurred_at="2026-01-01")

    assert summary == events.history_report(store, **filters)["summary"]


def test_a_huge_history_is_cut_from_its_oldest_end(store):
    with store.transaction():
        for number in range(1500):
            store.record_event(
                "fix", f"{number} " + "é" * 300, occurred_at=day("2026-01-31") + timedelta(seconds=number)
            )

    report = events.history_report(store)
    shown = len(report["events"])

    assert 1500 == report["total_events"] and 400 < shown < 1500
    assert len(orjson.dumps(report)) < 500_000
    assert report["events"][0]["description"].startswith("1499 ")
    assert report["summary"].endswith(f"Shown: the newest {shown:,} of 1,500.")


def test_a_single_huge_event_is_shortened(store):
    store.record_event(
        "error",
        "é" * 400_000,
        source="s" * 400_000,
        metadata={"log": "x" * 400_000, "list": list(range(200_000))},
    )

    report = events.history_report(store)

    assert len(orjson.dumps(report)) < 500_000
    assert report["events"][0]["description"].endswith("é…")
    assert report["events"][0]["metadata"]["log"].endswith("x…")


def test_texts_of_any_length_stay_within_bounds(store):
    store.record_event("t" * 600_000, "d", metadata={"metric": {"name": "m" * 600_000}})
    store.record_event("regression", "slow", metadata={"metric": {"name": "m" * 600_000}})

    report = events.history_report(store)

    assert len(orjson.dumps(report)) < 500_000
    assert "slow" == report["events"][0]["description"]


def test_an_id_that_has_no_room_is_left_out_and_never_cut(store):
    store.record_event("fix", "mended", id="i" * 600_000)

    report = events.history_report(store)

    assert ([], "1 event in last 7 days. 1 fix. Shown: the newest 0 of 1.") == (
        report["events"],
        report["summary"],
    )


def test_very_many_types_are_told_shortly(store):
    with store.transaction():
        for number in range(30):
            store.record_event(f"type_{number:02}", "d")
            store.record_event(f"type_{number:02}", "d")

    report = events.history_report(store)

    assert report["summary"].startswith("60 events in last 7 days. 2 type 00s, 2 type 01s, ")
    assert report["summary"].endswith(", 2 type 19s, 20 of 10 other types.")


def test_an_event_with_very_many_links_stays_within_bounds(store):
    with store.transaction():
        store.record_event("error", "boom", id="boom")
        for number in range(6000):
            store.record_event(
                "note", f"note {number}", id=f"note_{number:09}", related_to="boom", occurred_at="2026-01-01"
            )

    report = events.history_report(store)

    assert len(orjson.dumps(report)) < 500_000
    assert 3000 < len(report["events"][0]["links"]) < 6000


def test_many_patterns_stay_within_bounds(store):
    with store.transaction():
        for number in range(500):
            for date in ("2026-01-20", "2026-01-21", "2026-01-22"):
                store.record_event(
                    "error",
                    f"{chr(97 + number % 26) * 60}{number}",
                    occurred_at=f"{date}T03:10:00Z",
                    source=str(number),
                )

    report = events.history_report(store, since="30d")

    assert 500 == len(events.patterns(store)) and len(orjson.dumps(report["patterns"])) < 60_000


@pytest.mark.rest
def test_a_report_over_five_thousand_events_is_read_within_its_time(store):
    """The bound is that of a slow machine; what it costs is measured elsewhere."""
    with store.transaction():
        for number in range(5000):
            store.record_event(
                ("error", "regression", "deploy", "fix")[number % 4],
                f"boom {number % 997} at Part{number}.render",
                id=f"evt_{number}",
                occurred_at=day("2026-02-01") - timedelta(minutes=25 * number),
            )
    view = store.as_of()

    def best(work, times=3):
        took = []
        for _ in range(times):
            begun = time.perf_counter()
            work()
            took.append(time.perf_counter() - begun)
        return min(took)

    first = best(lambda: (view._core.memo.clear(), events.patterns(view, since="90d")))
    report = best(lambda: events.history_report(view, since="90d"))
    again = best(lambda: events.patterns(view, since="90d"))

    assert 5000 == events.history_report(view, since="90d")["total_events"]
    assert (report < 0.25, first < 0.5, again < 0.005) == (True, True, True), (report, first, again)


def test_the_room_is_imported_from_the_package():
    import graphstore

    assert graphstore.events is events
    assert ("error", "regression", "resolution", "baseline_shift", "deploy", "fix") == events.TYPES
    assert 16 == len(events.fingerprint("error", "boom"))
    assert iso(NOW) == datetime(2026, 2, 1, tzinfo=UTC).isoformat().replace("+00:00", "Z")
