"""Sends the audio and images of messages, whole or in ranges. No other file of the disk can be requested.

Only a path that a message holds is read. Only audio and images are sent; the type is detected from the first bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from graphstore.errors import ConflictError, NotFoundError
from graphstore.server.requests import Headers, Refused, Response
from graphstore.view.view import Reader

PATH = "/media/"
_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")
_MOST = 8 << 20  # bytes of one answer; larger files are read in ranges
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"content-disposition", b"inline"),
    (b"cache-control", b"private, no-cache"),
    (b"accept-ranges", b"bytes"),
)
_BEGINNINGS = (
    (b"OggS", b"audio/ogg"),
    (b"ID3", b"audio/mpeg"),
    (b"\xff\xfb", b"audio/mpeg"),
    (b"\xff\xf3", b"audio/mpeg"),
    (b"fLaC", b"audio/flac"),
    (b"\x1aE\xdf\xa3", b"audio/webm"),
    (b"\x89PNG\r\n\x1a\n", b"image/png"),
    (b"\xff\xd8\xff", b"image/jpeg"),
    (b"GIF87a", b"image/gif"),
    (b"GIF89a", b"image/gif"),
)


def answered(view: Reader, id: str, headers: Headers, folders: Iterable[Path] = ()) -> Response:
    """Return the medium of a message, or the requested range of it. The message must hold the hash of the file, or the file be below one of `folders`.
    So nobody can read an unknown file by recording its path.

    Raise NotFoundError if the message, its medium or its file is missing; ConflictError if the file differs from what was recorded;
    Refused for a path without a hash (403), another type than audio or image (415), and a range outside the file (416).
    """
    event = view.event(id)
    if event.media_path is None:
        raise NotFoundError(f"message {id!r} has no medium.")
    path = Path(event.media_path)
    if event.media_hash is None and not any(path.resolve().is_relative_to(each) for each in folders):
        raise Refused(
            403, f"message {id!r} was recorded without the hash of its medium, which is not below --files."
        )
    try:
        if not path.is_file():
            raise NotFoundError(f"the medium of message {id!r} is missing.")
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            digest = _digest(path, about.st_mtime_ns, about.st_size, about.st_ino)
            if event.media_hash not in (None, digest):
                raise ConflictError(
                    f"the medium of message {id!r} was altered: its file is not what was recorded."
                )
            kind = kind_of(file.read(16))
            if kind is None:
                raise Refused(415, f"the medium of message {id!r} is neither audio nor an image.")
            return _part(file, about.st_size, kind, headers)
    except OSError as error:
        raise NotFoundError(f"the medium of message {id!r} is missing: {error.strerror}") from None


def kind_of(begin: bytes) -> bytes | None:
    """Return the media type of a file with this beginning. Return None unless it is audio, or an image that a browser shows without running code."""
    for mark, kind in _BEGINNINGS:
        if begin.startswith(mark):
            return kind
    if begin[:4] == b"RIFF":
        return {b"WAVE": b"audio/wav", b"WEBP": b"image/webp"}.get(begin[8:12])
    if begin[4:8] == b"ftyp":
        return b"audio/mp4"
    return None


@lru_cache(maxsize=256)
def _digest(path: Path, *state: int) -> str:
    """Return the SHA-256 of a file in this state. It is cached, since files are requested range by range."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _part(file: BinaryIO, size: int, kind: bytes, headers: Headers) -> Response:
    asked = headers.get(b"range")
    first, last, status = 0, size - 1, 200
    if asked is not None and (found := _RANGE.fullmatch(asked.strip())) and any(found.groups()):
        begin, end = found.groups()
        if begin:
            first, last = int(begin), min(int(end), size - 1) if end else size - 1
        else:
            first = max(0, size - int(end))
        if first > last or first >= size:
            raise Refused(
                416, f"the medium has {size:,} bytes.", headers=((b"content-range", b"bytes */%d" % size),)
            )
        status = 206
    if last - first >= _MOST:
        last, status = first + _MOST - 1, 206
    file.seek(first)
    body = file.read(last - first + 1)
    more = ((b"content-range", b"bytes %d-%d/%d" % (first, last, size)),) if status == 206 else ()
    return Response(status, body, (*_HEADERS, *more), kind)
