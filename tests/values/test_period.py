"""Instants and the algebra of half-open periods; each test is named for the picture it draws."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.errors import InvalidError
from graphstore.values.period import (
    BEGINNING,
    END_OF_TIME,
    EPOCH,
    OPEN,
    coalesce,
    during,
    end_moment,
    exactly,
    instant,
    iso,
    moment,
    overlap,
    period,
    recorded,
    when,
    without,
    without_all,
)

MIDNIGHT = datetime(2026, 1, 30, tzinfo=UTC)

small = st.integers(0, 12)
periods = st.tuples(small, small).filter(lambda pair: pair[0] < pair[1])
many = st.lists(periods, max_size=6)


def cells(*spans: tuple[int, int]) -> set[int]:
    return {at for start, stop in spans for at in range(start, stop)}


# ---------------------------------------------------------------------- instants


@pytest.mark.parametrize(
    "same",
    [
        "2026-01-30",
        " 2026-01-30 ",
        "2026-01-30T00:00:00Z",
        "2026-01-30T00:00:00+00:00",
        "2026-01-30T03:00:00+03:00",
        "2026-01-29 19:00:00-05:00",
        date(2026, 1, 30),
        MIDNIGHT,
        MIDNIGHT.astimezone(timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_every_way_to_say_midnight_utc_is_one_instant(same):
    assert moment(instant(same)) == MIDNIGHT


@pytest.mark.parametrize(
    "naive", [datetime(2026, 1, 30), datetime(2026, 1, 30, 12), "2026-01-30T12:00:00", "2026-01-30 12:00"]
)
def test_naive_time_is_refused_with_the_fix(naive):
    with pytest.raises(InvalidError, match=r"has no time zone.*(\+00:00|Z)"):
        instant(naive, "valid_from")


def test_a_naive_text_is_told_to_be_written_as_utc():
    for naive in ("2026-01-30T12:00:00", "20260130T12"):
        with pytest.raises(InvalidError, match=f"Write '{naive}Z' for UTC"):
            instant(naive)


def test_a_zone_that_tells_no_offset_is_no_zone():
    class Nowhere(tzinfo):
        def utcoffset(self, at: datetime | None) -> None:
            return None

    with pytest.raises(InvalidError, match="has no time zone"):
        instant(datetime(2026, 1, 30, tzinfo=Nowhere()))


@pytest.mark.parametrize(
    "wrong", ["soon", "", "2026-13-01", "30.01.2026", "2026-01-30T25:00:00Z", 5, 1.5, None, b"2026", True]
)
def test_what_is_no_time_is_refused_by_name(wrong):
    with pytest.raises(InvalidError, match="valid_to"):
        instant(wrong, "valid_to")


def test_microseconds_survive_the_round_trip():
    at = datetime(2026, 1, 30, 23, 59, 59, 999_999, tzinfo=UTC)

    assert at == moment(instant(at))
    assert instant(at + timedelta(microseconds=1)) - instant(at) == 1


def test_before_1970_is_negative_and_exact():
    assert instant("1970-01-01") == 0
    assert instant(EPOCH - timedelta(microseconds=1)) == -1
    assert instant("0001-01-01") == BEGINNING


def test_the_words_for_no_bound_are_read_where_they_can_be_and_the_beginning_is_shown_as_its_own() -> None:
    assert (BEGINNING, BEGINNING) == (
        instant("beginning", "valid_from"),
        instant(" Beginning ", "valid_from"),
    )
    assert OPEN == instant("open", "valid_to")
    for word, what in (("beginning", "valid_to"), ("beginning", "tx_from"), ("open", "valid_from")):
        with pytest.raises(InvalidError, match="is no ISO 8601 time"):
            instant(word, what)
    assert ("beginning", "beginning") == (when(BEGINNING), when(moment(BEGINNING)))
    assert "beginning → 2026-01-30" == during(moment(BEGINNING), datetime(2026, 1, 30, tzinfo=UTC))
    assert "0001-01-01 00:00:00.000001Z" == exactly(BEGINNING + 1)


def test_last_instant_reads_as_an_open_end():
    assert instant(END_OF_TIME) == OPEN
    assert end_moment(OPEN) is None
    assert end_moment(instant(MIDNIGHT)) == MIDNIGHT


@pytest.mark.parametrize(
    "edge",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        "9999-12-31T23:59:59-05:00",
        "0001-01-01T00:00:00+05:00",
    ],
)
def test_time_whose_utc_leaves_the_calendar_is_refused(edge):
    with pytest.raises(InvalidError, match="outside the years"):
        instant(edge)


def test_the_first_and_the_last_instant_can_be_said_in_any_zone():
    east, west = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))
    assert instant(datetime(1, 1, 1, 1, tzinfo=east)) == BEGINNING
    assert instant(datetime(9999, 12, 31, 22, 59, 59, 999999, tzinfo=west)) == OPEN


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_aware_datetime_round_trips_and_so_does_its_iso_text(at):
    assert at == moment(instant(at))
    assert instant(at) == instant(iso(instant(at)))


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_of_the_journal_is_read_as_any_other(at):
    assert instant(at) == recorded(iso(instant(at)))


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-30",
        "2026-01-30T12:00:00+01:00",
        " 2026-01-30T12:00Z",
        "2026-01-30T12:00",
        "0001-01-01T00:00:00+05:00",
        "",
        "open",
        "Z",
    ],
)
def test_other_text_in_the_journal_is_what_it_is_anywhere(text):
    try:
        expected = instant(text)
    except InvalidError as error:
        with pytest.raises(InvalidError, match=re.escape(str(error))):
            recorded(text)
    else:
        assert expected == recorded(text)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_instants_keep_the_order_of_time(a, b):
    assert (a < b) == (instant(a) < instant(b))


# ---------------------------------------------------------------------- one period


def test_empty_period_is_refused_by_name():
    with pytest.raises(InvalidError, match="empty period"):
        period(5, 5)


def test_inverted_period_is_refused_by_name():
    with pytest.raises(InvalidError, match="inverted period"):
        period(6, 5)


def test_a_period_is_given_back():
    assert (5, 6) == period(5, 6)


def test_period_from_the_end_of_time_is_refused():
    with pytest.raises(InvalidError, match=r"empty period.*open"):
        period(OPEN, OPEN)


# ---------------------------------------------------------------------- two periods


def test_periods_touch_without_overlap():
    assert overlap((0, 5), (5, 9)) is None
    assert without((0, 5), (5, 9)) == [(0, 5)]
    assert without((5, 9), (0, 5)) == [(5, 9)]


def test_periods_lie_apart():
    assert overlap((0, 2), (5, 9)) is None
    assert without((0, 2), (5, 9)) == [(0, 2)]


def test_newer_period_covers_older():
    assert overlap((3, 5), (0, 9)) == (3, 5)
    assert without((3, 5), (0, 9)) == []


def test_newer_period_lies_inside_older():
    assert overlap((0, 9), (3, 5)) == (3, 5)
    assert without((0, 9), (3, 5)) == [(0, 3), (5, 9)]


def test_newer_period_covers_the_older_end():
    assert overlap((0, 5), (3, 9)) == (3, 5)
    assert without((0, 5), (3, 9)) == [(0, 3)]


def test_newer_period_covers_the_older_start():
    assert overlap((3, 9), (0, 5)) == (3, 5)
    assert without((3, 9), (0, 5)) == [(5, 9)]


def test_newer_period_equals_older():
    assert overlap((3, 5), (3, 5)) == (3, 5)
    assert without((3, 5), (3, 5)) == []


def test_newer_period_shares_the_older_start():
    assert without((0, 9), (0, 3)) == [(3, 9)]


def test_newer_period_shares_the_older_end():
    assert without((0, 9), (3, 9)) == [(0, 3)]


def test_open_period_cut_in_the_middle_stays_open():
    assert without((BEGINNING, OPEN), (3, 5)) == [(BEGINNING, 3), (5, OPEN)]


def test_one_instant_can_be_cut_out():
    assert without((0, 9), (4, 5)) == [(0, 4), (5, 9)]


# ---------------------------------------------------------------------- many periods


def test_holes_side_by_side_leave_the_ends():
    assert without_all((0, 9), [(2, 4), (4, 6)]) == [(0, 2), (6, 9)]


def test_holes_apart_leave_what_is_between():
    assert without_all((0, 9), [(6, 7), (2, 3)]) == [(0, 2), (3, 6), (7, 9)]


def test_no_holes_leave_the_whole():
    assert without_all((0, 9), []) == [(0, 9)]


def test_touching_periods_become_one():
    assert coalesce([(5, 9), (0, 5)]) == [(0, 9)]


def test_overlapping_periods_become_one():
    assert coalesce([(0, 6), (3, 9)]) == [(0, 9)]


def test_covered_period_disappears_in_the_one_that_covers_it():
    assert coalesce([(3, 5), (0, 9), (4, 6)]) == [(0, 9)]


def test_gap_is_kept():
    assert coalesce([(4, 9), (0, 3)]) == [(0, 3), (4, 9)]


def test_nothing_becomes_nothing():
    assert coalesce([]) == []


# ---------------------------------------------------------------------- against dense cells


@given(periods, periods)
def test_overlap_is_the_common_cells(a, b):
    both = overlap(a, b)

    assert cells(a) & cells(b) == (cells(both) if both else set())
    assert both == overlap(b, a)


@given(periods, periods)
def test_pieces_and_overlap_make_up_the_whole(whole, hole):
    pieces = without(whole, hole)
    both = overlap(whole, hole)

    assert len(pieces) <= 2
    assert all(start < stop for start, stop in pieces)
    assert sorted(cells(whole)) == sorted(
        at for part in [*pieces, *([both] if both else [])] for at in range(*part)
    )


@given(periods, many)
def test_without_all_is_the_cells_in_no_hole(whole, holes):
    pieces = without_all(whole, holes)

    assert cells(whole) - cells(*holes) == cells(*pieces)
    assert pieces == sorted(pieces)
    assert all(start < stop for start, stop in pieces)


@given(many)
def test_coalesced_periods_cover_the_same_cells_and_never_touch(spans):
    merged = coalesce(spans)

    assert cells(*spans) == cells(*merged)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(merged))
    assert merged == coalesce(merged)
    assert merged == coalesce(reversed(spans))


# ---------------------------------------------------------------------- as a person reads them


@pytest.mark.parametrize(
    ("at", "short", "exact"),
    [
        ("2026-01-02", "2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04+01:00", "2026-01-02 02:04Z", "2026-01-02 02:04Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02 03:04:05Z", "2026-01-02 03:04:05Z"),
        ("2026-01-02T03:04:00.5Z", "2026-01-02 03:04Z", "2026-01-02 03:04:00.5Z"),
        ("2026-01-02T00:00:00.000001Z", "2026-01-02", "2026-01-02 00:00:00.000001Z"),
    ],
)
def test_an_instant_has_one_spelling_and_its_fraction_where_it_must_be_exact(at, short, exact):
    assert (short, exact) == (when(instant(at)), exactly(instant(at)))
    assert (short, exact) == (when(moment(instant(at))), exactly(moment(instant(at))))


def test_an_open_end_is_one_sign():
    assert ("…", "…", "never", "…") == (when(OPEN), when(None), when(None, "never"), exactly(OPEN))


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2026-01-30T12:00Z", "2026-01-30T12:30Z", "2026-01-30 12:00Z → 12:30Z"),
        ("2026-01-30T09:00Z", "2026-01-30T12:30Z", "2026-01-30 09:00Z → 12:30Z"),
        ("2026-01-30T12:00Z", "2026-01-31T12:00Z", "2026-01-30 12:00Z → 2026-01-31 12:00Z"),
        ("2026-01-30", "2026-01-30T12:00Z", "2026-01-30 → 2026-01-30 12:00Z"),
        ("2026-01-30T12:00Z", "open", "2026-01-30 12:00Z → …"),
    ],
)
def test_a_period_within_a_day_names_the_day_once(start, end, told):
    assert told == during(moment(instant(start)), end_moment(instant(end, "valid_to")))


@given(st.datetimes(timezones=st.just(UTC), max_value=datetime(9999, 12, 30)))
def test_an_exact_instant_given_back_is_the_same(at):
    assert at == moment(instant(exactly(at)))
