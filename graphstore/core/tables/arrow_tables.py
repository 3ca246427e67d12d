"""Columns of the graph tables, made from the index and the bodies in the journal: what the tables and a view's graph share.

Columns are made of buffers: Arrow loads pandas, where it is there, before it converts the first Python value or list.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.core.index.index import Index
from graphstore.core.index.occurrences import Raw, tombstone
from graphstore.core.journal.line import dumps
from graphstore.values.event_fields import BODY
from graphstore.values.inputs import authorized_of
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant
from graphstore.values.text import text_of_body

_BATCH = 8_192
_FEW = 64  # texts that are not looked at first for being one and the same
_MOST = (1 << 31) - 1  # bytes of a column of text
_INSTANT = pa.timestamp("us", tz="UTC")
_NAMES = ("id", "kind", "key", "scope", "number", "content", "text", "tags", "trigger", "source", "author")
_CONTENT = b'{"content":{'
_SALT = b',"salt":"'

Place = tuple[int, int]
Column = Any  # of numbers of the index


def node_table(index: Index, nodes: Sequence[int]) -> pa.Table:
    """The rows of Node."""
    return pa.table(
        {
            "id": texts(index.names[ent] for ent in nodes),
            "kind": texts(index.kind[ent] for ent in nodes),
            "key": texts(index.key[ent] for ent in nodes),
            "scope": texts(index.scope[ent] for ent in nodes),
            "tx_from": instants([index.born[ent] for ent in nodes]),
        }
    )


def description_columns(bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """The columns of a version beside its content and its periods."""
    return {
        "text": texts(map(text_of_body, bodies)),
        "tags": text_lists([body.get("tags") or () for body in bodies]),
        "trigger": texts(body.get("trigger", "initial") for body in bodies),
        "source": texts(body.get("source") for body in bodies),
    }


def version_columns(index: Index, raw: Raw, versions: Sequence[int]) -> dict[str, pa.Array]:
    """The content of versions as JSON text, and their columns beside it and their periods."""
    contents, rests = read_contents(raw, [(index.v_pos[ver], index.v_len[ver]) for ver in versions])
    bodies = [rest or index.tombstone(index.v_ent[ver]) for ver, rest in zip(versions, rests, strict=True)]
    return {"content": contents, **description_columns(bodies)}


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


def event_table(index: Index, raw: Raw, events: Sequence[int], pending: set[int]) -> pa.Table:
    """The rows of Event. `pending`: rows closed by a transaction that is not committed, which are still open."""
    bodies = read_bodies(
        raw, [(index.v_pos[ver], index.v_len[ver]) for ver in (index.versions_of[ent][0] for ent in events)]
    )
    bodies = [body or tombstone(index, raw, ent) for ent, body in zip(events, bodies, strict=True)]
    types = [index.kind[ent] for ent in events]
    # an event recorded and taken back in one transaction held at no instant, but a link may name it
    firsts = [index.rows_of[ent][0] if index.rows_of[ent] else -1 for ent in events]
    lasts = [last_row(index, ent) for ent in events]
    closes = [-1 if row < 0 or row in pending else index.r_close[row] for row in lasts]
    ends = [
        index.born[ent] if row < 0 else index.r_end[row] if op >= 0 else OPEN
        for ent, row, op in zip(events, lasts, closes, strict=True)
    ]
    begun = [
        index.r_from[row] if row >= 0 else index.born[ent] for ent, row in zip(events, firsts, strict=True)
    ]
    return pa.table(
        {
            "id": texts([index.names[ent] for ent in events]),
            "type": texts(types),
            "occurred_at": instants(begun),
            **event_columns(types, bodies),
            "tx_from": instants([index.born[ent] for ent in events]),
            "tx_to": instants(ends),
            "opened_by": names_of([index.r_op[row] if row >= 0 else -1 for row in firsts]),
            "closed_by": names_of(closes),
        }
    )


def last_row(index: Index, ent: int) -> int:
    """The committed row of a thing that was written last, or -1."""
    committed = index.mark().rows
    return next((row for row in reversed(index.rows_of[ent]) if row < committed), -1)


def occurrence_table(index: Index, lo: int, hi: int) -> pa.Table:
    """The rows of Occurrence."""
    return pa.table(
        {
            "row": names_of(range(lo, hi)),
            "event_id": texts([index.names[ent] for ent in index.s_ent[lo:hi]]),
            "occurred_at": instants(index.s_at[lo:hi]),
            "tx_from": instants(index.s_tx[lo:hi]),
            "opened_by": names_of(index.s_op[lo:hi]),
        }
    )


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


def told_columns(
    index: Index, told_by: Sequence[int], recorded: Sequence[int], *, named: bool = True
) -> dict[str, pa.Array]:
    """Who said what rows say first, and when. `told_by`: the operation of each, -1 where none is known; `recorded`: when each row was;
    `named`: with the operation itself."""
    authors, instants_of = index.o_author, index.o_tx
    told = [instants_of[op] if op >= 0 else at for op, at in zip(told_by, recorded, strict=True)]
    return {
        "author": texts([authors[op] if op >= 0 else None for op in told_by]),
        "told": instants(told),
        **({"told_by": names_of(list(told_by))} if named else {}),
        "remainder": truths([first < at for first, at in zip(told, recorded, strict=True)]),
    }


def json_text(value: Any) -> str:
    """A body's field as JSON text; an absent one is an empty object."""
    return dumps(value).decode() if value else "{}"


def texts(values: Iterable[str | None]) -> pa.Array:
    """A column of text."""
    values = values if isinstance(values, list) else list(values)
    if len(values) > _FEW and values.count(values[0]) == len(values):
        return texts(values[:1]).take(numbers(array("i", bytes(4 * len(values)))))
    known = [value or "" for value in values]
    data = "".join(known).encode()
    if len(data) == sum(map(len, known)):
        return _strings(data, map(len, known), _there(values))
    return _strings(data, (len(value.encode()) for value in known), _there(values))


def encoded_texts(values: list[bytes | None]) -> pa.Array:
    """A column of text in UTF-8."""
    known = [value or b"" for value in values]
    return _strings(b"".join(known), map(len, known), _there(values))


def text_lists(values: Sequence[Sequence[str]]) -> pa.Array:
    """A column of lists of texts."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    inner = texts(list(chain.from_iterable(values)))
    return pa.ListArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), inner
    )


def numbers(values: array[int] | Sequence[int | None]) -> pa.Array:
    """A column of whole numbers; an array is taken as it is, and so is a column of a saved index."""
    if isinstance(values, (array, memoryview)):
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


def instants(values: array[int] | Sequence[int]) -> pa.Array:
    """A column of instants."""
    return numbers(values).cast(pa.timestamp("us"))


def names_of(values: array[int] | Sequence[int]) -> pa.Array:
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


def _strings(data: bytes, lengths: Iterable[int], there: pa.Buffer | None) -> pa.Array:
    large = len(data) > _MOST
    offsets = array("q" if large else "i", accumulate(lengths, initial=0))
    kind = pa.large_string() if large else pa.string()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [there, pa.py_buffer(offsets), pa.py_buffer(data)])


# ------------------------------------------------------------------------------------- bodies in the journal


def read_bodies(raw: Raw, places: Sequence[Place]) -> list[Json]:
    """The bodies at places, parsed together: a quarter of the cost of one by one."""
    found: list[Json] = []
    for lo in range(0, len(places), _BATCH):
        batch = [raw(pos, length) if length else b"{}" for pos, length in places[lo : lo + _BATCH]]
        found += orjson.loads(b"[%b]" % b",".join(batch))
    return found


def read_contents(raw: Raw, places: Sequence[Place]) -> tuple[pa.Array, list[Json]]:
    """The contents at places as JSON text, and the rest of each body, parsed, with its content if it has no text. What was forgotten is empty."""
    contents: list[bytes | None] = []
    rests: list[bytes] = []
    for pos, length in places:
        content, rest = _split(raw(pos, length)) if length else (b"{}", b"{}")
        contents.append(content)
        rests.append(rest)
    bodies: list[Json] = []
    for lo in range(0, len(rests), _BATCH):
        bodies += orjson.loads(b"[%b]" % b",".join(rests[lo : lo + _BATCH]))
    bare = [at for at, body in enumerate(bodies) if body and "text" not in body and contents[at]]
    for lo in range(0, len(bare), _BATCH):
        batch = bare[lo : lo + _BATCH]
        parsed = orjson.loads(b"[%b]" % b",".join(contents[at] or b"{}" for at in batch))
        for at, content in zip(batch, parsed, strict=True):
            bodies[at]["content"] = content
    return encoded_texts(contents), bodies


def _split(body: bytes) -> tuple[bytes | None, bytes]:
    # The keys of a body are sorted: content, salt, then texts and a list of texts. In canonical JSON a quote inside a
    # text has a backslash before it, so the last `,"salt":"` is the body's own, and before it lies the content.
    at = body.rfind(_SALT)
    if body.startswith(_CONTENT) and body[at - 1 : at] == b"}":
        return body[len(_CONTENT) - 1 : at], b"{" + body[at + 1 :]
    parsed = orjson.loads(body)
    content = parsed.pop("content", None)
    return None if content is None else dumps(content), dumps(parsed)


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
        is_event = _bytes(bytes(index.is_event)).take(_at(index.r_ent, rows)).cast(pa.bool_())
        found = self.of(rows.filter(pc.invert(is_event)))
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
