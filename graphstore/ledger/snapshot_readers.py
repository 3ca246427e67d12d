"""Finds the processes whose snapshots keep the WAL of a ledger from being emptied.

While a process reads a snapshot, SQLite locks one of five bytes of the file `-shm` for it. The operating system tells who holds such a lock, and ends it with its
process. It is asked through the descriptor that SQLite has: closing another one of that file would end the locks of this process.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from pathlib import Path

_LOOK = 0.05  # seconds between two looks: who reads at both is no passer-by


def snapshot_readers(shm: Path) -> list[int]:
    """Return the ids of other processes that read snapshots through this `-shm`; empty where the system does not tell, as on Windows.

    Of several that read the same snapshot it names one at least.
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
    _MARKS = range(123, 128)  # the bytes that readers lock, by the format of the file
    # `struct flock` of the system
    if sys.platform == "linux":
        _LAYOUT, _FIELDS = "hhqqi", ("type", "whence", "start", "length", "pid")
    else:  # macOS and the BSDs
        _LAYOUT, _FIELDS = "qqihh", ("start", "length", "pid", "type", "whence")
    _SPARE = bytes(16)  # for fields that a system has behind these

    def _holders(shm: Path) -> set[int]:
        """Return a process for each byte that other processes have locked. Raises OSError; ImportError on a system without such locks."""
        import fcntl  # most processes never need it

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
        return holders - {0}  # 0: a process that this one cannot see, as of another container

    def _descriptor(file: Path) -> int | None:
        """Return the descriptor by which this process has a file open; None if it has not. Raises OSError."""
        wanted = file.stat()
        for entry in Path("/dev/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.path.samestat(wanted, os.fstat(int(entry.name))):
                    return int(entry.name)
        return None
