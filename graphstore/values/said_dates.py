"""Find the times that a question names in words, as periods: `in March`, `last week`, `on 5 May 2023`, `two days ago`. Pure; days are of UTC."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from graphstore.values.period import Instant, instant, moment

__all__ = ["said_dates"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner январь января январе", "february feb februar февраль февраля феврале", "march mar märz март марта марте",
            "april apr апрель апреля апреле", "may mai май мая мае", "june jun juni июнь июня июне", "july jul juli июль июля июле",
            "august aug август августа августе", "september sep sept сентябрь сентября сентябре", "october oct oktober okt октябрь октября октябре",
            "november nov ноябрь ноября ноябре", "december dec dezember dez декабрь декабря декабре",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_DAYS = {
    name: number
    for number, names in enumerate(
        ("monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag", "friday freitag", "saturday samstag", "sunday sonntag")
    )
    for name in names.split()
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_NUMBERS |= {"a": 1, "an": 1}
_BACK = 12  # years to which a month without a year may refer
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_DAY_MONTH = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_MONTH})\b\.?,?(?: (?P<year>\d{{4}}))?",
    re.I,
)
_MONTH_DAY = re.compile(
    rf"\b(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}}))?", re.I
)
_IN_MONTH = re.compile(
    rf"\b(?:(in|of|since|during|last|this|im|seit|в|early|late|mid|for) )?({_MONTH})\b\.?,?(?: (?:of )?(\d{{4}}))?",
    re.I,
)
_SEASON = re.compile(
    rf"\b(?:(last|this|in|the|during) )+({'|'.join(_SEASONS)})\b(?: (?:of )?(\d{{4}}))?", re.I
)
_YEAR = re.compile(r"\b(?:in|during|of|since|im jahr|в) (\d{4})\b", re.I)
_LAST = re.compile(rf"\b(last|this|past|previous) (week|month|year|weekend|night|{'|'.join(_DAYS)})\b", re.I)
_AGO = re.compile(rf"\b(\d+|{'|'.join(_NUMBERS)}) (day|week|month|year)s? ago\b", re.I)
_WORD = re.compile(r"\b(today|yesterday|gestern|heute|вчера|сегодня)\b", re.I)
_NAMED = frozenset({"may", "mar", "mai", "jan", "sep", "dec", "mae"})  # months only with a word that says so


def said_dates(text: str, now: Instant) -> list[tuple[Instant, Instant]]:
    """Return the periods [from, to) that a text names, relative to `now`. A month or a day without a year means that of each of the last years."""
    today = moment(now).date()
    found: list[tuple[date, date]] = []
    rest = text
    for pattern, read in (
        (_ISO, _of_iso), (_DAY_MONTH, _of_day), (_MONTH_DAY, _of_day), (_IN_MONTH, _of_month), (_SEASON, _of_season), (_YEAR, _of_year),
        (_LAST, _of_last), (_AGO, _of_ago), (_WORD, _of_word),
    ):  # fmt: skip
        for match in pattern.finditer(rest):
            try:
                found += read(match, today)
            except (ValueError, OverflowError):
                continue  # no such day
        rest = pattern.sub(" ", rest) if pattern is not _IN_MONTH else rest
    return [(_at(since), _at(until)) for since, until in dict.fromkeys(found)]


def _at(day: date) -> Instant:
    return instant(datetime(day.year, day.month, day.day, tzinfo=UTC))


def _years(year: str | None, today: date) -> Iterator[int]:
    if year:
        yield int(year)
    else:
        yield from range(today.year, today.year - _BACK, -1)


def _month(year: int, month: int, months: int = 1) -> tuple[date, date]:
    last = year * 12 + month - 1 + months
    return date(year, month, 1), date(last // 12, last % 12 + 1, 1)


def _one(day: date, days: int = 1) -> tuple[date, date]:
    return day, day + timedelta(days=days)


def _of_iso(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    year, month, day = match.groups()
    return [_one(date(int(year), int(month), int(day))) if day else _month(int(year), int(month))]


def _of_day(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    month, day = _MONTHS[match["month"].lower()], int(match["day"])
    years = (year for year in _years(match["year"], today) if day <= monthrange(year, month)[1])
    return [_one(date(year, month, day)) for year in years]


def _of_month(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    lead, name, year = match.groups()
    if not lead and not year and (name.lower() in _NAMED or not name[0].isupper()):
        return []
    return [_month(each, _MONTHS[name.lower()]) for each in _years(year, today)]


def _of_season(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    return [_month(each, _SEASONS[match[2].lower()], 3) for each in _years(match[3], today)]


def _of_year(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    return [(date(int(match[1]), 1, 1), date(int(match[1]) + 1, 1, 1))]


def _of_last(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    before, unit = match[1].lower() != "this", match[2].lower()
    monday = today - timedelta(days=today.weekday())
    if unit == "week":
        return [_one(monday - timedelta(days=7 * before), 7)]
    if unit == "weekend":
        return [_one(monday + timedelta(days=5 - 7 * before), 2)]
    if unit == "night":
        return [_one(today - timedelta(days=1), 2)]
    if unit == "month":
        whole = today.year * 12 + today.month - 1 - before
        return [_month(whole // 12, whole % 12 + 1)]
    if unit == "year":
        return [(date(today.year - before, 1, 1), date(today.year - before + 1, 1, 1))]
    back = (today.weekday() - _DAYS[unit]) % 7 or 7 * before
    return [_one(today - timedelta(days=back))]


def _of_ago(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    said = match[1].lower()
    many = int(said) if said.isdecimal() else _NUMBERS[said]
    days, about = {"day": (1, 0), "week": (7, 3), "month": (30, 10), "year": (365, 60)}[match[2].lower()]
    middle = today - timedelta(days=many * days)
    return [(middle - timedelta(days=about), middle + timedelta(days=about + 1))]


def _of_word(match: re.Match[str], today: date) -> list[tuple[date, date]]:
    return [_one(today - timedelta(days=match[1].lower() in ("yesterday", "gestern", "вчера")))]
