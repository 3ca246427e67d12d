"""What a store asks of its journal, wherever that is: a folder, memory, or the tables of a PostgreSQL server.

Index, graph tables, views and every way to ask know no more of it than this. A transaction: `take_turn` → `read` what others wrote →
decide → `append` → `start_sync` → `leave_turn` → `sync` waits until it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Protocol

from graphstore.core.journal.files import Moves
from graphstore.core.journal.positions import Line, Place, Position

Ticket = int  # the number of the transaction appended last, counted since the journal was opened
State = tuple[
    Position, str, tuple[int, int, int] | None, Ticket
]  # the end, the last digest, the last line (segment, offset, length), the number of the last transaction


class Seam(Protocol):
    """An append-only log of transactions in a chain of digests. The writer appends; a reader follows; both read bodies by place."""

    def take_turn(self) -> bool:
        """Become the one that may append, until `leave_turn`. Returns whether lines of others are to be read first."""

    def leave_turn(self) -> None:
        """Let others append."""

    def append(self, lines: list[tuple[dict[str, Any], list[bytes]]]) -> list[list[tuple[int, int]]]:
        """Write one transaction after the last: head and bodies of each line. Returns the places of the bodies."""

    def ticket(self) -> Ticket:
        """A ticket for `sync`: everything appended so far."""

    def start_sync(self) -> None:
        """Begin to make durable what was committed, and not take it back any more. `sync` waits for it."""

    def sync(self, ticket: Ticket) -> bool:
        """Wait until what the ticket stands for is durable. False: it is not, and `cut_back` decides what became of it."""

    def check(self, ticket: Ticket, tx: datetime | None = None) -> None:
        """Raise EngineError when what a ticket stands for was not kept, or when that is unknown."""

    def cut_back(self) -> bool:
        """After a failed `sync`: take away what did not become durable. False: that is unknown, and nothing more is written."""

    def rewind(self, state: State) -> None:
        """Take away what was appended last and never acknowledged."""

    @property
    def state(self) -> State:
        """The last state: its end and its digest, for `rewind`."""

    @property
    def digest(self) -> str:
        """The digest of the last line, which identifies the journal's state."""

    def read(self, progress: Callable[[int, int], None] | None = None) -> Iterator[list[Line]]:
        """The sealed transactions since the end of what was read, each as its lines, verified. Raises DamageError."""

    def again(self, place: Place) -> Iterator[Line]:
        """The lines at a place once more, each checked by itself. Raises DamageError."""

    def renewed(self) -> bool:
        """Whether something else has taken the place of what was read: then `reopen`, and read from the beginning."""

    def reopen(self) -> None:
        """Begin anew: the next `read` is from the first line."""

    def raw(self, pos: int, length: int) -> bytes:
        """The bytes of the body at a place. Raises DamageError when they do not match their hash."""

    def blank(self, segment: int, places: list[Place]) -> Moves:
        """Remove these bodies for good; their hashes stay. Returns how the other bodies moved."""

    def close(self) -> None:
        """Make everything durable and let go of it."""
