"""Finds events that recur, follow deploys, or keep to an hour of the day. Decisions work on plain lists of instants; one function reads."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

from graphstore.errors import InvalidError
from graphstore.events.correlation import CORRELATION, microseconds
from graphstore.events.regressions import number_of
from graphstore.read.happened import Seen
from graphstore.read.occurrences import Episode
from graphstore.store import registry
from graphstore.values.inputs import at_least_one, optional_text
from graphstore.values.models import Json
from graphstore.values.period import Instant, moment
from graphstore.values.time_range import Window, plural, window, window_text
from graphstore.view.sight import Sight
from graphstore.view.view import Reader, View

MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000
CHANGE = 2 * HOUR  # clocks change in spring: a day may be shorter by this much
FRESH = 60_000_000  # microseconds for which an answer at a moving now is reused
_NAME_LENGTH = 80


class Recurring(NamedTuple):
    """States that one thing was active repeatedly."""

    episodes: int
    longest: int
    """Microseconds of the longest resolved episode."""
    active: bool


class FollowedDeploys(NamedTuple):
    """Deploys of which many were followed by a regression."""

    followed: tuple[Instant, ...]
    deploys: int


class Daily(NamedTuple):
    """Occurrences that keep to one hour of the day. `begin` and `end` are minutes since midnight."""

    begin: int
    end: int
    inside: int
    total: int
    days: int


# ---------------------------------------------------------------- decisions


def recurring(episodes: Iterable[Episode], within: Window, recurrences: int = 2) -> Recurring | None:
    """Return a result if something was active, resolved, and active again at least `recurrences` times within the window."""
    begin, end = within
    inside = [
        (start, stop) for start, stop in joined(episodes) if start <= end and (stop is None or stop >= begin)
    ]
    if len(inside) <= recurrences:
        return None
    longest = max((stop - start for start, stop in inside if stop is not None), default=0)
    return Recurring(len(inside), longest, inside[-1][1] is None)


def joined(episodes: Iterable[Episode]) -> list[Episode]:
    """Return the same active time as the fewest episodes, in order. Several events with one fingerprint may be active at once."""
    merged: list[Episode] = []
    for start, stop in sorted(episodes, key=lambda each: each[0]):
        last = merged[-1][1] if merged else start - 1
        if last is not None and start > last:
            merged.append((start, stop))
        elif last is not None:
            merged[-1] = (merged[-1][0], None if stop is None else max(stop, last))
    return merged


def deploy_correlated(
    deploys: Iterable[Instant],
    regressions: Iterable[Instant],
    within: int,
    least: int = 3,
    share: float = 0.5,
) -> FollowedDeploys | None:
    """Return a result if a regression followed at least `least` deploys, and at least `share` of all, within `within` microseconds."""
    deployed, broken = sorted(deploys), sorted(regressions)
    followed = tuple(
        at
        for at in deployed
        if (next_ := bisect_left(broken, at)) < len(broken) and broken[next_] <= at + within
    )
    if len(followed) < max(least, 1) or len(followed) < share * len(deployed):
        return None
    return FollowedDeploys(followed, len(deployed))


def time_of_day(
    instants: Sequence[Instant], zone: ZoneInfo, occurrences: int = 3, days: int = 3, in_hour: float = 0.8
) -> Daily | None:
    """Return a result if at least the share `in_hour` of the occurrences is within one hour of the day. There must be `occurrences` on `days` dates."""
    if len(instants) < max(occurrences, 1) or max(instants) - min(instants) < (days - 2) * DAY - CHANGE:
        return None
    local = [moment(at).astimezone(zone) for at in instants]
    clock = sorted((at.hour * 3600 + at.minute * 60 + at.second, at.date()) for at in local)
    start, stop = _fullest_hour(clock, days)
    inside = [clock[at % len(clock)] for at in range(start, stop)]
    if len(inside) < max(occurrences, 1) or len(inside) < in_hour * len(clock):
        return None
    begin, end = inside[0][0] // 60, inside[-1][0] // 60 + 1
    return Daily(begin, end % 1440, len(inside), len(clock), len({on for _, on in inside}))


def _fullest_hour(clock: Sequence[tuple[int, date]], days: int) -> tuple[int, int]:
    """Return the longest run of times of day within less than an hour, also over midnight, on at least `days` dates: start and stop positions."""
    count = len(clock)
    round_the_clock = [*clock, *((second + 86_400, on) for second, on in clock)]
    best, stop = (0, 0), 0
    dates: Counter[date] = Counter()
    for start, (second, on) in enumerate(clock):
        while stop < start + count and round_the_clock[stop][0] < second + 3600:
            dates[round_the_clock[stop][1]] += 1
            stop += 1
        if stop - start > best[1] - best[0] and len(dates) >= days:
            best = (start, stop)
        dates[on] -= 1
        if not dates[on]:
            del dates[on]
    return best


# ---------------------------------------------------------------- text

_WHERE = re.compile(r"\b(?:at|in) ([A-Za-z_$][\w$]*)(?=[.(:\s]|$)")
_PAGE = re.compile(r" on (\S+)$")


def name_of(description: str) -> str:
    """Return a short name for a description: `TypeError in UserProfile`."""
    head, colon, rest = description.partition(":")
    if colon and len(head) <= 40 and "\n" not in head:
        page = _PAGE.search(rest)
        places = _WHERE.findall(rest)
        if page:
            return shortened(f"{head} on {page[1]}", _NAME_LENGTH)
        if places:
            return shortened(f"{head} in {places[-1]}", _NAME_LENGTH)
    return shortened(" ".join(description.split()), _NAME_LENGTH)


def shortened(text: str, most: int) -> str:
    """Return the text, cut to `most` characters with … at its end."""
    return text if len(text) <= most else text[: max(0, most - 1)] + "…"


def lasting(length: int) -> str:
    """Return a length of time as text, rounded up to whole minutes, hours or days."""
    for unit, name in ((MINUTE, "minute"), (HOUR, "hour"), (DAY, "day")):
        count = max(1, -(-length // unit))
        if name == "day" or count < (60 if name == "minute" else 24):
            return plural(count, name)
    raise AssertionError("unreachable")


def _clock_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


# ---------------------------------------------------------------- the read


class Criteria(NamedTuple):
    """Holds the criteria of a search for patterns. The thresholds are those of `patterns`; `correlation` is in microseconds."""

    type: str | None = None
    recurrences: int = 2
    deploys: int = 3
    share: float = 0.5
    correlation: int = microseconds(CORRELATION, "correlation")
    occurrences: int = 3
    days: int = 3
    in_hour: float = 0.8
    timezone: str = "UTC"


@registry.read("events")
def patterns(
    view: Reader,
    *,
    since: Any = "30d",
    type: str | None = None,
    recurrences: int = 2,
    deploys: int = 3,
    share: float = 0.5,
    correlation: timedelta = CORRELATION,
    occurrences: int = 3,
    days: int = 3,
    in_hour: float = 0.8,
    timezone: str = "UTC",
) -> list[Json]:
    """What recurs, follows deploys or keeps to an hour of the day, each `{"kind", "description", "events": [ids], …numbers}`.

    `kind` is `recurring`, `deploy_correlated` or `time_of_day`; of each the most frequent first. `since` as in `window`. An answer serves
    again until the next write; that of the store, whose now moves, for 60 seconds. Raises InvalidError for an unknown time zone, and for a threshold
    that is none: `share` and `in_hour` are from 0 to 1, the others whole numbers of at least 1.
    """
    type = optional_text("type", type)
    numbers = {"recurrences": recurrences, "deploys": deploys, "occurrences": occurrences, "days": days}
    for name, number in numbers.items():
        at_least_one(name, number)
    for name, part in (("share", share), ("in_hour", in_hour)):
        number_of(name, part, least=0, most=1)
    within = microseconds(correlation, "correlation")
    criteria = Criteria(type, recurrences, deploys, share, within, occurrences, days, in_hour, timezone)
    zone = zone_of(timezone)
    pinned = isinstance(view, View)
    with view.reading() as sight:
        return patterns_at(sight, pinned, since, criteria, zone)


def patterns_at(sight: Sight, pinned: bool, since: Any, criteria: Criteria, zone: ZoneInfo) -> list[Json]:
    """Return the patterns as `patterns` does, from a sight. `pinned`: it is of a view, not of a store whose now moves."""
    found = _remembered(sight, pinned, since, criteria, zone)
    return [{**each, "events": list(each["events"])} for each in found]


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone with this name. Raise InvalidError if it is unknown."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        raise InvalidError(
            f"unknown time zone {name!r}. Give an IANA name, such as 'UTC' or 'Europe/Berlin'."
        ) from None


def _remembered(sight: Sight, pinned: bool, since: Any, criteria: Criteria, zone: ZoneInfo) -> list[Json]:
    """Return cached patterns if nothing was written since and they are fresh enough, else search for them now."""
    within, memo = window(since, sight.valid, sight.snapshots), sight.memo()
    if memo is None or not (pinned or sight.sees_all()):  # another thread writes: this is not the latest now
        return _Search(sight, within, criteria, zone).found()
    key = (within, sight.valid, sight.tx, criteria) if pinned else (window_text(since), criteria)
    known = memo.get(key)
    if known is None or not (pinned or 0 <= sight.valid - known[0] < FRESH):
        known = memo[key] = (sight.valid, _Search(sight, within, criteria, zone).found())
    return cast(list[Json], known[1])


class _Search:
    """Searches for patterns at one coordinate."""

    def __init__(self, sight: Sight, within: Window, criteria: Criteria, zone: ZoneInfo) -> None:
        self.sight = sight
        self.criteria, self.zone = criteria, zone
        self.begin, self.end = within
        self.happened = sight.happened
        self.span = lasting(self.end - self.begin)
        self.deploys: list[tuple[Instant, int]] = []
        self.regressions: list[tuple[Instant, int]] = []
        self.seen: dict[int, Seen] = {}
        self.groups: dict[str, list[int]] = defaultdict(list)  # fingerprint -> events

    def found(self) -> list[Json]:
        """Return all patterns, in the form of `patterns`."""
        self._gather()
        again: list[Json] = []
        daily: list[Json] = []
        for ents in self.groups.values():
            again += self._recurring(ents)
            daily += self._time_of_day(ents)
        again.sort(key=lambda each: (-each["times"], each["description"]))
        daily.sort(key=lambda each: (-each["occurrences"], each["description"]))
        return again + self._deploy_correlated() + daily

    def _gather(self) -> None:
        sight = self.sight
        for type, kept in (("deploy", self.deploys), ("regression", self.regressions)):
            for ent in sight.happening(self.begin, self.end + 1, (type,)):
                if sight.find(ent) >= 0:
                    self.seen[ent] = self.happened.seen(ent)
                    kept += [(at, ent) for at in self._instants(ent)]
        inside = {*sight.happening(self.begin, self.end + 1)}
        for ent, fingerprint in sight.fingerprints():
            if (ent in inside or sight.has_links(ent) or sight.has_repeats(ent)) and self._counts(ent):
                self.groups[fingerprint].append(ent)

    def _counts(self, ent: int) -> bool:
        """Return True if an event is considered: it was in progress inside the window, or came before it and has links."""
        sight, kind = self.sight, self.sight.kind(ent)
        if kind == "resolution" or self.criteria.type not in (None, kind) or sight.find(ent) < 0:
            return False
        first, last, _ = self.seen[ent] = self.happened.seen(ent)
        return first <= self.end and (last >= self.begin or sight.has_links(ent))

    def _instants(self, ent: int) -> list[Instant]:
        """Return the occurrences of an event inside the window."""
        first, _, count = self.seen[ent]
        instants = [first] if count == 1 else self.happened.instants(ent)
        return instants[bisect_left(instants, self.begin) : bisect_right(instants, self.end)]

    def _recurring(self, ents: list[int]) -> list[Json]:
        if not any(map(self.sight.has_links, ents)):
            return []  # nothing ever resolved it
        ents = [ent for ent in ents if self.happened.can_be_open(ent)]
        episodes: list[Episode] = []
        for ent in ents:
            found = self.happened.episodes(ent)
            if found[-1][1] is None and self.sight.standing(ent) == "superseded":
                found = [*found[:-1], (found[-1][0], self.seen[ent][1])]
            episodes += found
        come = recurring(episodes, (self.begin, self.end), self.criteria.recurrences)
        if come is None:
            return []
        resolved = come.episodes - come.active
        each = "each time" if resolved == come.episodes else plural(resolved, "time")
        tail = ", still active" if come.active else ""
        return [
            {
                "kind": "recurring",
                "description": f"Recurring: {self._name(ents)} seen {plural(come.episodes, 'time')} in {self.span}, "
                f"resolved {each} within {lasting(come.longest)}{tail}",
                "events": self._ids(ents),
                "times": come.episodes,
                "resolved": resolved,
                "longest_seconds": come.longest / 1_000_000,
                "active": come.active,
            }
        ]

    def _deploy_correlated(self) -> list[Json]:
        criteria = self.criteria
        if criteria.type not in (None, "regression", "deploy"):
            return []
        broken = sorted(at for at, _ in self.regressions)
        signs: dict[int, Instant] = {}  # by deploy: its first sign before a regression, else its first
        for at, ent in self.deploys:
            next_ = bisect_left(broken, at)
            followed_by = next_ < len(broken) and broken[next_] <= at + criteria.correlation
            if followed_by or ent not in signs:
                signs[ent] = at
        self.deploys = [(at, ent) for ent, at in signs.items()]
        come = deploy_correlated(
            signs.values(), broken, criteria.correlation, criteria.deploys, criteria.share
        )
        if come is None:
            return []
        followed = set(come.followed)
        after = {
            ent for at, ent in self.regressions if any(d <= at <= d + criteria.correlation for d in followed)
        }
        seconds = criteria.correlation / 1_000_000
        return [
            {
                "kind": "deploy_correlated",
                "description": f"Deploy-correlated: {len(come.followed)} of {plural(come.deploys, 'deploy')} in {self.span} followed by "
                f"a regression within {seconds:g} s",
                "events": self._ids([*(ent for at, ent in self.deploys if at in followed), *after]),
                "followed": len(come.followed),
                "deploys": come.deploys,
                "within_seconds": seconds,
            }
        ]

    def _time_of_day(self, ents: list[int]) -> list[Json]:
        criteria = self.criteria
        if sum(self.seen[ent][2] for ent in ents) < criteria.occurrences:
            return []
        instants = sorted(at for ent in ents for at in self._instants(ent))
        come = time_of_day(instants, self.zone, criteria.occurrences, criteria.days, criteria.in_hour)
        if come is None:
            return []
        begin, end = _clock_time(come.begin), _clock_time(come.end)
        how_many = "all" if come.inside == come.total else f"{come.inside:,}"
        return [
            {
                "kind": "time_of_day",
                "description": f"Time of day: {self._name(ents)} seen {plural(come.total, 'time')} in {self.span}, {how_many} between "
                f"{begin} and {end} {criteria.timezone} on {plural(come.days, 'day')}",
                "events": self._ids(ents),
                "occurrences": come.total,
                "inside": come.inside,
                "days": come.days,
                "from": begin,
                "to": end,
                "timezone": criteria.timezone,
            }
        ]

    def _ids(self, ents: Iterable[int]) -> list[str]:
        """Return the ids, newest event first."""
        newest = sorted((-self.seen[ent][0], self.sight.id(ent)) for ent in set(ents))
        return [id for _, id in newest]

    def _name(self, ents: list[int]) -> str:
        return name_of(self.sight.body(ents[-1]).get("description", ""))
