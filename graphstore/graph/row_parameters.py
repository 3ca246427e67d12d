"""Rows as a parameter: `UNWIND $rows AS r … r.id` with an Arrow table or a list of dicts.

The engine converts such a list to maps, and joins on a map's field are cross products (20,000 rows: 3.4 s). So the rows are loaded as columns, each a
variable named `r.id`, which the engine joins by key in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphstore.errors import InvalidError, QueryError
from graphstore.graph.statement import CypherStatement, Token, edited, tokens_of

if TYPE_CHECKING:
    import pyarrow

_CLAUSES = frozenset(
    {"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL", "UNION", "WHERE", "ORDER", "SKIP", "LIMIT"}
)
_LISTS = frozenset({"WITH", "RETURN"})


def rows_read(
    statement: CypherStatement, params: Mapping[str, Any]
) -> tuple[CypherStatement, dict[str, pyarrow.Table]]:
    """Return the statement that loads the parameters that are rows, and these as tables. Raises QueryError if they are not read by UNWIND, InvalidError if
    they cannot be a table."""
    read = {name: value for name, value in params.items() if name in statement.params}
    given = {name: value for name, value in read.items() if _is_rows(value)}
    empty = [name for name, value in read.items() if isinstance(value, list | tuple) and not value]
    if not given and not empty:
        return statement, {}
    import pyarrow as pa

    tables: dict[str, pyarrow.Table] = {}
    text = statement.text
    for name in empty:
        if re.search(rf"\bUNWIND\s+\${re.escape(name)}\s+AS\b", text, re.IGNORECASE):
            rows = _Unwound(text, name)
            tables[name] = pa.table({rows.variable: pa.array([], "int64")})
            text = rows.as_nulls()
    for name, value in given.items():
        rows, table = _Unwound(text, name), _table(name, value)
        tables[name] = table.rename_columns([f"{rows.variable}.{column}" for column in table.column_names])
        text = rows.as_columns(table.column_names)
    return CypherStatement(text), tables


def _is_rows(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping) for row in value)
    return (
        hasattr(value, "column_names") or hasattr(value, "to_arrow") or hasattr(value, "__arrow_c_stream__")
    )


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


class _Use(NamedTuple):
    """A range of tokens that reads the rows: one column, or all. `clause`: where its clause begins; `behind`: the token after it; `is_item`: True if an item
    of WITH or RETURN begins with it."""

    first: int
    stop: int
    column: str | None
    clause: int
    behind: str
    is_item: bool

    @property
    def is_alone(self) -> bool:
        """Return True if it is the whole item."""
        return self.is_item and (self.behind in (",", "") or self.behind in _CLAUSES)


class _Unwound:
    """A text with the UNWIND that reads the rows of a parameter. Raises QueryError if they are read in another way."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name, self._tokens = text, name, list(tokens_of(text))
        tokens = self._tokens
        places = [at for at, token in enumerate(tokens) if token.text == f"${name}"]
        self._at = at = places[0]
        around = [token.text.upper() for token in (tokens[at - 1], *tokens[at + 1 : at + 2])]
        if len(places) > 1 or around != ["UNWIND", "AS"] or at + 2 >= len(tokens):
            raise QueryError(f"${name} is rows: read them once, with unwind ${name} AS r, and say r.column.")
        self.variable = tokens[at + 2].text.strip("`")

    def as_columns(self, columns: Sequence[str]) -> str:
        """Return the text with columns as variables: `r.id` is one, `r` a map of them, or in WITH all of them."""
        variable, uses = self.variable, list(self._uses())
        whole = "{" + ", ".join(f"`{column}`: `{variable}.{column}`" for column in columns) + "}"
        every = ", ".join(f"`{variable}.{column}`" for column in columns)
        passed = {use.clause for use in uses if use.column is None and use.is_alone}
        found = []
        for use in uses:
            in_with = use.is_item and self._tokens[use.clause].word == "WITH"
            if use.column is None:
                alone = every if in_with else f"{whole} AS `{variable}`"
                found.append(alone if use.is_alone else whole)
                continue
            if use.column not in columns:
                raise QueryError(
                    f"the rows of ${self._name} have no column {use.column!r}. They have: {', '.join(columns)}."
                )
            column = f"`{variable}.{use.column}`"
            # the engine keeps one name for a column that goes on under two
            renamed = in_with and use.behind == "AS" and use.clause in passed
            found.append(f"coalesce({column})" if renamed else column)
        return self._loaded(uses, found)

    def as_nulls(self) -> str:
        """Return the text for a list without rows: NULL has every type, and no row is read."""
        uses, found = list(self._uses()), []
        for use in uses:
            clause = self._tokens[use.clause].word
            before = [each.word or each.text for each in self._tokens[max(0, use.first - 3) : use.first]]
            if use.is_alone and clause == "WITH" and use.column is None:
                found.append(f"`{self.variable}`")
            elif use.is_alone and clause == "RETURN":
                shown = self.variable if use.column is None else f"{self.variable}.{use.column}"
                found.append(f"NULL AS `{shown}`")
            else:
                called = [each for each in before if each not in ("(", "DISTINCT")][-1:]
                number = before[-1] in ("(", "DISTINCT") and called in (["SUM"], ["AVG"])
                found.append("CAST(NULL AS INT64)" if number else "NULL")
        return self._loaded(uses, found)

    def _uses(self) -> Iterator[_Use]:
        tokens = [*self._tokens, Token("", "", len(self._text))]
        clause, brackets, at = self._at - 1, [""], self._at + 3
        while at < len(self._tokens):
            token, before, behind = tokens[at], tokens[at - 1], tokens[at + 1].text
            if token.text in ("(", "[", "{"):
                brackets.append(token.text)
            elif token.text in (")", "]", "}"):
                brackets.pop()
            is_outside = len(brackets) == 1
            if token.word in _CLAUSES and before.text != "." and is_outside:
                clause = at
            named = token.kind in ("word", "quoted") and token.text.strip("`") == self.variable
            is_new_name = before.word == "AS" and is_outside  # of something else
            is_label = before.text in (".", "|") or (before.text == ":" and brackets[-1] != "{")
            if not named or is_new_name or is_label or behind == ":":
                at += 1
                continue
            column = tokens[at + 2].text.strip("`") if behind == "." and at + 2 < len(self._tokens) else None
            stop = at + 1 if column is None else at + 3
            is_item = is_outside and tokens[clause].word in _LISTS
            is_item = is_item and (before.text == "," or before.word in ("DISTINCT", *_LISTS))
            after = tokens[stop]
            yield _Use(at, stop, column, clause, after.word or after.text, is_item)
            at = stop

    def _loaded(self, uses: Sequence[_Use], texts: Sequence[str]) -> str:
        """Return the text with LOAD FROM instead of UNWIND, and `texts` where the rows are read."""
        unwind, rows, variable = (self._tokens[self._at + step] for step in (-1, 0, 2))
        edits = [(unwind.start, variable.end, f"LOAD FROM {rows.text}")]
        for use, text in zip(uses, texts, strict=True):
            edits.append((self._tokens[use.first].start, self._tokens[use.stop - 1].end, text))
        return edited(self._text, edits)
