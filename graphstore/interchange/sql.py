"""Runs SQL over the whole history: the tables of a Parquet export in a private in-memory DuckDB, with the views of `sql/` by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa

from graphstore.errors import QueryError
from graphstore.graph.result import Result
from graphstore.interchange.history_tables import NAMES, StoreHistory
from graphstore.ledger.statements import read
from graphstore.values.period import TimeLike
from graphstore.view.view import Reader

__all__ = ["answered", "ask", "duckdb_here", "statements"]

_MACRO = re.compile(r"^CREATE MACRO (\w+)\(.*?;$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"\w+")


@cache
def statements(name: str) -> str:
    """A file of `sql/`: that of the package, else of the working copy."""
    return read(name)


@cache
def _views() -> dict[str, str]:
    """Return the views by name, in the order in which they are created."""
    return {found[1]: found[0] for found in _MACRO.finditer(statements("as_of"))}


def ask(
    store: Reader, text: str, params: Mapping[str, Any] | None = None, *, tx: TimeLike | None = None
) -> Result:
    """The answer of a text of SQL over what a store recorded up to `tx` (default: now). `params`: the values of `$name` in it.

    The tables are `nodes`, `versions`, `events`, `occurrences`, `links` and `operations`; only those that the text reads are made. Instants are in UTC.
    Raises QueryError for what DuckDB refuses and where it is not installed, InvalidError for a view.
    """
    history = StoreHistory(store, tx)
    with duckdb_here() as connection:
        for name in _read(text):
            schema = history.schema(name)
            connection.register(name, pa.concat_tables([schema.empty_table(), *history.parts(name)]))
        return answered(
            connection,
            text,
            params,
            [view for view in _views() if set(_tables_of(_views()[view])) <= set(_read(text))],
        )


@contextmanager
def duckdb_here() -> Iterator[Any]:
    """A DuckDB of its own in memory, its instants in UTC. Raises QueryError where it is not installed, and for what it refuses in the block."""
    try:
        import duckdb
    except ImportError:
        raise QueryError("DuckDB is not installed. Install it with: pip install 'graphstore[sql]'") from None
    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            yield connection
        except duckdb.Error as error:
            raise QueryError(
                f"DuckDB refused: {error}\nTables: {', '.join(NAMES)}. Views: {', '.join(_views())}."
            ) from error


def answered(
    connection: Any, text: str, params: Mapping[str, Any] | None, views: Iterable[str] | None = None
) -> Result:
    """The answer to a text, with views of `sql/as_of.sql` by name, by default all. Raises QueryError for a text that gives no rows."""
    for name in _views() if views is None else views:
        connection.execute(_views()[name])
    found = connection.sql(text, params=dict(params) if params else None)
    if found is None:
        raise QueryError("the text gives no rows. End it with a SELECT.")
    return Result.of_arrow(found.to_arrow_table())


def _read(text: str) -> list[str]:
    """Return the tables that a query may read, by its words and those of the views it names."""
    return [name for name in NAMES if name in _tables_of(text)]


def _tables_of(text: str) -> set[str]:
    words = set(map(str.lower, _WORD.findall(text)))
    found = words & {*NAMES}
    own = _MACRO.match(text)
    for name in words & _views().keys() - ({own[1]} if own else set()):
        found |= _tables_of(_views()[name])
    return found
