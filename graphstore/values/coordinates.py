"""Read times as callers give them, in the same way for Python, HTTP, the command line, MCP, the page and the shell. Pure: the present and the names are
arguments.

A text is a time as `worded_times` reads it (ISO 8601, `7d`, `last Friday`, `26 November 2026 15:00 Europe/Berlin`), or the name of a snapshot. It means a
span; which instant of the span is used depends on the argument. An ambiguous text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from typing import Final, Literal

from graphstore.errors import InvalidError, closest
from graphstore.values.models import Snapshot
from graphstore.values.period import EDGES, Instant, Period, TimeLike, bounds, exactly, instant
from graphstore.values.period import OPEN as END
from graphstore.values.worded_times import Span, span_of

OPEN: Final = "open"
"""As a `valid_to`: an open end, also for what has ended. Without it the verb determines the end."""
Axis = Literal["valid", "tx"]
Meaning = Literal["from", "to", "as of"]
"""The instant of a span that an argument means: its first one, the first one after it, or its last one (now, if the span contains now)."""
Names = Callable[[], Iterable[Snapshot]]
"""Returns the snapshots whose names may be used as times."""

FORMS = (
    "Give a date ('2026-01-30'), a month ('2026-01'), an ISO 8601 instant ('2026-01-30T12:00:00Z'), now, today, yesterday, "
    "so long before now (30m, 2h, 7d, 2w), words ('last Friday', '3 months ago', 'end of next month', '26 November 2026 15:00 Europe/Berlin'), or the name of a snapshot"
)
_MEANINGS: dict[str, Meaning] = {"valid": "as of", "tx": "as of", "until": "to", "recorded_until": "to"}
"""What the arguments of these names mean; all others mean the first instant."""
_WRITTEN = frozenset({"valid_from", "valid_to", "at", "occurred_at", "ended_at"})
"""Arguments whose time is recorded: a date without its year may lie in the past or in the future."""


def looks_like_time(text: str) -> bool:
    """Return True if a text is a time or resembles one, and therefore cannot be a name."""
    if text.strip().lower() in EDGES:
        return True
    try:
        return span_of(text, 0) is not None
    except InvalidError:
        return True


def resolve(
    value: TimeLike,
    what: str,
    now: Instant,
    names: Names = tuple,
    *,
    axis: Axis = "valid",
    present: Instant | None = None,
    meaning: Meaning | None = None,
) -> Instant:
    """Return the instant that a value means. `what`: the argument's name; `axis`: the time of a snapshot for which its name stands.

    `present`: the instant of `now` if relative times do not count from it. `meaning`: None for that of the argument's name. Raises InvalidError for anything
    else, and for a word that is also the name of a snapshot.
    """
    meaning = meaning or _MEANINGS.get(what, "from")
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        return instant(value, what)
    text = value.strip()
    edge = _edge(text, what)
    span = _span(text, what, now) if edge is None else Span(edge, edge)
    if span is not None and _is_iso(text):
        return _meant(span, meaning, now, present)
    named = list(names())
    snapshot = next((each for each in named if each.name == text), None)
    at = None if span is None else _meant(span, meaning, now, present)
    if snapshot is not None:
        its = instant(getattr(snapshot, axis))
        if at is None:
            return its
        raise InvalidError(
            f"{what} {text!r} is a time, {exactly(at)}, and the name of a snapshot, {exactly(its)}. Give the instant that is meant."
        )
    if span is None or at is None:
        raise _unknown(text, what, named)
    if span.other is not None and what in _WRITTEN:
        raise InvalidError(
            f"{what} {text!r} may mean {exactly(span.start)} or {exactly(span.other)}. Give the one that is meant."
        )
    return at


def between(
    since: TimeLike | None,
    until: TimeLike | None,
    read: Callable[[TimeLike, str, Meaning], Instant],
    names: tuple[str, str] = ("since", "until"),
) -> Period:
    """Return the instants [since, until) that two arguments mean, open where one is None. `read`: reads one of them, as `resolve` does.

    Raises InvalidError if the first is after the second.
    """
    begin = -END if since is None else read(since, names[0], "from")
    end = END if until is None else read(until, names[1], "to")
    if until is not None and begin >= end:
        bounds(begin, read(until, names[1], "from"), names)
    return begin, end


def _is_iso(text: str) -> bool:
    return re.match(r"\d{4}-?[\dW]", text) is not None


def _meant(span: Span, meaning: Meaning, now: Instant, present: Instant | None) -> Instant:
    if meaning == "from":
        return span.start
    if meaning == "to":
        return span.end
    if span.is_end:
        return span.end - 1
    if span.start <= now < max(span.end, span.start + 1):
        return now if present is None else present
    return max(span.start, span.end - 1)


def _span(text: str, what: str, now: Instant) -> Span | None:
    try:
        return span_of(text, now, what)
    except InvalidError as error:
        if re.search(r"\b(Give|Write)\b", str(error)):
            raise
        raise InvalidError(f"{error} {_forms(what)}") from None


def _edge(text: str, what: str) -> Instant | None:
    """Return the instant of `beginning` and `open`; None for any other text."""
    word = text.lower()
    if word not in EDGES:
        return None
    at, where = EDGES[word]
    if what in where:
        return at
    raise InvalidError(f"{what} {text!r}: only {' and '.join(where)} can be {word}. {_forms(what)}")


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
