"""A whole store as one file: a header, every line of the journal in order, and a last line with their count and digest.

`GraphStore.export` writes it with `save`, `restore` reads it with `load`. Dumps before schema 2 begin with the header of a journal and have no
last line: whether they are whole cannot be told when they are cut between two lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import orjson

from graphstore.core.journal.files import new_file, sync_folder
from graphstore.core.journal.line import GENESIS, check, dumps, header, parts_of
from graphstore.core.journal.positions import State
from graphstore.errors import DamageError, EngineError, NotFoundError
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.ledger import Ledger, Verbatim

DUMP_SCHEMA = 2
_FORMAT, _END = "graphstore dump", "end of graphstore dump"
END_BYTES = 1024
_ENDS = b'{"digest":"'  # how the last line begins, and no other


class Loaded(NamedTuple):
    """What was read of a dump; `whole` is False where its format cannot tell."""

    lines: int
    transactions: int
    whole: bool


def save(journal: Ledger, end: State, target: Path) -> int:
    """Write a dump of a journal up to a state: beside its name, which it gets when all of it is on the disk. Returns the number of lines of the journal in it.

    Raises ConflictError when the name is taken, EngineError when the disk refuses; nothing remains then.
    """
    return write(journal.lines(end), journal.count(end)[1], end[1], target)


def write(lines: Iterable[bytes], transactions: int, digest: str, target: Path) -> int:
    """Write a dump of lines, of which each ends with its newline, as `save` does. `digest`: that of the last line."""
    count = 0
    with new_file(target) as sink:
        sink.write(dumps({"format": _FORMAT, "schema": DUMP_SCHEMA, "transactions": transactions}) + b"\n")
        for data in lines:
            sink.write(data)
            count += 1
        last = {"digest": digest, "format": _END, "lines": count, "transactions": transactions}
        sink.write(dumps(last) + b"\n")
    return count


def load(dump: Path, folder: Path) -> Loaded:
    """Make the ledger of a new store from a dump, in one SQL transaction, verifying each line and that none is missing.

    Raises DamageError with file and line; what is in the folder then is of no use.
    """
    if not dump.is_file():
        raise NotFoundError(f"no dump at {dump}.")
    folder.mkdir(parents=True, exist_ok=True)
    Database.create(folder / NAME)
    ledger = Ledger(Database(folder / NAME))
    try:
        with open(dump, "rb") as source:
            reading = _Reading(dump, _expected(dump, source.readline()))
            with ledger.database.transaction():
                ledger.append_verbatim(reading.parts(source))
                loaded = reading.close()
    finally:
        ledger.close()
    sync_folder(folder)
    return loaded


def _expected(dump: Path, line: bytes) -> int | None:
    """The number of transactions that the header names; None in a dump that has no last line."""
    if line == header(1):
        return None
    try:
        head = orjson.loads(line)
        schema, known = head["schema"], head["format"] == _FORMAT
        count = head.get("transactions")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        schema = count = known = None
    if isinstance(schema, int) and schema > DUMP_SCHEMA:
        raise EngineError(
            f"{dump} was written with schema {schema}; this graphstore reads up to {DUMP_SCHEMA}. Install a newer graphstore."
        )
    if not known or type(count) is not int or not line.endswith(b"\n"):
        raise DamageError(f"{dump} line 1: it is not the header of a graphstore dump. Nothing was restored.")
    return count


class _Reading:
    """The lines of a dump as they are read."""

    def __init__(self, dump: Path, expected: int | None) -> None:
        self._dump, self._expected = dump, expected
        self._prev, self._lines, self._transactions = GENESIS, 0, 0
        self._more, self._ended = False, False

    def parts(self, source: Iterable[bytes]) -> Iterator[Verbatim]:
        """The lines after the header, verified and taken apart. Raises DamageError."""
        for number, line in enumerate(source, 2):
            if not line.endswith(b"\n"):
                self._refuse(number, "the line is cut off")
            if self._ended:
                self._refuse(number, "something follows the last line")
            if self._expected is not None and line.startswith(_ENDS):
                self._end(number, line)
                continue
            try:
                head, self._prev, spans = check(line[:-1], self._prev)
            except ValueError as error:
                self._refuse(number, str(error))
            self._more = bool(head.get("more"))
            self._lines += 1
            self._transactions += not self._more
            yield parts_of(line[:-1], spans)

    def _end(self, number: int, line: bytes) -> None:
        try:
            last: dict[str, Any] = orjson.loads(line)
        except orjson.JSONDecodeError:
            last = {}
        counts = {"lines": self._lines, "transactions": self._transactions}
        whole = {"digest": self._prev, "format": _END, **counts}
        if last != whole or self._more or self._transactions != self._expected:
            self._refuse(number, "the last line tells of other lines than these")
        self._ended = True

    def close(self) -> Loaded:
        """What was read. Raises DamageError when something is missing."""
        number = self._lines + 2
        if self._expected is not None and not self._ended:
            self._refuse(
                number, "the dump is cut off: its last line, which says that it is whole, is missing"
            )
        if self._more:
            self._refuse(number, "the last transaction is cut off")
        return Loaded(self._lines, self._transactions, self._ended)

    def _refuse(self, number: int, why: str) -> NoReturn:
        missing = "" if self._expected is None else f" {_missing(self._expected, self._transactions)}"
        raise DamageError(
            f"{self._dump} line {number}: {why}.{missing} Nothing was restored. Take another copy of the dump, or export the store again."
        )


def _missing(expected: int, read: int) -> str:
    left = expected - read
    if left <= 0:
        return f"All {expected} transactions were read, but they may not be those that were exported."
    return f"{left} {'transaction' if left == 1 else 'transactions'} missing: it was written with {expected}, and {read} could be read."


def lines_in(end: bytes, lines: int) -> int:
    """How many lines of the journal a dump of so many lines holds, by its last `END_BYTES`."""
    try:
        last = orjson.loads(end.rstrip(b"\n").rpartition(b"\n")[2])
    except orjson.JSONDecodeError:
        last = None
    ended = isinstance(last, dict) and last.get("format") == _END
    return lines - (2 if ended else 1)


def unsure(dump: Path) -> str:
    """What to tell about a dump that cannot be checked for its end."""
    return (
        f"{dump} was written by an earlier version and has no last line with the count: "
        "each of its lines is right, but whether all are there cannot be checked."
    )
