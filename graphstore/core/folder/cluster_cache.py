"""The place of a store in PostgreSQL: a folder with the copy of its lines, its index and its tables, of this process alone."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from graphstore.core.folder.folder import COPY, Folder, opening
from graphstore.core.folder.server_file import LOCK, holder
from graphstore.core.index.index import Index
from graphstore.core.journal.cluster import Address, Cluster, address
from graphstore.core.journal.cluster_journal import ClusterJournal
from graphstore.core.journal.files import own_folder, replace_whole
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.seam import Seam
from graphstore.errors import DamageError, InvalidError
from graphstore.values.models import Problem

_PREFIX = "graphstore-copy-"
_LATELY = 60  # seconds in which a lock may just be taken


class ClusterPlace(Folder):
    """A store in PostgreSQL. Many processes have it open and write; each has a folder of its own, removed again unless the address names one."""

    shared = True
    lags = True
    many_servers = True

    def __init__(self, url: str, *, read_only: bool, create: bool) -> None:
        where = address(url)
        self.cluster = Cluster(where, read_only=read_only)
        self.told: list[str] = []
        self.cluster.notify = self._notify_once
        self._notify: Callable[[str], None] | None = None  # of the store, once there is one
        try:
            self.cluster.prepare(create=create)
            with opening(where.shown):
                super().__init__(_made(where))  # this process's to write, whatever it may do at the server
        except BaseException:
            self.cluster.close()
            raise
        self._kept = where.cache is not None
        self.named, self.read_only = where.shown, read_only

    def open_journal(self, durability: str) -> Journal:
        """The copy, which follows the server. Raises InvalidError for any durability but that of each commit."""
        if durability != "commit":
            raise InvalidError(
                f"{self.named} is made durable by its server, commit by commit. Leave durability out."
            )
        return ClusterJournal(self.journal, self.cluster, writer=not self.read_only)

    def load(self, journal: Seam, notify: Callable[[str], None]) -> Index:
        """The index of the copy after it has followed the server. A copy that is not the server's, or not whole, is made anew."""
        assert isinstance(journal, ClusterJournal)
        self._notify = notify
        for notice in self.told:
            notify(notice)
        journal.notify = self._notify_once
        try:
            journal.catch_up()
            return super().load(journal, notify)
        except DamageError:
            if not self._kept:
                raise
            self._remove_copies()
            journal.begin_anew()
            return super().load(journal, notify)

    def _notify_once(self, notice: str) -> None:
        if notice not in self.told:
            self.told.append(notice)
            if self._notify is not None:
                self._notify(notice)

    def problems(self, journal: Seam) -> list[Problem]:
        """What is wrong with the server's lines."""
        assert isinstance(journal, ClusterJournal)
        return [Problem(file=self.named, line=None, message=problem) for problem in journal.problems()]

    def _replacing(self, fresh: Path, journal: Seam) -> None:
        assert isinstance(journal, ClusterJournal)
        journal.replace(fresh)

    def release(self) -> None:
        """Let go of the server, and remove the copy unless it is to be kept."""
        super().release()
        self.cluster.close()
        if not self._kept:
            shutil.rmtree(self.path, ignore_errors=True)


def _made(where: Address) -> Path:
    """The folder of a copy, marked as one."""
    if where.cache is None:
        _remove_left()
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    else:
        path = Path(where.cache)
        _check_cache(path)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_whole(path / COPY, where.shown.encode())
    return path


def _check_cache(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InvalidError(f"{path} is a file. Give cache= the name of a folder.")
    if path.is_dir() and any(path.iterdir()) and not (path / COPY).exists():
        raise InvalidError(
            f"{path} is a folder with other things in it, and no copy. Give cache= a new name, or an empty folder."
        )


def _remove_left() -> None:
    """Remove the copies of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = (path / LOCK).stat()
            if own_folder(path) and time.time() - lock.st_mtime > _LATELY and holder(path) is None:
                shutil.rmtree(path, ignore_errors=True)
