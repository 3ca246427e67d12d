"""The times a question names in words."""

from __future__ import annotations

import pytest

from graphstore.values.period import instant, moment
from graphstore.values.said_dates import said_dates

NOW = instant("2026-03-18T10:00:00Z")  # a Wednesday


def first(text: str) -> tuple[str, str]:
    since, until = said_dates(text, NOW)[0]
    return str(moment(since).date()), str(moment(until).date())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what happened in March?", ("2026-03-01", "2026-04-01")),
        ("Was geschah im März 2025?", ("2025-03-01", "2025-04-01")),
        ("on 5 May 2023", ("2023-05-05", "2023-05-06")),
        ("May 5th, 2023", ("2023-05-05", "2023-05-06")),
        ("2025-03", ("2025-03-01", "2025-04-01")),
        ("since 2025-03-09", ("2025-03-09", "2025-03-10")),
        ("in 2024", ("2024-01-01", "2025-01-01")),
        ("last week", ("2026-03-09", "2026-03-16")),
        ("last month", ("2026-02-01", "2026-03-01")),
        ("this year", ("2026-01-01", "2027-01-01")),
        ("last Friday", ("2026-03-13", "2026-03-14")),
        ("two weeks ago", ("2026-03-01", "2026-03-08")),
        ("yesterday", ("2026-03-17", "2026-03-18")),
        ("in the summer of 2024", ("2024-06-01", "2024-09-01")),
    ],
)
def test_time_in_words_is_a_period(text: str, expected: tuple[str, str]) -> None:
    assert expected == first(text)


def test_month_without_a_year_may_be_of_any_of_the_last_years() -> None:
    assert {2026, 2025, 2024} <= {moment(since).year for since, _ in said_dates("in May", NOW)}


@pytest.mark.parametrize(
    "text", ["may I deploy", "they march on", "on 31 February 2024", "error 2024", "", "in 99999"]
)
def test_what_is_no_time_names_none(text: str) -> None:
    assert [] == said_dates(text, NOW)
