"""Pause garbage collection where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 10_000  # containers


@contextmanager
def no_collecting() -> Iterator[None]:
    """Pause garbage collection while many containers are created that all stay: with millions, repeated scans would take most of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                # The new containers count as old at once; otherwise all are scanned twice before they do.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
