"""Turns the journal of release 0.1 (`journal/*.jsonl`) into a ledger: the same lines, byte for byte, so the same digests.

The order of the steps decides what a killed upgrade leaves:

1. `upgrading/ledger.db` is filled and compared with the journal. Killed: the upgrade starts again.
2. `upgrading` is renamed to `upgraded`. Killed: the upgrade starts again, because release 0.1 may write to the journal until step 3.
3. `journal` is renamed to `journal-0.1`. From then on release 0.1 finds no store in the folder. Killed: the upgrade continues with step 4.
4. `upgraded/ledger.db` is renamed to `ledger.db`.

The caller holds the lock of release 0.1.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from graphstore.core.journal.files import Torn, open_plain, patiently, remove_tree, sync, sync_folder
from graphstore.core.journal.journal import Journal
from graphstore.core.journal.line import parts_of
from graphstore.core.journal.positions import Line
from graphstore.errors import DamageError, EngineError
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger, Verbatim
from graphstore.values.period import Instant, instant

JOURNAL, OLD = "journal", "journal-0.1"
_FRESH, _WHOLE = "upgrading", "upgraded"
_BATCH = 16 << 20  # bytes written in one SQL transaction


class Upgraded(NamedTuple):
    """What a ledger was made of."""

    lines: int
    transactions: int
    torn: Torn | None


def needs_upgrade(path: Path) -> bool:
    """Whether a folder is a store of release 0.1, also one that an upgrade has begun to change."""
    if (path / NAME).exists():
        return False
    return (
        (path / JOURNAL / "00000001.jsonl").exists() or (path / f"{JOURNAL}.new").exists() or is_moved(path)
    )


def is_moved(path: Path) -> bool:
    """Whether an upgrade was ended after it had moved the journal: only `swap` is left to do."""
    return (path / _WHOLE / NAME).exists() and not (path / NAME).exists() and not (path / JOURNAL).exists()


def build(path: Path, missing: Callable[[int, Instant], str | None]) -> Upgraded:
    """Make the ledger of a journal, beside it, and compare both. `missing` tells what is wrong with a journal of so many transactions whose last is at that
    instant.

    Raises DamageError for a journal that is not whole, EngineError when the disk refuses; the journal is as it was then.
    """
    fresh = path / _FRESH
    for left in (fresh, path / _WHOLE):
        remove_tree(left)
    try:
        fresh.mkdir(mode=0o700)
        Database.create(fresh / NAME)
        done = _copied(path / JOURNAL, fresh / NAME, missing)
        _sync(fresh)
        patiently(lambda: fresh.rename(path / _WHOLE))
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
    return done


def swap(path: Path) -> Path | None:
    """Put the ledger in the place of the journal. Returns where the journal is now; None when it was moved before. Raises OSError."""
    moved = None
    if (path / JOURNAL).exists():
        moved = _free(path / OLD)
        patiently(partial((path / JOURNAL).rename, moved))
        sync_folder(path)
    patiently(lambda: (path / _WHOLE / NAME).rename(path / NAME))
    sync_folder(path)
    tidy(path)
    return moved


def tidy(path: Path) -> None:
    """Remove the empty folder that a killed upgrade may leave beside its ledger."""
    if (path / NAME).exists():
        with contextlib.suppress(OSError):
            remove_tree(path / _WHOLE)


def remove_old(path: Path) -> bool:
    """Remove the journals that upgrades have left in a folder. Returns whether there were any. Raises OSError."""
    found = False
    for folder in path.glob(f"{OLD}*"):
        with contextlib.suppress(FileNotFoundError):  # another process removes it too
            remove_tree(folder)
            found = True
    if found:
        sync_folder(path)
    return found


def _copied(source: Path, target: Path, missing: Callable[[int, Instant], str | None]) -> Upgraded:
    journal = Journal(source)
    try:
        hashed = blake2b()
        lines = transactions = 0
        last: Instant = 0
        ledger = Ledger(Database(target))
        try:
            batch: list[Verbatim] = []
            size = 0
            for group in journal.read():
                for raw, part in _parts(journal, group):
                    hashed.update(raw)
                    batch.append(part)
                    size += len(raw)
                lines, transactions = lines + len(group), transactions + 1
                last = instant(group[-1].head["tx"])
                if size >= _BATCH:
                    _write(ledger, batch)
                    size = 0
            _write(ledger, batch)
        finally:
            ledger.close()
        if lost := missing(transactions, last):
            raise DamageError(lost)
        _compare(source, target, (lines, transactions, journal.digest, hashed.digest()))
        return Upgraded(lines, transactions, journal.torn)
    finally:
        journal.close()


def _parts(journal: Journal, group: list[Line]) -> Iterator[tuple[bytes, Verbatim]]:
    for line, raw in zip(group, journal.written(group), strict=True):
        yield raw, parts_of(raw, [(pos - line.at.pos, size) if size else (0, 0) for pos, size in line.places])


def _write(ledger: Ledger, batch: list[Verbatim]) -> None:
    with ledger.database.transaction():
        ledger.append_verbatim(batch)
    batch.clear()


def _compare(source: Path, target: Path, expected: tuple[int, int, str, bytes]) -> None:
    """Read a ledger from its file and compare it with what was written to it. Raises DamageError."""
    ledger = Ledger(Database(target, read_only=True))
    try:
        for _ in ledger.read():  # verifies the chain
            pass
        hashed = blake2b()
        for line in ledger.lines(ledger.state):
            hashed.update(line[:-1])
        found = *ledger.count(ledger.state), ledger.digest, hashed.digest()
    finally:
        ledger.close()
    if found != expected:
        raise DamageError(
            f"{target} line {min(found[0], expected[0])}: it is not what was written to it: {found[:3]} instead of {expected[:3]} (lines, transactions, "
            f"last digest). {source} is as it was. Check the disk, and open the store again."
        )


def _sync(fresh: Path) -> None:
    """Make the files of a new ledger durable, and leave all of it in its one file. Raises OSError."""
    try:
        with contextlib.closing(sqlite3.connect(fresh / NAME, isolation_level=None)) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise OSError(str(error)) from error
    if busy:
        raise OSError("another process has it open")
    file = open_plain(fresh / NAME, os.O_RDWR)  # no connection of this process is open
    try:
        sync(file)
    finally:
        os.close(file)
    sync_folder(fresh)


def _free(name: Path) -> Path:
    free, count = name, 1
    while os.path.lexists(free):
        count += 1
        free = name.with_name(f"{name.name}-{count}")
    return free
