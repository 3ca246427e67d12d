"""What is committed and not on the disk yet: nobody but the thread that wrote it sees it before it is."""

from __future__ import annotations

import threading

from graphstore.core.journal.journal import Ticket
from graphstore.core.journal.positions import Position
from graphstore.values.period import OPEN, Instant


class Waiting:
    """The transactions of one store, those of its branches included, that wait for the disk: one by one, or as a group that shares one sync.

    Whoever changes it holds the writer's lock; whoever looks holds none.
    """

    def __init__(self) -> None:
        self._told: dict[Ticket, Instant] = {}  # what a sync is to make durable, and its first instant
        self._thread = 0  # the one whose group is open
        self._first = OPEN  # the first instant of that group

    @property
    def grouping(self) -> bool:
        """Whether a group is open. Asked with the writer's lock held: then it is this thread's."""
        return self._thread != 0

    @property
    def mine(self) -> bool:
        """Whether a group of this thread is open."""
        return self._thread == threading.get_ident()

    def begin(self) -> None:
        """What is told from now on waits for one sync."""
        self._thread = threading.get_ident()

    def tell(self, ticket: Ticket, tx: Instant) -> None:
        """A transaction was committed. The ticket is the journal's after it."""
        if self.grouping:
            self._first = min(self._first, tx)
        else:
            self._told[ticket] = tx

    def end(self, ticket: Ticket) -> None:
        """The group is whole, and waits for its sync."""
        if self._first < OPEN:
            self._told[ticket] = min(self._first, self._told.get(ticket, OPEN))
        self._thread, self._first = 0, OPEN

    def served(self, ticket: Ticket) -> None:
        """It is durable, or was taken back."""
        self._told.pop(ticket, None)

    def clear(self) -> None:
        """All that was told is durable, and places in the journal are about to move."""
        self._told.clear()
        self._first = OPEN

    def since(self, durable: Position) -> Instant:
        """The first instant that is not durable yet, when the journal is up to there; OPEN when there is none."""
        told = [tx for (_, end), tx in tuple(self._told.items()) if end > durable]
        return min([*told, self._first])
