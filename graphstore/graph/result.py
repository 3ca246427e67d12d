"""The result of a query: values read once from the engine, as a table that can be shown and converted."""

from __future__ import annotations

import importlib
from base64 import b64encode
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import UUID

import orjson
from pydantic import BaseModel

from graphstore.errors import NotFoundError, QueryError
from graphstore.values.inputs import names
from graphstore.values.painter import painter
from graphstore.values.period import instant, iso, when
from graphstore.values.shared_path import SharedPath

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars
    import pyarrow

OPEN_END = datetime.max
"""The value of an open end in the tables."""
SHOWN = 20
"""The number of rows that a Result shows of itself."""


class Entity(dict[str, Any]):
    """A node or a relationship as a dict of its properties and `_label`. Attributes hold its place in the engine and the places of its ends."""

    __slots__ = ("at", "source", "target")
    at: tuple[int, int]
    source: tuple[int, int] | None
    target: tuple[int, int] | None

    def __hash__(self) -> int:  # type: ignore[override]
        """Hash by label and id, so that nodes can be in a set."""
        return hash((self.get("_label"), self.get("id")))


def _address(internal: Mapping[str, int]) -> tuple[int, int]:
    return internal["table"], internal["offset"]


_SHOUTED = frozenset({"_ID", "_NODES"})
_INTERNAL = frozenset({"_ID", "_LABEL", "_SRC", "_DST", "_NODES", "_RELS"})


def _lowered(key: str) -> str:
    """Return a key as kuzu writes it: ladybug writes internal keys in capitals."""
    return key.lower() if key in _INTERNAL else key


class ValueReader:
    """Converts the engine's values to those that callers get. `properties` returns the columns of a label: in a match of several labels the engine gives every
    row the columns of all."""

    def __init__(self, properties: Callable[[str], Container[str]]) -> None:
        self._properties = properties

    def value(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return None if value == OPEN_END else value.replace(tzinfo=UTC)
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if (
            isinstance(value, Decimal)
            and value == value.to_integral_value()
            and value.as_tuple().exponent == 0
        ):
            return int(value)
        return value

    def _mapping(self, value: dict[str, Any]) -> Any:
        if _SHOUTED & value.keys():
            value = {_lowered(key): item for key, item in value.items()}
        if "_nodes" in value and "_rels" in value:
            nodes = [self.value(x) for x in value["_nodes"]]
            if nodes and not any(nodes):
                return None  # an OPTIONAL MATCH found no path
            return {"_nodes": nodes, "_rels": [self.value(x) for x in value["_rels"]]}
        if "_id" not in value or "_label" not in value:
            return {key: self.value(item) for key, item in value.items()}
        if value["_id"] is None:
            return None  # an OPTIONAL MATCH found nothing, in a list or a path
        label = value["_label"]
        known = self._properties(label)
        entity = Entity(_label=label)
        for key, item in value.items():
            if key in known:
                entity[key] = self.value(item)
        entity.at = _address(value["_id"])
        entity.source = _address(value["_src"]) if "_src" in value else None
        entity.target = _address(value["_dst"]) if "_dst" in value else None
        return entity


# ------------------------------------------------------------------------- values from Arrow, also what Python cannot hold


def needs_arrow(kind: str) -> bool:
    """Return True if values of a type must be read by Arrow. Dates and instants that Python cannot hold end the process when the engine converts them to rows;
    keys of maps may be lists."""
    return any(word in kind for word in ("DATE", "TIMESTAMP", "MAP("))


def rows_of(table: pyarrow.Table, types: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the rows of an Arrow table as the engine would return them."""
    columns = [
        [value for chunk in column.chunks for value in arrow_values(chunk)] for column in table.columns
    ]
    for at, kind in enumerate(types):
        if kind == "UUID":
            columns[at] = [UUID(value) if isinstance(value, str) else value for value in columns[at]]
    return list(zip(*columns, strict=True))


def arrow_values(column: pyarrow.Array) -> list[Any]:
    """Return the values of an Arrow column as in the engine's rows. Dates, instants and durations that Python cannot hold are text."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date32(kind):
        return _each(column.cast(pa.int32()), _date)
    if pa.types.is_timestamp(kind):
        size = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[kind.unit]
        if kind.unit == "ns":
            column = column.cast(pa.timestamp("us"), safe=False)
        return _each(column.cast(pa.int64()), lambda number: _instant(number * size))
    if pa.types.is_duration(kind):
        return _each(column.cast(pa.int64()), _span)
    if pa.types.is_map(kind):
        pairs = list(zip(arrow_values(column.keys), arrow_values(column.items), strict=True))
        return [
            {_key(key): value for key, value in pairs[at:to]} if there else None
            for (at, to), there in zip(pairwise(column.offsets.to_pylist()), _there(column), strict=True)
        ]
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return _lists(column)
    if pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        fields = [_spread(arrow_values(column.field(at)), column) for at in range(kind.num_fields)]
        return [
            dict(zip(names, values, strict=True)) if there else None
            for there, *values in zip(_there(column), *fields, strict=True)
        ]
    if pa.types.is_union(kind):
        members = [arrow_values(column.field(at)) for at in range(kind.num_fields)]
        return [
            members[code][at]
            for code, at in zip(column.type_codes.to_pylist(), column.offsets.to_pylist(), strict=True)
        ]
    values: list[Any] = column.to_pylist()
    return values


def _spread(values: list[Any], of: pyarrow.Array) -> list[Any]:
    """Return one value for each struct of an array. The engine omits the field values of structs that are null."""
    if len(values) == len(of):
        return values
    rest = iter(values)
    return [next(rest) if there else None for there in _there(of)]


def _lists(column: pyarrow.Array) -> list[Any]:
    import pyarrow.compute as pc

    values, found, at = arrow_values(column.flatten()), [], 0
    for length in pc.list_value_length(column).to_pylist():
        found.append(None if length is None else values[at : at + length])
        at += length or 0
    return found


def _there(column: pyarrow.Array) -> list[bool]:
    found: list[bool] = column.is_valid().to_pylist()
    return found


def _each(numbers: pyarrow.Array, of: Callable[[int], Any]) -> list[Any]:
    return [None if number is None else of(number) for number in numbers.to_pylist()]


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


_FIRST_DAY, _LAST_DAY = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000


def _date(days: int) -> Any:
    if _FIRST_DAY <= days <= _LAST_DAY:
        return date.fromordinal(days + 719_163)
    return _far(days)


def _instant(microseconds: int) -> Any:
    days, rest = divmod(microseconds, _DAY)
    if _FIRST_DAY <= days <= _LAST_DAY:
        return _EPOCH + timedelta(days, 0, rest)
    return f"{_far(days)}T{(datetime.min + timedelta(microseconds=rest)).time().isoformat()}Z"


def _far(days: int) -> str:
    import numpy as np

    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    return f"{int(year):0{5 if year.startswith('-') else 4}}-{month}-{day}"


def _span(microseconds: int) -> Any:
    try:
        return timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} microseconds"


def fits(rows: pyarrow.Table) -> bool:
    """Return True if Python can hold all instants of a table from `arrow_out`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in rows.columns:
        if pa.types.is_timestamp(column.type):
            ends = pc.min_max(column.cast(pa.int64())).as_py()
            if ends["min"] is not None and not (
                _FIRST_DAY * _DAY <= ends["min"] and ends["max"] < (_LAST_DAY + 1) * _DAY
            ):
                return False
    return True


# ------------------------------------------------------------------------------------------------- values as JSON has them

_AS_THEY_ARE = frozenset({"STRING", "BOOL", "SERIAL", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8"})  # fmt: skip


def legible(value: Any, ends: Mapping[tuple[int, int], str] = MappingProxyType({})) -> Any:
    """Convert a value of a row to a value of JSON, the same at every interface. Types without a JSON form become text; a duration becomes its seconds.

    NaN, Infinity, -Infinity, whole numbers beyond 64 bits and decimals are text; bytes are base64; keys of maps are text. `ends` maps places of nodes to
    ids: a relationship between two of these gets `_source` and `_target`.
    """
    if value is None or value is True or value is False or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return (
            value if isfinite(value) else "NaN" if value != value else f"{'-' if value < 0 else ''}Infinity"
        )
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        shown = {_legible_key(key): legible(item, ends) for key, item in value.items()}
        if isinstance(value, Entity) and value.source is not None and value.target is not None:
            both = ends.get(value.source), ends.get(value.target)
            if None not in both:
                shown["_source"], shown["_target"] = both
        return shown
    if isinstance(value, list | tuple | set | frozenset | SharedPath):
        return [legible(item, ends) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, BaseModel):
        return legible(value.__dict__, ends)
    return str(value)


def _legible_key(key: Any) -> str:
    found = legible(key)
    return found if isinstance(found, str) else orjson.dumps(found).decode()


class Result:
    """The rows of a query: an iterable of dicts that shows itself as a table. It holds its own values, so it remains
    usable after the store is closed."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        types: Sequence[str] | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.columns = distinct(columns)
        """The names of the columns, in order; the second of two equal names ends in `_2`."""
        self.warnings = list(warnings)
        """What the reader should know about these rows, in sentences."""
        self._types = list(types or [""] * len(self.columns))
        self._tuples: list[tuple[Any, ...]] | None = [tuple(row) for row in rows]
        self._arrow: pyarrow.Table | None = None

    @classmethod
    def of_arrow(cls, table: pyarrow.Table, warnings: Sequence[str] = ()) -> Self:
        """Return the Result of an Arrow table; rows are made on demand."""
        self = cls(table.column_names, (), warnings=warnings)
        self._tuples, self._arrow = None, table
        return self

    def tuples(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples in the order of `columns`."""
        if self._tuples is None:
            assert self._arrow is not None
            lists = [column.to_pylist() for column in self._arrow.columns]
            self._tuples = list(zip(*lists, strict=True))
        return self._tuples

    def rows(self) -> list[dict[str, Any]]:
        """Return every row as a dict."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.tuples()]

    def legible(self) -> list[dict[str, Any]]:
        """Return every row as a dict of JSON values, as the function `legible` converts them."""
        if self._tuples is not None and all(kind in _AS_THEY_ARE for kind in self._types):
            return self.rows()
        ends = self._ends()
        return [{name: legible(value, ends) for name, value in row.items()} for row in self.rows()]

    def _ends(self) -> dict[tuple[int, int], str]:
        """Return the ids of the nodes among the values, by their places in the engine."""
        return {
            each.at: each["id"]
            for each in _entities(self.tuples())
            if each.source is None and isinstance(each.get("id"), str)
        }

    def single(self) -> dict[str, Any]:
        """Return the only row. Raises NotFoundError when there is none, QueryError when there are more."""
        if len(self) == 0:
            raise NotFoundError("the query found no row, and exactly one was asked for.")
        if len(self) > 1:
            raise QueryError(
                f"the query found {len(self)} rows, and exactly one was asked for. Add a LIMIT or a filter."
            )
        return self.rows()[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return (
            self._arrow.num_rows if self._tuples is None and self._arrow is not None else len(self.tuples())
        )

    def steps(
        self, aggregate: str, *, by: str | Sequence[str] = (), axis: Literal["valid", "tx"] = "valid"
    ) -> Steps:
        """Return an aggregate of the rows at each instant of an axis: `count(*)`, or `count`, `sum`, `avg`, `min` or `max` of a column.

        The rows must have their periods in the columns `valid_from` and `valid_to` (`tx_from`, `tx_to`), as those of `history_table`. The answer has a row
        for each stretch with a constant value, for each group of the columns `by`; where nothing holds there is no row. Raises InvalidError for an unknown
        aggregate or column.
        """
        from graphstore.graph import step_functions

        return Steps.of_arrow(step_functions.steps(self.to_arrow(), aggregate, names("by", by), axis))

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow Table: nodes and relationships as structs, instants aware, open ends null."""
        import pyarrow as pa

        if self._arrow is None:
            columns = list(zip(*self.tuples(), strict=True)) or [()] * len(self.columns)
            arrays = [
                _arrow_column(list(column), kind) for column, kind in zip(columns, self._types, strict=True)
            ]
            self._arrow = pa.table(arrays, names=self.columns)
        return self._arrow

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of the Arrow C interface, by which pandas, polars, DuckDB and others read a Result directly."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        """Return True if the other has the same columns and rows, in the same order."""
        if not isinstance(other, Result):
            return NotImplemented
        return self.columns == other.columns and self.tuples() == other.tuples()

    __hash__ = None  # type: ignore[assignment]  # two that are equal now may have other warnings

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame. Needs the extra `graphstore[pandas]`."""
        _need("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a polars DataFrame. Needs the extra `graphstore[polars]`."""
        frame: polars.DataFrame = _need("polars").from_arrow(self.to_arrow())
        return frame

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return the nodes and relationships among the values as a MultiDiGraph: nodes by `id`, edges keyed by their `id`.

        An end that is in no row itself is named by its place, `table:offset`; a query should therefore return both ends.
        """
        import networkx as nx

        graph = nx.MultiDiGraph()
        found = list(_entities(self.tuples()))
        names = {entity.at: entity.get("id", _place(entity.at)) for entity in found if entity.source is None}
        for entity in found:
            if entity.source is None:
                graph.add_node(names[entity.at], **entity)
        for entity in found:
            if entity.source is not None and entity.target is not None:
                source = names.get(entity.source, _place(entity.source))
                target = names.get(entity.target, _place(entity.target))
                graph.add_edge(source, target, key=entity.get("id") or _place(entity.at), **entity)
        return graph

    def __repr__(self) -> str:
        return painter().table_plain(self.columns, self._texts(), len(self), self.warnings)

    def _repr_html_(self) -> str:
        table, ends = (
            painter().table_html(self.columns, self._texts(), len(self), self.warnings),
            self._ends(),
        )
        if not ends:
            return table
        found = list(_entities(self.tuples()))
        nodes = [each for each in found if each.source is None]
        links = [
            (ends[each.source], each, ends[each.target])
            for each in found
            if each.source in ends and each.target in ends
        ]
        return painter().graph_html(nodes, links, table)

    def _repr_markdown_(self) -> str:
        return painter().table_markdown(self.columns, self._texts(), len(self), self.warnings)

    def _texts(self) -> list[list[str]]:
        return [[_cell(value) for value in row] for row in self._head()]

    def _head(self) -> list[tuple[Any, ...]]:
        return self.tuples()[:SHOWN]


class Steps(Result):
    """A step function of time: a row for each stretch with a constant value, with its group. Where nothing holds there is no row. A notebook draws it."""

    def _repr_html_(self) -> str:
        lines: dict[str, list[tuple[Any, Any, Any]]] = {}
        for *group, begin, end, value in self.tuples():
            if value is not None:
                lines.setdefault(", ".join(map(str, group)), []).append((begin, end, value))
        return painter().steps_html(self.columns[-1], lines, super()._repr_html_())


def distinct(columns: Sequence[str]) -> list[str]:
    """Return the column names with a number added to repeated ones: a dict of a row would lose a column whose name is repeated."""
    if len(set(columns)) == len(columns):
        return list(columns)
    found: list[str] = []
    for name in columns:
        number, other = 2, name
        while other in found or (other != name and other in columns):
            number, other = number + 1, f"{name}_{number}"
        found.append(other)
    return found


def _arrow_column(values: list[Any], kind: str) -> pyarrow.Array:
    import pyarrow as pa

    from graphstore.graph import arrow_types

    known = arrow_types.arrow_type(kind)
    try:
        if known is not None and (kind == "UUID" or arrow_types.is_nested(known)):
            values = [arrow_types.fitted(value, known) for value in values]
        return pa.array(values, known)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ArithmeticError, AttributeError):  # fmt: skip
        return pa.array(
            [None if value is None else _cell(value, 0, lambda at: iso(instant(at))) for value in values],
            pa.string(),
        )


def _entities(values: Any) -> Iterator[Entity]:
    for value in values:
        if isinstance(value, Entity):
            yield value
        elif isinstance(value, dict):
            yield from _entities(value.values())
        elif isinstance(value, list | tuple):
            yield from _entities(value)


def _place(at: tuple[int, int]) -> str:
    return f"{at[0]}:{at[1]}"


def _cell(value: Any, limit: int = 60, at: Callable[[datetime], str] = when) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        shown = at(value)
    elif isinstance(value, dict):
        label = value.get("_label")
        inner = ", ".join(
            f"{key}: {_cell(item, 0, at)}"
            for key, item in value.items()
            if key != "_label" and item is not None
        )
        shown = f"{label} {{{inner}}}" if label else f"{{{inner}}}"
    elif isinstance(value, list | tuple):
        shown = "[" + ", ".join(_cell(item, 0, at) for item in value) + "]"
    else:
        shown = str(value)
    shown = shown.replace("\r", " ").replace("\n", " ")
    return shown if not limit or len(shown) <= limit else shown[: limit - 1] + "…"


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise QueryError(
            f"{module} is not installed. Install it with: pip install 'graphstore[{module}]'"
        ) from None
