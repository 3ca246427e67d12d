"""Brings a ledger of the schema before to that of this release: new tables and indexes, filled from what is there, in one SQL transaction."""

from __future__ import annotations

import re

from graphstore.ledger.database import SCHEMA, Database, schema_statements
from graphstore.ledger.word_rows import WordRows

_MADE = re.compile(r"^\w+ (?:TABLE|INDEX|VIEW) (\w+)", re.MULTILINE)


def upgrade_schema(database: Database, words: WordRows) -> None:
    """Upgrade the ledger unless that was done. A killed upgrade leaves it as it was. Raises EngineError when the disk refuses."""
    if database.read_only or database.rows("PRAGMA user_version")[0][0] == SCHEMA:
        return
    with database.transaction() as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA:  # another process did it
            return
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for statement in schema_statements():
            made = _MADE.search(statement)
            if made is not None and made[1] not in there:
                connection.execute(statement)
        words.refresh(connection)  # schema 2 had no words
        words.seal(connection)
        connection.execute(f"PRAGMA user_version={SCHEMA}")
