"""Complete the engine's errors about unknown names: add the existing names, and where else the name may exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from graphstore.errors import QueryError
from graphstore.graph.texts import text

if TYPE_CHECKING:
    from graphstore.graph.workers import AnyEngine

_NO_TABLE = re.compile(r"Table (\S+) does not exist\.?")
_NO_PROPERTY = re.compile(r"Cannot find property (.+) for (.+?)\.?\Z", re.DOTALL)
_OF_HISTORY = frozenset({"version", "op", "occurrence", "has_version", "has_occurrence", "link"})


def in_a_view(
    error: QueryError, labels: Iterable[str], links: Iterable[str], properties: Callable[[str], str]
) -> QueryError:
    """Return a clearer error for a label, a kind of link or a property that the graph of a view does not have.

    Args:
        properties: returns a sentence that lists the properties of what a variable stands for.
    """
    message = str(error)
    found, missing = _NO_TABLE.search(message), _NO_PROPERTY.search(message)
    if missing is not None:
        return QueryError(f"no property {missing[1]!r} for {missing[2]!r}. {properties(missing[2])}")
    if found is None:
        return error
    name, linked = found[1], sorted(links)
    if name.lower() in _OF_HISTORY:
        more = "It is of the whole history: query_tables, query --tables, or history in an agent's cypher."
    else:
        shown = f" Links in use: {', '.join(linked)}." if linked else ""
        more = f"Labels: {', '.join(labels)}. A kind of node is a property, (n:Node {{kind: {name.lower()!r}}}).{shown}{_nearest(name, linked)}"
    return QueryError(f"{found[0]} {more}")


def in_the_tables(error: QueryError, engine: AnyEngine) -> QueryError:
    """Return a clearer error for a table or a column that the tables do not have."""
    message = str(error)
    table, column = _NO_TABLE.search(message), _NO_PROPERTY.search(message)
    if table is None and column is None:
        return error
    kinds = {str(name): str(kind) for name, kind in engine.run(text("tables_there_are"))}
    nodes = sorted(name for name, kind in kinds.items() if kind == "NODE")
    if table is not None:
        links = sorted(set(kinds) - set(nodes))
        near = _nearest(table[1], [*nodes, *links])
        return QueryError(
            f"{table[0]} Labels: {', '.join(nodes)}. Links: {', '.join(links)}; other kinds are in LINK, with their name in kind.{near}"
        )
    assert column is not None
    columns = {name: [str(row[0]) for row in engine.run(text("columns_of", TABLE=name))] for name in nodes}
    every = sorted({each for names in columns.values() for each in names})
    said = "; ".join(
        f"{name} has {', '.join(columns[name])}" for name in ("Node", "Version") if name in columns
    )
    field = "A field of a content is FIELD(v, 'name') of a Version."
    return QueryError(
        f"no property {column[1]!r} for {column[2]!r}. {said}. {field}{_nearest(column[1], every)}"
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(by_lower), 1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""
