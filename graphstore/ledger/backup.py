"""Writes and reads a whole store as one file: a header, every line of the chain in order, and a last line with their number and digest.

`GraphStore.export` writes it with `save`, and `restore` reads it with `load`. Dumps before schema 2 have the header of a journal and no last line. If such a
dump is cut off between two lines, that cannot be detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from graphstore.errors import DamageError, EngineError, InvalidError, NotFoundError
from graphstore.ledger.chain import GENESIS, Verbatim, check, dumps, fields_of
from graphstore.ledger.creating import create_ledger
from graphstore.ledger.database import NAME, Database
from graphstore.ledger.files import new_file, sync_folder
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.old_journal import header
from graphstore.values.period import Instant, moment

DUMP_SCHEMA = 2
_FORMAT, _BUNDLE, _END = "graphstore dump", "graphstore bundle", "end of graphstore dump"
_LAST_BEFORE = "SELECT number, tx, digest FROM chain WHERE tx <= ? ORDER BY number DESC LIMIT 1"
_IMPORTED = """
SELECT head FROM chain WHERE number <= ? AND instr(head, CAST('"origin":{' AS BLOB)) ORDER BY number
"""
END_BYTES = 1024
_ENDS = b'{"digest":"'  # the start of the last line; no other line starts like this


def save(ledger: Ledger, target: Path, since: Instant | None = None) -> int:
    """Write a dump of all committed lines, or a bundle of those after a tx. It gets its name once it is on the disk. Return the number of its lines of the chain.

    Raises ConflictError if the name is taken, EngineError if the disk refuses; then nothing remains.
    """
    with ledger.snapshot():
        end, _ = ledger.last()
        first = [] if since is None else ledger.database.rows(_LAST_BEFORE, (since,))
        if not first:
            return write(ledger.verbatim(end), ledger.transactions(end), target)
        [(after, tx, digest)] = first
        told = {"after": {"digest": digest, "tx": moment(tx)}, "origins": _origins(ledger, after)}
        count = ledger.transactions(end) - ledger.transactions(after)
        return write(ledger.verbatim(end, after), count, target, digest, {"format": _BUNDLE, **told})


def _origins(ledger: Ledger, upto: int) -> dict[str, Any]:
    """Return of each branch the last origin up to a row of the chain, if it was imported."""
    found: dict[str, Any] = {}
    for (raw,) in ledger.database.rows(_IMPORTED, (upto,)):
        head = fields_of(raw)
        found[head.get("branch", "")] = head.get("origin")
    return {name: origin for name, origin in found.items() if name and origin}


def write(
    lines: Iterable[Verbatim],
    transactions: int,
    target: Path,
    digest: str = GENESIS,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Write a dump of these lines, as `save` does. `digest`: that of the line before them; `more`: further fields of the header."""
    count = 0
    with new_file(target) as sink:
        fields = {"format": _FORMAT, "schema": DUMP_SCHEMA, "transactions": transactions, **more}
        sink.write(dumps(fields) + b"\n")
        for line in lines:
            sink.write(line.line())
            count, digest = count + 1, line.digest
        last = {"digest": digest, "format": _END, "lines": count, "transactions": transactions}
        sink.write(dumps(last) + b"\n")
    return count


def header_of(bundle: Path) -> dict[str, Any]:
    """Return the header of a bundle or a whole dump. Raises DamageError if the file is neither."""
    with open(bundle, "rb") as source:
        line = source.readline()
    _expected(bundle, line, (_FORMAT, _BUNDLE))
    return fields_of(line)


def lines_of(bundle: Path) -> Iterator[Verbatim]:
    """Yield the lines of a bundle or a whole dump, checked as `load` checks them."""
    with open(bundle, "rb") as source:
        line = source.readline()
        expected = _expected(bundle, line, (_FORMAT, _BUNDLE))
        after = fields_of(line).get("after") or {}
        yield from _lines(bundle, source, expected, after.get("digest", GENESIS))


def load(dump: Path, folder: Path) -> bool:
    """Create the ledger of a new store from a dump, in one SQL transaction, and verify that each line is valid and none is missing. Return False if the
    dump's format does not show whether it is whole.

    Raises DamageError with file and line; the folder is then unusable.
    """
    if not dump.is_file():
        raise NotFoundError(f"no dump at {dump}.")
    folder.mkdir(parents=True, exist_ok=True)
    create_ledger(folder / NAME)
    with open(dump, "rb") as source, closing(Ledger(Database(folder / NAME))) as ledger:
        expected = _expected(dump, source.readline())
        with ledger.database.transaction():
            ledger.append_verbatim(_lines(dump, source, expected))
    sync_folder(folder)
    return expected is not None


def _expected(dump: Path, line: bytes, formats: tuple[str, ...] = (_FORMAT,)) -> int | None:
    """Return the number of transactions that the header states; None for a dump without a last line."""
    if line == header(1):
        return None
    head = fields_of(line)
    schema, count = head.get("schema"), head.get("transactions")
    if isinstance(schema, int) and schema > DUMP_SCHEMA:
        raise EngineError(
            f"{dump} was written with schema {schema}; this graphstore reads up to {DUMP_SCHEMA}. Install a newer graphstore."
        )
    if head.get("format") == _BUNDLE and _BUNDLE not in formats:
        raise InvalidError(
            f"{dump} is a bundle: the part of a store after a transaction. Merge it into a store that has the part before: merge_store."
        )
    if (
        schema is None
        or head.get("format") not in formats
        or type(count) is not int
        or not line.endswith(b"\n")
    ):
        raise DamageError(f"{dump} line 1: it is not the header of a graphstore dump. Nothing was restored.")
    return count


def _lines(
    dump: Path, source: Iterable[bytes], expected: int | None, digest: str = GENESIS
) -> Iterator[Verbatim]:
    """Yield the lines after the header, parsed and verified. Raises DamageError, also if the end is missing.

    Args:
        expected: the number of transactions that the header states; None for a dump without a last line.
        digest: that of the line before the first one.
    """
    count = transactions = 0  # read so far
    is_open, has_ended = False, False

    def refuse(number: int, why: str) -> NoReturn:
        missing = "" if expected is None else f" {_missing(expected, transactions)}"
        raise DamageError(
            f"{dump} line {number}: {why}.{missing} Nothing was restored. Take another copy of the dump, or export the store again."
        )

    for number, line in enumerate(source, 2):
        if not line.endswith(b"\n"):
            refuse(number, "the line is cut off")
        if has_ended:
            refuse(number, "something follows the last line")
        if expected is not None and line.startswith(_ENDS):
            last = {"digest": digest, "format": _END, "lines": count, "transactions": expected}
            if fields_of(line) != last or is_open or transactions != expected:
                refuse(number, "the last line tells of other lines than these")
            has_ended = True
            continue
        try:
            head, verbatim = check(line[:-1], digest)
        except ValueError as error:
            refuse(number, str(error))
        digest, is_open = verbatim.digest, bool(head.get("more"))
        count, transactions = count + 1, transactions + (not is_open)
        yield verbatim
    if expected is not None and not has_ended:
        refuse(count + 2, "the dump is cut off: its last line, which says that it is whole, is missing")
    if is_open:
        refuse(count + 2, "the last transaction is cut off")


def _missing(expected: int, read: int) -> str:
    left = expected - read
    if left <= 0:
        return f"All {expected} transactions were read, but they may not be those that were exported."
    return f"{left} {'transaction' if left == 1 else 'transactions'} missing: it was written with {expected}, and {read} could be read."


def lines_in(end: bytes, lines: int) -> int:
    """Return the number of lines of the chain in a dump, from its number of lines and its last `END_BYTES`."""
    last = fields_of(end.rstrip(b"\n").rpartition(b"\n")[2])
    return lines - (2 if last.get("format") == _END else 1)


def unsure(dump: Path) -> str:
    """Return a warning about a dump whose format does not show whether it is whole."""
    return (
        f"{dump} was written by an earlier version and has no last line with the count: "
        "each of its lines is right, but whether all are there cannot be checked."
    )
