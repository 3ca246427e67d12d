"""Times as people write them: in arguments one time, in a question all that it names."""

from __future__ import annotations

from datetime import date

import pytest

from graphstore.errors import InvalidError
from graphstore.values.coordinates import looks_like_time, resolve
from graphstore.values.period import BEGINNING, OPEN, exactly, instant, iso, moment
from graphstore.values.worded_times import span_of, spans_in

NOW = instant("2026-03-18T10:00:00Z")  # a Wednesday


def days(text: str) -> tuple[str, str]:
    """The first period that a question names, as its first day and the day after its last."""
    since, until = spans_in(text, NOW)[0]
    return str(moment(since).date()), str(moment(until).date())


def span(text: str, now: str = "2026-03-18T10:00:00Z") -> tuple[str, str]:
    found = span_of(text, instant(now))
    assert found is not None, text
    return exactly(found.start), exactly(found.end)


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what happened in March?", ("2026-03-01", "2026-04-01")),
        ("Was geschah im März 2025?", ("2025-03-01", "2025-04-01")),
        ("on 5 May 2023", ("2023-05-05", "2023-05-06")),
        ("May 5th, 2023", ("2023-05-05", "2023-05-06")),
        ("2025-03", ("2025-03-01", "2025-04-01")),
        ("what was decided on 2025-03-09?", ("2025-03-09", "2025-03-10")),
        ("since 2025-03-09", ("2025-03-09", "2026-03-19")),
        ("in 2024", ("2024-01-01", "2025-01-01")),
        ("what changed since 2024", ("2024-01-01", "2026-03-19")),
        ("last week", ("2026-03-09", "2026-03-16")),
        ("last month", ("2026-02-01", "2026-03-01")),
        ("this year", ("2026-01-01", "2027-01-01")),
        ("last Friday", ("2026-03-13", "2026-03-14")),
        ("what did we say on Friday?", ("2026-03-13", "2026-03-14")),
        ("two weeks ago", ("2026-03-01", "2026-03-08")),
        ("yesterday", ("2026-03-17", "2026-03-18")),
        ("in the summer of 2024", ("2024-06-01", "2024-09-01")),
        ("errors of the last 7 days", ("2026-03-11", "2026-03-19")),
        ("what we agreed since January", ("2026-01-01", "2026-03-19")),
        ("since last Friday", ("2026-03-13", "2026-03-19")),
        ("3 months ago", ("2025-12-08", "2025-12-29")),
        ("26/11/2025", ("2025-11-26", "2025-11-27")),
    ],
)
def test_a_time_in_a_question_is_a_period_of_days(text: str, expected: tuple[str, str]) -> None:
    assert expected == days(text)


def test_month_without_a_year_may_be_of_any_of_the_last_years() -> None:
    assert {2026, 2025, 2024} <= {moment(since).year for since, _ in spans_in("in May", NOW)}


@pytest.mark.parametrize(
    "text",
    ["may I deploy", "they march on", "on 31 February 2024", "error 2024", "", "in 99999", "03/04/2026", "it sat there"],
)  # fmt: skip
def test_what_is_no_time_names_none(text: str) -> None:
    assert [] == spans_in(text, NOW)


# ---------------------------------------------------------------- one time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026", ("2026-01-01", "2027-01-01")),
        ("2026-02", ("2026-02-01", "2026-03-01")),
        ("2024-02-29", ("2024-02-29", "2024-03-01")),
        ("20240229", ("2024-02-29", "2024-03-01")),
        ("2026-W05", ("2026-01-26", "2026-02-02")),
        ("2026-W53-5", ("2027-01-01", "2027-01-02")),
        ("2026/11/26", ("2026-11-26", "2026-11-27")),
        ("26.11.2026", ("2026-11-26", "2026-11-27")),
        ("11/26/2026", ("2026-11-26", "2026-11-27")),
        ("04/04/2026", ("2026-04-04", "2026-04-05")),
        ("26 November 2026", ("2026-11-26", "2026-11-27")),
        ("26-Nov-2026", ("2026-11-26", "2026-11-27")),
        ("the 26th of November, 2026", ("2026-11-26", "2026-11-27")),
        ("Thursday, 26 November 2026", ("2026-11-26", "2026-11-27")),
        ("November 26th, 2026", ("2026-11-26", "2026-11-27")),
        ("26 November", ("2025-11-26", "2025-11-27")),
        ("as of 26 November", ("2025-11-26", "2025-11-27")),
        ("18 March", ("2026-03-18", "2026-03-19")),
        ("March", ("2026-03-01", "2026-04-01")),
        ("in December", ("2025-12-01", "2026-01-01")),
        ("last March", ("2025-03-01", "2025-04-01")),
        ("last February", ("2026-02-01", "2026-03-01")),
        ("next February", ("2027-02-01", "2027-03-01")),
        ("Q1 2026", ("2026-01-01", "2026-04-01")),
        ("last quarter", ("2025-10-01", "2026-01-01")),
        ("in 2024", ("2024-01-01", "2025-01-01")),
        ("today", ("2026-03-18", "2026-03-19")),
        ("Tomorrow", ("2026-03-19", "2026-03-20")),
        ("the day before yesterday", ("2026-03-16", "2026-03-17")),
        ("gestern", ("2026-03-17", "2026-03-18")),
        ("last Friday", ("2026-03-13", "2026-03-14")),
        ("Friday", ("2026-03-13", "2026-03-14")),
        ("this Friday", ("2026-03-20", "2026-03-21")),
        ("next Monday", ("2026-03-23", "2026-03-24")),
        ("last weekend", ("2026-03-14", "2026-03-16")),
        ("next week", ("2026-03-23", "2026-03-30")),
        ("this hour", ("2026-03-18 10:00Z", "2026-03-18 11:00Z")),
        ("2026-03-06T10Z", ("2026-03-06 10:00Z", "2026-03-06 11:00Z")),
        ("3 months ago", ("2025-12-18 10:00Z", "2025-12-18 10:00Z")),
        ("a year ago", ("2025-03-18 10:00Z", "2025-03-18 10:00Z")),
        ("two weeks ago", ("2026-03-04 10:00Z", "2026-03-04 10:00Z")),
        ("90 mins ago", ("2026-03-18 08:30Z", "2026-03-18 08:30Z")),
        ("an hour ago", ("2026-03-18 09:00Z", "2026-03-18 09:00Z")),
        ("in 2 days", ("2026-03-20 10:00Z", "2026-03-20 10:00Z")),
        ("3 weeks from now", ("2026-04-08 10:00Z", "2026-04-08 10:00Z")),
        ("last 7 days", ("2026-03-11 10:00Z", "2026-03-18 10:00:00.000001Z")),
        ("in the past two months", ("2026-01-18 10:00Z", "2026-03-18 10:00:00.000001Z")),
        ("next 3 days", ("2026-03-18 10:00Z", "2026-03-21 10:00Z")),
        ("since February", ("2026-02-01", "2026-03-18 10:00:00.000001Z")),
        ("since 2026-03-05", ("2026-03-05", "2026-03-18 10:00:00.000001Z")),
        ("26 November 2026 15:00 Europe/Berlin", ("2026-11-26 14:00Z", "2026-11-26 14:00Z")),
        ("26 July 2026 at 3pm Europe/Berlin", ("2026-07-26 13:00Z", "2026-07-26 13:00Z")),
        ("2026-11-26 15:00 +02:00", ("2026-11-26 13:00Z", "2026-11-26 13:00Z")),
        ("2026-11-26T15:00[America/New_York]", ("2026-11-26 20:00Z", "2026-11-26 20:00Z")),
        ("yesterday 15:00 UTC", ("2026-03-17 15:00Z", "2026-03-17 15:00Z")),
        ("yesterday at noon GMT", ("2026-03-17 12:00Z", "2026-03-17 12:00Z")),
        ("26 November 2026 Europe/Berlin", ("2026-11-25 23:00Z", "2026-11-26 23:00Z")),
        ("29 March 2026 Europe/Berlin", ("2026-03-28 23:00Z", "2026-03-29 22:00Z")),
        ("today Asia/Tokyo", ("2026-03-17 15:00Z", "2026-03-18 15:00Z")),
        ("25 October 2026 01:30 Europe/Berlin", ("2026-10-24 23:30Z", "2026-10-24 23:30Z")),
    ],
)  # fmt: skip
def test_a_text_is_a_span(text: str, expected: tuple[str, str]) -> None:
    assert expected == span(text)


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2026-03-20T10:00:00Z", "last Friday", "2026-03-13"),  # said on a Friday
        ("2026-03-20T10:00:00Z", "Friday", "2026-03-20"),
        ("2026-03-20T10:00:00Z", "next Friday", "2026-03-27"),
        ("2026-03-21T10:00:00Z", "last Friday", "2026-03-20"),
        ("2026-05-31T12:30:00Z", "3 months ago", "2026-02-28 12:30Z"),
        ("2024-02-29T12:00:00Z", "a year ago", "2023-02-28 12:00Z"),
        ("2026-01-31T12:00:00Z", "in 1 month", "2026-02-28 12:00Z"),
        ("2026-01-01T00:00:00Z", "last month", "2025-12-01"),
        ("2026-01-01T00:00:00Z", "yesterday", "2025-12-31"),
        ("2027-01-03T10:00:00Z", "this week", "2026-12-28"),
        ("2026-03-18T23:30:00Z", "today Europe/Berlin", "2026-03-18 23:00Z"),
    ],
)
def test_a_relative_time_counts_from_now(now: str, text: str, expected: str) -> None:
    assert expected == span(text, now)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("03/04/2026", "may mean 2026-04-03 (day first) or 2026-03-04 (month first)"),
        ("3-4-2026", "may mean 2026-04-03 (day first) or 2026-03-04 (month first)"),
        ("next Friday", "may mean 2026-03-20 or 2026-03-27"),
        ("31 February 2026", "is not in the calendar"),
        ("30.02.2026", "is not in the calendar"),
        ("29 February 2025", "is not in the calendar"),
        ("Monday, 26 November 2026", "2026-11-26 is a Thursday"),
        ("yesterday 15:00", "has no time zone. Write 'yesterday 15:00 UTC'"),
        ("26 November 2026 3pm", "has no time zone"),
        ("26 November 2026 15:00 CET", "time zone 'CET' is an abbreviation, which several zones share. Give an IANA name"),
        ("26 November 2026 15:00 Europe/Munich", "time zone 'Europe/Munich' is unknown. Give an IANA name"),
        ("26 November 2026 25:00 UTC", "'25:00' is not on the clock"),
        ("26 November 2026 13pm UTC", "'13pm' is not on the clock"),
        ("last week 15:00 UTC", "has a clock and no day"),
        ("29 March 2026 02:30 Europe/Berlin", "does not exist in Europe/Berlin, where clocks go forward. Give 2026-03-29T01:30+01:00 or 2026-03-29T03:30+02:00"),
        ("25 October 2026 02:30 Europe/Berlin", "is twice in Europe/Berlin, where clocks go back. Give 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00"),
        ("2026-03-05T10:00:00", "has no time zone. Write '2026-03-05T10:00:00Z'"),
        ("2026-13", "is no ISO 8601 time"),
        ("0000", "is no ISO 8601 time"),
        ("0d", "is no age"),
        ("0 days ago", "'0 days ago' is no age"),
        ("last 0 weeks", "is no age"),
    ],
)  # fmt: skip
def test_what_has_two_readings_or_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidError) as error:
        span_of(text, NOW, "valid")
    assert str(error.value).startswith("valid ") or text in str(error.value)
    assert words in str(error.value)
    assert looks_like_time(text)


@pytest.mark.parametrize(
    ("text", "at", "as_of"),
    [
        ("end of last month", "2026-03-01", "2026-02-28 23:59:59.999999Z"),
        ("the end of the year", "2027-01-01", "2026-12-31 23:59:59.999999Z"),
        ("until the end of 2025", "2026-01-01", "2025-12-31 23:59:59.999999Z"),
        ("end of 2026-02", "2026-03-01", "2026-02-28 23:59:59.999999Z"),
        ("End of the week", "2026-03-23", "2026-03-22 23:59:59.999999Z"),
        ("by the end of Q3 2026", "2026-10-01", "2026-09-30 23:59:59.999999Z"),
        ("beginning of next quarter", "2026-04-01", "2026-04-01"),
        ("at the start of March 2025", "2025-03-01", "2025-03-01"),
    ],
)
def test_an_end_is_the_instant_after_a_span_and_as_of_it_the_last_one(text: str, at: str, as_of: str) -> None:
    for what in ("valid_from", "valid_to", "since", "until"):
        assert at == exactly(resolve(text, what, NOW)), what
    assert as_of == exactly(resolve(text, "valid", NOW))


def test_an_end_of_a_month_without_a_year_is_recorded_only_with_one() -> None:
    assert "2025-11-30 23:59:59.999999Z" == exactly(resolve("end of November", "valid", NOW))
    with pytest.raises(InvalidError, match="may mean 2025-12-01 or 2026-12-01"):
        resolve("end of November", "valid_to", NOW)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Monday last week", "2026-03-09"),
        ("on Friday of last week", "2026-03-13"),
        ("Tuesday next week", "2026-03-24"),
        ("Friday of this week", "2026-03-20"),
    ],
)
def test_a_day_of_a_week_has_one_reading(text: str, day: str) -> None:
    for what in ("valid_from", "occurred_at", "since"):
        assert day == exactly(resolve(text, what, NOW))
    assert day == days(f"what happened {text}?")[0]


@pytest.mark.parametrize(
    "text",
    ["", "soon", "7 days", "7D", "90s", "1.5 hours ago", "some days ago", "release 10 am", "team/alpha", "marching", "ontoday", "noon", "15:00 UTC",
     "end of the sprint", "end of 3 days ago", "the end", "start of now", "summer 2024", "v1.2", "Monday meeting", "-1d", "26 November 26", "next release"],
)  # fmt: skip
def test_any_other_text_is_no_time(text: str) -> None:
    assert span_of(text, NOW) is None
    assert not looks_like_time(text)


def test_time_begins_with_the_year_1_and_ends_with_9999() -> None:
    assert (BEGINNING, instant("0002-01-01")) == span_of("0001", NOW)[:2]
    assert (instant("9999-12-31"), OPEN) == span_of("9999-12-31", NOW)[:2]
    assert (BEGINNING, BEGINNING) == span_of("999999999 years ago", NOW)[:2]
    assert (OPEN, OPEN) == span_of("in 999999999 months", NOW)[:2]
    assert (BEGINNING, BEGINNING) == span_of("yesterday", BEGINNING)[:2]
    assert OPEN == span_of("tomorrow", instant("9999-12-31T12:00:00Z")).end
    for zone in ("Asia/Tokyo", "America/New_York"):
        for text in ("0001-01-01", "9999-12-31"):
            found = span_of(f"{text} {zone}", NOW)
            assert BEGINNING <= found.start <= found.end <= OPEN


# ---------------------------------------------------------------- which instant is meant


@pytest.mark.parametrize(
    ("what", "value", "expected"),
    [
        ("valid", "2026-02", "2026-02-28T23:59:59.999999Z"),
        ("tx", "2026-02", "2026-02-28T23:59:59.999999Z"),
        ("valid", date(2026, 2, 28), "2026-02-28T23:59:59.999999Z"),
        ("valid", moment(instant("2026-02-28")), "2026-02-28T00:00:00Z"),
        ("valid", "2025", "2025-12-31T23:59:59.999999Z"),
        ("valid", "today", "2026-03-18T10:00:00Z"),
        ("tx", "today", "2026-03-18T09:00:00Z"),
        ("tx", "this year", "2026-03-18T09:00:00Z"),
        ("tx", "now", "2026-03-18T09:00:00Z"),
        ("valid", "2026-03", "2026-03-18T10:00:00Z"),
        ("valid", "last 7 days", "2026-03-18T10:00:00Z"),
        ("valid", "yesterday", "2026-03-17T23:59:59.999999Z"),
        ("valid", "2026-03-18T08:00Z", "2026-03-18T08:00:00Z"),
        ("valid", "tomorrow", "2026-03-19T23:59:59.999999Z"),
        ("valid", "9999", "9999-12-31T23:59:59.999998Z"),
        ("since", "2026-02", "2026-02-01T00:00:00Z"),
        ("until", "2026-02", "2026-03-01T00:00:00Z"),
        ("until", date(2026, 2, 28), "2026-03-01T00:00:00Z"),
        ("until", "2026-02-28T12:00Z", "2026-02-28T12:00:00Z"),
        ("recorded_until", "yesterday", "2026-03-18T00:00:00Z"),
        ("valid_from", "2026-02", "2026-02-01T00:00:00Z"),
        ("valid_from", "last Friday", "2026-03-13T00:00:00Z"),
        ("valid_from", "since February 2026", "2026-02-01T00:00:00Z"),
        ("valid_to", date(2026, 2, 28), "2026-02-28T00:00:00Z"),
        ("occurred_at", "2 weeks ago", "2026-03-04T10:00:00Z"),
    ],
)
def test_the_argument_says_which_instant_of_a_span_is_meant(what: str, value: object, expected: str) -> None:
    axis = "tx" if what == "tx" else "valid"
    known = instant("2026-03-18T09:00:00Z") if what == "tx" else None

    assert expected == iso(resolve(value, what, NOW, axis=axis, present=known))


@pytest.mark.parametrize("text", ["26 November", "March", "Friday", "Q2", "26 November 15:00 UTC"])
def test_what_is_recorded_names_its_year_or_week(text: str) -> None:
    assert resolve(text, "valid", NOW) <= NOW
    with pytest.raises(
        InvalidError, match=rf"valid_from '{text}' may mean 202\d-.* or 202\d-.*\. Give the one"
    ):
        resolve(text, "valid_from", NOW)
