"""Parse the range of time of a request (`7d`, a date, a range), and show it in an answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from graphstore.errors import InvalidError
from graphstore.values.coordinates import AGE, UNITS, Names, resolve
from graphstore.values.period import Instant, instant, when

Window = tuple[Instant, Instant]
"""The first and the last instant, both included."""


def window(since: Any, now: Instant, names: Names = tuple) -> Window:
    """Return the first and the last instant of a window, both included. It ends at `now` unless it is a range.

    `since` is a time as `coordinates.resolve` takes it (`30m`, `7d`, `yesterday`, an ISO instant or date), a range `A..B` of such times, or a pair of
    these. Raises InvalidError for anything else.
    """
    if isinstance(since, (tuple, list)):
        if len(since) != 2:
            raise _unknown(since)
        return _range(since, since[0], since[1], now, names)
    if isinstance(since, str):
        text = since.strip()
        begin, dots, end = text.partition("..")
        if dots:
            return _range(since, begin, end, now, names)
    elif not isinstance(since, date):
        raise _unknown(since)
    return _read(since, lambda: resolve(since, "since", now, names)), now


def _range(since: Any, begin: Any, end: Any, now: Instant, names: Names) -> Window:
    start, stop = (_time(since, each, now, names) for each in (begin, end))
    if stop < start:
        raise InvalidError(
            f"since {window_text(since)!r} ends before it begins. Give the earlier time first."
        )
    return start, stop


def _time(since: Any, value: Any, now: Instant, names: Names) -> Instant:
    if not isinstance(value, (str, date)):
        raise _unknown(since)
    return _read(since, lambda: resolve(value, "since", now, names))


def _read(since: Any, read: Callable[[], Instant]) -> Instant:
    try:
        return read()
    except InvalidError as error:
        if "time zone" in str(error) or "name of a snapshot," in str(error):  # that message names the remedy
            raise
        raise _unknown(since) from None


def _unknown(since: Any) -> InvalidError:
    return InvalidError(
        f"since {since!r} is no window. Give a whole number of minutes, hours, days or weeks ('30m', '1h', '7d', '2w'), an ISO instant or "
        "date ('2026-01-20T10:00:00Z', '2026-01-20'), a month ('2026-01'), today, yesterday, a snapshot's name, a range of these ('2026-01-01..2026-02-01', '2026-01..yesterday'), or a pair of times (start, end)."
    )


def window_text(since: Any) -> str:
    """Return the window as requested, as text: `7d`."""
    if isinstance(since, (tuple, list)):
        return "..".join(map(_one, since))
    return _one(since)


def _one(value: Any) -> str:
    if isinstance(value, (datetime, date)):
        return when(instant(value))
    return str(value).strip()


def window_sentence(since: Any) -> str:
    """Return the window in a sentence: `in last 7 days`, `since 2026-01-01`, `from … to …`."""
    text = window_text(since)
    found = AGE.match(text)
    if found:
        return f"in last {plural(int(found[1]), UNITS[found[2]][0])}"
    begin, dots, end = text.partition("..")
    return f"from {begin.strip()} to {end.strip()}" if dots else f"since {text}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 day`, `2 days`, `3 fixes`, `1,842 events`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'sh', 'ch')) else 's'}"
