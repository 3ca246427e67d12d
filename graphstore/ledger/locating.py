"""Finds the store of a path: a folder with a ledger or with the journal of release 0.1, or a store in memory."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphstore.errors import EngineError, InvalidError, NotFoundError
from graphstore.ledger import server_file
from graphstore.ledger.copies import known_reach, shortage
from graphstore.ledger.creating import refuse_unfit
from graphstore.ledger.database import LOCK, Database
from graphstore.ledger.database import NAME as LEDGER
from graphstore.ledger.files import own_bytes, way_out
from graphstore.ledger.folder import Folder
from graphstore.ledger.postgres_lines import address, is_postgres
from graphstore.ledger.upgrade import JOURNAL, check_old, needs_upgrade
from graphstore.values import findings

if TYPE_CHECKING:
    from graphstore.values.findings import Verification

COPY = "copy-of"  # a file with the address of the store that a folder is a copy of
_TRIES = 100


def locate(path: str | os.PathLike[str], *, read_only: bool, create: bool, old: bool = False) -> Folder:
    """Return the folder of a store.

    Args:
        old: allow a store of release 0.1, which is then only read.

    Raises InvalidError if the path is something else or the system cannot use a ledger, NotFoundError if there is no store and `create` is False, EngineError
    if a store of release 0.1 is opened read-only. Then nothing is created or changed.
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or "\0" in os.fspath(path):
        raise InvalidError(f"{path!r} is no path. Give the name of a folder, such as 'memory.gs'.")
    if os.fspath(path) == server_file.MEMORY:
        if read_only:
            raise InvalidError("a store in memory has no other process to follow. Leave read_only out.")
        return Folder.in_memory()
    if is_postgres(path):
        from graphstore.ledger.postgres import PostgresPlace

        return PostgresPlace(address(str(path)), read_only=read_only, create=create)
    here(path)
    place = Path(path)
    try:
        if (place / JOURNAL).is_symlink():
            raise InvalidError(
                f"{place / JOURNAL} is a symbolic link, which may lead into other files. Put the folder itself there, or mount it."
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
        if (place / JOURNAL / "00000001.jsonl").exists():
            raise InvalidError(
                f"{place} has the ledger {LEDGER} and a journal of release 0.1 too. One of them is another store's, or a backup: move it elsewhere."
            )
    elif not needs_upgrade(place):
        return _new(place, read_only=read_only, create=create)
    elif old and _has_journal(place):
        return Folder(place, read_only=True)
    elif read_only:
        raise EngineError(
            f"{place} is a store of release 0.1, and read_only=True changes nothing. Open it once for writing, which upgrades it: "
            f"graphstore.open({str(place)!r}).close()"
        )
    refuse_unfit(place)
    return Folder(place, read_only=read_only)


def _new(place: Path, *, read_only: bool, create: bool) -> Folder:
    """Return the folder of a store that does not exist yet. Raises as `locate` does."""
    if _holds_other_things(place):
        if (place / LEDGER).exists():  # another process has created it meanwhile
            return locate(place, read_only=read_only, create=create)
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
    return Folder(place, read_only=read_only)


def _has_journal(place: Path) -> bool:
    """Return True if a journal of release 0.1 exists. If it is being replaced, wait up to a second."""
    for _ in range(_TRIES):
        if (place / JOURNAL / "00000001.jsonl").exists():
            return True
        if not (place / f"{JOURNAL}.new").exists():
            break
        time.sleep(0.01)
    return False


def _holds_other_things(place: Path) -> bool:
    if not place.is_dir():
        return False
    being_made = f"{LEDGER}.part"  # and SQLite's files next to it
    names = {entry.name for entry in place.iterdir() if not entry.name.startswith(being_made)}
    if names - {LOCK, server_file.LOG, JOURNAL, server_file.SERVED}:
        return True
    return (place / JOURNAL).is_dir() and any((place / JOURNAL).iterdir())


def verify(path: str | os.PathLike[str]) -> Verification:
    """Read a store's whole journal without opening the store: for one that refuses to open. Changes nothing."""
    with opening(path):
        place = locate(path, read_only=True, create=False, old=True)
        if is_postgres(path):
            place.hold()
            problems, transactions, _ = place.check()
            return findings.Verification(
                ok=not problems, problems=tuple(problems), transactions=transactions, checked=("journal",)
            )
        is_old, known = needs_upgrade(place.path), known_reach(place.path)
        problems, transactions, last_tx = check_old(place.path) if is_old else place.check()
        truth = place.path / JOURNAL if is_old else place.file
        if transactions and (lost := shortage(truth, known, transactions, last_tx)):
            problems.append(findings.Problem(file=str(truth), line=None, message=lost))
        return findings.Verification(
            ok=not problems, problems=tuple(problems), transactions=transactions, checked=("journal",)
        )


class Compacted(NamedTuple):
    """The size of a ledger in bytes, before and after its free pages were given back.

    `whole` is False when another process reads an old snapshot: the file shrinks when that reader has ended and the store is written again.
    """

    before: int
    after: int
    whole: bool


def compact(path: str | os.PathLike[str]) -> Compacted:
    """Write the file of a store without its free pages. Other processes may have the store open; they write again afterwards.

    Raises NotFoundError where there is no store, InvalidError for a store that is not a folder, EngineError for a store of release 0.1 and when the disk
    refuses: it needs twice the room of the file for a moment.
    """
    here(path)
    with opening(path):
        place = locate(path, read_only=True, create=False)
        with closing(Database(place.file, timeout=place.timeout)) as database:
            before = place.file.stat().st_size
            whole = database.remove_freed_bytes()
        return Compacted(before, place.file.stat().st_size, whole)


def here(path: str | os.PathLike[str]) -> None:
    """Raise InvalidError for the address of a server or of PostgreSQL, where a local folder is needed. A Path has one slash less in it."""
    scheme, address, _ = os.fspath(path).partition(":/")
    scheme = scheme.lower() if address else ""
    if scheme.startswith(("postgresql", "postgres")):
        raise InvalidError(
            "that is the address of a store in PostgreSQL, and this needs the folder of a store. Copy it into one with: graphstore copy 'ADDRESS' FOLDER"
        )
    if scheme in ("http", "https"):
        raise InvalidError(
            f"{os.fspath(path)} is the address of a server, and this needs the folder of a store. Do it where the folder lies."
        )


@contextlib.contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert an OSError while a store is opened into an EngineError with the path and a remedy."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"cannot open {_named(path, error)}: {error.strerror or error}. Nothing is lost. {way_out(error)}"
        ) from error


def _named(path: str | os.PathLike[str], error: OSError) -> str:
    """Return the file of an error, with the store's path if the file is not below it."""
    file = error.filename if isinstance(error.filename, str) else ""
    return f"{file} of {path}" if file and not file.startswith(os.fspath(path)) else file or os.fspath(path)
