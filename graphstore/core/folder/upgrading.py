"""Upgrades the folder of a store that release 0.1 made, under the lock by which that release kept other writers out."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from functools import partial
from pathlib import Path

import orjson

from graphstore.core.folder.folder import Folder, Reach, known_reach, shortage
from graphstore.core.folder.server_file import LOCK, own_bytes
from graphstore.core.journal.files import open_plain, pwrite_all
from graphstore.errors import EngineError, LockedError
from graphstore.ledger import upgrade
from graphstore.ledger.database import NAME

_UPGRADING = "upgrading"
_SAID = 0.5  # seconds within which a process that upgrades has said so


class OldFolder(Folder):
    """The folder of a store of release 0.1, held to be upgraded."""

    def _way_out(self) -> str:
        return (
            "It is a store of release 0.1, which one process at a time may write, and it is upgraded when it is opened for writing. "
            "Close it there, and open it again."
        )

    def hold(self) -> None:
        """Take the lock, and tell those who wait that this is an upgrade. Finishes what release 0.1 left half replaced."""
        super().hold()
        assert self._lock is not None
        pwrite_all(self._lock, f"pid {os.getpid()} on {socket.gethostname()}, {_UPGRADING}\n".encode(), 0)

    def release(self) -> None:
        """Let go of the lock, which names nobody from here on."""
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
        super().release()

    def upgrade(self) -> list[str]:
        """Make the ledger and put it in the place of the journal. Returns what to tell. Raises DamageError, EngineError."""
        path = self.path
        try:
            if upgrade.is_moved(path):
                upgrade.swap(path)
                return [
                    f"{path}: an interrupted upgrade from release 0.1 was finished. {_kept(path / upgrade.OLD)}"
                ]
            reach = _saved_reach(path / "index.bin") or known_reach(path)
            done = upgrade.build(path, partial(shortage, path / "journal", reach))
            self._remove_copies()
            moved = upgrade.swap(path)
        except OSError as error:
            raise EngineError(
                f"cannot put the ledger of {path} in place: {error.strerror} ({error.filename}). Nothing is lost. Mend that, and open it for writing "
                "again: that finishes the upgrade."
            ) from error
        return _told(path, done, moved)


def _saved_reach(file: Path) -> Reach | None:
    """Return how far the journal reached when release 0.1 saved its index: a line, the length of a header in 8 bytes, and the header as JSON."""
    try:
        with open(open_plain(file, os.O_RDONLY), "rb") as saved:
            if not saved.readline(100).startswith(b"graphstore index "):
                return None
            header = orjson.loads(saved.read(int.from_bytes(saved.read(8), "little")))
        return Reach(file, file.stat().st_mtime_ns, int(header["transactions"]), int(header["last_tx"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def upgrade_folder(path: Path, timeout: float) -> list[str]:
    """Upgrade a store of release 0.1, waiting so many seconds for another process that does. Returns what to tell; nothing where it is done already.

    Raises LockedError where a process has the store open with release 0.1, DamageError for a journal that is not whole; it is then as it was.
    """
    begun = time.monotonic()
    while upgrade.needs_upgrade(path):
        old = OldFolder(path)
        try:
            old.hold()
        except LockedError:
            # who has just taken the lock has not said yet what for
            if time.monotonic() - begun >= (timeout if _is_upgrading(path) else min(timeout, _SAID)):
                raise
            time.sleep(0.02)
            continue
        try:
            if upgrade.needs_upgrade(path):
                return old.upgrade()
        finally:
            old.release()
    upgrade.tidy(path)
    return []


def _told(path: Path, done: upgrade.Upgraded, moved: Path | None) -> list[str]:
    assert moved is not None
    told = [
        f"{path} is a store of release 0.1 and was upgraded: its {done.transactions} transactions ({done.lines} lines) were copied to {path / NAME}, "
        f"which was read again and is the same, digest by digest. {_kept(moved)}"
    ]
    if done.torn is not None and done.torn.size:
        file = moved / Path(done.torn.file).name
        told.append(
            f"{file} line {done.torn.line}: {done.torn.size} bytes of a commit that was never acknowledged. They were left behind there."
        )
    return told


def _kept(moved: Path) -> str:
    return f"Its old files are in {moved}: remove that folder when you do not need them. The first erase or eviction removes it."


def _is_upgrading(path: Path) -> bool:
    """Whether the process that holds the folder upgrades it."""
    with contextlib.suppress(OSError):
        return own_bytes(path / LOCK).decode(errors="replace").rstrip().endswith(_UPGRADING)
    return False
