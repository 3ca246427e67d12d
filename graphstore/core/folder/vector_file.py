"""The vectors of a store on disk: one file for each model beside the journal, a copy that may be deleted at any time.

A row belongs to a thing and a text, by their hashes, and has a checksum: a row that does not match the journal is not found, one that is damaged or
half written is not read. Rows are only appended, or blanked where they lie when the thing is forgotten.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import orjson

from graphstore.core.journal.files import (
    is_alone,
    open_plain,
    pwrite_all,
    read_at,
    remove_cut,
    replace_whole,
    sync,
    write_all,
)

_MAGIC = b"graphstore vectors 1\n"
_MOST_HEADER = 8_192
_HASH = 16
_KEY = 2 * _HASH
_NUMBER = 4  # bytes of a checksum, and of one number of a vector
_BLANKS = 1_000  # so many blank rows, if they are the majority, are worth rewriting the file


class Header(NamedTuple):
    """What the rows of a file are: vectors of a model, of so many numbers; `size`: where they begin."""

    model: str
    dimension: int
    size: int

    @property
    def stride(self) -> int:
        """The bytes of a row."""
        return _NUMBER + _KEY + _NUMBER * self.dimension


class Row(NamedTuple):
    """One vector as little-endian float32, and the thing and text it is of."""

    key: bytes
    vector: bytes


class Rows(NamedTuple):
    """The rows of a part of a file, where it ends, how many were damaged, and how many are blank."""

    rows: list[Row]
    end: int
    damaged: int
    blank: int


def key_of(name: str, text: str) -> bytes:
    """What a row is found by."""
    return _digest(name) + _digest(text)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_HASH).digest()


def file_of(folder: Path, model: str) -> Path:
    """Where the vectors of a model are."""
    return folder / f"vectors-{_digest(model).hex()}.bin"


def files(folder: Path) -> list[Path]:
    """The files of all models."""
    return sorted(folder.glob("vectors-*.bin"))


def read_header(path: Path) -> Header | None:
    """The header of a file; None when it has none. Raises OSError, for a link or a pipe too."""
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        start = file.read(_MOST_HEADER)
    stated, newline, _ = start.removeprefix(_MAGIC).partition(b"\n")
    if not start.startswith(_MAGIC) or not newline:
        return None
    try:
        fields = orjson.loads(stated)
        found = Header(fields["model"], fields["dimension"], len(_MAGIC) + len(stated) + 1)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    whole = isinstance(found.model, str) and type(found.dimension) is int and found.dimension > 0
    return found if whole and start.startswith(_header(found.model, found.dimension)) else None


def _header(model: str, dimension: int) -> bytes:
    return _MAGIC + orjson.dumps({"dimension": dimension, "model": model}) + b"\n"


def read(path: Path, header: Header, start: int = 0) -> Rows:
    """The rows from `start` on. A last one that is not whole is left out."""
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        at = file.seek(max(start, header.size))
        data = memoryview(file.read())
    stride, rows, damaged, blank = header.stride, [], 0, 0
    empty = bytes(stride)
    for begin in range(0, len(data) - stride + 1, stride):
        row = data[begin : begin + stride]
        if crc32(row[_NUMBER:]) == int.from_bytes(row[:_NUMBER], "little"):
            rows.append(Row(bytes(row[_NUMBER : _NUMBER + _KEY]), bytes(row[_NUMBER + _KEY :])))
        elif row == empty:
            blank += 1
        else:
            damaged += 1
    return Rows(rows, at + len(data) // stride * stride, damaged, blank)


def worth_writing_anew(found: Rows) -> bool:
    """Whether a file holds damage, or little but blanks."""
    return found.damaged > 0 or found.blank > max(_BLANKS, len(found.rows))


def write(path: Path, model: str, dimension: int, rows: Iterable[Row] = ()) -> Header:
    """Replace the file atomically by one with these rows. Raises OSError."""
    head = _header(model, dimension)
    replace_whole(path, head + b"".join(map(_packed, rows)))
    return Header(model, dimension, len(head))


def append(path: Path, header: Header, rows: Sequence[Row]) -> int:
    """Append rows. Returns the new end of the file. A half-written row at the end is overwritten. Raises OSError."""
    fd = open_plain(path, os.O_RDWR, alone=True)
    try:
        end = header.size + (os.fstat(fd).st_size - header.size) // header.stride * header.stride
        os.ftruncate(fd, end)
        os.lseek(fd, end, os.SEEK_SET)
        write_all(fd, b"".join(map(_packed, rows)))  # not synced: a row that was lost is computed again
    finally:
        os.close(fd)
    return end + len(rows) * header.stride


def _packed(row: Row) -> bytes:
    data = row.key + row.vector
    return crc32(data).to_bytes(_NUMBER, "little") + data


def forget(folder: Path, names: Iterable[str]) -> None:
    """Blank every row of these things, and half-written rows, in the files of all models. A file without a header is removed, and so is a link. Raises OSError."""
    there = files(folder)
    gone = {_digest(name) for name in names} if there else set()
    for path in there:
        with contextlib.suppress(FileNotFoundError):
            header = read_header(path) if is_alone(path) else None
            if header is None:
                remove_cut([path])
            else:
                _blank(path, header, gone)


def _blank(path: Path, header: Header, gone: set[bytes]) -> None:
    fd = open_plain(path, os.O_RDWR, alone=True)
    try:
        size, stride, touched = os.fstat(fd).st_size, header.stride, False
        end = header.size + (size - header.size) // stride * stride
        for at in range(header.size, end, stride):
            if read_at(fd, at + _NUMBER, _HASH) in gone:
                pwrite_all(fd, bytes(stride), at)
                touched = True
        if end < size:
            os.ftruncate(fd, end)
            touched = True
        if touched:
            sync(fd)
    finally:
        os.close(fd)


def remove(paths: Iterable[Path]) -> None:
    """Remove the files of models that are no longer used."""
    remove_cut(paths)
