"""Columns of the graph tables, made from the index and the bodies in the journal: what the tables and a view's graph share.

Columns are made of buffers: Arrow loads pandas, where it is there, before it converts the first Python value or list.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Raw
from graphstore.core.journal.line import dumps
from graphstore.values.event_fields import BODY
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant
from graphstore.values.text import own_statements, text_of_body

_BATCH = 8_192
_APART = 16  # so many places of a column are read for one that is wanted
_FEW = 64  # texts that are not looked at first for being one and the same
_MOST = (1 << 31) - 1  # bytes of a column of text
_INSTANT = pa.timestamp("us", tz="UTC")
_NAMES = ("id", "kind", "key", "scope", "number", "content", "text", "tags", "trigger", "source", "author")
_CONTENT = b'{"content":{'
_SALT = b',"salt":"'

Place = tuple[int, int]
Column = Any  # of numbers of the index
Numbers = Any  # a sequence of them, or what numpy has


def description_columns(bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """The columns of a version beside its content and its periods."""
    return {"text": texts(map(text_of_body, bodies)), **_circumstances(bodies)}


def _circumstances(bodies: Sequence[Json]) -> dict[str, pa.Array]:
    return {
        "tags": text_lists([body.get("tags") or () for body in bodies]),
        "trigger": texts([body.get("trigger", "initial") for body in bodies]),
        "source": texts([body.get("source") for body in bodies]),
    }


def version_columns(index: Index, raw: Raw, versions: Numbers) -> dict[str, pa.Array]:
    """The content of versions as JSON text, and their columns beside it and their periods."""
    places = zip(picked(index.v_pos, versions).tolist(), picked(index.v_len, versions).tolist(), strict=True)
    bodies = [raw(pos, length) if length else b"" for pos, length in places]
    return body_columns(bodies, lambda at: index.tombstone(index.v_ent[versions[at]]))


def body_columns(
    bodies: Sequence[bytes], tombstone: Callable[[int], Json] = lambda _: {}
) -> dict[str, pa.Array]:
    """The same of their bodies. `tombstone`: what stands in place of an empty one, by its place among them."""
    contents, rests = _split(bodies)
    for at, body in enumerate(bodies):
        if not body:
            rests[at] = tombstone(at)
    return {
        "content": encoded_texts(contents),
        "text": texts(_texts_of(contents, rests)),
        **_circumstances(rests),
    }


def event_columns(types: Sequence[str], bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """The columns of events of these types beside their id, type and instants."""
    columns = {
        field.name: texts(body.get(field.name, field.absent) for body in bodies)
        for field in BODY
        if field.kind == "text"
    }
    columns["metadata"] = texts(json_text(body.get("metadata")) for body in bodies)
    columns["authorized"] = truths(list(map(authorized_of, types, bodies)))
    return {field.name: columns[field.name] for field in BODY}


def end_columns(index: Index, links: Sequence[int]) -> dict[str, pa.Array]:
    """The ids of the two ends of each link."""
    return {
        "source": texts([index.names[index.l_src[link]] for link in links]),
        "target": texts([index.names[index.l_tgt[link]] for link in links]),
    }


def claim_columns(
    index: Index, bodies: Sequence[Json], links: Sequence[int], claims: Sequence[int]
) -> dict[str, pa.Array]:
    """The columns of a link: its name, kind and attributes."""
    return {
        "id": texts([index.l_name[link] for link in links]),
        "kind": texts([index.l_kind[link] for link in links]),
        "reason": texts([body.get("reason") for body in bodies]),
        "strength": numbers([index.c_strength[claim] or None for claim in claims]),
        "confidence": texts(["inferred" if index.c_inferred[claim] else "explicit" for claim in claims]),
        "created_by": texts([index.c_by[claim] for claim in claims]),
        "metadata": texts([json_text(body.get("metadata")) for body in bodies]),
    }


def told_columns(index: Index, told_by: Numbers, recorded: Numbers) -> dict[str, pa.Array]:
    """Who said what rows say first, and when. `told_by`: the operation of each, -1 where none is known; `recorded`: when each row was."""
    import numpy as np

    ops, since = np.asarray(told_by, np.int64), np.asarray(recorded, np.int64)
    known, told = ops >= 0, since.copy()
    told[known] = picked(index.o_tx, ops[known])
    authors = index.o_author
    return {
        "author": texts([authors[op] if op >= 0 else None for op in ops.tolist()]),
        "told": instants(told),
        "remainder": _bytes((told < since).tobytes()).cast(pa.bool_()),
    }


def json_text(value: Any) -> str:
    """A body's field as JSON text; an absent one is an empty object."""
    return dumps(value).decode() if value else "{}"


def texts(values: Iterable[str | None]) -> pa.Array:
    """A column of text."""
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
    """A column of text in UTF-8."""
    known = [value or b"" for value in values]
    return _strings(b"".join(known), _lengths(known), _there(values))


def text_lists(values: Sequence[Sequence[str]]) -> pa.Array:
    """A column of lists of texts."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    inner = texts(list(chain.from_iterable(values)))
    return pa.ListArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), inner
    )


def picked(column: Column, places: Any) -> Any:
    """What a column of the index has at some places, as numpy has it."""
    import numpy as np

    places = np.asarray(places, np.int64)
    if not len(places):
        return np.empty(0, np.int64)
    first, last = int(places.min()), int(places.max()) + 1
    if last - first > _APART * len(places):
        return np.fromiter(map(column.__getitem__, places.tolist()), np.int64, len(places))
    # a copy: an array that is looked into cannot grow
    return np.asarray(memoryview(column[first:last]))[places - first]


def numbers(values: Any) -> pa.Array:
    """A column of whole numbers; an array is taken as it is, and so is a column of numpy."""
    if isinstance(values, (array, memoryview)) or hasattr(values, "dtype"):
        kind = pa.int64() if values.itemsize == 8 else pa.int32()
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]).cast(pa.int64())
    return _fixed(pa.int64(), "q", values)


def fractions(values: Sequence[float | None]) -> pa.Array:
    """A column of numbers."""
    return _fixed(pa.float64(), "d", values)


def truths(values: Sequence[bool | None]) -> pa.Array:
    """A column of truth values."""
    column = _bytes(bytes(map(bool, values))).cast(pa.bool_())
    there = _there(values)
    if there is None:
        return column
    return pa.Array.from_buffers(pa.bool_(), len(values), [there, column.buffers()[1]])


def single(value: int) -> pa.Scalar:
    """A whole number, to compare a column with."""
    return numbers(array("q", (value,)))[0]


def instants(values: Any) -> pa.Array:
    """A column of instants."""
    return numbers(values).cast(pa.timestamp("us"))


def names_of(values: Any) -> pa.Array:
    """A column of numbers as text, null for -1."""
    column = numbers(values)
    return pc.if_else(pc.less(column, single(0)), pa.nulls(1, pa.string())[0], column.cast(pa.string()))


def _there(values: Sequence[Any]) -> pa.Buffer | None:
    """Which values are not None, as bits; None when all are."""
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


def read_bodies(raw: Raw, places: Sequence[Place]) -> list[Json]:
    """The bodies at places."""
    return parsed([raw(pos, length) if length else None for pos, length in places])


def parsed(bodies: Sequence[bytes | None]) -> list[Json]:
    """Parse bodies together, a quarter of the cost of one by one; what is None or empty is an empty object."""
    found: list[Json] = []
    for lo in range(0, len(bodies), _BATCH):
        found += orjson.loads(b"[%b]" % b",".join([body or b"{}" for body in bodies[lo : lo + _BATCH]]))
    return found


def _split(bodies: Sequence[bytes]) -> tuple[list[bytes | None], list[Json]]:
    """The content of each body as JSON text, and the rest of it but for the salt, parsed: one for all that are alike. What was forgotten is empty."""
    contents: list[bytes | None] = []
    rests: list[bytes] = []
    for body in bodies:
        # The keys of a body are sorted: content, salt, then texts and a list of texts. In canonical JSON a quote inside a
        # text has a backslash before it, so the last `,"salt":"` is the body's own, and before it lies the content.
        at = body.rfind(_SALT)
        if at > 0 and body.startswith(_CONTENT) and body[at - 1 : at] == b"}":
            contents.append(body[len(_CONTENT) - 1 : at])
            rests.append(body[body.find(b'"', at + len(_SALT)) + 1 :])
        else:
            parsed = orjson.loads(body or b'{"content":{}}')
            content = parsed.pop("content", None)
            parsed.pop("salt", None)
            contents.append(None if content is None else dumps(content))
            rests.append(dumps(parsed)[1:])
    alike: list[bytes] = list(dict.fromkeys(rests))
    known: dict[bytes, Json] = {}
    for lo in range(0, len(alike), _BATCH):
        batch = alike[lo : lo + _BATCH]
        parsed = orjson.loads(b"[%b]" % b",".join([b"{" + rest.removeprefix(b",") for rest in batch]))
        known.update(zip(batch, parsed, strict=True))
    return contents, [known[rest] for rest in rests]


def _texts_of(contents: Sequence[bytes | None], rests: Sequence[Json]) -> list[str | None]:
    """The text of each description: what `text_of_body` says."""
    found = [rest.get("text") for rest in rests]
    bare = [at for at, text in enumerate(found) if text is None and contents[at] is not None]
    for lo in range(0, len(bare), _BATCH):
        batch = bare[lo : lo + _BATCH]
        parsed = orjson.loads(b"[%b]" % b",".join([contents[at] or b"" for at in batch]))
        for at, statement in zip(batch, own_statements(parsed), strict=True):
            found[at] = statement
    return found


# --------------------------------------------------------------------------------------- what holds, as one table


def holding(
    starts: Column, stops: Column, recorded: Column, removed: Column, valid: Instant, tx: Instant
) -> pa.Array:
    """The rows with starts <= valid < stops and recorded <= tx < removed, in order."""
    # copies: an array that is looked into cannot grow; what is not in all of them is not committed
    columns = [numbers(values[:]) for values in (starts, stops, recorded, removed)]
    size = min(map(len, columns))
    begin, end, known, taken = (column.slice(0, size) for column in columns)
    here, at = single(valid), single(tx)
    return pc.indices_nonzero(
        pc.and_(
            pc.and_(pc.less_equal(begin, here), pc.greater(end, here)),
            pc.and_(pc.less_equal(known, at), pc.greater(taken, at)),
        )
    )


def shown_nodes(found: Mapping[str, pa.Array]) -> pa.Table:
    """The columns of nodes that stand as the table that a view gives: an open end is null."""
    end, last = found["valid_to"], instants((OPEN,))[0]
    return pa.table(
        {
            **{name: found[name] for name in _NAMES},
            "recorded_at": found["told"].cast(_INSTANT),
            "valid_from": found["valid_from"].cast(_INSTANT),
            "valid_to": pc.if_else(pc.equal(end, last), pa.nulls(1, end.type)[0], end).cast(_INSTANT),
            "tx_from": found["tx_from"].cast(_INSTANT),
            "tx_to": pa.nulls(len(end), _INSTANT),
        }
    )


class Kept:
    """Columns of things of the index by number, each made once: what a number stands for never changes once it is committed."""

    def __init__(self, make: Callable[[list[int]], pa.Table]) -> None:
        self._make = make
        self._place = array("i")  # in the table, by number; -1: not there
        self._table: pa.Table | None = None
        self._growing = threading.Lock()

    def of(self, wanted: pa.Array) -> pa.Table:
        """The columns of these numbers, in their order."""
        with self._growing:
            if len(wanted):
                top = pc.max(wanted).as_py() + 1
                self._place.extend([-1] * (top - len(self._place)))
            places = numbers(self._place[:]).take(wanted)
            missing = pc.unique(wanted.filter(pc.less(places, single(0)))).to_pylist()
            if missing or self._table is None:
                fresh = self._make(missing)
                first = 0 if self._table is None else len(self._table)
                parts = [fresh] if self._table is None else [self._table, fresh]
                self._table = pa.concat_tables(parts).combine_chunks()
                for at, one in enumerate(missing, first):
                    self._place[one] = at
                places = numbers(self._place[:]).take(wanted)
            table = self._table
        return table.take(places)


class NodeTables:
    """The nodes that stand at any coordinate as one table each, from the index and the journal. What was read for one is kept for the next."""

    def __init__(self, index: Index, raw: Raw) -> None:
        self._index, self._raw = index, raw
        self._things, self._versions, self._authors = self._empty()
        self.field_kinds: dict[tuple[str | None, int], Any] = {}
        """The types of the fields of a kind, by the rows there were."""

    def _empty(self) -> tuple[Kept, Kept, Kept]:
        return Kept(self._thing_columns), Kept(self._version_columns), Kept(self._author_column)

    def at(self, valid: Instant, tx: Instant) -> pa.Table:
        """One row for each. content is JSON text; an open end is null."""
        index = self._index
        rows = holding(index.r_from, index.r_to, index.r_tx, index.r_end, valid, tx)
        left_out = bytearray(index.is_event)
        for ent in index.gone:
            left_out[ent] = 1
        is_left_out = _bytes(bytes(left_out)).take(_at(index.r_ent, rows)).cast(pa.bool_())
        return shown_nodes(self.of(rows.filter(pc.invert(is_left_out))))

    def of(self, rows: pa.Array) -> dict[str, pa.Array]:
        """The columns of these rows of nodes; instants as they are in the index."""
        index = self._index
        ents, versions = _at(index.r_ent, rows), _at(index.r_ver, rows)
        things, described, authors = self._things, self._versions, self._authors
        committed = index.committed_rows
        if committed is not None and len(rows) and rows[-1].as_py() >= committed:
            things, described, authors = self._empty()  # of an open transaction, which may be cut back
        thing, version = things.of(ents), described.of(versions)
        ops, since = _at(index.v_op, versions), _at(index.r_tx, rows)
        told = pc.greater_equal(ops, single(0))
        said_by = pc.if_else(told, ops, single(0))
        authored = authors.of(said_by)["author"].combine_chunks()
        found = {
            **dict(zip(thing.column_names, thing.columns, strict=True)),
            "number": _at(index.v_num, versions),
            **dict(zip(version.column_names, version.columns, strict=True)),
            "author": pc.if_else(told, authored, pa.nulls(1, pa.string())[0]),
        }
        times = {
            "told": pc.if_else(told, _at(index.o_tx, said_by), since),
            "valid_from": _at(index.r_from, rows),
            "valid_to": _at(index.r_to, rows),
            "tx_from": since,
        }
        return found | {name: column.cast(pa.timestamp("us")) for name, column in times.items()}

    def _thing_columns(self, ents: list[int]) -> pa.Table:
        index = self._index
        return pa.table(
            {
                "id": texts([index.names[ent] for ent in ents]),
                "kind": texts([index.kind[ent] for ent in ents]),
                "key": texts([index.key[ent] for ent in ents]),
                "scope": texts([index.scope[ent] for ent in ents]),
            }
        )

    def _version_columns(self, versions: list[int]) -> pa.Table:
        return pa.table(version_columns(self._index, self._raw, versions))

    def _author_column(self, ops: list[int]) -> pa.Table:
        return pa.table({"author": texts([self._index.o_author[op] for op in ops])})


def _at(column: Column, places: pa.Array) -> pa.Array:
    return numbers(column[:]).take(places)
