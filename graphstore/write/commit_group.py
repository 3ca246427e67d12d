"""Keep the transactions of a group that is not committed yet: until then only the thread that wrote them sees them."""

from __future__ import annotations

import threading

from graphstore.values.period import OPEN, Instant


class Waiting:
    """The transactions of a store and its branches that are committed together.

    To change it hold the writer's lock; reading needs no lock.
    """

    def __init__(self) -> None:
        self._thread = 0  # the thread whose group is open
        self.first = OPEN  # the first instant of that group

    @property
    def grouping(self) -> bool:
        """Return True if a group is open. Call it with the writer's lock held: then the group is this thread's."""
        return self._thread != 0

    @property
    def mine(self) -> bool:
        """Return True if a group of this thread is open."""
        return self._thread == threading.get_ident()

    def begin(self) -> None:
        """Begin a group."""
        self._thread = threading.get_ident()

    def add(self, tx: Instant) -> None:
        """Add a transaction to the open group, if there is one."""
        if self.grouping:
            self.first = min(self.first, tx)

    def clear(self) -> None:
        """Remove all: everything is committed, and the chain is about to be rewritten."""
        self.first = OPEN

    def end(self) -> None:
        """End the group."""
        self._thread, self.first = 0, OPEN
