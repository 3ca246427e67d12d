"""Loads the statements of `sql/`, one question each, and binds each to the model of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import starmap
from typing import Any, Generic, TypeVar

from graphstore.ledger.database import Readable
from graphstore.ledger.sql_files import read

Row = TypeVar("Row")


class Statement(Generic[Row]):
    """One statement. Its columns are the fields of `model`, in order."""

    def __init__(self, name: str, model: Callable[..., Row]) -> None:
        self.name = name
        self.model = model

    @cached_property
    def text(self) -> str:
        """Return the text of its file."""
        return read(self.name)

    def rows(self, database: Readable, values: Mapping[str, Any]) -> list[Row]:
        """Fetch all rows. `values`: those of the parameters, by name."""
        return list(starmap(self.model, database.rows(self.text, values)))
