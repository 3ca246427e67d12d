"""Finds the processes whose snapshots prevent a ledger's WAL from being emptied.

While a process reads a snapshot, SQLite locks one of five bytes of the file `-shm` for it. The operating system can tell who holds such a lock. The query
must use the descriptor that SQLite has opened: closing another one for the file would release the locks of this process.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from pathlib import Path

_LOOK = 0.05  # seconds between two checks: a process found in both is not just passing by


def snapshot_readers(shm: Path) -> list[int]:
    """Return the ids of other processes that read snapshots through this `-shm`; empty if the system does not tell, as on Windows.

    Of several that read the same snapshot, at least one is returned.
    """
    with contextlib.suppress(OSError, ImportError):
        readers = _holders(shm)
        if readers:
            time.sleep(_LOOK)
            return sorted(readers & _holders(shm))
    return []


if sys.platform == "win32":

    def _holders(shm: Path) -> set[int]:
        return set()

else:
    _MARKS = range(123, 128)  # the bytes that readers lock, by SQLite's file format
    # `struct flock` of the system
    if sys.platform == "linux":
        _LAYOUT, _FIELDS = "hhqqi", ("type", "whence", "start", "length", "pid")
    else:  # macOS and the BSDs
        _LAYOUT, _FIELDS = "qqihh", ("start", "length", "pid", "type", "whence")
    _SPARE = bytes(16)  # for further fields that a system may have

    def _holders(shm: Path) -> set[int]:
        """Return one process for each byte that other processes have locked. Raises OSError; ImportError on a system without such locks."""
        import fcntl  # not needed by most processes

        descriptor = _descriptor(shm)
        holders: set[int] = set()
        if descriptor is None:
            return holders
        for byte in _MARKS:
            asked = {"start": byte, "length": 1, "pid": 0, "type": fcntl.F_WRLCK, "whence": os.SEEK_SET}
            packed = struct.pack(_LAYOUT, *(asked[name] for name in _FIELDS))
            answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, packed + _SPARE)
            found = dict(zip(_FIELDS, struct.unpack_from(_LAYOUT, answer), strict=True))
            if found["type"] != fcntl.F_UNLCK:
                holders.add(found["pid"])
        return holders - {0}  # 0: a process that this one cannot see, such as one of another container

    def _descriptor(file: Path) -> int | None:
        """Return the descriptor through which this process has a file open; None if it has not. Raises OSError."""
        wanted = file.stat()
        for entry in Path("/dev/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.path.samestat(wanted, os.fstat(int(entry.name))):
                    return int(entry.name)
        return None
