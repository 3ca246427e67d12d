"""What a ledger holds, read with SQLite alone: the store may be open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson


def connected(store: Path) -> closing[sqlite3.Connection]:
    """A connection that reads the ledger of a store's folder, closed at the end of the block."""
    return closing(sqlite3.connect(f"file:{store / 'ledger.db'}?mode=ro", uri=True))


def rows(store: Path, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a statement gives of the ledger of a store's folder."""
    with connected(store) as connection:
        return connection.execute(statement).fetchall()


def recorded(store: Path) -> list[list[tuple[Any, ...]]]:
    """Every row of the chain and every body."""
    return [rows(store, f"SELECT * FROM {table} ORDER BY number") for table in ("chain", "body")]


def heads(store: Path) -> list[dict[str, Any]]:
    """The heads of the chain, parsed."""
    return [orjson.loads(head) for (head,) in rows(store, "SELECT head FROM chain ORDER BY number")]


def copy_ledger(store: Path, target: Path) -> None:
    """Copy the ledger of a store, which may be open, into a new folder, and nothing else."""
    target.mkdir(parents=True)
    with (
        closing(sqlite3.connect(f"file:{store / 'ledger.db'}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target / "ledger.db")) as copy,
    ):
        source.backup(copy)


def change(store: Path, *statements: str) -> None:
    """Change rows of a closed store's ledger behind its back."""
    with closing(sqlite3.connect(store / "ledger.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
