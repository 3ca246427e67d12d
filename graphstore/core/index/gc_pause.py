"""A pause of garbage collection, where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collecting() -> Iterator[None]:
    """Pause garbage collection while millions of containers are made that all stay: scanning them repeatedly would cost most."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if not gc.get_freeze_count():
                # what was made meanwhile counts as old: else all of it is scanned twice before it does
                gc.freeze()
                gc.unfreeze()
            gc.enable()
