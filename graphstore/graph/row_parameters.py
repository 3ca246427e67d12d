"""Rows as a parameter: `UNWIND $rows AS r … r.id`, of an Arrow table or a list of dicts.

The engine makes maps of such a list, and joins by a map's field are cross products (20,000 rows: 3.4 s). So the rows are loaded as columns, each a
variable named `r.id`, which it joins by a key in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import InvalidError, QueryError
from graphstore.graph.guard import Statement, pieces

if TYPE_CHECKING:
    import pyarrow

_CLAUSES = frozenset(
    {"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "UNION", "WHERE", "ORDER", "SKIP", "LIMIT"}
)
_LISTS = frozenset({"WITH", "RETURN"})


class _Token(NamedTuple):
    kind: str
    text: str
    space: str = " "
    """What stands before it."""


def rows_read(statement: Statement, params: Mapping[str, Any]) -> tuple[Statement, dict[str, pyarrow.Table]]:
    """The statement that loads the parameters which are rows, and these as tables. Raises QueryError where they are used in another way than by UNWIND,
    InvalidError for rows of which no table can be made."""
    given = {name: value for name, value in params.items() if name in statement.params and _is_rows(value)}
    empty = [name for name, value in params.items() if name in statement.params and _is_empty(value)]
    if not given and not empty:
        return statement, {}
    tables: dict[str, pyarrow.Table] = {}
    tokens = _tokens(statement.text)
    for name in empty:
        if re.search(rf"\bUNWIND\s+\${re.escape(name)}\s+AS\b", statement.text, re.IGNORECASE):
            variable = _unwound(tokens, name)
            tables[name] = _no_rows(variable)
            tokens = _as_nulls(tokens, name, variable)
    for name, value in given.items():
        variable = _unwound(tokens, name)
        table = _table(name, value)
        tables[name] = table.rename_columns([f"{variable}.{column}" for column in table.column_names])
        tokens = _as_columns(tokens, name, variable, table.column_names)
    text = "".join(token.space + token.text for token in tokens)
    return replace(statement, text=text, tokens=tuple((token.kind, token.text) for token in tokens)), tables


def _tokens(text: str) -> list[_Token]:
    found, space = [], ""
    for kind, piece in pieces(text):
        if kind == "space":
            space = piece
        else:
            found.append(_Token(kind, piece, space))
            space = ""
    return found


def _is_rows(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping) for row in value)
    return (
        hasattr(value, "column_names") or hasattr(value, "to_arrow") or hasattr(value, "__arrow_c_stream__")
    )


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def _no_rows(variable: str) -> pyarrow.Table:
    import pyarrow as pa

    return pa.table({variable: pa.array([], "int64")})


def _table(name: str, value: Any) -> pyarrow.Table:
    import pyarrow as pa

    try:
        if isinstance(value, list | tuple):
            columns = list(dict.fromkeys(key for row in value for key in row))
            table = pa.table({column: [row.get(column) for row in value] for column in columns})
        else:
            table = pa.table(value.to_arrow() if hasattr(value, "to_arrow") else value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidError(
            f"parameter ${name} cannot be read as rows: {error}. Give each column values of one type."
        ) from None
    if not table.column_names or any("`" in column for column in table.column_names):
        raise InvalidError(f"parameter ${name} has no columns, or one with ` in its name.")
    return table


def _unwound(tokens: Sequence[_Token], name: str) -> str:
    """Return the variable of the UNWIND that reads the rows."""
    places = [at for at, token in enumerate(tokens) if token.text == f"${name}"]
    at = places[0]
    around = [token.text.upper() for token in (tokens[at - 1], *tokens[at + 1 : at + 2])]
    if len(places) > 1 or around != ["UNWIND", "AS"] or at + 2 >= len(tokens):
        raise QueryError(f"${name} is rows: read them once, with unwind ${name} AS r, and say r.column.")
    return tokens[at + 2].text.strip("`")


def _as_columns(tokens: Sequence[_Token], name: str, variable: str, columns: Sequence[str]) -> list[_Token]:
    """Return the tokens with the columns as variables: `r.id` is one, `r` a map of them, or in WITH all of them."""
    found, start = _loaded(tokens, name)
    whole = "{" + ", ".join(f"`{column}`: `{variable}.{column}`" for column in columns) + "}"
    every = ", ".join(f"`{variable}.{column}`" for column in columns)
    clause, brackets, at = "", [""], start + 3
    renamed: list[int] = []
    passed = False
    while at < len(tokens):
        token = tokens[at]
        before, behind = found[-1].text, tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.text in ("(", "[", "{"):
            brackets.append(token.text)
        elif token.text in (")", "]", "}"):
            brackets.pop()
        if token.kind == "word" and before != "." and len(brackets) == 1 and token.text.upper() in _CLAUSES:
            if passed:
                _as_values(found, renamed)
            clause, renamed, passed = token.text.upper(), [], False
        named = token.kind in ("word", "quoted") and token.text.strip("`") == variable
        named = named and not (
            before.upper() == "AS" and len(brackets) == 1
        )  # a new name, for something else
        label = before in (".", "|") or (before == ":" and brackets[-1] != "{")
        if not named or label or behind == ":":
            found.append(token)
        elif behind == "." and at + 2 < len(tokens):
            column = tokens[at + 2].text.strip("`")
            if column not in columns:
                raise QueryError(
                    f"the rows of ${name} have no column {column!r}. They have: {', '.join(columns)}."
                )
            found.append(token._replace(kind="quoted", text=f"`{variable}.{column}`"))
            at += 2
            item = len(brackets) == 1 and clause == "WITH" and before.upper() in (",", "DISTINCT", "WITH")
            if item and [each.text.upper() for each in tokens[at + 1 : at + 2]] == ["AS"]:
                renamed.append(len(found) - 1)
        else:
            item = len(brackets) == 1 and clause in _LISTS and before.upper() in (",", "DISTINCT", *_LISTS)
            alone = item and (behind in (",", "") or behind.upper() in _CLAUSES)
            passed = passed or (alone and clause == "WITH")
            text = every if alone and clause == "WITH" else f"{whole} AS `{variable}`" if alone else whole
            found.append(token._replace(kind="quoted", text=text))
        at += 1
    if passed:
        _as_values(found, renamed)
    return found


def _loaded(tokens: Sequence[_Token], name: str) -> tuple[list[_Token], int]:
    """Return the tokens up to the rows, with LOAD FROM for UNWIND, and where these are."""
    start = next(at for at, token in enumerate(tokens) if token.text == f"${name}")
    load = [_Token("word", "LOAD", tokens[start - 1].space), _Token("word", "FROM"), tokens[start]]
    return [*tokens[: start - 1], *load], start


def _as_values(found: list[_Token], places: Sequence[int]) -> None:
    """Make columns that get a new name values of their own: the engine keeps one name for a column that goes on under two."""
    for place in places:
        found[place] = found[place]._replace(text=f"coalesce({found[place].text})")


def _as_nulls(tokens: Sequence[_Token], name: str, variable: str) -> list[_Token]:
    """Return the tokens for a list without rows: NULL fits every type that the text needs, and no row has it."""
    found, start = _loaded(tokens, name)
    clause, brackets, at = "", [""], start + 3
    while at < len(tokens):
        token, before = tokens[at], found[-1].text
        if token.text in ("(", "[", "{"):
            brackets.append(token.text)
        elif token.text in (")", "]", "}"):
            brackets.pop()
        if token.kind == "word" and before != "." and len(brackets) == 1 and token.text.upper() in _CLAUSES:
            clause = token.text.upper()
        named = token.kind in ("word", "quoted") and token.text.strip("`") == variable
        behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
        label = before in (".", "|") or (before == ":" and brackets[-1] != "{")
        if not named or label or behind == ":" or (before.upper() == "AS" and len(brackets) == 1):
            found.append(token)
            at += 1
            continue
        last = at + 2 if behind == "." and at + 2 < len(tokens) else at
        after = tokens[last + 1].text.upper() if last + 1 < len(tokens) else ""
        item = len(brackets) == 1 and before.upper() in (",", "DISTINCT", *_LISTS)
        alone = item and (after in (",", "") or after in _CLAUSES)
        if alone and clause == "WITH" and last == at:
            found.append(token)
        elif alone and clause == "RETURN":
            column = tokens[last].text.strip("`")
            shown = variable if last == at else f"{variable}.{column}"
            found.append(token._replace(kind="quoted", text=f"NULL AS `{shown}`"))
        else:
            of = [each.text.upper() for each in found[-3:] if each.text.upper() not in ("(", "DISTINCT")]
            number = before.upper() in ("(", "DISTINCT") and of[-1:] in (["SUM"], ["AVG"])
            found.append(token._replace(kind="quoted", text="CAST(NULL AS INT64)" if number else "NULL"))
        at = last + 1
    return found
