"""Converts the journal of release 0.1 (`journal/*.jsonl`) into a ledger: the same lines, byte for byte, so the same digests.

The order of the steps decides what a killed upgrade leaves:

1. `upgrading/ledger.db` is filled and compared with the journal. Killed: the upgrade starts again, because release 0.1 may write to the journal until step 2.
2. `journal` is renamed to `journal-0.1`. From then on release 0.1 finds no store in the folder, and `upgrading/ledger.db` is known to be whole. Killed: the
   upgrade continues with step 3.
3. `upgrading/ledger.db` is renamed to `ledger.db`.

The whole upgrade holds the lock by which release 0.1 excluded other writers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from graphstore.errors import DamageError, EngineError, LockedError
from graphstore.ledger import old_journal
from graphstore.ledger.chain import Verbatim
from graphstore.ledger.copies import known_reach, remove_copies, saved_reach, shortage
from graphstore.ledger.creating import create_ledger
from graphstore.ledger.database import LOCK, NAME, Database
from graphstore.ledger.file_lock import is_locked
from graphstore.ledger.files import open_plain, patiently, remove_tree, sync_folder
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.write_lock import WriteLock, command
from graphstore.values import findings
from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.ledger.old_journal import OldJournal
    from graphstore.values.findings import Problem

JOURNAL, OLD = "journal", "journal-0.1"
_FRESH = "upgrading"
_UPGRADING = ", upgrading"  # the upgrading process adds this to its signature in the lock
_SAID = 0.5  # seconds within which it has done so


def needs_upgrade(path: Path) -> bool:
    """Return True if a folder has a store of release 0.1, even if an upgrade has already started to change it."""
    if (path / NAME).exists():
        return False
    return (
        (path / JOURNAL / "00000001.jsonl").exists() or (path / f"{JOURNAL}.new").exists() or _is_moved(path)
    )


def _is_moved(path: Path) -> bool:
    """Return True if an upgrade was killed after it had moved the journal: only the ledger remains to be moved."""
    return (path / _FRESH / NAME).exists() and not (path / NAME).exists() and not (path / JOURNAL).exists()


def upgrade_folder(path: Path, timeout: float) -> list[str]:
    """Upgrade a store of release 0.1. Wait up to `timeout` seconds for another process that upgrades it. Return messages for users; [] if nothing was done.

    Raises LockedError if a process has the store open with release 0.1, DamageError if the journal is damaged; it is then unchanged.
    """
    until = time.monotonic() + timeout
    while needs_upgrade(path):
        with contextlib.closing(WriteLock(path / LOCK, _UPGRADING)) as lock:
            try:
                lock.acquire(max(0.0, min(_SAID, until - time.monotonic())))
            except LockedError as error:
                holder = lock.holder()
                is_upgrading = holder.endswith(_UPGRADING) and time.monotonic() < until
                if is_upgrading or not needs_upgrade(path):
                    continue
                raise LockedError(
                    f"{path} is held by another writer ({holder}{command(holder)}). It is a store of release 0.1, which one process at a time may write, "
                    "and it is upgraded when it is opened for writing. Close it there, and open it again."
                ) from error
            if needs_upgrade(path):
                return _upgrade(path)
    _tidy(path)
    return []


def _upgrade(path: Path) -> list[str]:
    """Create the ledger and put it in the place of the journal. Return messages for users. Raises DamageError, EngineError."""
    _finish_replacing(path)
    try:
        if _is_moved(path):
            _put_in_place(path)
            return [
                f"{path}: an interrupted upgrade from release 0.1 was finished. {_where_kept(path / OLD)}"
            ]
        done = _build(path)
        remove_copies(path)
        moved = _free(path / OLD)
        patiently(partial((path / JOURNAL).rename, moved))
        sync_folder(path)
        _put_in_place(path)
    except OSError as error:
        raise EngineError(
            f"cannot put the ledger of {path} in place: {error.strerror} ({error.filename}). Nothing is lost. Mend that, and open it for writing "
            "again: that finishes the upgrade."
        ) from error
    notices = [
        f"{path} is a store of release 0.1 and was upgraded: its {done.transactions} transactions ({done.lines} lines) were copied to {path / NAME}, "
        f"which was read again and is the same, digest by digest. {_where_kept(moved)}"
    ]
    if done.torn is not None and done.torn.size:
        notices.append(
            f"{moved / done.torn.file.name} line {done.torn.line}: {done.torn.size} bytes of a commit that was never acknowledged. They were left behind there."
        )
    return notices


def _where_kept(moved: Path) -> str:
    return f"Its old files are in {moved}: remove that folder when you do not need them. The first erase or eviction removes it."


def _finish_replacing(path: Path) -> None:
    """Finish a replacement that a process of release 0.1 left incomplete."""
    fresh, old = path / f"{JOURNAL}.new", path / f"{JOURNAL}.old"
    if not (path / JOURNAL).exists():
        for folder in (fresh, old):
            if folder.is_dir() and not folder.is_symlink():
                folder.rename(path / JOURNAL)
                break
    for folder in (fresh, old):
        with contextlib.suppress(OSError):
            remove_tree(folder)
    for file in (*(path / JOURNAL).glob("*.new"), *path.glob("*.new")):
        with contextlib.suppress(OSError):  # a leftover only blocks a file that needs its name
            file.unlink()


def check_old(path: Path) -> tuple[list[Problem], int, Instant]:
    """Read the journal of a store of release 0.1. Return its problems, its number of transactions, and the tx of the last one."""
    journal = old_journal.OldJournal(path / JOURNAL)
    try:
        for _ in journal.read():
            pass
    except DamageError as error:
        file, _, rest = str(error).partition(" line ")
        number = rest.split(":", 1)[0]
        return (
            [findings.Problem(file=file, line=int(number) if number.isdigit() else None, message=str(error))],
            0,
            0,
        )
    except (OSError, EngineError) as error:
        file = str(getattr(error, "filename", None) or journal.folder)
        return [findings.Problem(file=file, line=None, message=f"it cannot be read: {error}")], 0, 0
    problems, torn = [], journal.torn
    if torn is not None and torn.size and not _is_held(path):  # otherwise it is being written
        why = f"{torn.size} bytes of a commit that was never acknowledged"
        problems.append(findings.Problem(file=str(torn.file), line=torn.line, message=why))
    return problems, journal.transactions, journal.last_tx


def _is_held(path: Path) -> bool:
    """Return True if a living process holds the lock of a store."""
    try:
        fd = open_plain(path / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        return is_locked(fd)
    finally:
        os.close(fd)


def _build(path: Path) -> OldJournal:
    """Create the ledger of a journal next to it, and compare both. Return the journal, read to its end.

    Raises DamageError if the journal is damaged, EngineError if the disk refuses; the journal is then unchanged.
    """
    fresh = path / _FRESH
    remove_tree(fresh)
    try:
        fresh.mkdir(mode=0o700)
        create_ledger(fresh / NAME)
        journal = _copied(path, fresh / NAME)
        sync_folder(fresh)
        sync_folder(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(fresh)
        if isinstance(error, OSError):
            raise EngineError(
                f"cannot upgrade {path}: {error.strerror or error} ({error.filename or fresh}). It is as release 0.1 left it. "
                "Free some space or mend the disk, and open it again."
            ) from error
        raise
    return journal


def _put_in_place(path: Path) -> None:
    """Rename the finished ledger. Raises OSError."""
    patiently(lambda: (path / _FRESH / NAME).rename(path / NAME))
    sync_folder(path)
    _tidy(path)


def _tidy(path: Path) -> None:
    """Remove the folder that a killed upgrade may leave next to its finished ledger."""
    if (path / NAME).exists():
        with contextlib.suppress(OSError):
            remove_tree(path / _FRESH)


def remove_old(path: Path) -> bool:
    """Remove the journals that upgrades have left in a folder. Return True if there were any. Raises OSError."""
    found = False
    for folder in path.glob(f"{OLD}*"):
        with contextlib.suppress(FileNotFoundError):  # another process removes it too
            remove_tree(folder)
            found = True
    if found:
        sync_folder(path)
    return found


def _copied(path: Path, target: Path) -> OldJournal:
    """Write the lines of a journal into an empty ledger, and keep all of it in one file without a WAL. Return the journal."""
    source = path / JOURNAL
    known = saved_reach(path) or known_reach(path)
    journal, hashed = old_journal.OldJournal(source), blake2b()

    def lines() -> Iterator[Verbatim]:
        for transaction in journal.read():
            for line in transaction:
                hashed.update(line.line())
                yield line

    with contextlib.closing(Ledger(Database(target))) as ledger:
        with ledger.database.transaction():
            ledger.append_verbatim(lines())
        if not ledger.database.empty_wal():
            raise OSError("another process has it open")
    if lost := shortage(source, known, journal.transactions, journal.last_tx):
        raise DamageError(lost)
    _compare(source, target, (journal.lines, journal.transactions, journal.digest, hashed.digest()))
    return journal


def _compare(source: Path, target: Path, expected: tuple[int, int, str, bytes]) -> None:
    """Read a ledger from its file and compare it with the written lines. Raises DamageError."""
    hashed = blake2b()
    with contextlib.closing(Ledger(Database(target, read_only=True))) as ledger:
        for line in ledger.verbatim():
            hashed.update(line.line())
        lines, digest = ledger.last()
        found = lines, ledger.transactions(lines), digest, hashed.digest()
    if found != expected:
        raise DamageError(
            f"{target} line {min(found[0], expected[0])}: it is not what was written to it: {found[:3]} instead of {expected[:3]} (lines, transactions, "
            f"last digest). {source} is as it was. Check the disk, and open the store again."
        )


def _free(name: Path) -> Path:
    free, count = name, 1
    while os.path.lexists(free):
        count += 1
        free = name.with_name(f"{name.name}-{count}")
    return free
