"""Instants and half-open periods as whole microseconds since 1970 UTC: the only arithmetic of time in the package.

In the interface an instant is an aware `datetime` and an open end is `None`; internally it is an `int` and an open end is `OPEN`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from graphstore.errors import InvalidError

Instant: TypeAlias = int
Period: TypeAlias = tuple[Instant, Instant]
TimeLike: TypeAlias = datetime | date | str

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_BEGAN = datetime.min.replace(tzinfo=UTC)
OPEN: Instant = (END_OF_TIME - EPOCH) // MICROSECOND
BEGINNING: Instant = (_BEGAN - EPOCH) // MICROSECOND
ALWAYS: Period = (BEGINNING, OPEN)
EDGES = {"beginning": (BEGINNING, ("valid_from", "since")), "open": (OPEN, ("valid_to", "until"))}
"""The words for no bound: the instant of each, and the arguments that accept it."""


def instant(value: TimeLike, what: str = "time") -> Instant:
    """Return the microseconds since 1970 UTC of an aware datetime, a date (midnight UTC) or ISO 8601 text; of `beginning` and `open` if `what` accepts them.

    Raises InvalidError for a naive datetime, for text that is not ISO 8601, and for anything else.
    """
    if isinstance(value, str):
        edge = EDGES.get(value.strip().lower())
        if edge and what in edge[1]:
            return edge[0]
        value = _parse(value, what)
    if isinstance(value, datetime):
        if value.tzinfo is UTC:
            return (value - EPOCH) // MICROSECOND
        if value.tzinfo is None or value.utcoffset() is None:
            raise InvalidError(
                f"{what} {value!r} has no time zone. Give an aware datetime, for example "
                f"{value.isoformat()}+00:00 or datetime(…, tzinfo=timezone.utc)."
            )
        at = (value - EPOCH) // MICROSECOND
        if not BEGINNING <= at <= OPEN:
            raise InvalidError(f"{what} {value!r} lies outside the years 1 to 9999 in UTC.")
        return at
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day, tzinfo=UTC) - EPOCH) // MICROSECOND
    raise InvalidError(
        f"{what} {value!r} is no time. Give an aware datetime, a date, or ISO 8601 text such as "
        "'2026-01-30' or '2026-01-30T12:00:00Z'."
    )


def recorded(value: str | datetime) -> Instant:
    """Return the instant in a line of the journal, as `instant` does, but for text in UTC in a third of the time. Raises InvalidError."""
    if type(value) is datetime:
        if value.tzinfo is not UTC:
            return instant(value)
        since = value - EPOCH
    elif isinstance(value, str) and value[-1:] == "Z":
        try:
            since = datetime.fromisoformat(value) - EPOCH
        except ValueError:
            return instant(value)
    else:
        return instant(value)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _parse(text: str, what: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidError(
            f"{what} {text!r} is no ISO 8601 time. Give '2026-01-30' or '2026-01-30T12:00:00Z'."
        ) from None
    if parsed.tzinfo is None:
        if len(text.strip()) <= 10:
            return parsed.replace(tzinfo=UTC)
        raise InvalidError(f"{what} {text!r} has no time zone. Write {text.strip() + 'Z'!r} for UTC.")
    return parsed


@lru_cache(maxsize=1 << 14)  # neighbours share their instants: one transaction, one boundary
def moment(at: Instant) -> datetime:
    """Return the aware datetime of an instant."""
    return EPOCH + MICROSECOND * at


def end_moment(at: Instant) -> datetime | None:
    """Return the aware datetime of a period's end; None if it is open."""
    return None if at >= OPEN else moment(at)


def iso(at: Instant) -> str:
    """Return an instant as ISO 8601 in UTC, with as many digits as it needs."""
    return moment(at).isoformat().replace("+00:00", "Z")


def when(at: datetime | Instant | None, unbounded: str = "…") -> str:
    """Return an instant for people: a date at midnight UTC, else to the minute or the second. `unbounded`: the text for None. The beginning of valid time is
    `beginning`."""
    if isinstance(at, int):
        at = end_moment(at)
    if at is None:
        return unbounded
    return "beginning" if at == _BEGAN else exactly(at.replace(microsecond=0))


def exactly(at: datetime | Instant) -> str:
    """Return an instant as `when` does, with the fraction of a second, where instants must differ: as a time that is recorded it is the same instant."""
    if isinstance(at, int):
        if at >= OPEN:
            return "…"
        at = moment(at)
    at = at.astimezone(UTC)
    date, clock = at.date().isoformat(), at.time().isoformat()
    if clock == "00:00:00":
        return date
    return f"{date} {clock.rstrip('0') if at.microsecond else clock.removesuffix(':00')}Z"


def clocked(at: datetime | Instant) -> str:
    """Return an instant as `exactly` does, with its clock also at midnight: as a coordinate a date alone means the whole day."""
    text = exactly(at)
    return text if " " in text else f"{text} 00:00Z"


def during(start: datetime, end: datetime | None) -> str:
    """Return a period: `2026-01-01 → 2026-02-01`, with "…" for an open end; within a day the date is written once."""
    first, last = when(start), when(end)
    if " " in first and last.startswith(first[:11]):
        last = last[11:]
    return f"{first} → {last}"


def period(valid_from: Instant, valid_to: Instant) -> Period:
    """Return the checked period. Raises InvalidError if it is empty or inverted."""
    if valid_from >= valid_to:
        word = "empty" if valid_from == valid_to else "inverted"
        raise InvalidError(
            f"{word} period: valid_from {exactly(valid_from)} is not before valid_to {exactly(valid_to)}. "
            "A period is half-open, [from, to), and from must come first."
        )
    return valid_from, valid_to


def bounds(since: Instant, until: Instant, names: tuple[str, str] = ("since", "until")) -> Period:
    """Return the checked bounds of a search, which may be equal. Raises InvalidError if the first is after the second."""
    if since > until:
        first, last = names
        raise InvalidError(
            f"{first} {exactly(since)} is after {last} {exactly(until)}. Give the earlier time as {first}."
        )
    return since, until


def overlap(a: Period, b: Period) -> Period | None:
    """Return the common part of two periods, or None if they only touch or are disjoint."""
    start, stop = max(a[0], b[0]), min(a[1], b[1])
    return (start, stop) if start < stop else None


def without(whole: Period, hole: Period) -> list[Period]:
    """Return the 0 to 2 pieces of `whole` outside of `hole`."""
    if hole[1] <= whole[0] or whole[1] <= hole[0]:
        return [whole]
    pieces = []
    if whole[0] < hole[0]:
        pieces.append((whole[0], hole[0]))
    if hole[1] < whole[1]:
        pieces.append((hole[1], whole[1]))
    return pieces


def without_all(whole: Period, holes: Iterable[Period]) -> list[Period]:
    """Return the pieces of `whole` outside of all holes, in order."""
    pieces = [whole]
    for hole in holes:
        pieces = [piece for part in pieces for piece in without(part, hole)]
    return pieces


def coalesce(periods: Iterable[Period]) -> list[Period]:
    """Return the fewest periods with the same instants, in order: touching and overlapping ones are merged."""
    merged: list[Period] = []
    for start, stop in sorted(periods):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


class Union:
    """A set of instants, built from periods added one by one."""

    def __init__(self) -> None:
        self._starts: list[Instant] = []
        self._stops: list[Instant] = []

    def add(self, added: Period) -> None:
        """Add the instants of a period."""
        start, stop = added
        first, last = bisect_left(self._stops, start), bisect_right(self._starts, stop)
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last], self._stops[first:last] = [start], [stop]

    def overlaps(self, asked: Period) -> bool:
        """Return True if any instant of a period was added."""
        at = bisect_right(self._stops, asked[0])
        return at < len(self._starts) and self._starts[at] < asked[1]
