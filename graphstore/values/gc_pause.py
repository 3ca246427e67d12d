"""A pause of garbage collection, where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 10_000  # containers


@contextmanager
def no_collecting() -> Iterator[None]:
    """Pause garbage collection while containers are made that all stay: where they are millions, scanning them repeatedly would cost most."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                # so many that were made meanwhile count as old: else all of them are scanned twice before they do
                gc.freeze()
                gc.unfreeze()
            gc.enable()
