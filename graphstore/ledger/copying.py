"""Copies a store from a folder to PostgreSQL or back, or one of release 0.1 from PostgreSQL: the same lines with the same digests.

If the target already has the beginning of the source, the copy continues there, so an interrupted copy can be repeated. At the end the whole target is read
and checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple, Protocol

from graphstore.errors import ConflictError, DamageError, InvalidError, NotFoundError
from graphstore.ledger.chain import GENESIS, Verbatim, check
from graphstore.ledger.checking import faults
from graphstore.ledger.folder import Folder
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.locating import locate
from graphstore.ledger.postgres_lines import PostgresLines, address, is_postgres

_BATCH = 4 << 20  # bytes written per transaction


class Copied(NamedTuple):
    """The number of lines copied now, the number in the target, and the digest of the last one, which equals that of the source."""

    lines: int
    total: int
    digest: str


class _Source(Protocol):
    """Where lines are copied from."""

    shown: str

    def place(self, number: int, digest: str) -> int | None:
        """Return the number of the line with this digest, which is the last of the target; None if there is none."""

    def lines(self, after: int) -> Iterator[list[bytes]]:
        """Yield pages of the lines after one."""

    def close(self) -> None:
        """Let go of it."""


class _LedgerLines:
    """The lines of a ledger."""

    def __init__(self, place: Folder) -> None:
        place.hold()
        self._place, self.shown = place, place.named
        self._ledger = place.read_ledger()

    def place(self, number: int, digest: str) -> int | None:
        """Return the number of the line with this digest; None if there is none."""
        if digest == GENESIS:
            return 0
        rows = self._ledger.database.rows("SELECT number FROM chain WHERE digest = ?", (digest,))
        return rows[0][0] if rows else None

    def lines(self, after: int) -> Iterator[list[bytes]]:
        """Yield the lines after one, each as a page, up to the last of now."""
        end, _ = self._ledger.last()
        for line in self._ledger.verbatim(end, after):
            yield [line.line()]

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()
        self._place.release()


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy every line of a store into another one: a folder, or PostgreSQL by its address. The source may be in PostgreSQL as release 0.1 kept it.

    Raises InvalidError for any other source or target, ConflictError when the target holds other lines, NotFoundError when there is no source, DamageError
    when what was read, or is there now, is not what was written.
    """
    with closing(_source(source)) as there:
        place = locate(target, read_only=False, create=True)
        if place.is_in_memory:
            raise InvalidError(
                "a store in memory is gone with this process. Give a folder, or an address of PostgreSQL."
            )
        place.hold()
        try:
            with closing(place.open_ledger("commit")) as ledger:
                before, digest = ledger.last()
                number, digest = _append(there, ledger, before, digest)
                place.remove_forgotten(ledger)
            _read_again(place, number, digest)
            return Copied(number - before, number, digest)
        finally:
            place.release()


def _source(source: str | os.PathLike[str]) -> _Source:
    """Return the source of a path or an address."""
    if not is_postgres(source):
        return _LedgerLines(locate(source, read_only=True, create=False))
    try:
        return _LedgerLines(locate(source, read_only=True, create=False))
    except NotFoundError:  # then as release 0.1 kept it
        return PostgresLines(address(str(source)))


def _append(there: _Source, ledger: Ledger, number: int, digest: str) -> tuple[int, str]:
    """Append the source's lines after the given one, many transactions at once. Return the number and digest of the last line."""
    begun = there.place(number, digest)
    if begun is None:
        raise ConflictError(
            f"{ledger.path.parent} holds other lines than the beginning of the source. Nothing was changed. Copy into a new name."
        )
    waiting: list[Verbatim] = []
    size, known, last = 0, digest, begun
    for page in there.lines(begun):
        for line in page:
            last += 1
            try:
                head, verbatim = check(line[:-1], known)
            except ValueError as error:
                raise DamageError(
                    f"{there.shown} line {last}: {error}. It was not copied, nor what follows. Restore a backup there."
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
    """Read every line and body of the target. Raises DamageError if they differ from the source."""
    with closing(place.read_ledger()) as ledger:
        for _, why in faults(ledger.database):
            raise DamageError(f"{why} Copy into a new name.")
        if (last := ledger.last()) != (total, digest):
            raise DamageError(
                f"{place.path} has {last[0]} lines, not the {total} that were copied. Copy into a new name."
            )
