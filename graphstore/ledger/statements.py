"""Reads the statements of `sql/`, one question each, and binds each to the model of its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from graphstore.ledger.database import RowReader

Row = TypeVar("Row")


class Number(NamedTuple):
    """The number of a row, for statements that return nothing else."""

    number: int


class Id(NamedTuple):
    """An id, for statements that return nothing else."""

    id: str


def read(name: str) -> str:
    """Return a file of `sql/`, from the installed package or else from the working copy."""
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


class Statement(Generic[Row]):
    """One statement. Its columns are the fields of `model`, in order."""

    def __init__(self, name: str, model: Callable[..., Row]) -> None:
        self.name = name
        self.model = model

    @cached_property
    def text(self) -> str:
        """Return the text of the statement, from its file."""
        return read(self.name)

    def rows(self, database: RowReader, values: Mapping[str, Any]) -> list[Row]:
        """Return all rows. `values`: the parameters by name."""
        return list(starmap(self.model, database.rows(self.text, values)))
