"""Files for the journal: whole reads and writes, durable names, and clean-up after torn or rewritten files."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, NamedTuple

from graphstore.errors import ConflictError, EngineError


@dataclass(slots=True)
class Torn:
    """A tail that was never acknowledged, and where it was set aside."""

    file: str
    line: int
    size: int
    aside: str | None

    def __str__(self) -> str:
        kept = f" It was set aside in {self.aside}." if self.aside else ""
        return (
            f"{self.file} line {self.line}: {self.size} bytes of a commit that was never acknowledged.{kept}"
        )


class Moves(NamedTuple):
    """How the bodies of a rewritten segment moved: from each start on by the corresponding shift."""

    starts: list[int]
    shifts: list[int]

    def to(self, pos: int) -> int:
        """The new position of what was at `pos`."""
        return pos + self.shifts[bisect_right(self.starts, pos)]


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_whole(name: Path, data: bytes) -> None:
    """Replace a file atomically: write a copy beside it, sync it, and rename it over the file. On OSError the copy is removed."""
    fresh = name.with_name(f"{name.name}.new")
    try:
        with open(fresh, "wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        fresh.replace(name)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(name.parent)


def remove_cut(names: Iterable[Path]) -> None:
    """Remove files, truncated first: a process that has them open would keep their space and contents otherwise."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.truncate(name, 0)
            name.unlink()


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


@contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """A stream that writes a new file. Raises ConflictError when it exists, EngineError when the disk refuses; no file remains then."""
    try:
        sink = open(target, "xb")  # noqa: SIM115 - closed below
    except FileExistsError:
        raise ConflictError(f"{target} exists. Choose another name, or remove it first.") from None
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}.") from error
    try:
        with sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise EngineError(f"cannot write {target}: {error.strerror}.") from error
        raise


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends; on failure it is removed.

    Raises ConflictError when `target` is there already and is no empty folder, EngineError when the disk refuses.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConflictError(f"{target} exists and is not empty. Choose another folder, or empty it first.")
    fresh = target.with_name(f"{target.name}.new")
    try:
        fresh.mkdir(parents=True)
    except FileExistsError:
        raise ConflictError(f"{fresh} exists: another export was not ended. Remove it first.") from None
    except OSError as error:
        raise EngineError(f"cannot write {target}: {error.strerror}.") from error
    try:
        yield fresh
        fresh.replace(target)
    except BaseException as error:
        rmtree(fresh, ignore_errors=True)
        if isinstance(error, OSError):
            raise EngineError(f"cannot write {target}: {error.strerror}.") from error
        raise
