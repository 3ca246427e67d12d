"""Parse the range of time of a request (`7d`, a date, a range), and show it in an answer."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from graphstore.errors import InvalidError
from graphstore.values.coordinates import FORMS, Meaning, Names, resolve
from graphstore.values.period import Instant, instant, when
from graphstore.values.worded_times import AGE, AGES

Window = tuple[Instant, Instant]
"""The first and the last instant, both included."""


def window(since: Any, now: Instant, names: Names = tuple) -> Window:
    """Return the first and the last instant of a window, both included. It ends at `now` unless it is a range.

    `since` is a time as `coordinates.resolve` takes it (`30m`, `7d`, `last Friday`, an ISO instant or date), a range `A..B` of such times, or a pair of
    these; a date as the end of a range is in it. Raises InvalidError for anything else.
    """
    if isinstance(since, (tuple, list)) and len(since) == 2:
        begin, end = since
    elif isinstance(since, str) and ".." in since:
        begin, _, end = since.partition("..")
    elif isinstance(since, (str, date)):
        return _time(since, since, now, names, "from"), now
    else:
        raise _unknown(since)
    start, stop = _time(since, begin, now, names, "from"), _time(since, end, now, names, "as of")
    if stop < start:
        raise InvalidError(
            f"since {window_text(since)!r} ends before it begins. Give the earlier time first."
        )
    return start, stop


def _time(since: Any, value: Any, now: Instant, names: Names, meaning: Meaning) -> Instant:
    if not isinstance(value, (str, date)):
        raise _unknown(since)
    try:
        return resolve(value, "since", now, names, meaning=meaning)
    except InvalidError as error:
        if FORMS not in str(error):  # that message names the remedy
            raise
        raise _unknown(since) from None


def _unknown(since: Any) -> InvalidError:
    return InvalidError(
        f"since {since!r} is no window. Give a whole number of minutes, hours, days or weeks ('30m', '1h', '7d', '2w'), an ISO instant or "
        "date ('2026-01-20T10:00:00Z', '2026-01-20'), a month ('2026-01'), words ('last Friday', '3 months ago'), a snapshot's name, a range of these ('2026-01-01..2026-02-01', '2026-01..yesterday'), or a pair of times (start, end)."
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
        return f"in last {plural(int(found[1]), AGES[found[2]])}"
    if re.match(r"(?:the )?(?:last|past) \S+ \S", text, re.I):
        return f"in {text}"
    begin, dots, end = text.partition("..")
    if dots:
        return f"from {begin.strip()} to {end.strip()}"
    return text if text.lower().startswith("since ") else f"since {text}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 day`, `2 days`, `3 fixes`, `1,842 events`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'sh', 'ch')) else 's'}"
