"""Opens and checks the folder of a store with its ledger. Any number of processes may open it and write. A store in memory has a private folder.

memory.gs/
  ledger.db                  the truth (SQLite; its `-wal` and `-shm` belong to it)
  lock                       the write lock
  server.json, token …       the address of a server of the store, and the tokens that it accepts
  graph.kuzu, graph.json     the graph tables and how far they have followed (disposable)
  graph.lock                 held by the process that uses these tables; other processes have tables in memory
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Self
from weakref import WeakSet, finalize

import orjson

from graphstore.errors import DamageError, EngineError, LockedError
from graphstore.ledger import checking, server_file
from graphstore.ledger import erasing as rewrite
from graphstore.ledger import snapshot_readers as reading_snapshots
from graphstore.ledger.copies import NOTE, OLD_VECTORS, known_reach, remove_copies, shortage
from graphstore.ledger.creating import create_ledger, empty_ledger, record_file
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.file_lock import try_lock
from graphstore.ledger.files import open_plain, own_folder, plain_bytes, remove_cut
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.upgrade import OLD, remove_old, upgrade_folder
from graphstore.ledger.write_lock import program
from graphstore.values import findings
from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.values.findings import Problem

_GRAPH_LOCK = "graph.lock"
_BRIEFLY = 1.0  # seconds to wait for other writers when a store is closed
_TRANSACTIONS = "SELECT count(*), coalesce(max(tx), 0) FROM chain WHERE part = 0"
_ACCESSES = "accesses.json"  # written by earlier versions
_FEW = 16  # stores in memory that may be open before garbage is collected, to close abandoned ones
_in_memory: WeakSet[Folder] = WeakSet()
_most = _FEW


class Folder:
    """The folder of one store."""

    shared = True  # True if other processes may write to the store while this one has it open
    tables_elsewhere = False  # True if another process uses the graph tables of the folder
    timeout = 30.0  # seconds that a writer waits for other writers
    clock: Callable[[], datetime] | None = None  # the clock of transactions; None for that of this machine
    _remove: Callable[[], object]  # removes the folder of a store in memory

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.file = path / NAME
        self.shown: Path | None = path  # the folder as shown to users; None for a store in memory
        self.named = str(path)  # the path as it was opened
        self.read_only = read_only
        self.tables = path if not read_only and own_folder(path) else None
        self.notices: list[str] = []
        self._graph_lock: int | None = None  # a file descriptor
        self._opened: list[Database] | None = None  # databases of a store in memory, closed together with it

    @classmethod
    def in_memory(cls) -> Self:
        """Return the folder of a store in memory, a new one for temporary files. It is removed when the store is closed or collected, and when the process
        ends."""
        _collect_many()
        place = cls(Path(tempfile.mkdtemp(prefix="graphstore-")))
        place._opened = []
        place._remove = finalize(place, _removed, str(place.path), os.getpid(), place._opened)
        place.shown = place.tables = None
        place.named, place.shared = server_file.MEMORY, False
        _in_memory.add(place)
        return place

    @property
    def is_in_memory(self) -> bool:
        """Return True for a store in memory, of which nothing is kept."""
        return self._opened is not None

    # ------------------------------------------------------------------ opening and closing

    def hold(self) -> None:
        """Create the ledger if there is none, from the journal of release 0.1 if there is one."""
        if self._opened is not None:
            with open(self.file, "xb") as file:
                file.write(empty_ledger())
        elif not self.read_only:
            self.notices += upgrade_folder(self.path, self.timeout)
            create_ledger(self.file)

    def open_ledger(self, durability: str) -> Ledger:
        """Open the ledger, then take the graph tables. Commits of a store in memory never wait for the disk."""
        if self._opened is not None:
            durability = "none"
        database = Database(self.file, read_only=self.read_only, durability=durability, timeout=self.timeout)
        if self._opened is not None:
            self._opened.append(database)
        try:
            self._take_tables()
            return Ledger(database)
        except BaseException:
            database.close()
            raise

    def read_ledger(self) -> Ledger:
        """Open the ledger a second time, read-only."""
        return Ledger(Database(self.file, read_only=True))

    def _take_tables(self) -> None:
        """Take the graph tables of the folder unless another process uses them."""
        if self.tables is None or self._graph_lock is not None:
            return
        held = open_plain(self.path / _GRAPH_LOCK, os.O_RDWR | os.O_CREAT, alone=True, mode=0o600)
        try:
            if try_lock(held):
                # leftovers of a killed process; listing a folder takes a file descriptor
                for file in self.path.glob(f"{NOTE}*.new"):
                    with contextlib.suppress(OSError):
                        file.unlink()
                self._graph_lock = held
            else:
                self.tables, self.tables_elsewhere = None, True
        finally:
            if self._graph_lock is None:
                os.close(held)

    def prepare(self, ledger: Ledger) -> None:
        """Check a ledger that is a copy, and finish a removal that a killed process left; in a read-only store, hide its remaining bodies.

        Raises DamageError if the graph tables have followed more transactions than the ledger has.
        """
        if self._opened is not None:
            return
        if not self.read_only:
            with contextlib.suppress(OSError):  # forgetting removes them later or reports the error
                remove_cut(self.path.glob(OLD_VECTORS))
            if self.tables is None and not self.tables_elsewhere:
                self.notices.append(
                    f"{self.path} belongs to somebody else, or everybody may write it: the graph tables are kept in memory, for the engine "
                    "that opens their files follows links."
                )
        is_copy = not self.read_only and checking.check_copy(ledger.database)
        known = known_reach(self.path)
        if known is not None and known.last_tx > ledger.last_tx():
            [(transactions, last_tx)] = ledger.database.rows(_TRANSACTIONS)
            if lost := shortage(self.file, known, transactions, last_tx):
                raise DamageError(lost)
        if self.read_only:
            ledger.hide_forgotten()
            return
        if is_copy:
            record_file(ledger.database)
        ledger.finish_removal()
        self._tell_of_bytes(ledger)
        try:
            self.remove_forgotten(ledger)
        except EngineError as error:
            error.outcome = "not kept"  # the outcome of the caller's request; the erasure itself was kept
            raise

    def finish(self, ledger: Ledger) -> None:
        """Remove forgotten contents that another process could not remove: on Windows this process had the files open."""
        if not self.read_only:
            with contextlib.suppress(EngineError, LockedError, DamageError):  # the next opening does it
                self.remove_forgotten(ledger, _BRIEFLY)

    def release(self) -> None:
        """Release the graph tables of the folder for other processes. Remove the folder of a store in memory."""
        if self._graph_lock is not None:
            os.close(self._graph_lock)
            self._graph_lock = None
        if self._opened is not None:
            self._remove()

    def kept_accesses(self, ledger: Ledger) -> dict[str, int]:
        """Return and delete the numbers of lookups by id, from the ledger and from the file that earlier versions wrote."""
        if self.read_only:
            return {}
        kept: Counter[str] = Counter()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            counts = orjson.loads(plain_bytes(self.path / _ACCESSES)).items()
            (self.path / _ACCESSES).unlink()
            kept.update({name: count for name, count in counts if type(count) is int})
        return dict(+kept + Counter(ledger.take_lookups()))

    # ------------------------------------------------------------------ checking

    def check(self) -> tuple[list[Problem], int, Instant]:
        """Compare the chain with its digests, the bodies with their hashes, and all rows with the chain. Changes nothing.

        Returns the problems, the number of transactions, and the instant of the last one; 0 and 0 if the ledger cannot be read.
        """
        found: list[Problem] = []
        try:
            with contextlib.closing(self.read_ledger()) as ledger:
                with ledger.snapshot() as database:
                    wrong = [*checking.faults(database)]
                if ledger.hides_contents() and not self.read_only:
                    wrong.append((0, "forgotten contents are in files beside it still. Reopen the store."))
                found = [
                    findings.Problem(file=str(self.file), line=number or None, message=why)
                    for number, why in wrong
                ]
                [(transactions, last_tx)] = ledger.database.rows(_TRANSACTIONS)
        except EngineError as error:
            return found or [findings.Problem(file=str(self.file), line=None, message=str(error))], 0, 0
        return found, transactions, last_tx

    # ------------------------------------------------------------------ removing

    def _tell_of_bytes(self, ledger: Ledger) -> None:
        """Add a notice if bytes of removed contents are still in the files. It names the processes whose reads keep them there, if the system shows these."""
        if ledger.bytes_left:
            readers = reading_snapshots.snapshot_readers(self.file.with_name(f"{NAME}-shm"))
            who = " and ".join(f"pid {pid}{program(pid)}" for pid in readers) or "another process"
            self.notices.append(
                f"bytes of what was erased or evicted are still in {self.file}: an old snapshot of it is being read by {who}. They are removed "
                "when the store is next opened for writing, or written, after that reading has ended."
            )

    def remove_forgotten(self, ledger: Ledger, timeout: float | None = None) -> None:
        """Remove forgotten contents from all files, unless that was done. Raises EngineError if the disk refuses.

        Args:
            timeout: seconds to wait for other writers; None for the timeout of the store.
        """
        if not ledger.hides_contents():
            return
        left = "What was forgotten is not shown any more, but its content is still in the files. Open the store again: that finishes it."
        try:
            self._remove_copies()
            ledger.remove_forgotten(timeout)
            self._tell_of_bytes(ledger)
        except OSError as error:
            raise EngineError(
                f"cannot remove contents from {error.filename or self.path}: {error.strerror}. {left}",
                outcome="kept",
            ) from error
        except (DamageError, LockedError) as error:
            error.outcome = "kept"
            raise
        except EngineError as error:
            raise EngineError(f"{error} {left}", outcome="kept") from error

    def compact(
        self, ledger: Ledger, gone: set[str], last: rewrite.Transaction, folded: frozenset[Instant]
    ) -> None:
        """Replace the chain by one without the things in `gone` and without the `folded` transactions, and append `last`, in one SQL transaction.

        Raises EngineError if the disk refuses: then nothing is changed, or the error's outcome says otherwise.
        """
        try:
            self._remove_copies()  # no later opening would detect that a copy has the evicted contents
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self.path / OLD}: {error.strerror}. Nothing was evicted.",
                outcome="not kept",
            ) from error
        try:
            with contextlib.closing(self.read_ledger()) as old:
                rest = [*rewrite.left(old, gone, folded), last]
            ledger.replace(rewrite.chained(rest))
            self._tell_of_bytes(ledger)
        except EngineError as error:
            error.outcome = error.outcome or "not kept"
            raise
        try:
            self._remove_copies()
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self.path}: {error.strerror}. What was evicted is not in the ledger any more. Free some space and open the store again.",
                outcome="kept",
            ) from error

    def _remove_copies(self) -> None:
        """Remove the other files with contents: the graph tables, and what an upgrade kept of release 0.1. Raises OSError."""
        if remove_old(self.path):
            self.notices.append(
                f"{self.path / OLD}, the files of release 0.1, was removed: what is forgotten was in it too."
            )
        remove_copies(self.path)


def _removed(folder: str, pid: int, opened: list[Database]) -> None:
    """Close databases and remove a folder, except in a fork of the process that created it."""
    if os.getpid() == pid:
        for database in opened:
            database.close()
        rmtree(folder, ignore_errors=True)


def _collect_many() -> None:
    """Collect garbage when many stores in memory are open, so that abandoned ones close their files."""
    global _most
    if len(_in_memory) > _most:
        gc.collect()
        _most = max(_FEW, 2 * len(_in_memory))
