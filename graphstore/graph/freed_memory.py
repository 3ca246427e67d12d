"""Return freed memory to the system: an engine in memory frees many small pieces, which the C library keeps otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import monotonic

_EVERY = 5.0  # seconds between two times: a graph built right after one takes three times as long, since its pages are requested anew
_last = -_EVERY


def give_back_memory() -> None:
    """Return freed memory to the system, at most once in a while, where the C library can."""
    global _last
    now = monotonic()
    if now - _last < _EVERY or (trim := _trim()) is None:
        return
    trim(0)
    _last = now


@cache
def _trim() -> Callable[[int], int] | None:
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
