"""A store from a folder to PostgreSQL, back, or from one server to another: the same lines, so the same digests.

What is at the target already is gone on from, where it is the beginning of the source; so a copy that was interrupted is begun again. At the end the
target is read again from its first line.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from graphstore.core.folder.folder import Folder
from graphstore.core.folder.locating import locate
from graphstore.core.journal.cluster import Cluster, Diverged, Row, address, is_cluster, row_of
from graphstore.core.journal.cluster_journal import goes_on
from graphstore.core.journal.line import GENESIS, check, parts_of
from graphstore.errors import ConflictError, DamageError, InvalidError
from graphstore.ledger.ledger import Ledger, Verbatim

_BATCH = 4 << 20  # bytes sent at once


class Copied(NamedTuple):
    """How many lines were copied now, how many there are, and the digest of the last, which is the same in both."""

    lines: int
    total: int
    digest: str


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy every line of a store. At least one of both is an address of PostgreSQL.

    Raises ConflictError when the target holds other lines, NotFoundError when there is no source, DamageError when what was read, or is there now, is not
    what was written.
    """
    if is_cluster(target):
        return _to_cluster(source, str(target))
    if not is_cluster(source):
        raise InvalidError(
            "neither of both is in PostgreSQL. Copy the folder itself while nobody writes, or use export and restore."
        )
    return _to_folder(str(source), Path(target))


def _to_cluster(source: str | os.PathLike[str], target: str) -> Copied:
    there = Cluster(address(target), read_only=False)
    try:
        _look_for(source)  # first: no store is made there for a source that is not there
        there.prepare(create=True)
        begun, digest = there.last()
        at, known = 0, GENESIS
        waiting: list[Row] = []
        with contextlib.closing(_groups(source)) as groups:
            for group in groups:
                id = os.urandom(16)
                for line in group:
                    at += 1
                    row = row_of(at, id, line)
                    known = row.digest
                    if at == begun and known != digest:
                        raise _other(target)
                    if at > begun:
                        waiting.append(row)
                if sum(len(row.head) + sum(map(len, row.bodies)) for row in waiting) >= _BATCH:
                    _send(there, waiting)
        _send(there, waiting)
        if at < begun:
            raise _other(target)
        return Copied(at - begun, *_read_again(there, at, known))
    finally:
        there.close()


def _look_for(source: str | os.PathLike[str]) -> None:
    """Raises NotFoundError where there is no such store."""
    if not is_cluster(source):
        locate(source, read_only=True, create=False, old=True)
        return
    there = Cluster(address(str(source)), read_only=True)
    try:
        there.prepare(create=False)
    finally:
        there.close()


def _send(there: Cluster, waiting: list[Row]) -> None:
    if waiting and not there.insert(waiting):
        raise ConflictError(
            f"another process wrote to {there.where.shown} meanwhile. Nothing is lost: see who writes there."
        )
    waiting.clear()


def _read_again(there: Cluster, total: int, digest: str) -> tuple[int, str]:
    """Check each line that the server has. Raises DamageError."""
    seq, known = 0, GENESIS
    for page in there.lines(0, GENESIS):
        for line in page:
            seq += 1
            try:
                known = check(line[:-1], known)[1]
            except ValueError as error:
                raise DamageError(
                    f"{there.where.shown} line {seq}: {error}. Copy into a new name."
                ) from error
    if (seq, known) != (total, digest):
        raise DamageError(
            f"{there.where.shown} has {seq} lines, not the {total} that were copied. Copy into a new name."
        )
    return seq, known


def _groups(source: str | os.PathLike[str]) -> Generator[list[bytes], None, None]:
    """The lines of each transaction, without their ends, verified."""
    if is_cluster(source):
        there = Cluster(address(str(source)), read_only=True)
        try:
            there.prepare(create=False)
            group: list[bytes] = []
            for page in there.lines(0, GENESIS):
                for line in page:
                    group.append(line[:-1])
                    if not goes_on(line):
                        yield group
                        group = []
        finally:
            there.close()
        return
    journal = locate(source, read_only=True, create=False, old=True).open_journal("commit")
    try:
        for lines in journal.read():
            yield journal.written(lines)
    finally:
        journal.close()


def _to_folder(source: str, target: Path) -> Copied:
    cluster = Cluster(address(source), read_only=True)
    try:
        cluster.prepare(create=False)
        place = _new_or_begun(target)
        place.hold()
        try:
            ledger = place.open_journal("commit")
            assert isinstance(ledger, Ledger)
            try:
                before, digest = ledger.last()
                number, digest = _append(cluster, ledger, before, digest)
            finally:
                ledger.close()
            return Copied(number - before, *_read_folder(place, number, digest))
        finally:
            place.release()
    finally:
        cluster.close()


def _append(cluster: Cluster, ledger: Ledger, number: int, digest: str) -> tuple[int, str]:
    """Append what the server has after the line of that number and digest, many transactions at a time. Returns number and digest of the last line."""
    waiting: list[Verbatim] = []
    size, known, last = 0, digest, number
    try:
        for page in cluster.lines(number, digest):
            for line in page:
                last += 1
                try:
                    _, known, spans = check(line[:-1], known)
                except ValueError as error:
                    raise DamageError(
                        f"{cluster.where.shown} line {last}: {error}. It was not copied, nor what follows. Restore a backup there."
                    ) from error
                waiting.append(parts_of(line[:-1], spans))
                size += len(line)
                if size >= _BATCH and not goes_on(line):
                    number, digest = _write(ledger, waiting, number, digest)
                    size = 0
    except Diverged as error:
        raise _other(str(ledger.path.parent)) from error
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


def _new_or_begun(target: Path) -> Folder:
    """The folder, which is made where it is not there."""
    place = locate(target, read_only=False, create=True)
    if place.shown is None:
        raise InvalidError("a store in memory is gone with this process. Give a folder, or an address.")
    return place


def _read_folder(place: Folder, total: int, digest: str) -> tuple[int, str]:
    """Read every line and every body of the folder. Raises DamageError."""
    ledger = place.fresh_journal()
    assert isinstance(ledger, Ledger)
    try:
        for _, why in ledger.faults():
            raise DamageError(f"{why} Copy into a new name.")
        last = ledger.last()
        if last != (total, digest):
            raise DamageError(
                f"{place.path} has {last[0]} lines, not the {total} that were copied. Copy into a new name."
            )
        return last
    finally:
        ledger.close()


def _other(target: str) -> ConflictError:
    shown = address(target).shown if is_cluster(target) else target
    return ConflictError(
        f"{shown} holds other lines than the beginning of the source. Nothing was changed. Copy into a new name."
    )
