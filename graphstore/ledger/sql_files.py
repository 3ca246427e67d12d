"""Finds the files of `sql/`."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def read(name: str) -> str:
    """Read a file of `sql/`: that of the package, else of the working copy."""
    installed = Path(__file__).parents[1] / "_sql"
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "sql"
    return (folder / f"{name}.sql").read_text(encoding="utf-8")


def schema_statements() -> list[str]:
    """Return the statements of `sql/schema.sql`, in order."""
    statements, part = [], ""
    for text in read("schema").splitlines(keepends=True):
        part += text
        if sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
