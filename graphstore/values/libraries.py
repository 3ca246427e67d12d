"""Libraries of compiled code, loaded whole: an import of one that Ctrl-C cuts short cannot be made again in this process."""

from __future__ import annotations

import _imp
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

DRIVERS = ("kuzu", "ladybug")
"""One of them can be loaded in a process."""
ARROW = ("numpy", "pyarrow.compute")
HEARS_SIGNALS_EVERY = 0.1
"""Seconds. A signal that another thread of the process received does not wake the one that waits."""
_loaded: set[str] = set()


def load(*names: str) -> None:
    """Load these modules, and what they load. Ctrl-C is raised at once, and does not cut it short: it goes on beside.

    What is not installed is left out, and a driver where one is loaded: the code that needs it raises an error.
    """
    if _loaded.issuperset(names) or threading.current_thread() is not threading.main_thread():
        return
    driven = not sys.modules.keys().isdisjoint(DRIVERS)
    wanted = [name for name in names if not (driven and name in DRIVERS)]
    _give_back_import_lock()
    loading = threading.Thread(target=_load, args=(wanted,), name="graphstore-load")
    loading.start()
    while loading.is_alive():
        loading.join(HEARS_SIGNALS_EVERY)
    _loaded.update(names)


def _give_back_import_lock() -> None:
    """Python keeps its lock of imports when a Ctrl-C falls on the step that takes it: then no other thread can ever import."""
    with suppress(RuntimeError):  # another thread has it, and is importing
        while _imp.lock_held():
            _imp.release_lock()


def _load(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            import_module(name)
