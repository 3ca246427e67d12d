"""Transactions committed and not yet on the disk: until then only the thread that wrote them sees them."""

from __future__ import annotations

import threading

from graphstore.ledger.ledger import Ticket
from graphstore.values.period import OPEN, Instant


class Waiting:
    """The transactions of a store and its branches that wait for the disk: one by one, or as a group that shares one sync.

    To change it hold the writer's lock; reading needs no lock.
    """

    def __init__(self) -> None:
        self._unsynced: dict[Ticket, Instant] = {}  # what a sync is to make durable -> its first instant
        self._thread = 0  # the thread whose group is open
        self._first = OPEN  # the first instant of that group

    @property
    def grouping(self) -> bool:
        """Whether a group is open. Call it with the writer's lock held: then the group is this thread's."""
        return self._thread != 0

    @property
    def mine(self) -> bool:
        """Whether a group of this thread is open."""
        return self._thread == threading.get_ident()

    @property
    def any(self) -> bool:
        """Whether anything may wait."""
        # a group first: what waits in it joins the others as it ends
        return self._thread != 0 or bool(self._unsynced)

    def begin(self) -> None:
        """Begin a group: its transactions wait for one sync."""
        self._thread = threading.get_ident()

    def add(self, ticket: Ticket, tx: Instant) -> None:
        """Add a committed transaction. The ticket is the journal's after it."""
        if self.grouping:
            self._first = min(self._first, tx)
        else:
            self._unsynced[ticket] = tx

    def end(self, ticket: Ticket) -> None:
        """End the group; it waits for its sync."""
        if self._first < OPEN:
            self._unsynced[ticket] = min(self._first, self._unsynced.get(ticket, OPEN))
        self._thread, self._first = 0, OPEN

    def served(self, ticket: Ticket) -> None:
        """Remove what is durable or was cut off."""
        self._unsynced.pop(ticket, None)

    def clear(self) -> None:
        """Remove all: everything is durable, and places in the journal are about to move."""
        self._unsynced.clear()
        self._first = OPEN

    def since(self, durable: Ticket) -> Instant:
        """The first instant not yet durable, given how far the journal is; OPEN when there is none."""
        first = self._first  # before the others, which a group that ends joins
        if not self._unsynced:
            return first
        return min([first, *(tx for ticket, tx in tuple(self._unsynced.items()) if ticket > durable)])
