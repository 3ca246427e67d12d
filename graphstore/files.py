"""What the operating system does not do whole: write all, read all, and make a folder's names durable."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def pwrite_all(fd: int, data: bytes, offset: int) -> None:
    done = os.pwrite(fd, data, offset)
    while done < len(data):
        done += os.pwrite(fd, memoryview(data)[done:], offset + done)


def read_at(fd: int, offset: int, length: int) -> bytes:
    data = os.pread(fd, length, offset)
    if len(data) == length:
        return data
    parts = [data]
    got = len(data)
    while got < length and data:
        data = os.pread(fd, length - got, offset + got)
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def free_name(name: Path) -> Path:
    count = 1
    free = name
    while free.exists():
        count += 1
        free = name.with_name(f"{name.stem}-{count}{name.suffix}")
    return free
