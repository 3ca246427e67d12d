"""Finds the store of a path, in the form that it has there: a ledger, a journal of release 0.1, or memory."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from graphstore.core.folder.folder import (
    COPY,
    Folder,
    here,
    known_reach,
    opening,
    read_anew,
    shortage,
)
from graphstore.core.folder.ledger_folder import LedgerFolder
from graphstore.core.folder.memory_folder import MemoryFolder
from graphstore.core.folder.server_file import LOCK, LOG, MEMORY, SERVED, own_bytes
from graphstore.errors import EngineError, InvalidError, NotFoundError
from graphstore.ledger.database import NAME as LEDGER
from graphstore.ledger.database import refuse_unfit
from graphstore.ledger.upgrade import needs_upgrade
from graphstore.values.models import Problem, Verification

_JOURNAL = "journal"
_TRIES = 100


def locate(path: str | os.PathLike[str], *, read_only: bool, create: bool) -> LedgerFolder:
    """Find the folder of a store.

    Raises InvalidError for a path that is something else and for a system that no ledger can be used on, NotFoundError when there is none and it is not to
    be made, EngineError for a store of release 0.1 that is only to be read. Nothing is made or changed then.
    """
    place = _find(path, read_only=read_only, create=create)
    assert isinstance(place, LedgerFolder)
    return place


def locate_old(path: str | os.PathLike[str]) -> Folder:
    """Find the folder of a store that is only read, also that of release 0.1. Raises as `locate` does."""
    return _find(path, read_only=True, create=False, old=True)


def _find(path: str | os.PathLike[str], *, read_only: bool, create: bool, old: bool = False) -> Folder:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidError(f"{path!r} is no path. Give the name of a folder, such as 'memory.gs'.")
    if os.fspath(path) == MEMORY:
        if read_only:
            raise InvalidError("a store in memory has no other process to follow. Leave read_only out.")
        return MemoryFolder()
    here(path)
    place = Path(path)
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise InvalidError(f"{path!r} is no path. Give the name of a folder, such as 'memory.gs'.")
    try:
        if (place / _JOURNAL).is_symlink():
            raise InvalidError(
                f"{place / _JOURNAL} is a symbolic link, which may lead into other files. Put the folder itself there, or mount it."
            )
        file = place.exists() and not place.is_dir()
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.ENOTDIR):
            raise
        raise InvalidError(f"{place} cannot be a folder: {error.strerror}.") from None
    if file:
        raise InvalidError(
            f"{place} is a file, not a store. A store is a folder such as memory.gs; a dump is opened with graphstore.restore."
        )
    if (place / COPY).exists():
        raise InvalidError(
            f"{place} is a copy of {own_bytes(place / COPY).decode(errors='replace')}: what is written there would be lost. Open that."
        )
    if (place / LEDGER).exists():
        if (place / _JOURNAL / "00000001.jsonl").exists():
            raise InvalidError(
                f"{place} has the ledger {LEDGER} and a journal of release 0.1 too. One of them is another store's, or a backup: move it elsewhere."
            )
        refuse_unfit(place)
        return LedgerFolder(place, read_only=read_only)
    if not needs_upgrade(place):
        return _new(place, read_only=read_only, create=create)
    if old and _has_journal(place):
        return Folder(place, read_only=True)
    if read_only:
        raise EngineError(
            f"{place} is a store of release 0.1, and read_only=True changes nothing. Open it once for writing, which upgrades it: "
            f"graphstore.open({str(place)!r}).close()"
        )
    refuse_unfit(place)
    return LedgerFolder(place, read_only=read_only)


def _new(place: Path, *, read_only: bool, create: bool) -> Folder:
    """The folder of a store that is to be made. Raises as `locate` does."""
    if _holds_other_things(place):
        if (place / LEDGER).exists():  # another process has made it since it was looked for
            return _find(place, read_only=read_only, create=create)
        raise InvalidError(
            f"{place} is a folder with other things in it and no store. Give a new name, or an empty folder."
        )
    if read_only or not create:
        raise NotFoundError(f"no store at {place}. Make one with graphstore.open({str(place)!r}).")
    refuse_unfit(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(f"cannot make {place}: {error.strerror}.") from error
    return LedgerFolder(place, read_only=read_only)


def _has_journal(place: Path) -> bool:
    """Whether release 0.1 has its journal in place. A reader waits a moment while one is being replaced."""
    for _ in range(_TRIES):
        if (place / _JOURNAL / "00000001.jsonl").exists():
            return True
        if not (place / f"{_JOURNAL}.new").exists():
            break
        time.sleep(0.01)
    return False


def _holds_other_things(place: Path) -> bool:
    if not place.is_dir():
        return False
    being_made = f"{LEDGER}.part"  # and the files of SQLite next to it
    names = {entry.name for entry in place.iterdir() if not entry.name.startswith(being_made)}
    if names - {LOCK, LOG, _JOURNAL, SERVED}:
        return True
    return (place / _JOURNAL).is_dir() and any((place / _JOURNAL).iterdir())


def verify(path: str | os.PathLike[str]) -> Verification:
    """Read a store's whole journal without opening the store: for one that refuses to open. Changes nothing."""
    with opening(path):
        return _verified(locate_old(path))


def _verified(place: Folder) -> Verification:
    reach = known_reach(place.path)
    if isinstance(place, LedgerFolder):
        problems, transactions, last_tx = place.check()
    else:
        transactions, last_tx, problems = read_anew(place)
    if transactions and (lost := shortage(place.journal, reach, transactions, last_tx)):
        problems.append(Problem(file=str(place.journal), line=None, message=lost))
    return Verification(
        ok=not problems, problems=tuple(problems), transactions=transactions, checked=("journal",)
    )
