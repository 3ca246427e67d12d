"""The tables of a bulk load by column: read from whatever they are in, checked as a whole, and bodies of versions made for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import orjson

from graphstore.errors import GraphStoreError, InvalidError
from graphstore.ledger.chain import dumps
from graphstore.values.event_fields import EVENT_FIELDS
from graphstore.values.inputs import (
    event_fields,
    json_object,
    json_read,
    may_hold_long_number,
    may_lack_a_name,
    printable,
    tags_of,
    text_of,
)
from graphstore.values.models import Json
from graphstore.values.period import instant

_COLUMNS = {
    "nodes": frozenset("id kind key scope".split()),
    "versions": frozenset(
        "node_id content text tags trigger source reason valid_from valid_to tx_from tx_to".split()
    ),
    "events": frozenset({*EVENT_FIELDS, "tx_from"}),
    "links": frozenset(
        "id source kind target reason strength confidence created_by metadata "
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
_NONE = type(None)

Row = dict[str, Any]


class Table:
    """Rows by column. Times are instants; what a row has not is None."""

    def __init__(self, columns: dict[str, list[Any]], size: int, given: list[Row] | None = None) -> None:
        self.columns = columns
        self._size = size
        self._given = given

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, range(self._size))

    def row(self, number: int) -> Row:
        """A row as a dict."""
        if self._given is not None:
            return self._given[number]
        return {name: column[number] for name, column in self.columns.items()}

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        return self.columns.get(name) or [None] * self._size

    def of(self, name: str, numbers: Sequence[int]) -> list[Any] | None:
        """The values of a column in these rows; None where it has none at all."""
        column = self.columns.get(name)
        if column is None:
            return None
        if isinstance(numbers, range) and numbers.step == 1:
            return column[numbers.start : numbers.stop]
        return [column[number] for number in numbers]


# ------------------------------------------------------------------ what a table is in


def table_of(given: Any) -> Table:
    """A table of any kind: Arrow, pandas, polars, or an iterable of mappings. Times become instants, NaN and NaT None."""
    if given is None:
        return Table({}, 0)
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
    return Table({name: [row.get(name) for row in found] for name in names}, len(found), found)


def _row(number: int, row: Any) -> Row:
    if not isinstance(row, Mapping):
        raise InvalidError(f"row {number} is {row!r}, no row. Give a dict of column names and values.")
    return dict(row)


def _from_arrow(table: Any) -> Table:
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
    return Table(columns, table.num_rows)


def _no_nan(value: Any) -> Any:
    """A cell of a DataFrame as Python has it: no NaN or NaT, no numpy; a whole number that a gap in its column made a float is whole."""
    if hasattr(value, "to_pydatetime"):
        return None if value != value else value.to_pydatetime()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    return value


# ------------------------------------------------------------------ which columns it may have


def check_columns(name: str, table: Table) -> None:
    """Raise InvalidError for a table with unknown columns, without a needed one, or with an id that is no text."""
    if not _columns_right(name, table):
        _refuse_wrong(name, table)


def _identifiers(name: str) -> tuple[str, ...]:
    return (*_REQUIRED[name], "id") if name == "events" else _REQUIRED[name]


def _columns_right(name: str, table: Table) -> bool:
    """Whether `_refuse_wrong` has nothing to refuse."""
    there = table.columns
    if not there.keys() <= _COLUMNS[name]:
        return False
    if "tx_to" in there:
        pairs = zip(table.column("tx_from"), there["tx_to"], strict=True)
        if any(at is None and stop is not None for at, stop in pairs):
            return False
    for column in _identifiers(name):
        given = set(map(type, table.column(column)))
        if not given <= {str} and (column in _REQUIRED[name] or not given <= {str, _NONE}):
            return False
    return True


def _refuse_wrong(name: str, table: Table) -> None:
    allowed, required = _COLUMNS[name], _REQUIRED[name]
    for number, row in enumerate(table):
        wrong = next((column for column in row if column not in allowed), None)
        if wrong is not None:
            raise InvalidError(f"{name} row {number}: {InvalidError.choice('column', wrong, allowed)}")
        for column in required:
            if row.get(column) is None:
                fields = f" {event_fields()}" if name == "events" else ""
                raise InvalidError(
                    f"{name} row {number} has no {column!r}. Needed: {', '.join(required)}.{fields}"
                )
        for column in _identifiers(name):
            if type(row.get(column)) is not str and row.get(column) is not None:
                raise InvalidError(f"{name} row {number}: {column} {row[column]!r} is no text. Give a str.")
        if name in ("versions", "links") and row.get("tx_to") is not None and row.get("tx_from") is None:
            raise InvalidError(
                f"{name} row {number} has tx_to and no tx_from. A belief is held over [tx_from, tx_to): give both."
            )


# ------------------------------------------------------------------ bodies of versions


class Told(NamedTuple):
    """What rows of versions say, checked and written as the journal has it, but for the salt: `{"content":` + written + `,"salt":"…"` + rest +
    first or later + `}`, as it is the first version of its node or not. The content is None where a row is wrong, or has to be read by itself."""

    contents: list[Json | None]
    written: list[bytes]
    rests: list[bytes]
    first: Sequence[bytes]
    later: Sequence[bytes]


def told(table: Table, numbers: Sequence[int]) -> Told:
    """What these rows of a table of versions say."""
    contents, written = _written(table.of("content", numbers), len(numbers))
    rests = [b"" for _ in numbers]
    for name, check in (("source", _text), ("tags", _tags), ("text", _text)):
        values = table.of(name, numbers)
        if values is None:
            continue
        fields = _fields(name, values, check)
        contents = [
            None if field is None else content for content, field in zip(contents, fields, strict=True)
        ]
        rests = [rest + (field or b"") for rest, field in zip(rests, fields, strict=True)]
    triggers = table.of("trigger", numbers)
    later = [b',"trigger":"user_feedback"'] * len(numbers)
    if triggers is None:
        return Told(contents, written, rests, [b""] * len(numbers), later)
    fields = _fields("trigger", triggers, _trigger)
    contents = [None if field is None else content for content, field in zip(contents, fields, strict=True)]
    first = [field or b"" for field in fields]
    later = [
        field if given is not None else feedback
        for given, field, feedback in zip(triggers, first, later, strict=True)
    ]
    return Told(contents, written, rests, first, later)


def linked(
    table: Table, numbers: Sequence[int], salts: Callable[[int], list[bytes]]
) -> tuple[list[int], list[bytes | None], list[str | None]]:
    """What these rows of a table of links say beside their kind, ends and times: strengths, 0 for none; bodies as the journal has them, empty for nothing;
    and ids. The strength is -1, or the body None, where a row is wrong."""
    none: list[Any] = [None] * len(numbers)
    strengths, metadata, reasons, names = (
        table.of(name, numbers) or none for name in ("strength", "metadata", "reason", "id")
    )
    if strengths is not none:
        strengths = [
            0 if value is None else value if type(value) is int and 1 <= value <= 5 else -1
            for value in strengths
        ]
    said = _fields("metadata", metadata, _metadata)
    bodies = [
        None if field is None or reason is None else field + reason
        for field, reason in zip(said, _fields("reason", reasons, _text), strict=True)
    ]
    written = [
        b'{%b,"salt":"%b"}' % (body[1:], salt) if body else body
        for body, salt in zip(bodies, salts(len(bodies)), strict=True)
    ]
    if names is not none and not _are_plain(names):
        wrong = {at for at, name in enumerate(names) if not (name is None or _checked(_name, name))}
        written = [None if at in wrong else body for at, body in enumerate(written)] if wrong else written
    return ([0] * len(numbers) if strengths is none else strengths), written, names


def _are_plain(names: list[Any]) -> bool:
    """Whether names are printable ASCII without spaces, each of them."""
    if set(map(type, names)) != {str} or "" in names:
        return False
    every = "".join(names)
    return every.isascii() and every.isprintable() and " " not in every


def _written(given: list[Any] | None, count: int) -> tuple[list[Json | None], list[bytes]]:
    """Contents, and each as the journal has it."""
    if given is not None and (read := _canonical(given)) is not None:
        return read
    contents: list[Json | None] = [{} for _ in range(count)] if given is None else _contents(given)
    try:
        return contents, [orjson.dumps(content, None, orjson.OPT_SORT_KEYS) for content in contents]
    except (TypeError, ValueError, RecursionError):
        return [None] * count, [b""] * count


def _canonical(values: list[Any]) -> tuple[list[Json | None], list[bytes]] | None:
    """The contents that JSON texts are, and their bytes, where each is an object without another in it, written as the journal has it. None where one is
    not. They are read together, in a third of the time.

    What is written again as it was read lost nothing, a long number neither. There are as many braces as texts and one at the beginning of each, and as
    many objects: so no text is a part of one, or more than one.
    """
    if set(map(type, values)) != {str} or {value[:1] for value in values} != {"{"}:
        return None
    every = ",".join(values)
    if every.count("{") != len(values):
        return None
    try:
        whole = b"[%b]" % every.encode()
        found = orjson.loads(whole)
        if (
            len(found) != len(values)
            or set(map(type, found)) != {dict}
            or orjson.dumps(found, None, orjson.OPT_SORT_KEYS) != whole
        ):
            return None
    except (ValueError, RecursionError):
        return None
    return found, list(map(str.encode, values))


def _contents(values: list[Any]) -> list[Json | None]:
    """The contents that dicts or JSON texts are; None for what is no JSON object."""
    if set(map(type, values)) == {str}:
        with suppress(ValueError, RecursionError):
            found = list(map(orjson.loads, values))
            raw = "".join(values).encode()
            if set(map(type, found)) == {dict} and not (
                may_hold_long_number(raw) or may_lack_a_name(raw, found)
            ):
                return found
    return [_checked(object_of, value) for value in values]


def _fields(name: str, values: list[Any], check: Any) -> list[bytes | None]:
    """A field of bodies as the journal has it: empty where it is absent, None where it is wrong."""
    if check is _text and set(map(type, values)) == {str} and "".join(values).isascii():
        prefix = b',"%b":' % name.encode()
        return [prefix + orjson.dumps(value) for value in values]
    found = [_checked(check, value) for value in values]
    return [
        None if value is None else b"" if value is _ABSENT else b',"%b":%b' % (name.encode(), dumps(value))
        for value in found
    ]


_ABSENT = object()


def _checked(check: Any, value: Any) -> Any:
    try:
        return check(value)
    except GraphStoreError:
        return None


def _text(value: Any) -> Any:
    return _ABSENT if value is None else text_of("text", value, empty=True)


def _metadata(value: Any) -> Any:
    return (object_of(value) if value is not None else None) or _ABSENT


def _name(value: Any) -> str:
    return printable("link id", text_of("link id", value))


def _tags(value: Any) -> Any:
    given = None if value is None else listed(value)
    return tags_of(given) if given else _ABSENT


def _trigger(value: Any) -> Any:
    return _ABSENT if (value or "initial") == "initial" else text_of("trigger", value)


def listed(tags: Any) -> Any:
    """Tags as a list, where they are several."""
    return tags if isinstance(tags, str) or not isinstance(tags, Iterable) else list(tags)


def object_of(value: Any) -> Any:
    """The JSON object that a dict, a JSON text or None (an empty one) is. Raises InvalidError."""
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
