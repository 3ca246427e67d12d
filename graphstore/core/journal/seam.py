"""What a store asks of its journal, be it a ledger or one of release 0.1.

Index, graph tables, views and every way to ask know no more of it than this. A transaction: `take_turn` → `read` what others wrote →
decide → `append` → `start_sync` → `leave_turn` → `sync` waits until it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from graphstore.core.journal.files import Moves, Torn
from graphstore.core.journal.positions import Line, Place, Position
from graphstore.values.period import Instant

Ticket = int  # the number of the transaction appended last, counted since the journal was opened
State = tuple[
    Position, str, tuple[int, int, int] | None, Ticket
]  # the end, the last digest, the last line (segment, offset, length), the number of the last transaction


class Seam(Protocol):
    """An append-only log of transactions in a chain of digests. The writer appends; a reader follows; both read bodies by place."""

    failed: str | None  # why what was appended last did not become durable
    away: str | None  # why what others wrote could not be looked for last

    @property
    def path(self) -> Path:
        """The file or folder that holds it."""

    @property
    def torn(self) -> Torn | None:
        """The tail that was never acknowledged, as the last `read` found it."""

    @property
    def appended(self) -> Place:
        """Where the lines appended last are."""

    @property
    def end(self) -> Position:
        """How far it was read or written."""

    @property
    def durable(self) -> Ticket:
        """The transactions up to this number are durable."""

    @property
    def broken(self) -> str | None:
        """Why nothing may be written any more before the store is opened again."""

    @property
    def generation(self) -> int:
        """How often it was rewritten."""

    @property
    def in_turn(self) -> bool:
        """Whether a thread of this process has the turn to write, where processes take turns."""

    def has_more(self) -> bool:
        """Whether another process has committed something that was not read here, where that is asked for at each read."""

    def size(self) -> int:
        """The size in bytes."""

    def changed(self) -> int:
        """When it was written to last, in microseconds, by the clock of that time."""

    def begin_group(self) -> None:
        """What is appended from here on becomes durable together, or not at all."""

    def end_group(self) -> None:
        """The group is whole."""

    def settle(self) -> None:
        """Make everything durable now. Raises EngineError when the disk refuses."""

    def break_off(self, why: str) -> None:
        """Refuse everything that would be written before the store is opened again."""

    def quiet(self) -> AbstractContextManager[None]:
        """A block in which it is read again."""

    def make_ready(self) -> None:
        """Set a torn tail aside."""

    def start_at(self, position: Position, digest: str) -> None:
        """Continue from a position; what is before it is known."""

    def unchanged(self) -> bool:
        """Whether what was read last is still there."""

    def ends_at(self, end: Any, digest: str) -> bool:
        """Whether the line that ends at a position has that digest."""

    def lines(self, upto: State) -> Iterator[bytes]:
        """The lines up to a state, in pieces that need not end with a line."""

    def count(self, upto: State) -> tuple[int, int]:
        """How many lines and how many transactions there are up to a state."""

    def written(self, lines: list[Line]) -> list[bytes]:
        """The bytes of some lines that were read, without their newlines."""

    def followed(self) -> int:
        """How far others were followed, for `done_elsewhere`."""

    def done_elsewhere(self, request: str, since: int) -> bool:
        """Whether another process has done a request, by its id, where it had not when `followed` gave `since`."""

    def watch(self, follow: Callable[[], object]) -> None:
        """Call `follow` whenever others may have written."""

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

    def heads_since(self, tx: Instant) -> list[dict[str, Any]]:
        """The heads of the transactions after an instant, at least of those that record arguments."""

    def renewed(self) -> bool:
        """Whether something else has taken the place of what was read: then `reopen`, and read from the beginning."""

    def removals(self) -> int:
        """How often bodies were removed that `renewed` does not tell of."""

    def reopen(self) -> None:
        """Begin anew: the next `read` is from the first line."""

    def raw(self, pos: int, length: int) -> bytes:
        """The bytes of the body at a place. Raises DamageError when they do not match their hash."""

    def blank(self, segment: int, places: list[Place]) -> Moves:
        """Remove these bodies for good; their hashes stay. Returns how the other bodies moved."""

    def close(self) -> None:
        """Make everything durable and let go of it."""
