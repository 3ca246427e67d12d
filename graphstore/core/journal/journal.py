"""Reads the journal of release 0.1: files of lines, one line of canonical JSON for each transaction. An upgrade and a check read it; nothing writes it.

A line is `{"body":[…],"digest":"…","head":{…}}`. The head says what happened and holds the hash of each body and the digest of the line
before; the digest covers the head. A transaction of many lines has `"more":true` in every head but the last, which seals it.

No final newline, or zero padding, is a write that was never acknowledged. Any other difference from what was written is damage: it is refused with file and
line, and nothing is changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

import orjson

from graphstore.core.journal.files import Torn, open_plain, read_at
from graphstore.core.journal.line import GENESIS, SCHEMA, following, generation_of, header
from graphstore.core.journal.positions import OFFSET, SHIFT, Line, Position, placed, segment_of
from graphstore.errors import DamageError, EngineError


class Journal:
    """The segments of one store. `path` is the folder that holds them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = Position(0, 0)
        """The place after what was read."""
        self.digest = GENESIS
        """The digest of the line that was read last."""
        self.torn: Torn | None = None
        self._files: list[IO[bytes]] = []

    def _name(self, segment: int) -> Path:
        return self.path / f"{segment + 1:08}.jsonl"

    def _file(self, segment: int) -> IO[bytes]:
        while len(self._files) <= segment:
            name = self._name(len(self._files))
            try:
                fd = open_plain(name, os.O_RDONLY)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise EngineError(
                    f"cannot open {name}: {error.strerror}. Nothing is lost. Mend that, and open the store again."
                ) from error
            self._files.append(os.fdopen(fd, "rb", buffering=0))
        return self._files[segment]

    def segments(self) -> int:
        """How many segment files there are. Raises DamageError when one between them is missing."""
        # not glob(), which takes a folder that cannot be read for an empty one
        files = [name for name in self.path.iterdir() if name.suffix == ".jsonl"]
        numbers = sorted(int(name.stem) for name in files if name.stem.isdigit())
        for number, found in enumerate(numbers, 1):
            if number != found:
                raise DamageError(
                    f"{self._name(number - 1)} is missing, though {self._name(found - 1)} follows. Nothing was changed. Restore a backup."
                )
        return len(numbers)

    def read(self) -> Iterator[list[Line]]:
        """Yield the sealed transactions after `end`, each as its lines, verified. Moves `end` past each.

        Raises DamageError with file and line. A torn tail ends the reading; `torn` says so.
        """
        self.torn = None
        while True:
            last = self.end.segment + 1 >= self.segments()
            yield from self._read_segment(last)
            if last or self.torn is not None:
                return
            self.end = Position(self.end.segment + 1, 0)

    def _read_segment(self, last_segment: bool) -> Iterator[list[Line]]:
        segment, offset = self.end
        data = self._load(segment, offset)
        at = count = 0  # bytes and lines after `offset`
        if offset == 0:
            at = self._check_header(segment, data, last_segment)
            if at == 0:
                return
            count = 1
            self.end = Position(segment, at)
        digest = self.digest
        pending: list[Line] = []  # a transaction without its last line so far; it never crosses a segment
        begin, begin_count = at, count
        while (stop := data.find(b"\n", at)) >= 0:
            try:
                head, digest, spans = following(data[at:stop], digest)
            except ValueError as error:
                self._refuse(segment, self._line_number(segment, offset) + count, str(error))
            pending.append(placed(head, spans, (segment << SHIFT) | (offset + at), stop + 1 - at))
            at, count = stop + 1, count + 1
            if head.get("more"):
                continue
            self.end, self.digest = Position(segment, offset + at), digest
            begin, begin_count = at, count
            yield pending
            pending = []
        if begin < len(data):
            number = self._line_number(segment, offset) + begin_count
            if not last_segment:
                self._refuse(segment, number, "it has no end, though another segment follows")
            self.torn = Torn(str(self._name(segment)), number, len(data) - begin, None)

    def written(self, lines: list[Line]) -> list[bytes]:
        """Return lines that were read as bytes, without their ends."""
        return [self._bytes(segment_of(line.at), line.at.pos & OFFSET, line.at.length - 1) for line in lines]

    def _load(self, segment: int, offset: int) -> bytes:
        size = os.fstat(self._file(segment).fileno()).st_size
        return self._bytes(segment, offset, size - offset)

    def _bytes(self, segment: int, offset: int, length: int) -> bytes:
        fd = self._file(segment).fileno()
        try:
            return read_at(fd, offset, length)
        except OSError as error:
            raise EngineError(
                f"cannot read {self._name(segment)}: {error.strerror}. Nothing was changed; where it stays so, restore a dump or a backup."
            ) from error

    def _line_number(self, segment: int, offset: int) -> int:
        if offset == 0:
            return 1
        return self._bytes(segment, 0, offset).count(b"\n") + 1

    def _check_header(self, segment: int, data: bytes, last_segment: bool) -> int:
        stop = data.find(b"\n")
        if stop < 0:
            if not last_segment:
                self._refuse(segment, 1, "it has no end, though another segment follows")
            if not header(segment + 1).startswith(data.rstrip(b"\0")):
                self._refuse_header(segment, data)
            self.torn = Torn(str(self._name(segment)), 1, len(data), None)
            return 0
        if generation_of(data[: stop + 1], segment + 1) < 0:
            self._refuse_header(segment, data[:stop])
        return stop + 1

    def _refuse_header(self, segment: int, line: bytes) -> NoReturn:
        try:
            header = orjson.loads(line)
        except orjson.JSONDecodeError:
            header = None
        if isinstance(header, dict) and header.get("format") == "graphstore journal":
            schema = header.get("schema")
            if isinstance(schema, int) and schema > SCHEMA:
                raise EngineError(
                    f"{self._name(segment)} was written with schema {schema}; this graphstore reads up to {SCHEMA}. "
                    "Install a newer graphstore. Nothing was changed."
                )
        raise DamageError(
            f"{self._name(segment)} line 1: it is not the header of a graphstore journal. Nothing was changed."
        )

    def _refuse(self, segment: int, number: int, why: str) -> NoReturn:
        raise DamageError(
            f"{self._name(segment)} line {number}: {why}. The journal is damaged there; nothing was changed. "
            "Restore a dump or a backup."
        )

    def close(self) -> None:
        """Close the files."""
        while self._files:
            self._files.pop().close()
