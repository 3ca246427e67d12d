"""What a journal has of a request: the lines of the transactions that it asked for, found by the id that the first line of each carries."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from graphstore.core.journal.files import open_plain
from graphstore.core.journal.line import check
from graphstore.errors import EngineError

_REACH = 256 << 20  # bytes looked at from the end: a request is sent again within minutes


class DoneElsewhere(EngineError):
    """A request was sent to another server of the store too, which was first."""


class Asked(NamedTuple):
    """A transaction that a request asked for: where its first line is, and the head of that."""

    segment: int
    offset: int
    head: dict[str, Any]


def transactions_of(journal: Path, request: str) -> list[Asked]:
    """Those of one request, oldest first; none where the journal has none among its last bytes."""
    found: list[Asked] = []
    left = _REACH
    for name in sorted(journal.glob("*.jsonl"), reverse=True):
        with open(open_plain(name, os.O_RDONLY), "rb") as source:
            size = os.fstat(source.fileno()).st_size
            if not size:
                continue
            with mmap.mmap(source.fileno(), size, access=mmap.ACCESS_READ) as data:
                here = list(_in_segment(data, int(name.stem), request, max(0, size - left)))
        if found and not here:
            break
        found = here + found
        left -= size
        if left <= 0:
            break
    return found


def _in_segment(data: mmap.mmap, segment: int, request: str, start: int) -> Iterator[Asked]:
    wanted = b'"request":"%b"' % request.encode()
    at = data.find(wanted, start)
    while at >= 0:
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if end < 0:
            return
        head, _, _ = check(data[begin:end])
        if head.get("request") == request:
            yield Asked(segment, begin, head)
        at = data.find(wanted, end)


def copy_until(journal: Path, first: Asked, target: Path) -> None:
    """Copy the journal as it was before a transaction into a new folder."""
    target.mkdir(parents=True)
    for name in sorted(journal.glob("*.jsonl")):
        if int(name.stem) > first.segment:
            break
        with open(open_plain(name, os.O_RDONLY), "rb") as source, open(target / name.name, "xb") as sink:
            left = first.offset if int(name.stem) == first.segment else os.fstat(source.fileno()).st_size
            while left and (piece := source.read(min(left, 1 << 20))):
                left -= len(piece)
                sink.write(piece)
