"""Build the columns of the graph tables from rows and bodies, for the tables and for graphs of views.

Columns are built from buffers, because Arrow imports pandas, if installed, before it converts the first Python value or list.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.graph.properties import FieldKind
from graphstore.graph.texts import LINK
from graphstore.ledger.chain import dumps
from graphstore.values.event_fields import BODY
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN
from graphstore.values.text import text_of_body

if TYPE_CHECKING:
    from graphstore.read.points import Point

_BATCH = 8_192
_FEW = 64  # texts: shorter columns are not checked for being all equal
_MOST = (1 << 31) - 1  # bytes of a text column with 32-bit offsets
_INSTANTS = frozenset(
    {"tx", "told", "occurred_at", "first_seen", "last_seen", "valid_from", "valid_to", "tx_from", "tx_to"}
)
_NUMBERS = frozenset({"number", "strength", "count"})


def whole_bodies(
    point: Point, bodies: Sequence[bytes | None], checksums: Sequence[int | None], what: Callable[[int], str]
) -> list[Json]:
    """Parse bodies. Raises DamageError for a body that differs from what was written; `what` names its owner, by its index."""
    for at, (body, checksum) in enumerate(zip(bodies, checksums, strict=True)):
        if body is None or crc32(body) != checksum:
            point.content(body, checksum, what(at))
    return parsed(bodies)


def description_columns(bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """Return the columns of versions that come from their bodies."""
    return {
        "content": encoded_texts([dumps(body["content"]) if "content" in body else None for body in bodies]),
        "text": texts(map(text_of_body, bodies)),
        "tags": text_lists([body.get("tags") or () for body in bodies]),
        "trigger": texts([body.get("trigger", "initial") for body in bodies]),
        "source": texts([body.get("source") for body in bodies]),
    }


def event_columns(types: Sequence[str], bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """Return the columns of events of these types, except id, type and instants."""
    columns = {
        field.name: texts(body.get(field.name, field.absent) for body in bodies)
        for field in BODY
        if field.kind == "text"
    }
    columns["metadata"] = texts(json_text(body.get("metadata")) for body in bodies)
    columns["authorized"] = truths(list(map(authorized_of, types, bodies)))
    return {field.name: columns[field.name] for field in BODY}


def link_columns(bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """Return the columns of links that come from their bodies."""
    return {
        "reason": texts([body.get("reason") for body in bodies]),
        "metadata": texts([json_text(body.get("metadata")) for body in bodies]),
    }


def columns_of(rows: Sequence[Any], model: Any) -> dict[str, list[Any]]:
    """Return the columns of rows, which are tuples of a model, by field."""
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in model._fields)
    return dict(zip(model._fields, columns, strict=True))


def columns_by_name(columns: Mapping[str, Sequence[Any]]) -> dict[str, pa.Array]:
    """Return columns with their types by name. With `told` also `remainder`: True if a later write cut the row from an earlier statement."""
    found = {name: _column(name, values) for name, values in columns.items()}
    return {**found, "remainder": pc.less(found["told"], found["tx_from"])} if "told" in found else found


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    if name in _INSTANTS:
        return instants(values)
    if name in _NUMBERS:
        return numbers(values)
    return truths(values) if name == "history" else texts(values)


def arrow_out(rows: pa.Table) -> pa.Table:
    """Return the table with aware instants, and null for open ends."""
    aware, last = pa.timestamp("us", tz="UTC"), instants((OPEN,))[0]
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            column = rows.column(at).cast(pa.timestamp("us"))
            column = pc.if_else(pc.equal(column, last), pa.nulls(1, pa.timestamp("us"))[0], column)
            rows = rows.set_column(at, pa.field(field.name, aware), column.cast(aware))
    return rows


# --------------------------------------------------------------------------- tables of rows and bodies

_OF_BODIES = frozenset({"word", "data", "body", "checksum", "place", "place_body", "place_checksum"})


def table_of(label: str, own: Mapping[str, Sequence[Any]], bodies: Sequence[Json]) -> pa.Table:
    """Return the rows of the table of a label, or of links, from the columns in `own` and from the bodies."""
    return pa.table({**columns_by_name(own), **_said(label, own, bodies)})


def as_table(label: str, columns: Mapping[str, list[Any]]) -> pa.Table:
    """Return rows of the history. `columns`: those of the table's statement, with checked bodies."""
    own = {name: values for name, values in columns.items() if name not in _OF_BODIES}
    return table_of(label, own, _bodies_of_history(label, columns))


def tombstone(word: str) -> Json:
    """Return the tombstone: what replaces the body of something forgotten."""
    return {"content": {}, "trigger": word, "description": f"[{word}]", "origin": word}


def event_tombstone(word: str, place: Json) -> Json:
    """Return the tombstone of a forgotten event. `place`: its place in its trace."""
    return {**tombstone(word), "authorized": None, **place}


def _bodies_of_history(label: str, columns: Mapping[str, list[Any]]) -> list[Json]:
    """Parse the bodies of rows of the history, with tombstones for what was forgotten."""
    if label == "Op":
        different = list(dict.fromkeys(columns["data"]))  # operations of a transaction share its reason
        known = dict(zip(different, parsed(different), strict=True))
        return [known[data] for data in columns["data"]]
    bodies = parsed(columns["data"]) if "data" in columns else []
    if label == "Version":
        return [body or tombstone(word) for body, word in zip(bodies, columns["word"], strict=True)]
    if label == "Event":
        places = [place.get("place", {}) for place in parsed(columns["place"])]
        rows = zip(bodies, columns["word"], places, strict=True)
        return [body or event_tombstone(word, place) for body, word, place in rows]
    return bodies


def _said(label: str, own: Mapping[str, Sequence[Any]], bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """Return the columns of a label that come from the bodies of its rows."""
    match label:
        case "Version" | "Absent":
            return description_columns(bodies)
        case "Event":
            return event_columns(own["type"], bodies)
        case "Op":
            return {"reason": texts([body.get("reason") for body in bodies])}
        case _:
            return link_columns(bodies) if label == LINK else {}


# --------------------------------------------------------------------------- columns of a type


def field_column(kind: FieldKind, values: list[Any]) -> pa.Array:
    """Return the column of a content field whose values are all of a kind; for `json`, of JSON text."""
    if kind == "number":
        values = [None if value is None else float(value) for value in values]
    elif kind == "json":
        values = [None if value is None else dumps(value).decode() for value in values]
    return _MAKES[kind](values)


def json_text(value: Any) -> str:
    """Return a field of a body as JSON text; an absent one as an empty object."""
    return dumps(value).decode() if value else "{}"


def texts(values: Iterable[str | None]) -> pa.Array:
    """Return a column of text."""
    values = values if isinstance(values, list) else list(values)
    if len(values) > _FEW and values.count(values[0]) == len(values):
        return texts(values[:1]).take(numbers(array("i", bytes(4 * len(values)))))
    there = _there(values)
    known = [value or "" for value in values]
    data = "".join(known).encode()
    lengths = _lengths(known)
    if len(data) != lengths.sum():
        lengths = _lengths([value.encode() for value in known])
    return _strings(data, lengths, there)


def encoded_texts(values: list[bytes | None]) -> pa.Array:
    """Return a column of text from UTF-8."""
    known = [value or b"" for value in values]
    return _strings(b"".join(known), _lengths(known), _there(values))


def text_lists(values: Sequence[Sequence[str]]) -> pa.Array:
    """Return a column of lists of texts."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    inner = texts(list(chain.from_iterable(values)))
    return pa.ListArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), inner
    )


def numbers(values: Any) -> pa.Array:
    """Return a column of whole numbers; arrays and numpy columns are used without a copy."""
    if isinstance(values, (array, memoryview)) or hasattr(values, "dtype"):
        kind = pa.int64() if values.itemsize == 8 else pa.int32()
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]).cast(pa.int64())
    return _fixed(pa.int64(), "q", values)


def fractions(values: Sequence[float | None]) -> pa.Array:
    """Return a column of floats."""
    return _fixed(pa.float64(), "d", values)


def truths(values: Sequence[bool | None]) -> pa.Array:
    """Return a column of booleans."""
    column = _bytes(bytes(map(bool, values))).cast(pa.bool_())
    there = _there(values)
    if there is None:
        return column
    return pa.Array.from_buffers(pa.bool_(), len(values), [there, column.buffers()[1]])


_MAKES: dict[FieldKind, Callable[[list[Any]], pa.Array]] = {
    "text": texts,
    "json": texts,
    "truth": truths,
    "whole": numbers,
    "number": fractions,
}


def instants(values: Any) -> pa.Array:
    """Return a column of instants."""
    return numbers(values).cast(pa.timestamp("us"))


def names_of(values: Any) -> pa.Array:
    """Return a column of numbers as text."""
    return numbers(values).cast(pa.string())


def _there(values: Sequence[Any]) -> pa.Buffer | None:
    """Return the validity bits of values: which are not None; None if all are valid."""
    if None not in values:
        return None
    return _bytes(bytes(value is not None for value in values)).cast(pa.bool_()).buffers()[1]


def _bytes(values: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)])


def _fixed(kind: pa.DataType, code: str, values: Sequence[float | None]) -> pa.Array:
    there = _there(values)
    found: Any = array(code, [0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(found), [there, pa.py_buffer(found)])


def _strings(data: bytes, lengths: Any, there: pa.Buffer | None) -> pa.Array:
    import numpy as np

    large = len(data) > _MOST
    offsets = np.zeros(len(lengths) + 1, np.int64 if large else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    kind = pa.large_string() if large else pa.string()
    return pa.Array.from_buffers(kind, len(lengths), [there, pa.py_buffer(offsets), pa.py_buffer(data)])


def _lengths(values: Sequence[str] | Sequence[bytes]) -> Any:
    import numpy as np

    return np.fromiter(map(len, values), np.int64, len(values))


# ------------------------------------------------------------------------------------- bodies in the journal


def parsed(bodies: Sequence[bytes | None]) -> list[Json]:
    """Parse bodies together, at a quarter of the cost of single ones; None and b"" become empty objects."""
    found: list[Json] = []
    for lo in range(0, len(bodies), _BATCH):
        found += orjson.loads(b"[%b]" % b",".join([body or b"{}" for body in bodies[lo : lo + _BATCH]]))
    return found
