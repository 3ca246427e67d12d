"""Finds events that may have led to others, by how close in time they are. It is pure: its results are hypotheses, each with its reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from graphstore.errors import InvalidError
from graphstore.values.period import BEGINNING, MICROSECOND, OPEN, Instant

CORRELATION = timedelta(seconds=30)
RELOAD = timedelta(seconds=60)

Pair = tuple[str, str, str]  # source, kind, target


class Happening(NamedTuple):
    """An event for correlation: its occurrences in order, and the quiet time since the last of them."""

    id: str
    type: str
    seen: tuple[Instant, ...]
    quiet: int = OPEN
    """Microseconds of active browsing since the last occurrence."""


class Proposal(NamedTuple):
    """A link that may be inferred: `source kind target`, valid from `valid_from`, with its reason."""

    source: str
    kind: str
    target: str
    valid_from: Instant
    reason: str


def correlate(
    happenings: Iterable[Happening],
    *,
    linked: Collection[Pair] = (),
    correlation: timedelta = CORRELATION,
    reload: timedelta = RELOAD,
) -> list[Proposal]:
    """Return the inferred links among events: a regression soon after a deploy, and an error that ended with a deploy.

    A regression at most `correlation` after a deploy (also a change of resources) is `caused_by` it. An error is `resolved_by` a deploy if its last
    occurrence is at most `reload` before or after it, and both have been quiet for `reload`; the link is valid from the later of the two. An error with
    several occurrences, all after the deploy, began with it and gets no link. Both windows include their ends. Pairs in `linked` are skipped.
    """
    known = list(happenings)
    deploys = [each for each in known if each.type == "deploy"]
    near, away = microseconds(correlation, "correlation"), microseconds(reload, "reload")
    found: dict[Pair, Proposal] = {}
    for each in known:
        for deploy in deploys:
            proposal = None
            if each.type == "regression":
                proposal = _led_to(deploy, each, near)
            elif each.type == "error":
                proposal = _ended(deploy, each, away)
            if proposal is not None and proposal[:3] not in linked:
                found.setdefault(proposal[:3], proposal)
    return list(found.values())


def _led_to(deploy: Happening, regression: Happening, near: int) -> Proposal | None:
    for at in regression.seen:
        apart = min((at - cause for cause in deploy.seen if cause <= at), default=OPEN)
        if apart <= near:
            reason = f"{_seconds(apart)} after deploy {deploy.id}"
            return Proposal(regression.id, "caused_by", deploy.id, at, reason)
    return None


def _ended(deploy: Happening, error: Happening, away: int) -> Proposal | None:
    if min(error.quiet, deploy.quiet) < away:
        return None
    last = error.seen[-1]
    if len(error.seen) > 1 and error.seen[0] >= max(deploy.seen):
        return None  # it began with that deploy
    reloaded = min(deploy.seen, key=lambda at: abs(at - last))
    if abs(reloaded - last) > away:
        return None
    side = "before" if last <= reloaded else "after"
    reason = f"last seen {_seconds(abs(reloaded - last))} {side} deploy {deploy.id}, not seen for {_seconds(away)} since"
    return Proposal(error.id, "resolved_by", deploy.id, max(last, reloaded), reason)


def _seconds(length: int) -> str:
    return f"{round(length / 1_000_000, 1):g} s"


def microseconds(window: timedelta, what: str) -> int:
    """Return the length of a window in microseconds. Raise InvalidError unless it is a timedelta of 0 or more."""
    if not isinstance(window, timedelta) or window < timedelta(0):
        raise InvalidError(
            f"{what} {window!r} is no length of time. Give a timedelta, such as timedelta(seconds=30)."
        )
    return window // MICROSECOND


class Activity:
    """Records when a user was browsing, from noted instants. The time between two of them counts, unless `active` is false."""

    def __init__(self, latest: Instant | None = None, stretches: Iterable[Iterable[Instant]] = ()) -> None:
        self._stretches = [list(each) for each in stretches]
        self._latest = latest
        self.seen: Instant = BEGINNING
        """The latest instant of any observation, even if it is unknown whether a user was browsing."""

    @property
    def latest(self) -> Instant:
        """Return the latest instant noted."""
        return max(self.seen, BEGINNING if self._latest is None else self._latest)

    def note(self, at: Instant, active: bool = True, gap: int | None = None) -> None:
        """Note an instant. One earlier than the latest adds no time, and neither does one more than `gap` microseconds later."""
        before = self._latest
        if before is not None and at <= before:
            return
        self._latest = at
        if before is None or not active or (gap is not None and at - before > gap):
            return
        if self._stretches and self._stretches[-1][1] == before:
            self._stretches[-1][1] = at
        else:
            self._stretches.append([before, at])

    def since(self, begin: Instant) -> int:
        """Return the microseconds of activity since an instant."""
        length = 0
        for start, stop in reversed(self._stretches):
            if stop <= begin:
                break
            length += stop - max(start, begin)
        return length

    def kept(self, least: int) -> list[Any]:
        """Return the latest instant and the last stretches with at least `least` microseconds together: arguments for an equal Activity."""
        found: list[list[Instant]] = []
        for stretch in reversed(self._stretches):
            if least <= 0:
                break
            found.insert(0, stretch)
            least -= stretch[1] - stretch[0]
        return [self._latest, found]
