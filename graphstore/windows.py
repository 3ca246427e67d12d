"""The stretch of time a question is about: `7d`, a date, a range; and how an answer says it."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from graphstore.errors import InvalidError
from graphstore.period import BEGINNING, Instant, instant, iso

Window = tuple[Instant, Instant]
"""From and to, both included."""

_UNITS = {"m": ("minute", 60), "h": ("hour", 3600), "d": ("day", 86_400), "w": ("week", 604_800)}
_RELATIVE = re.compile(r"([0-9]{1,9})([mhdw])\Z")


def window(since: Any, now: Instant) -> Window:
    """From and to of a window that ends at `now` unless it is a range; both ends are in it.

    `since` is a whole number of minutes, hours, days or weeks (`30m`, `1h`, `7d`, `2w`), an ISO instant or date, a range `A..B` of these,
    or a pair of times. Raises InvalidError for anything else.
    """
    if isinstance(since, (tuple, list)):
        if len(since) != 2:
            raise _unknown(since)
        return _range(since, since[0], since[1])
    if isinstance(since, str):
        text = since.strip()
        found = _RELATIVE.match(text)
        if found and int(found[1]):
            return max(BEGINNING, now - int(found[1]) * _UNITS[found[2]][1] * 1_000_000), now
        begin, dots, end = text.partition("..")
        if dots:
            return _range(since, begin, end)
    elif not isinstance(since, date):
        raise _unknown(since)
    return _time(since, since), now


def _range(since: Any, begin: Any, end: Any) -> Window:
    start, stop = _time(since, begin), _time(since, end)
    if stop < start:
        raise InvalidError(f"since {said(since)!r} ends before it begins. Give the earlier time first.")
    return start, stop


def _time(since: Any, value: Any) -> Instant:
    if not isinstance(value, (str, date)):
        raise _unknown(since)
    try:
        return instant(value.strip() if isinstance(value, str) else value, "since")
    except InvalidError as error:
        if "time zone" in str(error):  # the right form, and the way out is said there
            raise
        raise _unknown(since) from None


def _unknown(since: Any) -> InvalidError:
    return InvalidError(
        f"since {since!r} is no window. Give a whole number of minutes, hours, days or weeks ('30m', '1h', '7d', '2w'), an ISO instant or "
        "date ('2026-01-20T10:00:00Z', '2026-01-20'), a range of these ('2026-01-01..2026-02-01'), or a pair of times (start, end)."
    )


def said(since: Any) -> str:
    """The window as it was asked for, as text: `7d`."""
    if isinstance(since, (tuple, list)):
        return "..".join(map(_one, since))
    return _one(since)


def _one(value: Any) -> str:
    if isinstance(value, (datetime, date)):
        return iso(instant(value)).removesuffix("T00:00:00Z")
    return str(value).strip()


def told(since: Any) -> str:
    """The window in a sentence: `in last 7 days`, `since 2026-01-01`, `from … to …`."""
    text = said(since)
    found = _RELATIVE.match(text)
    if found:
        return f"in last {plural(int(found[1]), _UNITS[found[2]][0])}"
    begin, dots, end = text.partition("..")
    return f"from {begin.strip()} to {end.strip()}" if dots else f"since {text}"


def plural(count: int, noun: str) -> str:
    """`1 day`, `2 days`, `3 fixes`, `1,842 events`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'sh', 'ch')) else 's'}"
