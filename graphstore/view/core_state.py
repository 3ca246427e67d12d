"""Share state between the readers and the writer of one store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from graphstore.errors import InvalidError
from graphstore.read import settings, working_set
from graphstore.read.points import Point
from graphstore.search import row_search as searching
from graphstore.search.asserted import Asserted
from graphstore.search.lookups import Accesses
from graphstore.search.source import Source
from graphstore.values.period import OPEN, Instant
from graphstore.values.vocabulary import Vocabulary
from graphstore.view import snapshots

if TYPE_CHECKING:
    from graphstore.graph.graphs import Graphs
    from graphstore.ledger.branch_ledger import BranchLedger
    from graphstore.ledger.ledger import Ledger
    from graphstore.ledger.scoped_ledger import ScopedLedger
    from graphstore.read.working_set import KnownKinds, WorkingSet
    from graphstore.search.row_search import RowSearch
    from graphstore.values.models import Snapshot

    LedgerRows = Ledger | BranchLedger | ScopedLedger


class CoreReader(Protocol):
    """What the helpers of `View` need of a view or a store."""

    _core: Core

    def setting(self, name: str) -> Any:
        """Return a setting of the store."""

    def coordinate(self) -> tuple[Instant, Instant]:
        """Return the valid time and the tx at which it reads."""

    def reading(self) -> AbstractContextManager[Any]:
        """Return a block that reads at the coordinate."""

    def pinned(self, valid: Instant, tx: Instant) -> CoreReader:
        """Return a reader at another coordinate."""


class RowsShown(Protocol):
    """The rows that an open transaction shows to its own reads, see `ShownRows`."""

    versions: int
    operations: int

    @property
    def search(self) -> RowSearch:
        """Return the search over the rows that are shown."""

    def show(self) -> None:
        """Write what the transaction has done."""

    def hide(self) -> None:
        """Remove the rows."""


@dataclass
class Core(Source):
    """Shares state between the readers and the writer of one store. `lock` guards which branches are in use; no other read or write waits for it."""

    index: WorkingSet = field(init=False)  # the working set, in a verb only
    vocabulary: Vocabulary
    graphs: Graphs
    rows: LedgerRows = field(kw_only=True)  # the rows that answer reads
    refusal: str = field(default="this is not answered by the rows of the ledger.", kw_only=True)
    lock: threading.RLock = field(default_factory=threading.RLock)
    closed: str | None = None  # why reads are refused
    memo: dict[Any, Any] = field(default_factory=dict)  # answers cached until the next write
    asserted: Asserted = field(default_factory=Asserted)
    accesses: Accesses = field(default_factory=Accesses)
    doors: dict[Instant, str] = field(default_factory=dict)  # doors of this process's last writes, by tx
    vectors: Any = None  # `vector_search.Vectors`, of the store and its branches
    meanings: dict[str, Any] = field(default_factory=dict)  # `vector_search.Meanings` by the embedder's name
    working: WorkingSet | None = None  # the working set of the open transaction
    worker: int = 0  # the thread of that transaction
    in_verb: bool = False  # True while one of its verbs runs
    shown: RowsShown | None = None  # the rows it shows to its own reads
    embedder_of: ClassVar[Callable[[str], Any] | None] = None  # makes an embedder from its name

    @cached_property
    def kinds(self) -> KnownKinds:
        """Return the kinds of link that were defined, for the working sets of transactions."""
        return working_set.KnownKinds()

    @cached_property
    def row_search(self) -> RowSearch:
        """Return the search over the rows, with its caches."""
        return searching.RowSearch()

    @property
    def answering(self) -> LedgerRows:
        """Return the ledger whose rows answer a read, after showing an open transaction of this thread. Raises InvalidError if the store is closed."""
        if self.closed:
            raise InvalidError(self.closed)
        if self.working is not None and self.worker == threading.get_ident():
            self.show_rows()
        return self.rows

    @property
    def is_worker(self) -> bool:
        """Return True if this thread has an open transaction."""
        return self.working is not None and self.worker == threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        """Return the working set of the running verb as `index`. Raises InvalidError outside a verb, where reads use the rows."""
        if name != "index":
            raise AttributeError(name)
        if self.is_worker and self.in_verb:
            return self.working
        raise InvalidError(self.refusal)

    @contextmanager
    def on_working_set(self) -> Iterator[None]:
        """Make the transaction of this thread, if any, read from its working set in the block."""
        was_in_verb = self.in_verb
        try:
            self.in_verb = self.is_worker
            yield
        finally:
            self.in_verb = was_in_verb

    def show_rows(self) -> None:
        """Write as rows what the open transaction has done."""
        if self.working is not None and self.shown is not None:
            self.shown.show()

    def hide_rows(self) -> None:
        """Remove the rows that the transaction of this thread shows."""
        if self.shown is not None and self.is_worker:
            self.shown.hide()

    def setting(self, name: str) -> Any:
        """Return the setting with a name, None if it was never set."""
        if self.is_worker and self.in_verb:
            return self.index.setting(name)
        return settings.setting(Point(self.answering.database, OPEN, OPEN), name)

    def forget_found(self) -> None:
        """Drop the caches of rows that were removed or renumbered."""
        vars(self).pop("row_search", None)
        self.asserted = Asserted()
        self.accesses.forget_written()
        self.memo.clear()

    def snapshots(self, tx: Instant) -> list[Snapshot]:
        """Return the snapshots made by `tx`, in order."""
        if self.is_worker and self.in_verb:
            last = min(tx, self.index.last_tx)  # the rows may include those of the transaction
            before = settings.snapshots(Point(self.rows.database, OPEN, last))
            return before + snapshots.known(self.index, tx)
        return settings.snapshots(Point(self.answering.database, OPEN, tx))

    def refuse_closed(self) -> None:
        """Raise InvalidError if the store is closed."""
        if self.closed:
            raise InvalidError(self.closed)
