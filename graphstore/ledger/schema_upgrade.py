"""Brings a ledger of an earlier schema to that of this release: the tables of rows are made anew from the chain, in one SQL transaction."""

from __future__ import annotations

import re

from graphstore.ledger.checking import write_rows
from graphstore.ledger.database import SCHEMA, Database, schema_statements
from graphstore.ledger.row_writing import TABLES
from graphstore.ledger.word_rows import WordRows

_MADE = re.compile(r"^\w+ (?:TABLE|INDEX|VIEW) (\w+)", re.MULTILINE)


def upgrade_schema(database: Database, words: WordRows) -> None:
    """Upgrade the ledger unless that was done. A killed upgrade leaves it as it was. Raises EngineError when the disk refuses."""
    if database.read_only or database.rows("PRAGMA user_version")[0][0] == SCHEMA:
        return
    with database.transaction() as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA:  # another process did it
            return
        for name in (*TABLES, *(table.removeprefix("all_") for table in TABLES), "next_number"):
            for (kind,) in connection.execute(
                "SELECT type FROM sqlite_master WHERE name = ?", (name,)
            ).fetchall():
                connection.execute(f"DROP {kind} {name}")
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for statement in schema_statements():
            made = _MADE.search(statement)
            if made is not None and made[1] not in there:
                connection.execute(statement)
        write_rows(connection, words)
        connection.execute(f"PRAGMA user_version={SCHEMA}")
