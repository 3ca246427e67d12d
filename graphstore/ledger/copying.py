"""Copies a store of release 0.1 from PostgreSQL into a folder: the same lines with the same digests.

If the folder already has the beginning of the source, the copy continues there, so an interrupted copy can be repeated. At the end the whole folder is read
and checked.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from graphstore.errors import ConflictError, DamageError, InvalidError
from graphstore.ledger.chain import Verbatim, check
from graphstore.ledger.checking import faults
from graphstore.ledger.folder import Folder
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.locating import locate
from graphstore.ledger.postgres_lines import PostgresLines, address, is_postgres, refuse_postgres

_BATCH = 4 << 20  # bytes written per transaction


class Copied(NamedTuple):
    """The number of lines copied now, the number in the folder, and the digest of the last one, which equals that of the source."""

    lines: int
    total: int
    digest: str


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy every line of a store of release 0.1 in PostgreSQL, by its address, into a folder.

    Raises InvalidError for any other source or target, ConflictError when the folder holds other lines, NotFoundError when there is no source, DamageError
    when what was read, or is there now, is not what was written.
    """
    if is_postgres(target):
        refuse_postgres(str(target))
    if not is_postgres(source):
        raise InvalidError(
            f"{source} is not in PostgreSQL. Copy the folder itself while nobody writes, or use export and restore."
        )
    with closing(PostgresLines(address(str(source)))) as there:
        place = locate(Path(target), read_only=False, create=True)
        if place.shown is None:
            raise InvalidError("a store in memory is gone with this process. Give a folder.")
        place.hold()
        try:
            with closing(place.open_ledger("commit")) as ledger:
                before, digest = ledger.last()
                number, digest = _append(there, ledger, before, digest)
            _read_again(place, number, digest)
            return Copied(number - before, number, digest)
        finally:
            place.release()


def _append(there: PostgresLines, ledger: Ledger, number: int, digest: str) -> tuple[int, str]:
    """Append the server's lines after the given one, many transactions at once. Return the number and digest of the last line."""
    if not there.has(number, digest):
        raise ConflictError(
            f"{ledger.path.parent} holds other lines than the beginning of the source. Nothing was changed. Copy into a new name."
        )
    waiting: list[Verbatim] = []
    size, known, last = 0, digest, number
    for page in there.lines(number):
        for line in page:
            last += 1
            try:
                head, verbatim = check(line[:-1], known)
            except ValueError as error:
                raise DamageError(
                    f"{there.where.shown} line {last}: {error}. It was not copied, nor what follows. Restore a backup there."
                ) from error
            known = verbatim.digest
            waiting.append(verbatim)
            size += len(line)
            if size >= _BATCH and not head.get("more"):
                number, digest = _write(ledger, waiting, number, digest)
                size = 0
    return _write(ledger, waiting, number, digest)


def _write(ledger: Ledger, waiting: list[Verbatim], number: int, digest: str) -> tuple[int, str]:
    if not waiting:
        return number, digest
    with ledger.database.transaction():
        if ledger.last() != (number, digest):
            raise ConflictError(
                f"another process wrote to {ledger.path.parent} meanwhile. Nothing is lost: see who writes there."
            )
        ledger.append_verbatim(waiting)
        number, digest = number + len(waiting), waiting[-1][1]
    waiting.clear()
    return number, digest


def _read_again(place: Folder, total: int, digest: str) -> None:
    """Read every line and body of the folder. Raises DamageError if they differ from the source."""
    with closing(place.read_ledger()) as ledger:
        for _, why in faults(ledger.database):
            raise DamageError(f"{why} Copy into a new name.")
        if (last := ledger.last()) != (total, digest):
            raise DamageError(
                f"{place.path} has {last[0]} lines, not the {total} that were copied. Copy into a new name."
            )
