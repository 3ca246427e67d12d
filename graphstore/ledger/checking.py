"""Verifies the chain of a ledger: each line must follow the one before, and the rows must be those that the chain implies."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import Any
from zlib import crc32

import orjson

from graphstore.errors import DamageError
from graphstore.ledger import row_writing
from graphstore.ledger import standings as standing_rows
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import GENESIS, digest_of, refuse_unknown
from graphstore.ledger.creating import is_in_recorded_file
from graphstore.ledger.damage import damage
from graphstore.ledger.database import SCHEMA, Database
from graphstore.ledger.statements import schema_statements
from graphstore.ledger.word_rows import WORD_TABLES, WordRows
from graphstore.values.period import instant

_MOST = 20  # differences of one table that are reported one by one
_LONG = 60  # bytes; longer values are not shown
_PAGE = 1_000  # rows of the chain that are fetched per statement
_LINES = "SELECT number, tx, part, more, first_body, bodies, digest, head FROM chain WHERE number > ? ORDER BY number LIMIT ?"
_BODIES = "SELECT number, data, checksum FROM body WHERE number BETWEEN ? AND ?"
_CHAIN = "SELECT number, first_body, head FROM chain WHERE number > ? ORDER BY number LIMIT 1000"
_SCHEMA = "SELECT name, type, sql FROM {}.sqlite_master WHERE sql IS NOT NULL"
_COMMENT_OR_SPACE = r"--[^\n]*|\s+"
_MADE = r"(?m)^\w+ (?:TABLE|INDEX|VIEW) (\w+)"
_OF_CHAIN = ("chain", "body")
_STATEMENTS = schema_statements()
_ANALYZERS = "SELECT (SELECT identity FROM ledger.analyzer), (SELECT identity FROM main.analyzer)"
_VANISHED = f"""
SELECT l.name, e.id, v.ordinal
FROM ledger.body b
CROSS JOIN main.all_version v ON v.body = b.number
CROSS JOIN main.all_entity e ON e.number = v.entity
LEFT JOIN main.line l ON l.number = v.number / {SPAN}
WHERE b.data IS NULL
  AND NOT EXISTS (SELECT 1 FROM main.all_forgotten f WHERE f.entity = v.entity AND f.operation / {SPAN} = v.number / {SPAN})
ORDER BY v.number
"""
_NAMES = {
    "entity": "entity",
    "event": "entity",
    "source": "entity",
    "link": "link",
}  # columns -> the table that has their ids


def transactions(database: Database) -> Iterator[list[tuple[dict[str, Any], int]]]:
    """Yield each transaction as its lines: the verified head and the number of the first body. Raises DamageError, EngineError for a newer format."""
    lines: list[tuple[dict[str, Any], int]] = []
    at, digest = 0, GENESIS
    while rows := database.rows(_LINES, (at, _PAGE)):
        for number, _, _, _, first, _, stated, raw in rows:
            head = _verified(database, number, raw, stated, at, digest)
            at, digest = number, stated
            lines.append((head, first))
            if not head.get("more"):
                yield lines
                lines = []
    if lines:
        raise damage(
            database,
            at + 1,
            "it is missing, and the row before it says that it belongs to the same transaction",
        )


def _verified(
    database: Database, number: int, raw: bytes, stated: str, at: int, before: str
) -> dict[str, Any]:
    """Return the head of a row of the chain after row `at`, whose digest is `before`. Raises DamageError if the row is damaged or missing."""
    if at and number != at + 1:  # a chain that was rewritten begins with a higher number
        raise damage(database, at + 1, "it is missing")
    if digest_of(raw) != stated:
        raise damage(database, number, "its digest does not match")
    try:
        head: dict[str, Any] = orjson.loads(raw)
        previous = head["prev"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise damage(database, number, "its head is no JSON object of a ledger") from None
    if previous != before:
        raise damage(database, number, "it does not follow the row before it (digest chain broken)")
    refuse_unknown(head, f"{database.file} line {number}")
    return head


def faults(database: Database, *, contents: bool = True) -> Iterator[tuple[int, str]]:
    """Yield each fault as the number of its row in the chain (0: the file itself) and a message.

    Args:
        contents: also compare bodies with their hashes, and rows with the chain.
    """
    file = database.file
    try:
        for (finding,) in database.rows("PRAGMA integrity_check"):
            if finding != "ok":
                yield 0, finding
    except DamageError as error:
        yield 0, str(error)
        return
    try:
        are_whole = yield from _faults_of_chain(database, contents)
        if contents and are_whole is not None:
            with database.as_file() as ledger:
                for difference in _differences(ledger, WordRows() if are_whole else None):
                    yield 0, f"{file}: {difference}"
    except (sqlite3.Error, ValueError, LookupError, TypeError) as error:  # rows that cannot be rebuilt
        yield 0, f"{file}: its rows cannot be compared with the chain ({error})"


def _faults_of_chain(database: Database, contents: bool) -> Generator[tuple[int, str], None, bool | None]:
    """Yield the faults of the chain. Return True if all bodies match their hashes; None if the chain cannot be followed to its end."""
    are_whole, file = True, database.file
    at, digest, expected_body, expected_part = 0, GENESIS, 0, 0
    while rows := database.rows(_LINES, (at, _PAGE)):
        last = max(first + count - 1 for _, _, _, _, first, count, _, _ in rows)
        found = database.rows(_BODIES, (rows[0][4], last)) if contents else ()
        bodies = {number: (data, checksum) for number, data, checksum in found}
        for number, tx, part, more, first, count, stated, raw in rows:
            try:
                head = _verified(database, number, raw, stated, at, digest)
            except DamageError as error:
                yield at + 1 if at else number, str(error)
                return None
            at, digest, goes_on = number, stated, bool(head.get("more"))
            if (tx, part, more) != (instant(head["tx"]), expected_part, goes_on):
                yield number, f"{file} line {number}: its tx, part or more is not that of its head."
            expected_part = expected_part + 1 if goes_on else 0
            if (expected_body and first != expected_body) or len(head["body"]) != count:
                yield number, f"{file} line {number}: it does not name its own bodies."
                return None
            expected_body = first + count
            for body, expected in enumerate(head["body"] if contents else (), first):
                data, checksum = bodies.get(body, (b"", 0))
                if data is not None and (digest_of(data) != expected or crc32(data) != checksum):
                    are_whole = False
                    yield number, f"{file} line {number}: the content of body {body} does not match its hash."
    return are_whole


def check_copy(database: Database) -> bool:
    """Check the file and the chain if the ledger is in another file than recorded: in a copy, or a restored backup.

    Returns True if so; the caller then calls `record_file`. Raises DamageError for the first fault. Contents are checked later, when they are read.
    """
    if is_in_recorded_file(database):
        return False
    for number, why in faults(database, contents=False):
        raise DamageError(
            why
            if number
            else f"{database.file} line 1: the file is damaged ({why}). Nothing was changed. Restore a dump or a backup."
        )
    return True


def write_rows(connection: sqlite3.Connection, words: WordRows | None) -> None:
    """Write all rows from the chain into empty tables."""
    standings = standing_rows.StandingWriter(connection)
    at, rows = 0, None
    while lines := connection.execute(_CHAIN, (at,)).fetchall():
        for number, first_body, raw in lines:
            at, head = number, orjson.loads(raw)
            rows = row_writing.RowWriter(connection, head, first_body, words, before=rows)
            for note in rows.write():
                standings.note(*note)
            if not head.get("more"):
                standings.write(instant(head["tx"]))


def make_rows_anew(connection: sqlite3.Connection, words: WordRows) -> None:
    """Drop all tables of rows and all views, create them by the schema of this release, and write their rows from the chain. Those of a server are only emptied."""
    if not isinstance(connection, sqlite3.Connection):
        row_writing.clear(connection)
        write_rows(connection, words)
        return
    for name, kind, _ in connection.execute(_SCHEMA.format("main")).fetchall():
        is_old = (
            f"all_{name}" in row_writing.TABLES
        )  # before schema 4 these names were those of the trunk's tables
        if kind == "view" or (kind == "table" and (name in row_writing.TABLES or is_old)):
            connection.execute(f"DROP {kind} {name}")
    there = {name for name, _, _ in connection.execute(_SCHEMA.format("main"))}
    for statement in _STATEMENTS:
        made = re.search(_MADE, statement)
        if made is not None and made[1] not in there:
            connection.execute(statement)
    write_rows(connection, words)


def upgrade_schema(database: Database, words: WordRows) -> None:
    """Upgrade a ledger of an earlier schema to that of this release, in one SQL transaction. A killed upgrade leaves it unchanged.

    Raises EngineError if the disk refuses.
    """
    if database.read_only or database.rows("PRAGMA user_version")[0][0] == SCHEMA:
        return
    with database.transaction() as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA:  # another process did it
            return
        make_rows_anew(connection, words)
        connection.execute(f"PRAGMA user_version={SCHEMA}")


def _differences(ledger: str, words: WordRows | None) -> Iterator[str]:
    """Yield the differences between a ledger's rows, given as an SQLite URI, and its chain, and missing contents. One snapshot is compared.

    Args:
        words: writes the words of texts; None to skip all tables that depend on bodies.
    """
    with closing(sqlite3.connect("", uri=True, isolation_level=None)) as connection:  # a temporary database
        connection.execute("ATTACH ? AS ledger", (ledger,))
        connection.execute("BEGIN")
        for statement in _STATEMENTS:
            connection.execute(statement)
        yield from _differing_schema(connection)
        for table in _OF_CHAIN:  # from then on the name means the ledger's table
            connection.execute(f"DROP TABLE main.{table}")
        connection.execute("INSERT OR REPLACE INTO main.property SELECT * FROM ledger.property")
        write_rows(connection, words)
        [(made, expected)] = connection.execute(_ANALYZERS)
        for table in row_writing.TABLES:
            if (words is None and table in row_writing.OF_BODIES) or (
                made != expected and table in WORD_TABLES
            ):
                continue  # based on damaged bodies, or on another stemmer than that of this process
            for difference in _differing(connection, table):
                yield f"{difference}. `graphstore rebuild` makes the rows anew from the chain."
        for line, id, version in connection.execute(_VANISHED):
            where = "" if line is None else f"branch {line!r}: "
            yield f"{where}the content of {id!r} version {version} is missing, though it was never evicted or erased."


def _differing_schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield messages about tables, indexes and views that are not defined as in this release."""
    made, found = (
        {
            name: re.sub(_COMMENT_OR_SPACE, "", sql)
            for name, _, sql in connection.execute(_SCHEMA.format(database))
        }
        for database in ("main", "ledger")
    )
    for name in sorted(made.keys() | found.keys()):
        if name not in found or (name in made and made[name] != found[name]):
            is_row = name not in _OF_CHAIN
            remedy = "`graphstore rebuild` makes it anew." if is_row else "Restore a dump or a backup."
            yield f"the definition of {name} in the file is missing or changed. {remedy}"


def _differing(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield messages about the rows of one table that only the ledger has, and those that it lacks."""
    for first, second, word in (
        ("ledger", "main", "has a row that the chain does not say"),
        ("main", "ledger", "lacks a row that the chain says"),
    ):
        found = connection.execute(f"SELECT * FROM {first}.{table} EXCEPT SELECT * FROM {second}.{table}")
        columns = [column[0] for column in found.description]
        rows = found.fetchall()
        for row in rows[:_MOST]:
            values = ", ".join(f"{name} {value!r}" for name, value in _named(connection, columns, row))
            yield f"the table {table} {word}: {values}"
        if len(rows) > _MOST:
            yield f"the table {table} {word}: {len(rows) - _MOST} more rows"


def _named(
    connection: sqlite3.Connection, columns: Iterable[str], row: Iterable[Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a row by column, with ids instead of numbers."""
    for column, value in zip(columns, row, strict=True):
        table = _NAMES.get(column)
        if table is not None and isinstance(value, int):
            ids = connection.execute(f"SELECT id FROM main.all_{table} WHERE number = ?", (value,)).fetchone()
            value = value if ids is None else ids[0]
        elif isinstance(value, bytes) and len(value) > _LONG:
            value = f"of {len(value)} bytes"
        yield column, value
