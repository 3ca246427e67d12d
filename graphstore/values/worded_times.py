"""Read one time from a text: `2026-03`, `7d`, `last Friday`, `3 months ago`, `since March`, `26 November 2026 15:00 Europe/Berlin`. Pure: the present is an
argument.

Every text means a span of time. `span_of` reads a text that is one time, such as an argument; `spans_in` finds the times that a question names. Both use the
same patterns. Days are days of UTC, unless the text names a time zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from importlib import import_module
from operator import itemgetter
from typing import NamedTuple

from graphstore.errors import InvalidError
from graphstore.values.period import BEGINNING, OPEN, Instant, instant, moment

__all__ = ["AGE", "AGES", "UNITS", "Span", "months_later", "span_of", "spans_in"]


class Span(NamedTuple):
    """The instants that a text means, [start, end); both are equal if it means one instant."""

    start: Instant
    end: Instant
    other: Instant | None = None
    """Where it would start in the other reading of a text that names no year or no week, as `Friday` does."""
    slack: int = 0
    """The days before and after that a question may mean too: `2 weeks ago` is never exact there."""
    is_end: bool = False
    """It is the instant after the last one of a span, as `end of March`. Read as of it, that last one is meant."""


UNITS = {"second": (0, 1), "minute": (0, 60), "hour": (0, 3600), "day": (0, 86_400), "week": (0, 604_800), "month": (1, 0), "quarter": (3, 0), "year": (12, 0)}  # fmt: skip
"""The months and the seconds of each unit."""
_SHORT_UNITS = {"sec": "second", "min": "minute", "hr": "hour", "yr": "year"}
AGES = {"m": "minute", "h": "hour", "d": "day", "w": "week"}
"""The letters of an age, each with its unit."""
AGE = re.compile(r"([0-9]{1,9})([mhdw])\Z")
_SHORT = ("second", "minute", "hour", "day")  # `last day` is the last 24 hours
_SLACK = {"week": 3, "month": 10, "quarter": 20, "year": 60}  # days
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
        (
            "monday mon montag", "tuesday tue tues dienstag", "wednesday wed mittwoch", "thursday thu thur thurs donnerstag",
            "friday fri freitag", "saturday sat samstag sonnabend", "sunday sun sonntag",
        )
    )
    for name in names.split()
}  # fmt: skip
_WORDS = {
    "today": 0, "heute": 0, "сегодня": 0, "yesterday": -1, "gestern": -1, "вчера": -1, "tomorrow": 1,
    "day before yesterday": -2, "day after tomorrow": 2, "vorgestern": -2, "übermorgen": 2,
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {"a": 1, "an": 1} | {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_BACK = 12  # years to which a month without a year may refer in a question
_NAMES = frozenset({"may", "mar", "mai", "jan", "sep", "dec", "mae"})  # months only with a word that says so
_HOUR, _DAY = 3_600_000_000, 86_400_000_000


def span_of(text: str, now: Instant, what: str = "time") -> Span | None:
    """Return what a text means that is one time: ISO 8601, an age such as `7d`, a numeric date, or words; None if it is no time.

    Raises InvalidError for a text with two readings, a date that is not in the calendar, and a clock without a known time zone.
    """
    phrase = " ".join(text.split())
    zoned = _ZONED.fullmatch(phrase)
    if _ISO.match(phrase) and zoned is None:
        return _iso(phrase, what)
    since = _SINCE.match(phrase)
    if since is not None:
        found = span_of(phrase[since.end() :], now, what)
        return None if found is None else Span(found.start, max(now, found.start) + 1)
    edge = _EDGE.match(phrase)
    if edge is not None:
        found = span_of(_THE_UNIT.sub("this ", phrase[edge.end() :]), now, what)
        return None if found is None else _edge(found, is_end=edge["edge"].lower() == "end")
    try:
        if AGE.match(phrase):
            return _aged(phrase, now)
        found = None if zoned is None else _clocked(zoned["rest"], now, zoned["zone"])
        return _clocked(phrase, now, None) if found is None else found
    except InvalidError as error:
        raise InvalidError(f"{what} {error}") from None


def spans_in(text: str, now: Instant) -> list[tuple[Instant, Instant]]:
    """Return the periods [from, to) of whole days that a question names. A month or a day without a year means that of each of the last years."""
    calendar = _Calendar(now, UTC)
    found: list[Span] = []
    rest = text
    for pattern, read in _phrases():
        for match in pattern.finditer(rest):
            is_since = _SINCE.fullmatch("".join(rest[: match.start()].split()[-1:]) + " ") is not None
            if not (is_since or _is_sure(match, read)):
                continue
            with suppress(InvalidError, ValueError, OverflowError):  # no such day, or two readings
                spans = read(match, calendar)
                found += [Span(_begun(spans, now).start, now + 1)] if is_since and spans else spans
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    return list(dict.fromkeys(map(_whole_days, found)))


def _is_sure(match: re.Match[str], read: _Read) -> bool:
    """Return True if a phrase inside a question is a time: `may` and `march` are verbs too."""
    if read is _of_month:
        name = match["month"]
        return bool(match["lead"] or match["year"]) or (name.lower() not in _NAMES and name[0].isupper())
    return read is not _of_weekday or match["on"] is not None


def _whole_days(span: Span) -> tuple[Instant, Instant]:
    start = span.start - span.start % _DAY - span.slack * _DAY
    last = max(span.end - 1, span.start)
    return max(BEGINNING, start), min(OPEN, last - last % _DAY + (span.slack + 1) * _DAY)


def months_later(at: Instant, months: int) -> Instant:
    """Return the instant some months later (earlier, if negative), on the last day of a shorter month. Beyond the years 1 to 9999: the edge of time."""
    start = moment(at)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= datetime.max.year:
        return OPEN if months > 0 else BEGINNING
    return instant(start.replace(year=year, month=month + 1, day=min(start.day, _days_of(year, month + 1))))


def _days_of(year: int, month: int) -> int:
    return 31 if month == 12 else (date(year, month + 1, 1) - timedelta(days=1)).day


# ---------------------------------------------------------------- one time


def _iso(text: str, what: str) -> Span:
    """Return the span of an ISO 8601 text: a year, month, week, day or hour; an instant otherwise."""
    calendar = _Calendar(0, UTC)
    try:
        if match := _ISO_MONTH.fullmatch(text):
            first = date(int(match[1]), int(match[2] or 1), 1)
            return calendar.months(first.year * 12 + first.month - 1, 1 if match[2] else 12)
        if match := _ISO_WEEK.fullmatch(text):
            first = date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1))
            return calendar.days(first.toordinal(), 1 if match[3] else 7)
        if _ISO_DAY.fullmatch(text):
            return calendar.days(date.fromisoformat(text).toordinal())
        datetime.fromisoformat(text)
    except ValueError:
        raise InvalidError(f"{what} {text!r} is no ISO 8601 time.") from None
    at = instant(text, what)
    return Span(at, min(OPEN, at + _HOUR) if _ISO_HOUR.search(text) else at)


def _edge(span: Span, *, is_end: bool) -> Span | None:
    """Return the instant at which a span begins, or the one after its last; None where it is an instant itself, which has neither."""
    length = span.end - span.start
    if length < _HOUR:
        return None
    if not is_end:
        return span._replace(end=span.start)
    other = span.other
    if other is not None:
        other = months_later(other, 1) if length > 7 * _DAY else other + length
    return Span(span.end, span.end, other, is_end=True)


def _aged(text: str, now: Instant) -> Span:
    count, seconds = int(text[:-1]), UNITS[AGES[text[-1]]][1]
    if not count:
        raise InvalidError(f"{text!r} is no age.")
    at = max(BEGINNING, now - count * seconds * 1_000_000)
    return Span(at, at)


def _clocked(phrase: str, now: Instant, zone: str | None) -> Span | None:
    """Return the span of a phrase with a clock or without. `zone`: the time zone that was written after it."""
    found = _CLOCKED.fullmatch(phrase)
    day_part, clock = (phrase, None) if found is None else (found["rest"], found["clock"])
    if _phrase(day_part, _Calendar(now, UTC)) is None:
        return None
    if clock is not None and zone is None:
        raise InvalidError(
            f"{phrase!r} has no time zone. Write {phrase + ' UTC'!r}, or another zone, such as Europe/Berlin or +02:00."
        )
    calendar = _Calendar(now, UTC if zone is None else _zone(zone))
    span = _phrase(day_part, calendar)
    if span is None or clock is None:
        return span
    day = calendar.local(span.start).date()
    if calendar.days(day.toordinal())[:2] != span[:2]:
        raise InvalidError(
            f"{phrase!r} has a clock and no day. Give both, as in '26 November 2026 15:00 UTC'."
        )
    at = calendar.at(day, _clock(clock), phrase)
    return Span(at, at, span.other)


def _phrase(phrase: str, calendar: _Calendar) -> Span | None:
    """Return the span of a phrase without clock and zone; of several readings the latest that has begun."""
    for text in dict.fromkeys((phrase, _LEAD.sub("", phrase, count=1))):
        for pattern, read in _phrases():
            match = pattern.fullmatch(text)
            if match is None or read is _of_season:
                continue
            try:
                spans = read(match, calendar)
            except InvalidError:
                raise
            except (ValueError, OverflowError):
                spans = []
            if not spans:
                raise InvalidError(
                    f"{phrase!r} is not in the calendar. Give a date that is, such as '2026-01-30'."
                )
            return _begun(spans, calendar.now)
    return None


def _begun(spans: list[Span], now: Instant) -> Span:
    """Return the latest of the spans that has begun, and where the next one starts as its other reading."""
    begun = [each for each in spans if each.start <= now]
    if len(spans) == 1 or not begun:
        return min(spans, key=itemgetter(0))
    found = max(begun, key=itemgetter(0))
    return found._replace(other=min((each.start for each in spans if each.start > found.start), default=None))


def _zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name or an offset. Raises InvalidError for an unknown one, and for an abbreviation."""
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset is not None and int(offset[2]) < 24 and int(offset[3]) < 60:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    if name in ("Z", "UTC", "GMT"):
        return UTC
    with suppress(KeyError, ValueError, OSError):
        if "/" in name:
            return import_module("zoneinfo").ZoneInfo(name)  # type: ignore[no-any-return]
    what = "unknown" if "/" in name else "an abbreviation, which several zones share"
    raise InvalidError(
        f"time zone {name!r} is {what}. Give an IANA name, such as Europe/Berlin, or an offset, such as +01:00."
    )


def _clock(text: str) -> time:
    """Return the time of day: `15:00`, `3pm`, `noon`."""
    lower = text.lower().replace(" ", "")
    if lower in ("noon", "midnight"):
        return time(12 if lower == "noon" else 0)
    half = lower[-2:] if lower.endswith("m") else ""
    hour, *rest = lower.removesuffix(half).split(":")
    number = int(hour)
    if half:
        number = number % 12 + 12 * (half == "pm") if 1 <= number <= 12 else -1
    try:
        return time.fromisoformat(":".join((f"{number:02}", *(rest or ["00"]))))
    except ValueError:
        raise InvalidError(f"{text!r} is not on the clock. Give 00:00 to 23:59, or 1am to 12pm.") from None


class _Calendar:
    """The days around now in one time zone. Days outside the years 1 to 9999 are the beginning and the end of time."""

    def __init__(self, now: Instant, zone: tzinfo) -> None:
        self.now, self.zone = now, zone
        self.today = self.local(now).date()
        self.month = self.today.year * 12 + self.today.month - 1
        self.monday = self.today.toordinal() - self.today.weekday()

    def local(self, at: Instant) -> datetime:
        """Return the local time of an instant."""
        try:
            return moment(at).astimezone(self.zone)
        except OverflowError:
            return moment(at)

    def midnight(self, day: int) -> Instant:
        """Return the instant at which a day begins. `day`: its number, as of `date.toordinal`."""
        if not 1 <= day <= date.max.toordinal():
            return BEGINNING if day < 1 else OPEN
        try:
            return instant(datetime.combine(date.fromordinal(day), time(), self.zone))
        except InvalidError:  # before the year 1 in UTC, or after 9999
            return BEGINNING if day < 366 else OPEN

    def days(self, day: int, count: int = 1) -> Span:
        """Return some days, from one on."""
        return Span(self.midnight(day), self.midnight(day + count))

    def months(self, month: int, count: int = 1) -> Span:
        """Return some months, from one on. `month`: 12 × year + 0 to 11."""
        return Span(self._first(month), self._first(month + count))

    def _first(self, month: int) -> Instant:
        year, number = divmod(month, 12)
        if not 1 <= year <= date.max.year:
            return BEGINNING if year < 1 else OPEN
        return self.midnight(date(year, number + 1, 1).toordinal())

    def at(self, day: date, clock: time, shown: str) -> Instant:
        """Return the instant of a clock on a day. Raises InvalidError if that day has it twice, or not at all."""
        both = [datetime.combine(day, clock.replace(fold=fold), self.zone) for fold in (0, 1)]
        first, second = (instant(each) for each in both)
        if first == second:
            return first
        if self.local(first).time() == clock:
            ways = " or ".join(each.isoformat(timespec="minutes") for each in both)
            raise InvalidError(f"{shown!r} is twice in {self.zone}, where clocks go back. Give {ways}.")
        ways = " or ".join(self.local(at).isoformat(timespec="minutes") for at in sorted((first, second)))
        raise InvalidError(f"{shown!r} does not exist in {self.zone}, where clocks go forward. Give {ways}.")

    def away(self, count: int, unit: str) -> Instant:
        """Return the instant so many units from now."""
        months, seconds = UNITS[unit]
        at = months_later(self.now, count * months) if months else self.now + count * seconds * 1_000_000
        return min(OPEN, max(BEGINNING, at))

    def rolling(self, count: int, unit: str) -> Span:
        """Return the units from now on, or up to now."""
        other = self.away(count, unit)
        return Span(self.now, other) if count > 0 else Span(other, self.now + 1)


# ---------------------------------------------------------------- the readings of a phrase


def _count(match: re.Match[str]) -> int:
    given = match["count"].lower()
    count = _NUMBERS[given] if given in _NUMBERS else int(given)
    if not count:
        raise InvalidError(f"{match[0]!r} is no age.")
    return count


def _unit(match: re.Match[str]) -> str:
    unit = match["unit"].lower()
    return _SHORT_UNITS.get(unit, unit)


def _of_ago(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    unit = _unit(match)
    at = calendar.away(-_count(match), unit)
    return [Span(at, at, slack=_SLACK.get(unit, 0))]


def _of_ahead(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    at = calendar.away(_count(match), _unit(match))
    return [Span(at, at)]


def _of_rolling(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    step = 1 if match["which"].lower() == "next" else -1
    return [calendar.rolling(step * _count(match), _unit(match))]


def _of_calendar(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    """Return a unit of the calendar: this one, the one before or the one after."""
    unit = match["unit"].lower()
    step = {"this": 0, "current": 0, "next": 1}.get(match["which"].lower(), -1)
    if unit in _DAYS:
        return [_weekday(_DAYS[unit], step, calendar, match[0])]
    if unit in _MONTHS:
        named = calendar.month // 12 * 12 + _MONTHS[unit] - 1
        if (step < 0 and named >= calendar.month) or (step > 0 and named <= calendar.month):
            named += 12 * step
        return [calendar.months(named)]
    if unit == "night":
        evening = calendar.midnight(calendar.today.toordinal() + step) + 18 * _HOUR
        return [Span(evening, evening + 12 * _HOUR)]
    if unit in _SHORT and step:
        return [calendar.rolling(step, unit)]
    if unit == "day":
        return [calendar.days(calendar.today.toordinal())]
    if unit in _SHORT:
        length = UNITS[unit][1] * 1_000_000
        start = calendar.now - calendar.now % length
        return [Span(start, start + length)]
    if unit == "week":
        return [calendar.days(calendar.monday + 7 * step, 7)]
    if unit == "weekend":
        return [calendar.days(calendar.monday + 5 + 7 * step, 2)]
    months = UNITS[unit][0]
    return [calendar.months((calendar.month // months + step) * months, months)]


def _of_weekday_in_week(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    """Return a day of this week, of the one before or of the one after."""
    step = {"this": 0, "current": 0, "next": 7}.get(match["which"].lower(), -7)
    return [calendar.days(calendar.monday + _DAYS[match["weekday"].lower()] + step)]


def _weekday(number: int, step: int, calendar: _Calendar, shown: str) -> Span:
    """Return the last one before today, that of this week, or the next one. Raises InvalidError if `next` may mean that of this week or of the one after."""
    today, day = calendar.today.toordinal(), calendar.monday + number
    if step < 0:
        return calendar.days(today - ((today - day) % 7 or 7))
    if step > 0 and today < day:
        ways = " or ".join(date.fromordinal(each).isoformat() for each in (day, day + 7))
        raise InvalidError(f"{shown!r} may mean {ways}. Give the date.")
    return calendar.days(day + 7 * step)


def _of_word(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    word = match[0].lower().removeprefix("the ")
    if word == "now":
        return [Span(calendar.now, calendar.now)]
    return [calendar.days(calendar.today.toordinal() + _WORDS[word])]


def _of_iso(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    year, month, day = int(match["year"]), int(match["month"]), match["day"]
    first = date(year, month, int(day or 1))
    return [calendar.days(first.toordinal()) if day else calendar.months(year * 12 + month - 1)]


def _of_numeric(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    """Return a date in digits; with dots the day is first. Raises InvalidError if its day and its month can be exchanged."""
    one, two, year = int(match["one"]), int(match["two"]), int(match["year"])
    found = [date(year, two, one)] if two <= 12 else []
    if match["mark"] != "." and one <= 12 and one != two:
        found.append(date(year, one, two))
    if len(found) > 1:
        raise InvalidError(
            f"{match[0]!r} may mean {found[0]} (day first) or {found[1]} (month first). Give the one that is meant."
        )
    return [calendar.days(each.toordinal()) for each in found]


def _years(year: str | None, calendar: _Calendar) -> Iterator[int]:
    """Yield the years that a phrase may mean: without one each of the last years, then the next."""
    this = calendar.today.year
    if year:
        yield int(year)
    else:
        yield from range(this, max(0, this - _BACK), -1)
        yield from range(this + 1, min(this + 2, date.max.year + 1))


def _of_day(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    month, day = _MONTHS[match["month"].lower()], int(match["day"])
    years = _years(match["year"], calendar)
    days = [date(year, month, day) for year in years if 0 < day <= _days_of(year, month)]
    weekday = match["weekday"]
    fitting = [each for each in days if weekday is None or each.weekday() == _DAYS[weekday.lower()]]
    if match["year"] and days and not fitting:
        raise InvalidError(f"{match[0]!r}: {days[0]} is a {days[0]:%A}. Give the date without the weekday.")
    return [calendar.days(each.toordinal()) for each in fitting]


def _of_month(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    month = _MONTHS[match["month"].lower()]
    return [calendar.months(year * 12 + month - 1) for year in _years(match["year"], calendar)]


def _of_season(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    month = _SEASONS[match["season"].lower()]
    return [calendar.months(year * 12 + month - 1, 3) for year in _years(match["year"], calendar)]


def _of_quarter(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    month = 3 * int(match["quarter"]) - 3
    return [calendar.months(year * 12 + month, 3) for year in _years(match["year"], calendar)]


def _of_year(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    return [calendar.months(date(int(match["year"]), 1, 1).year * 12, 12)]


def _of_weekday(match: re.Match[str], calendar: _Calendar) -> list[Span]:
    day = calendar.monday + _DAYS[match["weekday"].lower()]
    day -= 7 * (day > calendar.today.toordinal())
    return [calendar.days(day)._replace(other=calendar.midnight(day + 7))]


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_Read = Callable[[re.Match[str], _Calendar], list[Span]]
_MONTH, _WEEKDAY = _any(_MONTHS), _any(_DAYS)
_COUNT = rf"(?P<count>\d{{1,9}}|{_any(_NUMBERS)})"
_UNIT = rf"(?P<unit>{_any((*UNITS, *_SHORT_UNITS))})s?"
_ON = rf"(?:(?P<weekday>{_WEEKDAY})\.?,? )?(?:the )?"
_IN_YEAR = r"(?P<year>\d{4})"


@cache
def _phrases() -> list[tuple[re.Pattern[str], _Read]]:
    """Return the phrases in the order in which they are tried, each with its reading. Compiling them takes too long for programs that need none."""
    phrases: list[tuple[str, _Read]] = [
        (rf"{_IN_YEAR}-(?P<month>\d{{2}})(?:-(?P<day>\d{{2}}))?(?!-)", _of_iso),
        (rf"{_IN_YEAR}/(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})", _of_iso),
        (rf"(?P<one>\d{{1,2}})(?P<mark>[/.-])(?P<two>\d{{1,2}})(?P=mark){_IN_YEAR}", _of_numeric),
        (rf"{_COUNT} {_UNIT} (?:ago|before now)", _of_ago),
        (rf"in {_COUNT} {_UNIT}", _of_ahead),
        (rf"{_COUNT} {_UNIT} from now", _of_ahead),
        (rf"(?:the )?(?P<which>last|past|previous|next) {_COUNT} {_UNIT}", _of_rolling),
        (rf"(?:on )?(?P<weekday>{_WEEKDAY}) (?:(?:of|in) )?(?:the )?(?P<which>last|past|previous|this|current|next) week", _of_weekday_in_week),
        (rf"(?:the )?(?P<which>last|past|previous|this|current|next) (?P<unit>{_any(UNITS)}|weekend|night|{_WEEKDAY}|{_MONTH})(?! \d)", _of_calendar),
        (rf"{_ON}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)?[ -](?P<month>{_MONTH})\b\.?,?(?:[ -]{_IN_YEAR})?", _of_day),
        (rf"{_ON}(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? {_IN_YEAR})?", _of_day),
        (rf"(?:(?P<lead>in|of|during|im|в|early|late|mid|for) )?(?P<month>{_MONTH})\b\.?,?(?: (?:of )?{_IN_YEAR})?", _of_month),
        (rf"(?:(?:last|this|in|the|during) )+(?P<season>{_any(_SEASONS)})\b(?: (?:of )?{_IN_YEAR})?", _of_season),
        (rf"Q(?P<quarter>[1-4])(?:[ -](?:of )?{_IN_YEAR})?", _of_quarter),
        (rf"(?:(?:in|during|of|year|im jahr|в) |(?<=since )|(?<=seit )){_IN_YEAR}", _of_year),
        (rf"(?P<on>on |am )?(?P<weekday>{_WEEKDAY})", _of_weekday),
        (rf"(?:now|(?:the )?(?:{_any(_WORDS)}))", _of_word),
    ]  # fmt: skip
    return [(re.compile(rf"\b{pattern}(?!\w)", re.I), read) for pattern, read in phrases]


_LEAD = re.compile(r"(?:(?:as of|as at|at|on|in|during|of|from|by|for) )?(?:the )?", re.I)
_SINCE = re.compile(r"(?:since|seit) ", re.I)
_EDGE = re.compile(r"(?:(?:at|by|from|until|till) )?(?:the )?(?P<edge>beginning|start|end) of ", re.I)
_THE_UNIT = re.compile(r"\A(?:the )?(?=(?:day|week|weekend|month|quarter|year)\Z)", re.I)
_ISO = re.compile(r"[+-]?(\d{4}-\d|\d{4}-?W\d|\d{8}T|\d+\Z)")  # ISO 8601, or meant to be
_ISO_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?")
_ISO_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?(\d))?")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{8}")
_ISO_HOUR = re.compile(r"[T ]\d\d(?:Z|[+-]\d\d:?\d\d)\Z")
_CLOCKED = re.compile(
    r"(?P<rest>.+?)(?:,? (?:at )?|(?<=\d)T)(?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight)",
    re.I,
)
_ZONED = re.compile(
    r"(?P<rest>.+?)(?: |(?=\[))\[?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d|[A-Za-z]\w*(?:/[\w+-]+)+|[A-Z]{2,5})\]?"
)
