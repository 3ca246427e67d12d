"""Import compiled libraries completely: an import that Ctrl-C interrupts cannot be repeated in the same process."""

from __future__ import annotations

import _imp
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

DRIVERS = ("kuzu", "ladybug")
"""A process can load one of them."""
ARROW = ("numpy", "pyarrow.compute")
HEARS_SIGNALS_EVERY = 0.1
"""Seconds. A signal that another thread of the process received does not wake the waiting thread."""
_loaded: set[str] = set()


def load(*names: str) -> None:
    """Import these modules and what they import. Ctrl-C raises at once, but the import continues in another thread.

    Missing modules are skipped, and drivers if one is loaded; the code that needs them raises an error.
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
    """Release the import lock if this thread still holds it. A Ctrl-C during its acquisition leaves it locked, and no other thread could ever import."""
    with suppress(RuntimeError):  # another thread holds it, for an import
        while _imp.lock_held():
            _imp.release_lock()


def _load(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            import_module(name)
