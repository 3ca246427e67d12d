"""Random bits for ids and salts. Many are drawn from the system at once, because each system call may let another thread run first."""

from __future__ import annotations

import os

_AT_ONCE = 512
_drawn: list[str] = []  # and not used yet


def random_64() -> str:
    """Return 64 random bits as 16 hex characters, for a salt or an id."""
    while True:
        try:
            return _drawn.pop()
        except IndexError:
            fresh = os.urandom(8 * _AT_ONCE).hex()
            _drawn.extend([fresh[at : at + 16] for at in range(0, len(fresh), 16)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # the parent uses them
