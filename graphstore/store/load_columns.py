"""Read the tables of a bulk load from any supported type, and check their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any

import orjson

from graphstore.errors import InvalidError
from graphstore.values.event_fields import EVENT_FIELDS
from graphstore.values.inputs import (
    event_fields,
    json_object,
    json_read,
    may_hold_long_number,
    may_lack_a_name,
)
from graphstore.values.period import instant

_COLUMNS = {
    "nodes": frozenset("id kind key scope".split()),
    "versions": frozenset(
        "node_id content text tags trigger source reason valid_from valid_to tx_from tx_to".split()
    ),
    "events": frozenset({*EVENT_FIELDS, "tx_from"}),
    "links": frozenset(
        "id source kind target reason strength confidence created_by history metadata "
        "valid_from valid_to tx_from tx_to".split()
    ),
}
_REQUIRED = {
    "nodes": ("id",),
    "versions": ("node_id",),
    "events": ("type", "description"),
    "links": ("source", "kind", "target"),
}
_TIMES = frozenset({"valid_from", "valid_to", "tx_from", "tx_to", "occurred_at"})

Row = dict[str, Any]


class LoadTable:
    """Stores rows by column. Times are instants; missing values are None."""

    def __init__(self, columns: dict[str, list[Any]], size: int, given: list[Row] | None = None) -> None:
        self.columns = columns
        self._size = size
        self._given = given

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, range(self._size))

    def row(self, number: int) -> Row:
        """Return a row as a dict."""
        if self._given is not None:
            return self._given[number]
        return {name: column[number] for name, column in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        return self.columns.get(name) or [None] * self._size

    def values_of(self, name: str, numbers: Sequence[int]) -> list[Any]:
        """Return the values of a column in these rows."""
        column = self.columns.get(name)
        return [None] * len(numbers) if column is None else [column[number] for number in numbers]


# ------------------------------------------------------------------ types of tables


def table_of(given: Any) -> LoadTable:
    """Return a table of any type: Arrow, pandas, polars, or an iterable of mappings. Times become instants, NaN and NaT None."""
    if given is None:
        return LoadTable({}, 0)
    if hasattr(given, "to_arrow") and not hasattr(given, "to_pylist"):  # polars
        given = given.to_arrow()
    if hasattr(given, "to_pylist"):
        return _from_arrow(given)
    if hasattr(given, "to_dict") and hasattr(given, "columns"):  # pandas
        found = [
            {name: _no_nan(value) for name, value in record.items()}
            for record in given.to_dict(orient="records")
        ]
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        found = [_row(number, row) for number, row in enumerate(given)]
    else:
        raise InvalidError(
            f"{type(given).__name__} is no table. Give an Arrow table, a DataFrame, or an iterable of dicts."
        )
    for number, row in enumerate(found):
        for name in _TIMES & row.keys():
            if row[name] is not None:
                try:
                    row[name] = instant(row[name], name)
                except InvalidError as error:
                    raise InvalidError(f"row {number}: {error}") from None
    names = dict.fromkeys(chain.from_iterable(found))
    return LoadTable({name: [row.get(name) for row in found] for name in names}, len(found), found)


def _row(number: int, row: Any) -> Row:
    if not isinstance(row, Mapping):
        raise InvalidError(f"row {number} is {row!r}, no row. Give a dict of column names and values.")
    return dict(row)


def _from_arrow(table: Any) -> LoadTable:
    import pyarrow

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if name in _TIMES and pyarrow.types.is_timestamp(kind):
            if kind.tz is None:
                raise InvalidError(f"column {name!r} has no time zone. Cast it to timestamp('us', tz='UTC').")
            instants = column.cast(pyarrow.timestamp("us", kind.tz), safe=False).cast(pyarrow.int64())
            columns[name] = instants.to_pylist()
        elif name in _TIMES:
            columns[name] = [None if value is None else instant(value, name) for value in column.to_pylist()]
        else:
            columns[name] = column.to_pylist()
    return LoadTable(columns, table.num_rows)


def _no_nan(value: Any) -> Any:
    """Return a cell of a DataFrame as a Python value without NaN, NaT and numpy types. A float with an integral value becomes an int: gaps turn columns into floats."""
    if hasattr(value, "to_pydatetime"):
        return None if value != value else value.to_pydatetime()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    return value


# ------------------------------------------------------------------ checks of columns


def check_columns(name: str, table: LoadTable) -> None:
    """Raise InvalidError for the first row with an unknown column, without a required one, or with an id that is not text."""
    if wrong := list(_wrong_rows(name, table)):
        raise InvalidError(min(wrong, key=itemgetter(0))[1])


def _wrong_rows(name: str, table: LoadTable) -> Iterator[tuple[int, str]]:
    """Yield the first row that breaks each rule, and how."""
    allowed, required = _COLUMNS[name], _REQUIRED[name]
    for column in table.columns if len(table) else ():
        if column not in allowed:
            row = _first(column in row for row in table)
            yield row, f"{name} row {row}: {InvalidError.choice('column', column, allowed)}"
    for column in required:
        if (row := _first(value is None for value in table.column(column))) >= 0:
            fields = f" {event_fields()}" if name == "events" else ""
            yield row, f"{name} row {row} has no {column!r}. Needed: {', '.join(required)}.{fields}"
    for column in (*required, "id") if name == "events" else required:
        values = table.column(column)
        if (row := _first(type(value) is not str and value is not None for value in values)) >= 0:
            yield row, f"{name} row {row}: {column} {values[row]!r} is no text. Give a str."
    beliefs = zip(table.column("tx_from"), table.column("tx_to"), strict=True)
    if (row := _first(at is None and stop is not None for at, stop in beliefs)) >= 0:
        yield (
            row,
            f"{name} row {row} has tx_to and no tx_from. A belief is held over [tx_from, tx_to): give both.",
        )


def _first(rules: Iterable[bool]) -> int:
    """Return the index of the first True value; -1 if there is none."""
    return next((place for place, is_so in enumerate(rules) if is_so), -1)


# ------------------------------------------------------------------ values


def listed(tags: Any) -> Any:
    """Return several tags as a list."""
    return tags if isinstance(tags, str) or not isinstance(tags, Iterable) else list(tags)


def object_of(value: Any) -> Any:
    """Return the JSON object in a dict, a JSON text or None (an empty one). Raises InvalidError for anything else."""
    if type(value) is str:
        with suppress(ValueError, RecursionError):
            found = orjson.loads(value)
            raw = value.encode()
            if type(found) is dict and not (may_hold_long_number(raw) or may_lack_a_name(raw, found)):
                return found
    if isinstance(value, (str, bytes)):
        value, text = json_read(repr(value[:60]), value, kept=True), value
        if not isinstance(value, dict):
            raise InvalidError(f"{text[:60]!r} is no JSON object. Give a dict, or the text of a JSON object.")
        return value
    return {} if value is None else json_object("content", value)
