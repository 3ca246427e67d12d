"""The libraries under the engine, loaded whole: an import of compiled code that Ctrl-C cuts short cannot be made again in this process."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module

DRIVERS = ("kuzu", "ladybug")
"""One of them can be loaded in a process."""
_COMPILED = ("numpy", "pyarrow.compute")
HEARS_SIGNALS_EVERY = 0.1
"""Seconds. A signal that another thread of the process received does not wake the one that waits."""


def load(driver: str) -> None:
    """Load the driver and what it loads. Ctrl-C is raised at once, and does not cut it short: it goes on beside.

    What is not installed is left out: the code that needs it raises an error.
    """
    if (
        not sys.modules.keys().isdisjoint(DRIVERS)
        or threading.current_thread() is not threading.main_thread()
    ):
        return
    loading = threading.Thread(target=_load, args=(driver,), name="graphstore-load")
    loading.start()
    while loading.is_alive():
        loading.join(HEARS_SIGNALS_EVERY)


def _load(driver: str) -> None:
    for name in (*_COMPILED, driver):
        with suppress(Exception):
            import_module(name)
