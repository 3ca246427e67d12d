"""Reads the journal of release 0.1: files with lines of canonical JSON. Upgrades and checks read it; nothing writes it.

A line is `{"body":[…],"digest":"…","head":{…}}`. The head describes what happened. It holds the hash of each body and the digest of the previous line; the
digest covers the head. A transaction may have several lines: every head but the last has `"more":true`, and the last one seals it.

A tail without a final newline, or with zero padding, is a write that was never acknowledged. Any other difference is damage: it raises an error with file and
line, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from graphstore.errors import DamageError, EngineError
from graphstore.ledger.chain import GENESIS, Verbatim, check, digest_of, dumps, fields_of
from graphstore.ledger.files import plain_bytes
from graphstore.values.period import Instant, instant

_SCHEMA = 1


class Torn(NamedTuple):
    """The place of an unacknowledged tail, and its size in bytes."""

    file: Path
    line: int
    size: int


class OldJournal:
    """Reads the segments of one store, which are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest = GENESIS  # of the last line read
        self.lines = self.transactions = 0  # read so far
        self.last_tx: Instant = 0  # of the last transaction read
        self.torn: Torn | None = None

    def read(self) -> Iterator[list[Verbatim]]:
        """Yield the sealed transactions, each as its verified lines.

        Raises DamageError with file and line. Reading ends at a torn tail, which `torn` then describes.
        """
        number = 1
        while self.torn is None:
            is_last = number >= self._segments()
            yield from self._read_segment(number, is_last)
            if is_last:
                return
            number += 1

    def _name(self, number: int) -> Path:
        return self.folder / f"{number:08}.jsonl"

    def _segments(self) -> int:
        """Return the number of segment files. Raises DamageError if one between them is missing."""
        # not glob(), which treats an unreadable folder as an empty one
        files = [name for name in self.folder.iterdir() if name.suffix == ".jsonl"]
        numbers = sorted(int(name.stem) for name in files if name.stem.isdigit())
        for number, found in enumerate(numbers, 1):
            if number != found:
                raise DamageError(
                    f"{self._name(number)} is missing, though {self._name(found)} follows. Nothing was changed. Restore a backup."
                )
        return len(numbers)

    def _read_segment(self, number: int, is_last: bool) -> Iterator[list[Verbatim]]:
        data = self._bytes(number)
        at = begin = self._after_header(number, data, is_last)
        count = begin_count = 1
        lines: list[Verbatim] = []  # lines of an incomplete transaction; it never crosses segments
        while at and (stop := data.find(b"\n", at)) >= 0:
            try:
                head, line = check(data[at:stop], lines[-1].digest if lines else self.digest)
            except ValueError as error:
                self._refuse(number, count + 1, str(error))
            lines.append(line)
            at, count = stop + 1, count + 1
            if not head.get("more"):
                self.digest, begin, begin_count = line.digest, at, count
                self.lines, self.transactions = self.lines + len(lines), self.transactions + 1
                self.last_tx = instant(head["tx"])
                yield lines
                lines = []
        if begin and begin < len(data):
            if not is_last:
                self._refuse(number, begin_count + 1, "it has no end, though another segment follows")
            self.torn = Torn(self._name(number), begin_count + 1, len(data) - begin)

    def _bytes(self, number: int) -> bytes:
        name = self._name(number)
        try:
            return plain_bytes(name)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise EngineError(
                f"cannot read {name}: {error.strerror}. Nothing was changed. Mend that, and open the store again; where it stays so, restore a dump or a backup."
            ) from error

    def _after_header(self, number: int, data: bytes, is_last: bool) -> int:
        """Return the position of the first line; 0 if the header itself is torn."""
        stop = data.find(b"\n")
        if stop < 0:
            if not is_last:
                self._refuse(number, 1, "it has no end, though another segment follows")
            if not header(number).startswith(data.rstrip(b"\0")):
                self._refuse_header(number, data)
            self.torn = Torn(self._name(number), 1, len(data))
            return 0
        if not _is_header(data[: stop + 1], number):
            self._refuse_header(number, data[:stop])
        return stop + 1

    def _refuse_header(self, number: int, line: bytes) -> NoReturn:
        fields = fields_of(line)
        schema = fields.get("schema")
        if fields.get("format") == "graphstore journal" and isinstance(schema, int) and schema > _SCHEMA:
            raise EngineError(
                f"{self._name(number)} was written with schema {schema}; this graphstore reads up to {_SCHEMA}. "
                "Install a newer graphstore. Nothing was changed."
            )
        raise DamageError(
            f"{self._name(number)} line 1: it is not the header of a graphstore journal. Nothing was changed."
        )

    def _refuse(self, number: int, line: int, why: str) -> NoReturn:
        raise DamageError(
            f"{self._name(number)} line {line}: {why}. The journal is damaged there; nothing was changed. "
            "Restore a dump or a backup."
        )


def header(segment: int, generation: int = 0) -> bytes:
    """Return the first line of a segment. `generation`: how often the file was rewritten; from 1 on the header has a digest."""
    fields = {"format": "graphstore journal", "generation": generation, "schema": _SCHEMA, "segment": segment}
    if generation:
        fields["digest"] = digest_of(dumps(fields))
    return dumps(fields) + b"\n"


def _is_header(line: bytes, segment: int) -> bool:
    generation = fields_of(line).get("generation")
    return type(generation) is int and generation >= 0 and line == header(segment, generation)
