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

from graphstore.core.folder.folder import Folder, locate
from graphstore.core.journal.cluster import Cluster, Diverged, Row, address, is_cluster, row_of
from graphstore.core.journal.cluster_journal import ClusterJournal, goes_on
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import GENESIS, check
from graphstore.errors import ConflictError, DamageError, InvalidError

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
        locate(source, read_only=True, create=False)
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
    journal = locate(source, read_only=True, create=False).open_journal("commit")
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
    except BaseException:
        cluster.close()
        raise
    try:
        assert place.journal is not None
        _without_torn(place)
        journal = ClusterJournal(place.journal, cluster, writer=False)
        before = journal.number
        try:
            journal.catch_up()
            journal.keep()
        except Diverged as error:
            raise _other(str(target)) from error
        finally:
            journal.close()
        return Copied(journal.number - before, *_read_folder(place, journal.number))
    finally:
        place.release()


def _new_or_begun(target: Path) -> Folder:
    """The folder, which is made where it is not there."""
    place = locate(target, read_only=False, create=True)
    if place.path is None:
        raise InvalidError("a store in memory is gone with this process. Give a folder, or an address.")
    return place


def _without_torn(place: Folder) -> None:
    """Set aside what a copy that was killed left unfinished at the end."""
    journal = Journal(place.journal, writer=True)
    try:
        for _ in journal.read():
            pass
        journal.make_ready()
    finally:
        journal.close()


def _read_folder(place: Folder, total: int) -> tuple[int, str]:
    journal = Journal(place.journal, writer=False)
    try:
        lines = sum(len(group) for group in journal.read())
        if lines != total or journal.torn is not None:
            raise DamageError(
                f"{place.path} has {lines} lines, not the {total} that were copied. Copy into a new name."
            )
        return lines, journal.digest
    finally:
        journal.close()


def _other(target: str) -> ConflictError:
    shown = address(target).shown if is_cluster(target) else target
    return ConflictError(
        f"{shown} holds other lines than the beginning of the source. Nothing was changed. Copy into a new name."
    )
