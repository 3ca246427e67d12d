"""Read times as callers give them, in the same way for Python, HTTP, the command line, MCP and the shell. Pure: the present and the names are arguments.

A text is an ISO 8601 date, month or instant, a word (`now`, `today`, `yesterday`), a whole number of units before now (`7d`), or the name of a snapshot. An
ambiguous text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal

from graphstore.errors import InvalidError, closest
from graphstore.values.models import Snapshot
from graphstore.values.period import BEGINNING, EDGES, Instant, TimeLike, exactly, instant

OPEN: Final = "open"
"""As a `valid_to`: an open end, also for what has ended. Without it the verb determines the end."""
Axis = Literal["valid", "tx"]
Names = Callable[[], Iterable[Snapshot]]
"""Returns the snapshots whose names may be used as times."""

UNITS = {"m": ("minute", 60), "h": ("hour", 3600), "d": ("day", 86_400), "w": ("week", 604_800)}
"""The units of an age: noun and seconds of each."""
AGE = re.compile(r"([0-9]{1,9})([mhdw])\Z")
FORMS = (
    "Give a date ('2026-01-30'), a month ('2026-01'), an ISO 8601 instant ('2026-01-30T12:00:00Z'), now, today, yesterday, "
    "so long before now (30m, 2h, 7d, 2w), or the name of a snapshot"
)
_DAY = 86_400_000_000
_WORDS = ("now", "today", "yesterday")
_MONTH = re.compile(r"\d{4}-\d\d\Z")
# `2026-01…`, `2026W05…`, and digits only, which ISO 8601 also takes for a date
_TIME = re.compile(r"[+-]?(\d{4}-\d|\d{4}-?W\d|\d{8}T|\d+\Z)")


def looks_like_time(text: str) -> bool:
    """Return True if a text is a time or resembles one, and therefore cannot be a name."""
    word = text.strip().lower()
    return bool(_TIME.match(text.strip()) or AGE.match(text.strip()) or word in _WORDS or word in EDGES)


def resolve(
    value: TimeLike,
    what: str,
    now: Instant,
    names: Names = tuple,
    *,
    axis: Axis = "valid",
    present: Instant | None = None,
) -> Instant:
    """Return the instant that a value means. `what`: the argument's name; `axis`: the time of a snapshot for which its name stands.

    `present`: the instant of `now` if ages do not count from it. Raises InvalidError for anything else, and for a word that is also the name of a snapshot.
    """
    if not isinstance(value, str):
        return instant(value, what)
    text = value.strip()
    if _TIME.match(text):
        return _written(text, what)
    at = _relative(text, what, now, now if present is None else present)
    named = list(names())
    snapshot = next((each for each in named if each.name == text), None)
    if snapshot is not None:
        its = instant(getattr(snapshot, axis))
        if at is None:
            return its
        raise InvalidError(
            f"{what} {text!r} is a time, {exactly(at)}, and the name of a snapshot, {exactly(its)}. Give the instant that is meant."
        )
    if at is None:
        raise _unknown(text, what, named)
    return at


def _written(text: str, what: str) -> Instant:
    try:
        return instant(f"{text}-01" if _MONTH.match(text) else text, what)
    except InvalidError as error:
        if "no ISO 8601" not in str(error):
            raise
        raise InvalidError(f"{what} {text!r} is no ISO 8601 time. {_forms(what)}") from None


def _relative(text: str, what: str, now: Instant, present: Instant) -> Instant | None:
    """Return the instant of a word or of an age; None for any other text."""
    word = text.lower()
    if word == "now":
        return present
    if word in _WORDS:
        return max(BEGINNING, now - now % _DAY - (_DAY if word == "yesterday" else 0))
    if word in EDGES:
        at, where = EDGES[word]
        if what in where:
            return at
        raise InvalidError(f"{what} {text!r}: only {' and '.join(where)} can be {word}. {_forms(what)}")
    age = AGE.match(text)
    if age is None:
        return None
    if not int(age[1]):
        raise InvalidError(f"{what} {text!r} is no age. {_forms(what)}")
    return max(BEGINNING, now - int(age[1]) * UNITS[age[2]][1] * 1_000_000)


def _forms(what: str) -> str:
    edge = next((word for word, (_, where) in EDGES.items() if what in where), None)
    return f"{FORMS}." if edge is None else f"{FORMS}; {edge} for no bound."


def _unknown(text: str, what: str, named: Iterable[Snapshot]) -> InvalidError:
    if not text:
        return InvalidError(f"{what} is blank. {_forms(what)}")
    near = closest(text, [snapshot.name for snapshot in named])
    hint = f" Nearest: {', '.join(map(repr, near))}." if near else ""
    return InvalidError(
        f"{what} {text!r} is no time, and there is no snapshot {text!r}.{hint} {_forms(what)}"
    )
