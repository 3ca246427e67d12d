"""Repeats the work of a follower that runs for weeks: errors of a server that is away for a while are retried, after growing pauses.

Nothing is written twice: a follower reads each time which position the other side has reached. Other errors end it, and so does any error before the
first success: the address may be wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from graphstore.errors import ConflictError, EngineError

__all__ = ["Retries", "keep_up"]

_LOOK = 0.1  # seconds between two checks whether to stop
_FIRST, _MOST = 1.0, 60.0  # seconds: the first pause and the longest
T = TypeVar("T")
W = TypeVar("W", bound=tuple[object, ...])


class Retries:
    """Does some work again and again, and says how long to wait after a failure. `report` hears of the first failure of a row and of its end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._succeeded = False
        self._failures = 0  # consecutive failures

    def attempt(self, work: Callable[[], T]) -> tuple[T | None, float]:
        """What the work gives and no pause, or None and a pause before it is done again. Raises what does not pass."""
        try:
            done = work()
        except (EngineError, ConflictError) as error:
            if not self._succeeded or not self._may_pass(error):
                raise
            self._failures += 1
            if self._failures == 1:
                self._report(f"{error} It is tried again.")
            return None, min(_MOST, _FIRST * 2 ** min(self._failures - 1, 10)) * random.uniform(0.5, 1.0)
        if self._failures:
            self._report(f"It goes on, after {self._failures} failed tries.")
        self._succeeded, self._failures = True, 0
        return done, 0.0

    def _may_pass(self, error: EngineError | ConflictError) -> bool:
        # An apparent conflict with another follower may be a late commit of this one, once.
        return error.passes if isinstance(error, EngineError) else self._failures == 1


def keep_up(
    work: Callable[[], W],
    report: Callable[[W], None],
    *,
    every: float,
    failed: Callable[[str], None],
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Do some work every so many seconds, until `ended` says that it is all. `failed` hears what is tried again.

    `report` is called with what the work gives, where one of the two counts it begins with says that something was written.
    """
    retries = Retries(failed)
    while not ended():
        done, pause = retries.attempt(work)
        if done is not None and any(done[:2]):
            report(done)
        until = monotonic() + (pause or every)
        while not ended() and (left := until - monotonic()) > 0:
            sleep(min(left, _LOOK))
