"""A store's folder with its ledger: any number of processes have it open, and all may write.

memory.gs/
  ledger.db                  the truth (SQLite; `-wal` and `-shm` beside it belong to it)
  lock                       the turn of writers
  server.json, token …       where it is served, and what a client shows to be let in
  graph.kuzu, graph.json     the graph tables and how far they are (disposable)
  graph.lock                 held by the process whose tables those are; the tables of others are in memory
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from graphstore.core.folder import rewrite
from graphstore.core.folder.folder import Folder, known_reach, shortage
from graphstore.core.folder.upgrading import upgrade_folder
from graphstore.core.journal.file_lock import try_lock
from graphstore.core.journal.files import open_plain
from graphstore.errors import DamageError, EngineError, LockedError
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.snapshot_readers import snapshot_readers
from graphstore.ledger.upgrade import OLD, remove_old
from graphstore.ledger.write_lock import program
from graphstore.values.models import Problem
from graphstore.values.period import Instant

T = TypeVar("T")
_GRAPH_LOCK = "graph.lock"
_BRIEFLY = 1.0  # seconds to wait for other writers when a store is closed
_TRIES = 20  # so often a chain is read that others rewrite
_TRANSACTIONS = "SELECT count(*), coalesce(max(tx), 0) FROM chain WHERE part = 0"
_COPIES = ("index", "words", "graph.json")  # how the names of copies begin


class Checked(NamedTuple):
    """Says what of a ledger differs from what was written, how many transactions it has, and when the last one was; 0 and 0 where it cannot be read."""

    problems: list[Problem]
    transactions: int
    last_tx: Instant


class LedgerFolder(Folder):
    """The folder of a store whose truth is `ledger.db`."""

    shared = True

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__(path, read_only=read_only)
        self.file = path / NAME
        self.journal = self.file  # named in problems
        self._is_new_here = False  # whether the ledger is a copy that was not opened before
        self._is_accepted = False  # whether it was found to be whole
        self._graph_lock: int | None = None  # a descriptor
        self._waiting: list[str] = []  # notices of what happened before there was a store to tell it
        self._notify: Callable[[str], None] = self._waiting.append

    def hold(self) -> None:
        """Make the ledger where there is none, of the journal of release 0.1 where that is there."""
        if self.read_only:
            return
        self._waiting += upgrade_folder(self.path, self.timeout)
        Database.create(self.file)

    def _take_tables(self) -> None:
        """Take the graph tables of the folder unless another process has them."""
        if self.read_only or self.tables is None or self._graph_lock is not None:
            return
        held = open_plain(self.path / _GRAPH_LOCK, os.O_RDWR | os.O_CREAT, alone=True, mode=0o600)
        try:
            if try_lock(held):
                self._remove_unfinished()
                self._graph_lock = held
            else:
                self.tables, self.tables_elsewhere = None, True
        finally:
            if self._graph_lock is None:
                os.close(held)

    def _remove_unfinished(self) -> None:
        """Remove copies that a killed process was writing: they may hold what was erased since. Nobody else has the graph tables, so nobody is
        writing one. Raises OSError when the folder cannot be listed."""
        for file in self.path.glob("*.new"):
            if file.name.startswith(_COPIES):
                with contextlib.suppress(OSError):
                    file.unlink()

    def open_journal(self, durability: str) -> Ledger:
        """Open the ledger, and take the graph tables once it is known to be one."""
        database = Database(self.file, read_only=self.read_only, durability=durability, timeout=self.timeout)
        try:
            self._take_tables()
            return Ledger(database)
        except BaseException:
            database.close()
            raise

    def fresh_journal(self) -> Ledger:
        """Open the ledger once more, only to be read."""
        return Ledger(Database(self.file, read_only=True))

    def is_written(self) -> bool:
        """Whether another process may be replacing what is read: a commit is whole, so none is."""
        return False

    def finish(self, journal: Ledger) -> None:
        """Remove what was forgotten where another process could not: on Windows no file is removed that this one had open."""
        if not self.read_only:
            with contextlib.suppress(EngineError, LockedError, DamageError):  # the next opening does it
                self.remove_forgotten(journal, _BRIEFLY)

    def release(self) -> None:
        """Let another process have the graph tables of the folder."""
        if self._graph_lock is not None:
            os.close(self._graph_lock)
            self._graph_lock = None

    def prepare(self, journal: Ledger, notify: Callable[[str], None]) -> bool:
        """Check a ledger that is a copy, finish what a killed process left of a removal, or hide that where the store is only read. Returns True: the
        index may wait. Raises DamageError where the graph tables know more than the ledger has."""
        self._notify = notify
        for notice in self._waiting:
            notify(notice)
        super().prepare(journal, notify)
        if not self.read_only:
            self._is_new_here = journal.check_copy()
        known = known_reach(self.path)
        if known is not None and known.last_tx > (last_tx := journal.last_tx()):
            [(transactions, _)] = journal.database.rows(_TRANSACTIONS)
            if lost := shortage(self.journal, known, transactions, last_tx):
                raise DamageError(lost)
        if self.read_only:
            journal.hide_forgotten()
            return True
        self._accept(journal)
        try:
            self.remove_forgotten(journal)
        except EngineError as error:
            error.outcome = "not kept"  # what was asked for; the erasure that this was to finish is
            raise
        return True

    def _accept(self, journal: Ledger) -> None:
        """Note that a ledger is whole, and finish what a killed process left of a removal."""
        if self._is_accepted:
            return
        self._is_accepted = True
        if self._is_new_here:
            journal.database.record_file()
        journal.finish_removal()
        self._tell_of_bytes(journal)

    def _tell_of_bytes(self, journal: Ledger) -> None:
        """Note that bytes of what was removed are still in the files, and which processes keep them there, where the system tells."""
        if journal.bytes_left:
            readers = snapshot_readers(self.file.with_name(f"{NAME}-shm"))
            who = " and ".join(f"pid {pid}{program(pid)}" for pid in readers) or "another process"
            self._notify(
                f"bytes of what was erased or evicted are still in {self.file}: an old snapshot of it is being read by {who}. They are removed "
                "when the store is next opened for writing, or written, after that reading has ended."
            )

    def remove_forgotten(self, journal: Ledger, timeout: float | None = None) -> None:
        """Remove what was forgotten from all files, unless that was done. Raises EngineError when the disk refuses.

        Args:
            timeout: seconds to wait for other writers; None for those of the store.
        """
        if not journal.hides_contents():
            return
        try:
            self._remove_old()
            self._remove_copies()
            journal.remove_forgotten(timeout)
            self._tell_of_bytes(journal)
        except OSError as error:
            raise EngineError(
                f"cannot remove contents from {error.filename or self.path}: {error.strerror}. What was forgotten is not shown any more, but "
                "its content is still in the files. Open the store again: that finishes it.",
                outcome="kept",
            ) from error
        except (DamageError, LockedError) as error:
            error.outcome = "kept"
            raise
        except EngineError as error:
            raise EngineError(
                f"{error} What was forgotten is not shown any more, but its content is still in the files. Open the store again: that finishes it.",
                outcome="kept",
            ) from error

    def compact(
        self,
        deleted: Iterable[tuple[str, Instant]],
        journal: Ledger,
        gone: set[str],
        last: rewrite.Transaction,
        tx: Instant,
        folded: frozenset[Instant] = frozenset(),
    ) -> None:
        """Replace the chain by one without the things of these ids and the `folded` transactions, with one transaction more, at `tx`, in one SQL
        transaction. Raises EngineError when the disk refuses: everything is then as it was, or its outcome says otherwise."""
        try:
            self._remove_old()
            self._remove_copies()  # no opening would find out that one of them has what is evicted
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self.path / OLD}: {error.strerror}. Nothing was evicted.",
                outcome="not kept",
            ) from error
        old = self.fresh_journal()
        try:
            transactions = [*rewrite.left(old, gone, deleted, folded), last]
            for _ in rewrite.chained(transactions):  # which completes their heads
                pass
            journal.replace(transactions)
            self._tell_of_bytes(journal)
        except EngineError as error:
            error.outcome = error.outcome or "not kept"
            raise
        finally:
            old.close()
        try:
            self._remove_copies()
        except OSError as error:
            raise EngineError(
                f"cannot remove {error.filename or self.path}: {error.strerror}. What was evicted is not in the ledger any more. Free some space and open the store again.",
                outcome="kept",
            ) from error

    def _remove_old(self) -> None:
        """Remove what an upgrade has left of release 0.1: it has the contents too. Raises OSError."""
        if remove_old(self.path):
            self._notify(
                f"{self.path / OLD}, the files of release 0.1, was removed: what is forgotten was in it too."
            )

    def check(self) -> Checked:
        """Compare the chain with its digests, the bodies with their hashes, and all rows with the chain. Changes nothing."""
        found: list[Problem] = []
        try:
            with contextlib.closing(self.fresh_journal()) as ledger:
                faults = [*ledger.faults()]
                if ledger.hides_contents() and not self.read_only:
                    faults.append((0, "forgotten contents are in files beside it still. Reopen the store."))
                found = [
                    Problem(file=str(self.file), line=number or None, message=why) for number, why in faults
                ]
                [(transactions, last_tx)] = ledger.database.rows(_TRANSACTIONS)
        except EngineError as error:
            return Checked(found or [Problem(file=str(self.file), line=None, message=str(error))], 0, 0)
        return Checked(found, transactions, last_tx)

    def rebuild_rows(self, journal: Ledger) -> None:
        """Make the rows of the ledger anew from its chain."""
        if not self.read_only:
            journal.rebuild_rows()

    def keep_accesses(self, counts: dict[str, int], journal: Ledger) -> None:
        """Keep what was counted in the ledger."""
        journal.keep_lookups(counts)

    def kept_accesses(self, journal: Ledger) -> dict[str, int]:
        """Return what was counted before, once: in the ledger, or in the file that earlier versions left."""
        if self.read_only:
            return {}
        return dict(Counter(super().kept_accesses(journal)) + Counter(journal.take_lookups()))

    def _mend(self) -> None:
        """SQLite mends its file when it is opened."""
