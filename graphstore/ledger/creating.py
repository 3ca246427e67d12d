"""Creates the file of an empty ledger, and records in a ledger which file it is in, so that copies are recognised."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from graphstore.errors import EngineError, InvalidError, LockedError
from graphstore.ledger.database import APPLICATION, LOCK, NAME, SCHEMA, Database
from graphstore.ledger.files import open_plain, patiently, sync_folder, way_out
from graphstore.ledger.mounts import refuse_network
from graphstore.ledger.statements import schema_statements
from graphstore.ledger.write_lock import WriteLock

OLDEST = (3, 38, 0)
_LARGEST = (1 << 63) - 1
_FILE = "SELECT value FROM property WHERE name IN ('device', 'inode') ORDER BY name"


def create_ledger(file: Path) -> None:
    """Create an empty ledger durably, unless there is one. Raises EngineError if the disk refuses, InvalidError as `refuse_unfit` does."""
    if file.exists():  # opening an existing store does not wait for its writers
        return
    refuse_unfit(file.parent)
    lock = WriteLock(file.with_name(LOCK))
    lock.acquire(30.0)
    try:
        if file.exists():
            return
        part = file.with_name(f"{NAME}.part")
        for left in ("", "-journal", "-wal", "-shm"):  # left by a creation that was killed
            Path(f"{part}{left}").unlink(missing_ok=True)
        os.close(open_plain(part, os.O_RDWR | os.O_CREAT))
        part.chmod(0o600)
        _fill(part, "FULL")
        patiently(lambda: part.replace(file))
        sync_folder(file.parent)
    except sqlite3.Error as error:
        raise EngineError(f"cannot make {file}: {error}. Nothing was made.") from error
    except OSError as error:
        raise EngineError(
            f"cannot make {file}: {error.strerror or error}. Nothing was made. {way_out(error)}"
        ) from error
    finally:
        lock.release()
        lock.close()


def _fill(part: Path, synchronous: str) -> None:
    """Create the tables of a ledger in an empty file. Raises sqlite3.Error."""
    connection = sqlite3.connect(part, isolation_level=None)
    try:
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("BEGIN")
        for statement in schema_statements():
            connection.execute(statement)
        _record(connection, os.lstat(part))
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={SCHEMA}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    for left in (f"{part}-wal", f"{part}-shm"):
        Path(left).unlink(missing_ok=True)


@cache
def empty_ledger() -> bytes:
    """Return the bytes of an empty ledger, created once per process. Ledgers in memory start from them.

    Raises InvalidError if SQLite is too old, OSError and sqlite3.Error if the disk refuses.
    """
    refuse_old()
    with tempfile.TemporaryDirectory(prefix="graphstore-") as folder:
        file = Path(folder) / NAME
        _fill(file, "OFF")
        return file.read_bytes()  # no connection of this process is open


def refuse_unfit(folder: Path) -> None:
    """Raise InvalidError if a ledger cannot be used: SQLite is too old, or the folder is on a network file system. Changes nothing."""
    refuse_old()
    refuse_network(folder)


def refuse_old() -> None:
    """Raise InvalidError if SQLite is too old."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise InvalidError(
            f"this Python has SQLite {sqlite3.sqlite_version}; a store needs {'.'.join(map(str, OLDEST))} or newer. "
            "Install a newer Python. Nothing was changed."
        )


def is_in_recorded_file(database: Database) -> bool:
    """Return True if the ledger is in the file in which it was created or last checked; False for a copy or a restored backup."""
    return [value for (value,) in database.rows(_FILE)] == list(_file_numbers(os.lstat(database.file)))


def record_file(database: Database) -> None:
    """Record in the ledger which file it is in. Does nothing while another process writes; the next opening then does it."""
    with contextlib.suppress(LockedError), database.transaction(timeout=0) as connection:
        _record(connection, os.lstat(database.file))


def _file_numbers(found: os.stat_result) -> tuple[int, int]:
    """Return the device and inode of a file, reduced to 63 bits for SQLite: Windows has larger ones."""
    return found.st_dev & _LARGEST, found.st_ino & _LARGEST


def _record(connection: sqlite3.Connection, found: os.stat_result) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO property VALUES (?, ?)",
        zip(("device", "inode"), _file_numbers(found), strict=True),
    )
