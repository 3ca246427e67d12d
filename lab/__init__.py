"""The fault lab: real processes on one store under kills, stops, failing system calls, a full disk and jumping clocks.

Every process notes outside the store what it is about to ask and what it was answered; an outside checker then holds the store against the notes.
"""

from __future__ import annotations

import ctypes
import signal


def end_with_parent() -> None:
    """Called in a new process before it runs: it is killed when the one that started it ends, where the system can do so."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(1, signal.SIGKILL)
