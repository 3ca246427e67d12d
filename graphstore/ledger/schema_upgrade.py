"""Brings a ledger of an earlier schema to that of this release: the tables of rows are made anew from the chain, in one SQL transaction."""

from __future__ import annotations

from graphstore.ledger.checking import make_rows_anew
from graphstore.ledger.database import SCHEMA, Database
from graphstore.ledger.word_rows import WordRows


def upgrade_schema(database: Database, words: WordRows) -> None:
    """Upgrade the ledger unless that was done. A killed upgrade leaves it as it was. Raises EngineError when the disk refuses."""
    if database.read_only or database.rows("PRAGMA user_version")[0][0] == SCHEMA:
        return
    with database.transaction() as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA:  # another process did it
            return
        make_rows_anew(connection, words)
        connection.execute(f"PRAGMA user_version={SCHEMA}")
