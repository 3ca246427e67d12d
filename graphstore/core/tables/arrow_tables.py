"""Columns of the graph tables, made from the index and the bodies in the journal: what the tables and a view's graph share."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
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
from graphstore.values.period import OPEN
from graphstore.values.text import text_of_body

_BATCH = 8_192
_CONTENT = b'{"content":{'
_SALT = b',"salt":"'

Place = tuple[int, int]


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
        "tags": pa.array([body.get("tags") or [] for body in bodies], pa.list_(pa.string())),
        "trigger": texts(body.get("trigger", "initial") for body in bodies),
        "source": texts(body.get("source") for body in bodies),
    }


def event_columns(types: Sequence[str], bodies: Sequence[Json]) -> dict[str, pa.Array]:
    """The columns of events of these types beside their id, type and instants."""
    columns = {
        field.name: texts(body.get(field.name, field.absent) for body in bodies)
        for field in BODY
        if field.kind == "text"
    }
    columns["metadata"] = texts(json_text(body.get("metadata")) for body in bodies)
    columns["authorized"] = pa.array(map(authorized_of, types, bodies), pa.bool_())
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
        "strength": pa.array([index.c_strength[claim] or None for claim in claims], pa.int64()),
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
        "remainder": pa.array([first < at for first, at in zip(told, recorded, strict=True)], pa.bool_()),
    }


def json_text(value: Any) -> str:
    """A body's field as JSON text; an absent one is an empty object."""
    return dumps(value).decode() if value else "{}"


def texts(values: Iterable[str | None]) -> pa.Array:
    """A column of text."""
    return pa.array(values if isinstance(values, list) else list(values), pa.string())


def numbers(values: array[int] | Sequence[int]) -> pa.Array:
    """A column of whole numbers; an array is taken as it is, and so is a column of a saved index."""
    if isinstance(values, (array, memoryview)):
        kind = pa.int64() if values.itemsize == 8 else pa.int32()
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]).cast(pa.int64())
    return pa.array(values, pa.int64())


def instants(values: array[int] | Sequence[int]) -> pa.Array:
    """A column of instants."""
    return numbers(values).cast(pa.timestamp("us"))


def names_of(values: array[int] | Sequence[int]) -> pa.Array:
    """A column of numbers as text, null for -1."""
    column = numbers(values)
    return pc.if_else(pc.less(column, 0), pa.scalar(None, pa.string()), column.cast(pa.string()))


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
    return pa.array(contents, pa.string()), bodies


def _split(body: bytes) -> tuple[bytes | None, bytes]:
    # The keys of a body are sorted: content, salt, then texts and a list of texts. In canonical JSON a quote inside a
    # text has a backslash before it, so the last `,"salt":"` is the body's own, and before it lies the content.
    at = body.rfind(_SALT)
    if body.startswith(_CONTENT) and body[at - 1 : at] == b"}":
        return body[len(_CONTENT) - 1 : at], b"{" + body[at + 1 :]
    parsed = orjson.loads(body)
    content = parsed.pop("content", None)
    return None if content is None else dumps(content), dumps(parsed)
