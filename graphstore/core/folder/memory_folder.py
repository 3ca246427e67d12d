"""Keep the ledger of a store in memory in a private temporary folder. No caller sees its path. It is removed with the store."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from weakref import WeakSet, finalize

from graphstore.core.folder.ledger_folder import LedgerFolder
from graphstore.core.folder.server_file import MEMORY
from graphstore.ledger.database import Database, empty_ledger
from graphstore.ledger.ledger import Ledger

_FEW = 16  # stores that nobody closed may keep their files open until garbage is collected
_open: WeakSet[MemoryFolder] = WeakSet()
_most = _FEW


class MemoryFolder(LedgerFolder):
    """Holds the ledger of a store in memory. Its folder is removed when the store is closed or collected, and when the process ends."""

    shared = False

    def __init__(self) -> None:
        _collect_many()
        folder = tempfile.mkdtemp(prefix="graphstore-")
        self._opened: list[Database] = []
        self._remove = finalize(self, _removed, folder, os.getpid(), self._opened)
        super().__init__(Path(folder))
        self.shown = self.tables = None
        self.named = MEMORY
        _open.add(self)

    def hold(self) -> None:
        """Make the ledger. Raises OSError."""
        with open(self.file, "xb") as file:
            file.write(empty_ledger())

    def open_journal(self, durability: str) -> Ledger:
        """Open the ledger. No commit waits for the disk."""
        database = Database(self.file, durability="none", timeout=self.timeout)
        self._opened.append(database)
        return Ledger(database)

    def prepare(self, journal: Ledger, notify: Callable[[str], None]) -> bool:
        """Do nothing: the ledger is new. Returns True, for the index may wait."""
        self._notify = notify
        return True

    def release(self) -> None:
        """Remove the folder."""
        self._remove()

    def keep_accesses(self, counts: dict[str, int], journal: Ledger) -> None:
        """Keep nothing: the store is being closed."""

    def _remove_copies(self) -> None:
        """Remove nothing: such a store has no copies."""


def _removed(folder: str, pid: int, opened: list[Database]) -> None:
    """Close what is open and remove a folder, unless this process is a fork of the one that made it."""
    if os.getpid() == pid:
        for database in opened:
            database.close()
        rmtree(folder, ignore_errors=True)


def _collect_many() -> None:
    """Collect garbage when many stores are open: those that nobody closed and nobody has any more let go of their files."""
    global _most
    if len(_open) > _most:
        gc.collect()
        _most = max(_FEW, 2 * len(_open))
